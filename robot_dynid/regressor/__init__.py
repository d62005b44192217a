"""Blocks: every physical effect contributes torque columns."""

from robot_dynid.dynamics.rotors import SpinningRotors
from robot_dynid.regressor.block import Axes, Block, SmoothBlock, axes_of
from robot_dynid.regressor.counterbalance import Counterbalance
from robot_dynid.regressor.elastic import Springs
from robot_dynid.regressor.friction import JointFriction
from robot_dynid.regressor.gear_effects import (
    GearEffects,
    Hysteresis,
    KinematicError,
    effect_blocks,
)
from robot_dynid.regressor.motor import RotorInertia
from robot_dynid.regressor.rigid import RigidLinks
from robot_dynid.robot.model import RobotModel

BLOCKS = {'rigid': RigidLinks, 'rotor_inertia': RotorInertia, 'friction': JointFriction,
          'springs': Springs, 'counterbalance': Counterbalance,
          'kinematic_error': KinematicError, 'hysteresis': Hysteresis}

__all__ = ['BLOCKS', 'Axes', 'Block', 'Counterbalance', 'GearEffects', 'Hysteresis',
           'JointFriction', 'KinematicError', 'RigidLinks', 'RotorInertia', 'SmoothBlock',
           'SpinningRotors', 'Springs', 'axes_of', 'effect_blocks', 'frictionless_blocks']


def frictionless_blocks(robot: RobotModel, rotor_inertia: bool) -> tuple[Block, ...]:
    """Return links, rotors (elastic joints always have theirs) and gears; all but friction."""
    found: list[Block] = [RigidLinks(robot)]
    if rotor_inertia or robot.drive.elastic:
        spins = None if robot.drive.rotor_axes is None else SpinningRotors(robot)
        found.append(RotorInertia(axes_of(robot), spins))
    if robot.drive.elastic:
        found.append(Springs(robot))
    return tuple(found)
