"""Counterbalances that distinct motion shows: springs whose formula is none of the package."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import CHOSEN
from robot_dynid.effects.counterbalance import Counterbalance, Spring
from robot_dynid.estimation import Estimate, Feasible, LeastSquares
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.chosen_effects import choose_parts
from robot_dynid.identification.fit import control_parameters
from robot_dynid.identified.structure import Structure
from robot_dynid.io.log import load_log
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, Samples

ROBOT = load_robot('ur10e').with_gravity(np.array([0.0, 0.0, -9.81]))
PLAIN = Structure.uniform(ROBOT, False, 'coulomb', {'width': 0.01})
#: joint of the spring, and the distances [m] and angle [rad] of its anchors
JOINT, ANCHORS = 1, (0.35, 0.45, -0.6)
TIME = np.arange(0.0, 12.0, 0.02)


def gas_spring(q: FloatArray, qd: FloatArray) -> FloatArray:
    """Return the effort (N,) [N m] of a joint that a gas spring of 0.35 kN relieves.

    Its force falls as the gas expands, and its seal rubs.
    """
    a, b, angle = ANCHORS
    length = np.sqrt(a**2 + b**2 - 2.0 * a * b * np.cos(q + angle))
    lever = a * b * np.sin(q + angle) / length
    force = 350.0 * (0.6 / (0.2 + length))**1.3
    return -force * lever + 10.0 * np.abs(lever) * np.tanh(qd * lever / 2e-3)


@cache
def links() -> FloatArray:
    """Return links (n, 10) that are 3 to 6 % off their description."""
    rng = np.random.default_rng(5)
    off = 1.0 + rng.uniform(0.03, 0.06, ROBOT.n) * rng.choice([-1.0, 1.0], ROBOT.n)
    return ROBOT.nominal * off[:, None]


def recording(seed: int, spring: bool = True) -> Samples:
    """Return a short motion over a fraction of a turn, as short programs have it."""
    rng = np.random.default_rng(seed)
    rate = 2.0 * np.pi * np.arange(1.0, 4.0)[:, None, None] / 12.0
    sine, cosine = rng.normal(size=(2, 3, 1, ROBOT.n)) * 0.2
    phase = rate * TIME[:, None]
    q = rng.uniform(-0.5, 0.5, ROBOT.n) + np.array([0.0, -1.2, 1.0, 0.0, 0.3, 0.0]) + np.sum(
        sine * np.sin(phase) + cosine * np.cos(phase), axis=0)
    qd = np.sum(rate * (sine * np.cos(phase) - cosine * np.sin(phase)), axis=0)
    qdd = np.sum(-rate**2 * (sine * np.sin(phase) + cosine * np.cos(phase)), axis=0)
    effort = rigid_body.inverse_dynamics(ROBOT, q, qd, qdd, links())
    size = np.maximum(np.abs(effort).max(axis=0), 5.0)
    effort += 0.05 * size * np.tanh(qd / 0.02) + 0.02 * size * qd
    if spring:
        effort[:, JOINT] += gas_spring(q[:, JOINT], qd[:, JOINT])
    effort += 0.01 * size * rng.normal(size=q.shape)
    return Samples(ROBOT.joints, TIME, q, qd, qdd, effort, effort)


def left(structure: Structure, estimate: Estimate, recordings: list[Samples]) -> float:
    """Return the share of the effort of the joint that is left of recordings."""
    model = structure.torque_model(ROBOT)
    error, effort = (np.concatenate([own(one)[:, JOINT] for one in recordings]) for own in (
        lambda one: one.effort - model.effort(one, estimate.values), lambda one: one.effort))
    return float(np.linalg.norm(error) / np.linalg.norm(effort))


def three(seed: int, spring: bool = True) -> list[Samples]:
    """Return short motions to train on."""
    return [recording(seed + number, spring) for number in (0, 30, 60)]


@pytest.mark.parametrize('seed', range(2))
def test_a_gas_spring_is_taken_up_by_its_joint_and_no_other(seed: int) -> None:
    """It leaves half as much of other motion, beyond the angles of the fit, too."""
    training, others = three(seed), [recording(number) for number in range(100, 160, 10)]
    structure = choose_parts('counterbalance', ROBOT, PLAIN, training)
    assert [spring.joint for spring in structure.chosen['counterbalance']] == [JOINT]
    sprung = Experiment.of(structure.torque_model(ROBOT), training)
    plain = Experiment.of(PLAIN.torque_model(ROBOT), training)
    error = left(structure, Feasible().fit(sprung), others)
    assert error < 0.2
    assert all(error < 0.55 * left(PLAIN, method.fit(plain), others)
               for method in (Feasible(), LeastSquares()))


@pytest.mark.parametrize('seed', range(3))
def test_a_counterbalance_is_not_chosen_where_there_is_none(seed: int) -> None:
    assert choose_parts('counterbalance', ROBOT, PLAIN, three(seed, spring=False)) == PLAIN


def test_a_wrong_mass_is_no_spring() -> None:
    heavy = ROBOT.nominal * np.array([1.0, 1.0, 1.3, 1.0, 1.0, 2.0])[:, None]
    robot = ROBOT.with_nominal(heavy)
    assert choose_parts('counterbalance', robot, PLAIN, three(1, spring=False)) == PLAIN


def test_a_robot_without_weight_has_none() -> None:
    robot = ROBOT.with_gravity(np.zeros(3))
    assert choose_parts('counterbalance', robot, PLAIN, three(1)) == PLAIN


def test_the_torque_is_that_of_a_constant_tension_and_bounded() -> None:
    """Also where no recording has been: at most that of the shorter lever."""
    q, a, b = np.linspace(-np.pi, np.pi, 10_001), 0.2, 0.5
    length = np.sqrt(a**2 + b**2 - 2.0 * a * b * np.cos(q + 0.3))
    spring = Spring(0, 0.3, a / b)
    assert np.allclose(spring.torque(q) * 100.0 * a, 100.0 * np.gradient(length, q),
                       atol=1e-2)
    assert np.abs(spring.torque(q)).max() == pytest.approx(1.0, abs=1e-6)
    assert np.allclose(spring.slope(q)[1:-1], np.gradient(spring.torque(q), q)[1:-1], atol=1e-5)
    assert replace(spring, ratio=0.0).torque(q) == pytest.approx(np.sin(q + 0.3))


@pytest.mark.parametrize('run', ['A', 'B'])
def test_the_counterbalance_of_an_industrial_robot_is_seen(shared_data: Path, run: str) -> None:
    """KUKA KR300: ten seconds over half a radian of axis 2; with it nominal links predict both."""
    folder = shared_data / 'kr300'
    if not folder.is_dir():
        pytest.skip(f'measured data: no folder {folder}; set ROBOT_DYNID_DATA')
    robot = robot_from_urdf((folder / 'kr300.urdf').read_text())
    plain = Structure.uniform(robot, True, 'coulomb', {'width': 0.01})
    recordings = {name: prepare(robot, repair(robot, load_log(
        folder / f'{name}.csv.gz', robot)), Preprocessing(15.0)) for name in 'AB'}
    structure = choose_parts('counterbalance', robot, plain, [recordings[run]])
    assert [spring.joint for spring in structure.chosen['counterbalance']] == [1]
    model = structure.torque_model(robot)
    values = control_parameters(model, Experiment.of(model, [recordings[run]]).information)
    for other in recordings.values():
        error = other.measured - model.effort(other, values)
        assert np.linalg.norm(error[:, 1]) < 0.3 * np.linalg.norm(other.measured[:, 1])


def test_a_joint_has_one_effect_that_efforts_hardly_tell_from_weight(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHOSEN, 'other', Counterbalance)
    recordings = three(0)
    found = choose_parts('counterbalance', ROBOT, PLAIN, recordings)
    assert [part.joint for part in found.chosen['counterbalance']] == [JOINT]
    taken = replace(PLAIN, chosen={'other': found.chosen['counterbalance']})
    assert 'counterbalance' not in choose_parts('counterbalance', ROBOT, replace(
        PLAIN, chosen={'other': (Spring(JOINT, 0.5, 0.0),)}), recordings).chosen
    assert choose_parts('other', ROBOT, taken, recordings) == taken
