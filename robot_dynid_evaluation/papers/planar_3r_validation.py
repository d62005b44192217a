"""The identified planar 3R arm on a Fourier motion: figures 11 to 14 of Wang et al. 2025."""

from __future__ import annotations

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray, Samples
from robot_dynid.validation.validate import joint_score
from robot_dynid_evaluation.papers import RECOVERED, Row, compared, matched, shown
from robot_dynid_evaluation.papers.planar_3r_model import (
    AMPLITUDES,
    FREQUENCIES,
    NOISE,
    RATE,
    effort,
    friction,
    simulated,
    true_values,
)
from robot_dynid_evaluation.papers.screw_dynamics import MinimalDynamics

#: figure 11 as stated in the text, by joint: RMSE, quartiles, least and largest error [N m],
#: outliers
FIGURE_11 = (
    (23.76, '-18.73 11.17', '-86.59 50.3', '42'),
    (17.09, '-17.72 4.83', '-45.2 36.37', None),
    (3.55, '-1.18 3.88', '-7.86 7.6', None),
)
#: the Fourier motion, with harmonics up to 1 Hz; the zero-phase low-pass of accelerations [Hz]
#: (the paper does not state its own), and the samples dropped at either end, where it swings in
MOTION, CUTOFF, EDGE = FourierOptions(duration=5.0, harmonics=5), 2.0, 500
#: relative error of an RMSE from 5000 samples, three deviations, and room for the parameters
RMSE_ROOM = 0.05
#: accelerations follow the simulated ones in trend: least correlation. With table 3 itself it is
#: 0.93 at joint 3, whose inertia is least: the rest is effort noise
TREND = 0.8
#: states at which eq. 28 has to undo Newton-Euler, and how well, relative to the largest; every
#: how many states the mass matrix is looked at
CHECKED, SAME, EVERY = slice(2000, 2100), 1e-9, 10


def validation_rows(
    model: TorqueModel, values: FloatArray, rng: np.random.Generator
) -> list[Row]:
    """Return figures 11 to 14 for the parameters ``values`` (b,) beside the paper's."""
    motion = simulated(model, fourier_motion(model, rng), NOISE, rng)
    return _figure_11(model, values, motion) + _figures_12_to_14(model, values, motion)


def fourier_motion(model: TorqueModel, rng: np.random.Generator) -> Samples:
    """Return a random Fourier motion at 1 kHz within what the sinusoids reach (w / (2 pi))."""
    robot, w = model.robot, FREQUENCIES / (2.0 * np.pi)
    none = np.full(robot.n, np.nan)
    limits = MotionLimits(robot.joints, -AMPLITUDES, AMPLITUDES, AMPLITUDES * w,
                          AMPLITUDES * w**2, none, none)
    time = np.arange(0.0, MOTION.duration, 1.0 / RATE)
    motion = random_fourier(limits, MOTION, rng).sample(time)
    return Samples(robot.joints, time, motion.position, motion.velocity, motion.acceleration)


def _figure_11(model: TorqueModel, values: FloatArray, motion: Samples) -> list[Row]:
    assert motion.effort is not None
    measured, modelled = motion.effort, model.effort(motion, values)
    found = []
    for j, (rmse, quartiles, extremes, outliers) in enumerate(FIGURE_11):
        score = joint_score(measured[:, j], modelled[:, j])
        error = measured[:, j] - modelled[:, j]
        what, (low, _, high) = f'figure 11, joint {j + 1}', score.quartiles
        found += [
            Row(f'{what}: RMSE [N m]', rmse, score.rmse, RECOVERED,
                bool(abs(score.rmse - rmse) <= RMSE_ROOM * rmse),
                'the simulated noise has the deviation of the paper'),
            shown(f'{what}: quartiles [N m]', quartiles, f'{low:.2f} {high:.2f}',
                  'white noise is centred; the errors of the paper are not: its model leaves '
                  'something out'),
            shown(f'{what}: least and largest error [N m]', extremes,
                  f'{error.min():.2f} {error.max():.2f}', 'ours are those of the simulated noise'),
            shown(f'{what}: outliers', outliers, str(round(score.outliers * len(error))),
                  f'of {len(error)} samples, beyond 1.5 interquartile ranges; those of the '
                  'simulated noise'),
        ]
    return found


def _figures_12_to_14(model: TorqueModel, values: FloatArray, motion: Samples) -> list[Row]:
    """Return the errors of forward dynamics (eq. 28) against simulated accelerations."""
    assert motion.effort is not None
    true, few = true_values(model), motion.part(CHECKED)
    error = accelerations(model, true, few, effort(model, few, true)) - few.acceleration
    found = [
        compared('eq. 28 undoes Newton-Euler: relative error', 0.0,
                 float(np.abs(error).max() / np.abs(few.acceleration).max()), SAME,
                 'table 3 and exact efforts'),
        _least_eigenvalue(model, values, motion),
    ]
    expected = _filtered(motion.acceleration)
    computed = _filtered(accelerations(model, values, motion, motion.effort))
    for j in range(model.robot.n):
        correlation = float(np.corrcoef(computed[:, j], expected[:, j])[0, 1])
        rmse = float(np.sqrt(np.mean((computed[:, j] - expected[:, j]) ** 2)))
        found.append(Row(
            f'figure {12 + j}, joint {j + 1}: correlation of accelerations', 'good agreement',
            correlation, RECOVERED, bool(correlation >= TREND),
            f'RMSE {rmse:.3g} rad/s^2 of {np.std(expected[:, j]):.3g}; efforts with noise, below '
            f'{CUTOFF:g} Hz; the paper shows curves only'))
    return found


def _least_eigenvalue(model: TorqueModel, values: FloatArray, motion: Samples) -> Row:
    """Return whether the identified M(q) is positive definite in the whole range of motion."""
    minimal = minimal_dynamics(model, values)
    least = min(float(np.linalg.eigvalsh(minimal.mass_matrix(q))[0])
                for q in motion.position[::EVERY])
    return matched('least eigenvalue of M(q) along the motion [kg m^2]', '> 0', least,
                   least > 0.0)


def minimal_dynamics(model: TorqueModel, values: FloatArray) -> MinimalDynamics:
    """Return the forward dynamics of the links' share of the parameters ``values`` (b,)."""
    links = model.reduction.kept < 10 * model.robot.n
    return MinimalDynamics(model.robot, model.reduction.kept[links], values[links])


def accelerations(
    model: TorqueModel, values: FloatArray, motion: Samples, torque: FloatArray
) -> FloatArray:
    """Return qdd (N, n) of eq. 28 at the states of ``motion`` under ``torque`` (N, n)."""
    minimal, held = minimal_dynamics(model, values), friction(model, motion, values)
    states = zip(motion.position, motion.velocity, torque, held, strict=True)
    return np.array([minimal.acceleration(*state) for state in states])


def _filtered(signal: FloatArray) -> FloatArray:
    return zero_phase_low_pass(signal, CUTOFF, 1.0 / RATE)[EDGE:-EDGE]
