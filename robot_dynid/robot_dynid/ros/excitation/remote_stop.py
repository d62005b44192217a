"""Stop of whatever a running excitation node executes, by a program that sent nothing.

Light to import, and the node it makes has three things to connect, so that it is quick.
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

LOOK = 0.02  # s between looks
AGAIN = 0.3  # s after which a request that is not answered is sent again
#: s for the latched status to come in, which there is none of before the first goal
STATUS = 2.0
#: of goals that have not ended
ACTIVE = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
ENDED = Excite.Result.SUCCESS, Excite.Result.CANCELLED


class NotStopped(DynIdError):
    """Nobody executes anything, or the robot is not known to be at rest."""


def stop_motion(name: str, timeout: float) -> dict[str, Any]:
    """Cancel the goals of the excitation node ``name``, return how the last one ended.

    The robot is at rest then. Raises NotStopped when the node is not there, when it executes
    nothing, and when it does not tell within ``timeout`` s that the robot has come to rest.
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
        # the status has what was being stopped already, as by a request whose answer was lost
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
