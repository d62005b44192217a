"""`identify` on a recording of the simulated arms with elastic joints.

The recording holds what a robot reports: positions counted on both sides of the gears, and the
effort. Nothing of the truth is known: cut-off, lag and friction laws are chosen from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.identification.identify import identify
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.papers.elastic_joints_arm import ElasticArm, Motion

#: speeds [rad/s] at which dry friction is looked at, and two between which it no longer changes
SPEEDS = np.geomspace(1e-4, 1.0, 400)
SLIDING = (1.0, 2.0)
#: of the noise
SEED = 1

Law = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction of a law in figures that do not depend on its parameters; arrays are (n,).

    ``viscous`` [N m s/rad], its slope in swift motion; ``static`` [N m], the greatest dry friction
    at any speed; ``moving`` [N m], the dry friction in swift motion.
    """

    viscous: FloatArray
    static: FloatArray
    moving: FloatArray

    @classmethod
    def of(cls, law: Law, n: int) -> Friction:
        """Look at ``law``, which gives the friction (K, n) [N m] at velocities (K, n)."""
        def odd(speeds: FloatArray) -> FloatArray:
            velocity = np.tile(speeds[:, None], (1, n))
            return np.asarray(0.5 * (law(velocity) - law(-velocity)))

        slow, fast = odd(np.array(SLIDING))
        viscous = (fast - slow) / (SLIDING[1] - SLIDING[0])
        dry = odd(SPEEDS) - SPEEDS[:, None] * viscous
        return cls(viscous, dry.max(axis=0), slow - SLIDING[0] * viscous)


def simulated(arm: ElasticArm) -> Friction:
    """Return the friction of the simulated arm."""
    return Friction.of(arm.friction.torque, arm.robot.n)


def found(model: IdentifiedModel) -> Friction:
    """Return the friction of an identified model."""
    n = model.robot.n
    return Friction.of(lambda v: model.friction(np.zeros_like(v), v), n)


@dataclass(frozen=True, eq=False)
class Logged:
    """Relative ``errors`` by parameter, ``fc`` being static friction; those of dry friction in
    motion, ``moving`` (n,); what was chosen, ``choices``.
    """

    errors: dict[str, float]
    moving: FloatArray
    choices: str


def logged(
    arm: ElasticArm, motion: Motion, ratio: float = np.inf, method: str = 'elastic',
    seed: int = SEED,
) -> Logged:
    """Identify the arm from a recording, with a method and the default recipe.

    The parameters are those of the paper: base parameters of links, rotors and gears, and of every
    joint viscous and static friction. Friction laws differ in what their parameters mean, so the
    law found and the simulated one are compared by what they do. Positions have white noise at a
    ``ratio`` [dB] to their deviation, drawn with a ``seed``.
    """
    seen = replace(motion, position=noisy_positions(motion, ratio, seed)).seen(arm)
    model = identify(arm.robot, [seen], method).model
    true = arm.base(model.torque_model)
    errors = {name: float(abs(value / there - 1.0)) for name, value, there in zip(
        model.reduction.names, model.values, true, strict=True)
        if abs(there) > 1e-9 and name[0] not in 'fDs'}
    ours, theirs = found(model), simulated(arm)
    for name, value, there in (('fv', ours.viscous, theirs.viscous),
                               ('fc', ours.static, theirs.static)):
        errors |= {f'{name}{j + 1}': float(e) for j, e in enumerate(np.abs(value / there - 1.0))}
    laws = ', '.join(sorted(set(model.structure.friction)))
    return Logged(errors, np.abs(ours.moving / theirs.moving - 1.0),
                  f'default recipe: {model.preprocessing.cutoff:g} Hz and {laws} chosen by itself')


def noisy_positions(motion: Motion, ratio: float, seed: int) -> FloatArray:
    """Return positions (N, 2n) with white noise at a ``ratio`` [dB] to their deviation."""
    return np.asarray(motion.position + noise_of(motion, ratio) * np.random.default_rng(
        seed).standard_normal(motion.position.shape))


def noise_of(motion: Motion, ratio: float) -> FloatArray:
    """Return the deviation (2n,) [rad] of noise at a ``ratio`` [dB] to that of positions."""
    return np.asarray(motion.position.std(axis=0) * 10.0 ** (-ratio / 20.0))
