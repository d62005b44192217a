"""Gears and encoders of elastic joints, with a rigid fit of the same data for comparison.

A harmonic drive of ratio N has a kinematic error of 2 N waves per turn of its joint. With a wrong
ratio in the robot YAML it is missed and appears as damping; the waves in both encoders show this.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from robot_dynid.effects import GearEffects
from robot_dynid.effects.deflection import drop_gears
from robot_dynid.effects.gears import PRESSES, STIFFNESS, WAVES, Gear, presses_per_radian
from robot_dynid.effects.ripple import ABOVE_FAST
from robot_dynid.effects.ripple_search import (
    CREEP_SHARE,
    GAIN_PIECE,
    RESOLVED,
    JointResidual,
    fit_ripple,
)
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimator
from robot_dynid.estimation.deflection_fit import DeflectionFit, fit_deflections
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.gathered import Fit, Gathered
from robot_dynid.identification.gear_effects import gear_effects
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import choose
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import GearRecord, MotorEncoder, RigidComparison
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import fill_holes
from robot_dynid.signals.encoders import encoders_of, noise, resolution
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.signals.plausible import drop_implausible
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.signals.turns import within_half_turn
from robot_dynid.types import FloatArray, RawLog, Samples

#: share by which a stiffness may come out too small without a warning
ATTENUATED = 0.01
#: share from which noise dominates a stiffness
UNKNOWN = 0.5
#: error ratio of the rigid model from which elasticity matters, and of the elastic model from
#: which it predicts efforts worse
MATTERS = LOSES = 1.1
#: fits that undo delays of encoders; the first has them from links that they bias
DELAY_FITS = 2
#: reasons for making a joint rigid, with the remedy
UNDETERMINED = 'the efforts leave its stiffness open; load it more, or move it faster'
WORSE = 'the elastic model predicts the held-out effort of {} worse; record another motion'


def record_gears(fit: Fit, gathered: Gathered, estimator: Estimator, recipe: Recipe) -> Fit:
    """Return the fit with its gears, encoders and a rigid fit in its record, with warnings.

    A robot without motor states is unchanged.
    """
    recordings = gathered.excerpt
    if not estimator.single_joint_motions:
        fit = fit.recorded(replace(
            fit.model.record, encoders=_deflections(fit, recordings)))
    model = fit.model
    if not model.torque_model.gears:
        return fit
    raw = fill_holes(drop_implausible(model.robot, gathered.logs[0])[0])[0]
    gears = gear_table(model, raw, recordings[0])
    record = replace(model.record, gears=gears,
                     rigid_beside=compare_with_rigid(model, recordings, recipe))
    return fit.recorded(record, *gear_warnings(gears), *ratio_warnings(model, raw, recordings))


def _deflections(fit: Fit, recordings: Sequence[Repaired]) -> tuple[DeflectionFit, ...]:
    """Return the causes of what the two encoders of each joint differ by."""
    model, samples = fit.model, []
    if any(part.motor_position is None for one in recordings for part in one.parts):
        return ()
    for one in recordings:
        with suppress(DataError):  # a part of a longer recording that is at rest or too short
            samples.append(prepare(model.robot, one, replace(
                model.preprocessing, decimate=False, encoder_delays=())))
    return fit_deflections(model.torque_model, fit.estimate.values, fit.estimate.covariance,
                           samples)


def joints_to_make_rigid(model: IdentifiedModel) -> dict[str, str]:
    """Return the elastic joints whose dynamics the recordings do not show, with the reason.

    Their stiffness is negative, or its interval contains infinity; or the elastic model predicts
    the effort of the joint worse on held-out data than the rigid one.
    """
    worse = {one.joint for one in model.record.rigid_beside
             if one.elastic_error > one.rigid_error * LOSES}
    open_ones = {gear.joint for gear in model.record.gears
                 if not gear.stiffness > interval_factor(np.inf) * gear.stiffness_std}
    return {gear.joint: UNDETERMINED if gear.joint in open_ones else WORSE.format(gear.joint)
            for gear in model.record.gears if gear.joint in worse | open_ones}


def delays_to_undo(model: IdentifiedModel) -> dict[str, float]:
    """Return the delays [s] of the link encoders of elastic joints, {} if they are undone."""
    undone = dict(zip(model.joints, model.preprocessing.encoder_delays, strict=False))
    elastic = [one for one in model.record.encoders if one.joint in model.elastic_joints]
    if not any(one.shows_delay(undone.get(one.joint, 0.0)) for one in elastic):
        return {}
    return {one.joint: one.delay.value for one in elastic if one.shows_delay(0.0)}


def gear_table(
    model: IdentifiedModel, raw: RawLog, repaired: Repaired
) -> tuple[GearRecord, ...]:
    """Return one entry per elastic joint; ``raw`` is the recording without holes."""
    robot = model.robot
    samples = prepare(robot, repaired, model.preprocessing)
    encoders, motors = encoders_of(robot, raw), raw.motor_position
    assert motors is not None
    periods = 1 if repaired.averaging is None else repaired.averaging.periods
    passed = 2.0 * model.preprocessing.cutoff * repaired.step
    table = []
    every = model.structure.gears or (GearEffects(),) * len(model.torque_model.gears)
    for gear, effects in zip(model.torque_model.gears, every, strict=True):
        j = gear.joint
        link, motor = raw.position[:, j], motors[:, j] / encoders[j].factor
        (stiffness, wide), (shift, loose), damping, inertia = (
            _value_and_std(model, gear.parameter(p)) for p in ('K', 's', 'D', 'Ia'))
        unbent = -shift / stiffness
        bent = samples.position[:, gear.motor] - samples.position[:, j] - unbent
        single = float(np.hypot(noise(link), noise(motor)))
        steps = resolution(link), resolution(motor)
        # rounding repeats with the motion, so averaging over periods does not reduce it
        left = _averaged_noise(single, steps, periods) * float(np.sqrt(passed))
        spread = float(np.std(bent))
        table.append(GearRecord(
            robot.joints[j], stiffness, wide, float(encoders[j].offset + unbent),
            abs(loose / stiffness), float(np.sqrt(np.mean(bent**2))), float(np.abs(bent).max()),
            float(steps[0]), float(steps[1]), single,
            (left / spread)**2 if spread else 1.0, *damping, *inertia,
            *_kinematic_error(model, gear),
            *_hysteresis(model, [gear.parameter(stop) for stop in effects.stops])))
    return tuple(table)


def _kinematic_error(model: IdentifiedModel, gear: Gear) -> tuple[float, float]:
    """Return the amplitude [rad] of the kinematic error and its deviation, zero without one."""
    names = [gear.parameter(wave) for wave in WAVES[:2]]
    if names[0] not in model.names:
        return 0.0, 0.0
    values, std = np.array([_value_and_std(model, name) for name in names]).T
    stiffness, size = _value_and_std(model, gear.parameter(STIFFNESS))[0], float(np.hypot(*values))
    return abs(size / stiffness), abs(float(np.hypot(*(values * std))) / (size * stiffness))


def _hysteresis(model: IdentifiedModel, names: Sequence[str]) -> tuple[float, float]:
    """Return the sum [N m] of the amplitudes ``names`` and its deviation."""
    columns = [model.names.index(name) for name in names]
    spread = np.linalg.norm(model.covariance_factor[:, columns].sum(axis=1)) if columns else 0.0
    return float(model.values[columns].sum()), float(spread)


def _averaged_noise(noise: float, steps: tuple[float, float], periods: int) -> float:
    """Return the noise [rad] of the mean of ``periods`` deflections."""
    rounding = (steps[0]**2 + steps[1]**2) / 12.0
    return float(np.sqrt(max(noise**2 - rounding, 0.0) / periods + rounding))


def _value_and_std(model: IdentifiedModel, name: str) -> tuple[float, float]:
    i = model.names.index(name)
    return float(model.values[i]), float(model.std[i])


def gear_warnings(gears: Sequence[GearRecord]) -> list[str]:
    """Return warnings about gears: effects, negative damping, deflections in the noise."""
    warnings = [f'{gear.joint}: {_effects(gear)}' for gear in gears
             if gear.kinematic_error or gear.hysteresis]
    warnings += [
        f'{gear.joint}: the damping of its gear is {gear.damping:.3g} +- {reach:.2g} N m s/rad, '
        'which is impossible: it absorbs friction behind the gear, hysteresis or a late encoder; '
        'use method feasible, which bounds it, or correct the cause; rollouts use no damping'
        for gear in gears
        if gear.damping < -(reach := interval_factor(np.inf) * gear.damping_std)]
    for gear in gears:
        if gear.attenuation <= ATTENUATED:
            continue
        step = max(gear.resolution_link, gear.resolution_motor)
        what = f'the steps of its encoders, {1e3 * step:.2g} mrad' if step else \
            f'the noise of its encoders, {1e3 * gear.noise:.2g} mrad'
        ratio = gear.deflection_rms / (step or gear.noise)
        finer = 'use finer encoders' if step else 'average a periodic motion'
        lost = 'is undetermined' if gear.attenuation > UNKNOWN else \
            f'least squares underestimates by about {100 * gear.attenuation:.1g} %'
        warnings.append(
            f'{gear.joint}: its gear deflects by {1e3 * gear.deflection_rms:.2g} mrad (RMS), '
            f'{ratio:.2g} times {what}: too little for its stiffness, which {lost}; '
            f'load the joint more, or {finer}')
    return warnings


def _effects(gear: GearRecord) -> str:
    """Return the effects in the model of a gear in words, and where they are omitted."""
    waves = f'kinematic error of {1e6 * gear.kinematic_error:.2g} microrad ' \
        f'({gear.stiffness * gear.kinematic_error:.2g} N m)'
    loop = f'hysteresis of {gear.hysteresis:.2g} N m'
    if not gear.hysteresis:
        return f'the model of its gear has {waves}; inverse with stiff gears and exports omit ' \
            'it'
    has, it = (f'{waves} and {loop}', 'both') if gear.kinematic_error else (loop, 'it')
    return f'the model of its gear has {has}; forward dynamics of single states omits ' \
        f'hysteresis, inverse with stiff gears and exports omit {it}'


def compare_with_rigid(
    model: IdentifiedModel, recordings: Sequence[Repaired], recipe: Recipe
) -> tuple[RigidComparison, ...]:
    """Return the held-out errors of a rigid and of the elastic model, by joint.

    Both by weighted least squares from the same recordings, with equal weight per sample, at the
    same cut-off: RMS [N m] of the whole effort of each joint. The rigid fit has its own effort
    lag, and its own width of the friction ramp if the law is prescribed. Joint torque sensors are
    excluded from both, because the rigid model cannot use them.
    """
    robot, structure, settings = model.robot, model.structure, model.preprocessing
    simple = replace(recipe.with_simple_laws(robot), cutoff=settings.cutoff)
    choice = choose(robot.rigid, recordings, simple, lambda *_: None)
    chosen = any(request.auto for request in recipe.law_requests(robot))
    rigid = structure if chosen else choice.structure
    stiff = _squares(robot.rigid, rigid, choice.preprocessing, recordings)
    without_sensors = replace(robot, drive=replace(robot.drive, torque_sensors=()))
    soft = _squares(without_sensors, structure, settings, recordings)
    elastic = {gear.joint for gear in model.torque_model.gears}
    return tuple(RigidComparison(name, j in elastic, float(a), float(b), bool(a > MATTERS * b))
                 for j, (name, a, b) in enumerate(zip(robot.joints, np.sqrt(stiff), np.sqrt(soft),
                                                      strict=False)))


def _squares(
    robot: RobotModel, structure: Structure, settings: Preprocessing,
    recordings: Sequence[Repaired],
) -> FloatArray:
    """Return the held-out mean squared errors (rows,)."""
    torque = structure.torque_model(robot)
    samples = (prepare(torque.robot, one, settings) for one in recordings)
    return held_out(Experiment.of(torque, samples).information).raw


#: frequency [Hz] below which a deflection belongs to the motion
MOTION_FREQUENCY = 5.0


def ratio_warnings(
    model: IdentifiedModel, log: RawLog, recordings: Sequence[Repaired]
) -> list[str]:
    """Return a warning for each gear that shows kinematic error with another ratio than stated.

    ``log`` is one of the ``recordings`` without holes. The waves in its raw rows suggest ratios;
    one counts if the equation of the gear shows kinematic error with it, and not with the ratio of
    the robot YAML (`gear_effects`).
    """
    gears, given = model.torque_model.gears, model.robot.drive.gear_ratios
    current = model.structure.gears or (GearEffects(),) * len(gears)
    if given is None:
        return []
    ratios = np.array(given)
    for gear, effects in zip(gears, current, strict=True):
        sought = abs(presses_per_radian(model.robot, gear))
        order = None if effects.error or not sought else other_wave(
            model.robot, log, gear, sought)
        if order is not None:
            ratios[gear.joint] = order / PRESSES
    if np.array_equal(ratios, given):
        return []
    return [f'{model.joints[gear.joint]}: its gear shows no kinematic error with gear_ratios '
            f'{given[gear.joint]:g}, but one of {PRESSES * ratios[gear.joint]:.0f} waves per turn '
            'of the joint, as a harmonic drive with a ratio of about '
            f'{ratios[gear.joint]:.0f} has: correct gear_ratios, or damping absorbs the error'
            for gear, effects in zip(gears, _effects_with(model, ratios, recordings), strict=False)
            if effects.error and ratios[gear.joint] != given[gear.joint]]


def _effects_with(
    model: IdentifiedModel, ratios: FloatArray, recordings: Sequence[Repaired]
) -> tuple[GearEffects, ...]:
    """Return the effects of all gears with other ``ratios`` (n,), empty if there are none."""
    robot = replace(model.robot, drive=replace(model.robot.drive, gear_ratios=ratios))
    settings = replace(model.preprocessing, decimate=False)
    return gear_effects(robot, replace(model.structure, gears=()),
                        [prepare(robot, one, settings) for one in recordings])


def other_wave(robot: RobotModel, log: RawLog, gear: Gear, sought: float) -> float | None:
    """Return the order [1/rad] of the largest wave of a deflection.

    None if there is none, or if it is indistinguishable from ``sought`` [1/rad] over the travel of
    the joint. Waves are over the position of the motor in the same row, because they may be faster
    than the recording rate.
    """
    encoder = encoders_of(robot, log)[gear.joint]
    if encoder.refused:
        return None
    assert log.motor_position is not None
    motor = log.motor_position[:, gear.joint] / encoder.factor
    bent, step = motor - log.position[:, gear.joint], float(np.median(np.diff(log.time)))
    left = bent - zero_phase_low_pass(bent[:, None], MOTION_FREQUENCY, step)[:, 0]
    time = np.maximum(np.gradient(log.time), 1e-6)
    velocity, motion = np.gradient(motor) / time, DistinctMotion()
    cells = motion.add(Samples(log.joints, log.time, log.position, np.gradient(
        log.position, axis=0) / time[:, None], np.zeros_like(log.position)))
    top = float(np.abs(velocity).max())
    waves = fit_ripple(JointResidual(
        motor, velocity, np.zeros_like(left), left, folds(motion.seconds, 0.0)[cells],
        np.floor((log.time - log.time[0]) / GAIN_PIECE).astype(np.int64), CREEP_SHARE * top,
        top / ABOVE_FAST, step)).waves
    apart = max(RESOLVED, 2.0 * np.pi / float(np.ptp(motor)))
    return waves[0].order if waves and abs(waves[0].order - sought) > apart else None


#: most recordings evaluated
GEAR_RECORDINGS = 5


def record_motor_encoders(
    fit: Fit, gathered: Gathered, estimator: Estimator, recipe: Recipe
) -> Fit:
    """Return the fit with the relation of its motor encoders to its joints in its record.

    Joints whose deflection the model does not use are omitted.
    """
    return fit.recorded(replace(
        fit.model.record, motor_encoders=motor_encoders(fit.model, gathered.logs)))


def motor_encoders(model: IdentifiedModel, logs: Sequence[RawLog]) -> tuple[MotorEncoder, ...]:
    """Return the relations of motor encoders in the first GEAR_RECORDINGS recordings, as read."""
    learned = drop_gears(model.parts_of('residual'))
    joints = [j for j, joint in enumerate(model.joints)
           if joint in model.elastic_joints or learned[j] is not None]
    by_joint: dict[int, list[MotorEncoder]] = {j: [] for j in joints}
    for log in islice(logs, GEAR_RECORDINGS if joints else 0):
        try:
            raw = fill_holes(drop_implausible(model.robot, log)[0])[0]
            encoders = encoders_of(model.robot, raw)
            offsets = np.array([encoder.offset for encoder in encoders])
            if model.robot.drive.coupling is None:  # each recording may begin in another turn
                offsets = within_half_turn(model.robot, offsets)
            for j, encoder in enumerate(encoders):
                if j in by_joint and not encoder.refused:
                    by_joint[j].append(_encoder(model, raw, j, (encoder.factor, offsets[j])))
        except DataError:
            continue  # without motor states
    return tuple(_combine_encoders(encoders) for encoders in by_joint.values() if encoders)


def _encoder(
    model: IdentifiedModel, log: RawLog, joint: int, relation: tuple[float, float]
) -> MotorEncoder:
    factor, offset = relation
    assert log.motor_position is not None
    motor = log.motor_position[:, joint] / factor
    single = float(np.hypot(noise(log.position[:, joint]), noise(motor)))
    step = max(float(np.median(np.diff(log.time))), 1e-6)
    rate = np.sqrt(2.0) * single / step
    if log.velocity is not None and log.motor_velocity is not None:
        rate = np.hypot(noise(log.velocity[:, joint]),
                        noise(log.motor_velocity[:, joint] / factor))
    return MotorEncoder(model.joints[joint], float(factor), float(offset), 0.0, single,
                        float(rate))


def _combine_encoders(encoders: Sequence[MotorEncoder]) -> MotorEncoder:
    """Return one encoder from several recordings of a joint."""
    offset, single, rate = np.array([[e.offset, e.noise, e.rate_noise] for e in encoders]).T
    spread = float(np.std(offset, ddof=1)) if len(encoders) > 1 else 0.0
    return replace(encoders[0], offset=float(np.mean(offset)), offset_std=spread,
                   noise=float(np.sqrt(np.mean(single**2))),
                   rate_noise=float(np.sqrt(np.mean(rate**2))))
