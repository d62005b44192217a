"""cli/contact.py: stages, thresholds and blind joints of recordings made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.cli import contact
from robot_dynid.cli.main import parser
from robot_dynid.monitoring.contact_events import Contact, ContactEvents
from robot_dynid.monitoring.watched_joints import BlindTime

MODEL = nominal_model('planar_3r')
TORQUE = np.array([[1.0, -5.0, 0.25], [-2.0, 4.0, -0.5]])
EVENTS = ContactEvents(
    'run.csv', np.array([0.0, 1.0]), TORQUE, 0.0 * TORQUE, 0.0 * TORQUE + 3.0,
    (Contact('joint_2', 0.25, 0.5, -5.0),), np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6]),
    np.array([0.7, 0.8, 0.9]), ('a gap',), (BlindTime('joint_1', 0.0, 0.5, 'settling', True),))
LATE = BlindTime('joint_3', 0.5, 0.75, 'slow')


class Seen:
    """A terminal that keeps the stages of the work."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float]] = []

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[str, float], None]]:
        yield lambda stage, fraction: self.stages.append((stage, fraction))


def run(
    monkeypatch: pytest.MonkeyPatch, path: Path, events: ContactEvents, *words: str,
    refused: tuple[str, ...] = (),
) -> tuple[dict[str, Any], list[tuple[str, float]], Any]:
    """Return the result, the stages, and the settings of the monitor."""
    asked: list[Any] = []

    def found(model: Any, logs: Any, settings: Any) -> list[ContactEvents]:
        asked.append(settings)
        assert logs == 'logs for contact detection'
        return [events]

    replace(MODEL, not_identified=refused).save(path)
    monkeypatch.setattr(contact, 'load_logs', lambda *_: SimpleNamespace(
        uncut=lambda why: f'logs for {why}'))
    monkeypatch.setattr(contact, 'reported', lambda *_: ('chapter',))
    monkeypatch.setattr('robot_dynid.monitoring.contact_events.contact_events', found)
    terminal = Seen()
    given = ['contact', str(path), 'run.csv', *words]
    result = contact.run(parser(given).parse_args(given), terminal)  # type: ignore[arg-type]
    return result, terminal.stages, asked[0]


def test_a_recording_has_its_contacts_and_the_numbers_of_its_joints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stages, settings = run(monkeypatch, tmp_path / 'M.yaml', EVENTS)
    assert stages == [('observing', 0.8), ('report', 0.9)]
    assert (settings.gain, settings.contact.margin) == (30.0, 2.0)
    assert (found['ok'], found['robot'], found['chapters'], found['warnings']) == (
        True, 'planar_3r', ('chapter',), ['a gap'])
    one = found['recordings']['run.csv']
    assert one['joints']['joint_2'] == {
        'largest': 5.0, 'without_contact': 0.2, 'static_friction': 0.5,
        'threshold_in_motion': 0.8, 'blind_seconds': 0.0}
    assert one['joints']['joint_1']['largest'] == 2.0
    assert [(c['joint'], c['start'], c['stop'], c['peak']) for c in one['contacts']] == [
        ('joint_2', 0.25, 0.5, -5.0)]
    assert [(b['joint'], b['begins']) for b in one['blind']] == [('joint_1', True)]
    assert 0.0 <= found['seconds'] < 60.0
    _, _, settings = run(monkeypatch, tmp_path / 'M.yaml', EVENTS, '--gain', '12.5', '--margin',
                         '3')
    assert (settings.gain, settings.contact.margin) == (12.5, 3.0)


@pytest.mark.parametrize(('blind', 'refused', 'accept', 'ok'), [
    ((), (), False, True), ((LATE,), (), False, False), ((LATE,), (), True, False),
    ((LATE,), ('joint_3',), True, True), ((LATE,), ('joint_3',), False, False),
    ((), ('joint_3',), False, False)])
def test_joints_that_were_blind_in_between_are_no_success_unless_accepted(
    blind: tuple[BlindTime, ...], refused: tuple[str, ...], accept: bool, ok: bool,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = replace(EVENTS, blind=(*EVENTS.blind, *blind))
    words = ['--accept-partial'] if accept else []
    assert run(monkeypatch, tmp_path / 'M.yaml', events, *words, refused=refused)[0]['ok'] is ok
