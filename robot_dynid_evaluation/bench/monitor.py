"""The monitor: one joint state beside Pinocchio, and the processor time of the node at 500 Hz.

With links and friction only, and with torque ripple, warm-up and drift of every joint.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.effects import ripple as ripple_effect
from robot_dynid.effects.ripple_search import MAX_WAVES
from robot_dynid.effects.slow_changes import Adaptation, SlowCoefficients, Warming
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import true_model
from robot_dynid_evaluation.bench.timing import (
    import_pinocchio,
    in_turns,
    pinocchio_model,
    random_motion,
)

STATES = 2000
RATE, SECONDS = 500.0, 20.0
SHARE = 25.0  # % of one core
WITHIN, SLOWER = Target(1.0, faster=False), Target(6.0, faster=False)
SLOW_EFFECTS = 'with ripple, warm-up and drift'


def measure(progress: Progress) -> list[Row]:
    """Return the rows of one joint state, and of the node with two models."""
    from robot_dynid_evaluation.ros_domain import require_ros

    require_ros()
    model = true_model()
    slow = with_slow_effects(model)
    states, pinocchio = peers(model)
    seconds = in_turns({'ours': states, 'theirs': pinocchio, 'slow': peers(slow)[0]}, progress,
                       clock=time.process_time)
    ours, theirs, with_all = (1e6 * one / STATES for one in seconds.values())
    rows = [row('one joint state: filters, residual, external torque, contact / rnea, crba and '
                'Coriolis matrix of Pinocchio', 'us of a core', ours, theirs, SLOWER),
            row(f'one joint state: {SLOW_EFFECTS} / without', 'us of a core', with_all,
                ours, None)]
    for what, one in (('', model), (f', {SLOW_EFFECTS}', slow)):
        progress(f'{SECONDS:g} s at {RATE:g} Hz', 0.8)
        rows += _node_rows(one, what)
    return rows


def _node_rows(model: IdentifiedModel, what: str) -> list[Row]:
    """Return the rows of the node with a model."""
    from robot_dynid_evaluation.bench.node_costs import monitor_load
    from robot_dynid_evaluation.ros_domain import own_domain

    with own_domain(), tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        path = Path(folder) / 'model.yaml'
        model.save(path)
        load = monitor_load(path, RATE, SECONDS)
    least = min(load.received.values())
    return [row(f'identifier at {RATE:g} Hz, {model.robot.n} joints{what}, all topics heard / '
                'target', '% of a core', 100.0 * load.with_monitor, SHARE, WITHIN),
            row(f'of which the monitor{what}: with - without it / target', '% of a core',
                100.0 * (load.with_monitor - load.without_monitor), SHARE, WITHIN),
            row(f'joint states sent{what} / messages of the topic with the fewest', '', load.sent,
                least, Target(1.0, faster=False))]


def with_slow_effects(model: IdentifiedModel) -> IdentifiedModel:
    """Return a model with as much ripple, warm-up and drift of every joint as one is found."""
    orders = 101.0 * np.arange(2.0, 2.0 + MAX_WAVES)
    ripple = ripple_effect.TorqueRipple(
        orders, np.full(MAX_WAVES, -4e-3), 1e-5, 0.05, 0.5,
        np.full(ripple_effect.WAVE_COLUMNS * MAX_WAVES, 0.05))
    falls = np.full((2, 2), 0.05)
    warming = Warming(np.array([12.0, 120.0]), 1.0, np.full(2, 0.05), falls, np.full(2, 0.01),
                      0.2 * falls, np.array([2.0, 20.0]))
    drift = SlowCoefficients(0.1, 0.03, 0.1, 30.0, 10.0, 0.01)
    n = model.robot.n
    return replace(model, learnt={
        'ripple': (ripple,) * n, 'adaptation': (Adaptation(warming, drift),) * n})


def peers(model: IdentifiedModel) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return ours and what a monitor has to ask of Pinocchio, each for STATES states in a loop."""
    pin = import_pinocchio()
    other, data = pinocchio_model(model.robot)
    samples = random_motion(model.robot, STATES)
    q, qd, qdd = samples.position, samples.velocity, samples.acceleration
    effort = model.inverse(q, qd, qdd)
    monitor = Monitor(model)

    def ours() -> None:
        for k in range(STATES):
            monitor(float(samples.time[k]), q[k], qd[k], effort[k])

    def theirs() -> None:
        for k in range(STATES):
            pin.rnea(other, data, q[k], qd[k], qdd[k])
            momentum = pin.crba(other, data, q[k]) @ qd[k]
            coriolis = pin.computeCoriolisMatrix(other, data, q[k], qd[k])
            weight = pin.computeGeneralizedGravity(other, data, q[k])
            momentum + coriolis.T @ qd[k] - weight

    return ours, theirs
