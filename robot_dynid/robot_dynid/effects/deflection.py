"""Models of the effort that the deflection of gears shows beyond the linear effects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from robot_dynid.document import Section, Table, listed
from robot_dynid.effects.effect import LinearTorque
from robot_dynid.effects.joint_friction import low_pass_columns
from robot_dynid.effects.learnt import LearntEffect
from robot_dynid.effects.links import RigidLinks
from robot_dynid.effects.shown import FittedModel
from robot_dynid.errors import DataError, MissingDependency
from robot_dynid.numbers import number_array, shown
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples, frozen


class ResidualModel(ABC):
    """A regression of the residual effort of one joint on features (N, k)."""

    #: variance [(N m)^2] far outside the training data
    blank: float

    @abstractmethod
    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return all stored numbers in plain types."""

    def mean(self, features: FloatArray) -> FloatArray:
        """Return the expected residual (N,) [N m] of features (N, k)."""
        return self.moments(features)[0]

    def variance(self, features: FloatArray) -> FloatArray:
        """Return its variance (N,) [(N m)^2]."""
        return self.moments(features)[1]


class ResidualFit(Protocol):
    """Settings of a fit."""

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m]; raises DataError for too few points."""


def trust_outside(beyond: FloatArray) -> FloatArray:
    """Return the trust (N,) in a model at distance ``beyond`` (N,) from its training data.

    One inside; a Gaussian of the distance outside, in the model's unit of length.
    """
    return np.asarray(np.exp(-0.5 * np.maximum(beyond, 0.0) ** 2))


def fade_outside(
    trust: FloatArray, mean: FloatArray, variance: FloatArray, blank: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (N,) of a model that holds with probability ``trust`` (N,).

    Otherwise the residual has zero mean and the variance ``blank`` it has without the model. Far
    outside the training data nothing is added, with that variance.
    """
    second = trust * (variance + mean**2) + (1.0 - trust) * blank
    expected = trust * mean
    return expected, second - expected**2


def check_features(features: FloatArray, residual: FloatArray, least: int) -> None:
    """Raise DataError unless there are ``least`` finite points whose features vary.

    ``features`` (N, k), ``residual`` (N,).
    """
    if features.ndim != 2 or residual.shape != features.shape[:1]:
        raise DataError(f'features {features.shape} and residual {residual.shape} have different '
                        'lengths')
    if not (np.isfinite(features).all() and np.isfinite(residual).all()):
        raise DataError('features or residual hold numbers that are not finite')
    if len(residual) < least:
        raise DataError(f'{len(residual)} points are too few for a residual model, which needs '
                        f'{least}: record a longer motion')
    flat = np.ptp(features, axis=0) <= 1e-12 * np.abs(features).max(axis=0)
    if flat.any():
        raise DataError('the deflection is constant, so no residual can be fitted: check that '
                        'motor and link states come from separate encoders')


