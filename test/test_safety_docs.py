"""docs/safety.md: its tests, events, codes and defaults are those of the code."""

from __future__ import annotations

import dataclasses
import re
import runpy
from pathlib import Path

import pytest

from robot_dynid.execution.guards import Code, GuardSettings

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / 'docs' / 'safety.md').read_text(encoding='utf-8')
ROWS = [[cell.strip() for cell in line[1:-1].split('|')]
        for line in TEXT.splitlines() if line.startswith('| ')]
NAMED = re.findall(r'`(test_\w+\.py)::(test_\w+)`', TEXT)


def test_every_test_that_is_named_is_there() -> None:
    assert len(NAMED) > 40
    there = {(path.name, name) for path in (ROOT / 'test').rglob('test_*.py')
             for name in re.findall(r'^def (test_\w+)\(', path.read_text('utf-8'), re.M)}
    assert not set(NAMED) - there


def test_every_code_has_a_row() -> None:
    cells = {cell for row in ROWS for cell in row}
    told = {name for cell in cells for name in re.findall(r'`([A-Z_]+)`', cell)}
    ends = {'SUCCESS', 'ACCURACY_MET', 'OUT_OF_REACH'}  # nothing failed, or nothing was sent
    assert {code.name for code in Code} - ends <= told
    assert told <= {code.name for code in Code} | {'SECURITY'}


def test_every_event_of_the_benchmark_has_a_row() -> None:
    pytest.importorskip('rclpy')
    from robot_dynid_evaluation.stops.events import EVENTS

    (columns,) = [i for row in ROWS for i, cell in enumerate(row) if cell == 'event']
    named = {name for row in ROWS if len(row) > columns + 1
             for name in re.findall(r'`([a-z-]+)`', row[columns])}
    assert named == set(EVENTS)


def test_defaults_are_those_of_the_parameters() -> None:
    """Of every node that has such a parameter."""
    pytest.importorskip('rclpy')
    from robot_dynid.ros.excitation.settings import ExcitationSettings
    from robot_dynid.ros.identifier.node import IdentifierParameters

    defaults: dict[str, set[str]] = {}
    for kind in (GuardSettings, ExcitationSettings, IdentifierParameters):
        for field in dataclasses.fields(kind):
            defaults.setdefault(field.name, set()).add(str(field.default).lower())
    guards = ' '.join(row[1] for row in ROWS if len(row) > 3)
    stated = re.findall(
        r'`(\w+)` (\d+(?:\.\d+)?\b|\.|(?:true|false|path|limited|immediate)\b)', guards)
    assert len(stated) > 15 and ('files_directory', '.') in stated
    off = {('lookahead', '0.0')}  # said beside the default, what it would switch off
    wrong = [f'{name} {value}, not {defaults[name]}' for name, value in stated
             if defaults[name] != {value} and (name, value) not in off]
    assert not wrong


def test_the_table_of_files_is_made_of_the_parameters() -> None:
    pytest.importorskip('rclpy')
    reference = runpy.run_path(str(ROOT / 'docs' / 'ros_reference.py'))
    assert reference['PLACE'].findall(TEXT) == ['files']
    rows = reference['file_parameters']().splitlines()[2:]
    assert {tuple(re.findall(r'`([^`]*)`', row)[:3]) for row in rows} == {
        (node, *given) for node in ('identifier', 'excitation') for given in (
            ('recording_directory', 'recordings'), ('files_directory', '.'),
            ('file_requests', 'true'))}
