"""Events of `robot-dynid bench stops` once, against the nodes as processes.

The rest of them happen in test_excitation_faults.py, on both faces of the controller.
Its guards are wide. `pytest -m soak` plays every event twenty times, alone and beside eight busy
loops, with the guards as they are, and holds each against what is promised.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import PARAMETERS, ROBOT

from robot_dynid_evaluation.bench import stops
from robot_dynid_evaluation.stops.events import EVENTS
from robot_dynid_evaluation.stops.play import Stage, bounds, latency, stage

pytestmark = [pytest.mark.ros, pytest.mark.alone]

#: what happens in test_excitation_faults.py
ELSEWHERE = ('kill-robot', 'emergency-stop', 'stale', 'topic', 'effort', 'cancel', 'pause')


@pytest.fixture(scope='module')
def played(module_domain: int) -> Iterator[Stage]:
    with stage(ROBOT, 0, PARAMETERS) as found:
        yield found
        found.cell.require_alive()


@pytest.mark.parametrize('name', [name for name in EVENTS if name not in ELSEWHERE])
def test_an_event_ends_the_motion_as_promised(played: Stage, name: str) -> None:
    event = EVENTS[name]
    played.ready()
    run = played.play(event)
    found, seconds = event.faults(run, run.code), getattr(run, event.measure)
    if not event.goes_on and not seconds < bounds(PARAMETERS)(event) + latency(load=0):
        found.append(f'{event.measure} after {seconds:.3f} s')
    assert not found, run.text


@pytest.mark.soak
@pytest.mark.parametrize('load', ['0', '8'])
def test_every_promise_is_kept_twenty_times(load: str) -> None:
    rows = list(stops.measure(lambda *_: None, load=load))
    assert len(rows) == len(EVENTS) + 1, 'events, and false trips'
    assert all(row['kept'] for row in rows), [row for row in rows if not row['kept']]
