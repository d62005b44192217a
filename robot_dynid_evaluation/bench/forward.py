"""Forward dynamics: a batch beside Pinocchio in a loop, the service beside a bare echo."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.timing import ROBOT, in_turns, pinocchio_model, random_motion

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.types import FloatArray

STATES = 10_000
RAMP = 0.01
FASTER, ROUND_TRIP = Target(2.0), Target(1.3, faster=False)


def measure(progress: Progress) -> list[Row]:
    """Return the rows of both comparisons."""
    from robot_dynid_evaluation.ros_domain import own_domain, require_ros

    require_ros()
    model = true_model()
    ours, aba = peers(model)
    seconds = in_turns({'ours': ours, 'pinocchio': aba}, progress)
    rows = [row(f'{STATES} states from base parameters / ABA in a loop', 'us per state',
                1e6 * seconds['ours'] / STATES, 1e6 * seconds['pinocchio'] / STATES, FASTER)]
    with own_domain(), tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        from robot_dynid_evaluation.bench.echo_bench import round_trips

        progress('service round trips', 0.9)
        path = Path(folder) / 'model.yaml'
        model.save(path)
        for trip in round_trips(path):
            rows.append(row(f'service round trip, K = {trip.states} / bare echo', 'ms',
                            1e3 * trip.identifier, 1e3 * trip.echo, ROUND_TRIP))
    return rows


def true_model() -> IdentifiedModel:
    """Return the model of the arm with its true parameters, friction and rotors included."""
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.identified.structure import Structure
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid.signals.prepare import Preprocessing
    from robot_dynid.simulation.truth import load_truth, true_base

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
