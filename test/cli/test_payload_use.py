"""cli/payload.py: payloads: bad input, the verb of the command line, the job of the action."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from payload_recordings import motion, pair, random_payload, recording, torque_robot
from tolerances import PAYLOAD_MASS

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.identification.payload import identify_payload
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import take

MASS = 2.805
RNG = np.random.default_rng(5)


def refused(error, fragment, robot, loaded, unloaded=(), **others):
    """Check that a payload is refused in one sentence that holds ``fragment``."""
    with pytest.raises(error, match=fragment):
        identify_payload(robot, loaded, unloaded, **others)


def test_bad_input_is_refused_in_one_sentence():
    robot = torque_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(RNG), seconds=10.0)
    other = recording(robot, motion(robot, 99, 10.0))
    still = recording(robot, motion(robot, 1, 10.0, moving=[]))
    refused(UsageError, 'model of the arm', robot, [loaded])
    refused(UsageError, 'no recording with', robot, [], [unloaded])
    refused(DataError, 'the motions with and without the payload differ', robot, [loaded], [other])
    refused(DataError, 'no joint moves', robot, [replace(still, effort=still.effort + 1.0)],
            [unloaded])
    refused(DataError, 'payload is negative', robot, [unloaded], [loaded])
    refused(DataError, 'give two different recordings', robot, [loaded], [loaded])
    refused(DataError, 'record longer', robot, [take(loaded, slice(0, 10))], [unloaded])
    refused(UsageError, 'carries', robot, [loaded], [unloaded], link='base_link')
    refused(UsageError, 'are not those of', robot, [replace(loaded, joints=tuple('abcdef'))],
            [unloaded])
    refused(ModelError, 'was identified for', robot, [loaded], model=nominal_model('puma560'))
    unknown = replace(robot, drive=replace(robot.drive, kind=''))
    refused(UsageError, 'effort_kind', unknown, [loaded], [unloaded])


def test_halves_of_a_motion_do_not_overlap():
    robot = torque_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(RNG), seconds=20.0)
    with pytest.raises(DataError, match=r'the payload differ by|overlaps'):
        identify_payload(robot, [take(loaded, slice(0, 900))],
                         [take(unloaded, slice(1100, None))])


def test_command_line(tmp_path, capsys):
    robot = load_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(np.random.default_rng(1), MASS), noise=0.01)
    paths = [tmp_path / 'loaded.csv', tmp_path / 'unloaded.csv']
    for path, log in zip(paths, (loaded, unloaded)):
        write_csv(path, log)
    words = ['payload', str(paths[0]), '--unloaded', str(paths[1]), '--robot', 'ur10e']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found['interval']['mass']
    assert low < MASS < high and found['status'] == 'ok' and found['frame'] == 'wrist_3_link'
    assert found['mass_std'] > 0.0 and np.shape(found['inertia']) == (3, 3)
    assert found['set_payload']['mass'] == found['mass'] == found['set_load']['mass']
    assert main(words) == 0
    centre, _, _ = ' '.join(capsys.readouterr().out.split()).partition('inertia about it')
    assert centre.partition('centre of mass')[2].count(' ± ') == 3
    assert centre.endswith(' m (95 %) ')
    assert main(['payload', str(paths[0]), '--robot', 'ur10e', '--json']) == 2
    assert main([*words, '--known-com', '0', '0', '0', '--json']) == 2
    assert main(['payload', str(paths[0]), '--json']) == 2


def test_command_line_with_a_model_and_a_link(tmp_path, capsys):
    """Without the arm alone its model has to say what the arm itself needs."""
    arm = nominal_model('ur10e', rotors=0.0, viscous=4.0, coulomb=3.0, width=0.02)
    arm.save(tmp_path / 'arm.yaml')
    payload = random_payload(np.random.default_rng(1), MASS)
    loaded, unloaded = pair(arm.robot, payload, noise=0.01, link='wrist_1_link')
    for name, log in (('loaded', loaded), ('unloaded', unloaded)):
        write_csv(tmp_path / f'{name}.csv', log)
    words = ['payload', str(tmp_path / 'loaded.csv'), '--model', str(tmp_path / 'arm.yaml'),
             '--link', 'wrist_1_link']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['frame'] == 'wrist_1_link' and found['robot'] == 'ur10e'
    assert found['warnings'][0].startswith('joint wrist_3_joint is refused: ')  # of the arm
    assert found['mass'] == pytest.approx(MASS, rel=PAYLOAD_MASS)
    assert found['centre_of_mass'] == pytest.approx(payload[1:4] / MASS, abs=0.02)
    assert main([*words, '--robot', 'puma560']) == 1
    assert 'puma560' in capsys.readouterr().err


def test_the_job_of_the_action(tmp_path):
    job = pytest.importorskip('robot_dynid.ros.identifier.identification')
    arm = nominal_model('ur10e')
    loaded, unloaded = pair(arm.robot, random_payload(np.random.default_rng(1), MASS), noise=0.01)
    path, loaded_path = tmp_path / 'unloaded.csv', tmp_path / 'loaded.csv'
    write_csv(path, unloaded)
    write_csv(loaded_path, loaded)
    outcome = job.run(job.Job(arm.robot, (loaded,), payload=True, unloaded=(str(path),)),
                      lambda stage, fraction: None)
    assert outcome.code is job.Code.SUCCESS and outcome.model is None, outcome.message
    assert outcome.payload.estimate.mass == pytest.approx(MASS, rel=PAYLOAD_MASS)
    swapped = job.run(job.Job(arm.robot, (unloaded,), payload=True, unloaded=(str(loaded_path),)),
                      lambda stage, fraction: None)
    assert swapped.code is job.Code.NOT_IDENTIFIABLE and 'negative' in swapped.message
    alone = job.run(job.Job(arm.robot, (loaded,), payload=True), lambda stage, fraction: None)
    assert alone.code is job.Code.INVALID
    missing = job.run(job.Job(arm.robot, ('nowhere.csv',), payload=True),
                      lambda stage, fraction: None)
    assert missing.code is job.Code.NO_DATA
