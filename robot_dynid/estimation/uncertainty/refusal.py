"""Refusal of joints whose effort the data gives no model for, with the reason."""

from __future__ import annotations

import numpy as np

from robot_dynid.estimation.information import FILTERED, Information
from robot_dynid.estimation.uncertainty.consistency import Consistency
from robot_dynid.estimation.uncertainty.held_out import HeldOut
from robot_dynid.types import FloatArray

#: a joint is refused unless, for certain, more than this share of its variance is predicted
LEAST_SHARE = 0.02
#: a joint is refused with more than this share of its effort outside what any parameters explain
LARGEST_OUTSIDE = 0.5
#: shares beyond this are only given as such
LARGEST_SHOWN = 9.99
REMEDY = 'check its effort signal, and do not use the model for this joint'


def explained_share(information: Information, values: FloatArray) -> FloatArray:
    """Return the share R^2 (n,) of the variance of each effort that base parameters explain."""
    energy = information.residual_energy(values, FILTERED) / information.samples
    return np.asarray(1.0 - energy / np.maximum(information.spread(FILTERED) ** 2, 1e-300))


def refusals(
    held: HeldOut, found: Consistency | None = None, served: FloatArray | None = None
) -> dict[int, str]:
    """Return the refused equations (row numbers) with the reason.

    The share of the variance that is predicted on folds left out must exceed LEAST_SHARE by the
    scatter of the folds: what happens to fit on their mean is no prediction. ``served`` (n,) is
    the `explained_share` of the parameters that the model will have. Folds are predicted by least
    squares; methods with constraints or instruments have other parameters.
    """
    refused = {}
    for row, (share, margin) in enumerate(zip(held.share, held.margin, strict=True)):
        outside = 0.0 if found is None or not found.raised else float(found.outside[row])
        if held.constant[row]:
            refused[row] = 'its effort is constant'
        elif share < -LARGEST_SHOWN:
            refused[row] = ('its effort is predicted far worse than by its mean on stretches left '
                            'out of the fit: less data than so many parameters take, or an '
                            'effect the model lacks')
        elif not share - margin > LEAST_SHARE:
            low, wide = np.clip([share, margin], -LARGEST_SHOWN, LARGEST_SHOWN)
            refused[row] = ('its effort is predicted no better than by its mean: on stretches '
                            f'left out of the fit {low:.0%} +- {wide:.0%} of its variance')
        elif served is not None and not served[row] > 0.0:
            refused[row] = ('the parameters of this method explain its effort worse than its mean '
                            'does, on the data of the fit itself: use --method wls, or record '
                            'more motion')
        elif outside > LARGEST_OUTSIDE:
            refused[row] = (f'{outside:.0%} of its effort (root mean square) lies outside what '
                            'any parameters explain: noise, or an effect the model lacks')
    return refused


def refusal_sentence(joint: str, reason: str) -> str:
    """Return the sentence about a refused joint."""
    return f'joint {joint} is refused: {reason}; {REMEDY}'
