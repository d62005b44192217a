"""Quantiles and tails of the distributions behind intervals and tests.

Those of `scipy.stats`, which takes half a second to import.
"""

from __future__ import annotations


def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution with ``degrees`` of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def fisher_tail(ratio: float, degrees: tuple[int, int]) -> float:
    """Return the probability that an F-distributed number is above ``ratio`` (not below zero)."""
    from scipy.special import fdtrc

    return float(fdtrc(*degrees, ratio))


def student_tail(ratio: float, degrees: float) -> float:
    """Return the probability that Student's t is further from zero than ``ratio``."""
    from scipy.special import stdtr

    return float(2.0 * stdtr(degrees, -abs(ratio)))
