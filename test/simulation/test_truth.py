"""simulation/truth.py: true parameters from a file, and what no drive can have."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.errors import RobotError
from robot_dynid.simulation.truth import HarmonicDrive, Noise, Truth, distance, load_truth

ROBOT = load_robot('planar_3r')
TEXT = """
simulation:
  joint_3: {viscous: 0.7, rotor_inertia: 0.03, presliding: 2.0e-4}
  joint_1:
    {viscous: 1.5, coulomb: 2.5, stribeck: 0.4, stribeck_speed: 0.05, rotor_inertia: 0.2,
     drive: {gear_ratio: 50, stiffness: 9000.0, hysteresis: 1.25}}
  noise: {velocity: 1.0e-3, effort: 5.0e-4}
"""


def truth_of(path: Path, text: str) -> Truth:
    """Return the truth of a file with this text."""
    path.write_text(text)
    return load_truth(ROBOT, path)


def test_a_file_states_numbers_by_joint_and_leaves_the_rest_at_zero(tmp_path: Path) -> None:
    truth = truth_of(tmp_path / 'truth.yaml', TEXT)
    for name, values in (
            ('viscous', [1.5, 0.0, 0.7]), ('coulomb', [2.5, 0.0, 0.0]),
            ('rotor_inertia', [0.2, 0.0, 0.03]), ('stribeck', [0.4, 0.0, 0.0]),
            ('stribeck_speed', [0.05, 1.0, 1.0]), ('presliding', [0.0, 0.0, 2e-4])):
        assert getattr(truth, name).tolist() == values, name
    assert truth.noise == Noise(0.0, 0.0, 0.0, 1e-3, 5e-4)
    assert {name: astuple(one) for name, one in truth.drives.items()} == {
        'joint_1': (50.0, 9000.0, 0.0, 0.0, 1.25, 2e-4)}
    np.testing.assert_allclose(truth.dry(np.array([-0.02, 3.0, 0.1])), [
        2.5 + 0.4 * (1.0 - np.tanh(0.4)), 0.0, 0.0])
    plain = truth_of(tmp_path / 'plain.yaml', 'simulation: {joint_2: {coulomb: 1.5}}')
    assert plain.stribeck is plain.stribeck_speed is plain.presliding is None
    assert plain.noise == Noise(*[0.0] * 5) and not plain.drives
    assert plain.dry(np.array([0.1, -0.2, 0.3])).tolist() == [0.0, 1.5, 0.0]


@pytest.mark.parametrize(('section', 'message'), [
    ('[1]', ': simulation must be a mapping of joints, is [1]'),
    ('{joint_2: 3}', ': simulation: joint_2 must be a mapping, is 3'),
    ('{noise: [2]}', ': simulation must be a mapping, is [2]'),
    ('{joint_4: {}}', ": simulation: no joint 'joint_4'; there are joint_1, joint_2, joint_3"),
    ('{joint_1: {stribeck: 1.0}}', ': simulation: joint_1: stribeck and stribeck_speed belong '
     'together'),
    ('{joint_1: {stribeck_speed: 1.0}}', ': simulation: joint_1: stribeck and stribeck_speed '
     'belong together'),
    ('{joint_1: {drive: {stiffness: 9.0}}}', ': simulation: joint_1: drive: gear_ratio is '
     'missing'),
    ('{joint_1: {drive: {gear_ratio: 9.0}}}', ': simulation: joint_1: drive: stiffness is '
     'missing'),
    ('{joint_3: {drive: {gear_ratio: 9.0, stiffness: 0.0}}}', ': simulation: joint_3: drive: '
     'stiffness must be positive'),
    ('{joint_3: {drive: 7}}', ': simulation: joint_3: drive must be a mapping, is 7')])
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, section: str, message: str) -> None:
    with pytest.raises(RobotError) as caught:
        truth_of(tmp_path / 'truth.yaml', f'simulation: {section}')
    assert str(caught.value) == f'{tmp_path / "truth.yaml"}{message}'


@pytest.mark.parametrize('name', [one.name for one in fields(HarmonicDrive)])
def test_numbers_of_a_drive_are_finite_and_not_negative(name: str) -> None:
    good = {'gear_ratio': 80.0, 'stiffness': 9e3, 'kinematic_error': 1e-4}
    for value in (-1e-3, np.inf, np.nan):
        with pytest.raises(RobotError) as caught:
            HarmonicDrive(**{**good, name: value})
        assert str(caught.value) == f'drive: {name} must be finite and at least zero, is {value}'
    if name in ('gear_ratio', 'stiffness', 'hysteresis_length'):
        with pytest.raises(RobotError, match=f'drive: {name} must be positive'):
            HarmonicDrive(**{**good, name: 0.0})
    else:
        assert getattr(HarmonicDrive(**{**good, name: 0.0}), name) == 0.0


def test_the_kinematic_error_leaves_the_link_turning_with_its_motor() -> None:
    """Its slope, twice the ratio times its size, is below one."""
    HarmonicDrive(40.0, 9e3, kinematic_error=0.01249)
    with pytest.raises(RobotError) as caught:
        HarmonicDrive(40.0, 9e3, kinematic_error=0.0125)
    assert str(caught.value) == ('drive: kinematic_error must be below 0.0125 rad with gear_ratio '
                                 '40, is 0.0125')


def test_distance_is_relative_to_the_true_values() -> None:
    assert distance(np.array([3.0, 5.0]), np.array([3.0, 4.0])) == pytest.approx(0.2)
    assert distance(np.array([0.0, 8.0]), np.array([6.0, 8.0])) == pytest.approx(0.6)