#: weight of the ridge, relative to the mean square of a column, which zeroes centres without data
CENTRE_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class RadialModel(ResidualModel):
    """Gaussian bumps on a grid over the range of the features, normalised to sum one.

    ``lower``, ``upper`` (k,) the range of the training data, ``count`` centres along each feature,
    ``weights`` (count^k,) [N m]; ``spread`` (count^k,) [(N m)^2] the mean squared error about each
    centre; ``blank`` [(N m)^2] the mean squared residual.
    """

    lower: FloatArray
    upper: FloatArray
    count: int
    weights: FloatArray
    spread: FloatArray
    blank: float

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        bumps = radial_bumps(features, self.lower, self.upper, self.count)
        spacing = (self.upper - self.lower) / (self.count - 1)
        outside = np.maximum(np.maximum(self.lower - features, features - self.upper), 0.0)
        trust = trust_outside(np.linalg.norm(outside / spacing, axis=1))
        return fade_outside(trust, bumps @ self.weights, bumps @ self.spread, self.blank)

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'rbf', 'count': self.count, 'blank': float(self.blank),
                **{name: getattr(self, name).tolist()
                   for name in ('lower', 'upper', 'weights', 'spread')}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> RadialModel:
        """Return the model of `plain`; raises ValueError if the shapes do not agree."""
        model = from_plain(cls, content, 'residual')
        size = model.lower.size
        shapes = {'lower': (size,), 'upper': (size,), 'weights': (model.count**size,),
                  'spread': (model.count**size,), 'blank': ()}
        for name, shape in shapes.items():
            array = np.asarray(getattr(model, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f'{name} of radial basis functions')
        if model.count < 2 or not np.all(model.lower < model.upper):
            raise ValueError('grid of radial basis functions')
        return model


def radial_bumps(
    features: FloatArray, lower: FloatArray, upper: FloatArray, count: int
) -> FloatArray:
    """Return the bumps (N, count^k) of features (N, k), each row with sum one.

    Centres are spaced evenly from ``lower`` to ``upper``, widths are half their spacing.
    """
    spacing = (upper - lower) / (count - 1)
    exponent = np.zeros((len(features), 1))
    for j, low in enumerate(lower):
        steps = (features[:, j, None] - low) / spacing[j] - np.arange(count)
        term = -0.5 * (2.0 * steps) ** 2
        exponent = (exponent[:, :, None] + term[:, None, :]).reshape(len(features), -1)
    bumps = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(bumps / bumps.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class RadialBasis:
    """Fit the weights of ``count`` centres along each feature by least squares with a small ridge.

    Centres and widths are those of the paper; its text gives the widths as one over the square of
    half a spacing, which is the factor of the exponent, and its weight matrix as a projection,
    which is not the least-squares solution. Over two features the centres form a grid.

    Source: Actuators 2023, 12, 454, section 5, the equations of the network.
    """

    count: int = 9

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for fewer points than centres or a feature that does not vary.
        """
        check_features(features, residual, self.count ** features.shape[1])
        lower, upper = features.min(axis=0), features.max(axis=0)
        bumps = radial_bumps(features, lower, upper, self.count)
        square = bumps.T @ bumps
        ridge = CENTRE_RIDGE * float(np.trace(square)) / len(square)
        weights = np.linalg.solve(square + ridge * np.eye(len(square)), bumps.T @ residual)
        blank = float(np.mean(residual**2))
        error = (residual - bumps @ weights) ** 2
        density = bumps.sum(axis=0)
        spread = (bumps.T @ error + ridge * blank) / (density + ridge)  # no data: all open
        return RadialModel(frozen(lower), frozen(upper), self.count, frozen(weights),
                           frozen(spread), blank)


#: least points per component, and most points of a fit (thinned evenly, because samples are
#: correlated)
POINTS_PER_COMPONENT, MAX_FIT_POINTS = 20, 1000
#: larger mixtures are tried until this many in a row have no lower BIC
MIXTURE_PATIENCE = 2
#: share of the training points within the edge of the data
EDGE_SHARE = 0.999


@dataclass(frozen=True, eq=False)
class MixtureModel(ResidualModel):
    """A mixture of K Gaussians over (features, residual), all standardised.

    ``weights`` (K,), ``means`` (K, k + 1), ``covariances`` (K, k + 1, k + 1) in units of ``scale``
    (k + 1,) about ``centre`` (k + 1,); ``reach`` the Mahalanobis distance from the nearest
    component that contains the training data; ``blank`` [(N m)^2] the mean squared residual.

    Source of the conditionals: Actuators 2023, 12, 454, section 5; its variance sums squared
    responsibilities and omits the differences of the components' means, so the variance of the
    mixture is used here.
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
        trust = trust_outside(np.sqrt(distance.min(axis=0)) - self.reach)
        return fade_outside(trust, self.centre[-1] + unit * mean, unit**2 * variance, self.blank)

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

        By Cholesky factors: whitening the features also whitens the regression.
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
        """Return the model of `plain`; raises ValueError if the shapes do not agree."""
        model = from_plain(cls, content, 'residual')
        names = ('weights', 'means', 'covariances', 'centre', 'scale', 'reach', 'blank')
        count, size = model.weights.size, model.centre.size
        shapes = ((count,), (count, size), (count, size, size), (size,), (size,), (), ())
        for name, shape in zip(names, shapes, strict=True):
            array = np.asarray(getattr(model, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f'{name} of a Gaussian mixture')
        if not min(*model.weights, *model.scale, model.reach) > 0.0 \
                or not np.linalg.eigvalsh(model.covariances).min() > 0.0:
            raise ValueError('the weights and scales of a Gaussian mixture must be positive')
        return model


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
        check_features(features, residual, POINTS_PER_COMPONENT)
        stride = -(-len(residual) // MAX_FIT_POINTS)
        table = np.column_stack([features, residual])[::stride]
        centre, scale = table.mean(axis=0), table.std(axis=0)
        scale[scale == 0.0] = 1.0  # a residual of zeros
        points = (table - centre) / scale
        mixture = self._mixture(points)
        model = MixtureModel(frozen(mixture.weights_), frozen(mixture.means_),
                             frozen(mixture.covariances_), frozen(centre), frozen(scale), np.inf,
                             float(np.mean(residual**2)))
        distance = np.sqrt(model._components(points[:, :-1])[0].min(axis=0))
        return replace(model, reach=float(np.quantile(distance, EDGE_SHARE)))

    def _mixture(self, points: FloatArray) -> Any:
        try:
            from sklearn.mixture import GaussianMixture
        except ImportError:
            raise MissingDependency('Gaussian mixtures need scikit-learn: pip install '
                                    'scikit-learn, or put residual: rbf into the recipe') from None
        max_count = min(self.components, len(points) // POINTS_PER_COMPONENT)
        best, least, count = None, np.inf, 0
        for k in range(1, max_count + 1):
            mixture = GaussianMixture(k, random_state=self.seed).fit(points)
            bic = float(mixture.bic(points))
            if bic < least:
                best, least, count = mixture, bic, k
            elif k - count == MIXTURE_PATIENCE:
                break
        return best


#: features of gear models after the common ones: torque [N m] of the model's links
LOAD_FEATURES = 1
#: stored numbers of a gear model besides the sizes
NUMBERS = ('offset', 'lower', 'upper', 'left', 'blank')


@dataclass(frozen=True, eq=False)
class GearModel(ResidualModel):
    """The torque that the gear shows, less the load.

    ``offset`` [N m] and ``size`` (k,) [N m per unit] of all features: that of the deflection is
    the stiffness, that of the load, the last one, is -1. ``lower`` and ``upper`` [rad] bound the
    deflection in the fit; beyond half that range outside, little is added. ``left`` and ``blank``
    [(N m)^2] are the mean squared residuals with and without the model.
    """

    size: FloatArray
    offset: float
    lower: float
    upper: float
    left: float
    blank: float

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        bent = features[:, 0]
        outside = np.maximum(np.maximum(self.lower - bent, bent - self.upper), 0.0)
        trust = trust_outside(outside / (0.5 * (self.upper - self.lower)))
        return fade_outside(trust, self.offset + features @ self.size,
                     np.full(len(features), self.left), self.blank)

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'gear', 'size': self.size.tolist(),
                **{name: float(getattr(self, name)) for name in NUMBERS}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> GearModel:
        """Return the model of `plain`; raises ValueError for invalid content."""
        model = from_plain(cls, content, 'residual')
        numbers = [getattr(model, name) for name in NUMBERS]
        if model.size.ndim != 1 or len(model.size) not in (2 + LOAD_FEATURES, 4 + LOAD_FEATURES) \
                or not np.isfinite([*model.size, *numbers]).all() or not model.lower < model.upper:
            raise ValueError('gear of a residual model')
        return model


def drop_gears(models: Sequence[ResidualModel | None]) -> tuple[ResidualModel | None, ...]:
    """Return ``models`` with None in place of gear models.

    Gears show what acts on the links, so a search for external torque must not subtract them.
    """
    return tuple(None if isinstance(one, GearModel) else one for one in models)


@dataclass(frozen=True)
class GearRegression:
    """Fit the sizes by least squares to residual plus load.

    Their sum passes through the gear, whether the links are known or not. The residual alone would
    not do: the fit of the links leaves little of it in the training data, and more in any other.
    """

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for fewer points than features, and for a deflection that is constant.
        """
        check_features(features[:, :2], residual, features.shape[1])
        free = select_features(features, gear=False)
        varied = free - free.mean(axis=0)
        scale = np.linalg.norm(varied, axis=0)
        scale[scale == 0.0] = 1.0
        passed = residual + features[:, -1]
        size = np.append(
            np.linalg.lstsq(varied / scale, passed - passed.mean())[0] / scale, -1.0)
        left = residual - features @ size
        bent = features[:, 0]
        return GearModel(frozen(size), float(left.mean()), float(bent.min()), float(bent.max()),
                         float(left.var()), float(np.mean(residual**2)))


#: features of the residual, deflection and rate; the others are those of the ripple
LEARNED = 2


@dataclass(frozen=True, eq=False)
class RippleModel(ResidualModel):
    """A residual linear in the ripple features, plus an ``inner`` model of deflection and rate.

    The features of the ripple are the deflection times sine and cosine of the phase of the wave
    generator: with a kinematic error e the power balance of a gear makes its torque T act on the
    motor as (1 + de/dtheta) T. ``size`` (k - 2,) [N m/rad].
    """

    size: FloatArray
    inner: ResidualModel

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        mean, variance = self.inner.moments(features[:, :LEARNED])
        return mean + features[:, LEARNED:] @ self.size, variance

    @property
    def blank(self) -> float:  # type: ignore[override]
        """Variance [(N m)^2] far outside the training data, without the ripple."""
        return self.inner.blank

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {**self.inner.plain(), 'ripple': self.size.tolist()}

    @classmethod
    def of(cls, content: Mapping[str, Any], inner: ResidualModel) -> RippleModel:
        """Return the model of `plain`; raises ValueError without ripple."""
        size = number_array(content['ripple'])
        if size is None or size.ndim != 1 or not len(size) or not np.isfinite(size).all():
            raise ValueError('ripple of a gear')
        return cls(frozen(size), inner)


@dataclass(frozen=True)
class RippleRegression:
    """Fit the ripple by least squares, then ``inner`` to the rest; only ``inner`` without ripple.
"""

    inner: ResidualFit

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k): deflection, rate, those of the ripple; and residual (N,) [N m].

        Raises DataError as ``inner`` does.
        """
        if features.ndim != 2 or features.shape[1] <= LEARNED:
            return self.inner.fit(features, residual)
        waves = features[:, LEARNED:]
        scale = np.linalg.norm(waves, axis=0)
        scale[scale == 0.0] = 1.0
        size = np.linalg.lstsq(waves / scale, residual)[0] / scale
        left = self.inner.fit(features[:, :LEARNED], residual - waves @ size)
        return RippleModel(frozen(size), left)


RESIDUALS: dict[str, ResidualFit] = {
    'gear': GearRegression(), 'gmr': RippleRegression(MixtureRegression()),
    'rbf': RippleRegression(RadialBasis())}
MODELS: dict[str, Any] = {'gear': GearModel, 'gmr': MixtureModel, 'rbf': RadialModel}

#: kinds tried if the data chooses, each used if it improves on the earlier ones
CHOICES = ('gear', 'gmr')


def residual_from_plain(content: Mapping[str, Any]) -> ResidualModel:
    """Return a stored residual model; raises ValueError if it is damaged."""
    kind = content.get('kind') if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or kind not in MODELS:
        raise ValueError(f'residual: model {shown(kind)} is not known')
    model: ResidualModel = MODELS[kind].from_plain(
        {key: value for key, value in content.items() if key not in ('kind', 'ripple')})
    return RippleModel.of(content, model) if 'ripple' in content else model


#: waves fade out between these multiples of the cut-off, the second below half the least rate
CUTOFF_MULTIPLE, GONE = 2.0, 3.5


def deflections(robot: RobotModel, samples: Samples) -> FloatArray | None:
    """Return features (N, n, k): motor minus link position [rad] and velocity [rad/s]; the ripple.

    The two ripple features exist with gear ratios only, see `_ripple`. At the stamps of the
    effort. NaN for joints without usable motor states; None for samples without any.
    """
    if samples.motor_position is None or samples.motor_velocity is None:
        return None
    count = feature_count(robot)
    flat = samples.at_stamps(samples.with_past(
        lambda whole: _features(robot, whole).reshape(len(whole), -1)))
    return flat.reshape(len(samples), -1, count)


def gear_load(model: LinearTorque, values: FloatArray) -> FloatArray:
    """Return the base parameters ``values`` (b,) of links, zero elsewhere.

    Their effort is the part of the gear torque that the links take.
    """
    of_links = [np.full(len(pivots), isinstance(block, RigidLinks))
                for block, pivots in zip(model.blocks, model.pivots_by_block, strict=True)]
    return np.where(np.concatenate(of_links), values, 0.0)


def append_load(features: FloatArray, load: FloatArray) -> FloatArray:
    """Return gear features (N, n, k + LOAD_FEATURES): ``features`` (N, n, k), then the load.

    ``load`` (N, rows) [N m] is the effort of the model's links at the same stamps.
    """
    return np.concatenate([features, load[:, :features.shape[1], None]], axis=2)


def select_features(features: FloatArray, gear: bool) -> FloatArray:
    """Return ``features`` (N, k + LOAD_FEATURES) of a joint for a gear model, (N, k) for others.
"""
    return features if gear else features[:, :-LOAD_FEATURES]


def _features(robot: RobotModel, samples: Samples) -> FloatArray:
    """Return the features (N, n, k) of samples, with the ripple filtered like the motion.

    It passes the filter as a whole, because its factors are not smooth.
    """
    motor, speed = samples.motor_position, samples.motor_velocity
    assert motor is not None and speed is not None
    features = instant_features(
        robot, (samples.position, samples.velocity, motor, speed), samples.cutoff)
    waves = features[:, :, LEARNED:].reshape(len(features), -1)
    finite = np.isfinite(waves).all(axis=0)
    if finite.any():
        waves[:, finite] = low_pass_columns(waves[:, finite].T, samples).T
        features[:, :, LEARNED:] = waves.reshape(len(features), robot.n, -1)
    return features


def instant_features(
    robot: RobotModel, motion: Sequence[FloatArray], cutoff: float | None
) -> FloatArray:
    """Return the unfiltered features (N, n, k) of single instants.

    ``motion``: position and velocity of the joints, then of the motors, (N, n) each. Ripple too
    fast for a filter of ``cutoff`` [Hz] fades out.
    """
    q, qd, motor, speed = motion
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    bent = np.stack([motor - q @ coupling.T, speed - qd @ coupling.T], axis=2)
    if robot.drive.gear_ratios is None:
        return bent
    waves = _ripple(robot.drive.gear_ratios, bent[:, :, 0], (motor, speed), cutoff)
    return np.concatenate([bent, waves], axis=2)


def feature_count(robot: RobotModel) -> int:
    """Return the number of features of a joint."""
    return 2 if robot.drive.gear_ratios is None else 4


def _ripple(
    ratios: FloatArray, deflection: FloatArray, motors: tuple[FloatArray, FloatArray],
    cutoff: float | None,
) -> FloatArray:
    """Return (N, n, 2): the deflection times sine and cosine of twice the angle of every motor.

    Twice per turn the wave generator of a harmonic drive presses its flexspline. What turns too
    fast for the filter fades out first, because it would alias.
    """
    rate = 2.0 * np.abs(ratios)
    phase = rate * motors[0]
    size = deflection
    if cutoff is not None:
        turns = rate * np.abs(motors[1]) / (2.0 * np.pi * cutoff)
        size = size * np.clip((GONE - turns) / (GONE - CUTOFF_MULTIPLE), 0.0, 1.0)
    return np.stack([size * np.sin(phase), size * np.cos(phase)], axis=2)


def complete_joints(features: FloatArray) -> list[int]:
    """Return the joints whose features (N, n, k) are finite throughout."""
    return [int(j) for j in np.flatnonzero(np.isfinite(features).all(axis=(0, 2)))]


class Deflection(LearntEffect):
    """Torque that the deflection of gears shows beyond other effects; parts are ResidualModels."""

    @classmethod
    def sections(cls, model: FittedModel) -> tuple[Section, ...]:
        """Return one section about residual models and loops, none where there are none."""
        record = model.record.residual
        if record is None:
            return ()
        how = 'Friction from sweeps, links and residual were fitted in turn' \
            if record.loops == 'three' else 'Friction and links were fitted at once'
        text = (f'{how}, {record.rounds} round(s). RMS errors on held-out data. A model of the '
                'deflection is used only if it reduces them significantly, by 1 % or more.')
        errors = Table(('joint', 'friction', '+ links', '+ deflection', 'used', 'remark'), (
            (r.joint, r.friction, r.physics, r.with_residual,
             (r.kind or 'yes') if r.used else 'no', r.note) for r in record.joints),
            'Held-out RMS error [N m]', words=True)
        loops = Table(('loop', 'seconds'), record.seconds.items())
        return (Section('Loops and deflection', text=text, tables=tuple(
            table for table in (errors, loops) if table.rows)),)

    @classmethod
    def read(cls, content: Any, where: str = '') -> ResidualModel:
        """Return a stored residual model; raises ValueError if it is damaged."""
        return residual_from_plain(content)

    def along(
        self, model: LinearTorque, values: FloatArray, samples: Samples, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, rows) [N m] of the residual models; zero without features."""
        robot, added = model.robot, np.zeros_like(effort)
        features = deflections(robot, samples)
        if features is not None:
            loaded = append_load(features, model.effort(samples, gear_load(model, values)))
            for j in complete_joints(features):
                one = self.parts[j]
                if one is not None:
                    added[:, j] = one.mean(select_features(loaded[:, j],
                                                           isinstance(one, GearModel)))
        return added

    def note(self, robot: RobotModel, samples: Samples) -> str:
        """Return a note on joints whose residual model lacks inputs; '' for none."""
        features = deflections(robot, samples)
        available = [] if features is None else complete_joints(features)
        missing = [robot.joints[j] for j, one in enumerate(self.parts)
                   if one is not None and j not in available]
        if not missing:
            return ''
        return (f'the model of the deflection of {listed(missing)} is not used, because there '
                'are no motor states')

    @property
    def left_out(self) -> str:
        """Sentence that these models are omitted."""
        return 'Omitted: the torque that the deflection of gears shows beyond this model.'
