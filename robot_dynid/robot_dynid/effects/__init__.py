"""Effects: every physical cause of torque contributes columns."""

from __future__ import annotations

from robot_dynid.dynamics.rotors import SpinningRotors
from robot_dynid.effects.counterbalance import Counterbalance
from robot_dynid.effects.deflection import Deflection
from robot_dynid.effects.effect import Axes, ChosenEffect, Effect, axes_of
from robot_dynid.effects.gears import (
    GearEffects,
    Hysteresis,
    KinematicError,
    Springs,
    effect_blocks,
)
from robot_dynid.effects.joint_friction import JointFriction
from robot_dynid.effects.learnt import LearntEffect
from robot_dynid.effects.links import RigidLinks
from robot_dynid.effects.ripple import RippleTorque
from robot_dynid.effects.rotors import RotorInertia
from robot_dynid.effects.slow_changes import SlowChanges
from robot_dynid.robot.model import RobotModel

#: effects learnt from the residual of the linear ones, in order, by their key in model files
LEARNT: dict[str, type[LearntEffect]] = {
    'residual': Deflection, 'ripple': RippleTorque, 'adaptation': SlowChanges}
#: effects selected by the error on distinct motion, by their key in model files
CHOSEN: dict[str, type[ChosenEffect]] = {'counterbalance': Counterbalance}

__all__ = [
    'CHOSEN',
    'LEARNT',
    'Axes',
    'ChosenEffect',
    'Counterbalance',
    'Effect',
    'GearEffects',
    'Hysteresis',
    'JointFriction',
    'KinematicError',
    'LearntEffect',
    'RigidLinks',
    'RotorInertia',
    'SpinningRotors',
    'Springs',
    'axes_of',
    'effect_blocks',
    'frictionless_blocks',
]


def frictionless_blocks(robot: RobotModel, rotor_inertia: bool) -> tuple[Effect, ...]:
    """Return all effects except friction: links, rotors (always for elastic joints), gears."""
    blocks: list[Effect] = [RigidLinks(robot)]
    if rotor_inertia or robot.drive.elastic:
        spins = None if robot.drive.rotor_axes is None else SpinningRotors(robot)
        blocks.append(RotorInertia(axes_of(robot), spins))
    if robot.drive.elastic:
        blocks.append(Springs(robot))
    return tuple(blocks)
