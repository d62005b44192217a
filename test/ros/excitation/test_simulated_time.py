"""ros/excitation/waiting.py: motions are refused where the time of the controller is not that of
the guards."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy')

from robot_dynid.errors import UsageError
from robot_dynid.ros.excitation.waiting import OBSERVED, require_real_time


class Times:
    """A steady clock, and a clock of a node that passes ``rate`` times as fast from ``start``."""

    def __init__(self, rate: float, start: float = 100.0, active: bool = True) -> None:
        self.seconds, self._rate, self._start = 0.0, rate, start
        self.ros_time_is_active = active

    def now(self) -> Any:
        """Return the time of the node."""
        return SimpleNamespace(nanoseconds=round((self._start + self._rate * self.seconds) * 1e9))

    def steady(self) -> float:
        """Return the steady time, s."""
        return self.seconds

    async def until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Let time pass until the condition holds."""
        while not condition():
            self.seconds += 0.01
            assert self.seconds <= timeout
        return True


def passed(times: Any) -> float:
    """Return the s that the check took; raises what it raises."""
    with pytest.raises(StopIteration):
        require_real_time(times, times, times.steady).send(None)
    return float(times.seconds)


@pytest.mark.parametrize('rate', [0.95, 1.0, 1.05])
def test_real_time_is_seen_within_a_second(rate: float) -> None:
    assert passed(Times(rate)) == pytest.approx(OBSERVED, abs=0.02)


@pytest.mark.parametrize(('rate', 'start', 'told'), [
    (2.0, 100.0, '2.00'), (0.5, 100.0, '0.50'), (0.0, 100.0, '0.00'), (0.0, 0.0, '0.00')])
def test_another_rate_is_refused(rate: float, start: float, told: str) -> None:
    with pytest.raises(UsageError, match=f'passes {told} times as fast .* real_time_factor of 1'):
        passed(Times(rate, start))


def test_the_time_of_the_system_needs_no_check() -> None:
    assert passed(Times(2.0, active=False)) == 0.0
