"""Causes are named by numbers that put the recording right, and nothing is said without evidence.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import recording
from spoiled_recordings import DEGREES, offset, swapped, time_in, times

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.io.log import load_log
from robot_dynid.plausibility.excerpt import excerpt, thin_excerpt
from robot_dynid.plausibility.explanations import CHANNELS, Change
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.gate import examine, verdict
from robot_dynid.plausibility.score import Explained, Fits
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

ROBOT = load_robot('planar_3r')
LOG = recording(ROBOT, 1)


def findings(log: RawLog) -> tuple[Finding, ...]:
    """Return what is found in a recording."""
    return examine(ROBOT, log).findings


def spoiled(spoil: Any) -> RawLog:
    """Return the recording with a fault."""
    return spoil(ROBOT, LOG)[1]


@pytest.mark.parametrize(('spoil', 'kind', 'remedy', 'number', 'right'), [
    (times('effort', 100.0, 1), 'effort_scale', r'divide its efforts by ([\d.]+)', 100.0,
     lambda x: times('effort', 1.0 / x, 1)),
    (times('effort', 0.01, 1), 'effort_scale', r'multiply its efforts by ([\d.]+)', 100.0,
     lambda x: times('effort', x, 1)),
    (times('effort', 0.001, 1), 'effort_scale', r'multiply its efforts by ([\d.]+)', 1000.0,
     lambda x: times('effort', x, 1)),
    (offset(1, 70.0 / DEGREES), 'position_offset', r'subtract ([+-][\d.]+) rad', 70.0 / DEGREES,
     lambda x: offset(1, -x)),
    (offset(1, -np.pi / 2.0), 'position_offset', r'subtract ([+-][\d.]+) rad', -np.pi / 2.0,
     lambda x: offset(1, -x)),
    (time_in(1.0 / 1.3), 'clock', r'divide time by ([\d.]+)', 1.3, time_in),
    (time_in(1.0 / 0.8), 'clock', r'divide time by ([\d.]+)', 0.8, time_in),
])
def test_the_remedy_puts_the_recording_right(
    spoil: Any, kind: str, remedy: str, number: float, right: Any
) -> None:
    log = spoiled(spoil)
    (finding,) = findings(log)
    assert finding.kind == kind and finding.severity is Severity.REFUSE
    said = re.search(remedy, finding.remedy)
    assert said is not None, finding.remedy
    assert float(said[1]) == pytest.approx(number, rel=0.03, abs=0.03)
    assert not findings(right(float(said[1]))(ROBOT, log)[1])


def test_finding_states_an_error_that_the_correction_halves() -> None:
    (finding,) = findings(spoiled(times('effort', -1.0, 1)))
    before, after = re.findall(r'([\d.]+) %', finding.looks_like)[:2]
    assert float(before) > 2.0 * float(after)


@pytest.mark.parametrize(('factor', 'severity'), [
    (0.97, None), (1.08, Severity.WARN), (0.93, Severity.WARN), (1.15, Severity.REFUSE)])
def test_a_clock_is_refused_by_how_wrong_it_is(factor: float, severity: Severity | None) -> None:
    severities = [one.severity for one in findings(spoiled(time_in(factor)))]
    assert severities == ([] if severity is None else [severity])


def test_two_joints_are_named_with_what_each_needs() -> None:
    log = spoiled(times('effort', -1.0, 0))
    both = findings(times('effort', -1.0, 1)(ROBOT, log)[1])
    assert {joint for one in both for joint in one.joints} == set(ROBOT.joints[:2])
    assert {one.kind for one in both} == {'effort_sign'}


def test_swapped_columns_are_told_from_swapped_efforts() -> None:
    for channels, word in ((CHANNELS, 'put all columns'), (('effort',), 'put effort columns'),
                           (('velocity',), 'put velocity columns')):
        (finding,) = findings(spoiled(swapped(0, 1, *channels)))
        assert finding.joints == ROBOT.joints[:2] and word in finding.remedy


def test_the_worst_of_many_recordings_is_named() -> None:
    logs = [recording(ROBOT, seed, 5.0) for seed in range(10)]
    logs[9] = offset(1, np.pi / 2.0)(ROBOT, logs[9])[1]
    found, copies = verdict(ROBOT, [examine(ROBOT, log) for log in logs])
    assert not copies
    assert [(one.kind, one.recording) for one in found] == [('position_offset', logs[9].source)]


@pytest.mark.parametrize('change', [
    Change(swapped=(0, 2), channels=('effort',)), Change(effort=np.array([2.0, -1.0, 0.1])),
    Change(swapped=(0, 1), channels=('effort',), effort=np.array([2.0, -1.0, 0.1]))])
def test_changes_of_efforts_share_the_normal_equations(change: Change) -> None:
    """Scores are those of the changed efforts, in the unit as stated."""
    stated = Explained(ROBOT, thin_excerpt(excerpt(ROBOT, LOG), 200))
    factor = np.ones(3) if change.effort is None else change.effort
    (shared,) = Fits([stated]).scores([0], change.order('effort', 3)[None], factor[None])
    alone = stated.changed(ROBOT, change.rows(stated.rows)).score()
    assert shared.total == pytest.approx(
        alone.total - stated.count * np.log(np.abs(factor)).sum(), abs=1e-6)
    for name in ('left', 'size', 'weight', 'taken'):
        np.testing.assert_allclose(getattr(shared, name), getattr(alone, name),
                                   rtol=0.0, atol=1e-7)


def test_normal_equations_are_those_of_the_columns() -> None:
    """Nominal efforts less friction have the power that least squares leaves of them."""
    stated = Explained(ROBOT, thin_excerpt(excerpt(ROBOT, LOG), 200))
    rows = stated.rows
    torque = inverse_dynamics(ROBOT, rows.position, rows.velocity, rows.acceleration)
    for j in range(3):
        speed = rows.velocity[:, j:j + 1]
        friction = np.hstack([np.tanh(speed / bend) for bend in (0.005, 0.02, 0.08, 0.3, 1.2)]
                             + [speed, rows.acceleration[:, j:j + 1]])
        left = torque[:, j] - friction @ np.linalg.lstsq(friction, torque[:, j], rcond=None)[0]
        assert Fits([stated]).nominal_power[0, j] == pytest.approx(left @ left, rel=1e-6)


def test_a_change_of_time_changes_derivatives() -> None:
    rows = excerpt(ROBOT, LOG)
    slow = Change(time=2.0).rows(rows)
    np.testing.assert_allclose(slow.velocity, rows.velocity / 2.0)
    np.testing.assert_allclose(slow.acceleration, rows.acceleration / 4.0)
    np.testing.assert_allclose(slow.integrated, rows.integrated * 2.0)
    assert slow.step == 2.0 * rows.step and slow.travel is rows.travel


def test_friction_that_drives_costs() -> None:
    rows = thin_excerpt(excerpt(ROBOT, LOG), 200)

    def cost(sign: float) -> FloatArray:
        torque = rows.torque.copy()
        torque[:, 2] = sign * np.tanh(rows.velocity[:, 2] / 0.02)
        return Explained(ROBOT, replace(rows, torque=torque)).score().parts[2]

    assert not cost(1.0).any()
    assert cost(-1.0)[2] > 10.0 and not cost(-1.0)[:2].any()


def test_an_effort_far_beyond_its_limit_costs() -> None:
    rows = thin_excerpt(excerpt(ROBOT, LOG), 200)
    robot = replace(ROBOT, limits=replace(ROBOT.limits, effort=np.full(3, 100.0)))
    fits = Fits([Explained(robot, rows)])
    usual, large = (fits.scores([0], np.arange(3)[None], np.array([[1.0, 1.0, factor]]))[0]
                    for factor in (1.0, 1e5))
    assert large.parts[5] > usual.parts[5] + 20.0


def test_efforts_of_one_joint_that_moves_say_nothing_of_others(ur10e_data: Path) -> None:
    """Efforts of a shoulder that turns alone look better as those of a wrist, by friction."""
    robot = load_robot('ur10e')
    log = load_log(ur10e_data / 'single_joint' / 'joint_1.csv.gz', robot)
    assert not examine(robot, log).findings
