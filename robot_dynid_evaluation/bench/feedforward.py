"""Tracking error of a simulated arm with and without the controller of the examples."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import MissingDependency
from robot_dynid.export.c_code import CCode
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import effort_limit
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.simulator import start_position
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row
from robot_dynid_evaluation.bench.arms import true_model
from robot_dynid_evaluation.bench.timing import ROBOT

INCLUDE = Path(__file__).resolve().parents[2] / 'examples/feedforward_controller/include'
FACE = Path(__file__).parent / 'sources/feedforward.cpp'
FLAGS = ('-O1', '-fPIC', '-Wall', '-Wextra', '-Werror', '-Wshadow')
RUNNING, BLIND, OFF = range(3)
#: s of a cycle of the controller, and steps of the simulation in it
PERIOD, STEPS = 0.001, 4
#: rad/s of the drives, whose position control has no integral part
BANDWIDTH = 30.0
#: N m/s, N/s; s until the efforts have risen, and until the motion begins
EFFORT_RATE, RAMP, SETTLED = 2000.0, 0.5, 1.5
#: motions, each of so many moves between random poses
SEEDS, MOVES = (1, 2, 3), 4
#: share of the velocity limits, and of the ranges of the positions [rad, m], which are cut there
SPEED, RANGE, WIDEST = 0.5, 0.4, 1.2
TURN = 2.0 * np.pi
#: a polynomial of fifth degree from rest to rest has this multiple of its mean speed
PEAK = 1.875
#: what links, rotors and friction are off by
OFF_BY = 0.2
WITHOUT, WEIGHT, EXACT = 'drives alone', 'with weight', 'with exact model'
OFF_BOTH = f'{OFF_BY:+.0%}', f'{-OFF_BY:+.0%}', f'+-{OFF_BY:.0%}'
COLUMNS = ('what', 'unit', WITHOUT, WEIGHT, EXACT, *OFF_BOTH, 'worst / alone')


def measure(progress: Progress) -> Iterator[Row]:
    """Yield the rows of all joints: tracking errors of motions between random poses."""
    robot = load_robot(ROBOT)
    truth = replace(load_truth(robot), drives={})
    scales = factors(robot)
    errors = {WITHOUT: _errors(robot, truth, None),
              WEIGHT: _errors(robot, truth, scaled_model(robot, np.ones(robot.n)))}
    for index, (name, scale) in enumerate(scales.items()):
        progress(name, (2 + index) / (2 + len(scales)))
        with TemporaryDirectory(prefix='robot_dynid_') as folder:
            errors[name] = _errors(
                robot, truth, FeedforwardLoop(scaled_model(robot, scale), Path(folder)))
    for j, joint in enumerate(robot.joints):
        yield _row(f'{joint}, rms', {name: _rms(e[:, j]) for name, e in errors.items()})
    yield _row('all, rms', {name: _rms(e) for name, e in errors.items()})
    yield _row('all, largest', {name: float(np.abs(e).max()) for name, e in errors.items()})


def factors(robot: RobotModel) -> dict[str, FloatArray]:
    """Return the factors (n,) of links, rotors and friction of each model, by its name."""
    mixed = 1.0 + OFF_BY * np.where(np.random.default_rng(0).random(robot.n) < 0.5, -1.0, 1.0)
    return {EXACT: np.ones(robot.n), OFF_BOTH[0]: np.full(robot.n, 1.0 + OFF_BY),
            OFF_BOTH[1]: np.full(robot.n, 1.0 - OFF_BY), OFF_BOTH[2]: mixed}


def scaled_model(robot: RobotModel, scale: FloatArray) -> IdentifiedModel:
    """Return the true model with links, rotors and friction of each joint times ``scale`` (n,)."""
    trained = Trained({'position': np.stack(_ends(robot), axis=1)})
    return replace(true_model(robot.name, scale=scale), trained=trained)


def _ends(robot: RobotModel) -> tuple[FloatArray, FloatArray]:
    """Return the ends (n,) of the positions; a turn each way where there are none."""
    limits = robot.limits
    return np.nan_to_num(limits.lower, nan=-TURN), np.nan_to_num(limits.upper, nan=TURN)


class FeedforwardLoop:
    """The loop of the example controller, compiled with the C code of a model.

    Raises MissingDependency without compilers, or without the examples.
    """

    def __init__(self, model: IdentifiedModel, folder: Path) -> None:
        if not INCLUDE.is_dir():
            raise MissingDependency(f'{INCLUDE} is missing: this needs the source tree')
        self.path = compile_loop(model.to_c(), folder)
        self._library = ctypes.CDLL(str(self.path))
        self.effort = np.zeros(model.robot.n)

    def activate(self, position: FloatArray, limit: FloatArray, rate: FloatArray, *,
                 gains: tuple[FloatArray, FloatArray] | None = None, ramp: float = RAMP) -> int:
        """Activate it at rest, as feed-forward of drives without ``gains``; return the fault."""
        still = np.zeros(len(position))
        stiffness, damping = gains or (still, still)
        return int(self._library.activate(
            *map(_pointer, (stiffness, damping, limit, rate)), int(gains is None),
            ctypes.c_double(ramp), *map(_pointer, (position, still))))

    def update(self, *state_and_reference: FloatArray) -> int:
        """Compute ``effort`` (n,) of one cycle from states and references (five arrays (n,))."""
        return int(self._library.update(
            ctypes.c_double(PERIOD), *map(_pointer, (*state_and_reference, self.effort))))

    @property
    def fault(self) -> int:
        """Number of the fault that switched it off."""
        return int(self._library.fault())


def compile_loop(code: CCode, folder: Path) -> Path:
    """Return the library of the loop with the C code of an arm, compiled into ``folder``."""
    compilers = [shutil.which(name) for name in ('gcc', 'g++')]
    if None in compilers:
        raise MissingDependency('feedforward: no compiler, gcc and g++')
    _, source = code.save(folder)
    path = folder / 'loop.so'
    arm = (f'-DARM_HEADER="{code.name}.h"', f'-DARM_NAME={code.name}',
           f'-DARM_CAPITALS={code.name.upper()}')
    subprocess.run([str(compilers[0]), *FLAGS, '-std=c99', '-c', str(source), '-o',
                    str(folder / 'arm.o')], check=True)
    subprocess.run([str(compilers[1]), *FLAGS, '-std=c++17', '-pedantic', '-shared',
                    *arm, f'-I{INCLUDE}', f'-I{folder}', str(FACE), str(folder / 'arm.o'), '-o',
                    str(path)], check=True)
    return path


def _pointer(array: FloatArray) -> ctypes.c_void_p:
    return ctypes.c_void_p(np.ascontiguousarray(array).ctypes.data)


def _errors(
    robot: RobotModel, truth: Truth, added: FeedforwardLoop | IdentifiedModel | None
) -> FloatArray:
    """Return the tracking errors (N, n) of all motions."""
    return np.concatenate([track(robot, truth, added, seed) for seed in SEEDS])


def track(
    robot: RobotModel, truth: Truth, added: FeedforwardLoop | IdentifiedModel | None, seed: int
) -> FloatArray:
    """Return the tracking errors (N, n) of one motion of the simulated arm under its drives.

    ``added`` to their efforts are those of the loop, or the weight by a model.
    """
    plant, limit = Plant(robot, truth), effort_limit(robot)
    start = start_position(robot)
    plant.set_state(start, np.zeros(robot.n))
    stiffness, damping = gains(robot, truth)
    if isinstance(added, FeedforwardLoop):
        fault = added.activate(start, limit, np.full(robot.n, EFFORT_RATE))
        assert fault == 0, f'not activated: fault {fault}'
    errors = []
    for moving, reference in _references(robot, start, np.random.default_rng(seed)):
        position, velocity = (array.copy() for array in plant.state())
        torque = stiffness * (reference[0] - position) + damping * (reference[1] - velocity)
        if isinstance(added, FeedforwardLoop):
            outcome = added.update(position, velocity, *reference)
            assert outcome == RUNNING, f'switched off: fault {added.fault}'
            torque += added.effort
        elif added is not None:
            torque += added.gravity(position)
        if moving:
            errors.append(reference[0] - position)
        plant.step(np.clip(torque, -limit, limit), STEPS)
    return np.array(errors)


def gains(robot: RobotModel, truth: Truth) -> tuple[FloatArray, FloatArray]:
    """Return stiffness and damping (n,) of drives with BANDWIDTH, critically damped."""
    inertia = np.diag(true_model(robot.name).mass_matrix(start_position(robot)))
    return inertia * BANDWIDTH**2, 2.0 * inertia * BANDWIDTH


def _references(
    robot: RobotModel, start: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[bool, tuple[FloatArray, FloatArray, FloatArray]]]:
    """Yield position, velocity, acceleration (n,) of every cycle, and whether it counts."""
    still = np.zeros(robot.n)
    for _ in range(round(SETTLED / PERIOD)):
        yield False, (start, still, still)
    low, high = _ends(robot)
    middle, half = (low + high) / 2.0, np.minimum(RANGE * (high - low), WIDEST)
    for _ in range(MOVES):
        end = middle + half * rng.uniform(-1.0, 1.0, robot.n)
        way = end - start
        duration = PEAK * float(np.max(np.abs(way) / (SPEED * robot.limits.velocity)))
        for t in np.arange(0.0, 1.0, PERIOD / duration):
            yield True, (start + way * (10 * t**3 - 15 * t**4 + 6 * t**5),
                         way * (30 * t**2 - 60 * t**3 + 30 * t**4) / duration,
                         way * (60 * t - 180 * t**2 + 120 * t**3) / duration**2)
        start = end


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _row(what: str, errors: Mapping[str, float]) -> Row:
    worst = max(errors[name] for name in OFF_BOTH)
    return {'what': what, 'unit': 'mrad', **{name: 1e3 * e for name, e in errors.items()},
            'worst / alone': worst / errors[WITHOUT]}
