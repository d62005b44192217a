"""Friction over speed, and three loops: friction from sweeps, links, residual.

After the first iteration, friction is fitted to the effort without links and residual. Fitting
friction and links at once is the limit of many such iterations without a residual.

Source: Actuators 2023, 12, 454, section 5 and figure 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimator
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.law_request import NONE
from robot_dynid.estimation.friction_sweeps import FrictionCurve, friction_by_joint, friction_curve
from robot_dynid.estimation.least_squares import LeastSquares
from robot_dynid.friction import FrictionLaw
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import shift
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.prepare import Preprocessing, Repaired, repair
from robot_dynid.signals.servo import delayed
from robot_dynid.signals.single_joint_motion import (
    SingleJointMotion,
    least_travel,
    moving_seconds,
    single_joint_motions,
)
from robot_dynid.types import FloatArray, RawLog

#: least share of the motion of a recording of single joints in which one joint moves alone
SINGLE = 0.5


def single_joint_motions_of(
    robot: RobotModel, repaired: Repaired, settings: Preprocessing
) -> list[SingleJointMotion]:
    """Return the motions of single joints in a recording, with the torque of their motors.

    Only the effort lag is taken from ``settings``: nothing is filtered. For a part of a
    longer recording its own rows count.
    """
    if repaired.averaging is not None:
        return []
    motions: list[SingleJointMotion] = []
    for part in repaired.parts:
        assert part.effort is not None
        part, effort, lag = delayed(robot, part, part.time, part.effort, settings.effort_lag)
        early = replace(part, effort=shift(effort, lag, repaired.step))
        # one joint moves, so its own motor is separated from the other that acts on it
        torque = robot.motor_torque(net_torque(robot, early))
        rows = slice(None) if repaired.place is None else repaired.place.own(part.time)
        motions += single_joint_motions(
            part.time[rows], part.position[rows], torque[rows], least_travel(robot))
    return motions


def moving_seconds_of(robot: RobotModel, repaired: Repaired) -> float:
    """Return the time [s] in which any joint moves, in the own rows of a part of a recording."""
    least = least_travel(robot)
    row_masks = [slice(None) if repaired.place is None else repaired.place.own(part.time)
                 for part in repaired.parts]
    return sum(moving_seconds(part.time[rows], part.position[rows], least)
               for part, rows in zip(repaired.parts, row_masks, strict=True))


def moves_one_at_a_time(motions: Sequence[SingleJointMotion], moving: float) -> bool:
    """Return True if joints move one at a time in ``motions``, in most of the ``moving`` time [s].

    Motions in which a joint moves alone by chance do not count.
    """
    return sum(motion.seconds for motion in motions) > SINGLE * moving


def held_notes(
    robot: RobotModel, repaired: Repaired, motions: Sequence[SingleJointMotion]
) -> tuple[str, ...]:
    """Return a warning for a fit of all efforts of a recording in which most joints hold.

    Efforts without motor friction need none.
    """
    if robot.n == 1 or not robot.drive.shows_motors \
            or not moves_one_at_a_time(motions, moving_seconds_of(robot, repaired)):
        return ()
    other = 'loops: three' if any(motion.steady for motion in motions) else '--method staged'
    return (f'{repaired.source}: one joint moves at a time, and the static friction of the others '
            f'biases this fit: omit the recording, or use {other}',)


def friction_curves(
    robot: RobotModel, motions: Iterable[SingleJointMotion], recipe: Recipe
) -> tuple[list[FrictionCurve], list[str]]:
    """Return the friction curve of every joint that sweeps, and notes.

    The law is that of the recipe, if it names one; its additions do not show in sweeps.
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


T = TypeVar('T')
FRICTION, LINKS, RESIDUAL = 'friction', 'links', 'residual'


@dataclass
class Stopwatch:
    """Adds up the duration of stages by ``clock`` [s]; without one it measures nothing."""

    clock: Callable[[], float] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        """Return the result of ``work`` and add its duration to ``stage``."""
        if self.clock is None:
            return work()
        started = self.clock()
        try:
            return work()
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + self.clock() - started


@dataclass(frozen=True, eq=False)
class FrictionStep:
    """Friction from sweeps: the law of every axis, ``values`` by name such as fcp1."""

    structure: Structure
    values: Mapping[str, float]


