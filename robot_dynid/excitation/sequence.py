"""Plans of sine sequences: which joint swings where, so that every stage finds its parameters.

Two procedures: from the last joint to the first with the efforts of all joints (Wang et al.,
Sensors 2025, 25, 5749, section 4), and body by body with its own effort only, where in the largest
part the first rotational joint swings (Lin 1991, Algorithm 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import Inverse, Judge, Planned
from robot_dynid.excitation.limits import MotionLimits
from robot_dynid.excitation.moves import quintic_move
from robot_dynid.excitation.sine import SineSwing, fastest, unit_peaks
from robot_dynid.excitation.stage_rows import stage_rows
from robot_dynid.excitation.trajectory import Composite, Trajectory
from robot_dynid.experiment import TorqueModel
from robot_dynid.model.robot import PRISMATIC
from robot_dynid.procedure import PROCEDURES, SoloMotion, Stage, excitation_of, names_from
from robot_dynid.types import FloatArray, frozen

#: a swing of a quarter turn to both sides shows all of gravity; more would be slower
LARGEST = 0.5 * np.pi
#: random configurations looked at for every one that is added
CANDIDATES = 8
#: another configuration must lower the condition number of its stage by this factor
WORTH = 1.5
#: part of the velocity limits used between the swings, of effort limits used while planning
MOVE_SPEED, EFFORT_MARGIN = 0.5, 0.97
HALVINGS = 12
INSTANTS = 200
#: the narrow swing is left out where it would be wider than this share of the wide one
NARROW = 0.7


@dataclass(frozen=True)
class SineSequenceOptions:
    """Settings of a sine sequence.

    ``procedure`` is one of PROCEDURES; every swing has ``periods`` at full amplitude; at most
    ``configurations`` of the locked joints per stage.
    """

    procedure: str = 'distal-to-proximal'
    periods: int = 3
    configurations: int = 3

    def __post_init__(self) -> None:
        if self.procedure not in PROCEDURES:
            raise UsageError(f"option 'procedure' must be one of {', '.join(PROCEDURES)}, got "
                             f'{self.procedure!r}')
        for name in ('periods', 'configurations'):
            if getattr(self, name) < 1:
                raise UsageError(f"option '{name}' must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class Swings:
    """Where joints may be locked and how they swing within ``limits``."""

    limits: MotionLimits

    @property
    def home(self) -> FloatArray:
        """The middle (n,) of the position ranges."""
        return self.limits.centre

    def motion(self, joint: int, locked: FloatArray) -> SoloMotion:
        """Return the swing of ``joint`` about the middle of its range."""
        position = np.array(locked)
        position[joint] = self.home[joint]
        return SoloMotion(joint, position, float(min(LARGEST, self.limits.half_range[joint])))

    def somewhere(self, rng: np.random.Generator) -> FloatArray:
        """Return a random configuration (n,), at most a quarter turn from the middle."""
        reach = np.minimum(LARGEST, self.limits.half_range)
        return np.asarray(self.home + reach * rng.uniform(-1.0, 1.0, len(reach)))


def plan_motions(
    model: TorqueModel, limits: MotionLimits, options: SineSequenceOptions,
    rng: np.random.Generator,
) -> list[SoloMotion]:
    """Return the swings in the order of execution; the more of them only where they help."""
    swings = Swings(limits)
    if options.procedure == 'distal-to-proximal':
        return _each_joint(model, swings, options.configurations, rng)
    return _first_joint(model, swings, options.configurations, rng)


def _each_joint(
    model: TorqueModel, swings: Swings, most: int, rng: np.random.Generator
) -> list[SoloMotion]:
    """Swing every joint, the last one first, with the others in up to ``most`` configurations."""
    planned: list[SoloMotion] = []
    rows = tuple(range(model.robot.n))
    for j in reversed(range(model.robot.n)):
        chosen = [swings.motion(j, swings.home)]

        def stage(motions: list[SoloMotion], joint: int = j) -> Stage:
            return Stage(model.robot.joints[joint], tuple(motions), rows,
                         names_from(model, joint))

        while len(chosen) < most and _extend(
            model, stage, chosen, (swings.motion(j, swings.somewhere(rng))
                                   for _ in range(CANDIDATES))):
            pass
        planned += chosen
    return planned


def _first_joint(
    model: TorqueModel, swings: Swings, most: int, rng: np.random.Generator
) -> list[SoloMotion]:
    """Swing every joint once, and the first rotational one with a body's joint in several places.

    Where a joint before the body (one at a distance, or a prismatic one) finds more than the
    first rotational joint, it swings, too: cases (b) and (c) of step 3.1.
    """
    robot = model.robot
    rotational = [j for j in range(robot.n) if robot.types[j] != PRISMATIC]
    if not rotational:
        raise UsageError(f'{robot.name} has no rotational joint: procedure body-by-body needs one '
                         'to swing; use distal-to-proximal')
    bent = swings.somewhere(rng)
    planned = [swings.motion(j, bent) for j in reversed(range(robot.n))]
    for j in reversed(range(robot.n)):

        def stage(motions: list[SoloMotion], body: int = j) -> Stage:
            usable = tuple(m for m in motions if robot.carried[m.moving, body])
            return Stage(f'body {robot.joints[body]}', usable, (body,), names_from(model, body))

        before = [i for i in range(j) if robot.carried[i, j]]
        for mover in sorted(before, key=lambda i: i != rotational[0]):
            worth = WORTH if mover == rotational[0] else np.inf
            turned = [swings.motion(mover, _turned(bent, j, q)) for q in _places(swings, j)]
            for _ in range(most - 1):
                if not _extend(model, stage, planned, turned, worth):
                    break
    return planned


def _turned(position: FloatArray, joint: int, value: float) -> FloatArray:
    turned = position.copy()
    turned[joint] = value
    return turned


def _places(swings: Swings, joint: int) -> FloatArray:
    reach = min(LARGEST, float(swings.limits.half_range[joint]))
    return np.asarray(swings.home[joint] + reach * np.linspace(-0.95, 0.95, CANDIDATES))


def _extend(
    model: TorqueModel, stage: Callable[[list[SoloMotion]], Stage], chosen: list[SoloMotion],
    candidates: Iterable[SoloMotion], worth: float = WORTH,
) -> bool:
    """Add the best candidate to ``chosen``, if there is one; return whether it was.

    It must let the stage solve more, or lower its condition number by the factor ``worth``.
    """
    count, condition = excitation_of(model, stage(chosen))
    best, gain = None, (count, condition / worth)
    for candidate in candidates:
        more, after = excitation_of(model, stage([*chosen, candidate]))
        if more > gain[0] or (more == gain[0] and after < gain[1]):
            best, gain = candidate, (more, after)
    if best is not None:
        chosen.append(best)
    return best is not None


def sine_sequence(
    judge: Judge, limits: MotionLimits, options: SineSequenceOptions, rng: np.random.Generator
) -> Planned:
    """Return the planned swings with slow moves between them, and the stages they are for.

    Every swing is as fast as the limits allow; where ``judge`` has an inverse model the effort
    limits are kept, too. Raises DynIdError naming joint and stage where the limits allow no
    excitation.
    """
    model = judge.model
    assert model is not None
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    swings = [swing for motion in plan_motions(model, limits, options, rng)
              for swing in _swings(limits, motion, options.periods, judge.inverse)]
    stages = stage_rows(model, swings, options.procedure)
    return Planned(_connected(limits, swings), stages)


def _connected(limits: MotionLimits, swings: list[SineSwing]) -> Composite:
    slow = limits.scaled(1.0, MOVE_SPEED)
    segments: list[Trajectory] = [swings[0]]
    for before, after in pairwise(swings):
        if not np.array_equal(before.position, after.position):
            segments.append(quintic_move(limits.joints, (before.position, after.position), slow))
        segments.append(after)
    return Composite(tuple(segments))


def _swings(
    limits: MotionLimits, motion: SoloMotion, periods: int, inverse: Inverse | None
) -> list[SineSwing]:
    """Return a wide swing, which shows the weight, and a narrow one, which shows the inertia.

    The narrow one is where velocity and acceleration limits are reached together.
    """
    joint, peaks = motion.moving, unit_peaks()
    speed, rate = limits.velocity[joint], limits.acceleration[joint]
    corner = float(speed**2 * peaks[1] / (rate * peaks[0] ** 2))
    widths = [motion.amplitude]
    if corner < NARROW * motion.amplitude:
        widths.append(corner)
    return [_fast_swing(limits, replace(motion, amplitude=a), periods, inverse) for a in widths]


def _fast_swing(
    limits: MotionLimits, motion: SoloMotion, periods: int, inverse: Inverse | None
) -> SineSwing:
    """Raise the frequency until the first limit is reached: speed, acceleration, jerk, effort."""
    highest = fastest(limits, motion.moving, motion.amplitude)
    joint = limits.joints[motion.moving]
    swing = SineSwing(limits.joints, joint, frozen(motion.position), motion.amplitude, highest,
                      periods)
    low, high = 0.0, highest
    for _ in range(HALVINGS):
        broken = _broken(swing, limits, inverse)
        if broken is None:
            low = swing.frequency
        else:
            high = swing.frequency
        if low == highest:
            return swing
        swing = replace(swing, frequency=0.5 * (low + high))
    if low == 0.0:
        raise DynIdError(
            f"stage '{joint}': the limits allow no excitation of joint '{joint}', since joint "
            f"'{broken}' needs more than its effort limit even in slow motion; narrow the "
            "positions with option 'limits: {joint: {position: [lower, upper]}}'")
    return replace(swing, frequency=low)


def _broken(swing: SineSwing, limits: MotionLimits, inverse: Inverse | None) -> str | None:
    """Return the joint whose effort limit the swing breaks, None when it keeps all."""
    if inverse is None:
        return None
    motion = swing.sample(np.linspace(0.0, swing.duration, INSTANTS))
    effort = np.abs(inverse(motion.position, motion.velocity, motion.acceleration)).max(axis=0)
    over = effort > EFFORT_MARGIN * limits.effort
    return limits.joints[int(np.argmax(over))] if np.any(over) else None
