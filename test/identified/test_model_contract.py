"""identified/model.py: every model: fit, inverse, forward, mass matrix, rollout and monitor are
one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from identified_models import counterbalanced
from monitored import model_of
from tolerances import BEGINNING, REDUCED

from robot_dynid import load_robot
from robot_dynid.friction import ADDITIONS, LAWS
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.monitoring.observer import PREDICTED, Observer
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Samples

COUNT = 8


def askew(name: str, elastic: tuple[int, ...] = (), sensors: tuple[int, ...] = ()) -> RobotModel:
    """Return a robot whose rotors all spin about axes askew, some of its joints elastic."""
    robot, rng = load_robot(name), np.random.default_rng(7)
    axes = rng.normal(size=(robot.n, 3))
    drive = replace(robot.drive, kind='torque', gains=None, elastic=elastic,
                    torque_sensors=sensors, gear_ratios=rng.uniform(-20.0, -4.0, robot.n),
                    rotor_axes=axes / np.linalg.norm(axes, axis=1)[:, None])
    return replace(robot, drive=drive)


def weightless(name: str) -> RobotModel:
    """Return a robot whose driver takes the weight off the effort."""
    robot = load_robot(name)
    return replace(robot, drive=replace(robot.drive, kind='gravity_compensated_torque'))


ROBOTS: dict[str, Callable[[], RobotModel]] = {
    'chain': lambda: load_robot('seven_axis'), 'coupled wrist': lambda: load_robot('tx40'),
    'prismatic': lambda: load_robot('stanford_arm'), 'current': lambda: load_robot('ur10e'),
    'weight taken off': lambda: weightless('tx40'), 'rotors askew': lambda: askew('stanford_arm'),
    'coupled rotors askew': lambda: askew('tx40'),
    'elastic': lambda: load_robot('elastic_2r'),
    'elastic, rotors askew': lambda: askew('puma560', (1, 4, 5)),
    'elastic, rotors askew, sensors': lambda: askew('puma560', (1, 2, 4), (2, 4)),
}
FRICTION = (*LAWS, *(f'{law}+{a}' for law, a in zip(
    ('maxwell', 'dahl', 'stribeck', 'two-speed', 'asymmetric'), ADDITIONS, strict=True)),
    'coulomb+load')
CASES = [*((robot, 'coulomb') for robot in ROBOTS), *(('coupled wrist', law) for law in FRICTION),
         ('elastic, rotors askew', 'coulomb+load'), ('elastic, rotors askew', 'maxwell+load'),
         ('rotors askew', 'stribeck+load'),
         *((robot, 'counterbalance')
           for robot in ('chain', 'coupled wrist', 'prismatic', 'elastic'))]


@pytest.fixture(params=CASES, ids=', '.join)
def model(request: pytest.FixtureRequest) -> IdentifiedModel:
    """Return a model with nominal links, all other parameters random, friction small."""
    robot, law = ROBOTS[request.param[0]](), request.param[1]
    springs, law = law == 'counterbalance', law.replace('counterbalance', 'coulomb')
    structure = Structure.uniform(robot, True, law, {})
    if 'load' in law:
        structure = replace(structure, load=tuple(tuple(row) for row in robot.nominal.tolist()))
    found = replace(model_of(robot, law), structure=structure,
                    preprocessing=Preprocessing(1e9))
    kept = found.reduction.standard
    small = np.array([0.03 if name.startswith('f') else 1.0 for name in kept])
    values = found.reduction.base(small * [found.standard[name] for name in kept])
    found = replace(found, values=values)
    return counterbalanced(found) if springs else found


def states(model: IdentifiedModel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return swift random motion (COUNT, coordinates), no axis near its reversal."""
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, COUNT, model.robot.coordinates))
    return q, np.sign(qd) * (0.7 + np.abs(qd)), qdd


