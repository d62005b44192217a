"""Result, feedback and diagnostics messages of the excitation node."""

from __future__ import annotations

import array
import time

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from robot_dynid.execution.checklist import Item
from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.execution.supervisor import Execution
from robot_dynid.ros.common.answers import sendable
from robot_dynid_interfaces.action import Excite


def result_message(outcome: Outcome, joints: tuple[str, ...]) -> Excite.Result:
    """Return the result of the action as far as the outcome decides it."""
    return Excite.Result(
        success=outcome.code is Code.SUCCESS, code=int(outcome.code), message=outcome.text,
        joint_names=list(joints))


def feedback_message(
    now: float, execution: Execution | None, design: tuple[str, float], later: float = 0.0
) -> Excite.Feedback:
    """Return the feedback at ``now`` s of the steady clock; ``later`` s of motion follow."""
    if execution is None:
        return Excite.Feedback(segment=design[0], fraction=design[1])
    segment, fraction = execution.doing(now)
    return Excite.Feedback(
        segment=segment, fraction=fraction, remaining=execution.remaining(now) + later,
        tracking_error=array.array('d', execution.tracking_error(now)))


def status_of(item: Item) -> DiagnosticStatus:
    """Return the message of an item of the checklist."""
    return DiagnosticStatus(
        name=item.name, level=bytes([item.level]), message=sendable(item.message),
        values=[KeyValue(key=key, value=value) for key, value in item.values])


def diagnosis(
    name: str, execution: Execution | None, states: JointStates, last: Outcome | None,
    controller_ready: bool,
) -> DiagnosticStatus:
    """Return the status of the node for /diagnostics."""
    joint, age = states.oldest(time.monotonic())
    status = DiagnosticStatus(name=name, level=DiagnosticStatus.OK, message='ready')
    if execution is not None:
        doing = execution.doing(time.monotonic())[0]
        status.message = f'{doing}: {execution.phase.value}'
    elif last is not None and last.code is not Code.SUCCESS:
        status.level, status.message = DiagnosticStatus.WARN, f'{last.code.name}: {last.text}'
    if not controller_ready:
        status.level, status.message = DiagnosticStatus.WARN, 'the controller is absent'
    elif age > 1.0:
        status.level = DiagnosticStatus.WARN
        status.message = f"no recent state of joint '{joint}'"
    status.values = [
        KeyValue(key='controller', value='present' if controller_ready else 'absent'),
        KeyValue(key='age of joint states [s]', value=f'{age:.3f}'),
        KeyValue(key='last outcome', value=last.code.name if last is not None else 'none'),
    ]
    return status
