"""Derivatives of the dynamics: a batch beside Pinocchio's analytic ones, in speed and in value."""

from __future__ import annotations

from functools import partial

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.dynamics.derivatives import Derivatives, Slopes
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.friction import AxisFriction
from robot_dynid.robot.model import RobotModel
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import FRICTION, true_model, ur10e_model
from robot_dynid_evaluation.bench.timing import (
    import_pinocchio,
    in_turns,
    pinocchio_loop,
    pinocchio_model,
    random_states,
)

STATES = 10_000
FASTER = Target(2.0)
#: states whose values are compared, and how far they may be apart, relative to the largest
COMPARED, ALIKE = 1000, 1e-10
#: with the friction that is chosen for the UR10e, which depends on the load, beside Coulomb's
CALLS, BESIDE_COULOMB = ('inverse', 'forward'), Target(2.5, faster=False)
States = tuple['FloatArray', 'FloatArray', 'FloatArray']


def measure(progress: Progress) -> list[Row]:
    """Return the rows of inverse and forward dynamics, with friction and of links alone."""
    model = true_model()
    states = random_states(model.robot, STATES)
    effort = model.inverse(*states)
    links, six = links_alone(model.robot), tuple(part[:, :6].copy() for part in states)
    load = links.effort(*states)
    with threads_at_most(1):
        seconds = in_turns({
            'inverse': lambda: model.inverse_derivatives(*states),
            'links': lambda: links.inverse(*states),
            'pinocchio inverse': pinocchio_loop(model.robot, 'computeRNEADerivatives', states),
            'forward': lambda: model.forward_derivatives(*states[:2], effort),
            'links forward': lambda: links.forward(*states[:2], load, states[2]),
            'pinocchio forward': pinocchio_loop(
                model.robot, 'computeABADerivatives', (*states[:2], load)),
            **{(name, call): partial(getattr(ur10e_model(name), f'{call}_derivatives'), *six)
               for name in FRICTION for call in CALLS},
        }, progress)
    each = {name: 1e6 * found / STATES for name, found in seconds.items()}
    us = 'us per state'
    return [
        row('inverse, friction and rotors / RNEA derivatives in a loop', us, each['inverse'],
            each['pinocchio inverse'], FASTER),
        row('inverse, links alone / the same', us, each['links'], each['pinocchio inverse'],
            FASTER),
        row('forward, friction and rotors / ABA derivatives in a loop', us, each['forward'],
            each['pinocchio forward'], FASTER),
        row('forward, links alone, known acceleration / the same', us, each['links forward'],
            each['pinocchio forward'], FASTER),
        row(f'values of {COMPARED} states, largest difference / promised', 'relative',
            difference(links, model.robot, states, load), ALIKE, Target(1.0, faster=False)),
        *(row(f'UR10e, {call}: friction auto / Coulomb', us, each['auto', call],
              each['coulomb', call], BESIDE_COULOMB) for call in CALLS),
    ]


def links_alone(robot: RobotModel) -> Derivatives:
    """Return the derivatives of nominal links without rotors and friction, as Pinocchio has."""
    return Derivatives(Mechanism(robot, robot.nominal, Rotors.of(np.zeros((robot.n, robot.n))),
                                 AxisFriction.none(robot.n)))


def difference(
    ours: Derivatives, robot: RobotModel, states: States, effort: FloatArray
) -> float:
    """Return the largest difference from Pinocchio, relative to the largest of its matrix."""
    pin, (model, data) = import_pinocchio(), pinocchio_model(robot)
    q, v, a = (part[:COMPARED] for part in states)
    pairs = ((ours.inverse(q, v, a), pin.computeRNEADerivatives, a),
             (ours.forward(q, v, effort[:COMPARED]), pin.computeABADerivatives, effort))
    return max(_apart(found, k, call(model, data, q[k], v[k], last[k]))
               for found, call, last in pairs for k in range(COMPARED))


def _apart(found: Slopes, k: int, theirs: tuple[FloatArray, FloatArray, FloatArray]) -> float:
    """Return the largest relative difference of three matrices, the last an upper triangle."""
    return max(float(np.abs(np.triu(own[k] - other) if last else own[k] - other).max()
                     / np.abs(other).max())
               for own, other, last in zip(found, theirs, (False, False, True), strict=True))
