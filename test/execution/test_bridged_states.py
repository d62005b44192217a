"""execution/watchdog.py: joint states that do not come while the controller is there, and joints
that turn over."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import LIMITS, RULES, Cell, box, excitation

from robot_dynid.execution.guards import Code
from robot_dynid.execution.sampled import sampled
from robot_dynid.execution.segment import Cancel, Hold, Segment, Send
from robot_dynid.trajectories.limits import quintic_move

FULL = lambda now: 1.0  # noqa: E731


@pytest.mark.parametrize('seconds', [0.12, 0.22, 0.35])
def test_the_feedback_of_the_controller_bridges_joint_states_that_come_late(seconds):
    cell = Cell(FULL, excitation(1))
    cell.silent = 11.5, 11.5 + seconds
    assert cell.start().run().outcome.code is Code.SUCCESS, cell.outcome


def test_tracking_error_in_feedback_stops_while_joint_states_are_missing():
    cell = Cell(FULL, excitation(1))
    cell.silent, off = (11.5, 11.8), np.array([0.4, 0.0])
    cell.shows = lambda position: position + off * (cell.now > 11.65)
    cell.start().run()
    assert cell.outcome.code is Code.TRACKING_ERROR
    assert min(at for at, c in cell.log if isinstance(c, Cancel)) < 11.68


@pytest.mark.parametrize('scaling', [1.0, 0.5])
def test_states_that_do_not_come_for_longer_stop_the_motion_within_the_limits(scaling):
    cell = Cell(lambda now: scaling, excitation(1))
    cell.silent = 11.5, np.inf
    cell.start().run()
    planned = np.abs(cell.execution.plan[0].points.velocity).max(axis=0)
    assert np.all(np.abs(cell.speed) <= 1.01 * scaling * planned)
    assert cell.outcome.code is Code.STALE_STATES, cell.outcome
    assert 'decelerated within the limits' in cell.outcome.text
    stop = max(at for at, command in cell.log if isinstance(command, Send))
    assert 11.5 + 0.4 <= stop <= 11.5 + 0.45, 'state_timeout, and what is bridged'
    assert not any(isinstance(command, (Cancel, Hold)) for _, command in cell.log)


def test_a_silent_controller_bridges_nothing():
    cell = Cell(FULL, excitation(1), replace(RULES, settings=replace(
        RULES.settings, controller_timeout=2.0)))
    cell.silent = 11.5, np.inf
    bridge = cell.execution.bridge
    cell.execution.bridge = lambda now, *values: bridge(now, *values) if now < 11.5 else ()
    cell.start().run()
    assert cell.outcome.code is Code.STALE_STATES and cell.now < 12.3, cell.outcome


@pytest.mark.parametrize('begin', [3.0, -0.5])
def test_a_joint_that_turns_over_at_the_seam_is_no_tracking_error(begin):
    """Reported within +-pi, or from 0 to 2 pi, as many drivers do."""
    wide = box(lower=-10.0, upper=10.0)
    move = quintic_move(LIMITS.joints, (np.array([begin, 0.0]), np.array([begin + 1.5, 0.3])),
                        wide.scaled(0.7))
    cell = Cell(FULL, Segment('excitation', sampled(move, 50.0, 0.2), wide))
    first = -np.pi if begin > 0.0 else 0.0
    cell.shows = lambda position: np.array(
        [(position[0] - first) % (2.0 * np.pi) + first, position[1]])
    cell.position = cell.shows(cell.position) if begin > 0.0 else cell.position
    cell.start().run()
    if begin < 0.0:
        assert cell.outcome.code is Code.TRACKING_ERROR, 'a start a turn away is no start'
        assert 'away from the start' in cell.outcome.text
        return
    assert cell.outcome.code is Code.SUCCESS, cell.outcome
    assert np.all(np.abs(cell.execution.tracking_error(cell.now)) < 0.05)
