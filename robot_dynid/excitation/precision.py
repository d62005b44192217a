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
    a joint at rest while another one moves, which does not average out.

    What was measured: ``information`` (b, b) of efforts that average out, the inverse of a
    covariance; ``resting`` that of joints at rest while each joint swings alone.
    """

    names: tuple[str, ...]
    sizes: FloatArray
    density: FloatArray
    held: FloatArray
    information: FloatArray
    resting: Resting

    @property
    def relative(self) -> FloatArray:
        """Information (b, b) about the parameters in terms of their sizes, UNKNOWN at first."""
        total = self.information + self.resting.information(self.density, self.held)
        scaled = self.sizes[:, None] * total * self.sizes
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


@dataclass(frozen=True, eq=False)
class Resting:
    """Variations of the efforts of joints at rest while one joint swings.

    ``grams`` (n, n, b, b): their regressor's, integrated over time, by the joint that swings and
    the one at rest; ``seconds`` (n,) that each joint swung. What friction takes of an effort at
    rest does not average out over configurations either: it is always against the load.
    """

    grams: FloatArray
    seconds: FloatArray

    @classmethod
    def none(cls, joints: int, count: int) -> Resting:
        """Return that of ``joints`` that never swung, about ``count`` parameters."""
        return cls(np.zeros((joints, joints, count, count)), np.zeros(joints))

    def information(self, density: FloatArray, held: FloatArray) -> FloatArray:
        """Return the information (b, b) with noise ``density`` (n,) and ``held`` (n,)."""
        variance = density**2 + self.seconds[:, None] * held**2
        return np.asarray(np.einsum('ji,jibc->bc', 1.0 / variance, self.grams))


def covariance_of(information: FloatArray) -> FloatArray:
    """Return the inverse (..., b, b) of positive definite matrices of very different sizes."""
    diagonal = np.diagonal(information, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(diagonal)
    both = scale[..., :, None] * scale[..., None, :]
    inverse = np.linalg.inv(both * information)
    found = both * 0.5 * (inverse + np.swapaxes(inverse, -2, -1))
    rows = np.arange(information.shape[-1])
    found[..., rows, rows] = np.maximum(found[..., rows, rows], scale**2)  # rounding: no less
    return np.asarray(found)
