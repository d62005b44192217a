"""report/plan.py: the report of a planned excitation, and the way of the tip."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from report_pages import unpacked

from robot_dynid.collision.scene import build_scene
from robot_dynid.excitation.design import DesignCriteria, design, design_within
from robot_dynid.excitation.design_criteria import design_criteria, keeping_clear
from robot_dynid.excitation.families import parse_request
from robot_dynid.report.html import render
from robot_dynid.report.plan import Plan, plan_report
from robot_dynid.report.plan_figures import path
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import KeepOut, Surroundings

BOX = {'centre': [0.5, 0.0, 0.3], 'size': [0.1, 0.6, 0.6]}


@pytest.fixture(scope='module')
def plan():
    """Return a short design of the TX40 behind a box."""
    robot = load_robot('tx40')
    request = parse_request('fourier', {'duration': 5, 'harmonics': 2, 'time_limit': 0.0,
                                        'starts': 1, 'keep_out': [BOX]})
    scene = build_scene(robot, request.common.surroundings(robot.surroundings))
    judge = keeping_clear(design_criteria(robot, elapsed=lambda: 1.0), scene)
    return Plan('fourier', robot, design(robot, request, judge), judge, scene)


def test_the_report_shows_motion_way_clearance_and_search(plan):
    report = plan_report(plan)
    titles = [section.title for section in report.sections]
    assert titles == ['Summary', 'Clearance', 'Limits', 'Path of the tip',
                      'Motion of each joint', 'Search',
                      'Elements']
    page = render(report)
    for text in ('Proven to be free of collisions.', 'keep_out[0]', 'smallest distance',
                 'acceleration used [%]', 'acceleration [rad/s²]',
                 'Nearest pairs', *plan.robot.joints):
        assert text in page
    assert 'src="http' not in page
    (nearest, _) = report.sections[1].tables
    shown = [float(row.cells[1]) for row in nearest.rows]
    assert min(shown) >= 1e3 * plan.found.clearance.smallest - 1.0
    assert np.all([float(row.cells[1]) >= float(row.cells[2]) for row in nearest.rows])


def test_boxes_and_floor_are_drawn_where_they_are():
    turned = KeepOut((0.5, -0.2, 0.3), (0.2, 0.6, 1.0), (0.0, 0.0, np.pi / 2.0))
    tip = np.array([[0.4, 0.0, 0.5], [0.6, 0.1, 0.5]])
    spec = path(np.array([0.0, 1.0]), tip, tip[None], Surroundings(-0.1, (turned,)))
    floor, box = ({axis: unpacked(curve[axis]) for axis in 'xyz'} for curve in spec['data'][:2])
    for corners, ends in ((box, {'x': (0.2, 0.8), 'y': (-0.3, -0.1), 'z': (-0.2, 0.8)}),
                          (floor, {'x': (0.3, 0.7), 'y': (-0.1, 0.2), 'z': (-0.1, -0.1)})):
        for axis, places in corners.items():
            assert (min(places), max(places)) == pytest.approx(ends[axis], abs=1e-6)
    assert len(np.unique(np.round(np.transpose(list(box.values())), 6), axis=0)) == 8


def test_a_plan_without_checks_says_so(plan):
    free = design_within(
        plan.found.limits, parse_request('fourier', {'duration': 5}), DesignCriteria())
    report = plan_report(Plan('fourier', plan.robot, free, DesignCriteria()))
    assert 'Collisions were not checked' in render(report)
    assert [section.title for section in report.sections][:4] == [
        'Summary', 'Limits', 'Path of the tip', 'Motion of each joint']


@pytest.mark.parametrize(('met', 'status'), [(True, 'good'), (False, 'fair')])
def test_swings_are_told_with_what_each_leaves_open(plan, met, status):
    first = SimpleNamespace(moving='joint_2', duration=12.346, missing=7, least_known='Ia2',
                            largest_deviation=0.5, seen=False)
    second = SimpleNamespace(moving='joint_3', duration=8.0, missing=0, least_known='m3',
                             largest_deviation=0.123, seen=True)
    session = SimpleNamespace(met=met, outlook='one more swing', swings=(first, second))
    report = plan_report(replace(plan, found=replace(plan.found, session=session)))
    (section,) = (one for one in report.sections if one.title == 'Precision after each swing')
    assert (section.status.kind, section.status.word, section.status.advice) == (
        status, 'Outlook:', 'one more swing')
    assert [row.cells for row in section.tables[0].rows] == [
        ('1', 'joint_2', '12.3', '7', 'Ia2', 'not seen'),
        ('2', 'joint_3', '8', '0', 'm3', '12.3')]
