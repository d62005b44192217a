"""Damaged texts: robots, URDFs, recipes, trajectories, models, options, simulations.

Every reader accepts an input or raises a DynIdError; see fuzzing.py. What is accepted is used a
little, since a number that passes here must not break what follows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from feasible_models import feasible_model, random_links
from fuzzing import Outcome, Reader, assert_no_faults, fuzz, may_refuse, mutated
from nominal import nominal_model

from robot_dynid.cli.files import with_text
from robot_dynid.effects.deflection import RadialModel
from robot_dynid.excitation.families import FAMILIES, parse_request
from robot_dynid.execution.sampled import sampled
from robot_dynid.identification.recipe import read_recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Trained
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.trajectories.composite import Composite
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.single_joint import SineSwing, Sweep
from robot_dynid.trajectories.trajectory import QuinticMove, Trajectory

ROOT = Path(__file__).resolve().parents[2]
#: inputs of a kind in a short run, and in a long one
SHORT, LONG = 600, 100_000
#: what stands for a value in a text of YAML: numbers nothing has, other types, bombs
NASTY = (
    '.nan', '-.inf', '.inf', '1e308', '-1e308', '1e-308', '1e400', '0', '-1', '1.5', '999999999',
    '1e4', '-1e4', '1e6', '-1e6', '1e-9', '1e-6', '1e10', '1e16', '1e17', '100', '200', '1e5',
    '1' + '0' * 299, '9' * 400, '0x10', '1_000', "'5'", 'true', 'null', '~', '2020-01-01',
    '2001-12-14t21:59:43.10-05:00', '!!bool q', '!!timestamp x', '!!int x', '!!binary x',
    '!!python/object/apply:os.system [ls]', '!!set {a}', '[]', '{}', '[[]]', '[1, [2]]',
    '[.nan, 1e308, x]', '{a: 1}', '{<<: {a: 1}}', '*a', '&a [*a]', '[' * 1000, '{a: ' * 1000,
    '"\\ud800"', '"\\0"', "''", 'x' * 5000, '\u2028', '/dev/zero', '../../../etc/passwd',
    '[1, 2, 3]', '[0, 0, 0]', '[1e308, 1e308, 1e308]', '[-1, 1]', '[1, -1]', '- 1', '? [a] : b',
    '&x [&y [&z [1, 1, 1, 1], *z, *z, *z], *y, *y, *y]', '|\n  text', '%TAG', '--- 1', '...',
)
_VALUE = re.compile(rb'(?<=[:,\[] )[^\n,\]}]+|(?<=\[)[^\n,\]}\[]+|(?<=")[^"\n]*(?=")')
_KEY = re.compile(rb'[A-Za-z_]\w*(?=:)')
_LINE = re.compile(rb'[^\n]+\n')
_ELEMENT = re.compile(rb'<[^>]*>')


def one_of(rng: np.random.Generator, pattern: re.Pattern[bytes], data: bytes
           ) -> tuple[int, int] | None:
    """Return where a match begins and ends, any of those in a text."""
    places = [found.span() for found in pattern.finditer(data)]
    return places[int(rng.integers(len(places)))] if places else None


def structured(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a text with one damage to its values, keys, lines or bytes."""
    kind = int(rng.integers(8))
    pattern = (_VALUE, _VALUE, _VALUE, _KEY, _LINE, _LINE, _ELEMENT)[kind] if kind < 7 else None
    place = None if pattern is None else one_of(rng, pattern, data)
    if place is None:
        return mutated(rng, data)
    begin, end = place
    word = NASTY[int(rng.integers(len(NASTY)))].encode()
    if pattern is _VALUE:
        return data[:begin] + word + data[end:]
    if pattern is _KEY:
        other = one_of(rng, _KEY, data)
        assert other is not None
        return data[:begin] + data[slice(*other)] + data[end:]
    count = int(rng.choice([0, 0, 2, 3]))  # left out, or written again
    return data[:begin] + data[begin:end] * count + data[end:]


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


