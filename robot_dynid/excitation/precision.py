"""Precision of base parameters so far, relative to their sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.types import FloatArray

#: relative standard deviation of what nothing is known of: far above any accuracy asked for
UNKNOWN = 1e3


@dataclass(frozen=True, eq=False)
class Precision:
    """Information about base parameters.

    ``names`` (b,) of them, ``sizes`` (b,) to which their deviations are relative; ``density`` (n,)
    N m s^0.5 (N s^0.5) of the noise of efforts, so that T seconds of one value have the deviation
    density / T^0.5; ``held`` (n,) N m (N) is the deviation of what friction takes of the effort of
    a joint at rest while another one moves, which does not average out; ``information`` (b, b) was
    measured, the inverse of a covariance.
    """

    names: tuple[str, ...]
    sizes: FloatArray
    density: FloatArray
    held: FloatArray
    information: FloatArray

    @property
    def relative(self) -> FloatArray:
        """Information (b, b) about the parameters in terms of their sizes, UNKNOWN at first."""
        scaled = self.sizes[:, None] * self.information * self.sizes
        return np.asarray(scaled + np.eye(len(scaled)) / UNKNOWN**2)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations (b,) relative to the sizes."""
        return np.asarray(np.sqrt(np.diag(covariance_of(self.relative))))

    @property
    def worst(self) -> tuple[str, float]:
        """The parameter that is known worst, and its relative deviation."""
        deviations = self.deviations
        i = int(np.argmax(deviations))
        return self.names[i], float(deviations[i])


def covariance_of(information: FloatArray) -> FloatArray:
    """Return the inverse (b, b) of a positive definite matrix of very different sizes."""
    scale = 1.0 / np.sqrt(np.diag(information))
    inverse = np.linalg.inv(scale[:, None] * information * scale)
    found = scale[:, None] * (0.5 * (inverse + inverse.T)) * scale
    np.fill_diagonal(found, np.maximum(np.diag(found), scale**2))  # no rounding makes it less
    return np.asarray(found)
