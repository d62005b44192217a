"""Wrist force-torque sensors in MuJoCo: a weighed tool, bias and mounting are found."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('mujoco')

from wrist_plant import HOSE, LINK, Plant, arm, example, moving, random_poses, resting

from robot_dynid.cli.main import main
from robot_dynid.dynamics.wrist import WristCompensation, WristSensor
from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.identification.wrist import WristResult, identify_wrist_sensor
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.inertia import rotation_about, rpy_from_rotation
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

#: an error beyond this many half-widths of 95 % is a wrong interval, of 16 numbers and eight parts
WIDE = 3.0


@pytest.fixture(scope='module')
def log() -> RawLog:
    """Return a recording in motion."""
    return example()


#: tools in motion
TOOLS = (Plant(), Plant(sign=-1, rpy=(2.0, 0.5, -1.0)),
         Plant(mass=0.6, com=(-0.05, 0.0, 0.03), moments=(0.001, 0.0012, 0.0008)))


@pytest.fixture(scope='module')
def fits() -> list[tuple[Plant, WristResult]]:
    """Return the tools in motion, and what is identified of them."""
    return [(tool, identify_wrist_sensor(arm(), [tool.record(moving(seed, 12.0, 2.0), seed)]))
            for seed, tool in enumerate(3 * TOOLS, start=1)]


def errors(plant: Plant, result: WristResult) -> tuple[FloatArray, FloatArray]:
    """Return the errors (13,) of mass, centre, mounting and bias, and their half-widths."""
    tool, sensor = result.estimate, result.sensor
    turn = rpy_from_rotation(plant.rotation.T @ sensor.rotation)
    return (np.hstack([tool.mass - plant.mass, tool.centre_of_mass - plant.com, turn,
                       sensor.bias - plant.bias]),
            np.hstack([tool.margins * np.hstack([tool.mass_std, tool.centre_of_mass_std]),
                       result.rotation_width, result.bias_width]))


def test_tool_bias_and_mounting_in_motion(fits: list[tuple[Plant, WristResult]]) -> None:
    for plant, result in fits:
        error, width = errors(plant, result)
        assert np.all(np.abs(error) < WIDE * width)
        assert np.all(np.abs(error) < np.repeat([0.01, 1e-3, 0.01, 0.2, 0.02], [1, 3, 3, 3, 3]))
        assert result.sensor.sign == -plant.sign
        tool = result.estimate
        if plant.mass > 1.0:  # the inertia of the light tool is less than the noise shows
            assert not tool.not_excited and not result.warnings
            np.testing.assert_allclose(tool.inertia, plant.inertia, rtol=0.0, atol=1e-3)


@pytest.mark.parametrize('numbers', [slice(0, 4), slice(4, 7), slice(7, 13)],
                         ids=['tool', 'mounting', 'bias'])
def test_intervals_are_as_wide_as_the_errors(
    fits: list[tuple[Plant, WristResult]], numbers: slice
) -> None:
    shares = np.array([np.abs(error[numbers]) / width[numbers]
                       for error, width in (errors(*fit) for fit in fits)])
    assert 0.15 < np.median(shares) < 0.5 and np.mean(shares > 1.0) < 0.15


def test_the_other_sign_with_a_negative_mass_is_not_taken() -> None:
    heavy = Plant(mass=3.487, com=(0.0441, -0.0273, 0.05), moments=(0.00735, 0.00661, 0.00882),
                  rpy=(0.0027, -0.0011, 0.0053))
    result = identify_wrist_sensor(arm(), [heavy.record(moving(305, 16.0), 305)])
    assert result.sensor.sign == -1 and abs(result.estimate.mass - heavy.mass) < 0.01


def test_intervals_of_the_bias_are_in_the_axes_of_the_sensor(log: RawLog) -> None:
    assert log.wrench is not None
    turned = (log.wrench.reshape(-1, 2, 3) @ rotation_about([0.0, 0.0, 1.0], np.pi / 2.0).T)
    widths, other = (identify_wrist_sensor(arm(), [one]).bias_width for one in (
        log, replace(log, wrench=turned.reshape(-1, 6))))
    assert abs(widths[0] / widths[1] - 1.0) > 0.1
    np.testing.assert_allclose(other, widths[[1, 0, 2, 4, 3, 5]], rtol=1e-3)


@pytest.mark.parametrize(('name', 'link'), [
    ('planar_3r', 'link_3'), ('seven_axis', 'link_7'), ('seven_axis', 'link_5')])
def test_the_tool_of_an_arm_that_has_not_six_joints_is_found(name: str, link: str) -> None:
    robot, plant, rng = load_robot(name), Plant(), np.random.default_rng(1)
    known = WristSensor(name, robot.hash(), link, plant.parameters, np.zeros(6), np.eye(3), 1)
    time = np.arange(0.0, 20.0, 0.01)[:, None]
    rate, phase = rng.uniform(0.5, 4.0, robot.n), rng.uniform(0.0, 6.0, robot.n)
    q = np.sin(rate * time + phase)
    free = WristCompensation(robot, known)(
        np.zeros((len(time), 6)), q, rate * np.cos(rate * time + phase), -rate**2 * q)
    reading = rng.normal(size=free.shape) * np.repeat([0.1, 0.01], 3) - free
    tool = identify_wrist_sensor(robot, [RawLog(
        'run', robot.joints, time[:, 0], q, wrench=reading, wrench_frame=link)]).estimate
    assert tool.mass == pytest.approx(plant.mass, rel=0.01)
    assert tool.centre_of_mass == pytest.approx(plant.com, abs=1e-3)


def test_rest_in_many_poses_shows_no_inertia() -> None:
    plant = Plant()
    slow = resting(random_poses(3, 9), 1.0, 9.0)
    result = identify_wrist_sensor(arm(), [plant.record(tuple(a[::2] for a in slow), 3)])
    error, width = errors(plant, result)
    assert np.all(np.abs(error) < WIDE * width) and abs(error[0]) < 0.02
    assert {'Iyy', 'Izz'} <= set(result.estimate.not_excited)
    assert ('a motion that shows the inertia: robot-dynid design ur10e --type fourier --out '
            'fourier.yaml') in result.warnings


def test_missing_poses_are_named() -> None:
    spread = np.random.default_rng(0).uniform(-0.15, 0.15, (9, 6)) * [1.0, 0.3, 0.3, 1, 1, 5.0]
    poses = np.array([0.0, -1.2, 1.4, -1.77, -np.pi / 2.0, 0.0]) + spread
    result = identify_wrist_sensor(arm(), [Plant().record(resting(poses), 3)])
    error, width = errors(Plant(), result)
    assert np.all(np.abs(error) < WIDE * width)
    assert any(re.fullmatch(
        r'missing poses: the z axis up and down \(it was 17\d° to 17\d° from up\); the direction '
        r'\([-0-9., ]+\) up and down .*: robot-dynid design ur10e --type static-poses --out '
        r'static_poses\.yaml', text) for text in result.warnings)


def test_a_push_and_a_hose_are_named() -> None:
    pushed = Plant(pushes=((4.0, 5.0),))
    result = identify_wrist_sensor(arm(), [pushed.record(moving(7, 12.0), 7)])
    error, width = errors(pushed, result)
    assert np.all(np.abs(error) < WIDE * width) and 0.05 < result.outliers < 0.15
    assert any('did the tool touch something' in text for text in result.warnings)
    hose = Plant(hose=HOSE)
    result = identify_wrist_sensor(arm(), [hose.record(moving(8, 12.0), 8)])
    error, width = errors(hose, result)
    assert np.all(np.abs(error) < WIDE * width) and abs(error[0]) < width[0]
    assert any('a hose or cable pulls' in text for text in result.warnings)
    assert np.all(result.bias_width[:3] < 0.15)  # without the stiffness of the hose up to 0.3


def test_a_pull_that_may_be_vertical_makes_the_inertia_uncertain() -> None:
    long = Plant(hose=HOSE, com=(0.0, 0.1, 0.25))
    tool = identify_wrist_sensor(arm(), [long.record(moving(8, 12.0, 2.0), 8)]).estimate
    centre = tool.centre_of_mass  # moments about it change by (c c^T - c^T c 1) dm
    expected = tool.mass_std * (centre @ centre - centre**2)
    assert np.all(np.diag(tool.inertia_std)[:2] > 0.8 * expected[:2])


def test_compensated_wrench_is_that_of_the_surroundings(tmp_path: Path, log: RawLog) -> None:
    result = identify_wrist_sensor(arm(), [log])
    result.sensor.save(tmp_path / 'sensor.yaml')
    compensate = WristCompensation(arm(), WristSensor.load(tmp_path / 'sensor.yaml'))
    time, q, qd, qdd = moving(9, 4.0)
    plant = Plant(pushes=((1.0, 2.0),))
    reading = plant.record((time, q, qd, qdd), 9).wrench
    assert reading is not None
    wrench = compensate(reading, q, qd, qdd)
    free = (time <= 1.0) | (time >= 2.0)
    assert np.abs(wrench[free].mean(axis=0)).max() < 0.1
    assert np.std(wrench[free, :3]) < 0.4
    assert np.linalg.norm(wrench[~free, :3], axis=1) == pytest.approx(
        np.linalg.norm([25.0, -15.0, 10.0]), abs=2.0)
    slow = compensate(reading, q)
    assert np.std(slow[free, :3]) > np.std(wrench[free, :3])
    with pytest.raises(ModelError, match='identified on ur10e, whose geometry is not that of'):
        WristCompensation(load_robot('tx40'), compensate.sensor)


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('wrist_sensor: 1', 'wrist_sensor: 7', 'not the file of a wrist sensor'),
    ('sign: -1', 'sign: 2', 'sign must be 1 or -1'),
    ('bias: [', 'bias: [1.0, ', 'bias must be 6 finite numbers'),
    ('parameters: [', 'parameters: [-', 'not those of a body'),
    ('rotation:\n- [1.0, 0.0', 'rotation:\n- [1.0, 0.1', 'is not a rotation matrix'),
])
def test_wrong_files_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / 'sensor.yaml'
    Plant(rpy=(0.0, 0.0, 0.0)).sensor().save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=message):
        WristSensor.load(path)


def turned(log: RawLog, factors: FloatArray) -> RawLog:
    """Return a recording whose readings are in other units."""
    assert log.wrench is not None
    return replace(log, wrench=log.wrench * factors)


def test_bad_input_is_refused_in_one_sentence(log: RawLog) -> None:
    robot, wrench = arm(), log.wrench
    assert wrench is not None
    still = replace(log, position=np.zeros_like(log.position) + 1e-5 * np.sin(
        np.outer(log.time, np.arange(1.0, 7.0))))
    dead = wrench.copy()
    dead[:, 2] = 31.0
    for bad, options, message in (
            ([], {}, 'no recording of the sensor'),
            ([replace(log, wrench=None)], {}, 'no wrench at the time of any position: read it'),
            ([replace(log, wrench=np.full_like(wrench, np.nan))], {}, 'no wrench at the time'),
            ([replace(log, wrench=dead)], {}, 'fz of the wrench is constant'),
            ([replace(log, wrench_frame='ft_frame')], {},
             'frame of the wrenches, ft_frame, is no link that moves: name the link .* --link'),
            ([log], {'link': 'base_link'}, "'base_link' does not move: choose one of"),
            ([still], {}, 'gravity hardly turns in the sensor.*--type static-poses'),
            ([turned(log, np.repeat([1.0, 1e3], 3))], {}, r'must be in N and N m'),
            *(([turned(log, np.full(6, 1.0 / newtons))], {'known_mass': 1.83},
               f'forces look like {unit}; convert them to N \\(times {newtons:g}\\)')
              for unit, newtons in (('kgf', 9.80665), ('lbf', 4.44822), ('kN', 1e3),
                                    ('mN', 1e-3)))):
        with pytest.raises((DataError, UsageError), match=message):
            identify_wrist_sensor(robot, bad, **options)


def test_payload_command_identifies_a_wrist_sensor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log: RawLog
) -> None:
    path, out = tmp_path / 'run.csv', tmp_path / 'sensor.yaml'
    write_csv(path, log)
    words = ['payload', str(path), '--robot', 'ur10e', '--wrench', LINK]
    assert main([*words, '--out', str(out), '--known-mass', '2.0', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found['interval']['mass']
    assert low < 1.83 < high and found['frame'] == LINK and found['status'] == 'ok'
    assert found['reports'] == 'reaction of the tool' and list(found['noise'])[3] == 'tx'
    assert np.degrees(found['mounting']['rpy']) == pytest.approx([1.15, -1.43, 0.74], abs=0.3)
    for one, true in zip(found['bias'].values(), Plant().bias, strict=True):
        assert abs(one['value'] - true) < WIDE * one['half_width']
    assert any('weighed at 2 kg: the scale of the sensor is wrong by -8' in text
               for text in found['warnings'])
    np.testing.assert_allclose(
        WristSensor.load(out).bias, [one['value'] for one in found['bias'].values()])
    assert main([*words, '--link', LINK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == 'mass'
    assert any(line.split()[:2] == ['status', 'ok:'] for line in lines) and len(lines) <= 15
    assert any(line.startswith('mounting') for line in lines)
    for more, message in (
            (['--unloaded', str(path)], 'omit --unloaded, --known-com and --equal-gains'),
            (['--known-mass', '2', '--known-com', '0', '0', '0'], 'the sensor alone: omit')):
        assert main([*words, *more]) == 2
        assert message in capsys.readouterr().err
    assert main([*words[:-2], '--out', str(out)]) == 2
    assert 'add --wrench TOPIC' in capsys.readouterr().err
    assert main([*words[:-1], 'other']) == 1
    assert f'no columns wrench.other.fx to .tz; it has wrenches of: {LINK}' in (
        capsys.readouterr().err)


def test_a_turned_sensor_reports_turned_wrenches() -> None:
    sensor = Plant(rpy=(0.0, 0.0, 0.0)).sensor()
    turn = rotation_about([0.0, 0.0, 1.0], np.pi / 2.0)
    wrench = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    reading = -np.concatenate([turn @ wrench[0, :3], turn @ wrench[0, 3:]]) + sensor.bias
    np.testing.assert_allclose(
        replace(sensor, rotation=turn).without_mounting(reading[None]), wrench)


def test_the_page_shows_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log: RawLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (Path(__file__).resolve().parents[2] / 'docs' / 'payload.md').read_text('utf-8')
    block = re.search(r'robot-dynid (payload run.csv [^\n]*wrist_3_link[^\n]*)\n```\n\n```text\n'
                      '(.*?)```', page, re.S)
    assert block is not None
    monkeypatch.chdir(tmp_path)
    write_csv('run.csv', log)
    assert main(block[1].split()) == 0
    numbers = re.compile(r'-?\d+\.?\d*(?:e-?\d+)?')
    shown, printed = block[2].split(), capsys.readouterr().out.split()
    assert [numbers.sub('', word) for word in shown] == [numbers.sub('', word) for word in printed]
    for one, other in zip(shown, printed, strict=True):
        assert list(map(float, numbers.findall(one))) == pytest.approx(
            list(map(float, numbers.findall(other))), rel=0.02, abs=0.01)
