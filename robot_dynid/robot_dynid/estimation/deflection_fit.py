"""Fit of the deflection between the two encoders of each joint to its causes.

The torque through the gears is that of the identified links and counterbalances. Its uncertainty
counts: an error of a link parameter moves the coefficients like the deflection it would cause.
Deviations are those of scattered stretches of time and motion (`batch_covariance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction, RotorInertia
from robot_dynid.effects.deflection_causes import CAUSES, Deflected
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import Regression, TorqueModel, batch_samples, chunks
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.least_squares import batch_covariance, joint_weights, solve
from robot_dynid.types import FloatArray, Samples

#: what a fit determines or leaves open
QUANTITIES = (*CAUSES, 'zero')
#: symbol of the delay
LATE = 't'
#: Gauss-Newton steps for the delay, whose part of second order is half its square times the
#: acceleration
DELAY_ROUNDS = 3


@dataclass(frozen=True)
class Determined:
    """A quantity with its standard deviation and 95 % interval; ``determined``: without zero.

    That of a stiffness comes from its compliance: the upper bound is infinite if that may be zero,
    and so is the value if it is not positive. A damping is determined if it is above zero.
    """

    value: float
    std: float
    lower: float
    upper: float
    determined: bool


@dataclass(frozen=True)
class DeflectionFit:
    """Causes of the deflection of one ``joint``, in SI units of the joint side.

    ``stiffness`` [N m/rad], ``damping`` [N m s/rad], ``delay`` [s] of the link encoder behind the
    motor's, ``hysteresis`` and ``kinematic_error`` [rad], rms along the motion, ``zero`` [rad]
    in the middle of the range. ``rms`` [rad] of the deflection, of the ``residual``, and of what
    the delay adds, ``late``.
    """

    joint: str
    stiffness: Determined
    damping: Determined
    delay: Determined
    hysteresis: Determined
    kinematic_error: Determined
    zero: Determined
    rms: float
    residual: float
    late: float = 0.0

    def shows_delay(self, undone: float) -> bool:
        """Return True if the delay is determined, and what is not ``undone`` [s] of it counts.

        That adds more to the deflection than all its causes leave unexplained: hysteresis of
        another law looks like a smaller delay, which would take its place.
        """
        left = abs(self.delay.value - undone)
        return self.delay.determined and left * self.late > self.residual * abs(self.delay.value)

    @property
    def determined(self) -> tuple[str, ...]:
        """The causes that the motion determines."""
        return tuple(name for name in QUANTITIES if getattr(self, name).determined)

    @property
    def open(self) -> tuple[str, ...]:
        """The causes that the motion leaves open."""
        return tuple(name for name in QUANTITIES if name not in self.determined)


def fit_deflections(
    model: TorqueModel, values: FloatArray, covariance: FloatArray, recordings: Sequence[Samples]
) -> tuple[DeflectionFit, ...]:
    """Return the fit of every joint with motor states in all ``recordings``, not decimated.

    ``values`` (b,) and ``covariance`` (b, b) are those of the base parameters of the ``model``.
    """
    motors = [_motors(model, one) for one in recordings]
    if not motors:
        return ()
    # torque behind the gear: neither rotor nor friction of the motor pass it
    behind = np.flatnonzero(~model.base_of(JointFriction, RotorInertia))
    spread = np.nan_to_num(covariance[np.ix_(behind, behind)], posinf=0.0)
    joints = [j for j in range(model.robot.n) if all(np.isfinite(one[:, j]).all()
                                                     for one in motors)]
    if not joints:
        return ()
    columns = [_torque_columns(model, behind, joints, one) for one in recordings]
    return tuple(_fit_joint(
        (model.robot.joints[j], j), recordings,
        [(motor[:, j], one[place]) for motor, one in zip(motors, columns, strict=True)],
        values[behind], spread) for place, j in enumerate(joints))


def _motors(model: TorqueModel, samples: Samples) -> FloatArray:
    """Return the motor positions (N, n) on the joint side, NaN where there are none."""
    if samples.motor_position is not None:
        return samples.motor_position
    motors = np.full((len(samples), model.robot.n), np.nan)
    for gear in model.gears:
        motors[:, gear.joint] = samples.position[:, gear.motor]
    return motors


def _torque_columns(
    model: TorqueModel, behind: NDArray[np.int64], joints: Sequence[int], samples: Samples
) -> FloatArray:
    """Return the torque (joints, b, N) behind the gears by each of the parameters ``behind``."""
    on_grid = samples.with_motion(lambda whole: whole)
    regression = Regression(model, on_grid)
    columns = np.empty((len(joints), len(behind), len(samples)))
    for rows in chunks(samples):
        columns[:, :, rows] = regression.columns(rows)[np.ix_(np.array(joints), behind)]
    return columns


def _fit_joint(
    of: tuple[str, int], recordings: Sequence[Samples],
    measured: Sequence[tuple[FloatArray, FloatArray]], values: FloatArray, spread: FloatArray,
) -> DeflectionFit:
    """Fit one joint, its name and number in ``of``.

    ``measured`` of each recording: motor (N,) and the torque (b, N) by ``values`` (b,), whose
    covariance is ``spread`` (b, b).
    """
    name, joint = of
    positions = np.concatenate([one.position[:, joint] for one in recordings])
    middle, travel = 0.5 * float(positions.min() + positions.max()), float(np.ptp(positions))
    late = 0.0
    symbols = tuple(symbol for cause in CAUSES.values() for symbol in cause.symbols)
    for _ in range(DELAY_ROUNDS):
        tables = [_table(Deflected(samples, joint, motor, values @ torque, late, middle, travel))
                  for samples, (motor, torque) in zip(recordings, measured, strict=True)]
        information = _information(symbols, recordings, tables)
        weights = joint_weights(information)
        solution = solve(information, weights)
        late = float(solution.values[symbols.index(LATE)])
    covariance, degrees = batch_covariance(information, weights, solution)
    design = np.concatenate([table - table.mean(axis=1, keepdims=True) for table in tables], 1)
    # an error of the torque is an error of the deflection it explains
    change = -solution.values[0] * np.linalg.lstsq(
        design[:-1].T, np.concatenate([torque for _, torque in measured], axis=1).T, rcond=None)[0]
    covariance = covariance + change @ spread @ change.T
    means = np.array([table.mean(axis=1) for table in tables])
    return _quantities(name, (solution.values, covariance, degrees), design, means)


def _table(motion: Deflected) -> FloatArray:
    """Return the columns of all causes, then the measured deflection (k + 1, N)."""
    return np.concatenate([*(cause.columns(motion) for cause in CAUSES.values()),
                           motion.measured[None]])


def _information(
    symbols: tuple[str, ...], recordings: Sequence[Samples], tables: Sequence[FloatArray]
) -> Information:
    """Return the information about the coefficients, with a zero of its own in each recording."""
    accumulator = Accumulator(symbols, np.ones((1, len(symbols)), dtype=bool),
                              batch_samples(recordings[0]), sum(map(len, recordings)))
    for samples, table in zip(recordings, tables, strict=True):
        accumulator.begin(samples)
        centred = table - table.mean(axis=1, keepdims=True)
        for rows in chunks(samples):
            bent = centred[-1, rows, None]
            accumulator.add(centred[None, :-1, rows], bent, bent)
    return accumulator.information()


def _quantities(
    joint: str, estimate: tuple[FloatArray, FloatArray, int], design: FloatArray,
    means: FloatArray,
) -> DeflectionFit:
    """Return physical quantities from the coefficients, their covariance and degrees of freedom.

    ``design`` (k + 1, N): columns and deflection about their ``means`` (recordings, k + 1).
    """
    values, covariance, degrees = estimate
    factor = interval_factor(degrees)
    places = iter(range(len(values)))
    place = {name: [next(places) for _ in cause.symbols] for name, cause in CAUSES.items()}

    def of(value: float, variance: float) -> Determined:
        deviation = float(np.sqrt(max(variance, 0.0)))
        reach = factor * deviation
        return Determined(value, deviation, value - reach, value + reach, abs(value) > reach)

    def single(name: str) -> Determined:
        i, = place[name]
        return of(float(values[i]), float(covariance[i, i]))

    soft = single('stiffness')
    stiffness = Determined(
        1.0 / soft.value if soft.value > 0.0 else np.inf, soft.std / soft.value**2,
        1.0 / soft.upper if soft.upper > 0.0 else np.inf,
        1.0 / soft.lower if soft.lower > 0.0 else np.inf, soft.lower > 0.0)
    both = [*place['stiffness'], *place['damping']]
    slope = np.array([2.0 * values[both[1]] / soft.value**3, -1.0 / soft.value**2])
    damping = of(-float(values[both[1]]) / soft.value**2,
                 slope @ covariance[np.ix_(both, both)] @ slope)
    damping = replace(damping, determined=stiffness.determined and damping.lower > 0.0)

    def along(name: str) -> Determined:
        square = design[place[name]] @ design[place[name]].T / design.shape[1]
        part, spread = values[place[name]], covariance[np.ix_(place[name], place[name])]
        return of(float(np.sqrt(part @ square @ part)), np.trace(square @ spread))

    zeros = means[:, -1] - means[:, :-1] @ values
    mean = means[:, :-1].mean(axis=0)
    scatter = np.var(zeros, ddof=1) / len(zeros) if len(zeros) > 1 else 0.0
    return DeflectionFit(
        joint, stiffness, damping, single('delay'), along('hysteresis'),
        along('kinematic_error'),
        of(float(zeros.mean()), mean @ covariance @ mean + scatter),
        float(np.std(design[-1])), float(np.std(design[-1] - values @ design[:-1])),
        along('delay').value)
