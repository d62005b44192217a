"""The demonstration from start to end: three nodes over DDS, and their errors."""

from __future__ import annotations

import argparse
import array
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_dynid.cli.terminal import Progress, Terminal
from robot_dynid.effects.gears import STIFFNESS, Springs
from robot_dynid.errors import UsageError
from robot_dynid.files import check_target
from robot_dynid.identified import model_file
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.io.log import load_log
from robot_dynid.report import html
from robot_dynid.report.html import write_report
from robot_dynid.report.identification import model_report
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.mujoco_model import elastic_accelerations
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Truth, distance, load_truth, true_base
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import validate
from robot_dynid_evaluation.demo.processes import Client
from robot_dynid_evaluation.demo.truth import truth
from robot_dynid_evaluation.ros_domain import own_domain, require_ros
from robot_dynid_interfaces.srv import ComputeForwardDynamics

if TYPE_CHECKING:
    from robot_dynid_evaluation.demo.processes import Client

STATES = 200
#: states keep this multiple of the ramp's width away from zero speed: within the ramp the model's
#: friction is an average, MuJoCo's is not
AWAY = 2.0
#: parameters of friction that fades as a motor speeds up
STRIBECK = 'fs'
#: motors of elastic joints turn up to this much faster or slower than their links [rad/s]
TWISTING = 0.02
#: the errors that must be small, as far as there are such
ERRORS = ('parameters_error', 'stiffness_error', 'forward_dynamics_error', 'motor_dynamics_error')


@dataclass(frozen=True, eq=False)
class States:
    """Random states (K, n) with the efforts that move the true robot, and what it then does.

    The motors' are None where all joints are rigid.
    """

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    acceleration: FloatArray
    motor_position: FloatArray | None = None
    motor_velocity: FloatArray | None = None
    motor_acceleration: FloatArray | None = None


def random_states(robot: RobotModel, truth: Truth, model: IdentifiedModel, seed: int) -> States:
    """Return STATES states within the limits; accelerations are MuJoCo's."""
    rng = np.random.default_rng(seed)
    limits, shape = robot.limits, (STATES, robot.n)
    width = max(float(s.get('width', 0.0)) for s in model.structure.settings)
    q = rng.uniform(limits.lower, limits.upper, shape)
    side = rng.choice([-1.0, 1.0], shape)
    qd = side * rng.uniform(AWAY * width, 0.5 * limits.velocity, shape)
    wanted = rng.uniform(-0.5, 0.5, shape) * limits.acceleration
    plant = Plant(robot, truth)
    effort = plant.inverse(q, qd, wanted, width)
    if not robot.drive.elastic:
        return States(q, qd, effort, plant.acceleration(q, qd, effort, width))
    theta, theta_d = q.copy(), qd.copy()
    for j in robot.drive.elastic:
        theta[:, j] += effort[:, j] / truth.drives[robot.joints[j]].stiffness
        theta_d[:, j] += rng.uniform(-TWISTING, TWISTING, STATES)
    links, motors = elastic_accelerations(robot, truth, (q, qd, theta, theta_d, effort), width)
    return States(q, qd, effort, links, theta, theta_d, motors)


def served_errors(client: Client, states: States) -> dict[str, float]:
    """Return the relative errors of what the service says, and the seconds it took."""
    request = ComputeForwardDynamics.Request()
    for name in ('position', 'velocity', 'effort', 'motor_position', 'motor_velocity'):
        values = getattr(states, name)
        if values is not None:
            setattr(request, name, array.array('d', values.tobytes()))
    begin = time.perf_counter()
    response = client.call('identifier/forward_dynamics', request)
    found = {'service_seconds': time.perf_counter() - begin,
             'forward_dynamics_error': _error(response.acceleration, states.acceleration)}
    if states.motor_acceleration is not None:
        found['motor_dynamics_error'] = _error(response.motor_acceleration,
                                               states.motor_acceleration)
    return found


def _error(served: Any, true: FloatArray) -> float:
    return distance(np.array(served).reshape(true.shape), true)


