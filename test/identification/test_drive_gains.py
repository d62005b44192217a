"""Drive gains from a weighed payload: simulated with known truth, and those of the UR10e."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from motions import torque_model
from payload_recordings import motion, random_payload, recording, torque_robot
from tolerances import COVERAGE, GAIN_EXACT, GAIN_MEASURED

from robot_dynid.cli.main import main
from robot_dynid.effects.links import AttachedBody
from robot_dynid.errors import UsageError
from robot_dynid.estimation import drive_gains
from robot_dynid.estimation.drive_gains import GainStatus, KnownLoad
from robot_dynid.estimation.payload import PARAMETERS
from robot_dynid.identification.payload import (
    Equations,
    Match,
    identify_drive_gains,
    reduce_equations,
)
from robot_dynid.io.csv import write_csv
from robot_dynid.io.log import load_log
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair

MASS = 2.805
PAYLOAD = random_payload(np.random.default_rng(4), 5.0)


def drives(robot, gains):
    """Return a robot that measures current."""
    return replace(robot, drive=Drive('current', np.asarray(gains)))


def recordings(robot, payload=PAYLOAD, noise=0.0, seed=0, seconds=30.0):
    """Return a loaded recording, and an unloaded one of another motion."""
    return ([recording(robot, motion(robot, seed + 1, seconds), payload, seed + 1, noise)],
            [recording(robot, motion(robot, seed + 2, seconds), None, seed + 2, noise)])


def true_gains(rng, n):
    """Return random gains (n,)."""
    return np.exp(rng.uniform(0.0, 3.0, n))


@pytest.mark.parametrize('name', ['ur10e', 'puma560'])
def test_gains_are_found_whatever_the_robot_states(name):
    robot = torque_robot(name)
    gains = true_gains(np.random.default_rng(1), robot.n)
    loaded, unloaded = recordings(drives(robot, gains))
    stated = drives(robot, np.ones(robot.n))
    found = identify_drive_gains(stated, loaded, unloaded, KnownLoad(PAYLOAD[0])).gains
    assert found.status is GainStatus.OK
    np.testing.assert_allclose(found.values, gains, rtol=GAIN_EXACT)
    np.testing.assert_allclose(found.centre_of_mass, PAYLOAD[1:4] / PAYLOAD[0],
                               rtol=0.0, atol=GAIN_EXACT)


def test_gains_of_a_noisy_planar_arm_are_found_from_its_equations():
    gains, robot = np.array([3.0, 12.0, 7.0]), torque_robot('planar_3r')
    torque, body, parts = torque_model(robot), AttachedBody.on(robot, ''), []
    loaded, unloaded = recordings(drives(robot, gains), noise=0.1, seconds=10.0)
    for log, share in ((*loaded, 1.0), (*unloaded, 0.0)):
        samples = prepare(robot, repair(robot, log), Preprocessing(6.5))
        columns = [torque.columns(samples), share * body.columns(samples.moved)]
        parts.append(Equations(samples, np.concatenate(columns, axis=1), samples.effort,
                               samples.measured, Match(log.source)))
    information = reduce_equations((*torque.reduction.names, *PARAMETERS), parts)
    found = drive_gains.fit_drive_gains(information, KnownLoad(PAYLOAD[0]), np.arange(3))
    np.testing.assert_allclose(found.estimates, gains, rtol=0.1)
    assert np.all(np.abs(np.log(found.estimates / gains)) < 3.0 * found.relative_std)


@pytest.mark.parametrize('seeds', [3, pytest.param(12, marks=pytest.mark.soak)])
def test_intervals_hold_the_gains(seeds):
    robot, held = torque_robot('ur10e'), []
    for seed in range(seeds):
        gains = true_gains(np.random.default_rng(seed), robot.n)
        loaded, unloaded = recordings(drives(robot, gains), noise=0.05, seed=10 * seed)
        found = identify_drive_gains(drives(robot, gains), loaded, unloaded,
                                     KnownLoad(PAYLOAD[0])).gains
        lower, upper = found.interval()
        held.append((lower < gains) & (gains < upper))
        assert (found.estimates > 0.0).all()
    assert COVERAGE[0] <= np.mean(held)


@pytest.mark.parametrize('seeds', [2, pytest.param(4, marks=pytest.mark.soak)])
def test_noise_does_not_pull_the_gains_down(seeds):
    """Least squares with the current among the regressors would lose a twelfth here."""
    robot = torque_robot('ur10e')
    gains = true_gains(np.random.default_rng(2), robot.n)
    ratios = []
    for seed in range(seeds):
        loaded, unloaded = recordings(drives(robot, gains), noise=0.3, seed=10 * seed)
        found = identify_drive_gains(robot, loaded, unloaded, KnownLoad(PAYLOAD[0])).gains
        ratios.append(np.log(found.estimates / gains) / found.relative_std)
    assert abs(np.mean(ratios)) < 1.0


def test_joints_the_payload_does_not_load_are_not_determined():
    robot = torque_robot('ur10e')
    gains = true_gains(np.random.default_rng(3), robot.n)
    current = drives(robot, gains)
    loaded = [recording(current, motion(robot, 1, 20.0, moving=[1, 2]), PAYLOAD, 1, 0.01)]
    unloaded = [recording(current, motion(robot, 2, 20.0, moving=[1, 2]), None, 2, 0.01)]
    found = identify_drive_gains(current, loaded, unloaded, KnownLoad(PAYLOAD[0])).gains
    assert found.status is GainStatus.NOT_DETERMINED
    assert not found.determined[0] and np.isnan(found.values[0])
    wrong = np.abs(found.values / gains - 1.0)
    assert np.nanmax(wrong, initial=0.0) < 0.1


def test_equal_drives_and_a_known_centre_of_mass_help():
    robot = torque_robot('ur10e')
    gains = np.array([12.0, 12.0, 10.0, 11.0, 11.0, 11.0])
    current = drives(robot, gains)
    loaded, unloaded = recordings(current, noise=0.1)
    equal = [robot.joints[:2], robot.joints[3:]]
    com = tuple(PAYLOAD[1:4] / PAYLOAD[0])
    free = identify_drive_gains(current, loaded, unloaded, KnownLoad(PAYLOAD[0])).gains
    tied = identify_drive_gains(current, loaded, unloaded, KnownLoad(PAYLOAD[0], com),
                                equal=equal).gains
    assert tied.estimates[0] == tied.estimates[1] and len(set(tied.estimates[3:])) == 1
    assert np.all(tied.relative_std <= 1.2 * free.relative_std)
    assert tied.relative_std[0] < 0.8 * free.relative_std[0]
    np.testing.assert_allclose(tied.centre_of_mass, com)


def test_bad_input_is_refused_in_one_sentence():
    robot = torque_robot('ur10e')
    loaded, unloaded = recordings(robot, seconds=10.0)
    for mass in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(UsageError, match='known mass must be'):
            KnownLoad(mass)
    load = KnownLoad(5.0)
    with pytest.raises(UsageError, match='drive gains need recordings with and without'):
        identify_drive_gains(robot, loaded, [], load)
    with pytest.raises(UsageError, match='no recording with'):
        identify_drive_gains(robot, [], unloaded, load)
    with pytest.raises(UsageError, match='no joint'):
        identify_drive_gains(robot, loaded, unloaded, load, equal=[('elbow_joint', 'nothing')])
    with pytest.raises(UsageError, match='two groups'):
        identify_drive_gains(robot, loaded, unloaded, load,
                             equal=[robot.joints[:2], robot.joints[1:3]])
    with pytest.raises(UsageError, match='carries'):
        identify_drive_gains(robot, loaded, unloaded, KnownLoad(5.0, link='base_link'))


def test_payload_command_calibrates_drive_gains(tmp_path, capsys):
    robot = load_robot('ur10e')
    words = ['payload']
    for name, logs in zip(('loaded', 'unloaded'), recordings(robot, noise=0.02)):
        path = tmp_path / f'{name}.csv'
        write_csv(path, logs[0])
        words += [str(path)] if name == 'loaded' else ['--unloaded', str(path)]
    words += ['--robot', 'ur10e', '--known-mass', str(PAYLOAD[0]),
              '--equal-gains', 'shoulder_pan_joint,shoulder_lift_joint']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['known_mass'] == PAYLOAD[0] and found['status'] in ('ok', 'not_determined')
    for joint, stated in zip(robot.joints, robot.drive.gains):
        gain = found['gains'][joint]
        assert gain['interval'][0] < gain['interval'][1]
        assert gain['value'] is None or gain['value'] == pytest.approx(stated, rel=GAIN_MEASURED)
        assert gain['stated'] == stated and (gain['value'] is None) != gain['determined']
    assert main(words) == 0
    assert 'drive gains from 5 kg on wrist_3_link' in capsys.readouterr().out
    centre = [0.01, -0.02, 0.05]
    assert main([*words, '--known-com', *map(str, centre), '--json']) == 0
    assert json.loads(capsys.readouterr().out)['centre_of_mass'] == pytest.approx(centre)


@pytest.fixture(scope='module')
def ur10e(ur10e_data):
    """Return the robot, its loaded recording, and those of training."""
    robot = load_robot('ur10e')
    (loaded,) = (ur10e_data / 'payload_2.805kg').iterdir()
    unloaded = [load_log(f, robot) for f in sorted((ur10e_data / 'train').iterdir())]
    return robot, [load_log(loaded, robot)], unloaded


def test_ur10e_gains(ur10e):
    """Published: those of the controller; joints 1 and 6 inferred from equal size.

    Found over published: 0.93 (+-0.09), 1.02, 1.02, 0.97, 0.95, 0.97 (+-0.05 each): joints 2, 3
    and 6 are within 3 %, joint 1 is not determined. Joints 4 and 5 are 3.4 and 4.6 % low with any
    cut-off, with load-dependent friction, without the rows near reversals, from the difference of
    the pair alone, and with equal wrist gains (3.2 %); 95 % intervals hold the published ones.
    """
    robot, loaded, unloaded = ur10e
    found = identify_drive_gains(robot, loaded, unloaded, KnownLoad(MASS)).gains
    published = robot.drive.gains
    lower, upper = found.interval()
    assert found.determined.tolist() == [False, True, True, True, True, True]
    assert np.all((lower < published) & (published < upper))
    near = found.values[[1, 2, 5]] / published[[1, 2, 5]]
    np.testing.assert_allclose(near, 1.0, rtol=0.0, atol=GAIN_MEASURED)


def test_ur10e_gains_of_equal_drives(ur10e):
    robot, loaded, unloaded = ur10e
    equal = [robot.joints[:2], robot.joints[3:]]
    found = identify_drive_gains(robot, loaded, unloaded, KnownLoad(MASS), equal=equal).gains
    lower, upper = found.interval()
    assert found.status is GainStatus.OK
    assert np.all((lower < robot.drive.gains) & (robot.drive.gains < upper))
    np.testing.assert_allclose(found.values[:3] / robot.drive.gains[:3], 1.0,
                               rtol=0.0, atol=GAIN_MEASURED)


def test_freedom_is_that_of_the_stretches_left_out(monkeypatch):
    robot, counts = torque_robot('planar_3r'), []
    stated = drives(robot, np.ones(3))
    original = drive_gains.leave_one_out

    def counted(batches):
        counts.append(len(batches))
        return original(batches)

    monkeypatch.setattr(drive_gains, 'leave_one_out', counted)
    found = identify_drive_gains(stated, *recordings(stated), KnownLoad(PAYLOAD[0])).gains
    assert counts == [found.degrees_of_freedom + 1]
