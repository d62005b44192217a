"""Blocks: every physical effect contributes torque columns."""

from robot_dynid.regressor.block import Axes, Block, SmoothBlock, axes_of
from robot_dynid.regressor.elastic import SpinningRotors, Springs
from robot_dynid.regressor.friction import JointFriction
from robot_dynid.regressor.motor import RotorInertia
from robot_dynid.regressor.rigid import RigidLinks

BLOCKS = {'rigid': RigidLinks, 'rotor_inertia': RotorInertia, 'friction': JointFriction,
          'springs': Springs}

__all__ = ['BLOCKS', 'Axes', 'Block', 'JointFriction', 'RigidLinks', 'RotorInertia', 'SmoothBlock',
           'SpinningRotors', 'Springs', 'axes_of']
