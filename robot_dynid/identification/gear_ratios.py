"""Gear ratios of the robot YAML against the waves that both encoders of a gear show.

A harmonic drive of ratio N has a kinematic error of 2 N waves per turn of its joint. With another
ratio in the robot YAML it is not found where it is sought, and passes for damping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.effects import GearEffects
from robot_dynid.effects.gears import PRESSES, Gear, presses_per_radian
from robot_dynid.effects.ripple import ABOVE_FAST
from robot_dynid.effects.ripple_search import RESOLVED, JointResidual, fit_ripple
from robot_dynid.identification.gear_effects import gear_effects
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.encoders import encoders_of
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.signals.prepare import Repaired, prepare
from robot_dynid.types import FloatArray, RawLog, Samples

#: Hz below which a deflection is that of the motion
MOTION = 5.0
#: length [s] of the pieces whose gains are compared
PIECE = 0.2
#: speed at which creep ends, as a share of the top speed
SLOW = 0.05


def ratio_warnings(
    model: IdentifiedModel, log: RawLog, recordings: Sequence[Repaired]
) -> list[str]:
    """Return a warning for each gear that shows kinematic error with another ratio than stated.

    ``log`` is one of the ``recordings`` without holes. The waves of its raw rows suggest ratios;
    one counts where the equation of the gear shows kinematic error with it, as with the ratio of
    the robot YAML it does not (`gear_effects`).
    """
    gears, given = model.torque_model.gears, model.robot.drive.gear_ratios
    own = model.structure.gears or (GearEffects(),) * len(gears)
    if given is None:
        return []
    ratios = np.array(given)
    for gear, effects in zip(gears, own, strict=True):
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
            f'{ratios[gear.joint]:.0f} has: correct gear_ratios; damping bears what the model '
            'leaves out'
            for gear, effects in zip(gears, _effects(model, ratios, recordings), strict=False)
            if effects.error and ratios[gear.joint] != given[gear.joint]]


def _effects(
    model: IdentifiedModel, ratios: FloatArray, recordings: Sequence[Repaired]
) -> tuple[GearEffects, ...]:
    """Return the effects of all gears with other ``ratios`` (n,), empty where there are none."""
    robot = replace(model.robot, drive=replace(model.robot.drive, gear_ratios=ratios))
    settings = replace(model.preprocessing, decimate=False)
    return gear_effects(robot, replace(model.structure, gears=()),
                        [prepare(robot, one, settings) for one in recordings])


def other_wave(robot: RobotModel, log: RawLog, gear: Gear, sought: float) -> float | None:
    """Return the order [1/rad] of the largest wave of a deflection.

    None where there is none, or it cannot be told from that ``sought`` [1/rad] over the travel of
    the joint. Waves are over the position of the motor in the same row, since they may be faster
    than rows are recorded.
    """
    encoder = encoders_of(robot, log)[gear.joint]
    if encoder.refused:
        return None
    assert log.motor_position is not None
    motor = log.motor_position[:, gear.joint] / encoder.factor
    bent, step = motor - log.position[:, gear.joint], float(np.median(np.diff(log.time)))
    left = bent - zero_phase_low_pass(bent[:, None], MOTION, step)[:, 0]
    time = np.maximum(np.gradient(log.time), 1e-6)
    velocity, motion = np.gradient(motor) / time, DistinctMotion()
    cells = motion.add(Samples(log.joints, log.time, log.position, np.gradient(
        log.position, axis=0) / time[:, None], np.zeros_like(log.position)))
    top = float(np.abs(velocity).max())
    waves = fit_ripple(JointResidual(
        motor, velocity, np.zeros_like(left), left, folds(motion.seconds, 0.0)[cells],
        np.floor((log.time - log.time[0]) / PIECE).astype(np.int64), SLOW * top, top / ABOVE_FAST,
        step)).waves
    apart = max(RESOLVED, 2.0 * np.pi / float(np.ptp(motor)))
    return waves[0].order if waves and abs(waves[0].order - sought) > apart else None
