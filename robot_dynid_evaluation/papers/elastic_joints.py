"""Robots with elastic joints: Zollo, Lopez et al. 2014, 10.1155/2014/843186.

A planar arm and the PUMA 560 are simulated; the normalised mean error is the mean over the base
parameters (those that are independently identifiable, true value not zero) of |found - true| /
|true|. Beside the paper's figures stand those of its method on our simulation, and ours: motion
and parameters estimated at once, given the noise of the sensors, and what `identify` finds from a
recording alone. Offsets and damping of the gears, which the paper has not, are left out of
the former two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from robot_dynid.estimation.errors_in_variables.latent_motion import Channel, fit
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.identified.structure import Structure
from robot_dynid.types import FloatArray, Progress, Samples
from robot_dynid_evaluation.papers import Row
from robot_dynid_evaluation.papers.elastic_joints_arm import (
    COUNTED,
    CREEP,
    STEP,
    ElasticArm,
    Motion,
    planar,
    puma,
    record,
)
from robot_dynid_evaluation.papers.elastic_joints_logged import logged

#: normalised mean errors of the paper: planar arm, without static friction, PUMA 560
PAPER, PAPER_MOVING, PAPER_PUMA = 0.103, 0.00862, 0.123
#: what ours shall be in terms of the paper's
WANTED, WANTED_PUMA = 0.1, 0.2
#: largest deflections of the planar arm [deg], mean over the joints of the PUMA [rad]
DEFLECTION, DEFLECTION_PUMA, SAME = (0.39, 0.10), 0.09, 0.02
#: signal-to-noise ratios [dB]
RATIOS = (20.0, 70.0, 80.0, 100.0, 200.0, np.inf)
#: filter of the paper: order, cut-off [Hz]
ORDER, CUTOFF = 5, 20.0
#: what a spline leaves of a motion without noise [rad, rad/s, rad/s^2]: noise below is taken as
#: this
FINEST = (COUNTED / np.sqrt(12.0), 5e-3, 0.2)
#: speed [rad/s] over which friction falls, to begin with; that over which it builds up at rest,
#: any below those of the equations that count
FALLEN, BUILT = 0.1, 0.01
SEED = 1


def rows(progress: Progress) -> list[Row]:
    """Return the paper's figures beside ours."""
    arm = planar()
    motion = record(arm, lambda stage, share: progress(stage, 0.2 * share))
    found = planar_rows(arm, motion)
    progress('signal-to-noise ratios', 0.25)
    found += noise_rows(arm, motion, RATIOS)
    arm = puma()
    motion = record(arm, lambda stage, share: progress(stage, 0.4 + 0.2 * share))
    progress('identifying the PUMA 560', 0.6)
    return found + puma_rows(arm, motion)


def planar_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return deflections and errors of the planar arm, from encoders that count."""
    found = [Row(f'2R: largest deflection of joint {j + 1} [deg]', paper, float(ours),
                 bool(abs(ours - paper) <= SAME),
                 'stiffness, rotors and inertia about the centre are not printed: assumed')
             for j, (paper, ours) in enumerate(zip(DEFLECTION, np.rad2deg(motion.deflection),
                                                   strict=True))]
    theirs = paper_errors(arm, counted(motion))
    ours, fallen = our_errors(arm, positions(motion))
    return [
        *found,
        Row('2R, method of the paper: normalised mean error', PAPER, mean(theirs), None,
            'static friction: the torque at which a motor breaks away, twice that in motion'),
        Row('2R, method of the paper: without static friction', PAPER_MOVING,
            mean(theirs, static=False)),
        Row('2R, ours: normalised mean error', PAPER, mean(ours),
            mean(ours) <= WANTED * PAPER,
            f'wanted: {WANTED:g} of the paper; {_fallen(arm, fallen)}'),
        Row('2R, ours: without static friction', PAPER_MOVING, mean(ours, static=False)),
        *logged_rows(arm, motion),
    ]


def logged_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return the errors of what `identify` finds from a recording of the planar arm."""
    found = logged(arm, motion)
    static = [e for name, e in found.errors.items() if name[:2] == 'fc']
    return [
        Row('2R, identify: normalised mean error', PAPER, mean(found.errors),
            mean(found.errors) <= WANTED * PAPER,
            f'wanted: {WANTED:g} of the paper; {found.choices}'),
        Row('2R, identify: without static friction', PAPER_MOVING,
            mean(found.errors, static=False)),
        Row('2R, identify: static friction, dry friction in motion; worst joint', None,
            f'{max(static):.2g} {found.moving.max():.2g}', None,
            'static: the greatest dry friction at any speed, found and simulated'),
    ]


