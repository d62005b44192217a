"""Designed excitations beside random ones and beside public optimisers, same limits, one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import EFFORT_MARGIN, DesignCriteria, design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.request import DesignOptions
from robot_dynid.excitation.score import Score, Scorer
from robot_dynid.excitation.search.basis import FourierBasis
from robot_dynid.excitation.search.constraints import EffortLimits
from robot_dynid.excitation.search.optimise import Problem, random_starts
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits, motion_limits
from robot_dynid.types import frozen
from robot_dynid_evaluation.bench import Row, Target, figaroh_peer, fourier_peer, row

ROBOTS = ('ur10e', 'tx40', 'seven_axis')
DURATION, HARMONICS, DRAWS = 20.0, 5, 1000
#: seconds for our search; a peer gets this many times our seconds
BUDGET, PATIENCE = 8.0, 10.0
BETTER, SOON, MOST_SECONDS = Target(1.0), Target(PATIENCE), 30.0
#: free waypoints of FIGAROH, one more per joint than our free coefficients
WAYPOINTS = 2 * HARMONICS


@dataclass(frozen=True, eq=False)
class Entry:
    """Result of a contender on a robot, and its ``seconds``."""

    name: str
    condition: float
    log_det: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Setting:
    """The problem that all get: limits as they may be used, and the criteria of the motions."""

    robot: RobotModel
    limits: MotionLimits
    criteria: DesignCriteria
    scale: float

    def score(self, trajectory: Any) -> Score:
        """Return the figures of a motion, by the same code for all contenders."""
        assert self.criteria.score is not None
        return self.criteria.score(trajectory)


def measure(progress: Progress) -> Iterator[Row]:
    """Yield condition number, log det and seconds of every robot beside every contender."""
    designed(prepared('planar_3r'), 0.0)  # kernels are loaded before the clock runs
    for index, name in enumerate(ROBOTS):
        def report(what: str, fraction: float, first: int = index, robot: str = name) -> None:
            progress(f'{robot}: {what}', (first + fraction) / len(ROBOTS))

        yield from robot_rows(name, report)


def robot_rows(name: str, progress: Callable[[str, float], None]) -> Iterator[Row]:
    """Yield the rows of one robot."""
    setting = prepared(name)
    progress('design', 0.0)
    ours = designed(setting)
    yield row(f'{name}: design / {MOST_SECONDS:g} s', 's', ours.seconds, MOST_SECONDS, Target(1.0))
    progress(f'{DRAWS} random motions', 0.1)
    yield from compared(setting, ours, best_of_random(setting), None)
    for peer, run, share in ((fourier_peer, by_ipopt, 0.2), (figaroh_peer, by_figaroh, 0.6)):
        progress(peer.NAME, share)
        what = f'{name} / {peer.NAME}'
        if peer.available():
            yield from compared(setting, ours, run(setting, PATIENCE * ours.seconds), SOON)
        else:
            yield absent(f'{what}: not installed', ours)


def compared(setting: Setting, ours: Entry, peer: Entry, soon: Target | None) -> list[Row]:
    """Return three rows; the ratio of two log dets is that of the mean standard deviations."""
    what = f'{setting.robot.name} / {peer.name}'
    assert setting.criteria.model is not None
    count = 2.0 * len(setting.criteria.model.reduction.pivots)
    deviations = row(f'{what}: log det (ratio: mean std)', '',
                     1.0, float(np.exp((ours.log_det - peer.log_det) / count)), BETTER)
    seconds = row(f'{what}: time', 's', ours.seconds, peer.seconds, soon or BETTER)
    if soon is None:
        seconds |= {'target': '-', 'kept': None}
    return [row(f'{what}: condition number', '', ours.condition, peer.condition, BETTER),
            deviations | {'ours': ours.log_det, 'peer': peer.log_det}, seconds]


def absent(what: str, ours: Entry) -> Row:
    """Return the row of a peer that cannot be imported."""
    return {'what': what, 'unit': '', 'ours': ours.condition, 'peer': None, 'ratio': None,
            'target': str(BETTER), 'kept': None}


def prepared(name: str) -> Setting:
    """Return the problem of one robot: its real limits, as much of them as a design uses."""
    robot, scale = load_robot(name), DesignOptions.scale
    limits = motion_limits(robot)
    allowed = replace(limits.scaled(scale), effort=frozen(scale * limits.effort))
    criteria = design_criteria(robot)
    score = replace(cast('Scorer', criteria.score), parts={}, sizes=None)  # only what is compared
    return Setting(robot, allowed, replace(criteria, score=score), scale)


def designed(setting: Setting, budget: float = BUDGET) -> Entry:
    """Return our design, as the command makes it."""
    begin = time.perf_counter()
    criteria = replace(setting.criteria, elapsed=lambda: time.perf_counter() - begin)
    request = parse_request('fourier', {'duration': DURATION, 'harmonics': HARMONICS,
                                        'scale': setting.scale, 'time_limit': budget})
    found = design(setting.robot, request, criteria)
    assert found.score is not None
    return Entry('ours', found.score.condition_number, found.score.log_det,
                 time.perf_counter() - begin)


def best_of_random(setting: Setting, draws: int = DRAWS) -> Entry:
    """Return the best of either figure; efforts may exceed their limits, unlike ours."""
    rng, options = np.random.default_rng(0), FourierOptions(DURATION, HARMONICS)
    begin = time.perf_counter()
    scores = [setting.score(random_fourier(setting.limits, options, rng)) for _ in range(draws)]
    return Entry(f'best of {draws} random', min(s.condition_number for s in scores),
                 max(s.log_det for s in scores), time.perf_counter() - begin)


def by_ipopt(setting: Setting, budget: float) -> Entry:
    """Return the result of IPOPT from our starts, as many as the budget allows."""
    begin = time.perf_counter()
    problem = fourier_problem(setting)
    starts = random_starts(problem, DesignOptions.starts, np.random.default_rng(0))
    found = fourier_peer.optimise(problem, (start for _, start in starts), budget)
    seconds = time.perf_counter() - begin
    score = setting.score(problem.basis.trajectory(found))
    return Entry(fourier_peer.NAME, score.condition_number, score.log_det, seconds)


def fourier_problem(setting: Setting) -> Problem:
    """Return the problem that our design solves, for another solver."""
    criteria, limits = setting.criteria, setting.limits
    assert criteria.inverse is not None and criteria.objective is not None
    basis = FourierBasis(limits.joints, FourierOptions(DURATION, HARMONICS))
    efforts = EffortLimits(criteria.inverse, limits.joints, EFFORT_MARGIN * limits.effort)
    blank = Problem(basis, limits, lambda motion: (0.0, (motion.position,) * 3), (efforts,))
    typical = blank.motion(basis.random(limits, np.random.default_rng(0)))
    return replace(blank, objective=criteria.objective('condition', typical, DURATION))


def by_figaroh(setting: Setting, budget: float) -> Entry:
    """Return the result of FIGAROH; infinite where it finds nothing within the limits."""
    begin = time.perf_counter()
    task = figaroh_peer.Task(setting.limits, DURATION, WAYPOINTS, budget)
    try:
        motion = figaroh_peer.optimise(setting.robot, task)
    except DynIdError:
        return Entry(figaroh_peer.NAME, np.inf, -np.inf, time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    score = setting.score(motion)
    return Entry(figaroh_peer.NAME, score.condition_number, score.log_det, seconds)
