"""Conditions of the arms of a fleet on /diagnostics, once, from a program that is no node."""

from __future__ import annotations

import time
from collections.abc import Sequence

import robot_dynid.ros  # noqa: F401  says what is missing, before it is imported

# isort: split
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid.ros.common.messages import Diagnostics
from robot_dynid_extras.fleet.report import ArmStatus

#: s to wait for somebody who listens, and for what was sent to arrive
PATIENCE, LOOK = 5.0, 0.05


def publish(statuses: Sequence[ArmStatus], patience: float = PATIENCE) -> bool:
    """Publish the conditions of arms, each the hardware of its status.

    Return whether it arrived at all who listen; False where nobody does within ``patience`` [s].
    """
    with helper_node('fleet') as (node, _):
        diagnostics, end = Diagnostics(node), time.monotonic() + patience
        while not diagnostics.heard and time.monotonic() < end:
            time.sleep(LOOK)
        diagnostics.publish(*map(status_of, statuses))
        return diagnostics.heard and diagnostics.arrived(patience)


def status_of(one: ArmStatus) -> DiagnosticStatus:
    """Return the status of an arm."""
    return DiagnosticStatus(
        name=one.arm, hardware_id=one.arm, message=one.message,
        level=DiagnosticStatus.WARN if one.changed else DiagnosticStatus.OK,
        values=[KeyValue(key=key, value=value) for key, value in one.values.items()])
