"""report/parameters.py: deviations, correlations, bodies and links, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.document import number
from robot_dynid.dynamics.rigid_body import chain_points, link_poses
from robot_dynid.estimation.feasible.certificate import Certificate
from robot_dynid.estimation.feasible.simultaneous import FeasibleDetails
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.parameter_card import ParameterRow
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Trained
from robot_dynid.identified.uses import LinkRow
from robot_dynid.report import parameters
from robot_dynid.report.parameters import outline
from robot_dynid.robot.inertia import parameters_from_com, pseudo_inertia


@pytest.fixture(scope='module')
def plain() -> IdentifiedModel:
    """Return a model without links and stages."""
    model = nominal_model('planar_3r')
    return replace(model, std=0.02 * np.abs(model.values))


def test_base_parameters_are_marked_by_their_relative_deviation(plain: IdentifiedModel) -> None:
    shares = np.resize([0.1, 0.1104, 0.3, 0.3117], len(plain.values))
    model = replace(plain, values=np.full(len(shares), -10.0), std=10.0 * shares,
                    record=FitRecord(degrees_of_freedom=7.0, friction_spread={'dry': 0.123}))
    section = parameters.base_parameters(model)
    (table,) = section.tables
    assert [row.mark for row in table.rows][:4] == ['', 'fair', 'fair', 'poor']
    assert [row.cells[4] for row in table.rows][:4] == ['10.0', '11.0', '30.0', '31.2']
    assert section.title == f'All {len(model.values)} base parameters'
    assert section.folded and table.words
    assert [row.cells[2] for row in table.rows] == [number(one, 2) for one in model.std.tolist()]
    assert 'value ± 2.365 std' in section.text and 'dry 12.3 %' in section.text
    assert 'value ± 1.96 std' in parameters.base_parameters(plain).text
    assert [row.cells[-1] for row in table.rows] == list(model.labels)


@pytest.mark.parametrize(('pairs', 'text'), [
    ((), 'No pair is correlated by more than 0.9.'),
    ((0.89,), 'No pair is correlated by more than 0.9.'),
    ((0.91, -0.95), 'Strongest: C and D (-0.95), A and B (+0.91).'),
    (8 * (0.92,), 'O and P (+0.92).'), (9 * (0.92,), 'O and P (+0.92) and more.')])
def test_the_strongest_correlations_are_named(
    plain: IdentifiedModel, pairs: tuple[float, ...], text: str
) -> None:
    n = len(plain.names)
    names = tuple('ABCDEFGHIJKLMNOPQRSTUVWXYZ'[:n])
    matrix = np.eye(n)
    for k, value in enumerate(pairs):
        matrix[2 * k, 2 * k + 1] = matrix[2 * k + 1, 2 * k] = value
    model = replace(plain, correlation_factor=np.linalg.cholesky(matrix).T)
    (section,) = parameters.correlations(model)
    for letter, name in zip(names, model.names):
        text = text.replace(f'{letter} (', f'{name} (').replace(f'{letter} and', f'{name} and')
    assert section.text.endswith(text)
    strong = sum(abs(value) > 0.9 for value in pairs)
    assert section.brief == f'{strong} pair{"" if strong == 1 else "s"} above 0.9'
    assert section.folded
    (map_,) = section.figures[0].spec['data']
    np.testing.assert_allclose(map_['z'], matrix, rtol=0.0, atol=6e-4)
    assert (map_['zmin'], map_['zmax'], map_['x']) == (-1, 1, map_['y'])
    assert map_['colorscale'] == [[0.0, '@series5'], [0.5, '@paper'], [1.0, '@series0']]
    layout = section.figures[0].spec['layout']
    assert layout['xaxis']['dtick'] == layout['yaxis']['dtick'] == 1  # every name


def test_parameters_without_a_deviation_have_no_correlation(plain: IdentifiedModel) -> None:
    n = len(plain.names)
    model = replace(plain, correlation_factor=np.eye(n),
                    std=np.where(np.arange(n) == 2, np.inf, plain.std))
    (section,) = parameters.correlations(model)
    assert section.figures[0].spec['data'][0]['x'] == [
        name for i, name in enumerate(plain.names) if i != 2]
    assert parameters.correlations(replace(plain, correlation_factor=None)) == ()


def test_identified_and_nominal_parameters_are_drawn_link_by_link(plain: IdentifiedModel) -> None:
    values = np.arange(1.0, len(plain.values) + 1.0)
    std = np.full(len(values), 0.5)
    std[plain.names.index('Izz3')] = 1e6  # drawn no longer than twice the largest value
    model = replace(plain, values=values, control=2.0 * values, std=std,
                    record=FitRecord(degrees_of_freedom=7.0))
    (section,) = parameters.compared(model)
    assert [figure.title for figure in section.figures] == ['link_1', 'link_2', 'link_3']
    names = [sorted({name for bar in figure.spec['data'] for name in bar['x']})
             for figure in section.figures]
    assert names == [['Izz1', 'mx1', 'my1'], ['Ia2', 'Izz2', 'mx2', 'my2'],
                     ['Ia3', 'Izz3', 'mx3', 'my3']]
    assert section.beside and not any(
        bar['showlegend'] for figure in section.figures for bar in figure.spec['data'])
    assert section.legend == (('identified', 'model'), ('nominal', 'control'))
    spec = section.figures[2].spec
    of = {(bar['name'], bar['xaxis']): bar for bar in spec['data']}
    for axis in ('x', 'x2'):
        identified, nominal = of['identified', axis], of['nominal', axis]
        rows = [model.names.index(name) for name in identified['x']]
        assert unpacked(identified['y']).tolist() == values[rows].tolist()
        assert unpacked(nominal['y']).tolist() == (2.0 * values[rows]).tolist()
        assert 'error_y' not in nominal
        largest = np.where(np.array(identified['x']) == 'Izz3', 2.0 * values[rows].max(),
                           2.365 * 0.5)
        np.testing.assert_allclose(unpacked(identified['error_y']['array']), largest, rtol=1e-3)
        assert identified['yaxis'] == axis.replace('x', 'y')
    assert of['identified', 'x']['x'] == ['mx3', 'my3']
    assert 'Izz3' in of['identified', 'x2']['x'] and 'fv3' not in of['identified', 'x2']['x']
    layout = spec['layout']
    assert layout['xaxis']['domain'] == [0.0, 0.5]
    assert layout['xaxis2']['domain'] == pytest.approx([0.59, 1.0])
    assert [layout[name]['title']['text'] for name in ('yaxis', 'yaxis2')] == ['kg m', 'kg m²']
    assert [layout[name]['anchor'] for name in ('xaxis2', 'yaxis2')] == ['y2', 'x2']


@pytest.mark.parametrize('side', [0, 1])
def test_the_robot_is_drawn_from_the_side_with_its_bodies(
    plain: IdentifiedModel, side: int
) -> None:
    ranges = np.array([[-1.0, 0.0], [0.2, 1.0], [0.0, 1.4]])
    model = replace(plain, trained=Trained({'position': ranges}))
    bodies = 0.5 * model.robot.nominal
    bodies[1] = 0.0  # no body to draw
    spec = parameters.on_robot(model, bodies, side)
    q = np.array([[-0.5, 0.6, 0.7]])
    poses = link_poses(model.robot, q)
    assert [(curve['name'], curve.get('showlegend', True)) for curve in spec['data']] == [
        ('nominal', True), ('nominal', False), ('nominal', False), ('link_1', True),
        ('link_3', True), ('joints', True)]
    third = outline(bodies[2], (poses.rotations[0, 2], poses.origins[0, 2]), (side, 2))
    drawn = spec['data'][4]
    np.testing.assert_allclose([unpacked(drawn[key]) for key in 'xy'], third, rtol=0.0, atol=1e-6)
    assert drawn['fill'] == 'toself' and spec['data'][2]['visible'] == 'legendonly'
    np.testing.assert_allclose(unpacked(spec['data'][-1]['x']),
                               chain_points(model.robot, q)[0][:, side], rtol=0.0, atol=1e-6)
    assert spec['layout']['xaxis']['title']['text'] == f'{"xy"[side]} of the base [m]'
    halfway = parameters.on_robot(plain, bodies, side)['data'][-1]
    np.testing.assert_allclose(unpacked(halfway['x']), chain_points(
        model.robot, np.full((1, 3), 0.3))[0][:, side], rtol=0.0, atol=1e-6)
    assert [curve['line'].get('dash') for curve in spec['data']] == 3 * ['dot'] + 3 * [None]
    colours = [curve['line']['color'] for curve in spec['data']]
    assert colours == 3 * ['@soft'] + ['@series0', '@series2', '@ink']
    bodies[1, 0] = 1e-3
    bodies[1, 4:] = 1.0, 0.0, 1.0, 0.0, 0.0, 1.0
    assert len(parameters.on_robot(model, bodies, side)['data']) == 7


def test_an_outline_is_that_of_an_ellipsoid_seen_along_any_axis() -> None:
    """Half axes 1, 2, 3 about a centre, turned by 90 degrees about z: 2, 1, 3."""
    mass, half, centre = 5.0, np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    link = parameters_from_com(mass, centre, mass / 5.0 * np.diag(
        [half[1]**2 + half[2]**2, half[0]**2 + half[2]**2, half[0]**2 + half[1]**2]))
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for seen in ((0, 2), (1, 2), (0, 1)):
        found = outline(link, (turned, np.array([10.0, 20.0, 30.0])), seen)
        middle, size = np.array([11.0, 20.5, 32.0]), np.array([2.0, 1.0, 3.0])
        np.testing.assert_allclose(found.min(axis=1), (middle - size)[list(seen)], rtol=1e-3)
        np.testing.assert_allclose(found.max(axis=1), (middle + size)[list(seen)], rtol=1e-3)
        inside = (found - middle[list(seen), None]) / size[list(seen), None]
        np.testing.assert_allclose(np.sum(inside**2, axis=0), 1.0)
        np.testing.assert_allclose(found[:, 0], found[:, -1])


def test_a_sheet_has_mass_centre_and_principal_moments_of_a_link(plain: IdentifiedModel) -> None:
    links_ = np.array(plain.robot.nominal)
    links_[2] = parameters_from_com(2.3456, np.array([0.1, -0.02, 0.003]),
                                    np.diag([0.346, 0.123, 0.234]))
    standard = np.zeros(len(plain.reduction.standard))
    standard[:30] = links_.ravel()
    model = replace(plain, feasible=standard, values=plain.reduction.base(standard))
    mass, centre, inertia = parameters.sheets(model)[2][0].facts
    nominal = plain.robot.nominal[2, 0]
    assert (mass.value, mass.unit, mass.note) == ('2.35', 'kg', f'nominal {nominal:.3g} kg')
    assert (centre.value, centre.unit) == ('100, -20, 3', 'mm')
    assert (inertia.value, inertia.unit) == ('0.12, 0.23, 0.35', 'kg m²')
    assert (mass.origin, centre.origin, inertia.origin) == ('combination', 'prior', 'prior')
    assert parameters.sheets(model)[2][0].text == \
        '3 measured, 1 only in combination, 6 from the prior'
    assert [own[0].text for own in parameters.sheets(plain)] == [
        '1 measured, 2 only in combination, 7 not seen',
        '1 measured, 3 only in combination, 6 not seen',
        '3 measured, 1 only in combination, 6 not seen']
    robot = replace(model.robot, nominal=np.zeros_like(model.robot.nominal))
    without = parameters.sheets(replace(model, robot=robot))[2][0].facts[0]
    assert without.note == 'no mass in the description'


def test_links_and_parameter_card_are_tables_of_all_that_is_known(plain: IdentifiedModel) -> None:
    links_ = np.array(plain.robot.nominal)
    links_[2] = parameters_from_com(2.3456, np.array([0.123456, -0.02, 0.003]),
                                    np.diag([0.3, 0.123, 0.2]))
    standard = np.zeros(len(plain.reduction.standard))
    standard[:30] = links_.ravel()
    certificate = Certificate(from_prior=('m1',), prior_share={'m1': 0.987}, active=())
    model = replace(plain, feasible=standard, values=plain.reduction.base(standard),
                    record=FitRecord(details=FeasibleDetails(certificate=certificate)))
    _, section = parameters.links(model)
    assert [figure.spec['layout']['xaxis']['title']['text'] for figure in section.figures] == [
        'x of the base [m]', 'y of the base [m]']
    assert section.beside and not section.folded and 'At a bound' not in section.text
    table, card = section.tables
    assert table.words and table.folded and card.words and card.folded
    least = float(np.linalg.eigvalsh(pseudo_inertia(links_[2]))[0])
    assert table.rows[2].cells == (
        'link_3', '2.346', '1.4', '0.123 -0.02 0.003', f'{least:.2g}',
        'mz3, Ixx3, Ixy3, Iyy3, Ixz3, Iyz3', 'm3')
    rows = {row.cells[1]: row.cells for row in card.rows}
    assert rows['m1'] == ('link_1', 'm1', '4.5', 'prior', '', '98.7 %', '', 'weigh link_1')
    value, std = model.values[6], model.std[6]
    assert rows['mx3'] == ('link_3', 'mx3', f'{value:.4g}', 'measured', f'{std:.2g}', '', '', '')
    value, std = model.values[3], model.std[3]
    assert rows['mx2'] == ('link_2', 'mx2', f'{links_[1, 1]:.4g}', 'only in combination', '', '',
                           f'mx2 + 0.36*m3 = {value:.4g} +- {std:.2g}', 'weigh link_3')
    _, without = parameters.links(plain)
    assert without.folded and [table.title for table in without.tables] == [card.title]


def test_links_that_are_known_alone_are_in_no_combination() -> None:
    model = nominal_model('planar_3r')
    row = LinkRow('link', 1.0, 2.0, (0.1, 0.2, 0.3), 0.5, ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, 'link_table', lambda _: (row,))
        *_, section = parameters.links(model)
    assert section.tables[0].rows[0].cells == (
        'link', '1', '2', '0.1 0.2 0.3', '0.5', 'none', 'none')


def test_categories_are_marked_and_other_sensors_are_listed(plain: IdentifiedModel) -> None:
    (section,) = parameters.categories(plain)
    assert section.folded and [(card.name, card.value) for card in section.cards] == [
        ('unidentifiable', '19'), ('linearly dependent', '7'),
        ('independently identifiable', '16')]
    every, sensors = section.tables
    rows = {row.cells[0]: row for row in every.rows}
    assert [(rows[name].mark, *rows[name].cells[1:3]) for name in ('m1', 'm2', 'my2')] == [
        ('poor', 'unidentifiable', ''), ('fair', 'linearly dependent', 'mx1, Izz1'),
        ('', 'independently identifiable', '')]
    assert every.words and sensors.words
    told = {row.cells[0]: row.cells[1:] for row in sensors.rows}
    assert told['joint torque sensors behind the gears'] == ('Ia1', 'none')
    assert told['the base mounted so that gravity comes from other sides'] == ('none', 'none')
    assert told['a six-axis force-torque sensor under the base'] == (
        'Iyz1, Iyz2, Ixz3, Iyz3, Ia1', 'm1, mz1, Ixz1, mz2, Ixz2, mz3')


def test_a_sheet_has_the_origin_of_the_least_known_of_several(
    plain: IdentifiedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard = np.zeros(len(plain.reduction.standard))
    standard[:30] = plain.robot.nominal.ravel()
    kinds = ('m', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')

    def origins(*of: str) -> tuple[str, list[str]]:
        monkeypatch.setattr(parameters, 'parameter_card', lambda _: [
            ParameterRow('link_3', f'{kind}3', 1.0, origin, 0.1, (), None, '')
            for kind, origin in zip(kinds, of, strict=True)])
        sheet = parameters.sheets(replace(plain, feasible=standard))[2][0]
        return sheet.text, [fact.origin for fact in sheet.facts]

    one, zero, some = 'measured', 'consistent with zero', 'only in combination'
    assert origins(one, *9 * [zero]) == ('1 measured, 9 consistent with zero', [one, one, zero])
    assert origins(one, some, *7 * [one], 'prior') == (
        '8 measured, 1 only in combination, 1 from the prior', [one, 'combination', 'prior'])
