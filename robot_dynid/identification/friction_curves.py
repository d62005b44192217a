"""Friction over speed, from the sweeps among the recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from robot_dynid.estimation.friction_selection.law_request import NONE
from robot_dynid.estimation.friction_sweeps import FrictionCurve, friction_by_joint, friction_curve
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import shift
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.prepare import Preprocessing, Repaired
from robot_dynid.signals.single_joint_motion import (
    SingleJointMotion,
    least_travel,
    moving_seconds,
    single_joint_motions,
)

#: share of the motion of a recording of single joints in which one joint alone moves
SINGLE = 0.5


def single_joint_motions_of(
    robot: RobotModel, repaired: Repaired, settings: Preprocessing
) -> list[SingleJointMotion]:
    """Return the motions of single joints in a recording, with the torque of their motors.

    Only the lag of the effort is taken from ``settings``: nothing is filtered. Of a part of a
    longer recording its own rows count.
    """
    if repaired.averaging is not None:
        return []
    found: list[SingleJointMotion] = []
    for part in repaired.parts:
        assert part.effort is not None
        early = replace(part, effort=shift(part.effort, settings.effort_lag, repaired.step))
        # since one joint moves, its own motor is separated from the other that acts on it
        torque = robot.motor_torque(net_torque(robot, early))
        own = slice(None) if repaired.place is None else repaired.place.own(part.time)
        found += single_joint_motions(
            part.time[own], part.position[own], torque[own], least_travel(robot))
    return found


def moving_seconds_of(robot: RobotModel, repaired: Repaired) -> float:
    """Return the time [s] in which any joint moves; of a part of a recording in its own rows."""
    least = least_travel(robot)
    own = [slice(None) if repaired.place is None else repaired.place.own(part.time)
           for part in repaired.parts]
    return sum(moving_seconds(part.time[rows], part.position[rows], least)
               for part, rows in zip(repaired.parts, own, strict=True))


def one_at_a_time(motions: Sequence[SingleJointMotion], moving: float) -> bool:
    """Return whether a recording with these ``motions``, which moves for so many s, is of such.

    One in which a joint moves alone by chance is not.
    """
    return sum(motion.seconds for motion in motions) > SINGLE * moving


def held_notes(
    robot: RobotModel, repaired: Repaired, motions: Sequence[SingleJointMotion]
) -> tuple[str, ...]:
    """Return a warning for a fit of all efforts of a recording in which most joints hold.

    Efforts that show no friction of motors need none.
    """
    if robot.n == 1 or not robot.drive.shows_motors \
            or not one_at_a_time(motions, moving_seconds_of(robot, repaired)):
        return ()
    other = 'loops: three' if any(motion.steady for motion in motions) else '--method staged'
    return (f'{repaired.source}: one joint moves at a time, and the others hold by friction that '
            'no law knows, which this fit takes for that of links and laws: leave the recording '
            f'out, or take {other}',)


def friction_curves(
    robot: RobotModel, motions: Iterable[SingleJointMotion], recipe: Recipe
) -> tuple[list[FrictionCurve], list[str]]:
    """Return the curve of every joint that sweeps, and what is to be said about them.

    The law is that of the recipe, where it names one; its additions do not show in sweeps.
    """
    named = {joint: request.base for joint, request in zip(
        robot.joints, recipe.law_requests(robot), strict=False)}
    curves: list[FrictionCurve] = []
    notes: list[str] = []
    for name, sweeps in friction_by_joint(robot.joints, list(motions)).items():
        notes += sweeps.notes
        if sweeps.points:
            law = named[name] if named[name] != NONE else ''
            curve, more = friction_curve(name, sweeps.points, law or None)
            curves.append(curve)
            notes += more
    return curves, [f'friction curve: {note}' for note in notes]
