"""Gaussian mixture regression: the mixture by scikit-learn, the conditionals by ourselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.residual.model import Moments, ResidualModel, checked, faded, knowledge
from robot_dynid.types import FloatArray, frozen

#: least points per component, and most points of a fit (thinned evenly: samples are correlated)
POINTS_PER_COMPONENT, MOST_POINTS = 20, 1000
#: larger mixtures are tried until so many in a row have no lower BIC
PATIENCE = 2
#: share of the training points within the edge of the data
EDGE = 0.999


@dataclass(frozen=True, eq=False)
class MixtureModel(Moments):
    """A mixture of K Gaussians over (features, residual), all standardised.

    ``weights`` (K,), ``means`` (K, k + 1), ``covariances`` (K, k + 1, k + 1) in units of ``scale``
    (k + 1,) about ``centre`` (k + 1,); ``reach`` the Mahalanobis distance from the nearest
    component within which the training data lie; ``blank`` [(N m)^2] the mean squared residual.
    Source of the conditionals: Actuators 2023, 12, 454, section 5; its variance sums squared
    responsibilities and leaves out how much the components' means differ, so ours is the variance
    of the mixture.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    centre: FloatArray
    scale: FloatArray
    reach: float
    blank: float

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        u = (features - self.centre[:-1]) / self.scale[:-1]
        distance, density, means, variances = self._components(u)
        share = np.exp(density - density.max(axis=0))
        share /= share.sum(axis=0)
        mean = np.sum(share * means, axis=0)
        variance = np.sum(share * (variances[:, None] + (means - mean) ** 2), axis=0)
        unit = self.scale[-1]
        known = knowledge(np.sqrt(distance.min(axis=0)) - self.reach)
        return faded(known, self.centre[-1] + unit * mean, unit**2 * variance, self.blank)

    @cached_property
    def _whitened(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Whitening of the features (K, k, k), slope (K, k), log weight (K,), variance (K,)."""
        from scipy.linalg import solve_triangular

        factors = np.linalg.cholesky(self.covariances)
        size = factors.shape[1] - 1
        white = np.array([solve_triangular(factor[:-1, :-1], np.eye(size), lower=True)
                          for factor in factors])
        diagonal = np.diagonal(factors, axis1=1, axis2=2)[:, :-1]
        weights = np.log(self.weights) - np.log(diagonal).sum(axis=1)
        return (np.asarray(white), np.asarray(factors[:, -1, :-1]), np.asarray(weights),
                np.asarray(factors[:, -1, -1] ** 2))

    def _components(self, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return, per component, squared distance, log density (K, N), mean (K, N), variance (K,).

        By Cholesky factors: whitening the features whitens the regression, too.
        """
        whitening, slopes, weights, variances = self._whitened
        white = np.matmul(whitening, u.T - self.means[:, :-1, None])
        distance = np.sum(white**2, axis=1)
        means = self.means[:, -1, None] + np.matmul(slopes[:, None], white)[:, 0]
        return distance, weights[:, None] - 0.5 * distance, means, variances

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'gmr', **to_plain(self)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> MixtureModel:
        """Return the model of `plain`. Raises ValueError when the shapes do not agree."""
        found = from_plain(cls, content, 'residual')
        names = ('weights', 'means', 'covariances', 'centre', 'scale', 'reach', 'blank')
        count, size = found.weights.size, found.centre.size
        shapes = ((count,), (count, size), (count, size, size), (size,), (size,), (), ())
        for name, shape in zip(names, shapes, strict=True):
            array = np.asarray(getattr(found, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f'{name} of a Gaussian mixture')
        if not min(*found.weights, *found.scale, found.reach) > 0.0 \
                or not np.linalg.eigvalsh(found.covariances).min() > 0.0:
            raise ValueError('a Gaussian mixture of weights or scales that are not positive')
        return found


@dataclass(frozen=True)
class MixtureRegression:
    """Fit a mixture with the number of components of least BIC, at most ``components``."""

    components: int = 6
    seed: int = 0

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for too few points or a feature that does not vary, MissingDependency
        without scikit-learn.
        """
        checked(features, residual, POINTS_PER_COMPONENT)
        stride = -(-len(residual) // MOST_POINTS)
        table = np.column_stack([features, residual])[::stride]
        centre, scale = table.mean(axis=0), table.std(axis=0)
        scale[scale == 0.0] = 1.0  # a residual that is nothing at all
        points = (table - centre) / scale
        mixture = self._mixture(points)
        found = MixtureModel(frozen(mixture.weights_), frozen(mixture.means_),
                             frozen(mixture.covariances_), frozen(centre), frozen(scale), np.inf,
                             float(np.mean(residual**2)))
        distance = np.sqrt(found._components(points[:, :-1])[0].min(axis=0))
        return replace(found, reach=float(np.quantile(distance, EDGE)))

    def _mixture(self, points: FloatArray) -> Any:
        try:
            from sklearn.mixture import GaussianMixture
        except ImportError:
            raise MissingDependency('Gaussian mixtures need scikit-learn: pip install '
                                    'scikit-learn, or put residual: rbf into the recipe') from None
        most = max(1, min(self.components, len(points) // POINTS_PER_COMPONENT))
        best, least, since = None, np.inf, 0
        for k in range(1, most + 1):
            mixture = GaussianMixture(k, random_state=self.seed).fit(points)
            bic, since = float(mixture.bic(points)), since + 1
            if bic < least:
                best, least, since = mixture, bic, 0
            if since == PATIENCE:
                break
        return best