def predicted(model: IdentifiedModel, *motion: FloatArray) -> FloatArray:
    """Return the efforts (COUNT, n) of joints and (COUNT, e) of motors from the regressor.

    States without a past. Beside a torque sensor a joint's whole effort is that of links and
    motor, and the motor's effort is what it takes and what the gear does.
    """
    samples = Samples(model.joints, np.arange(float(COUNT)), *motion, starts=tuple(range(COUNT)))
    rows, drive, n = model.predicted(samples), model.robot.drive, model.robot.n
    whole, motors = rows[:, :n].copy(), rows[:, n:n + len(drive.elastic)].copy()
    for place, joint in enumerate(drive.torque_sensors, n + len(drive.elastic)):
        own = drive.elastic.index(joint)
        whole[:, joint] += motors[:, own]
        motors[:, own] += rows[:, place]
    return whole, motors


def agree(found: FloatArray, expected: FloatArray, relative: float = REDUCED) -> None:
    """Compare by the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0.0,
                               atol=relative * max(1.0, float(np.abs(expected).max())))


def stiff(model: IdentifiedModel, *motion: FloatArray) -> list[FloatArray]:
    """Return motion of joints as that of joints and motors."""
    return [part[:, [*range(model.robot.n), *model.robot.drive.elastic]] for part in motion]


def test_inverse_is_what_the_fit_predicts(model: IdentifiedModel) -> None:
    motion = [part[:, :model.robot.n] for part in states(model)]
    agree(model.inverse(*motion), predicted(model, *stiff(model, *motion))[0])


def test_forward_undoes_inverse_and_the_mass_matrix_is_its_slope(model: IdentifiedModel) -> None:
    q, qd, qdd = (part[:, :model.robot.n] for part in states(model))
    mass = model.mass_matrix(q)
    worst = np.linalg.cond(mass).max()
    agree(model.forward(q, qd, model.inverse(q, qd, qdd)), qdd, REDUCED * worst)
    agree(mass, mass.transpose(0, 2, 1))
    still = np.zeros_like(q)
    held = predicted(model, *stiff(model, q, still, still))[0] - model.friction(q, still)
    agree(model.gravity(q), held)
    slope = np.stack([predicted(model, *stiff(model, q, still, still + e))[0]
                      - model.friction(q, still, still + e) - held
                      for e in np.eye(model.robot.n)], axis=2)
    agree(mass, slope)


def test_a_rollout_begins_with_the_accelerations_of_forward(model: IdentifiedModel) -> None:
    """It takes the load of friction without acceleration."""
    q, qd, qdd = (part[:, :model.robot.n] for part in states(model))
    step = 1e-7
    effort = model.inverse(q, qd, qdd) + model.friction(q, qd) - model.friction(q, qd, qdd)
    found = model.rollout(q, qd, effort[:, None], step).velocity[:, 0] - qd
    agree(found / step, qdd, BEGINNING)


def test_the_monitor_predicts_the_same(model: IdentifiedModel) -> None:
    """At constant velocity: two states are all it sees of a motion."""
    q, qd, _ = (part[:, :model.robot.n] for part in states(model))
    expected, step = model.inverse(q, qd, np.zeros_like(q)), 1e-9
    for k in range(COUNT):
        rows = np.zeros((2, 3, model.robot.n))
        rows[:, 0], rows[:, 1] = [q[k], q[k] + step * qd[k]], qd[k]
        found = Observer(model, 10.0)(rows, np.array([0.0, step]))
        agree(found[1, PREDICTED], expected[k], BEGINNING)


def test_elastic_accelerations_fulfil_every_equation(model: IdentifiedModel) -> None:
    robot = model.robot
    if not robot.drive.elastic:
        return
    (x, v, _), n = states(model), robot.n
    drives = np.random.default_rng(5).normal(size=(COUNT, n))
    motors = model.elastic_motion.gears.motors(n)
    found = model.forward_elastic(x[:, :n], v[:, :n], drives, x[:, motors], v[:, motors])
    a = np.hstack([found[0], found[1][:, list(robot.drive.elastic)]])
    joints, own = predicted(model, x, v, a)
    worst = np.abs(a).max() * np.abs(model.elastic_motion.dynamics.mass_matrix(x)).max()
    agree(joints, drives, REDUCED * worst)
    agree(own, drives[:, list(robot.drive.elastic)], REDUCED * worst)
