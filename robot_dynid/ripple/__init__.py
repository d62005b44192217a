"""Torque ripple of gears and motors that is locked to the position of a joint."""

from robot_dynid.ripple.model import RippleTorque, TorqueRipple

__all__ = ['RippleTorque', 'TorqueRipple']
