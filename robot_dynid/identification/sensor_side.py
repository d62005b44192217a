"""Efforts of motors and of torque sensors behind the gears, told apart by what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.effects import JointFriction, RotorInertia
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.held_out import HeldOut, held_out
from robot_dynid.identification.selection import Choice
from robot_dynid.robot.model import LINK, MOTOR
from robot_dynid.signals.prepare import Repaired, prepare
from robot_dynid.types import FloatArray

#: what shows lowers the held-out error of a joint by this share at least
SHOWS = 0.02


def sensor_warnings(
    experiment: Experiment, held: HeldOut, part: Sequence[Repaired], choice: Choice
) -> list[str]:
    """Return a warning where the effort looks like that of the other side of the gears.

    Motors show their rotors and friction: where neither lowers the held-out error of any joint,
    with ``held`` that of all parameters, it looks like torque sensors behind the gears. These show
    no rotors: where rotors lower it at half of the joints, it looks like motors; that is tried on
    the ``part`` of the recordings on which choices are made.
    """
    robot = experiment.model.robot
    if robot.drive.elastic:
        return []
    if robot.drive.shows_motors:
        gain = _gain(held.raw, _without_motors(experiment))
        if gain is None or np.any(gain > SHOWS):
            return []
        return ['neither rotors nor friction show in the effort of any joint (held-out errors are '
                f'{100.0 * float(gain.max()):.1f} % lower with them at most): it looks like that '
                f'of torque sensors behind the gears; then put sensor: {LINK} into the robot YAML']
    gain = _gain(*(held_out(Experiment.of(
        replace(choice.structure, rotor_inertia=rotors).torque_model(robot),
        [prepare(robot, one, choice.preprocessing) for one in part]).information).raw
        for rotors in (True, False)))
    assert gain is not None
    shown = [f'{name} {100.0 * share:.0f}' for name, share in zip(
        robot.joints, gain, strict=True) if share > SHOWS]
    if 2 * len(shown) < robot.n:
        return []
    return [f'rotors show in the effort, held-out errors are lower with them by [%]: '
            f'{", ".join(shown)}: it looks like that of motors, not of torque sensors behind the '
            f'gears; then put sensor: {MOTOR} into the robot YAML']


def _gain(with_them: FloatArray, without: FloatArray | None) -> FloatArray | None:
    """Return the share (n,) by which root mean squared errors are lower with some parameters."""
    if without is None:
        return None
    return np.asarray(1.0 - np.sqrt(with_them / np.maximum(without, 1e-300)))


def _without_motors(experiment: Experiment) -> FloatArray | None:
    """Return the squared held-out errors (n,) without rotors and friction, but for offsets.

    None where the model has neither.
    """
    own = {name for block in experiment.model.blocks
           if isinstance(block, RotorInertia | JointFriction)
           for name in block.names if not name.startswith('f0')}
    names = experiment.information.names
    kept = [i for i, name in enumerate(names) if name not in own]
    if len(kept) == len(names):
        return None
    return held_out(experiment.information.about(kept)).raw