def trajectories() -> list[Trajectory]:
    """Return one of every type."""
    joints, low, high = ('a', 'b'), np.zeros(2), np.array([0.5, -0.4])
    there, back = QuinticMove(joints, low, high, 2.0), QuinticMove(joints, high, low, 2.0)
    return [
        FourierTrajectory(joints, 0.1, low, np.full((2, 3), 0.1), np.full((2, 3), 0.2), 2),
        BSplineTrajectory(joints, 5.0, np.array([[0.0, 0.1, 0.3], [0.2, 0.1, 0.0]])),
        SineSwing(joints, 'a', low, 0.3, 0.5), Sweep(joints, 'b', low, 0.4, 0.3, 1.0), there,
        Composite((there, back)),
    ]


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
SCREWS = b"""effort_kind: torque
gravity: [0.0, 0.0, -9.81]
screws:
  - {name: a, axis: [0, 1, 0], origin: [0, 0, 0.4], mass: 3, com: [0, 0, 0.1],
     inertia: {ixx: 0.1, iyy: 0.1, izz: 0.1}}
  - {name: b, axis: [0, 1, 0], origin: [0.3, 0, 0.4], type: prismatic, parent: a, link: tool}
gear_ratios: {a: 100, b: -50}
rotor_axes: {a: [0, 0, 1]}
elastic_joints: [a]
joint_torque_sensors: [a]
drive_gains: {a: 2.0, b: 1.0}
drive_gains_std: 0.02
coupling: {b: {a: 0.0, b: 1.0}}
limits:
  a: {position: [-2.0, 2.0], velocity: 2.0, acceleration: 8.0, effort: 60.0}
  b: {position: [-2.5, 2.5], velocity: 3.0, acceleration: 12.0, effort: 25.0}
"""


def files(pattern: str) -> tuple[bytes, ...]:
    """Return the files of the repository that match."""
    return tuple(path.read_bytes() for path in sorted((ROOT / 'robot_dynid').glob(pattern)))


RECORD: dict[str, Any] = {
    'recordings': ['a.csv', 'b.csv'], 'samples': 40, 'weights_near_reversals': [0.5, 1.0, 0.25],
    'std_over_textbook': 5.5, 'degrees_of_freedom': 7.0, 'refused': {'joint_2': 'constant'},
    'cutoffs_tried': [{'cutoff': 2.0, 'held_out_score': 0.1}],
    'friction': [{'axis': '1', 'law': 'coulomb', 'note': '', 'tried': [
        {'law': 'coulomb', 'error_over_coulomb': 1.0}]}],
    'effort_lag': {'seconds': -0.003, 'std': 0.0002},
    'residual': {'kind': 'gmr', 'rounds': 2, 'rounds_tried': [[1.0, 2.0, 3.0]], 'loops': 'three',
                 'seconds': {'friction': 1.0}}}


def model_texts(unprotected: bool) -> tuple[bytes, ...]:
    """Return model files, of several robots and with all that may be in them.

    ``unprotected`` ones have no digest, as those of older software.
    """
    planar = nominal_model('planar_3r')
    rng = np.random.default_rng(0)
    ends = np.array([[-1.0, 1.0]] * 3)
    rich = replace(
        planar, record=FitRecord.from_plain(RECORD, 'wls'),
        trained=Trained({'position': ends, 'velocity': 2.0 * ends}),
        noise_levels=NoiseLevels(np.ones(3), np.ones(3), np.full(3, 0.01)),
        learnt={'residual': (
            RadialModel(np.zeros(1), np.ones(1), 4, np.ones(4), np.ones(4), 0.1), None, None)})
    models = (planar, rich, nominal_model('elastic_2r'), nominal_model('tx40'),
              feasible_model(planar.robot, random_links(rng, 3), rng))
    texts = [model.to_yaml() for model in models]
    return tuple((text.rpartition('\ndigest:')[0] + '\n' if unprotected else text).encode()
                 for text in texts)


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
