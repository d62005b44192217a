"""docs/files.md: its tables are the keys of robot YAML and model file; its example loads."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from robot_dynid.identified.model_file import KEYS as MODEL_KEYS
from robot_dynid.identified.record import FitRecord
from robot_dynid.robot.robot_file import KEYS as ROBOT_KEYS
from robot_dynid.robot.surroundings import KEYS as SCENE_KEYS
from robot_dynid.simulation.truth import NUMBERS, HarmonicDrive, Noise

DOCS = Path(__file__).resolve().parents[1] / 'docs'
PAGE, PAGE_OF_RECORDINGS = (
    (DOCS / name).read_text(encoding='utf-8') for name in ('files.md', 'recordings.md'))


def table(head: str, after: str = '') -> list[str]:
    """Return the names in the first column of the table whose head begins so."""
    rows = PAGE.partition(after)[2] if after else PAGE
    rows = rows.partition(f'| {head} |')[2].partition('\n\n')[0]
    return [name for line in rows.splitlines() if line.startswith('| `')
            for name in re.findall(r'`(\w+)`', line.split(' |')[0])]


@pytest.mark.parametrize(('listed', 'known'), [
    (table('key', 'robot-yaml)='), ROBOT_KEYS),
    (table('key of a joint in `limits`'), ('position', 'velocity', 'acceleration', 'effort')),
    (table('key of `scene`'), SCENE_KEYS),
    (table('key of a joint in `simulation`'), (*NUMBERS, 'drive')),
    (table('key of `noise` in `simulation`'), [entry.name for entry in fields(Noise)]),
    (table('key', 'files-model)='), MODEL_KEYS),
    (table('key of `record`'), [entry.name for entry in fields(FitRecord)]),
], ids=['robot', 'limits', 'scene', 'simulation', 'noise', 'model', 'record'])
def test_a_table_lists_every_key_and_no_other(listed: list[str], known: tuple[str, ...]) -> None:
    assert sorted(listed) == sorted(known)


def test_the_keys_of_a_drive_are_named() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith('| `drive` |'))
    assert {entry.name for entry in fields(HarmonicDrive)} <= set(re.findall(r'`(\w+)`', row))


def test_the_limits_that_are_listed_are_those_that_are_read(tmp_path: Path) -> None:
    from robot_dynid.errors import RobotError
    from robot_dynid.robot.robot_file import load_robot

    urdf = Path(__file__).resolve().parents[1] / 'robot_dynid' / 'urdf' / 'planar_3r.urdf'
    path = tmp_path / 'robot.yaml'
    path.write_text(f'urdf: {urdf}\neffort_kind: torque\nlimits: {{joint_1: {{jolt: 1.0}}}}\n')
    with pytest.raises(RobotError, match=r'use \w+') as found:
        load_robot(path)
    told = str(found.value).rpartition('use ')[2].split(', ')
    assert told == table('key of a joint in `limits`')


def test_the_columns_of_recordings_are_those_that_are_read() -> None:
    from robot_dynid.io.tables.finder import COMMAND
    from robot_dynid.types import CHANNELS

    page = PAGE_OF_RECORDINGS.partition('| column |')[2].partition('\n\n')[0]
    assert set(re.findall(r'`(\w+)\.<joint>`', page)) == {*CHANNELS, *COMMAND}
