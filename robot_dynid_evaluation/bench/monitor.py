"""The monitor: one joint state beside Pinocchio, and the processor time of the node at 500 Hz."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.forward import true_model
from robot_dynid_evaluation.bench.timing import pinocchio_model, random_motion

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress
    from robot_dynid.identified.model import IdentifiedModel

STATES = 2000
RATE, SECONDS = 500.0, 20.0
SHARE = 25.0  # % of one core
WITHIN, SLOWER = Target(1.0, faster=False), Target(6.0, faster=False)
ROUNDS = 5


def measure(progress: Progress) -> list[Row]:
    """Return the rows of both comparisons."""
    from robot_dynid_evaluation.ros_domain import own_domain, require_ros

    require_ros()
    model = true_model()
    ours, theirs = (_processor_time(peer, progress) for peer in peers(model))
    rows = [row('one joint state: filters, residual, external torque, contact / rnea, crba and '
                'Coriolis matrix of Pinocchio', 'us of a core', 1e6 * ours / STATES,
                1e6 * theirs / STATES, SLOWER)]
    with own_domain(), tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        from robot_dynid_evaluation.bench.monitor_bench import monitor_load

        progress(f'{SECONDS:g} s at {RATE:g} Hz', 0.9)
        path = Path(folder) / 'model.yaml'
        model.save(path)
        load = monitor_load(path, RATE, SECONDS)
    least = min(load.received.values())
    return [*rows,
            row(f'identifier at {RATE:g} Hz, {model.robot.n} joints, all topics heard / target',
                '% of a core', 100.0 * load.with_monitor, SHARE, WITHIN),
            row('of which the monitor: with - without it / target', '% of a core',
                100.0 * (load.with_monitor - load.without_monitor), SHARE, WITHIN),
            row('joint states sent / messages of the topic with the fewest', '', load.sent, least,
                Target(1.0, faster=False))]


def _processor_time(run: Callable[[], Any], progress: Progress) -> float:
    """Return the median processor time [s]; what runs beside it counts little."""
    times = []
    for turn in range(ROUNDS + 1):
        progress('one joint state', 0.1 * turn / ROUNDS)
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times[1:])


def peers(model: IdentifiedModel) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return ours and what a monitor has to ask of Pinocchio, each for STATES states in a loop."""
    import pinocchio as pin

    from robot_dynid.monitoring.monitor import Monitor

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