def noise_rows(arm: ElasticArm, motion: Motion, ratios: Sequence[float]) -> list[Row]:
    """Return errors by signal-to-noise ratio, by the filter of the paper and by ours."""
    found, theirs, ours = [], {}, {}
    for ratio in ratios:
        channels = noisy(motion, ratio)
        theirs[ratio] = mean(paper_errors(arm, low_passed(motion, channels)))
        errors, fallen = our_errors(arm, (motion.time, channels, motion.effort))
        ours[ratio] = mean(errors)
        noise = f'{ratio:g} dB' if np.isfinite(ratio) else 'no noise'
        found.append(Row(f'2R, {noise}: filter of the paper and ours', None,
                         f'{theirs[ratio]:.3g} {ours[ratio]:.3g}', None,
                         _fallen(arm, fallen) + (
                             '; noise on position, velocity and acceleration, each by its own '
                             'deviation' if ratio == ratios[0] else '')))
    found.append(Row('2R, ours at 20 dB; the filter of the paper at 80 dB', theirs[80.0],
                     ours[20.0], ours[20.0] <= theirs[80.0], 'wanted: not above'))
    return found


def puma_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return deflection and errors of the PUMA 560, from encoders that count."""
    ours, fallen = our_errors(arm, positions(motion))
    theirs = paper_errors(arm, counted(motion))
    found = logged(arm, motion)
    return [
        Row('PUMA 560: largest deflection, mean over the joints [rad]', DEFLECTION_PUMA,
            float(motion.deflection.mean()), None, 'the motion of the paper is not printed'),
        Row('PUMA 560, method of the paper: normalised mean error', PAPER_PUMA, mean(theirs),
            None, 'on our simulation, deflections counted by encoders on the joint side'),
        Row('PUMA 560, ours: normalised mean error', PAPER_PUMA, mean(ours),
            mean(ours) <= WANTED_PUMA * PAPER_PUMA,
            f'wanted: {WANTED_PUMA:g} of the paper; {_fallen(arm, fallen)}; worst {_worst(ours)}'),
        Row('PUMA 560, identify: normalised mean error', PAPER_PUMA, mean(found.errors), None,
            f'{found.choices}; worst {_worst(found.errors)}'),
        Row('PUMA 560, identify: without static friction', None,
            mean(found.errors, static=False)),
    ]


def _fallen(arm: ElasticArm, speed: float) -> str:
    return f'friction falls over {speed:.3f} rad/s (simulated: {arm.fallen:g})'


def _worst(errors: dict[str, float]) -> str:
    """Name the three worst."""
    worst = sorted(errors, key=lambda name: -errors[name])[:3]
    return ', '.join(f'{name} {errors[name]:.2g}' for name in worst)


def mean(errors: dict[str, float], static: bool = True) -> float:
    """Return the mean of relative errors, with or without static friction."""
    return float(np.mean([e for name, e in errors.items() if static or name[:2] != 'fc']))


def model_of(arm: ElasticArm, friction: str, settings: dict[str, object]) -> TorqueModel:
    """Return the model of the arm with one law of friction."""
    return Structure.uniform(arm.robot, True, friction, settings).torque_model(arm.robot)


def errors_of(arm: ElasticArm, model: TorqueModel, values: FloatArray) -> dict[str, float]:
    """Return the relative errors of parameters (b,), by name."""
    return {name: float(abs(value / true - 1.0)) for name, value, true in zip(
        model.reduction.names, values, arm.base(model), strict=True)
        if abs(true) > 1e-9 and not name.startswith('fl')}


def chosen_of(model: TorqueModel) -> NDArray[np.bool_]:
    """Return a mask (b,) of the base parameters of the paper's model: no damping, no offsets."""
    return np.array([name[0] not in 'Ds' and name[:2] != 'f0' for name in model.reduction.names])


