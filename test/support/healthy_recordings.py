"""Healthy recordings: of random robots, measured ones, and of all arms of the strange plant.

Of random robots also ones whose description is partly wrong. Nothing may be found in any of them,
but a counterbalance on axis 2 of the KR300, which has one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from gate_rows import Take, arm_names
from random_robots import random_urdf
from strange_plant import TRAINING

from robot_dynid import load_log
from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.gate import examine, verdict
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog, frozen

RATE, PERIOD, HARMONICS = 200.0, 20.0, 5
POSITION_NOISE, VELOCITY_NOISE, EFFORT_NOISE = 1e-5, 1e-3, 0.01
GAIN = 10.0
Case = tuple[RobotModel, list[RawLog]]


def random_robot(seed: int, folder) -> RobotModel:
    """Return a robot of two to seven joints, every third one a tree."""
    rng = np.random.default_rng(seed)
    path = folder / f'robot_{seed}.urdf'
    path.write_text(random_urdf(rng, int(rng.integers(2, 8)), 0.0 if seed % 3 else 0.2))
    return replace(load_robot(str(path)), drive=Drive('torque'))


@dataclass(frozen=True)
class Made:
    """How a recording is made: which joints move, and what is measured."""

    seconds: float = 20.0
    moves: str = 'all'
    friction: bool = True
    velocity_noise: float | None = VELOCITY_NOISE
    effort_noise: float = EFFORT_NOISE
    gravity: bool = True
    gain_error: float | None = None


def motion(
    rng: np.random.Generator, robot: RobotModel, seconds: float, moves: str
) -> tuple[FloatArray, ...]:
    """Return time and q, qd, qdd (N, n) within the limits of the robot."""
    time = np.arange(round(seconds * RATE)) / RATE
    lower, upper = (np.where(np.isfinite(x), x, side) for x, side in (
        (robot.limits.lower, -2.5), (robot.limits.upper, 2.5)))
    q, qd, qdd = np.zeros((3, len(time), robot.n))
    for h in range(1, HARMONICS + 1):
        w = 2.0 * np.pi * h / PERIOD
        sine, cosine = np.sin(w * time)[:, None], np.cos(w * time)[:, None]
        a, b = rng.normal(size=(2, robot.n)) / h
        q, qd, qdd = (q + a * sine + b * cosine, qd + w * (a * cosine - b * sine),
                      qdd - w * w * (a * sine + b * cosine))
    size = 0.5 * (upper - lower) * rng.uniform(0.3, 0.9, robot.n) / np.abs(q).max(axis=0)
    fastest = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, 3.0)
    size = np.minimum(size, 0.9 * fastest / np.abs(qd).max(axis=0))
    moving = {'all': np.ones(robot.n, dtype=bool), 'none': np.zeros(robot.n, dtype=bool),
              'one': np.arange(robot.n) == rng.integers(robot.n)}[moves]
    pose = rng.uniform(lower, upper)
    return (time, np.where(moving, 0.5 * (lower + upper) + size * q, pose),
            moving * size * qd, moving * size * qdd)


def recorded(rng: np.random.Generator, robot: RobotModel, made: Made, name: str = 'r') -> RawLog:
    """Return a recording of the robot as it is described."""
    time, q, qd, qdd = motion(rng, robot, made.seconds, made.moves)
    torque = rigid_body.inverse_dynamics(robot, q, qd, qdd)
    usual = rigid_body.inverse_dynamics(
        robot, *motion(np.random.default_rng(1), robot, 10.0, 'all')[1:])
    size = np.sqrt(np.mean(usual**2, axis=0)) + 0.05
    if not made.gravity:
        torque = torque - rigid_body.gravity_effort(robot, q)
    if made.friction:
        dry, viscous = size * rng.uniform(0.02, 0.4, (2, robot.n))
        torque += dry * np.tanh(qd / 0.01) + viscous * qd + size * rng.uniform(
            0.0, 0.1, robot.n) * qdd
        torque += dry * rng.uniform(-1.0, 1.0, robot.n) * (qd == 0.0)
    torque += made.effort_noise * size * rng.standard_normal(torque.shape)
    if made.gain_error is not None:
        torque /= GAIN * (1.0 + made.gain_error * rng.choice([-1.0, 1.0], size=robot.n))
    measured = q + POSITION_NOISE * rng.standard_normal(q.shape)
    velocity = None if made.velocity_noise is None else \
        qd + made.velocity_noise * rng.standard_normal(q.shape)
    return RawLog(name, robot.joints, time, measured, velocity, torque)


def wrong_inertials(rng: np.random.Generator, robot: RobotModel) -> RobotModel:
    """Return the robot with every link three times as heavy, or light, as it is."""
    factors = 3.0 ** rng.choice([-1.0, 1.0], size=robot.n)
    return robot.with_nominal(robot.nominal * factors[:, None])


def of_kind(robot: RobotModel, kind: str) -> RobotModel:
    """Return the robot with another kind of effort."""
    gains = frozen(np.full(robot.n, GAIN)) if kind == 'current' else None
    return replace(robot, drive=Drive(kind, gains=gains))


def case(made: Made, count: int = 1, spoil: Callable = lambda rng, robot: robot) -> Callable:
    """Return what makes so many recordings of a robot, described as ``spoil`` leaves it."""
    def make(rng: np.random.Generator, robot: RobotModel) -> Case:
        logs = [recorded(rng, robot, made, f'run {i}') for i in range(count)]
        return spoil(rng, robot), logs
    return make


#: healthy recordings: nothing may be found in any of them
HEALTHY: dict[str, Callable[[np.random.Generator, RobotModel], Case]] = {
    'as described': case(Made()),
    'inertials wrong': case(Made(), spoil=wrong_inertials),
    'all three times as heavy': case(Made(), spoil=lambda rng, robot: robot.with_nominal(
        3.0 * robot.nominal)),
    'no inertials': case(Made(), spoil=lambda rng, robot: robot.with_nominal(
        np.zeros((robot.n, 10)))),
    'gravity-compensated': case(Made(gravity=False), spoil=lambda rng, robot: of_kind(
        robot, 'gravity_compensated_torque')),
    'gravity-compensated, inertials wrong': case(
        Made(gravity=False), spoil=lambda rng, robot: of_kind(
            wrong_inertials(rng, robot), 'gravity_compensated_torque')),
    'currents, gains 20 % off': case(Made(gain_error=0.2), spoil=lambda rng, robot: of_kind(
        robot, 'current')),
    'five seconds': case(Made(seconds=5.0)),
    'five seconds, inertials wrong': case(Made(seconds=5.0), spoil=wrong_inertials),
    'ten poses': case(Made(seconds=8.0, moves='none'), 10),
    'ten poses, inertials wrong': case(Made(seconds=8.0, moves='none'), 10, wrong_inertials),
    'single joints': case(Made(moves='one'), 5),
    'single joints, inertials wrong': case(Made(moves='one'), 5, wrong_inertials),
    'noisy velocity': case(Made(velocity_noise=0.5)),
    'no velocity': case(Made(velocity_noise=None)),
    'no friction': case(Made(friction=False)),
    'no friction, inertials wrong': case(Made(friction=False), spoil=wrong_inertials),
    'noisy effort': case(Made(effort_noise=0.3)),
    'noisy effort, inertials wrong': case(Made(effort_noise=0.3), spoil=wrong_inertials),
}


#: measured recordings, beside the repository
DATA = Path(__file__).resolve().parents[3] / 'shared' / 'data'
#: the first of the random robots; tests look at other ones
FIRST_ROBOT = 1000
KR300 = """urdf: {urdf}
effort_kind: torque
gear_ratios: {{joint_1: 256.857, joint_2: 267.429, joint_3: 252.333, joint_4: 221,
               joint_5: 239.619, joint_6: 154.323}}
