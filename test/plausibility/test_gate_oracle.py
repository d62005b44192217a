"""test/support/gate_oracle.py: what the table of faults is judged by: who could tell a fault, and
what remedies say."""

from __future__ import annotations

import numpy as np
import pytest

pin = pytest.importorskip('pinocchio', reason='optional oracle is not installed: pinocchio')

from gate_oracle import Told, can_tell, told  # noqa: E402
from gate_remedy import puts_right, remedies  # noqa: E402
from gate_rows import ROWS, Case, Take  # noqa: E402

from robot_dynid.plausibility.finding import Finding, Severity  # noqa: E402

TAKE = Take('ur10e', 'random', False, 3)
SHOULDER, WRIST = 1, 5


def cases(name: str) -> list[Case]:
    """Return the cases of a row."""
    return list(ROWS[name].make(TAKE, TAKE.draw(name)))


def shows(name: str, joint: int = 0) -> bool:
    """Return whether anybody could tell a fault."""
    return can_tell(ROWS[name], told(TAKE, ROWS[name], cases(name)[joint]))


@pytest.mark.parametrize('name', [
    'mounted: wall x', 'mounted: ceiling', 'efforts swapped', 'gravity removed',
    'sign of all efforts', 'clock x 1.07', 'late velocities', 'degrees'])
def test_shows_is_true_for_faults_that_contradict_the_description(name: str) -> None:
    assert shows(name)


def test_an_offset_about_gravity_does_not_show() -> None:
    assert not shows('offset 90 degrees', 0)
    assert shows('offset 30 degrees', SHOULDER)


def test_an_effort_that_is_friction_alone_has_any_size() -> None:
    assert not shows('an effort x 0.5', WRIST)
    assert shows('an effort x 0.5', SHOULDER)


def test_friction_that_drives_shows() -> None:
    assert shows('sign of an effort', WRIST)


def test_the_healthy_recording_shows_nothing() -> None:
    evidence = told(TAKE, ROWS['healthy'], cases('healthy')[0])
    assert evidence == Told(0.0, pytest.approx(0.0, abs=0.01))


def test_a_clock_shows_by_its_factor_in_velocities() -> None:
    evidence = told(TAKE, ROWS['clock x 0.8'], cases('clock x 0.8')[0])
    assert evidence.motion == pytest.approx(0.2, abs=0.01)
    assert told(TAKE, ROWS['clock x 0.8'], cases('clock x 0.8, no velocity')[0]).motion == 0.0


@pytest.mark.parametrize(('name', 'joint', 'kind', 'remedy'), [
    ('offset 30 degrees', 2, 'position_offset', 'subtract +0.5236 rad from its positions, or ...'),
    ('offset 90 degrees', 2, 'position_offset', 'subtract pi/2 from its positions'),
    ('offset 30 degrees', 2, 'position_offset', 'subtract 30 degrees from its positions'),
    ('position x 2, velocity too', 1, 'position_unit', 'divide its positions and velocities by 2'),
    ('sign of an effort', 1, 'effort_sign', 'change the sign of the efforts, so that ...'),
    ('sign of a position only', 1, 'position_sign', 'change the sign of its positions'),
    ('an effort / 100', 1, 'effort_scale', 'multiply its efforts by 100, or correct its gain'),
    ('clock x 0.8', None, 'clock', 'divide time by 0.8, or record the stamps of the driver'),
    ('time in ms', None, 'time_unit',
     'multiply time by 0.001, so that it is in seconds (of a table: unit: ms in columns)'),
    ('degrees', None, 'position_unit', 'convert positions and velocities to rad and rad/s (of a '
     'table: unit: deg and deg/s in columns)'),
    ('gravity removed', None, 'gravity', 'state effort_kind: gravity_compensated_torque'),
    ('mounted: wall x', None, 'gravity', 'state gravity: [9.7, 0.5, 0] in the robot YAML'),
    ('mounted: ceiling', None, 'gravity', 'state gravity: [0, 0, 9.81], or correct base_link')])
def test_remedies_are_read(name: str, joint: int | None, kind: str, remedy: str) -> None:
    case = cases(name)[joint or 0]
    finding = Finding(kind, 'r', case.joints, Severity.REFUSE, '', remedy)
    (fix, *others) = remedies(case.robot, finding)
    assert fix is not None
    assert case.right is not None
    assert puts_right(fix(case.robot, case.sample.log), case.right)
    assert not puts_right((case.robot, case.sample.log), case.right)
    assert not any(others)


@pytest.mark.parametrize('name', ['efforts swapped', 'wrist joints swapped'])
def test_columns_are_put_in_order(name: str) -> None:
    (case,) = cases(name)
    text = 'put the effort columns in order' if 'efforts' in name else 'put all columns in order'
    finding = Finding('joint_order', 'r', case.joints, Severity.REFUSE, '', text)
    (fix,) = remedies(case.robot, finding)
    assert fix is not None
    log, right = fix(case.robot, case.sample.log)[1], TAKE.sample().log
    for channel in ('position', 'velocity', 'effort'):
        np.testing.assert_array_equal(getattr(log, channel), getattr(right, channel))


def test_a_remedy_in_the_wrong_numbers_does_not_put_right() -> None:
    case = cases('an effort / 100')[1]
    for text in ('multiply its efforts by 1000', 'multiply its efforts by 50'):
        (fix,) = remedies(case.robot, Finding(
            'effort_scale', 'r', case.joints, Severity.REFUSE, '', text))
        assert fix is not None
        assert case.right is not None
        assert not puts_right(fix(case.robot, case.sample.log), case.right)
