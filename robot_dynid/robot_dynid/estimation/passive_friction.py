"""Bounds of friction parameters: passive axes have no negative friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction
from robot_dynid.estimation.estimate import Estimate, interval_factor
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.least_squares import joint_weights, weighted_factor


def bound_friction(estimate: Estimate, experiment: Experiment) -> Estimate:
    """Return the estimate with negative friction of passive axes set to zero.

    The other parameters take their weighted least-squares values under these bounds. Deviations
    are those of the unbounded estimate. Significantly negative parameters are named in a warning.
    """
    bounded = _passive(experiment.model)
    negative = bounded & (estimate.values < 0.0)
    if estimate.standard is not None or not negative.any():
        return estimate
    from scipy.optimize import lsq_linear

    information = experiment.information
    design = weighted_factor(information, joint_weights(information))[:, :-1]
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0.0] = 1.0
    least = np.where(bounded, -estimate.values * scale, -np.inf)
    shift = lsq_linear(design / scale, np.zeros(len(design)), (least, np.inf), method='bvls').x
    values = np.where(bounded & (shift <= least), 0.0, estimate.values + shift / scale)
    reach = interval_factor(estimate.degrees_of_freedom) * estimate.std
    named = [f'{estimate.names[i]} ({estimate.values[i]:.3g} +- {reach[i]:.2g})'
             for i in np.flatnonzero(negative & (estimate.values < -reach))]
    warnings = (f'negative friction is set to zero: {", ".join(named)}; another effect looks '
                'like friction: try another friction law, or record slow motion',
                ) if named else ()
    return replace(estimate, values=values, warnings=(*estimate.warnings, *warnings))


def _passive(model: TorqueModel) -> NDArray[np.bool_]:
    """Return a mask (b,) of base parameters that are friction of passive axes alone."""
    passive_names = {name for block in model.blocks if isinstance(block, JointFriction)
           for name in block.nonnegative}
    alone = np.count_nonzero(model.reduction.matrix, axis=1) == 1
    return np.asarray(np.array([name in passive_names for name in model.reduction.names]) & alone)
