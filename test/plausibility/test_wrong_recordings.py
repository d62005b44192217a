"""plausibility/gate.py: wrong units, signs, orders, zeros and clocks: each is refused or named,
with what to set."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recordings import recording
from spoiled_recordings import Row, table

from robot_dynid.io.log import load_log
from robot_dynid.plausibility.finding import (
    KINDS,
    Finding,
    Severity,
    accept_findings,
    read_sentences,
)
from robot_dynid.plausibility.gate import examine, verdict
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

#: robots with two joints that gravity loads, and what is shared of them, empty: simulated
ARMS = {'ur10e': (1, 2, 'ur10e/train/20_02_10-30sec_12harm.csv.gz'),
        'tx40': (1, 2, 'tx40/exciting.csv.gz'), 'planar_3r': (0, 1, ''), 'seven_axis': (1, 3, '')}
#: rows of the TX40, whose velocity was not recorded, that need one
ROWS = [(arm, row) for arm, (joint, other, _) in ARMS.items()
        for row in table(load_robot(arm), joint, other)
        if not (arm == 'tx40' and row.needs_velocity)]


def among_few(index: int) -> bool:
    """Return whether a row is with one of the two arms, one of them measured, that take it."""
    names = [row.name for _, row in ROWS]
    of_row = [k for k, name in enumerate(names) if name == names[index]]
    turn, last = list(dict.fromkeys(names)).index(names[index]), len(of_row) - 1
    return of_row.index(index) in {min(turn % 2, last), max(last - turn // 2 % 2, 0)}


@cache
def healthy(arm: str, folder: Path | None) -> tuple[RobotModel, RawLog]:
    """Return an arm and a recording of it."""
    robot, file = load_robot(arm), ARMS[arm][2]
    if not file:
        return robot, recording(robot, 1)
    assert folder is not None
    return robot, load_log(folder / file, robot)


def found(robot: RobotModel, *logs: RawLog) -> tuple[Finding, ...]:
    """Return the findings about recordings."""
    return verdict(robot, [examine(robot, log) for log in logs])[0]


@pytest.mark.parametrize(('arm', 'row'), [
    pytest.param(arm, row, id=f'{arm}: {row.name}', marks=() if among_few(k) else pytest.mark.soak)
    for k, (arm, row) in enumerate(ROWS)])
def test_verdict_names_what_is_wrong_with_its_remedy(
    arm: str, row: Row, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue('shared_data') if ARMS[arm][2] else None
    findings = found(*row.spoil(*healthy(arm, folder)))
    named = [f for f in findings if f.kind == row.kind and row.word in f.sentence]
    assert named, findings
    assert not row.severe or named[0].severity is Severity.REFUSE
    assert all(f.kind in KINDS and f.remedy and any(c.isdigit() for c in f.looks_like)
               for f in findings)
    assert {f.kind for f in findings if f.severity is Severity.REFUSE} <= {row.kind}


def test_gravity_along_the_joints_is_compensated_or_the_base_turned() -> None:
    """The efforts of both are the same."""
    robot, log = healthy('planar_3r', None)
    row = dict(ROWS_OF_PLANAR)['gravity-compensated as torque']
    (finding,) = found(*row.spoil(robot, log))
    assert 'efforts look gravity-compensated or the base looks mounted on a wall' in (
        finding.looks_like)
    assert 'effort_kind: gravity_compensated_torque' in finding.remedy
    assert 'gravity: [' in finding.remedy


def test_milliamperes_are_told_by_the_drive_gains() -> None:
    robot, log = healthy('planar_3r', None)
    gains = np.full(robot.n, 12.0)
    wrong = replace(robot, drive=replace(robot.drive, gains=gains))
    (finding,) = found(wrong, replace(log, effort=1e3 * log.effort / gains))
    assert 'currents in mA, by the drive gains' in finding.looks_like
    assert 'effort_kind: current' in finding.remedy


def test_findings_are_read_from_their_sentences_but_for_accepted_ones() -> None:
    found = [Finding(kind, 'folder/run.csv[2:5]', joints, Severity.WARN, 'x', 'set z; or w')
             for kind, joints in zip(KINDS, [(), ('a',), ('a', 'b b')] * 4)]
    found = [replace(f, looks_like='positions up to 3: look like degrees') for f in found]
    assert list(read_sentences(['other: text', *(f.sentence for f in found)])) == found
    assert read_sentences(f.sentence for f in accept_findings(found, tuple(KINDS))) == ()


@pytest.mark.parametrize('joint', range(3))
@pytest.mark.parametrize('factor', [1e3, -1.0])
def test_the_joint_is_named(joint: int, factor: float) -> None:
    robot, log = healthy('planar_3r', None)
    effort = log.effort.copy()
    effort[:, joint] *= factor
    (finding,) = found(robot, RawLog('r', log.joints, log.time, log.position, None, effort))
    assert finding.joints == (robot.joints[joint],) and finding.recording == 'r'


def test_verdict_names_one_wrong_recording_among_others() -> None:
    robot = load_robot('planar_3r')
    logs = [recording(robot, seed, 8.0) for seed in range(6)]
    wrong = dict(ROWS_OF_PLANAR)['zero +pi/2 off'].spoil(robot, logs[4])[1]
    findings = found(robot, *logs[:4], wrong, logs[5])
    assert [(f.kind, f.recording) for f in findings] == [('position_offset', 'seed 4')]


ROWS_OF_PLANAR = [(row.name, row) for arm, row in ROWS if arm == 'planar_3r']


@pytest.mark.filterwarnings('error::RuntimeWarning')
@pytest.mark.parametrize(('channel', 'value'), [
    ('velocity', np.inf), ('position', -np.inf), ('effort', np.inf), ('velocity', 0.0),
    ('velocity', 1e-300), ('position', 1e308), ('effort', -1e308)])
def test_absurd_numbers_are_dropped_or_told(channel: str, value: float) -> None:
    robot = load_robot('planar_3r')
    log = recording(robot, 1, 6.0)
    for rows in (slice(400, 401), slice(None)):
        values = np.array(getattr(log, channel))
        values[rows, 0] = value * np.resize([1.0, -1.0], len(values[rows]))
        examine(robot, replace(log, **{channel: values}))


@pytest.mark.filterwarnings('error::RuntimeWarning')
def test_an_absurd_inertia_leaves_a_score() -> None:
    robot = load_robot('planar_3r')
    nominal = robot.nominal.copy()
    nominal[0, 4] = 2.3e10
    assert not examine(robot.with_nominal(nominal), recording(robot, 1, 6.0)).findings
