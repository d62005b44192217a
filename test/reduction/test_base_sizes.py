"""reduction/: sizes of minimal sets of known arms, by both reductions, against the literature."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('pinocchio')
from chains import stanford_arm

from robot_dynid.effects import RigidLinks
from robot_dynid.reduction import METHODS
from robot_dynid.robot.robot_file import load_robot

#: what, robot, size. Planar arm: Wang et al. 2025, table 3 (three of friction per joint apart).
#: PUMA 560: Gautier, Khalil 1990, and Mayeda, Yoshida, Osuka 1990; n revolute axes, the first
#: vertical and the second not parallel to it, have 7 n - 6: 36 for six, 43 for seven. Stanford
#: arm: Lin 1991, section 4, 1 + 7 * 4 + 1 + 3.
SIZES = (
    ('planar_3r', load_robot('planar_3r'), 9),
    ('planar_3r without gravity', load_robot('planar_3r').with_gravity(np.zeros(3)), 7),
    ('puma560', load_robot('puma560'), 36),
    ('stanford_arm', load_robot('stanford_arm'), 33),
    ('Stanford arm of Lin 1991', stanford_arm(), 33),
    ('ur10e', load_robot('ur10e'), 36),
    ('tx40', load_robot('tx40'), 36),
    ('seven_axis', load_robot('seven_axis'), 43),
)


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize(('what', 'robot', 'size'), SIZES, ids=[row[0] for row in SIZES])
def test_size_of_the_minimal_set(what, robot, size, method):
    reduction = METHODS[method](robot, (RigidLinks(robot),))
    assert len(reduction.pivots) == size
    assert reduction.warnings == ()
    assert reduction.gap > 1e9


@pytest.mark.parametrize(('what', 'robot', 'size'), SIZES, ids=[row[0] for row in SIZES])
def test_analytic_and_numeric_reduction_have_the_same_labels(what, robot, size):
    numeric, analytic = (METHODS[m](robot, (RigidLinks(robot),)) for m in ('numeric', 'analytic'))
    assert numeric.labels == analytic.labels
