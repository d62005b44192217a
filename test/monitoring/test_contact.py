"""Contact detection with an identified model: the simulated arm, pushes on a UR10e."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.log import load_log
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.robot.robot_file import load_robot
from robot_dynid_evaluation.bench.contact import MOTION, SOON, WITH_CONTACT, WITHOUT_CONTACT, Bench


@pytest.fixture(scope='module')
def bench() -> Bench:
    pytest.importorskip('mujoco')
    return Bench.prepared()


@pytest.mark.parametrize(('with_contact', 'without_contact'), [
    pytest.param(1, 1, id='short'),
    pytest.param(WITH_CONTACT, WITHOUT_CONTACT, id='long', marks=pytest.mark.soak)])
def test_steps_are_seen_soon_and_nothing_else(
    bench: Bench, with_contact: int, without_contact: int
) -> None:
    found = [f for i in range(with_contact) for f in bench.with_contact(100 + i)]
    moving = [f for f in found if not f.reversing]
    assert len(moving) > 0.8 * len(found) > 10
    assert all(f.seconds is not None and f.seconds < SOON for f in moving), moving
    assert all(f.seconds is not None for f in found), found
    alarms = [bench.without_contact(1000 + i)[0] for i in range(without_contact)]
    assert not any(alarms), without_contact * MOTION


@pytest.fixture(scope='module')
def ur10e(ur10e_data: Path) -> IdentifiedModel:
    robot = load_robot('ur10e')
    logs = [load_log(path, robot) for path in sorted((ur10e_data / 'train').glob('*.gz'))]
    return identify(robot, logs, recipe=Recipe(
        friction='coulomb', cutoff=8.0, ramp_width=0.01, effort_lag=0.0)).model


def test_pushes_on_a_real_arm_are_seen(ur10e: IdentifiedModel, ur10e_data: Path) -> None:
    paths = sorted((ur10e_data / 'contact').glob('*.gz'))
    for found in contact_events(ur10e, [load_log(path, ur10e.robot) for path in paths]):
        assert len(found.contacts) >= 8
        assert len({c.joint for c in found.contacts}) >= 4
        assert max(abs(c.peak) for c in found.contacts) > 50.0
        assert np.all(found.without_contact < np.abs(found.torque).max() / 2.0)


@pytest.mark.parametrize(('folder', 'count'), [('static', 10), ('test', 3)])
def test_untouched_arms_show_no_contact(
    ur10e: IdentifiedModel, ur10e_data: Path, folder: str, count: int
) -> None:
    paths = sorted((ur10e_data / folder).glob('*.gz'))
    found = contact_events(ur10e, [load_log(path, ur10e.robot) for path in paths])
    assert len(found) == count
    assert [c for p in found for c in p.contacts] == []


def test_command_prints_and_reports(
    ur10e: IdentifiedModel, ur10e_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ur10e.save(tmp_path / 'm.yaml')
    words = ['contact', str(tmp_path / 'm.yaml'), str(ur10e_data / 'contact/push_pose_1.csv.gz'),
             '--report', str(tmp_path / 'r.html')]
    assert main(words) == 0
    assert 'shoulder_pan_joint' in capsys.readouterr().out
    assert 'static friction hides smaller pushes' in (tmp_path / 'r.html').read_text('utf-8')
    assert main([*words, '--gain', '-1']) == 2
    assert 'gain of the observer must be positive' in capsys.readouterr().err


def test_contact_detection_without_recordings_is_refused() -> None:
    with pytest.raises(DataError, match='no recording to detect contacts in'):
        contact_events(nominal_model('planar_3r'), [])