def sweep_motions(
    robot: RobotModel, log: RawLog, recipe: Recipe
) -> tuple[list[SingleJointMotion], float]:
    """Return the motions of single joints in a recording, and the time [s] any joint moves."""
    settings = Preprocessing(1.0, effort_lag=recipe.effort_lag or 0.0)  # nothing is filtered
    repaired = repair(robot, log, recipe.rate)
    return (single_joint_motions_of(robot, repaired, settings),
            moving_seconds_of(robot, repaired))


def has_sweeps(motions: Sequence[SingleJointMotion], moving: float) -> bool:
    """Return True if a recording with these ``motions`` in ``moving`` s consists of sweeps.

    While one joint sweeps the others stick with unmodelled friction, so such a recording serves
    the first loop only.
    """
    return any(motion.steady for motion in motions) and moves_one_at_a_time(motions, moving)


def friction_step(
    robot: RobotModel, motions: Sequence[SingleJointMotion], recipe: Recipe
) -> FrictionStep:
    """Fit a law to (tau_there - tau_back) / 2 of every joint.

    Raises DataError naming the joints without sweeps.
    """
    if robot.drive.coupling is not None:
        raise DataError(f'{robot.name}: sweeps of single joints do not excite the friction of '
                        'motors that turn with several joints: use loops: joint')
    curves, notes = friction_curves(robot, motions, recipe)
    fits = {c.joint: (c.name, c.fit) for c in curves if c.fit is not None}
    missing = [joint for joint in robot.joints if joint not in fits]
    if missing:
        detail = f' ({"; ".join(notes)})' if notes else ''
        raise DataError(f'loops: three needs sweeps of every joint, there and back at constant '
                        f'speeds, at three speeds or more; none of {", ".join(missing)}{detail}. '
                        "Design them with --type constant-velocity, --options '{speeds: 8}' for "
                        'the laws with more parameters, or use loops: joint')
    laws: list[tuple[str, FrictionLaw]] = []
    values: dict[str, float] = {}
    for joint, label in zip(robot.joints, axes_of(robot).labels, strict=True):
        name, fit = fits[joint]
        assert fit is not None
        laws.append((name, fit.law))
        values |= {f'{p}{label}': float(v)
                   for p, v in zip(fit.law.parameters, fit.values, strict=True)}
    return FrictionStep(Structure.of(recipe.rotors_of(robot), laws, None), values)


def friction_parameters(model: TorqueModel) -> NDArray[np.bool_]:
    """Return a mask (b,) of the base parameters of friction."""
    masks = [np.full(len(pivots), isinstance(block, JointFriction))
             for block, pivots in zip(model.blocks, model.pivots_by_block, strict=True)]
    return np.asarray(np.concatenate(masks), dtype=bool)


@dataclass(frozen=True, eq=False)
class SequentialFit:
    """Sequential fit: ``friction`` (b,) marks the parameters of the first loop.

    ``first`` (b,) has their values from the sweeps. The equations are those of ``estimator``.
    """

    friction: NDArray[np.bool_]
    first: FloatArray
    watch: Stopwatch = field(default_factory=Stopwatch)
    estimator: Estimator = field(default_factory=LeastSquares)

    @classmethod
    def of(
        cls, model: TorqueModel, step: FrictionStep, watch: Stopwatch, estimator: Estimator
    ) -> SequentialFit:
        """Start from the friction of the sweeps."""
        friction = friction_parameters(model)
        first = np.array([step.values.get(name, 0.0) if is_friction else 0.0
                          for name, is_friction in zip(model.reduction.names, friction,
                                                       strict=True)])
        return cls(friction, first, watch, estimator)

    def __call__(
        self, whole: Experiment, left: Experiment, batches: Sequence[int],
        previous: FloatArray | None,
    ) -> FloatArray:
        """Return friction with the ``previous`` links, then links with that friction.

        Friction is fitted to the effort without residual models (``left``); links to the ``whole``
        effort, because the residual models were themselves fitted with the links.
        """
        solver = self.estimator.part_solver
        links = solver(whole, batches)
        if previous is None:
            values = self.first
        else:
            friction = links if left is whole else solver(left, batches)
            values = self.watch.timed(FRICTION, lambda: friction(self.friction, previous))
        return self.watch.timed(LINKS, lambda: links(~self.friction, values))
