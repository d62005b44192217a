"""The record of an identification: to plain types and back, and from files of format 1."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import yaml
from identified_models import nominal_model, unprotected

from robot_dynid.effects.ripple_search import Wave
from robot_dynid.errors import ModelError
from robot_dynid.estimation.deflection_fit import DeflectionFit, Determined
from robot_dynid.estimation.errors_in_variables.exogeneity import Bias, HausmanTest
from robot_dynid.estimation.errors_in_variables.instrumental import InstrumentDetails
from robot_dynid.estimation.feasible.certificate import Certificate, LinkMargin
from robot_dynid.estimation.feasible.simultaneous import FeasibleDetails
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice, LawScore
from robot_dynid.estimation.friction_sweeps import (
    BoundedPoint,
    CurveParameter,
    CurveSummary,
    LawBand,
)
from robot_dynid.estimation.staged.least_squares import StagedDetails
from robot_dynid.identified.error_law import ErrorLaw
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import (
    CutoffScore,
    DeflectionRecord,
    FitRecord,
    GearRecord,
    JointDeflection,
    JointRipple,
    MotorEncoder,
    RigidComparison,
    SlowChange,
)
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.prepare import Averaging

#: the record as format 1 had it in its ``provenance``
BEFORE: dict[str, Any] = {
    'recordings': ['a.csv', 'b.csv'], 'samples': 40, 'weights_near_reversals': [0.5, 1.0, 0.25],
    'std_over_textbook': 5.5, 'degrees_of_freedom': 7, 'refused': {'joint_2': 'constant'},
    'cutoffs_tried': [{'cutoff': 2.0, 'held_out_score': 0.1}],
    'friction': [{'axis': '1', 'law': 'stribeck', 'note': '', 'tried': [
        {'law': 'coulomb', 'error_over_coulomb': 1.0},
        {'law': 'stribeck', 'error_over_coulomb': 0.9}]}],
    'effort_lag': {'seconds': -0.003, 'std': 0.0002},
    'averaging': [{'source': 'a.csv', 'period': 8.0, 'start': 1.0, 'periods': 4,
                   'position_noise': [0.1, 0.2, 0.3], 'effort_noise': [1.0, 2.0, 3.0]}],
    'friction_curves': [
        {'joint': 'joint_1', 'points': [
            {'speed': 0.1, 'friction': 2.0, 'std': 0.1, 'degrees': 3, 'pairs': 4, 'even': 9.0,
             'lower': 1.8, 'upper': 2.2}], 'law': 'coulomb',
         'errors_at_speeds_left_out': {'coulomb': 1.1}, 'settings': {'width': 0.01},
         'shapes': ['width'], 'parameters': [{'name': 'fc', 'std': 0.1, 'value': 2.0}],
         'curve': {'speed': [0.1], 'friction': [2.0], 'lower': [1.9], 'upper': [2.1]}},
        {'joint': 'joint_3', 'points': [], 'law': '', 'errors_at_speeds_left_out': {}}],
    'residual': {'kind': 'gmr', 'rounds': 2, 'joints': [
        {'joint': 'joint_1', 'used': True, 'note': '', 'friction': 3.0, 'physics': 2.0,
         'with_residual': 1.0}], 'rounds_tried': [[1.0, 2.0, 3.0]], 'loops': 'three',
        'seconds': {'friction': 1.0, 'links': 2.0, 'residual': 3.0}},
    'gears': [{'joint': 'joint_1', 'stiffness': 9e3, 'stiffness_std': 1.0, 'offset': 1e-4,
               'offset_std': 1e-6, 'deflection_rms': 1e-3, 'deflection_peak': 2e-3,
               'resolution_link': 0.0, 'resolution_motor': 1e-6, 'noise': 1e-6,
               'attenuation': 1e-5, 'damping': 8.0, 'damping_std': 0.1, 'rotor_inertia': 1.1,
               'rotor_inertia_std': 0.01}],
    'rigid_beside': [{'joint': 'joint_1', 'elastic': True, 'rigid_error': 2.0,
                      'elastic_error': 1.0, 'matters': True}],
    'quiet': {'gain': 30.0, 'joints': {
        f'joint_{j}': {'moving': 1.0 * j, 'holding': 2.0, 'speed': 0.01} for j in (1, 2, 3)}},
}
RECORD = FitRecord(
    ('a.csv', 'b.csv'), 40, (0.5, 1.0, 0.25), 5.5, 7.0, (CutoffScore(2.0, 0.1),),
    (AxisChoice('1', 'stribeck', '', (LawScore('coulomb', 1.0), LawScore('stribeck', 0.9))),),
    Lag(-0.003, 0.0002), (Averaging('a.csv', 8.0, 1.0, 4, (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)),),
    (CurveSummary('joint_1', (BoundedPoint(0.1, 2.0, 0.1, 3, 4, 9.0, 1.8, 2.2),), 'coulomb',
                {'coulomb': 1.1}, {'width': 0.01}, ('width',),
                (CurveParameter('fc', 2.0, 0.1),), LawBand((0.1,), (2.0,), (1.9,), (2.1,))),
     CurveSummary('joint_3', ())),
    DeflectionRecord('gmr', 2, (JointDeflection('joint_1', True, '', 3.0, 2.0, 1.0),),
                     ((1.0, 2.0, 3.0),), 'three',
                     {'friction': 1.0, 'links': 2.0, 'residual': 3.0}),
    (GearRecord('joint_1', 9e3, 1.0, 1e-4, 1e-6, 1e-3, 2e-3, 0.0, 1e-6, 1e-6, 1e-5, 8.0, 0.1,
                1.1, 0.01),),
    (RigidComparison('joint_1', True, 2.0, 1.0, True),), {'joint_2': 'constant'})
SHOWN = Determined(3e-3, 1e-4, 2.8e-3, 3.2e-3, True)
OPEN = Determined(5e6, 1e6, 2e6, np.inf, False)
DETAILS = {
    'iv': InstrumentDetails('the motion below 3 Hz', 0.9, 12.0, ('Izz1',),
                            HausmanTest(2.0, (3, 4), 0.1, False), (Bias('Izz1', 0.1, 0.2),)),
    'feasible': FeasibleDetails(0.01, Certificate(
        {'link_1': LinkMargin(0.1, 0.2)}, ('m1 at zero',), 1e-9, 0.01, 3, ('m1',))),
}


def old_file(provenance: dict[str, Any], method: str = 'wls') -> str:
    """Return a small model file of format 1."""
    content = yaml.safe_load(unprotected(nominal_model('planar_3r').to_yaml()))
    del content['record'], content['end_of_model']
    return yaml.safe_dump({**content, 'format': 'robot_dynid model 1', 'method': method,
                           'provenance': provenance, 'end_of_model': True}, sort_keys=False)


def test_a_motor_encoder_without_a_calibration_is_that_of_the_joint() -> None:
    assert MotorEncoder('a') == MotorEncoder('a', 1.0, 0.0, 0.0, 0.0, 0.0)


def same(one: Any, other: Any) -> bool:
    """Return whether two dataclasses hold the same in fields of the same types."""
    return all(getattr(one, f.name) == getattr(other, f.name) for f in fields(one)
               if f.name != 'details') and type(one) is type(other)


def test_every_field_survives_the_model_file() -> None:
    record = replace(RECORD, recording_digests=('ab', 'cd'), robot_digest='ef', recipe_digest='0',
                     ripple=(JointRipple('joint_1', 2.0, 1.5, (
                         Wave(202.0, 0.5, -3e-3, 1e-4, 1e-9),), 1e-5, 1e-6),),
                     friction_spread={'dry': 0.01},
                     slow_changes=(SlowChange('joint_1', 0.1, 3.0, 0.2, 4.0),),
                     motor_encoders=(MotorEncoder('joint_1', 1.01, 0.1, 1e-4, 1e-5, 1e-3),),
                     left_over=(0.2, 0.1, 0.05), accepted=('effort_sign',),
                     command=('arm.yaml', 'a.csv', '--method', 'wls'),
                     passbands=(10.0, 10.0, 33.0),
                     error_law=ErrorLaw(
                         (0.1, 0.2, 0.3), (0.0, 0.1, 0.2), (0.3, 0.0, 0.1), 0.2, 7.0),
                     encoders=(DeflectionFit('joint_1', OPEN, *[SHOWN] * 5, 7e-4, 3e-5),))
    model = replace(nominal_model('planar_3r'), record=record, noise_levels=NoiseLevels(
        np.ones(3), np.full(3, 2.0), np.full(3, 0.01), 20.0))
    assert all(value for key, value in to_plain(record).items() if key != 'details'), \
        'a field without an example'
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert same(again.record, record)
    assert again.noise_levels is not None
    assert again.noise_levels.gain == 20.0
    np.testing.assert_array_equal(again.noise_levels.holding, np.full(3, 2.0))


@pytest.mark.parametrize('method', DETAILS)
def test_details_of_methods_survive_the_model_file(method: str) -> None:
    model = replace(nominal_model('planar_3r'), method=method,
                    record=FitRecord(details=DETAILS[method]))
    assert IdentifiedModel.from_yaml(model.to_yaml()).record.details == DETAILS[method] or \
        to_plain(IdentifiedModel.from_yaml(model.to_yaml()).record.details) == to_plain(
            DETAILS[method])


def test_files_of_format_1_are_read() -> None:
    model = IdentifiedModel.from_yaml(old_file(BEFORE))
    assert same(model.record, RECORD)
    assert model.noise_levels is not None
    np.testing.assert_array_equal(model.noise_levels.moving, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(('method', 'provenance', 'kind'), [
    ('iv', {'estimator': to_plain(DETAILS['iv'])}, InstrumentDetails),
    ('feasible', to_plain(DETAILS['feasible']), FeasibleDetails),
    ('staged', {'stages': [{'stage': 'joint_3', 'motions': 2, 'samples': 9,
                            'condition_number': 3.0, 'condition_number_raw': 9.0,
                            'found': [{'combination': 'mx3', 'value': 1.0, 'std': 0.1}]}]},
     StagedDetails),
])
def test_details_in_files_of_format_1_are_those_of_the_method(
        method: str, provenance: dict[str, Any], kind: type) -> None:
    details = IdentifiedModel.from_yaml(old_file(provenance, method)).record.details
    assert isinstance(details, kind)
    assert to_plain(details) == provenance.get('estimator', provenance)


@pytest.mark.parametrize('provenance', [
    {'recordings': ['a.csv'], 'gears': [{'joint': 'joint_1'}]},
    {'recordings': ['a.csv'], 'samples': 'many'},
    {'recordings': ['a.csv'], 'weather': 'fine'},
    {'recordings': ['a.csv'], 'quiet': {'gain': 30.0}},
])
def test_files_that_cannot_be_read_say_how_to_make_them_anew(provenance: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r'm\.yaml: damaged: .*robot-dynid identify a\.csv '
                                         '--robot planar_3r --method wls --out'):
        IdentifiedModel.from_yaml(old_file(provenance), 'm.yaml')


@pytest.mark.parametrize(('kind', 'content', 'message'), [
    (Lag, {'seconds': 0.0, 'std': '1'}, "std must be a number up to 1e.100, is '1'"),
    (Lag, {'seconds': 0.0, 'std': True}, 'std must be a number up to 1e.100, is True'),
    (Lag, [0.0, 1.0], 'Lag must be a mapping'),
    (LawScore, {'law': 'coulomb', 'error': 1.0}, 'LawScore has no error'),
    (LawBand, {'speed': 'fast', 'friction': [], 'lower': [], 'upper': []},
     "speed must be a list, is 'fast'"),
])
def test_content_of_another_kind_is_refused(kind: type, content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_plain(kind, content)


def test_only_plain_types_are_written() -> None:
    with pytest.raises(TypeError, match='set is no plain type'):
        to_plain({'a': {1}})
    assert to_plain((np.float64(1.0), np.array([2, 3]), None)) == [1.0, [2, 3], None]


def test_the_spread_of_friction_in_words() -> None:
    assert 'unknown from one recording' in FitRecord().spread_sentence
    known = FitRecord(friction_spread={'viscous': 0.0471, 'dry': 0.0})
    assert known.spread_sentence == 'viscous 4.7 %, dry 0.0 %'
    assert FitRecord.from_plain(known.plain(), 'wls').friction_spread == known.friction_spread


def test_gain_of_ripple_is_the_share_of_the_variance_it_explains() -> None:
    assert JointRipple('a', 4.0, 3.0).gain == pytest.approx(7.0 / 16.0)
    assert JointRipple('a', 0.5, 0.4).gain == pytest.approx(0.36)
    assert JointRipple('a', 0.0, 0.0).gain == 0.0


def test_stiffness_of_ripple_has_an_interval_where_the_compliance_is_beyond_it() -> None:
    shown = JointRipple('a', 4.0, 3.0, compliance=2e-4, compliance_std=1e-4)
    assert shown.stiffness == pytest.approx((1.0 / 3.96e-4, 5e3, 1.0 / 0.04e-4))
    assert replace(shown, compliance_std=1.03e-4).stiffness is None
    assert replace(shown, compliance=1.95e-4).stiffness is None


def test_daily_spread_is_moderated_by_what_is_usual_of_four_degrees() -> None:
    record = FitRecord(recordings=('a', 'b', 'c'), friction_spread={'viscous': 0.1, 'dry': 0.123})
    share, freedom = record.daily_spread('viscous', 5)
    assert freedom == 14.0
    assert share == pytest.approx(np.sqrt((4.0 * 0.05**2 + 10.0 * 0.1**2) / 14.0))
    assert record.daily_spread('offset', 5, 0.3) == (pytest.approx(0.3), 4.0)
    assert replace(record, recordings=()).daily_spread('dry', 5, 0.3) == (pytest.approx(0.3), 4.0)
    assert record.spread_sentence == 'viscous 10.0 %, dry 12.3 %'
    assert FitRecord().spread_sentence == (
        'unknown from one recording and not covered by the intervals: identify from recordings '
        'of several days')
