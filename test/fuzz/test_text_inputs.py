"""Damaged texts: robots, URDFs, recipes, trajectories, models, options, simulations.

Every reader accepts an input or raises a DynIdError; see fuzzing.py. What is accepted is used a
little, since a number that passes here must not break what follows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fuzzing import Outcome, Reader, assert_no_faults, fuzz, may_refuse
from text_inputs import SCREWS, model_texts, structured, trajectories

from robot_dynid.cli.files import with_text
from robot_dynid.excitation.families import FAMILIES, parse_request
from robot_dynid.execution.sampled import sampled
from robot_dynid.identification.recipe import read_recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.limits import motion_limits

ROOT = Path(__file__).resolve().parents[2]
#: inputs of a kind in a short run, and in a long one
SHORT, LONG = 600, 100_000


def used_robot(robot: RobotModel) -> None:
    """Use what every command needs of a robot."""
    _ = robot.hash(), robot.geometry, robot.carried, robot.tip, robot.torque_factors
    _ = robot.motor_torque(np.ones((1, robot.n)))
    if np.isfinite(robot.limits.velocity).all() and np.isfinite(robot.limits.acceleration).all():
        motion_limits(robot)


def read_robot(path: Path) -> None:
    """Read a robot beside whose file there are the URDFs."""
    robot = load_robot(path)
    used_robot(robot)
    load_truth(robot, path)


def read_trajectory(path: Path) -> None:
    """Read a trajectory and sample it, as one that is sent."""
    trajectory = load_trajectory(path)
    trajectory.peaks()
    sampled(trajectory, 50.0)


def read_model(path: Path) -> None:
    """Read a model and use it."""
    model = IdentifiedModel.load(path)
    zero = np.zeros(model.robot.n)
    model.inverse(zero, zero, zero)


def read_options(path: Path) -> None:
    """Read options of every kind of excitation."""
    options = with_text({}, str(path))
    given = [lambda kind=kind: parse_request(kind, options) for kind in FAMILIES]
    for read in (*given, lambda: surroundings_from_plain(options, 'scene')):
        with may_refuse():
            read()


RECIPES = (
    b'cutoff: 12.0\nramp_width: 0.01\neffort_lag: 0.002\nrate: 500\nrotor_inertia: true\n',
    b'friction: maxwell+load\nperiod: 10.0\nwarm_up: 1\nresidual: gmr\nloops: three\n',
    b'elastic_joints: [joint_1, joint_2]\nestimator: {name: irls, robust: tukey}\nperiod: auto\n',
    b'method: feasible\n',
    b'estimator: {name: sequential-feasible, sweeps: 3, prior_weight: 1e-3, prior: entropic,\n'
    b'  bounds: {total_mass: [1, 20], links: {link_1: {mass: [1, 5], com: [[0, 0, 0], [1, 1, 1]],'
    b' ellipsoid: {centre: [0, 0, 0], radii: [1, 1, 1]}, symmetric: [x]}}}}\n',
    b'procedure: distal-to-proximal\n', b'instrument_cutoff: 5.0\n',
)
OPTIONS = (
    b'{duration: 20, harmonics: 5, periods: 2, seed: 3, scale: 0.8, starts: 2, iterations: 10}',
    b'{duration: 20.0, knots: 12, objective: log-det, time_limit: 30.0, accuracy: 0.1}',
    b'{procedure: body-by-body, periods: 3, configurations: 2, floor: 0.0, clearance: 0.02}',
    b'{joints: [joint_1], speeds: 4, slowest: 0.1, plateau: 0.5, configurations: 2,'
    b' ladder: {joint_1: [0.1, 0.5, 1.0]}}',
    b'{poses: 10, dwell: 1.5, limits: {joint_1: {position: [-1, 1], velocity: 0.5}}}',
    b'{segments: [{type: fourier, duration: 20}, {type: static-poses, poses: 5}], seed: 1}',
    b'{floor: 0.0, clearance: 0.02, environment: cell.urdf, ignore_pairs: [[link_1, link_3]],'
    b' keep_out: [{centre: [0, 0, 1], size: [1, 1, 1], rotation: [0, 0, 0.1]}]}',
)
def files(pattern: str) -> tuple[bytes, ...]:
    """Return the files of the repository that match."""
    return tuple(path.read_bytes() for path in sorted((ROOT / 'robot_dynid').glob(pattern)))


@pytest.fixture(scope='session')
def trajectory_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, ...]:
    """Return a file of every type of trajectory."""
    path = tmp_path_factory.mktemp('trajectories') / 'T.yaml'
    found = []
    for trajectory in trajectories():
        save_trajectory(trajectory, path)
        found.append(path.read_bytes())
    return tuple(found)


READERS: dict[str, tuple[str, tuple[bytes, ...], Callable[[Path], object]]] = {
    'robot': ('.yaml', (*files('config/robots/*.yaml'), *files('config/simulation/*.yaml'),
                        SCREWS, SCREWS), read_robot),
    'URDF': ('.urdf', files('urdf/*.urdf'), lambda path: used_robot(load_robot(path))),
    'recipe': ('.yaml', RECIPES, read_recipe),
    'options': ('.yaml', OPTIONS, read_options),
}


def reader_of(kind: str, request: pytest.FixtureRequest) -> Reader:
    """Return the reader of a kind of text."""
    if kind == 'trajectory':
        given = ('.yaml', request.getfixturevalue('trajectory_files'), read_trajectory)
    elif kind.endswith('model'):
        given = ('.yaml', model_texts(kind == 'unprotected model'), read_model)
    else:
        given = READERS[kind]
    suffix, seeds, read = given
    return Reader(kind, suffix, seeds, read, structured)


def told(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    """Print what happened, and fail for any fault."""
    with capsys.disabled():
        sys.stdout.write(f'\n{outcome}')
    assert_no_faults(outcome)


KINDS = (*READERS, 'trajectory', 'model', 'unprotected model')


@pytest.mark.parametrize('kind', KINDS)
def test_damaged_texts_are_read_or_refused(kind: str, request: pytest.FixtureRequest,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    told(fuzz(reader_of(kind, request), SHORT), capsys)


@pytest.mark.soak
@pytest.mark.parametrize('kind', KINDS)
def test_very_many_damaged_texts(kind: str, request: pytest.FixtureRequest,
                                capsys: pytest.CaptureFixture[str]) -> None:
    told(fuzz(reader_of(kind, request), LONG, seed=1), capsys)