def our_errors(
    arm: ElasticArm, seen: tuple[FloatArray, Sequence[Channel], FloatArray]
) -> tuple[dict[str, float], float]:
    """Return the errors of the fit of motion and parameters, and the speed over which friction
    falls [rad/s]; ``seen`` time, channels, effort.
    """
    time, channels, effort = seen
    found = fit((lambda speed: falling(arm, speed), FALLEN), time, channels,
                np.hstack([effort, effort]), chosen_of(falling(arm, FALLEN)))
    return errors_of(arm, falling(arm, found.shape), found.values), found.shape


def falling(arm: ElasticArm, speed: float) -> TorqueModel:
    """Return the model whose dry friction falls from rest to ``speed`` [rad/s]."""
    return model_of(arm, 'coulomb+levelling', {'width': BUILT, 'levelling': {'speed': speed}})


def positions(motion: Motion) -> tuple[FloatArray, list[Channel], FloatArray]:
    """Return the measured positions, and the effort."""
    values = _counts(motion)
    spread = np.full(values.shape[1], FINEST[0])
    return motion.time, [Channel(0, values, spread)], motion.effort


def noisy(motion: Motion, ratio: float) -> list[Channel]:
    """Return position, velocity and acceleration with noise at a ratio [dB]."""
    generator, channels = np.random.default_rng(SEED), []
    signals = (motion.position, motion.velocity, motion.acceleration)
    for order, (values, least) in enumerate(zip(signals, FINEST, strict=True)):
        spread = values.std(axis=0) * 10.0 ** (-ratio / 20.0)
        seen = values + spread * generator.standard_normal(values.shape)
        channels.append(Channel(order, seen, np.maximum(spread, least)))
    return channels


def _counts(motion: Motion) -> FloatArray:
    return np.asarray(np.round(motion.position / COUNTED) * COUNTED)


def counted(motion: Motion) -> Motion:
    """Return the signals of the paper: counted, filtered, differentiated once and twice."""
    position = butterworth(_counts(motion))
    velocity = _difference(position)
    return replace(motion, position=position, velocity=velocity,
                   acceleration=_difference(velocity), effort=butterworth(motion.effort))


def low_passed(motion: Motion, channels: Sequence[Channel]) -> Motion:
    """Return noisy signals, each through the filter of the paper."""
    position, velocity, acceleration = (butterworth(c.values) for c in channels)
    return replace(motion, position=position, velocity=velocity, acceleration=acceleration,
                   effort=butterworth(motion.effort))


def butterworth(values: FloatArray) -> FloatArray:
    """Return (N, k) through the low-pass of the paper, begun at rest; delays all alike."""
    sections = signal.butter(ORDER, CUTOFF, fs=1.0 / STEP, output='sos')
    start = signal.sosfilt_zi(sections)[:, :, None] * values[0]
    return np.asarray(signal.sosfilt(sections, values, axis=0, zi=start)[0])


def _difference(values: FloatArray) -> FloatArray:
    """Return the first-order difference (N, k)."""
    return np.asarray(np.diff(values, axis=0, prepend=values[:1]) / STEP)


def paper_errors(arm: ElasticArm, motion: Motion) -> dict[str, float]:
    """Return the errors of ordinary least squares with Coulomb and viscous friction."""
    model = model_of(arm, 'coulomb', {'width': CREEP})
    chosen = chosen_of(model)
    samples = Samples(arm.robot.joints, motion.time, motion.position, motion.velocity,
                      motion.acceleration)
    columns = model.columns(samples)[:, chosen].transpose(0, 2, 1)
    design = columns.reshape(-1, columns.shape[2])
    target = np.hstack([motion.effort, motion.effort]).T.ravel()
    scale = np.linalg.norm(design, axis=0)
    values = np.zeros(len(chosen))
    values[chosen] = np.linalg.lstsq(design / scale, target, rcond=None)[0] / scale
    return errors_of(arm, model, values)
