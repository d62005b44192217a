"""Models of the effort that the deflection of gears shows beyond the physics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from robot_dynid.document import Section, Table
from robot_dynid.effects.effect import LinearTorque
from robot_dynid.effects.joint_friction import low_passed
from robot_dynid.effects.learnt import LearntEffect
from robot_dynid.effects.links import RigidLinks
from robot_dynid.effects.shown import FittedModel
from robot_dynid.errors import DataError, MissingDependency
from robot_dynid.numbers import number_array, shown
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples, frozen


class ResidualModel(ABC):
    """A regression of one joint, from features (N, k) to residual effort."""

    #: variance [(N m)^2] where nothing is known of the features
    blank: float

    @abstractmethod
    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored, in plain numbers."""

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


def knowledge(beyond: FloatArray) -> FloatArray:
    """Return (N,) how far a model is believed, ``beyond`` (N,) the edge of its training data.

    One inside; a Gaussian of the distance outside, in the model's own unit of length.
    """
    return np.asarray(np.exp(-0.5 * np.maximum(beyond, 0.0) ** 2))


def faded(
    known: FloatArray, mean: FloatArray, variance: FloatArray, blank: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (N,) of a model that is believed with probability ``known`` (N,).

    Otherwise the residual has zero mean and the variance ``blank`` it has without the model. So
    far outside the training data nothing is added, and the variance says so.
    """
    second = known * (variance + mean**2) + (1.0 - known) * blank
    expected = known * mean
    return expected, second - expected**2


def checked(features: FloatArray, residual: FloatArray, least: int) -> None:
    """Raise DataError unless there are ``least`` finite points whose features vary.

    ``features`` (N, k), ``residual`` (N,).
    """
    if features.ndim != 2 or residual.shape != features.shape[:1]:
        raise DataError(f'features {features.shape} and residual {residual.shape} do not belong '
                        'together')
    if not (np.isfinite(features).all() and np.isfinite(residual).all()):
        raise DataError('features or residual hold numbers that are not finite')
    if len(residual) < least:
        raise DataError(f'{len(residual)} points are too few for a residual model, which needs '
                        f'{least}; record a longer motion')
    flat = np.ptp(features, axis=0) <= 1e-12 * np.abs(features).max(axis=0)
    if flat.any():
        raise DataError('the deflection is constant, so no residual can be fitted; check that '
                        'motor and link states come from encoders of their own')


#: weight of the ridge, relative to the mean square of a column: centres without data get nothing
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
        bumps = normalised(features, self.lower, self.upper, self.count)
        spacing = (self.upper - self.lower) / (self.count - 1)
        outside = np.maximum(np.maximum(self.lower - features, features - self.upper), 0.0)
        known = knowledge(np.linalg.norm(outside / spacing, axis=1))
        return faded(known, bumps @ self.weights, bumps @ self.spread, self.blank)

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'rbf', 'count': self.count, 'blank': float(self.blank),
                **{name: getattr(self, name).tolist()
                   for name in ('lower', 'upper', 'weights', 'spread')}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> RadialModel:
        """Return the model of `plain`. Raises ValueError when the shapes do not agree."""
        found = from_plain(cls, content, 'residual')
        size = found.lower.size
        shapes = {'lower': (size,), 'upper': (size,), 'weights': (found.count**size,),
                  'spread': (found.count**size,), 'blank': ()}
        for name, shape in shapes.items():
            array = np.asarray(getattr(found, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f'{name} of radial basis functions')
        if found.count < 2 or not np.all(found.lower < found.upper):
            raise ValueError('grid of radial basis functions')
        return found


def normalised(
    features: FloatArray, lower: FloatArray, upper: FloatArray, count: int
) -> FloatArray:
    """Return the bumps (N, count^k) of features (N, k), each row with the sum one.

    Centres are spaced evenly from ``lower`` to ``upper``, widths are half their spacing.
    """
    spacing = (upper - lower) / (count - 1)
    exponent = np.zeros((len(features), 1))
    for j, low in enumerate(lower):
        steps = (features[:, j, None] - low) / spacing[j] - np.arange(count)
        own = -0.5 * (2.0 * steps) ** 2
        exponent = (exponent[:, :, None] + own[:, None, :]).reshape(len(features), -1)
    bumps = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(bumps / bumps.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class RadialBasis:
    """Fit the weights of ``count`` centres along each feature by least squares with a small ridge.

    Centres and widths are those of the paper; the text gives the widths as one over the square of
    half a spacing, which is the factor of the exponent, and its matrix of weights as a projection,
    which is not the least-squares solution. Over two features the centres form a grid.
    Source: Actuators 2023, 12, 454, section 5, the equations of the network.
    """

    count: int = 9

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for fewer points than centres or a feature that does not vary.
        """
        checked(features, residual, self.count ** features.shape[1])
        lower, upper = features.min(axis=0), features.max(axis=0)
        bumps = normalised(features, lower, upper, self.count)
        square = bumps.T @ bumps
        ridge = CENTRE_RIDGE * float(np.trace(square)) / len(square)
        weights = np.linalg.solve(square + ridge * np.eye(len(square)), bumps.T @ residual)
        blank = float(np.mean(residual**2))
        error = (residual - bumps @ weights) ** 2
        density = bumps.sum(axis=0)
        spread = (bumps.T @ error + ridge * blank) / (density + ridge)  # no data: all is open
        return RadialModel(frozen(lower), frozen(upper), self.count, frozen(weights),
                           frozen(spread), blank)


#: least points per component, and most points of a fit (thinned evenly: samples are correlated)
POINTS_PER_COMPONENT, MOST_FIT_POINTS = 20, 1000
#: larger mixtures are tried until so many in a row have no lower BIC
MIXTURE_PATIENCE = 2
#: share of the training points within the edge of the data
EDGE_SHARE = 0.999


@dataclass(frozen=True, eq=False)
class MixtureModel(ResidualModel):
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
        stride = -(-len(residual) // MOST_FIT_POINTS)
        table = np.column_stack([features, residual])[::stride]
        centre, scale = table.mean(axis=0), table.std(axis=0)
        scale[scale == 0.0] = 1.0  # a residual that is nothing at all
        points = (table - centre) / scale
        mixture = self._mixture(points)
        found = MixtureModel(frozen(mixture.weights_), frozen(mixture.means_),
                             frozen(mixture.covariances_), frozen(centre), frozen(scale), np.inf,
                             float(np.mean(residual**2)))
        distance = np.sqrt(found._components(points[:, :-1])[0].min(axis=0))
        return replace(found, reach=float(np.quantile(distance, EDGE_SHARE)))

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
            if since == MIXTURE_PATIENCE:
                break
        return best


#: features of gears behind those of all models: torque [N m] that the links of the model take
BESIDE = 1
#: what is stored of a gear beside the sizes
NUMBERS = ('offset', 'lower', 'upper', 'left', 'blank')


@dataclass(frozen=True, eq=False)
class GearModel(ResidualModel):
    """The torque that the gear shows, less the load.

    ``offset`` [N m] and ``size`` (k,) [N m per unit] of all features: that of the deflection is
    the stiffness, that of the load, the last one, -1. ``lower`` and ``upper`` [rad] are the ends
    of the deflection in the fit: half that range beyond them little is added. ``left`` and
    ``blank`` [(N m)^2] are the mean squared residuals with and without it.
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
        known = knowledge(outside / (0.5 * (self.upper - self.lower)))
        return faded(known, self.offset + features @ self.size,
                     np.full(len(features), self.left), self.blank)

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'gear', 'size': self.size.tolist(),
                **{name: float(getattr(self, name)) for name in NUMBERS}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> GearModel:
        """Return the model of `plain`. Raises ValueError for a gear that is none."""
        found = from_plain(cls, content, 'residual')
        numbers = [getattr(found, name) for name in NUMBERS]
        if found.size.ndim != 1 or len(found.size) not in (2 + BESIDE, 4 + BESIDE) \
                or not np.isfinite([*found.size, *numbers]).all() or not found.lower < found.upper:
            raise ValueError('gear of a residual model')
        return found


def without_gears(models: Sequence[ResidualModel | None]) -> tuple[ResidualModel | None, ...]:
    """Return ``models`` with None for those of gears.

    Gears show what acts on the links: whoever looks for that must not take it off.
    """
    return tuple(None if isinstance(one, GearModel) else one for one in models)


@dataclass(frozen=True)
class GearRegression:
    """Fit the sizes by least squares to residual and load.

    Together they are what passes through the gear, links known or not. The residual alone would
    not do: the fit of the links leaves little of it in the training data, and more in any other.
    """

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for fewer points than features, and for a deflection that is constant.
        """
        checked(features[:, :2], residual, features.shape[1])
        load = features.shape[1] - BESIDE
        own = np.arange(features.shape[1]) != load
        varied = np.where(own, features - features.mean(axis=0), 0.0)
        scale = np.linalg.norm(varied, axis=0)
        scale[scale == 0.0] = 1.0
        passed = residual + features[:, load]
        size = np.linalg.lstsq(varied / scale, passed - passed.mean())[0] / scale
        size[load] = -1.0
        left = residual - features @ size
        bent = features[:, 0]
        return GearModel(frozen(size), float(left.mean()), float(bent.min()), float(bent.max()),
                         float(left.var()), float(np.mean(residual**2)))


#: features a residual is learned from, deflection and rate; the others are those of the ripple
LEARNED = 2


@dataclass(frozen=True, eq=False)
class RippleModel(ResidualModel):
    """A residual linear in the features after deflection and rate, and an ``inner`` one of these.

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
        """Variance [(N m)^2] where nothing is known of the features, the ripple left out."""
        return self.inner.blank

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {**self.inner.plain(), 'ripple': self.size.tolist()}

    @classmethod
    def of(cls, content: Mapping[str, Any], inner: ResidualModel) -> RippleModel:
        """Return the model of `plain`. Raises ValueError when there is no ripple."""
        size = number_array(content['ripple'])
        if size is None or size.ndim != 1 or not len(size) or not np.isfinite(size).all():
            raise ValueError('ripple of a gear')
        return cls(frozen(size), inner)


@dataclass(frozen=True)
class Rippling:
    """Fit the ripple by least squares, then ``inner`` to what is left; alone without features."""

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
    'gear': GearRegression(), 'gmr': Rippling(MixtureRegression()), 'rbf': Rippling(RadialBasis())}
MODELS: dict[str, Any] = {'gear': GearModel, 'gmr': MixtureModel, 'rbf': RadialModel}

#: kinds that are tried where the data chooses, each where it improves on those before it
CHOICES = ('gear', 'gmr')


def residual_from_plain(content: Mapping[str, Any]) -> ResidualModel:
    """Return a stored residual model. Raises ValueError when it is damaged."""
    kind = content.get('kind') if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or kind not in MODELS:
        raise ValueError(f'residual: model {shown(kind)} is not known')
    model: ResidualModel = MODELS[kind].from_plain(
        {key: value for key, value in content.items() if key not in ('kind', 'ripple')})
    return RippleModel.of(content, model) if 'ripple' in content else model


#: waves are cut off between these multiples of the cut-off, the latter below half the least rate
CUTOFF_MULTIPLE, GONE = 2.0, 3.5


def deflections(robot: RobotModel, samples: Samples) -> FloatArray | None:
    """Return features (N, n, k): motor minus link position [rad] and velocity [rad/s]; the ripple.

    The latter, two features, is there with gear ratios only, see `_ripple`. At the stamps of the
    effort. NaN for joints without motor states that can be used; None for samples without any.
    """
    if samples.motor_position is None or samples.motor_velocity is None:
        return None
    count = feature_count(robot)
    flat = samples.at_stamps(samples.with_past(
        lambda known: _features(robot, known).reshape(len(known), -1)))
    return flat.reshape(len(samples), -1, count)


def gear_load(model: LinearTorque, values: FloatArray) -> FloatArray:
    """Return the base parameters (b,) of ``values`` (b,) that are those of links, others zero.

    Their effort is what the links take of the torque that passes through the gears.
    """
    own = [np.full(len(kept), isinstance(block, RigidLinks))
           for block, kept in zip(model.blocks, model.pivots_by_block, strict=True)]
    return np.where(np.concatenate(own), values, 0.0)


def beside_load(features: FloatArray, load: FloatArray) -> FloatArray:
    """Return features (N, n, k + BESIDE) of gears: ``features`` (N, n, k), then the load.

    ``load`` (N, rows) [N m] is the effort of the links of the model at the same stamps.
    """
    return np.concatenate([features, load[:, :features.shape[1], None]], axis=2)


def seen(features: FloatArray, gear: bool) -> FloatArray:
    """Return ``features`` (N, k + BESIDE) of a joint for a model of its gear, (N, k) for others.
    """
    return features if gear else features[:, :-BESIDE]


def _features(robot: RobotModel, samples: Samples) -> FloatArray:
    """Return the features (N, n, k) of samples; the ripple is filtered as the motion.

    It passes the filter as a whole, since what it is made of is no smooth motion.
    """
    motor, speed = samples.motor_position, samples.motor_velocity
    assert motor is not None and speed is not None
    found = instant_features(
        robot, (samples.position, samples.velocity, motor, speed), samples.cutoff)
    waves = found[:, :, LEARNED:].reshape(len(found), -1)
    known = np.isfinite(waves).all(axis=0)
    if known.any():
        waves[:, known] = low_passed(waves[:, known].T, samples).T
        found[:, :, LEARNED:] = waves.reshape(len(found), robot.n, -1)
    return found


def instant_features(
    robot: RobotModel, motion: Sequence[FloatArray], cutoff: float | None
) -> FloatArray:
    """Return the features (N, n, k) of each instant by itself, nothing of them filtered.

    ``motion``: position and velocity of the joints, then of the motors, (N, n) each. Of the
    ripple, what turns too fast for a filter of ``cutoff`` [Hz] is left out.
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
    """Return (N, n, 2): the deflection times sine and cosine of twice the turn of every motor.

    Twice per turn the wave generator of a harmonic drive presses its flexspline. What turns too
    fast for the filter is cut off before, or it would come back as an alias.
    """
    rate = 2.0 * np.abs(ratios)
    phase = rate * motors[0]
    size = deflection
    if cutoff is not None:
        turns = rate * np.abs(motors[1]) / (2.0 * np.pi * cutoff)
        size = size * np.clip((GONE - turns) / (GONE - CUTOFF_MULTIPLE), 0.0, 1.0)
    return np.stack([size * np.sin(phase), size * np.cos(phase)], axis=2)


def known_joints(features: FloatArray) -> list[int]:
    """Return the joints whose features (N, n, k) are numbers throughout."""
    return [int(j) for j in np.flatnonzero(np.isfinite(features).all(axis=(0, 2)))]


class Deflection(LearntEffect):
    """Torque that the deflection of gears shows beyond the physics; parts are ResidualModels."""

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
        loops = Table(('loop', 'seconds'), (record.seconds or {}).items())
        return (Section('Loops and deflection', text=text, tables=tuple(
            table for table in (errors, loops) if table.rows)),)

    @classmethod
    def read(cls, content: Any, where: str = '') -> ResidualModel:
        """Return a stored residual model. Raises ValueError when it is damaged."""
        return residual_from_plain(content)

    def along(
        self, model: LinearTorque, values: FloatArray, samples: Samples, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, rows) [N m] of the residual models; zero without features."""
        robot, added = model.robot, np.zeros_like(effort)
        features = deflections(robot, samples)
        if features is not None:
            loaded = beside_load(features, model.effort(samples, gear_load(model, values)))
            for j in known_joints(features):
                one = self.parts[j]
                if one is not None:
                    added[:, j] = one.mean(seen(loaded[:, j], isinstance(one, GearModel)))
        return added

    def note(self, robot: RobotModel, samples: Samples) -> str:
        """Return a note on joints whose residual model lacks inputs; '' for none."""
        features = deflections(robot, samples)
        known = [] if features is None else known_joints(features)
        missing = [robot.joints[j] for j, one in enumerate(self.parts)
                   if one is not None and j not in known]
        if not missing:
            return ''
        return (f'the model of the deflection of {", ".join(missing)} is not used: there are no '
                'motor states; predicted by physics alone')

    @property
    def left_out(self) -> str:
        """That these models are left out, where there are any."""
        return 'Left out: what the deflection of gears shows beyond this model.'
