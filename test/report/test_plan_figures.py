"""report/plan.py, report/plan_figures.py: numbers of a plan that is stated by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from report_pages import unpacked

from robot_dynid.collision.clearance import Clearance
from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.excitation.design import DesignCriteria, StageRow, design_within
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.score import Score
from robot_dynid.excitation.search.optimise import StartRow
from robot_dynid.report.plan import Plan, element_tables, plan_report
from robot_dynid.report.plan_figures import distances, motion, path, progress
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import KeepOut, Surroundings
from robot_dynid.trajectories.limits import MotionLimits, motion_limits
from robot_dynid.trajectories.trajectory import Motion


def test_bounds_of_a_motion_are_dashed_where_there_are_any():
    time = np.array([0.0, 0.5, 1.0])
    moved = Motion(*(np.outer(time, [1.0, scale]) for scale in (2.0, 3.0, 4.0, 5.0)))
    limits = MotionLimits(('a', 'b'), np.array([-1.0, -2.0]), np.array([3.0, np.inf]),
                          *(np.array([1.0, value]) for value in (5.0, 6.0, 7.0, np.nan)))
    for effort, panes in ((None, 3), (moved.jerk, 4)):
        layout = motion(time, (moved, effort), limits, 1)['layout']
        assert layout['height'] == 120 * panes
    spec = motion(time, (moved, moved.jerk), limits, 1)
    found = [(curve['name'], curve.get('yaxis', 'y'), unpacked(curve['y']).tolist())
             for curve in spec['data']]
    assert found == [
        ('position', 'y', [0.0, 1.0, 2.0]), ('limit', 'y', [-2.0, -2.0]),
        ('velocity', 'y2', [0.0, 1.5, 3.0]), ('limit', 'y2', [-5.0, -5.0]),
        ('limit', 'y2', [5.0, 5.0]), ('acceleration', 'y3', [0.0, 2.0, 4.0]),
        ('limit', 'y3', [-6.0, -6.0]), ('limit', 'y3', [6.0, 6.0]),
        ('effort', 'y4', [0.0, 2.5, 5.0])]
    assert unpacked(spec['data'][1]['x']).tolist() == [0.0, 1.0]
    titles = [spec['layout'][f'yaxis{k}']['title']['text'] for k in ('', '2', '3', '4')]
    assert titles == ['position<br>[rad]', 'velocity<br>[rad/s]', 'acceleration<br>[rad/s²]',
                      'effort<br>[N m]']
    assert not any(curve['showlegend'] for curve in spec['data'])


def test_the_arm_is_drawn_at_the_start_and_on_the_way():
    tip = np.array([[0.4, 0.0, 0.5], [0.6, 0.1, 0.5]])
    chains = np.array([tip, tip + 1.0, tip + 2.0])
    *chain, way = path(np.array([0.0, 1.5]), tip, chains, Surroundings())['data']
    assert [(one['name'], one['showlegend']) for one in chain] == [
        ('axes at the start', True), ('axes on the way', True), ('axes on the way', False)]
    np.testing.assert_allclose(unpacked(chain[2]['y']), [2.0, 2.1], rtol=1e-6)
    assert chain[0]['line']['width'] > chain[1]['line']['width']
    assert chain[0]['line']['color'] != chain[1]['line']['color']
    assert unpacked(way['line']['color']).tolist() == [0.0, 1.5] and way['line']['showscale']


def test_faces_of_a_box_are_triangles_of_its_sides():
    box = KeepOut((0.0, 0.0, 0.0), (2.0, 4.0, 6.0))
    tip = np.zeros((2, 3))
    (mesh, *_) = path(np.arange(2.0), tip, tip[None], Surroundings(None, (box,)))['data']
    corners = np.column_stack([unpacked(mesh[axis]) for axis in 'xyz'])
    faces = np.column_stack([unpacked(mesh[key]).astype(int) for key in 'ijk'])
    normals = np.cross(corners[faces[:, 1]] - corners[faces[:, 0]],
                       corners[faces[:, 2]] - corners[faces[:, 0]])
    areas = 0.5 * np.linalg.norm(normals, axis=1)
    assert areas.sum() == pytest.approx(2.0 * (2 * 4 + 2 * 6 + 4 * 6))
    outwards = np.einsum('fi,fi->f', normals, corners[faces].mean(axis=1))
    assert (outwards > 0.0).all() or (outwards < 0.0).all()
    # a closed surface: every edge belongs to two triangles, once in each direction
    edges = {tuple(face[[k, (k + 1) % 3]]) for face in faces for k in range(3)}
    assert len(edges) == 36 and all((b, a) in edges for a, b in edges)


def test_distances_are_in_millimetres_and_searches_go_from_first_to_last():
    near = distances(np.array([0.0, 1.0]), np.array([[0.01, 0.2], [0.03, 0.1]]), ['a', 'b'])
    assert [unpacked(curve['y']).tolist() for curve in near['data']] == [
        pytest.approx([10.0, 30.0]), pytest.approx([200.0, 100.0])]
    ticks = near['layout']['yaxis']
    assert ticks['ticktext'] == ['1', '3', '10', '30', '100', '300', '1000']
    assert [str(value) for value in ticks['tickvals']] == ticks['ticktext']
    ways, first, last = progress(np.array([3.0, 4.0]), np.array([1.0, 2.0]), 'value')['data']
    assert [unpacked(ways[key])[[0, 1, 3, 4]].tolist() for key in 'xy'] == [
        [1.0, 1.0, 2.0, 2.0], [3.0, 1.0, 4.0, 2.0]]
    assert np.isnan(unpacked(ways['x'])[[2, 5]]).all() and not ways['showlegend']
    assert unpacked(first['x']).tolist() == unpacked(last['x']).tolist() == [1.0, 2.0]
    assert unpacked(first['y']).tolist() == [3.0, 4.0]
    layout = progress(np.ones(2), np.ones(2), 'value')['layout']
    assert (layout['xaxis']['range'], layout['xaxis']['dtick']) == ([0.5, 2.5], 1)


def test_the_floor_reaches_a_tenth_of_a_metre_beyond_tip_and_arm():
    tip = np.array([[0.4, 0.0, 0.5], [0.6, 0.1, 0.5]])
    chain = tip[None] + np.array([0.0, 1.0, 0.0])
    floor = path(np.arange(2.0), tip, chain, Surroundings(-0.25))[
        'data'][0]
    corners = np.column_stack([unpacked(floor[axis]) for axis in 'xyz'])
    low, high = [0.3, -0.1, -0.25], [0.7, 1.2, -0.25]
    np.testing.assert_allclose(corners.min(axis=0), low, rtol=1e-6)
    np.testing.assert_allclose(corners.max(axis=0), high, rtol=1e-6)
    faces = np.column_stack([floor[key] for key in 'ijk'])
    diagonal = corners[sorted({*faces[0]} & {*faces[1]})]
    np.testing.assert_allclose(np.ptp(diagonal, axis=0), [0.4, 1.3, 0.0], rtol=1e-6)
    triangles = corners[faces]
    up = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])[:, 2]
    np.testing.assert_allclose(up, 2 * [0.4 * 1.3], rtol=1e-6)  # both halves, on one side


@pytest.fixture(scope='module')
def free():
    """Return a plan of which everything is stated by hand."""
    robot, criteria = load_robot('planar_3r'), DesignCriteria()
    request = parse_request('fourier', {'duration': 5})
    found = design_within(motion_limits(robot), request, criteria)
    used = {joint: {'position': 0.5, 'velocity': 0.998} for joint in robot.joints}
    used['joint_2'] = {'position': 0.25, 'velocity': 0.9991}
    parts = {'friction': 2.5678, 'weight': 1.01e12, 'rotors': 9.9e11}
    score = Score(12.345, -3.0, parts, 0.123, 'mx2')
    clearance = Clearance(True, 0.0123, ('a', 'b'), 1.0, ('all',), ('the floor',))
    return Plan('fourier', robot, replace(
        found, used=used, score=score, clearance=clearance, warnings=('slow', 'the floor'),
        stages=(StageRow('one', ('joint_1',), 3, ('m1',), 4.5),)), criteria)


def test_the_summary_of_a_plan_has_its_scores_and_what_was_not_checked(free):
    report = plan_report(free)
    sections = {section.title: section for section in report.sections}
    summary = sections['Summary']
    assert [(card.name, card.value, card.unit) for card in summary.cards] == [
        ('duration', '5', 's'), ('condition number', '12.3', ''),
        ('largest relative std, mx2', '12.3', '%'),
        ('smallest distance, a to b', '12.3', 'mm, to 1 mm'), ('most used limit', '99.9', '%')]
    assert [row.cells for row in summary.tables[0].rows] == [
        ('log det', '-3'), ('condition number, friction alone', '2.57'),
        ('condition number, weight alone', '∞'),
        ('condition number, rotors alone', '9.9e+11')]
    assert summary.tables[0].detail
    assert summary.warnings == ('slow',)
    assert (summary.status.kind, summary.status.word) == ('fair', 'Not everything was checked:')
    limits, robot = free.found.limits, free.robot
    (table,) = sections['Limits'].tables
    assert [row.mark for row in table.rows] == ['', 'fair'] + (robot.n - 2) * ['']
    assert table.columns[:4] == ('joint', 'position used [%]', 'velocity used [%]',
                                 'position [rad]')
    assert table.rows[1].cells[1:5] == (
        '25.0', '99.9', f'{limits.lower[1]:.4g} to {limits.upper[1]:.4g}',
        f'{limits.velocity[1]:.4g}')
    assert [row.cells for row in sections['Stages'].tables[0].rows] == [('one', '3', '4.5', 'm1')]
    certain = replace(free, found=replace(free.found, clearance=replace(
        free.found.clearance, unchecked=())))
    assert plan_report(certain).sections[0].status.kind == 'good'
    bare = replace(free, found=replace(free.found, used={joint: {} for joint in robot.joints},
                                       score=None, clearance=None))
    summary = plan_report(bare).sections[0]
    assert [(card.name, card.value) for card in summary.cards] == [
        ('duration', '5'), ('most used limit', '0.0')]
    assert summary.tables == () and summary.status.word == 'Collisions were not checked:'


@pytest.mark.parametrize(('values', 'text'), [
    ((), 'Planned by rules, not optimised.'),
    ((1.0,), 'One start, which converged: '), ((-1.0,), 'One start, which had not converged'),
    ((1.0, 1.05, 1.2, -1.3), '3 of 4 starts converged, half of them within 20.0 % of the best.')])
def test_a_search_says_how_many_starts_agree(free, values, text):
    """Those below zero did not converge."""
    starts = tuple(StartRow(2.0, abs(value), value > 0.0, 9) for value in values)
    report = plan_report(replace(free, found=replace(free.found, starts=starts)))
    (search,) = (section for section in report.sections if section.title == 'Search')
    assert search.text.startswith(text)
    assert len(search.figures) == (1 if len(values) > 1 else 0)


def test_elements_stand_with_what_they_move():
    parts = [{'type': 'fourier', 'frequencies': [0.1, 0.25], 'joints': {
                 'a': {'offset': 0.5, 'amplitudes': [1.0, 2.0]}}},
             {'type': 'bspline', 'points': 9, 'knot_interval': 0.5,
              'joints': {'a': {'lower': -1.0, 'upper': 2.0}}},
             {'type': 'pose', 'begin': 3.0, 'seconds': 2.0, 'configuration': {'a': 0.12345}},
             {'type': 'sweep', 'begin': 1.0, 'joint': 'b', 'speed': 0.5, 'travel': 0.75,
              'configuration': {'a': 1.0, 'b': 2.0}}]
    found = {table.title: (table.columns, table.rows[0].cells) for table in element_tables(parts)}
    assert list(found.values()) == [
        (('joint', 'offset', '0.1 Hz', '0.25 Hz'), ('a', '0.5', '1', '2')),
        (('joint', 'lower', 'upper'), ('a', '-1', '2')),
        (('at [s]', 'joint', 'speed [rad/s, m/s]', 'travel [rad, m]', 'configuration [rad, m]'),
         ('1', 'b', '0.5', '0.75', '1 2')),
        (('at [s]', 'joint', 'for [s]', 'configuration [rad, m]'), ('3', 'all', '2', '0.123'))]
    assert 'a knot every 0.5 s' in ' '.join(found)


def test_the_nearest_pairs_are_those_that_come_nearest_to_what_is_kept(free):
    smallest = 0.05 * np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    required = np.where(np.arange(8) == 7, 0.39, 0.01)  # the last has 10 mm to spare
    begins = 0.5 * np.arange(8.0)

    def measured(q):
        return smallest + 0.1 * np.abs(np.linspace(0.0, 5.0, len(q))[:, None] - begins)

    scene = SimpleNamespace(pairs=[(f'a{k}', f'b{k}') for k in range(8)], required=required,
                            distances=measured, around=Surroundings(-0.5))
    report = plan_report(replace(free, scene=scene))
    (section,) = (one for one in report.sections if one.title == 'Clearance')
    nearest, bodies = section.tables
    assert [row.cells[0] for row in nearest.rows] == [
        'a7 and b7', *(f'a{k} and b{k}' for k in range(5))]
    assert nearest.rows[0].cells[1:] == ('400', '390', '3.5')
    assert nearest.rows[3].cells[1:] == ('150', '10', '1')
    assert [(row.cells, row.mark) for row in bodies.rows] == [
        (('checked', 'all'), ''), (('not checked', 'the floor'), 'fair')]
    assert (nearest.detail, bodies.words, bodies.folded) == (True, True, True)
    curves = section.figures[0].spec['data']
    assert [curve['name'] for curve in curves] == [
        'a7 / b7', *(f'a{k} / b{k}' for k in range(5))]
    assert unpacked(curves[1]['y'])[0] == pytest.approx(50.0)
    drawn = {section.title: section for section in report.sections}['Path of the tip'].figures[0]
    tip, arms = (([curve for curve in drawn.spec['data'] if curve['name'].startswith(name)])
                 for name in ('tip', 'axes'))
    assert len(unpacked(tip[0]['x'])) == 251 and len(arms) == 9  # 50 a second, nine arms
    assert drawn.spec['data'][0]['name'] == 'floor'
    begun = tip_positions(free.robot, free.found.trajectory.sample(np.zeros(1)).position)[0]
    assert [unpacked(tip[0][key])[0] for key in 'xyz'] == pytest.approx(begun, abs=1e-6)
    assert unpacked(tip[0]['customdata'])[[0, -1]].tolist() == [0.0, 5.0]
    for pairs, checked, count in (([], (), 0), ([], ('all',), 1)):
        few = replace(scene_free(free, checked), scene=SimpleNamespace(
            **{**vars(scene), 'pairs': pairs}))
        found = [one for one in plan_report(few).sections if one.title == 'Clearance']
        assert len(found) == count and all(len(one.tables) == 1 for one in found)


def scene_free(plan, checked):
    clearance = replace(plan.found.clearance, checked=checked, smallest=np.inf)
    return replace(plan, found=replace(plan.found, clearance=clearance))


def test_sections_of_a_plan_that_are_details_or_folded(free):
    sections = plan_report(free).sections
    assert [one.title for one in sections if one.detail] == [
        'Limits', 'Search', 'Elements']
    assert [one.title for one in sections if one.folded] == ['Motion of each joint', 'Elements']
    assert [one.title for one in sections if one.beside] == ['Motion of each joint']
    assert {figure.link for one in sections for figure in one.figures} == {'time', ''}