"""
Healthy = tuple[str, RobotModel, Sequence[RawLog]]


def measured() -> Iterator[Healthy]:
    """Yield the recordings beside the repository: single ones, folders, and all of an arm."""
    robots = {'ur10e': load_robot('ur10e'), 'tx40': load_robot('tx40')}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'kr300.yaml'
        file.write_text(KR300.format(urdf=DATA / 'kr300' / 'kr300.urdf'), 'utf-8')
        robots['kr300'] = load_robot(file)
    for name, robot in robots.items():
        logs = {path: load_log(path, robot) for path in sorted((DATA / name).rglob('*.csv.gz'))}
        for path, log in logs.items():
            yield f'{name}/{path.parent.name}/{path.name}', robot, [log]
        for folder_of in sorted({path.parent for path in logs}):
            some = [log for path, log in logs.items() if path.parent == folder_of]
            if len(some) > 1:
                yield f'{name}/{folder_of.name}', robot, some
        yield f'{name}, all', robot, list(logs.values())


def drawn(robots: int) -> Iterator[Healthy]:
    """Yield recordings of random robots, every kind of each robot."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_ROBOT, FIRST_ROBOT + robots):
            for name, make in HEALTHY.items():
                generator = np.random.default_rng([seed, len(name)])
                robot, logs = make(generator, random_robot(seed, Path(folder)))
                yield f'robot {seed}, {name}', robot, logs


def simulated(seeds: Sequence[int]) -> Iterator[Healthy]:
    """Yield recordings of all arms of the strange plant, their links off, in all motions."""
    for seed in seeds:
        for arm in arm_names():
            for motion in TRAINING:
                take = Take(arm, motion, False, seed)
                yield f'{arm} {motion} {seed}', take.arm.robot, [take.record('', None).log]


def is_allowed(name: str, finding: Finding) -> bool:
    """Return whether a finding is true: the KR300 has a counterbalance on axis 2."""
    return name.startswith('kr300') and finding.severity is Severity.WARN \
        and finding.joints == ('joint_2',) and 'balance' in finding.sentence


def healthy_lines(groups: Sequence[tuple[str, Iterator[Healthy]]]) -> Iterator[str]:
    """Yield what is found in each, and how many recordings there are in which nothing is."""
    for title, recordings in groups:
        count, false = 0, 0
        for name, robot, logs in recordings:
            findings = verdict(robot, [examine(robot, log) for log in logs])[0]
            wrong = [one for one in findings if not is_allowed(name, one)]
            count, false = count + 1, false + bool(wrong)
            for one in findings:
                label = 'false' if one in wrong else 'right'
                yield f'{label}: {name}: {one.severity.value} {one.sentence}'
        yield f'{title}: {false} of {count} with a false finding'
