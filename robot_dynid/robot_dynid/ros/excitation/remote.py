"""A goal of an excitation node from another process, with its progress for the operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import Code
from robot_dynid.ros.common.action_caller import calling
from robot_dynid.ros.common.stop_request import stop_request
from robot_dynid.ros.excitation.messages import USED
from robot_dynid_interfaces.action import Excite


@dataclass(frozen=True)
class Seen:
    """The state of a motion: its ``segment``, the fraction done, the time left.

    ``error`` is the largest tracking error, rad (m); ``guards`` are the used shares of their
    limits, the largest first.
    """

    segment: str
    fraction: float
    remaining: float
    error: float
    guards: tuple[tuple[str, float], ...] = ()


class Status:
    """Last diagnostics of the excitation node ``name``: its robot, and its guards."""

    def __init__(self, name: str) -> None:
        self._name, self.robot = f'{name}: execution', ''
        self.guards: tuple[tuple[str, float], ...] = ()

    def note(self, message: DiagnosticArray) -> None:
        """Take the diagnostics of any node."""
        for status in message.status:
            if status.name == self._name:
                self.robot = status.hardware_id
                used = ((one.key.removesuffix(USED), float(one.value))
                        for one in status.values if one.key.endswith(USED))
                self.guards = tuple(sorted(used, key=lambda guard: -guard[1]))


def excite(
    name: str, goal: Excite.Goal, show: Callable[[Seen], None], timeout: float, robot: str = '',
) -> dict[str, Any]:
    """Let the excitation node ``name`` execute a goal, and return its result.

    Enter at the terminal, Ctrl-C and other signals that end a program cancel it; the robot is at
    rest on return. ``robot``, if given, is the name of the only robot that may move. Raises
    NotAnswered if the node is absent, or silent for ``timeout`` s, UsageError if it moves another
    robot, and Cancelled if it was stopped before anything was sent.
    """
    status = Status(name)

    def feedback(now: Excite.Feedback) -> None:
        show(Seen(now.segment, float(now.fraction), float(now.remaining),
                  max(map(abs, now.tracking_error), default=0.0), status.guards))

    with calling(Excite, f'{name}/excite', timeout) as caller, \
            stop_request(caller.wake, keys=True) as stop:
        caller.subscribe(DiagnosticArray, '/diagnostics', status.note)
        if robot:
            caller.wait(lambda: stop.asked or bool(status.robot),
                        f'no diagnostics of {name}, which name its robot,')
            if status.robot != robot and not stop.asked:
                raise UsageError(f'{name} moves {status.robot}, not {robot}; give the node of '
                                 'that robot (--node, --namespace). Nothing was sent')
        result = caller.called(goal, feedback, lambda: stop.asked)
    return {
        'ok': bool(result.success), 'code': Code(result.code).name, 'message': result.message,
        'stopped': stop.asked, 'duration': result.duration,
        'total_duration': result.total_duration, 'warnings': list(result.warnings),
        'plan': result.plan, 'recording': result.recording}
