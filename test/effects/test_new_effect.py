"""effects/: a made-up effect with memory: one file and one line reach all that a model is used
for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from report_pages import unpacked

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects import CHOSEN, ChosenEffect
from robot_dynid.effects.joint_friction import filter_columns
from robot_dynid.friction import AxisFriction
from robot_dynid.friction.law import AxisMotion, columns_of
from robot_dynid.friction.terms import STOP, Parameter, Term
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.report.effects import shown
from robot_dynid.report.parameters import sheets
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import FloatArray, RawLog, Samples

ROBOT = load_robot('planar_3r')
#: joint, torque [N m] and length [rad] of the carrier that is simulated
JOINT, DRAG, LENGTH = 1, 4.0, 0.25


# The file that a developer writes.

@dataclass(frozen=True)
class Carrier:
    """A cable carrier at a ``joint``, which drags after ``length`` [rad]."""

    joint: int
    length: float

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Its drag: a spring that slips."""
        return (Parameter('cc', (Term(STOP, self.length),)),)


@dataclass(frozen=True, eq=False)
class CableDrag(ChosenEffect):
    """Drag of cable carriers, built up by travel after each reversal."""

    part = Carrier
    symbol = 'cc'
    what = 'drag of the cable carrier'
    least = 0.02

    @classmethod
    def candidates(cls, robot: RobotModel, joint: int) -> Sequence[Sequence[Carrier]]:
        """Return carriers of three lengths at each joint."""
        return ([Carrier(joint, length) for length in (0.1, 0.25, 0.6)],)

    @classmethod
    def ranges(
        cls, robot: RobotModel, joint: int, position: FloatArray, torque: FloatArray
    ) -> FloatArray:
        """Return ranges above zero: carriers drag."""
        return np.tile([0.0, np.inf], (len(torque), 1))

    def history(self, samples: Samples) -> FloatArray:
        """Return the drag (h, N) of every carrier at one."""
        return filter_columns(samples, lambda known: (
            columns_of(part.table, AxisMotion(known.time, known.position[:, part.joint],
                                              known.velocity[:, part.joint], known.starts))
            for part in self.parts), len(self.parts))

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with the carriers beside its friction."""
        axes = np.eye(len(mechanism.links))[[part.joint for part in self.parts]]
        drag = AxisFriction.of(axes, [SimpleNamespace(table=part.table) for part in self.parts],
                               [np.array([values[name]]) for name in self.names])
        return replace(mechanism, friction=mechanism.friction.combine(drag))


# What follows tries it.

def drag(position: FloatArray) -> FloatArray:
    """Return the drag (N,) [N m] along positions (N,) [rad], by its own formula."""
    found, state = np.empty(len(position)), 0.0
    for i, step in enumerate(np.diff(position, prepend=position[0])):
        state = min(max(state + step / LENGTH, -1.0), 1.0)
        found[i] = DRAG * state
    return found


def recording(seed: int, carrier: bool = True) -> RawLog:
    """Return a recording of 20 s at 100 Hz."""
    rng, time = np.random.default_rng(seed), np.arange(0.0, 20.0, 0.01)
    rate = 2.0 * np.pi * np.arange(1, 6) / 20.0
    a, b = rng.normal(size=(2, 5, ROBOT.n)) * 0.5 / np.sqrt(np.arange(1, 6))[:, None]
    phase = time[:, None] * rate
    q = np.sin(phase) @ a + np.cos(phase) @ b
    qd = (rate * np.cos(phase)) @ a - (rate * np.sin(phase)) @ b
    qdd = -(rate**2 * np.sin(phase)) @ a - (rate**2 * np.cos(phase)) @ b
    effort = rigid_body.inverse_dynamics(ROBOT, q, qd, qdd, ROBOT.nominal)
    effort += 0.8 * qd + 1.5 * np.tanh(qd / 0.01)
    if carrier:
        effort[:, JOINT] += drag(q[:, JOINT])
    effort += 0.05 * rng.normal(size=q.shape)
    return RawLog(f'made {seed}', ROBOT.joints, time, q, qd, effort)


def identified_from(carrier: bool) -> IdentificationResult:
    """Return what identification makes of two recordings where the effect is among the others."""
    return identify(ROBOT, [recording(seed, carrier) for seed in (1, 2)],
                    recipe=recipe_from_dict({'ripple': 'none', 'adaptation': 'none'}))


@pytest.fixture(autouse=True, scope='module')
def registered() -> Iterator[None]:
    """Add the line."""
    CHOSEN['cable'] = CableDrag
    yield
    del CHOSEN['cable']


@pytest.fixture(scope='module')
def identified(registered: None) -> IdentificationResult:
    """Return what identification makes of recordings with a carrier."""
    return identified_from(carrier=True)


def test_identify_chooses_a_new_effect_for_the_joint_that_has_it(
    identified: IdentificationResult
) -> None:
    assert identified.model.structure.chosen == {'cable': (Carrier(JOINT, LENGTH),)}
    assert identified.model.standard['cc2'] == pytest.approx(DRAG, rel=0.05)


def test_model_files_keep_a_new_effect(identified: IdentificationResult) -> None:
    again = IdentifiedModel.from_yaml(identified.model.to_yaml())
    assert again.structure.chosen == identified.model.structure.chosen
    states = np.random.default_rng(3).normal(size=(3, 5, ROBOT.n))
    np.testing.assert_allclose(again.inverse(*states), identified.model.inverse(*states))


def test_dynamics_and_equations_have_a_new_effect(identified: IdentificationResult) -> None:
    """A joint that slides steadily drags its carrier, one that slides back as well."""
    model = identified.model
    q, qd, qdd = np.random.default_rng(4).normal(size=(3, 40, ROBOT.n))
    qd += 0.2 * np.sign(qd)
    plain = replace(model.mechanism, friction=replace(
        model.axis_friction, terms=model.axis_friction.terms[:0]))
    without = rigid_body.InverseDynamics(
        plain.robot, plain.links, plain.rotors, plain.friction)(q, qd, qdd)
    dry = (model.inverse(q, qd, qdd) - without)[:, JOINT] / np.sign(qd[:, JOINT])
    assert dry == pytest.approx(model.standard['fc2'] + model.standard['cc2'], rel=0.2)
    effort = model.inverse(q, qd, qdd)
    np.testing.assert_allclose(model.forward(q, qd, effort), qdd, rtol=0.0, atol=1e-6)
    moved = model.rollout(q[:1], qd[:1], effort[:1, None], 1e-3)
    assert moved.velocity[0, 0] == pytest.approx(qd[0] + 1e-3 * qdd[0], abs=5e-3)
    casadi = pytest.importorskip('casadi')
    assert casadi is not None
    function = model.to_casadi().inverse
    np.testing.assert_allclose(
        np.ravel(function(q[0], qd[0], qdd[0])), effort[0], rtol=0.0, atol=1e-9)


def test_predictions_have_its_past(identified: IdentificationResult) -> None:
    """After a reversal the drag builds up over the length, on motion that was not fitted."""
    model = identified.model
    samples = prepare(ROBOT, repair(ROBOT, recording(9)), model.preprocessing)
    assert samples.measured is not None
    left = (samples.measured - model.predicted(samples))[200:, JOINT]  # its beginning is unknown
    assert np.sqrt(np.mean(left**2)) < 0.05 * DRAG


def test_the_words_are_in_its_parameters(identified: IdentificationResult) -> None:
    assert identified.model.torque_model.words['cc2'].sentence == \
        f'{ROBOT.joints[JOINT]}: drag of the cable carrier'
    assert len(sheets(identified.model)[0]) == 2
    (section,) = shown(identified.model)
    assert section.tables[0].columns == ('joint', 'drag of the cable carrier [N m]', 'length')


def test_a_new_effect_is_not_chosen_where_the_arm_has_none() -> None:
    assert not identified_from(carrier=False).model.structure.chosen


def test_parameters_of_an_effect_have_no_limits_unless_it_states_them() -> None:
    poses, torque = np.zeros((5, ROBOT.n)), np.ones((3, 5))
    np.testing.assert_array_equal(ChosenEffect.ranges(ROBOT, 0, poses, torque),
                                  [[-np.inf, np.inf]] * 3)


def test_the_torque_of_an_effect_is_drawn_there_and_back() -> None:
    """Over the positions that were trained, and nowhere where these are not known."""
    ranges = np.array([[-9.0, 9.0], [-0.5, 1.5], [-9.0, 9.0]])
    model: Any = SimpleNamespace(
        robot=ROBOT, structure=SimpleNamespace(chosen={'cable': (Carrier(JOINT, LENGTH),)}),
        standard={'cc2': DRAG}, trained=Trained({'position': ranges}))
    ((joint, (drawn,)),) = CableDrag.figures(model, ()).items()
    (curve,), layout = drawn.spec['data'], drawn.spec['layout']
    position, torque = unpacked(curve['x']), unpacked(curve['y'])
    assert joint == JOINT and curve['name'] == 'drag of the cable carrier'
    there = np.linspace(-0.5, 1.5, 101)
    np.testing.assert_allclose(position, [*there, *there[-2::-1]], rtol=0.0, atol=1e-6)
    before = np.linspace(-0.5 - LENGTH, -0.5, 50)  # a joint in motion slides
    expected = drag(np.concatenate([before, position]))[50:]
    np.testing.assert_allclose(torque, expected, rtol=0.0, atol=1e-5)
    assert [layout[axis]['title']['text'] for axis in ('xaxis', 'yaxis')] == [
        'position [rad]', 'torque [N m]']
    unknown: Any = SimpleNamespace(**{**vars(model), 'trained': Trained()})
    assert CableDrag.figures(unknown, ()) == {}
