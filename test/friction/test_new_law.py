"""friction/law.py: two laws that only this file knows, one with memory: all that uses friction
takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import friction_formulas
import numpy as np
import pytest
from friction_formulas import ramp
from monitored import model_of, motion
from stepped_rollout import stepped_rollout
from tolerances import SAME_FORMULA, STEPPED

from robot_dynid import friction
from robot_dynid.effects import JointFriction, RigidLinks, axes_of
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.friction import LAWS, AxisMotion, FrictionLaw, Shape, law_from
from robot_dynid.friction.terms import CONSTANT, POWER, STOP, TANH, Parameter, Term
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.observer import FRICTION, Observer
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, RawLog, Samples

ROBOT = load_robot('planar_3r')


@dataclass(frozen=True)
class Falling(FrictionLaw):
    """``fv v + (fc + fs (1 - tanh(|v| / speed))) tanh(v / width) + f0``."""

    width: float = 0.1
    speed: float = 0.5
    name: ClassVar[str] = 'falling'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 0.05, 0.2, 3),
                                           Shape('speed', 0.25, 1.0, 3))

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Viscous, Coulomb and static friction, offset."""
        return (Parameter('fv', (Term(POWER),)), Parameter('fc', (self.dry,), holds=True),
                Parameter('fs', (Term(TANH, self.width, fade=self.speed),), holds=True),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """The hyperbolic tangent."""
        return Term(TANH, self.width)


@dataclass(frozen=True)
class TwoSprings(FrictionLaw):
    """``fv v + fc (2 z1 + z2) / 3 + f0``, z1 slips at the travel ``length``, z2 at ten of it."""

    length: float = 1e-3
    name: ClassVar[str] = 'two-springs'
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('length', 2.5e-4, 4e-3, 5),)

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Viscous friction, the springs, offset."""
        springs = Term(STOP, self.length, 2 / 3), Term(STOP, 10.0 * self.length, 1 / 3)
        return (Parameter('fv', (Term(POWER),)), Parameter('fc', springs, holds=True),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """The shorter spring."""
        return Term(STOP, self.length)


def falling(s: Mapping[str, Any], v: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return dry friction and columns of the first law."""
    dry = np.tanh(v / s['width'])
    return dry, {'fv': v, 'fc': dry, 'fs': dry * (1.0 - np.tanh(np.abs(v) / s['speed'])),
                 'f0': np.ones_like(v)}


