"""Estimators by name; a new one is one file and one line here."""

from robot_dynid.estimation.estimate import Estimate, Status
from robot_dynid.estimation.least_squares import LeastSquares

ESTIMATORS = {'ols': LeastSquares(weighted=False), 'wls': LeastSquares(weighted=True)}

__all__ = ['ESTIMATORS', 'Estimate', 'LeastSquares', 'Status']
