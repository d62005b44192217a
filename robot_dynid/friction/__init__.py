"""Friction laws by name; a new law is one file and one line here."""

from robot_dynid.friction.coulomb import Coulomb, CoulombAxes
from robot_dynid.friction.law import AxisMotion, FrictionLaw

LAWS = {'coulomb': Coulomb}

__all__ = ['LAWS', 'AxisMotion', 'Coulomb', 'CoulombAxes', 'FrictionLaw']
