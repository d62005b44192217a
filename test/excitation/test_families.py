"""Every family on random robots: no limit is broken between samples, files keep the motion."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from random_robots import random_urdf

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import FAMILIES, parse_request
from robot_dynid.execution.sampled import END_REST, faults, sampled
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.robot.urdf import robot_from_urdf

RATE = 100.0
#: calls of the clock after which a search ends: limits hold whenever that is
STEPS = 12
OPTIONS = {
    'fourier': {'duration': 8.0, 'time_limit': STEPS},
    'bspline': {'duration': 8.0, 'knots': 8, 'time_limit': STEPS},
    'sine-sequence': {'periods': 1, 'configurations': 1},
    'constant-velocity': {'speeds': 3, 'configurations': 1, 'plateau': 0.1},
    'static-poses': {'poses': 12, 'dwell': 0.3},
    'composite': {'segments': [{'type': 'bspline', 'duration': 6.0, 'time_limit': STEPS},
                               {'type': 'constant-velocity', 'speeds': 2, 'plateau': 0.1,
                                'configurations': 1}]},
}
SEEDS = [pytest.param(seed, marks=pytest.mark.soak if seed >= 10 else () if seed else
                      pytest.mark.always) for seed in range(100)]


def random_task(seed):
    """Return a random robot, chain or tree, and random limits as option."""
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, int(rng.integers(1, 6)), float(rng.choice([0.0, 0.4])))
    robot = robot_from_urdf(text.replace('effort="50.0"', f'effort="{rng.uniform(200, 900)!r}"'))
    limits = {}
    for joint in robot.joints:
        low, high = np.sort(rng.uniform(-2.4, 1.9, 2))
        limits[joint] = {
            'position': [float(low), float(high) + 0.05], 'velocity': float(rng.uniform(0.3, 2.9)),
            'acceleration': float(rng.uniform(1.0, 20.0))}
        if rng.random() < 0.5:
            limits[joint]['jerk'] = float(rng.uniform(20.0, 200.0))
    return robot, limits


def largest_share(found, robot):
    """Return the largest part of a limit that the motion uses, 10 times finer than sent."""
    trajectory, limits = found.trajectory, found.limits
    time = np.linspace(0.0, trajectory.duration, int(10.0 * RATE * trajectory.duration) + 1)
    motion = trajectory.sample(time)
    parts = [np.abs(motion.position - limits.centre) / limits.half_range]
    parts += [np.abs(getattr(motion, name)) / getattr(limits, name)
              for name in ('velocity', 'acceleration', 'jerk')]
    effort = inverse_dynamics(robot, motion.position, motion.velocity, motion.acceleration)
    parts.append(np.abs(effort) / limits.effort)
    return float(np.nanmax([np.nanmax(part) for part in parts if not np.all(np.isnan(part))]))


@pytest.mark.parametrize('seed', SEEDS)
def test_no_family_breaks_a_limit_of_a_random_robot(seed, tmp_path):
    robot, limits = random_task(seed)
    criteria = design_criteria(robot)
    for kind in FAMILIES:
        request = parse_request(kind, {**OPTIONS[kind], 'limits': limits, 'seed': seed})
        try:
            found = design(robot, request, replace(criteria, elapsed=count().__next__))
        except DynIdError as error:
            assert 'effort' in str(error), f'{kind}: {error}'
            continue
        share = largest_share(found, robot)
        assert share <= request.common.scale + 1e-9, f'{kind} uses {share:.4f}'
        trajectory = found.trajectory
        assert not faults(sampled(trajectory, RATE), found.limits, np.inf), kind
        ends = trajectory.sample([0.0, trajectory.duration])
        assert np.abs(ends.velocity).max() < END_REST
        assert np.abs(ends.acceleration).max() < END_REST
        save_trajectory(trajectory, tmp_path / 'T.yaml')
        time = np.linspace(0.0, trajectory.duration, 300)
        again = load_trajectory(tmp_path / 'T.yaml').sample(time)
        assert np.array_equal(again.position, trajectory.sample(time).position), kind

