"""Three loops in turn: friction from sweeps, links by least squares, what the deflection tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import IN_TURN, SAME_FORMULA, SOLVED, SWEPT_FRICTION

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import FILTERED
from robot_dynid.estimation.joint_covariance import CorrelationDetails, GeneralisedLeastSquares
from robot_dynid.estimation.least_squares import LeastSquares, joint_weights
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identification.residual_fit import JointFit
from robot_dynid.identification.sequential_fit import SequentialFit, Stopwatch, friction_parameters
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.plant import Plant
from robot_dynid.trajectories.single_joint import Sweep
from robot_dynid.types import FloatArray, RawLog, frozen

STEP = 0.008
VISCOUS, COULOMB = np.array([3.0, 2.0, 1.0]), np.array([4.0, 3.0, 1.5])
SPEEDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.4)
QUICK = Recipe(cutoff=8.0, effort_lag=0.0, ramp_width=0.002, loops='three', residual='none')


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    robot = load_robot('planar_3r')
    return replace(robot, drive=replace(robot.drive, kind='torque'))


def log_of(robot: RobotModel, name: str, motion: tuple[FloatArray, ...], seed: int) -> RawLog:
    """Return what sensors saw of position, velocity, acceleration (N, n)."""
    q, qd, qdd = motion
    rng = np.random.default_rng(seed)
    effort = Plant(robot).inverse(q, qd, qdd) + VISCOUS * qd + COULOMB * np.sign(qd)
    effort += 0.05 * rng.standard_normal(q.shape)
    return RawLog(name, robot.joints, STEP * np.arange(len(q)), q, qd, effort)


def moving(robot: RobotModel, seed: int = 1) -> RawLog:
    """Return 30 s in which all joints move."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 30.0, STEP)
    phase, rate = rng.uniform(0.0, 6.0, (3, 4)), rng.uniform(0.5, 4.0, (3, 4))
    turns = rate[:, :, None] * time + phase[:, :, None]
    motion = (0.3 * np.sin(turns), 0.3 * rate[:, :, None] * np.cos(turns),
              -0.3 * rate[:, :, None] ** 2 * np.sin(turns))
    return log_of(robot, 'moving', tuple(m.sum(axis=1).T for m in motion), seed)


def sweeping(robot: RobotModel, joints: tuple[str, ...]) -> RawLog:
    """Return sweeps of ``joints``, one after the other."""
    parts = []
    pause = np.zeros((100, 3, robot.n))
    for joint in joints:
        for speed in SPEEDS:
            one = Sweep(robot.joints, joint, frozen(np.zeros(robot.n)), speed, 0.3, 0.6)
            motion = one.sample(np.arange(0.0, one.duration, STEP))
            rows = np.stack([motion.position, motion.velocity, motion.acceleration], axis=1)
            pause[:, 0] = rows[-1, 0]
            parts += [rows, pause.copy()]
    return log_of(robot, 'sweeping', tuple(np.concatenate(parts).transpose(1, 0, 2)), 5)


@pytest.fixture(scope='module')
def result(robot: RobotModel) -> IdentificationResult:
    logs = [moving(robot), sweeping(robot, robot.joints)]
    ticks = iter(range(10_000))
    return identify(robot, logs, 'wls', QUICK, clock=lambda: float(next(ticks)))


def test_the_first_loop_finds_the_friction_of_the_sweeps(
        robot: RobotModel, result: IdentificationResult) -> None:
    standard = result.model.standard
    for j in range(robot.n):
        assert standard[f'fv{j + 1}'] == pytest.approx(VISCOUS[j], rel=SWEPT_FRICTION)
        assert standard[f'fc{j + 1}'] == pytest.approx(COULOMB[j], rel=SWEPT_FRICTION)


