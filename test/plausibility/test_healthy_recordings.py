"""plausibility/gate.py: nothing is found in healthy recordings: measured ones, and those of random
robots."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from healthy_recordings import HEALTHY, random_robot
from strange_gears import recording
from strange_plant import TRAINING, Plant, load_arm

from robot_dynid.io.log import load_log
from robot_dynid.plausibility import score
from robot_dynid.plausibility.causes import FITTED_ROWS, causes
from robot_dynid.plausibility.excerpt import Excerpt, excerpt, sample_excerpts, thin_excerpt
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.gate import Examination, examine, verdict
from robot_dynid.plausibility.score import RAMPS, Explained
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog, take

#: steps of encoders [rad] and noise of velocities [rad/s]
STRANGE = ({'step': 1e-4, 'noise': 1e-2}, {'step': 1e-5, 'noise': 1e-3})
FOLDERS = ('train', 'test', 'single_joint', 'static', 'contact', 'payload_2.805kg')


@pytest.fixture(scope='module')
def ur10e(ur10e_data: Path) -> dict[str, list[Examination]]:
    """Return all recordings of the UR10e, examined, by folder."""
    robot = load_robot('ur10e')
    return {name: [examine(robot, load_log(f, robot)) for f in sorted(
        (ur10e_data / name).iterdir())] for name in FOLDERS}


@pytest.mark.parametrize('name', FOLDERS)
def test_verdict_finds_nothing_in_recordings_of_the_ur10e(
    name: str, ur10e: dict[str, list[Examination]]
) -> None:
    robot = load_robot('ur10e')
    assert verdict(robot, ur10e[name]) == ((), frozenset())
    for one in ur10e[name]:
        assert verdict(robot, [one]) == ((), frozenset())


def test_verdict_finds_nothing_in_all_recordings_of_the_ur10e_together(
    ur10e: dict[str, list[Examination]]
) -> None:
    everything = [one for name in FOLDERS for one in ur10e[name]]
    assert len(everything) == 26
    assert verdict(load_robot('ur10e'), everything) == ((), frozenset())


def test_verdict_finds_nothing_in_the_recording_of_the_tx40(shared_data: Path) -> None:
    robot = load_robot('tx40')
    log = load_log(shared_data / 'tx40' / 'exciting.csv.gz', robot)
    assert verdict(robot, [examine(robot, log)]) == ((), frozenset())


def nothing_found(seed: int, name: str, folder: Path) -> None:
    """Check one healthy case of a random robot."""
    generator = np.random.default_rng([seed, len(name)])
    robot, logs = HEALTHY[name](generator, random_robot(seed, folder))
    assert verdict(robot, [examine(robot, log) for log in logs]) == ((), frozenset())


@pytest.mark.parametrize('name', HEALTHY)
def test_verdict_finds_nothing_in_recordings_of_random_robots(name: str, tmp_path: Path) -> None:
    for seed in range(3):
        nothing_found(seed, name, tmp_path)


@pytest.mark.parametrize(('seed', 'name'), [
    (32, 'single joints, inertials wrong'), (36, 'five seconds, inertials wrong')])
def test_verdict_finds_nothing_where_all_links_are_lighter(
    seed: int, name: str, tmp_path: Path
) -> None:
    """One joint alone must not be blamed for it."""
    robot, logs = HEALTHY[name](np.random.default_rng([seed, len(name)]),
                                random_robot(seed, tmp_path))
    rows = [thin_excerpt(excerpt(robot.rigid, log), FITTED_ROWS) for log in logs]
    assert causes(robot.rigid, 'all', sample_excerpts(rows, FITTED_ROWS)) == []


def test_explained_sizes_are_nan_when_friction_and_offset_suffice() -> None:
    robot = load_robot('planar_3r')
    motion = np.random.default_rng(5).standard_normal((3, 60, 3))
    none = np.empty((0, 3))
    torque = 4.0 * np.tanh(motion[1] / RAMPS[0]) + 3.0 * motion[1]
    rows = Excerpt(*motion, torque, none, none, np.empty(0), 0.01)
    assert np.isnan(Explained(robot, rows).free_sizes).all()


def nothing_found_in_strange_friction(seed: int, seconds: float, speed: float) -> None:
    """Check joints that bear little, with friction of no class of the package."""
    robot, log = recording({}, seconds, speed, seed=seed, path=seed + 50, **STRANGE[seed % 2])
    assert examine(robot, log).findings == ()


@pytest.mark.parametrize(('seed', 'seconds', 'speed'), [
    (0, 20.0, 0.15), (1, 20.0, 0.35), (1, 40.0, 0.7), (2, 20.0, 0.35)])
def test_strange_friction_tells_nothing_of_the_unit_of_positions(
    seed: int, seconds: float, speed: float
) -> None:
    nothing_found_in_strange_friction(seed, seconds, speed)


def test_a_remedy_that_two_causes_share_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bend of friction at two speeds only takes strange friction for another unit of a joint."""
    monkeypatch.setattr(score, 'RAMPS', (0.02, 0.2))
    robot, log = recording({}, 20.0, 0.35, seed=1, path=51, **STRANGE[1])
    (found, *_) = examine(robot, log).findings
    assert ' or of ' in found.sentence and 'too small' in found.sentence
    assert found.remedy.count('multiply its positions and velocities by 2') == 1


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(20))
def test_strange_friction_is_no_fault(seed: int) -> None:
    for seconds, speed in product((5.0, 20.0, 40.0), (0.15, 0.35, 0.7)):
        nothing_found_in_strange_friction(seed, seconds, speed)


def jogged(name: str, seed: int) -> tuple[RobotModel, list[RawLog]]:
    """Return an arm, and both halves of a recording in which its joints move one by one."""
    arm = load_arm(name)
    log = Plant(arm, seed).record(TRAINING['jog'](arm, np.random.default_rng((seed, 0))), seed).log
    middle = len(log.time) // 2
    return arm.robot, [take(log, slice(middle)), take(log, slice(middle, None))]


@pytest.mark.parametrize(('name', 'seed'), [('tx40', 43), ('ur10e', 44)])
def test_joints_at_rest_are_not_taken_for_those_that_move(name: str, seed: int) -> None:
    """Their friction takes any effort, that of another joint, too."""
    robot, halves = jogged(name, seed)
    for half in halves:
        assert examine(robot, half).findings == ()


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(60, 70))
@pytest.mark.parametrize('name', ['stanford', 'tx40', 'ur10e', 'puma', 'scara'])
def test_no_half_of_the_joints_is_refused(name: str, seed: int) -> None:
    robot, halves = jogged(name, seed)
    for half in halves:
        assert not [one for one in examine(robot, half).findings
                    if one.severity is Severity.REFUSE]


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(50))
def test_verdict_finds_nothing_in_recordings_of_fifty_robots(seed: int, tmp_path: Path) -> None:
    for name in HEALTHY:
        nothing_found(seed, name, tmp_path)