def compare(model: IdentifiedModel, true: FloatArray) -> dict[str, Any]:
    """Return the parameters beside the true ones, their distance, and how many are inside.

    Gears do not count in the distance, or their stiffness would hide everything else: the error
    of the stiffness is that of the worst joint. Nor does a Stribeck part: what is right depends
    on the speed over which it fades, which is fitted, too.
    """
    gears = np.isin(model.names, Springs(model.robot).names)
    counted = ~gears & ~np.array([name.startswith(STRIBECK) for name in model.names])
    stiffness = [i for i in np.flatnonzero(gears) if model.names[i].startswith(STIFFNESS)]
    with np.errstate(divide='ignore', invalid='ignore'):
        deviations = (model.values - true) / model.std
    half = half_intervals(model)
    parameters = [
        {'name': name, 'true': t, 'value': v, 'std': s, 'half_interval': h, 'deviations': d,
         'label': label}
        for name, t, v, s, h, d, label in zip(
            model.names, true.tolist(), model.values.tolist(), model.std.tolist(),
            half.tolist(), deviations.tolist(), model.labels)
    ]
    found = {'parameters': parameters,
             'parameters_error': distance(model.values[counted], true[counted]),
             'inside': float(np.mean(np.abs(model.values - true) <= half))}
    if stiffness:
        apart = np.abs(model.values[stiffness] / true[stiffness] - 1.0)
        found['stiffness_error'] = float(apart.max())
    return found


@dataclass(frozen=True)
class Excitation:
    """Options of an excitation, the method that suits it, and the error it may leave."""

    options: str
    method: str
    bound: float


EXCITATIONS = {
    'fourier': Excitation('duration: 10.0, harmonics: 10, starts: 1, iterations: 20',
                          'wls', 0.02),
    'sine-sequence': Excitation('periods: 1, configurations: 2', 'staged', 0.05),
}
#: a quick move to the start; and patience, for a machine that is busy with other things
EXCITATION_PARAMETERS = {'approach_scale': 0.6, 'state_timeout': 1.0, 'controller_timeout': 1.0,
                         'feedback_timeout': 2.0, 'tracking_window': 0.5,
                         'first_pass_scale': 1.0, 'warm_up': 0, 'return_to_start': False,
                         'validation': False}  # the truth judges
LONGEST_MOTION, LONGEST_FIT = 600.0, 180.0  # s


