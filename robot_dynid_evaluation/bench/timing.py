"""Times of several contenders, taken in turns so that all see the same machine; Pinocchio."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import MissingDependency
from robot_dynid.robot.model import RobotModel
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.bench import Row, Target, row

#: names of contenders
Name = TypeVar('Name', bound=Hashable)
ROBOT = 'seven_axis'
ROUNDS = 5
#: two threads beside one
SCALED = Target(1.6)


def processor() -> float:
    """Return the seconds that processors have worked for this process and its children so far.

    What else runs on the machine is not in them, as it is in the time of a clock.
    """
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def in_turns(
    contenders: Mapping[Name, Callable[[], Any]], progress: Progress, rounds: int = ROUNDS,
    clock: Callable[[], float] = processor,
) -> dict[Name, FloatArray]:
    """Return the seconds (rounds,) of every contender; a first round is not counted.

    They are those of a ``clock``: of the processor, or, for what several threads compute,
    ``time.perf_counter``.
    """
    times: dict[Name, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for index, (name, run) in enumerate(contenders.items()):
            progress(str(name), (turn + index / len(contenders)) / (rounds + 1))
            begin = clock()
            run()
            times[name].append(clock() - begin)
    return {name: np.array(seconds[1:]) for name, seconds in times.items()}


def over_threads(
    calls: Mapping[str, Callable[[], Any]], unit: str, scale: float, progress: Progress
) -> list[Row]:
    """Return a row of every call in two threads beside one; ``scale`` makes seconds a ``unit``."""
    def limited(threads: int, call: Callable[[], Any]) -> None:
        with threads_at_most(threads):
            call()

    seconds = in_turns({(what, threads): partial(limited, threads, call)
                        for what, call in calls.items() for threads in (1, 2)}, progress,
                       clock=time.perf_counter)
    return [row(f'{what}, 2 threads / 1', unit, scale * seconds[what, 2],
                scale * seconds[what, 1], SCALED) for what in calls]


def import_pinocchio() -> Any:
    """Return Pinocchio. Raises MissingDependency when it is not installed."""
    try:
        import pinocchio
    except ImportError:
        raise MissingDependency('the peer of this benchmark is Pinocchio: pip install pin'
                                ) from None
    return pinocchio


def pinocchio_model(robot: RobotModel) -> tuple[Any, Any]:
    """Return Pinocchio's model and data of a robot without continuous joints."""
    pin = import_pinocchio()
    model = pin.buildModelFromUrdf(robot.source)
    assert tuple(model.names)[1:] == robot.joints
    assert model.nq == robot.n
    return model, model.createData()


def pinocchio_loop(
    robot: RobotModel, algorithm: str, states: Sequence[FloatArray]
) -> Callable[[], None]:
    """Return an algorithm of Pinocchio on the nominal links, called for every state."""
    (model, data), call = pinocchio_model(robot), getattr(import_pinocchio(), algorithm)

    def loop() -> None:
        for state in zip(*states, strict=True):
            call(model, data, *state)

    return loop


def random_motion(robot: RobotModel, count: int, seed: int = 0) -> Samples:
    """Return ``count`` random samples in one segment."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, count, robot.n))
    instants = np.arange(count, dtype=np.float64) / 1000.0
    return Samples(robot.joints, instants, 2.0 * q, 2.0 * qd, 5.0 * qdd)


def random_states(robot: RobotModel, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return position, velocity and acceleration (count, n) of random samples."""
    samples = random_motion(robot, count)
    return samples.position, samples.velocity, samples.acceleration
