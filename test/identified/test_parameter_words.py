"""friction/terms.py: parameters of models in words: complete, told apart, with units that the
columns confirm."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_arms import elastic_arm
from identified_models import ALL_LAWS, model_with_laws

from robot_dynid.friction import ADDITIONS, LAWS, AxisMotion, law_from
from robot_dynid.friction.terms import unit_of, words_of
from robot_dynid.robot.robot_file import load_robot

NAMES = [*LAWS, *(f'{law}+{"+".join(ADDITIONS)}' for law in LAWS)]


@pytest.mark.parametrize('name', NAMES)
def test_words_tell_the_parameters_of_a_law_apart(name: str) -> None:
    words = [words_of(parameter) for parameter in law_from(name).table]
    assert len(set(words)) == len(words) and all(words)


@pytest.mark.parametrize('name', NAMES)
def test_units_are_those_of_torque_over_column(name: str) -> None:
    """A column in units of its own: how it grows with speed, load and temperature."""
    law = law_from(name)

    def columns(speed: float, load: float, warm: float) -> np.ndarray:
        one = np.ones(1)
        return law.columns(AxisMotion(one, one, speed * one, (0,), load * one, warm * one))[:, 0]

    fast = columns(100.0, 1.0, 26.0)
    for i, parameter in enumerate(law.table):
        forward = parameter.terms[0].side >= 0.0
        power = np.log2(columns(200.0, 1.0, 26.0)[i] / fast[i]) if fast[i] and forward else None
        unit = unit_of(parameter)
        if power is not None:
            power = round(power, 2)
            seconds = {0: '', 1: 's/'}.get(power, f's^{power:g}/')
            assert (seconds in unit) and ('s' in unit) == bool(seconds), unit
            assert (unit == '-') == (columns(100.0, 2.0, 26.0)[i] == 2.0 * fast[i])
            warmer = columns(100.0, 1.0, 27.0)[i] == 2.0 * fast[i]
            assert unit.rstrip(')').endswith('K') == warmer


@pytest.mark.parametrize(('law', 'name', 'words', 'unit'), [
    ('coulomb', 'fv', 'viscous friction', 'N s/m'), ('coulomb', 'f0', 'constant offset', 'N'),
    ('asymmetric', 'fcp', 'dry (Coulomb) friction forward', 'N'),
    ('two-speed', 'fqn',
     'friction that grows with the square of the speed backward, above 0.05 m/s', 'N s^2/m^2'),
    ('two-speed', 'fkp',
     'friction that grows with the cube of the speed forward, above 0.05 m/s', 'N s^3/m^3'),
    ('exponential', 'fs',
     'break-away: dry friction at rest above that in motion, gone above 0.25 m/s', 'N'),
    ('stribeck', 'fs', 'static friction above the dry one, gone above 0.1 m/s', 'N'),
    ('dahl', 'fc', 'dry friction that builds up over 0.3 mm of travel', 'N'),
    ('none+load', 'fw', 'dry friction per torque that the joint transmits', '-'),
    ('coulomb+levelling', 'fl', 'friction that rises up to 0.3 m/s and levels off', 'N'),
    ('coulomb+breakaway', 'fb',
     'break-away: dry friction at rest above that in motion, gone above 0.1 m/s', 'N'),
    ('coulomb+drift', 'fd',
     'dry friction of the cold joint above that of the warm one, fading over 30 s', 'N'),
    ('coulomb+temperature', 'ft',
     'change of dry (Coulomb) friction with temperature, zero at 25 deg C', 'N/K'),
    ('coulomb+temperature', 'fu',
     'change of viscous friction with temperature, zero at 25 deg C', 'N s/(m K)')])
def test_parameters_of_joints_that_slide_are_in_metres(
    law: str, name: str, words: str, unit: str
) -> None:
    one = next(p for p in law_from(law).table if p.name == name)
    assert (words_of(one, slides=True), unit_of(one, slides=True)) == (words, unit)
    turning = words.replace('m/s', 'rad/s').replace(' mm ', ' mrad ')
    assert (words_of(one), unit_of(one)) == (turning, '-' if unit == '-' else unit.replace(
        'N', 'N m', 1).replace('/m', '/rad').replace('/(m', '/(rad'))


def test_every_parameter_of_a_coupled_arm_has_words_and_a_part() -> None:
    model = model_with_laws(load_robot('tx40'), ALL_LAWS)
    found = model.torque_model.words
    assert tuple(found) == model.reduction.standard
    assert len({one.sentence for one in found.values()}) == len(found)
    assert found['fc6'].sentence == (
        'joint_6: dry friction that builds up over 0.12 mrad of travel')
    assert found['fvm6'].sentence == (
        'motor of joint_6 (turns with joint_5 and joint_6): viscous friction')
    assert found['fs1'].words.startswith('static friction above the dry one, gone above 0.2')
    assert found['fcn2'].words == 'dry (Coulomb) friction backward'
    assert (found['Ixy3'].part, found['Ixy3'].unit) == (model.robot.bodies[2], 'kg m^2')
    assert found['my4'].words == 'mass times y of its centre of mass'


def test_sliding_joints_have_units_of_their_own() -> None:
    model = model_with_laws(load_robot('stanford_arm'), ALL_LAWS[-3:])
    found = model.torque_model.words
    assert (found['Ia3'].unit, found['fv3'].unit, found['f03'].unit) == ('kg', 'N s/m', 'N')
    assert found['fca1'].words == 'dry friction that builds up over 0.02 mrad of travel'


def test_gears_of_elastic_joints_have_words() -> None:
    found = model_with_laws(elastic_arm()[0], ALL_LAWS[-1:]).torque_model.words
    assert (found['K2'].words, found['K2'].unit) == ('stiffness of the gear', 'N m/rad')
    assert found['D2'].unit == 'N m s/rad'
