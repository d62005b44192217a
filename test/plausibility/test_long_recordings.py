"""The gate and recordings in parts: each is one recording, as if it were in one piece."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import recording
from strange_plant import TRAINING, Plant, load_arm

from robot_dynid.errors import DataError
from robot_dynid.plausibility.content import digests
from robot_dynid.plausibility.gate import examine_recording, plausible_recordings
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.types import DAMAGE, RawLog

ROBOT = load_robot('planar_3r')


@pytest.fixture(scope='module')
def log() -> RawLog:
    return recording(ROBOT, 1, 120.0)


def cut(*logs: RawLog) -> Parts:
    """Return recordings in parts of 20 s."""
    return Parts(logs, 4000, 6000)


def test_parts_are_no_copies_of_each_other(log: RawLog) -> None:
    parts = cut(log)
    assert len(parts) == 6
    kept, warnings = plausible_recordings(ROBOT, parts)
    assert kept is parts and not warnings
    found = examine_recording(ROBOT, log.source, parts)
    same = np.isin(found.samples, digests(log)).mean()
    assert same > 0.99 and not found.findings


def test_a_copy_of_a_long_recording_is_left_out(log: RawLog) -> None:
    copy = replace(log, source='another name', time=log.time + 1e4)
    kept, warnings = plausible_recordings(ROBOT, cut(log, copy, recording(ROBOT, 2)))
    assert isinstance(kept, Parts)
    assert kept.sources == ('seed 1', 'seed 2')
    assert len(warnings) == 1 and 'another name: duplicate' in warnings[0]


def test_findings_of_parts_are_those_of_the_recording(log: RawLog) -> None:
    assert log.effort is not None
    effort = log.effort.copy()
    effort[:, 1] *= -1.0
    wrong = cut(replace(log, effort=effort))
    with pytest.raises(DataError, match='effort_sign of joint_2'):
        plausible_recordings(ROBOT, wrong)
    kept, warnings = plausible_recordings(ROBOT, replace(wrong, accepted=('effort_sign',)))
    assert len(kept) == 6 and sum('effort_sign' in w for w in warnings) == 1


@pytest.mark.always
def test_joints_that_move_one_after_the_other_are_examined_together() -> None:
    """In the first part three of six joints rest, which any order of their efforts explains."""
    arm = load_arm('stanford')
    jog = TRAINING['jog'](arm, np.random.default_rng((41, 0)))
    parts = Parts([Plant(arm, 41).record(jog, 410).log], 45_000, 80_000)
    assert len(parts) == 2
    kept, warnings = plausible_recordings(arm.robot, parts)
    assert kept is parts and not warnings
    rows = examine_recording(arm.robot, 'jog', parts).rows
    assert np.all(np.ptp(rows.position, axis=0) > 0.1), 'of every part'


def test_damage_of_files_is_a_warning(log: RawLog) -> None:
    told = (f'{DAMAGE}chunk 3: its checksum is wrong', 'time: 3 duplicate stamps')
    for logs in ([replace(log, findings=told)], cut(replace(log, findings=told))):
        _, warnings = plausible_recordings(ROBOT, logs)
        assert warnings == (f'seed 1: {told[0]}',)
