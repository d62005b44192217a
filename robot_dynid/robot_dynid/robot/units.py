"""Units of the joints of a robot, in words."""

from __future__ import annotations

from robot_dynid.robot.model import PRISMATIC, RobotModel


def unit(robot: RobotModel, joint: int) -> str:
    """Return the unit of a joint's effort."""
    return 'N' if robot.types[joint] == PRISMATIC else 'N m'


def length(robot: RobotModel, joint: int) -> str:
    """Return the unit of a joint's position."""
    return 'm' if robot.types[joint] == PRISMATIC else 'rad'


def rate(unit: str, power: str = '') -> str:
    """Return units of positions, 'rad or m', by time to a ``power``, '' or '²'."""
    return ' or '.join(f'{one}/s{power}' for one in unit.split(' or '))


def effort_unit(robot: RobotModel) -> str:
    """Return the unit of efforts in the head of a column for all joints."""
    return ' or '.join(dict.fromkeys(unit(robot, j) for j in range(robot.n)))
