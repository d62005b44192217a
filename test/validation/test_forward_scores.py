"""Forward dynamics scored on recordings: accelerations with their floor, and rollouts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identified_models import ALL_LAWS, Law, model_with_laws, nominal_model
from scipy.interpolate import CubicSpline
from tolerances import NOISE_FLOOR

from robot_dynid.cli.main import main
from robot_dynid.cli.validate import forward_scores
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import DataError, ModelError, RefusedJointWarning
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, RawLog, take
from robot_dynid.validation.forward_scores import (
    CONSTANT_VELOCITY,
    CONTROL,
    HORIZONS,
    MODEL,
    ForwardValidation,
    validate_forward,
)
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
NO_FRICTION: tuple[Law, ...] = (('none', {}),)
POSITION, EFFORT = 1e-5, 0.05
RATE = 400.0


def motion_of(robot: RobotModel, seconds: float, seed: int = 0) -> tuple[FloatArray, Motion]:
    """Return instants and a Fourier series within the limits."""
    path = random_fourier(motion_limits(robot).scaled(0.8), FourierOptions(seconds, 8),
                          np.random.default_rng(seed))
    time = np.arange(round(seconds * RATE)) / RATE
    return time, path.sample(time)


def log_of(
    model: IdentifiedModel, noise: float = 0.0, seconds: float = 12.0, seed: int = 0
) -> RawLog:
    """Return a recording of a robot that is as the model says, ``noise`` in units of the usual."""
    time, motion = motion_of(model.robot, seconds, seed)
    effort = model.inverse(motion.position, motion.velocity, motion.acceleration)
    effort = effort / model.robot.torque_factors  # amperes, where the robot reports these
    rng = np.random.default_rng(100 + seed)
    return RawLog(
        f'seed {seed}', model.joints, time,
        motion.position + noise * POSITION * rng.standard_normal(effort.shape),
        effort=effort + noise * EFFORT * rng.standard_normal(effort.shape))


def rmse(found: ForwardValidation, subset: str = 'all') -> FloatArray:
    """Return the RMSE of every joint."""
    return np.array([score.rmse for score in found.model[subset].values()])


@pytest.mark.parametrize('noise', [1.0, 2.0])
def test_the_true_model_errs_as_much_as_the_floor(noise: float) -> None:
    model = model_with_laws(ROBOT, NO_FRICTION)
    found = validate_forward(model, [log_of(model, noise, 30.0)])
    assert rmse(found) == pytest.approx(found.floor, rel=NOISE_FLOOR)
    assert np.all(found.floor > 0.0)


def test_efforts_of_their_own_topic_have_a_floor_too() -> None:
    """Noise of efforts alone, in messages of their own."""
    model = model_with_laws(ROBOT, NO_FRICTION)
    clean, noisy = log_of(model, 0.0, 30.0), log_of(model, 1.0, 30.0)
    assert noisy.effort is not None
    log = replace(clean, effort=noisy.effort, effort_messages=(clean.time, noisy.effort))
    found = validate_forward(model, [log])
    assert rmse(found) == pytest.approx(found.floor, rel=NOISE_FLOOR)


def test_accelerations_are_those_of_forward_dynamics() -> None:
    """A wrong model errs by what its forward dynamics differs, in closed form."""
    model = model_with_laws(ROBOT, NO_FRICTION)
    wrong = replace(model, values=1.25 * model.values, control=model.values)
    log = log_of(model)
    found = validate_forward(wrong, [log])
    _, motion = motion_of(ROBOT, 12.0)
    assert log.effort is not None
    off = wrong.forward(motion.position, motion.velocity, log.effort) - motion.acceleration
    assert rmse(found) == pytest.approx(np.sqrt(np.mean(off**2, axis=0)), rel=0.03)
    for joint, score in found.control['all'].items():
        assert score.rmse < 0.02 * found.model['all'][joint].rmse
    assert set(found.model) >= {'all', 'motion'} and found.model['all']['joint_1'].samples > 500


def test_rollouts_stand_beside_the_control_row_and_constant_velocity() -> None:
    model = model_with_laws(ROBOT, NO_FRICTION)
    wrong = replace(model, values=1.25 * model.values, control=model.values)
    found = validate_forward(wrong, [log_of(model)])
    assert [horizon.seconds for horizon in found.horizons] == list(HORIZONS)
    for horizon in found.horizons:
        scores = horizon.scores
        assert scores[MODEL].count == scores[CONSTANT_VELOCITY].count > 15
        assert np.all(scores[CONTROL].position < 0.05 * scores[MODEL].position)
        assert np.all(scores[CONTROL].position < 0.05 * scores[CONSTANT_VELOCITY].position)
    short, _, long = (horizon.scores[MODEL].position for horizon in found.horizons)
    assert np.all(short < 0.2 * long)


def test_joints_that_go_on_as_they_begin() -> None:
    """Their error after a time T is that of the measured motion: closed form of a parabola."""
    model = model_with_laws(ROBOT, NO_FRICTION)
    time = np.arange(round(4.0 * RATE)) / RATE
    position = 0.2 * time[:, None]**2 * np.array([1.0, -0.5, 0.25])
    qd, qdd = (np.gradient(x, time, axis=0) for x in (
        position, np.gradient(position, time, axis=0)))
    log = RawLog('parabola', ROBOT.joints, time, position, effort=model.inverse(position, qd, qdd))
    found = validate_forward(model, [log])
    for horizon in found.horizons:
        steady = horizon.scores[CONSTANT_VELOCITY]
        later = np.arange(1, round(80.0 * horizon.seconds) + 1) / 80.0  # 8 samples per 10 Hz
        size = np.array([0.4, 0.2, 0.1])
        assert steady.velocity == pytest.approx(size * np.sqrt(np.mean(later**2)), rel=1e-3)
        assert steady.position == pytest.approx(
            0.5 * size * np.sqrt(np.mean(later**4)), rel=1e-3)


@pytest.mark.parametrize('robot', ['ur10e', 'stanford_arm'])
def test_friction_of_any_law(robot: str) -> None:
    """Coupled motors, prismatic joints: few samples err, where the low-pass rounds a reversal."""
    model = model_with_laws(load_robot(robot), ALL_LAWS)
    found = validate_forward(model, [log_of(model)])
    for score in found.model['all'].values():
        low, _, high = score.quartiles
        assert high - low < 0.03 * score.rmse / score.nrmse
    share = [horizon.scores[MODEL].velocity / horizon.scores[CONSTANT_VELOCITY].velocity
             for horizon in found.horizons]
    assert np.max(share) < 0.5


def elastic_log(model: IdentifiedModel, push: float = 0.0) -> RawLog:
    """Return links along a series, and motors behind their gears such that they move so.

    With a ``push`` of so many N m on every link.
    """
    robot = model.robot
    time, motion = motion_of(robot, 8.0)
    gears = model.mechanism.gears
    assert gears is not None
    torque = inverse_dynamics(robot, motion.position, motion.velocity, motion.acceleration,
                              model.mechanism.links)
    outside = push * np.sin(2.0 * np.pi * np.outer(time, [0.4, 0.7, 0.9]))
    torque = torque - outside
    bent = np.zeros_like(torque)
    for _ in range(8):  # the damper is weak beside the spring
        rate = CubicSpline(time, bent)(time, 1)
        bent = (torque - gears.offset - gears.damping * rate) / gears.stiffness
    curve = CubicSpline(time, motion.position + bent)
    effort = torque + gears.inertia * curve(time, 2)
    return RawLog('elastic', robot.joints, time, motion.position, motion.velocity, effort,
                  curve(time), curve(time, 1), external_torque=outside if push else None)


def test_links_and_motors_of_elastic_joints() -> None:
    robot = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0, 1, 2)))
    model = model_with_laws(robot, NO_FRICTION)
    # encoders that are off against each other are corrected before; motors have no offset
    values = model.reduction.base([
        0.0 if name.startswith(('s', 'f0')) else model.standard[name]
        for name in model.reduction.standard])
    model = replace(model, values=values, control=values)
    found = validate_forward(model, [elastic_log(model)])
    assert list(found.model['all']) == list(robot.row_names) and len(found.floor) == 6
    assert max(score.relative_error for score in found.model['all'].values()) < 1e-3
    for horizon in found.horizons:
        scores = horizon.scores
        assert scores[MODEL].position.shape == (3,)
        assert np.all(scores[MODEL].velocity < 0.02 * scores[CONSTANT_VELOCITY].velocity)
    told = forward_scores(model, found)
    assert set(told['accelerations']) == set(robot.row_names)
    assert set(told['rollouts'][0]['joints']['joint_2']) == {MODEL, CONTROL, CONSTANT_VELOCITY}


def test_refused_joints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '160')
    whole = model_with_laws(ROBOT, NO_FRICTION)
    model, log = replace(whole, not_identified=('joint_3',)), log_of(whole, 1.0)
    paths = [str(tmp_path / name) for name in ('m.yaml', 'd.csv')]
    model.save(paths[0])
    write_csv(paths[1], log)
    assert main(['validate', *paths, '--forward']) == 1
    assert 'joint_3' in (error := capsys.readouterr().err) and '--accept-partial' in error
    report = tmp_path / 'report.html'
    assert main(['validate', *paths, '--forward', '--accept-partial',
                 '--report', str(report)]) == 0
    page = report.read_text()
    assert 'Accelerations' in page and 'constant velocity' in page
    with pytest.raises(ModelError, match='every joint'), pytest.warns(RefusedJointWarning):
        validate_forward(replace(model, not_identified=ROBOT.joints), [log])


def test_models_that_no_body_has_are_refused() -> None:
    model = model_with_laws(ROBOT, NO_FRICTION)
    with pytest.raises(ModelError, match='not positive definite'):
        validate_forward(replace(model, values=-model.values), [log_of(model)])
    found = validate_forward(replace(model, control=-model.values), [log_of(model)])
    assert found.control == {} and any('nominal inertials' in w for w in found.warnings)
    assert CONTROL not in found.horizons[0].scores


def test_where_the_mass_matrix_is_indefinite_the_rest_is_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = model_with_laws(ROBOT, NO_FRICTION)
    log = log_of(model)
    values = np.array(model.values)
    values[model.names.index('mx2')] *= 8.0  # no robot's where the elbow is bent
    broken = replace(model, values=values)
    found = validate_forward(broken, [log])
    note, = (text for text in found.warnings if 'not positive definite in' in text)
    share = float(note.split(' in ')[1].split(' %')[0]) / 100.0
    scored = found.model['all']['joint_1'].samples
    whole = validate_forward(model, [log]).model['all']['joint_1'].samples
    assert 0.0 < share < 1.0 and scored == pytest.approx((1.0 - share) * whole, rel=0.01)
    assert np.all(np.isfinite(rmse(found))) and 'sensor: link' not in note
    assert found.horizons[0].scores[MODEL].count > 0

    path, data = str(tmp_path / 'm.yaml'), str(tmp_path / 'd.csv')
    replace(model, values=-model.values).save(path)  # nowhere
    write_csv(data, log)
    assert main(['validate', path, data, '--forward']) == 1
    printed = capsys.readouterr()
    assert 'Judged on 1 recording' in printed.out
    assert 'no forward dynamics: the mass matrix is not positive definite' in ' '.join(
        (printed.out + printed.err).split())


@pytest.mark.parametrize('forward', [False, True])
def test_a_slower_recording_is_scored_with_what_it_shows(forward: bool) -> None:
    model = model_with_laws(ROBOT, NO_FRICTION)
    fitted = replace(model, preprocessing=Preprocessing(33.0))
    log = take(log_of(model, 1.0), slice(None, None, 13))  # 30.8 Hz
    slow, noted = fitted, []
    if forward:
        errors = [score.relative_error for score in validate_forward(
            slow, [log]).model['all'].values()]
    else:
        found = validate(slow, [log])
        errors = [score.relative_error for score in found.model['all'].values()]
        noted = [text for text in found.warnings if 'show motion up to' in text]
        assert noted == ['seed 0: 30.77 Hz show motion up to 9.23 Hz; scored with this cut-off, '
                         'the model was fitted with 33 Hz']
        assert not any('show motion' in text for text in validate(slow, [log_of(model)]).warnings)
    assert max(errors) < 0.2


@pytest.mark.parametrize('law', ['none', 'coulomb+load'])
def test_known_external_torque_is_no_error(law: str) -> None:
    model = model_with_laws(ROBOT, ((law, {}),))
    time, motion = motion_of(ROBOT, 12.0)
    torque = 20.0 * np.sin(2.0 * np.pi * np.outer(time, [0.4, 0.7, 0.9])) * [1.0, 0.5, 0.2]
    effort = model.inverse(motion.position, motion.velocity, motion.acceleration,
                           external=torque)
    log = RawLog('pushed', ROBOT.joints, time, motion.position, effort=effort,
                 external_torque=torque)
    found = validate_forward(model, [log])
    for score in found.model['all'].values():
        low, _, high = score.quartiles
        assert high - low < 0.01 * score.rmse / score.nrmse
    for horizon in found.horizons if law == 'none' else ():  # rollouts take friction by the effort
        scores = horizon.scores
        assert np.all(scores[MODEL].velocity < 0.05 * scores[CONSTANT_VELOCITY].velocity)
    beside = validate_forward(model, [replace(log, external_torque=None)])
    assert np.all(rmse(beside) > 1.0)


def test_external_torque_acts_on_the_links_of_elastic_joints() -> None:
    robot = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0, 1, 2)))
    model = model_with_laws(robot, NO_FRICTION)
    values = model.reduction.base([
        0.0 if name.startswith(('s', 'f0')) else model.standard[name]
        for name in model.reduction.standard])
    model = replace(model, values=values, control=values)
    log = elastic_log(model, 8.0)
    found = validate_forward(model, [log])
    assert max(score.relative_error for score in found.model['all'].values()) < 1e-3
    assert found.horizons == () and any('external wrench' in text for text in found.warnings)


@pytest.mark.parametrize('validated', [validate, validate_forward])
def test_a_whole_recording_that_is_too_short_is_refused(validated) -> None:
    """Of a long recording only the part would be omitted."""
    model = replace(nominal_model('planar_3r'), not_identified=())
    time = 0.01 * np.arange(12)
    motion = np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    with pytest.raises(DataError, match=r'short: no stretch is longer than 0.4 s'):
        validated(model, [RawLog('short', model.joints, time, motion, effort=motion)])
