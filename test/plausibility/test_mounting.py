"""plausibility/gate.py: a base that is mounted otherwise than the robot YAML says: the gate names
its gravity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from live_systems import system

from robot_dynid.io.log import load_log
from robot_dynid.plausibility.excerpt import excerpt
from robot_dynid.plausibility.explanations import gravity_direction
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.gate import examine
from robot_dynid.plausibility.score import Explained
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

UR = load_robot('ur10e')
G = 9.81
#: gravity in the base frame, and what is said of it
MOUNTED = {'upright': ((0.0, 0.0, -G), 'mounted upright'),
           'x down': ((G, 0.0, 0.0), 'mounted on a wall, its x axis down'),
           'y up': ((0.0, -G, 0.0), 'mounted on a wall, its y axis up'),
           'at an angle': ((0.0, G * np.sin(1.0), G * np.cos(1.0)), 'mounted at an angle')}


def recording(gravity: tuple[float, ...], moving: bool) -> RawLog:
    """Return a recording of an arm under this gravity."""
    log = system(UR.with_gravity(np.array(gravity)), moving=moving).log
    assert log is not None
    return log


@pytest.mark.parametrize('mounted', MOUNTED)
def test_the_gravity_of_a_moving_arm_is_found(mounted: str) -> None:
    gravity, words = MOUNTED[mounted]
    log = recording(gravity, moving=True)
    rows = excerpt(UR.rigid, log)
    found = gravity_direction(Explained(UR, rows))
    np.testing.assert_allclose(found, gravity, rtol=0.0, atol=0.02 * G)
    stated = UR if mounted != 'upright' else UR.with_gravity(np.array([G, 0.0, 0.0]))
    [one] = examine(stated, log).findings
    assert (one.kind, one.severity) == ('gravity', Severity.REFUSE) and words in one.looks_like
    own = examine(UR.with_gravity(np.array(gravity)), log)
    assert not own.findings


def test_at_rest_an_axis_is_named_and_a_warning_given() -> None:
    [one] = examine(UR, recording((G, 0.0, 0.0), moving=False)).findings
    assert (one.kind, one.severity) == ('gravity', Severity.WARN)
    assert 'state gravity: [9.81, 0, 0] in the robot YAML' in one.remedy


def test_effort_faults_are_not_taken_for_a_mounting() -> None:
    """A wrong sign is no ceiling, another unit no gravity."""
    log = recording((0.0, 0.0, -G), moving=True)
    assert log.effort is not None
    for factor, kind in ((-1.0, 'effort_sign'), (1000.0, 'effort_scale')):
        found = examine(UR, replace(log, effort=factor * log.effort)).findings
        assert {one.kind for one in found} == {kind}


def test_the_ur10e_stands_upright(ur10e_data: Path) -> None:
    log = load_log(ur10e_data / 'train' / '20_02_12-40sec_12harm.csv.gz', UR)
    rows = excerpt(UR.rigid, log)
    found = gravity_direction(Explained(UR, rows))
    assert found is not None
    assert np.degrees(np.arccos(-found[2] / np.linalg.norm(found))) < 5.0
    [one] = examine(UR.with_gravity(np.array([0.0, G, 0.0])), log).findings
    assert one.kind == 'gravity' and 'mounted upright' in one.looks_like
