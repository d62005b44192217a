"""Healthy recordings: measured ones, of random robots, and of all arms of the strange plant.

Nothing may be found in any of them, but a counterbalance on axis 2 of the KR300, which has one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from gate_rows import Take, arm_names
from random_recordings import HEALTHY, random_robot
from strange_motions import TRAINING

from robot_dynid import load_log, load_robot
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.gate import examine, verdict
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import RawLog

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
