"""Estimators by name; a new one is one file and one line here, or an entry point of GROUP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.estimation.elastic import ElasticJoints
from robot_dynid.estimation.errors_in_variables.instrumental import InstrumentalVariables
from robot_dynid.estimation.estimate import Details, Estimate, Estimator, Status
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible, FeasibleEstimate
from robot_dynid.estimation.irls import RobustLeastSquares
from robot_dynid.estimation.joint_covariance import GeneralisedLeastSquares
from robot_dynid.estimation.least_squares import LeastSquares
from robot_dynid.estimation.staged.least_squares import StagedEstimate, StagedLeastSquares
from robot_dynid.registry import Registry
from robot_dynid.settings import Setting, settings_of

#: group of entry points by which packages add estimators: the name of each, and the object
GROUP = 'robot_dynid.estimators'
ESTIMATORS: Registry[Estimator] = Registry(GROUP, {
    'ols': LeastSquares(weighted=False),
    'wls': LeastSquares(weighted=True),
    'gls': GeneralisedLeastSquares(),
    'irls': RobustLeastSquares(),
    'iv': InstrumentalVariables(),
    'elastic': ElasticJoints(),
    'staged': StagedLeastSquares(),
    'feasible': Feasible(),
    'sequential-feasible': SequentialFeasible(),
})
#: method used when an identification names none
DEFAULT = 'wls'


def owned_settings() -> dict[str, tuple[Setting, tuple[str, ...]]]:
    """Return every estimator setting by key, with the names of the estimators that have it."""
    settings: dict[str, tuple[Setting, tuple[str, ...]]] = {}
    for name, estimator in ESTIMATORS.items():
        for key, setting in settings_of(type(estimator)).items():
            settings[key] = (setting, (*settings[key][1], name) if key in settings else (name,))
    return settings


def estimator_from(
    name: str, settings: Mapping[str, Any] | None = None, source: str = 'recipe'
) -> Estimator:
    """Return the estimator `name` with `settings` given in plain types.

    Raises UsageError for an unknown name, an unknown setting, a setting of another method, or an
    invalid value.
    """
    ESTIMATORS.require(name)
    if name not in ESTIMATORS:
        raise UsageError(f'method {name!r}: choose one of {", ".join(ESTIMATORS)}')
    owned = owned_settings() if settings else {}
    for key in settings or {}:
        owners = owned[key][1] if key in owned else ()
        if name in owners:
            continue
        if owners:
            methods = ' and '.join(owners)
            raise UsageError(f'{source}: {key} is a setting of the method {methods}, not of '
                             f'{name}: choose --method {owners[0]}, or omit {key}')
        available = ', '.join(settings_of(type(ESTIMATORS[name]))) or 'none'
        raise UsageError(f'{source}: unknown setting {key} of the method {name}; '
                         f'it has {available}')
    return ESTIMATORS[name].with_settings(settings or {}, source)


def check_settings(settings: Mapping[str, Any], source: str = 'recipe') -> None:
    """Raise UsageError for unknown settings, and for values that no method accepts."""
    owned = owned_settings() if settings else {}
    for key, value in settings.items():
        if key not in owned:
            raise UsageError(f'{source}: unknown setting {key} of a method; choose from '
                             f'{", ".join(owned)}')
        ESTIMATORS[owned[key][1][0]].with_settings({key: value}, source)


__all__ = ['DEFAULT', 'ESTIMATORS', 'Details', 'ElasticJoints', 'Estimate', 'Estimator',
           'Feasible', 'FeasibleEstimate', 'GeneralisedLeastSquares', 'InstrumentalVariables',
           'LeastSquares', 'RobustLeastSquares', 'SequentialFeasible',
           'StagedEstimate', 'StagedLeastSquares', 'Status', 'check_settings',
           'estimator_from', 'owned_settings']
