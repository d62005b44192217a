"""Estimators by name; a new one is one file and one line here."""

from robot_dynid.estimation.elastic import ElasticJoints
from robot_dynid.estimation.errors_in_variables.instrumental import InstrumentalVariables
from robot_dynid.estimation.estimate import Estimate, Estimator, Status
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible, FeasibleEstimate
from robot_dynid.estimation.irls import RobustLeastSquares
from robot_dynid.estimation.joint_covariance import GeneralisedLeastSquares
from robot_dynid.estimation.least_squares import LeastSquares
from robot_dynid.estimation.staged.least_squares import StagedEstimate, StagedLeastSquares

ESTIMATORS: dict[str, Estimator] = {
    'ols': LeastSquares(weighted=False),
    'wls': LeastSquares(weighted=True),
    'gls': GeneralisedLeastSquares(),
    'irls': RobustLeastSquares(),
    'iv': InstrumentalVariables(),
    'elastic': ElasticJoints(),
    'staged': StagedLeastSquares(),
    'feasible': Feasible(),
    'sequential-feasible': SequentialFeasible(),
}

__all__ = ['ESTIMATORS', 'ElasticJoints', 'Estimate', 'Estimator', 'Feasible', 'FeasibleEstimate',
           'GeneralisedLeastSquares', 'InstrumentalVariables', 'LeastSquares',
           'RobustLeastSquares', 'SequentialFeasible', 'StagedEstimate', 'StagedLeastSquares',
           'Status']