def run_demo(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Run the demo and return its result."""
    require_ros()
    from robot_dynid_evaluation.demo import processes

    started = time.perf_counter()
    if arguments.seed < 0:
        raise UsageError(f"option 'seed' must not be negative, got {arguments.seed}")
    if arguments.excitation not in EXCITATIONS:
        raise UsageError(f"option 'excitation' must be one of {', '.join(EXCITATIONS)}, got "
                         f'{arguments.excitation!r}')
    robot = load_robot(arguments.robot)
    own = arguments.robot.endswith(('.yaml', '.yml'))
    truth = load_truth(robot, arguments.robot if own else None)
    name = arguments.robot
    name = str(Path(name).resolve()) if Path(name).is_file() else name
    out = Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    _check_outputs(out)
    parameters = {
        'simulated_robot': {'robot': name, 'seed': arguments.seed},
        'identifier': {'robot': name, 'recording_directory': out / 'recordings',
                       'files_directory': out,
                       **({'optional_topics': ['motor_states']} if truth.drives else {})},
        'excitation': {'robot': name, 'recording_directory': out / 'executions',
                       **EXCITATION_PARAMETERS},
    }
    with own_domain() as domain, _ended_by_signal(), terminal.progress('demo') as progress:
        terminal.note(f'ROS domain {domain}, logs in {out / "logs"}')
        with processes.nodes(parameters, out / 'logs') as running:
            from robot_dynid.ros.common.helper_node import helper_node

            with helper_node('demo') as (node, executor):
                client = processes.Client(node, executor, running)
                fit = fit_options(arguments.excitation, robot, truth)
                model = _identified(client, arguments, fit, out, progress)
                found = _compared(client, (robot, truth), model, arguments.seed)
    progress('report', 0.97)
    found['report'] = str(_report(robot, model, found, out))
    found |= {'robot': robot.name, 'model': str(out / 'model.yaml'), 'logs': str(out / 'logs'),
              'warnings': model.warnings, 'seconds': time.perf_counter() - started}
    found['bound'] = EXCITATIONS[arguments.excitation].bound
    found['ok'] = max(found[name] for name in ERRORS if name in found) <= found['bound']
    return found


def _check_outputs(out: Path) -> None:
    """Raise UsageError when model or report could not be written after minutes of motion."""
    check_target(out / 'model.yaml', model_file.MARK)
    check_target(out / 'report.html', html.MARK)


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Treat a request to terminate like Ctrl-C, so that the nodes are ended, too."""
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def fit_options(excitation: str, robot: RobotModel, truth: Truth) -> dict[str, str]:
    """Return method and recipe, with the robot's own law: its parameters have true values."""
    law = 'coulomb' if truth.stribeck is None else 'stribeck'
    method = 'elastic' if robot.drive.elastic else EXCITATIONS[excitation].method
    return {'method': method, 'recipe': f'friction: {law}'}


def _identified(client: Client, arguments: argparse.Namespace, fit: dict[str, str], out: Path,
                progress: Progress) -> IdentifiedModel:
    """Record, excite, identify, save; return the saved model."""
    from std_srvs.srv import Trigger

    from robot_dynid_interfaces.action import Excite, Identify
    from robot_dynid_interfaces.srv import ComputeForwardDynamics, SaveModel

    progress('waiting for the nodes', 0.0)
    client.expect({
        'identifier/start_recording': Trigger, 'identifier/stop_recording': Trigger,
        'identifier/save_model': SaveModel, 'identifier/forward_dynamics': ComputeForwardDynamics})
    client.trigger('identifier/start_recording')
    excitation = EXCITATIONS[arguments.excitation]
    goal = Excite.Goal(type=arguments.excitation,
                       options=f'{{{excitation.options}, seed: {arguments.seed}}}')
    parts = {'design': (0.05, 0.1), 'move_to_start': (0.15, 0.05), 'excitation': (0.2, 0.55)}

    def moving(feedback: Any) -> None:
        first, length = parts.get(feedback.segment, (0.75, 0.0))
        progress(feedback.segment.replace('_', ' '), first + length * feedback.fraction)

    client.perform((Excite, 'excitation/excite'), goal, LONGEST_MOTION, moving)
    client.trigger('identifier/stop_recording')
    goal = Identify.Goal(**fit)
    client.perform((Identify, 'identifier/identify'), goal, LONGEST_FIT,
                   lambda f: progress(f.stage, 0.75 + 0.2 * f.fraction))
    path = out / 'model.yaml'
    client.call('identifier/save_model', SaveModel.Request(path=str(path)))
    return IdentifiedModel.load(path)


def _compared(client: Client, real: tuple[RobotModel, Truth], model: IdentifiedModel, seed: int
              ) -> dict[str, Any]:
    """Hold the model and the service against the truth."""
    robot, truth = real
    states = random_states(robot, truth, model, seed)
    return {
        **compare(model, true_base(robot, truth, model.reduction)),
        **served_errors(client, states), 'states': STATES,
    }


def _report(robot: RobotModel, model: IdentifiedModel, found: dict[str, Any], out: Path) -> Path:
    """Write the report with a section about the truth; ``found`` learns where the recording is."""
    recording = max((out / 'recordings').iterdir(), key=lambda path: path.stat().st_mtime)
    log = load_log(recording, robot)
    found['recording'] = str(recording)
    section = truth(found['parameters'], found['parameters_error'],
                    found['forward_dynamics_error'])
    path = out / 'report.html'
    write_report(model_report(model, validate(model, [log]), [log], [section]), path)
    return path