def two_springs(s: Mapping[str, Any], v: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return dry friction and columns of the second law in steady sliding."""
    return ramp(v, 0.01), {'fv': v, 'fc': ramp(v, 0.01), 'f0': np.ones_like(v)}


@pytest.fixture(params=[Falling, TwoSprings], ids=lambda law: law.name, autouse=True)
def law(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[FrictionLaw]:
    """Register a law: this is all that is needed."""
    kind: type[FrictionLaw] = request.param
    monkeypatch.setitem(friction.LAWS, kind.name, kind)
    formula = falling if kind is Falling else two_springs
    monkeypatch.setitem(friction_formulas.OTHERS, kind.name, formula)
    return kind


def wave(count: int = 4000) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return time, position, velocity, acceleration of three joints with many reversals."""
    rng = np.random.default_rng(2)
    time = 0.01 * np.arange(count)
    rates, phase = rng.uniform(0.5, 4.0, (6, 3)), rng.uniform(0.0, 6.0, (6, 3))
    size = 0.5 * rng.uniform(0.3, 1.0, (6, 3)) / rates
    turn = time[:, None, None] * rates + phase
    return (time, (size * np.sin(turn)).sum(axis=1), (size * rates * np.cos(turn)).sum(axis=1),
            (-size * rates**2 * np.sin(turn)).sum(axis=1))


def recording(law: FrictionLaw) -> RawLog:
    """Return a recording of the arm whose joints have this friction, 2 N m of each parameter."""
    time, q, qd, qdd = wave()
    effort = model_of(ROBOT).frictionless_effort(q, qd, qdd)
    for j in range(3):
        effort[:, j] += 2.0 * law.columns(AxisMotion(time, q[:, j], qd[:, j])).sum(axis=0)
    effort += 0.05 * np.random.default_rng(3).normal(size=effort.shape)
    return RawLog('new law', ROBOT.joints, time, q, qd, effort)


def test_columns_with_and_without_memory(law: type[FrictionLaw]) -> None:
    own, rng = law(), np.random.default_rng(0)
    v = rng.normal(size=60) * 10.0 ** rng.uniform(-3, 1, 60)
    columns = own.columns(AxisMotion(v, v, v, tuple(range(60))))
    formula = friction_formulas.OTHERS[law.name](own.settings(), v)[1]
    np.testing.assert_allclose(columns, list(formula.values()), rtol=1e-12, atol=1e-12)
    assert own.odd == tuple(p for p in own.parameters if p != 'f0')
    if law is TwoSprings:
        q = 0.01 * np.sin(np.arange(200) / 9.0)
        still = np.zeros_like(q)
        z1, z2 = LAWS['maxwell'](lengths=(1e-3, 1e-2)).columns(AxisMotion(still, q, still))[1:3]
        found = own.columns(AxisMotion(still, q, still))[1]
        np.testing.assert_allclose(found, (2.0 * z1 + z2) / 3.0, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize('friction_wanted', ['this', 'auto'])
def test_identify_fits_and_chooses_a_new_law(law: type[FrictionLaw], friction_wanted: str) -> None:
    true = law()
    # Stribeck's is nearly the same as the first law
    name = law.name if friction_wanted == 'this' else 'auto without stribeck'
    recipe = recipe_from_dict({'friction': name, 'cutoff': 12.0, 'effort_lag': 0.0})
    model = identify(ROBOT, [recording(true)], recipe=recipe).model
    assert set(model.structure.friction) == {law.name}
    for j, own in enumerate(model.structure.laws):
        for shape in law.shapes:
            assert getattr(own, shape.name) == pytest.approx(getattr(true, shape.name), rel=0.1)
        assert model.standard[f'fc{j + 1}'] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize('added', ['', '+load', '+levelling'])
def test_a_model_with_a_new_law_is_used(law: type[FrictionLaw], added: str) -> None:
    name = law.name + added
    model = model_of(ROBOT, name)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.structure == model.structure
    rng = np.random.default_rng(4)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 20, 3))
    effort = again.inverse(q, qd, qdd)
    values = [model.standard[f'{p}1'] for p in law_from(name).parameters]
    expected = values @ friction_formulas.sliding_columns(name, law_from(name), qd[:, 0])
    np.testing.assert_allclose(model.friction(q, qd)[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(model.forward(q, qd, effort), qdd, rtol=1e-7, atol=1e-7)
    held = np.repeat(effort[:4, None], 10, axis=1)
    found = model.rollout(q[:4], 0.1 * qd[:4], held, 2e-3)
    stepped = stepped_rollout(model, q[:4], 0.1 * qd[:4], held, 2e-3)
    np.testing.assert_allclose(found.position, stepped.position, rtol=0.0, atol=STEPPED)


def test_the_monitor_follows_a_new_law(law: type[FrictionLaw]) -> None:
    model = model_of(ROBOT, law.name)
    along = monitor_input(model, motion(ROBOT))
    block = model.structure.friction_of(ROBOT)
    columns = block.history(Samples(ROBOT.joints, along.time, along.position, along.velocity,
                                    np.zeros_like(along.position), starts=along.starts))
    values = np.array([model.standard[name] for name in block.names])
    expected = (values[:, None] * columns).reshape(3, -1, len(along.time)).sum(axis=1).T
    found = Observer(model, 30.0).along(along)[:, FRICTION]
    np.testing.assert_allclose(found, expected,
                               rtol=0.0, atol=SAME_FORMULA * np.abs(expected).max())


def test_a_design_looks_for_its_parameters(law: type[FrictionLaw]) -> None:
    blocks = RigidLinks(ROBOT), JointFriction(axes_of(ROBOT), (law(),) * 3)
    criteria = design_criteria(ROBOT, blocks=blocks)
    assert {f'fc{j}' for j in (1, 2, 3)} <= set(criteria.score.names)
    rng = np.random.default_rng(5)
    q, qd, qdd, way = rng.normal(size=(4, 200, 3))
    assert criteria.objective is not None
    objective = criteria.objective('log-det', Motion(q, qd, qdd, 0.0 * q), 2.0)
    value, gradient = objective(Motion(q, qd, qdd, 0.0 * q))
    step = 1e-5
    ahead, behind = (objective(Motion(q, qd + sign * step * way, qdd, 0.0 * q))[0]
                     for sign in (1.0, -1.0))
    assert np.isfinite(value)
    assert (ahead - behind) / (2.0 * step) == pytest.approx(np.sum(gradient[1] * way), rel=1e-6)
