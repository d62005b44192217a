"""Minimal parameter sets; every method returns the same type."""

from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import reduce_numeric

__all__ = ['Reduction', 'reduce_numeric']
