"""report/parameters.py: sections that only some models have: links of feasible fits, stages of
staged ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.effects.ripple import RippleTorque
from robot_dynid.effects.ripple_search import Wave
from robot_dynid.estimation.deflection_fit import DeflectionFit, Determined
from robot_dynid.estimation.feasible.certificate import Certificate
from robot_dynid.estimation.feasible.simultaneous import FeasibleDetails
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice
from robot_dynid.estimation.friction_sweeps import SpeedPoint, friction_curve
from robot_dynid.estimation.staged.least_squares import (
    Combination,
    StagedDetails,
    StageSummary,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.parameter_card import (
    ParameterRow,
    by_link,
    comment_lines,
    measurement,
    parameter_card,
)
from robot_dynid.identified.record import (
    FitRecord,
    GearRecord,
    JointRipple,
    RigidComparison,
)
from robot_dynid.identified.uses import link_table
from robot_dynid.reduction.numeric import Origin
from robot_dynid.report import parameters
from robot_dynid.report.effects import (
    curve_figure,
    elastic_joints,
    encoders,
    friction_curves,
    friction_laws,
    method,
)
from robot_dynid.report.parameters import links, outline


@pytest.fixture(scope='module')
def plain() -> IdentifiedModel:
    """Return a model without links and stages."""
    model = nominal_model('planar_3r')
    return replace(model, std=0.02 * np.abs(model.values))


def test_models_without_links_or_stages_have_no_such_sections(plain: IdentifiedModel) -> None:
    assert link_table(plain) == ()
    assert method(plain) == () and friction_curves(plain) == ()
    *_, section = links(plain)
    assert section.figures == () and 'identify with --method feasible' in section.text
    sheets = [own[0] for own in parameters.sheets(plain)]
    # no prior decided anything, and what is known in combinations only has no value of its own
    assert 'prior' not in sheets[0].text and 'not seen' in sheets[0].text
    (card,) = section.tables
    told = {row.cells[1]: row.cells[2:4] for row in card.rows}
    assert told['m1'] == ('', 'not seen') and told['m2'] == ('', 'only in combination')
    assert told['mx3'][0] and told['mx3'][1] == 'measured'


def test_an_interval_that_holds_zero_is_no_measurement(plain: IdentifiedModel) -> None:
    i = plain.names.index('mx3')
    for share, origin in ((0.3, 'measured'), (0.6, 'consistent with zero')):
        model = replace(plain, std=np.where(np.arange(len(plain.std)) == i,
                                            share * abs(plain.values[i]), plain.std))
        (row,) = (row for row in parameter_card(model) if row.name == 'mx3')
        assert (row.origin, row.deviation) == (origin, model.std[i])
        assert f'mx3 {row.value:.6g}: {origin}, deviation' in '\n'.join(comment_lines([row]))
        sheet = parameters.sheets(model)[2][0]
        assert origin in sheet.text
        (fact,) = (fact for fact in sheet.facts if fact.name == 'mx3')
        assert fact.origin == origin


def test_links_are_told_with_what_the_prior_decided(plain: IdentifiedModel) -> None:
    standard = np.zeros(len(plain.reduction.standard))
    standard[:30] = plain.robot.nominal.ravel()
    model = replace(plain, feasible=standard, values=plain.reduction.base(standard),
                    record=FitRecord(details=FeasibleDetails(certificate=Certificate(
                        from_prior=('m1', 'Ixx2'), prior_share={'m1': 1.0},
                        active=('inertia of link_3 at its minimum',)))))
    rows = link_table(model)
    # told by the fit, or in no base parameter at all
    assert 'm1' in rows[0].from_prior and 'Ixx2' in rows[1].from_prior
    assert [row.combined for row in rows] == [
        ('mx1', 'Izz1'), ('m2', 'mx2', 'Izz2'), ('m3',)]
    card = {row.name: row for row in parameter_card(model)}
    assert (card['mx3'].origin, card['mx3'].part) == ('measured', 'link_3')
    assert card['mx3'].deviation == model.std[model.names.index('mx3')]
    assert (card['mx2'].origin, card['mx2'].measurement) == ('only in combination', 'weigh link_3')
    assert card['mx2'].combinations[0].startswith('mx2 + 0.36*m3 = ')
    assert (card['m1'].origin, card['m1'].share) == ('prior', 1.0)
    assert card['Ixx2'].measurement == 'swing link_2 as a pendulum: Ixx2'
    lines = comment_lines(tuple(card.values()))
    assert len(lines) == 30
    assert lines[0].startswith('link_1 m1 4.5: prior, left to the prior 100.0 %, to determine it: '
                               'weigh')
    assert rows[0].mass == rows[0].nominal_mass == 4.5
    assert rows[0].centre == pytest.approx(plain.robot.nominal[0, 1:4] / 4.5)
    assert all(row.smallest_eigenvalue > 0.0 for row in rows)
    *_, section = links(model)
    beside, told = section.tables
    assert len(told.rows) == len(card)
    assert 'inertia of link_3 at its minimum' in section.text
    assert [row.cells[0] for row in beside.rows] == ['link_1', 'link_2', 'link_3']
    sheets = [own[0] for own in parameters.sheets(model)]
    assert [sheet.title for sheet in sheets] == ['link_1', 'link_2', 'link_3']
    mass, centre, inertia = sheets[0].facts
    assert (mass.value, mass.unit, mass.origin) == ('4.5', 'kg', 'prior')
    assert (centre.unit, inertia.origin) == ('mm', 'prior')


def test_bodies_are_drawn_where_they_are(plain: IdentifiedModel) -> None:
    """A rod of mass m along x of its link at zero: its outline is as long and as thin."""
    half, mass, centre = 0.3, 2.0, 0.5
    about = mass * half**2 / 5.0  # second moment of an ellipsoid with this half axis
    rod = np.array([mass, mass * centre, 0.0, 0.0, 0.0, 0.0, about + mass * centre**2, 0.0, 0.0,
                    about + mass * centre**2])
    turned = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # x goes down
    origin = np.array([1.0, 2.0, 3.0])
    x, z = outline(rod, (turned, origin), (0, 2))
    assert np.ptp(x) == pytest.approx(0.0, abs=1e-9)
    assert (z.min(), z.max()) == pytest.approx((3.0 - centre - half, 3.0 - centre + half))


def test_friction_is_told_in_words_and_units(plain: IdentifiedModel) -> None:
    sheets = [own[1] for own in parameters.sheets(plain)]
    assert [sheet.title for sheet in sheets] == [f'friction of {one}' for one in plain.joints]
    assert {sheet.text for sheet in sheets} == {'value ± standard deviation'}
    found = {fact.origin: fact for fact in sheets[1].facts}
    assert found['fv2'].name == 'viscous friction' and found['fv2'].unit == 'N m s/rad'
    assert found['fv2'].value.startswith(f'{plain.standard["fv2"]:.2f}')
    assert ' ± ' in found['fv2'].value


def test_stages_are_told_once_each(plain: IdentifiedModel) -> None:
    found = tuple(Combination(c, 1.0, 0.1) for c in ('mx3', 'Izz3 + Ia3'))
    details = StagedDetails((StageSummary('joint_3', 2, 9, 3.0, 9.0, found),))
    (section,) = method(replace(plain, record=FitRecord(details=details)))
    assert [row.cells[0] for row in section.tables[0].rows] == ['joint_3', '']
    assert [row.cells[3] for row in section.tables[0].rows] == ['mx3', 'Izz3 + Ia3']


def test_friction_curves_show_points_law_and_band(plain: IdentifiedModel) -> None:
    speeds = np.geomspace(0.05, 2.0, 6)
    known = [SpeedPoint(v, 2.0 * v + 3.0, 0.05, 4, 1, 9.0) for v in speeds.tolist()]
    curves = tuple(friction_curve(joint, some)[0].summary
              for joint, some in (('joint_1', known), ('joint_3', known[:2])))
    (section,) = friction_curves(replace(plain, record=FitRecord(friction_curves=curves)))
    rows = [row.cells for row in section.tables[0].rows]
    assert rows[0][:2] == ('joint_1', 'coulomb')
    assert 'fv 2 ±' in rows[0][2] and 'fc 3 ±' in rows[0][2]
    assert rows[1][:2] == ('joint_3', 'none')
    assert [figure.title for figure in section.figures] == ['joint_1', 'joint_3']
    units = ('rad/s', 'N m')
    drawn = {trace['name']: trace for trace in curve_figure(curves[0], units)['data']}
    assert set(drawn) == {'95 % band', 'coulomb', 'sweeps'}
    assert unpacked(drawn['sweeps']['y']) == pytest.approx(2.0 * speeds + 3.0)
    assert unpacked(drawn['sweeps']['error_y']['array'])[0] == pytest.approx(known[0].half_width)
    assert [trace['name'] for trace in curve_figure(curves[1], units)['data']] == ['sweeps']
    assert curve_figure(curves[0], units)['layout']['xaxis']['tickvals'][0] == 0.01
    assert section.beside and section.tables[0].words
    far = replace(curves[0], errors_at_speeds_left_out={'a': 100.5, 'b': 99.4, 'c': 1.234},
                  settings={'width': 0.12345, 'power': 2.0}, shapes=('width',))
    (section,) = friction_curves(replace(plain, record=FitRecord(friction_curves=(far,))))
    assert section.tables[0].rows[0].cells[3:] == ('width 0.123', 'c 1.2, b 99, a > 100')


def test_laws_are_those_of_joints_and_of_motors_that_turn_with_several(
    plain: IdentifiedModel
) -> None:
    chosen = tuple(AxisChoice(axis, 'coulomb') for axis in ('2', 'm3'))
    (section,) = friction_laws(replace(plain, record=FitRecord(friction=chosen)))
    assert [row.cells[0] for row in section.tables[0].rows] == [
        f'{plain.joints[1]} (2)', f'motor of {plain.joints[2]} (m3)']


def test_torque_ripple_is_told_with_where_there_is_none(plain: IdentifiedModel) -> None:
    assert RippleTorque.sections(plain) == ()
    wave = Wave(1010.0, 0.5, -4e-3, 1e-4, 1e-9)
    found = (JointRipple('joint_1', 2.0, 1.0, (wave,), 1e-4, 1e-5),
             JointRipple('joint_2', 3.0, 3.0))
    (section,) = RippleTorque.sections(replace(plain, record=FitRecord(ripple=found)))
    assert 'None beyond chance at joint_2.' in section.text
    errors, waves = section.tables
    assert errors.rows[0].cells == ('joint_1', '2', '1', '75.0', '1', '10 (8.36 to 12.4)')
    assert waves.rows[0].cells[:4] == ('joint_1', '1010', '0.5', '-4.00 ± 0.10')
    assert (waves.title, waves.folded) == ('Waves', False)
    many = replace(found[0], waves=13 * (wave,))
    (section,) = RippleTorque.sections(replace(plain, record=FitRecord(ripple=(many,))))
    assert (section.tables[1].title, section.tables[1].folded) == ('All 13 waves', True)
    (section,) = RippleTorque.sections(replace(plain, record=FitRecord(ripple=found[1:])))
    assert section.tables == ()
    assert 'stiffness' not in section.text


GEAR = GearRecord('joint_1', 5012.3, 21.0, 2e-3, 1e-5, 1.234e-3, 4.5678e-3, 1.2346e-5, 0.0,
                  4.238e-6, 0.01138, 9.87, 0.12, 0.3, 0.002, 8.12e-5, 1.2e-6, 0.42, 0.013)


def test_gears_are_told_in_milliradians_with_what_a_rigid_model_misses(
    plain: IdentifiedModel
) -> None:
    gears = (GEAR, replace(GEAR, joint='joint_2', attenuation=0.01, kinematic_error=0.0,
                           hysteresis=0.0, resolution_link=0.0, resolution_motor=2e-6))
    beside = (RigidComparison('joint_1', True, 3.1, 2.2, True),
              RigidComparison('joint_2', False, 1.0, 1.25, False))
    record = FitRecord(gears=gears, rigid_beside=beside)
    (section,) = elastic_joints(replace(plain, record=record))
    encoders, stiff = section.tables
    first, second = (row.cells for row in encoders.rows)
    assert first == ('joint_1', '5012 ± 21', '9.87 ± 0.12', '0.3000 ± 0.0020', '2 ± 0.01',
                     '1.23', '4.57', '0.0123 / none seen', '0.0042', '1.1', '0.0812 ± 0.0012',
                     '0.420 ± 0.013')
    assert second[7:] == ('none seen / 0.002', '0.0042', '1', 'none seen', 'none seen')
    assert [row.mark for row in encoders.rows] == ['poor', '']
    assert [row.cells for row in stiff.rows] == [
        ('joint_1', 'elastic', '3.1', '2.2', '1.41', 'elasticity matters'),
        ('joint_2', 'rigid', '1', '1.25', '0.8', 'no more than 10 % apart')]
    assert section.text.endswith('Elasticity matters at joint_1.')
    assert stiff.words and not encoders.words
    alike = replace(plain, record=FitRecord(gears=gears, rigid_beside=beside[1:]))
    assert 'The rigid model predicts these efforts as well' in elastic_joints(alike)[0].text


def test_two_encoders_are_told_with_what_the_motion_determines(plain: IdentifiedModel) -> None:
    def told(value: float, low: float, high: float, determined: bool = True) -> Determined:
        return Determined(value, 0.1, low, high, determined)

    fit = DeflectionFit(
        'joint_2', told(np.inf, 2e4, np.inf, False), told(12.0, 10.0, 14.0),
        told(1.5e-3, 1.4e-3, 1.6e-3), told(3e-5, 2.1234e-5, 4e-5), told(1e-6, -1e-6, 3e-6, False),
        told(4e-4, 3e-4, 5e-4), 1.2346e-4, 8.1234e-5)
    (section,) = encoders(replace(plain, record=FitRecord(encoders=(fit,))))
    (row,) = section.tables[0].rows
    assert row.cells == (
        'joint_2', '123', '81.2', '1.5 [1.4, 1.6]', '[20000, ∞]', '12 [10, 14]', '30 [21.2, 40]',
        '[-1, 3]', '400 [300, 500]', 'damping, delay, hysteresis, zero',
        'stiffness, kinematic error')
    assert section.tables[0].words
    nothing = replace(fit, **{name: told(0.0, -1.0, 1.0, False) for name in fit.determined})
    (section,) = encoders(replace(plain, record=FitRecord(encoders=(nothing,))))
    assert section.tables[0].rows[0].cells[-2] == '–'
    assert encoders(plain) == ()


def card_row(name: str, origin: str, part: str = 'forearm', **facts: object) -> ParameterRow:
    values = {'value': 1.23456789, 'deviation': None, 'combinations': (), 'share': None,
              'measurement': '', **facts}
    return ParameterRow(part, name, origin=origin, **values)  # type: ignore[arg-type]


def test_lines_of_the_card_tell_all_that_is_known_of_a_parameter_of_a_link() -> None:
    rows = [card_row('m3', 'measured', deviation=0.0123),
            card_row('mx3', 'only in combination', combinations=('a = 1', 'b = 2'),
                     measurement='balance forearm: mx3'),
            card_row('Ixx2', 'prior', 'upper_arm', share=0.25), card_row('fc3', 'measured')]
    assert comment_lines(rows) == [
        'forearm m3 1.23457: measured, deviation 0.012',
        'forearm mx3 1.23457: only in combination, determined: a = 1; b = 2, to determine it: '
        'balance forearm: mx3',
        'upper_arm Ixx2 1.23457: prior, left to the prior 25.0 %']
    assert by_link(rows, 'prior') == {'forearm': (), 'upper_arm': ('Ixx2',)}
    assert by_link(rows, 'measured') == {'forearm': ('m3',), 'upper_arm': ()}


@pytest.mark.parametrize(('name', 'words'), [
    ('', 'a motion that excites it'), ('m2', 'weigh {}'), ('my3', 'balance {}: my3'),
    ('Ixy1', 'swing {} as a pendulum: Ixy1'), ('Ia2', 'data sheet of joint_2: Ia2')])
def test_measurements_are_of_the_part_a_parameter_belongs_to(
    plain: IdentifiedModel, name: str, words: str
) -> None:
    part = plain.robot.tree.bodies[int(name[-1]) - 1] if name else ''
    assert measurement(plain, Origin('m1', 'prior', (), name)) == words.format(part)
