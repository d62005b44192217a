"""Forward and inverse dynamics beside Pinocchio, the service beside a bare echo."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.simulation.truth import load_truth, true_base
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import FRICTION, ur10e_model
from robot_dynid_evaluation.bench.timing import ROBOT, in_turns, pinocchio_model, random_motion

STATES = 10_000
RAMP = 0.01
FASTER, ROUND_TRIP = Target(2.0), Target(1.3, faster=False)
#: states of one call, and as many calls of one state; us that one of these may take
BATCH, MOST = 1000, 40.0
WITHIN, BESIDE_COULOMB, SCALED = Target(1.0, faster=False), Target(1.5, faster=False), Target(1.6)


def measure(progress: Progress) -> list[Row]:
    """Return the rows of both comparisons."""
    from robot_dynid_evaluation.ros_domain import own_domain, require_ros

    require_ros()
    model = true_model()
    ours, aba = peers(model)
    with threads_at_most(1):
        seconds = in_turns({'ours': ours, 'pinocchio': aba}, progress)
        rows = [row(f'{STATES} states from base parameters / ABA in a loop', 'us per state',
                    1e6 * seconds['ours'] / STATES, 1e6 * seconds['pinocchio'] / STATES, FASTER)]
        rows += with_friction(progress)
    rows += over_threads(progress)
    with own_domain(), tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        from robot_dynid_evaluation.bench.node_costs import round_trips

        progress('service round trips', 0.9)
        path = Path(folder) / 'model.yaml'
        model.save(path)
        for trip in round_trips(path):
            echo = 1e3 * trip.echo
            rows += [row(f'service round trip, K = {trip.states} / bare echo', 'ms',
                         1e3 * trip.identifier, echo, ROUND_TRIP),
                     row(f'computing {trip.states} states by itself / bare echo', 'ms',
                         1e3 * trip.computing, echo, None),
                     row(f'writing and reading the messages, K = {trip.states} / bare echo', 'ms',
                         1e3 * trip.messages, echo, None)]
    return rows


def with_friction(progress: Progress) -> list[Row]:
    """Return inverse and forward dynamics of a UR10e with each friction, one by one and at once.

    Pinocchio, called from Python state by state, knows neither friction nor rotors.
    """
    contenders: dict[tuple[str, str, str], Callable[[], Any]] = {}
    for friction in FRICTION:
        model = ur10e_model(friction)
        for call, states in inputs(model).items():
            own = getattr(model, call)
            contenders[friction, call, 'one'] = partial(one_by_one, own, states)
            contenders[friction, call, 'all'] = partial(own, *states)
    for call, states in inputs(model).items():
        contenders['', call, 'one'] = pinocchio_loop(model, call, states)
    scale = 1e6 / BATCH
    found = {key: scale * t for key, t in in_turns(contenders, progress).items()}
    names = {'inverse': 'RNEA', 'forward': 'ABA'}
    rows = []
    for call, peer in names.items():
        for friction in FRICTION:
            one, many = found[friction, call, 'one'], found[friction, call, 'all']
            rows += [row(f'UR10e, {friction}: {call} of one state / {MOST:g} us', 'us per state',
                         one, MOST, WITHIN),
                     row(f'UR10e, {friction}: {call} of {BATCH} states / {peer} in a loop',
                         'us per state', many, found['', call, 'one'], FASTER)]
        rows.append(row(f'UR10e: {call} of {BATCH} states, auto / coulomb', 'us per state',
                        found['auto', call, 'all'], found['coulomb', call, 'all'],
                        BESIDE_COULOMB))
    return rows


def over_threads(progress: Progress) -> list[Row]:
    """Return inverse and forward dynamics of many states in two threads beside one."""
    model = ur10e_model('auto')

    def limited(threads: int, call: Callable[..., Any], states: Sequence[FloatArray]) -> None:
        with threads_at_most(threads):
            call(*states)

    given = inputs(model, STATES)
    found = in_turns({(call, threads): partial(limited, threads, getattr(model, call), states)
                      for call, states in given.items() for threads in (1, 2)}, progress,
                     clock=time.perf_counter)
    return [row(f'UR10e, auto: {call} of {STATES} states, 2 threads / 1', 'us per state',
                1e6 * found[call, 2] / STATES, 1e6 * found[call, 1] / STATES, SCALED)
            for call in given]


def inputs(model: IdentifiedModel, count: int = BATCH) -> dict[str, tuple[FloatArray, ...]]:
    """Return the arguments (count, n) of `inverse` and of `forward`."""
    samples = random_motion(model.robot, count)
    motion = samples.position, samples.velocity, samples.acceleration
    return {'inverse': motion, 'forward': (*motion[:2], model.inverse(*motion))}


def one_by_one(call: Callable[..., Any], states: Sequence[FloatArray]) -> None:
    """Call it with each of the states by itself."""
    for state in zip(*states, strict=True):
        call(*state)


def pinocchio_loop(
    model: IdentifiedModel, call: str, states: Sequence[FloatArray]
) -> Callable[[], FloatArray]:
    """Return RNEA or ABA of the nominal links, state by state."""
    import pinocchio as pin

    other, data = pinocchio_model(model.robot)
    own = {'inverse': pin.rnea, 'forward': pin.aba}[call]
    return lambda: np.array([own(other, data, *state) for state in zip(*states, strict=True)])


def true_model() -> IdentifiedModel:
    """Return the model of the arm with its true parameters, friction and rotors included."""
    robot = load_robot(ROBOT)
    structure = Structure.uniform(robot, True, 'coulomb', {'width': RAMP})
    reduction = structure.torque_model(robot).reduction
    values = true_base(robot, load_truth(robot), reduction)
    return IdentifiedModel(robot, structure, reduction, values, np.zeros_like(values), values,
                           Preprocessing(cutoff=10.0), status='true parameters')


def peers(model: IdentifiedModel) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return ours (all states at once, friction and rotors included) and Pinocchio's ABA."""
    import pinocchio as pin

    other, data = pinocchio_model(model.robot)
    samples = random_motion(model.robot, STATES)
    q, qd = samples.position, samples.velocity
    effort = model.inverse(q, qd, samples.acceleration)

    def ours() -> FloatArray:
        return model.forward(q, qd, effort)

    def aba() -> FloatArray:
        out = np.empty_like(q)
        for i in range(len(q)):
            out[i] = pin.aba(other, data, q[i], qd[i], effort[i])
        return out

    return ours, aba