def test_a_fit_at_once_is_told_of_joints_that_hold(
        robot: RobotModel, result: IdentificationResult) -> None:
    told = 'sweeping: one joint moves at a time'
    joint = replace(QUICK, loops='joint')
    logs = [moving(robot), sweeping(robot, robot.joints)]
    (said,) = [text for text in identify(robot, logs, 'wls', joint).warnings if told in text]
    assert 'loops: three' in said
    behind = replace(robot, drive=replace(robot.drive, sensor='link'))
    for found in (result, identify(robot, logs[:1], 'wls', joint),
                  identify(robot, logs[1:], 'staged', joint),
                  identify(behind, logs, 'wls', replace(joint, friction='none'))):
        assert not any('one joint moves at a time' in text for text in found.warnings)


def test_sweeps_are_left_out_of_the_second_loop(
        robot: RobotModel, result: IdentificationResult) -> None:
    (only,) = result.experiment.recordings
    assert len(only) == result.experiment.information.samples
    for joint in robot.joints:
        assert result.training.model['all'][joint].r2 > 0.99


def test_the_loops_are_timed(result: IdentificationResult) -> None:
    told = result.model.record.residual
    assert told is not None
    assert told.loops == 'three'
    assert told.seconds == dict.fromkeys(('friction', 'links', 'residual'), float(told.rounds))


def at_once(result: IdentificationResult) -> FloatArray:
    """Return friction and links fitted at once."""
    whole = range(len(result.experiment.information.batches))
    joint = JointFit(LeastSquares(), result.estimate)
    return joint(result.experiment, result.experiment, whole, None)


def test_rounds_in_turn_approach_the_fit_at_once_and_stay_there(
        result: IdentificationResult) -> None:
    model, information = result.experiment.model, result.experiment.information
    weights = joint_weights(information) ** 2

    def error(values: FloatArray) -> float:
        return float(weights @ information.residual_energy(values, FILTERED))

    whole = range(len(information.batches))
    physics = SequentialFit(friction_parameters(model), np.zeros(len(model.reduction.names)))
    values = physics(result.experiment, result.experiment, whole, None)
    errors = [error(values)]
    for _ in range(300):
        values = physics(result.experiment, result.experiment, whole, values)
        errors.append(error(values))
    best = at_once(result)
    assert np.all(np.diff(errors) <= SOLVED * errors[0])
    assert error(best) <= errors[-1] < (1.0 + IN_TURN) * error(best)
    stays = physics(result.experiment, result.experiment, whole, best)
    assert error(stays) == pytest.approx(error(best), rel=SAME_FORMULA)


def test_sequential_fit_of_one_round_is_no_better_than_the_fit_at_once(
    result: IdentificationResult
) -> None:
    information = result.experiment.information
    weights = joint_weights(information) ** 2
    turns, once = (float(weights @ information.residual_energy(v, FILTERED))
                   for v in (result.estimate.values, at_once(result)))
    assert once <= turns


def test_a_joint_that_moves_alone_by_chance_makes_no_sweeps(
        robot: RobotModel, result: IdentificationResult) -> None:
    """Moves to the start of a motion and slow passes have such stretches, in real time."""
    run, sweeps = moving(robot), sweeping(robot, robot.joints)
    last, alone = sweeping(robot, robot.joints[::-1]), round(8.0 / STEP)
    rows = [(getattr(run, name), getattr(last, name)[:alone]) for name in (
        'position', 'velocity', 'effort')]
    both = RawLog('both', robot.joints, STEP * np.arange(len(run.time) + alone),
                  *map(np.vstack, rows))
    found = identify(robot, [both, sweeps], 'wls', QUICK)
    assert sum(map(len, found.experiment.recordings)) > sum(map(len, result.experiment.recordings))
    for name, value in result.model.standard.items():
        if name.startswith(('fv', 'fc')):
            assert found.model.standard[name] == pytest.approx(value, rel=SWEPT_FRICTION)


def test_joints_without_sweeps_are_named(robot: RobotModel) -> None:
    logs = [moving(robot), sweeping(robot, robot.joints[:2])]
    with pytest.raises(DataError, match=f'none of {robot.joints[2]}'):
        identify(robot, logs, 'wls', QUICK)


