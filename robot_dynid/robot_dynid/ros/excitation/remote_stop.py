"""Stop the motion of a running excitation node, from a program that sent nothing.

Light to import, and its node has only three connections, so it is quick.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from rclpy.qos import qos_profile_action_status_default

from robot_dynid.errors import DynIdError
from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid_interfaces.action import Excite

LOOK = 0.02  # s between checks
AGAIN = 0.3  # s after which an unanswered request is sent again
#: s to wait for the latched status, which does not exist before the first goal
STATUS = 2.0
#: states of goals that have not ended
ACTIVE = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
ENDED = Excite.Result.SUCCESS, Excite.Result.CANCELLED


class NotStopped(DynIdError):
    """Nothing is being executed, or the robot is not confirmed to be at rest."""


def stop_motion(name: str, timeout: float) -> dict[str, Any]:
    """Cancel the goals of the excitation node ``name``; return how the last one ended.

    The robot is at rest then. Raises NotStopped if the node is absent, if it executes nothing, and
    if it does not confirm within ``timeout`` s that the robot is at rest.
    """
    begun = time.monotonic()
    with helper_node('stop') as (node, executor):
        action, active, heard = f'{name}/excite/_action', dict[bytes, Any](), list[bool]()
        cancel = node.create_client(CancelGoal, f'{action}/cancel_goal')
        result = node.create_client(Excite.Impl.GetResultService, f'{action}/get_result')

        def note(message: GoalStatusArray) -> None:
            heard.append(True)
            active.update((bytes(one.goal_info.goal_id.uuid), one.goal_info)
                          for one in message.status_list if one.status in ACTIVE)

        node.create_subscription(GoalStatusArray, f'{action}/status', note,
                                 qos_profile_action_status_default)

        def until(condition: Callable[[], Any], longest: float) -> bool:
            end = time.monotonic() + longest
            while not condition() and time.monotonic() < end:
                executor.spin_once(timeout_sec=LOOK)
            return bool(condition())

        if not until(cancel.service_is_ready, timeout):
            raise NotStopped(f'no action {name}/excite within {timeout:g} s: check that the node '
                             'runs, in this ROS_DOMAIN_ID and under this name (--node, '
                             '--namespace)')
        asked = list[Any]()
        while not (answers := [one.result() for one in asked if one.done()]):
            if time.monotonic() - begun > timeout:
                raise NotStopped(f'{name} does not answer within {timeout:g} s: use the emergency '
                                 'stop, and check that the robot stands still')
            asked.append(cancel.call_async(CancelGoal.Request()))
            until(asked[-1].done, AGAIN)
        for goal in answers[0].goals_canceling:
            active[bytes(goal.goal_id.uuid)] = goal
        # the status names goals that are being stopped already, e.g. if an answer was lost
        until(lambda: active or heard, STATUS)
        if not active:
            raise NotStopped(f'{name} executes nothing')
        until(result.service_is_ready, timeout)
        ends = [result.call_async(Excite.Impl.GetResultService.Request(goal_id=goal.goal_id))
                for goal in active.values()]
        if not until(lambda: all(one.done() for one in ends), timeout):
            raise NotStopped(f'{name} did not confirm within {timeout:g} s that the robot stands '
                             'still: check the robot')
    ended = ends[-1].result().result
    return {'ok': ended.code in ENDED, 'code': ended.code, 'message': ended.message,
            'recording': ended.recording, 'seconds': time.monotonic() - begun}
