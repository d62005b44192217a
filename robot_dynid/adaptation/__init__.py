"""Slow changes of a moving robot: friction that warms up, coefficients that drift."""

from robot_dynid.adaptation.adaptation import Adaptation, Following
from robot_dynid.adaptation.leftover import Leftover
from robot_dynid.adaptation.slow_coefficients import SlowCoefficients
from robot_dynid.adaptation.warming import Warming

__all__ = ['Adaptation', 'Following', 'Leftover', 'SlowCoefficients', 'Warming']