def test_sequential_fit_without_sweeps_is_refused(robot: RobotModel) -> None:
    with pytest.raises(DataError, match='constant-velocity'):
        identify(robot, [moving(robot)], 'wls', QUICK)


def test_sequential_fit_of_sweeps_alone_is_refused(robot: RobotModel) -> None:
    with pytest.raises(DataError, match='all joints move together'):
        identify(robot, [sweeping(robot, robot.joints)], 'wls', QUICK)


def test_sequential_fit_refuses_other_methods_and_unknown_loops(robot: RobotModel) -> None:
    with pytest.raises(UsageError, match='not by irls'):
        identify(robot, [moving(robot)], 'irls', QUICK)
    with pytest.raises(UsageError, match='choose one of joint, three'):
        recipe_from_dict({'loops': 'four'})


@pytest.mark.parametrize('cells', [range(1000), range(5, 15)])
def test_links_have_the_covariance_of_all_joints(
        result: IdentificationResult, cells: range) -> None:
    """Eqs. 24 and 25: the residuals, weighted by their own covariance, leave the links nothing."""
    experiment = result.experiment
    (samples,) = experiment.recordings
    assert samples.effort is not None
    by_motion = experiment.information.by_motion
    assert by_motion is not None
    cells = range(cells.start, min(cells.stop, len(by_motion.batches)))
    rows = np.isin(by_motion.rows, cells)
    columns = experiment.model.columns(samples)[:, :, rows]
    common = np.random.default_rng(4).standard_normal(len(samples))  # the joints' noise, alike
    noisy = samples.effort + np.outer(common, [0.3, -0.2, 0.1])
    correlated = Experiment.of(experiment.model, [replace(samples, effort=noisy)])
    links = ~friction_parameters(experiment.model)
    before = at_once(result)
    before[~links] *= 1.01
    found = GeneralisedLeastSquares(tolerance=1e-9).part_solver(
        correlated.by_motion, cells)(links, before)
    assert np.array_equal(found[~links], before[~links])
    left = noisy[rows].T - np.einsum('jbn,b->jn', columns, found)
    omega = left @ left.T / (left.shape[1] - links.sum())
    assert np.abs(omega[0, 1]) > 0.8 * np.sqrt(omega[0, 0] * omega[1, 1])
    weighted = np.linalg.solve(omega, left)
    gradient = np.einsum('jbn,jn->b', columns, weighted)[links]
    size = np.sqrt(np.einsum('jbn,jk,kbn->b', columns, np.linalg.inv(omega), columns)[links])
    assert np.all(np.abs(gradient) < 1e-5 * size * np.sqrt(left.size))


def test_three_loops_with_the_covariance_of_all_joints(
        robot: RobotModel, result: IdentificationResult) -> None:
    found = identify(robot, [moving(robot), sweeping(robot, robot.joints)], 'gls', QUICK)
    assert found.model.method == 'gls'
    assert isinstance(found.estimate.details, CorrelationDetails)
    for name, value in result.model.standard.items():
        assert found.model.standard[name] == pytest.approx(value, abs=0.05 + 0.05 * abs(value))


def test_data_left_out_is_judged_with_the_friction_of_the_sweeps(robot: RobotModel) -> None:
    """Of motion that is mostly at rest, folds do not tell friction; the sweeps do."""
    sweeps, log = sweeping(robot, robot.joints), moving(robot)
    short = replace(log, time=log.time[:300], position=log.position[:300],
                    velocity=log.velocity[:300], effort=log.effort[:300])
    in_turn = identify(robot, [short, sweeps], 'wls', QUICK)
    at_once = held_out(in_turn.experiment.information)
    assert np.all(in_turn.held_out.raw < at_once.raw)


def test_a_stopwatch_without_a_clock_measures_nothing() -> None:
    watch = Stopwatch()
    assert watch.timed('friction', lambda: 3) == 3
    assert watch.seconds == {}
