"""Forward and inverse dynamics beside Pinocchio, the service beside a bare echo."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from robot_dynid.cli.terminal import Progress
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import FRICTION, true_model, ur10e_model
from robot_dynid_evaluation.bench.timing import (
    in_turns,
    over_threads,
    pinocchio_loop,
    random_states,
)

STATES = 10_000
FASTER, ROUND_TRIP = Target(2.0), Target(1.3, faster=False)
#: states of one call, and as many calls of one state; us that one of these may take
BATCH, MOST = 1000, 40.0
WITHIN, BESIDE_COULOMB = Target(1.0, faster=False), Target(1.5, faster=False)


def measure(progress: Progress) -> list[Row]:
    """Return the rows of both comparisons."""
    from robot_dynid_evaluation.ros_domain import own_domain, require_ros

    require_ros()
    model, chosen = true_model(), ur10e_model('auto')
    states = inputs(model, STATES)['forward']
    with threads_at_most(1):
        seconds = in_turns({'ours': partial(model.forward, *states),
                            'pinocchio': pinocchio_loop(model.robot, 'aba', states)}, progress)
        rows = [row(f'{STATES} states from base parameters / ABA in a loop', 'us per state',
                    1e6 * seconds['ours'] / STATES, 1e6 * seconds['pinocchio'] / STATES, FASTER)]
        rows += with_friction(progress)
    rows += over_threads({
        f'UR10e, auto: {call} of {STATES} states': partial(getattr(chosen, call), *given)
        for call, given in inputs(chosen, STATES).items()}, 'us per state', 1e6 / STATES, progress)
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
    algorithms = {'inverse': 'rnea', 'forward': 'aba'}
    for call, states in inputs(model).items():
        contenders['', call, 'one'] = pinocchio_loop(model.robot, algorithms[call], states)
    scale = 1e6 / BATCH
    found = {key: scale * t for key, t in in_turns(contenders, progress).items()}
    rows = []
    for call, peer in algorithms.items():
        for friction in FRICTION:
            one, many = found[friction, call, 'one'], found[friction, call, 'all']
            rows += [row(f'UR10e, {friction}: {call} of one state / {MOST:g} us', 'us per state',
                         one, MOST, WITHIN),
                     row(f'UR10e, {friction}: {call} of {BATCH} states / {peer.upper()} in a loop',
                         'us per state', many, found['', call, 'one'], FASTER)]
        rows.append(row(f'UR10e: {call} of {BATCH} states, auto / coulomb', 'us per state',
                        found['auto', call, 'all'], found['coulomb', call, 'all'],
                        BESIDE_COULOMB))
    return rows


def inputs(model: IdentifiedModel, count: int = BATCH) -> dict[str, tuple[FloatArray, ...]]:
    """Return the arguments (count, n) of `inverse` and of `forward`."""
    motion = random_states(model.robot, count)
    return {'inverse': motion, 'forward': (*motion[:2], model.inverse(*motion))}


def one_by_one(call: Callable[..., Any], states: Sequence[FloatArray]) -> None:
    """Call it with each of the states by itself."""
    for state in zip(*states, strict=True):
        call(*state)
