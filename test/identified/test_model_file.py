"""The model file: kept to the last bit, refused when cut off, edited or foreign."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from identified_models import feasible_model, nominal_model, random_links, states, unprotected

from robot_dynid.errors import ModelError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.model_file import DIGEST, END, UNPROTECTED
from robot_dynid.robot.robot_file import load_robot


@pytest.fixture(scope='module')
def planar():
    """Return a small model, whose file is short."""
    return nominal_model('planar_3r')


@pytest.mark.parametrize('name', ['planar_3r', 'stanford_arm', 'tx40', 'ur10e'])
def test_file_keeps_every_bit(name, tmp_path):
    model = nominal_model(name)
    path = tmp_path / 'm.yaml'
    model.save(path)
    loaded = IdentifiedModel.load(path, load_robot(name))
    q, qd, qdd = states(model)
    effort = model.inverse(q, qd, qdd)
    assert np.array_equal(loaded.inverse(q, qd, qdd), effort)
    assert np.array_equal(loaded.forward(q, qd, effort), model.forward(q, qd, effort))
    for field in ('values', 'std', 'control'):
        assert np.array_equal(getattr(loaded, field), getattr(model, field))
    for field in ('method', 'status', 'not_identified', 'warnings', 'preprocessing', 'structure',
                  'names', 'labels', 'joints'):
        assert getattr(loaded, field) == getattr(model, field)
    assert loaded.record.plain() == model.record.plain() == {
        'recordings': ['x.csv'], 'samples': 5}
    assert loaded.to_yaml() == model.to_yaml()
    assert [p.name for p in tmp_path.iterdir()] == ['m.yaml']


def test_infinite_deviations_survive(planar):
    std = planar.std.copy()
    std[2] = np.inf
    loaded = IdentifiedModel.from_yaml(replace(planar, std=std).to_yaml())
    assert np.array_equal(loaded.std, std)


def test_file_cut_off_anywhere_is_refused(planar):
    text = planar.to_yaml()
    for stop in range(0, len(text) - 1, 200):
        with pytest.raises((ModelError, UsageError)):
            IdentifiedModel.from_yaml(text[:stop], 'part')
    for stop in range(len(text) - 25, len(text) - 2):
        with pytest.raises((ModelError, UsageError)):
            IdentifiedModel.from_yaml(text[:stop], 'part')


def test_a_changed_bit_of_a_model_file_is_noticed(planar):
    data = planar.to_yaml().encode()
    rng = np.random.default_rng(0)
    for _ in range(3000):
        at, bit = int(rng.integers(len(data))), int(rng.integers(8))
        changed = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:]
        with pytest.raises(ModelError, match=r'digest|unknown key|cut off'):
            IdentifiedModel.from_yaml(changed.decode('latin-1'), 'm.yaml')


def test_bits_of_files_are_protected(planar, tmp_path):
    path = tmp_path / 'm.yaml'
    planar.save(path)
    data = path.read_bytes()
    last = len(data) - 1
    for at in (0, 8, len(data) // 2, data.rindex(DIGEST.encode()) - 1, last - 70, last - 1, last):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:])
            with pytest.raises(ModelError):
                IdentifiedModel.load(path)


def test_files_without_digest_are_read_with_a_warning(planar):
    text = planar.to_yaml()
    for before in (unprotected(text), unprotected(text).replace('model 6', 'model 2')):
        loaded = IdentifiedModel.from_yaml(before, 'm.yaml')
        assert loaded.warnings == (*planar.warnings, UNPROTECTED)
        assert loaded.to_yaml() == text, 'protected once it is saved anew'
    with pytest.raises(ModelError, match='its digest is damaged'):
        IdentifiedModel.from_yaml(text.replace(DIGEST, 'digest: sha257 '), 'm.yaml')
    with pytest.raises(ModelError, match='or remove its last line'):
        IdentifiedModel.from_yaml(text.replace('model 6', 'model 2'), 'm.yaml')


def test_every_missing_key_is_refused(planar):
    content = yaml.safe_load(unprotected(planar.to_yaml()))
    for key in content:
        if key in ('software', END):
            continue
        rest = {k: v for k, v in content.items() if k != key}
        with pytest.raises(ModelError, match='part'):
            IdentifiedModel.from_yaml(yaml.safe_dump(rest, sort_keys=False), 'part')


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('robot_dynid model 6', 'robot_dynid model 9',
     "reads 'robot_dynid model 6', 'robot_dynid model 5', 'robot_dynid model 4', 'robot_dynid "),
    ('method: wls', 'methods: wls', 'unknown key methods'),
    ('laws: [coulomb', 'laws: [magic', 'choose one of'),
    ('rotor_inertia: true', 'rotor_inertia: false', 'not those of its blocks'),
    ('width: 0.05', 'width: 0.0', 'must be positive'),
    ('width: 0.05', 'height: 0.05', 'unknown setting height'),
    (f'{END}: true', f'{END}: false', 'cut off'),
    ('translation:', 'shift:', 'damaged'),
])
def test_edited_files_are_refused(planar, old, new, message):
    text = unprotected(planar.to_yaml())
    assert old in text
    with pytest.raises(ModelError, match=message):
        IdentifiedModel.from_yaml(text.replace(old, new), 'm.yaml')


def test_edited_geometry_is_noticed(planar):
    text = unprotected(planar.to_yaml())
    assert '0.36' in text
    with pytest.raises(ModelError, match='changed after the identification'):
        IdentifiedModel.from_yaml(text.replace('[0.36,', '[0.37,'), 'm.yaml')


def test_parameters_that_are_no_numbers_are_refused(planar):
    text = unprotected(planar.to_yaml())
    broken = text.replace(repr(float(planar.values[0])), '.nan', 1)
    assert broken != text
    with pytest.raises(ModelError, match=r'parameters\[0\]\.value must be a finite number'):
        IdentifiedModel.from_yaml(broken, 'm.yaml')


@pytest.fixture(scope='module')
def feasible():
    """Return a small model with feasible parameters."""
    robot = load_robot('planar_3r')
    rng = np.random.default_rng(0)
    return feasible_model(robot, random_links(rng, robot.n), rng)


def test_feasible_parameters_are_kept(feasible, planar):
    loaded = IdentifiedModel.from_yaml(feasible.to_yaml())
    assert np.array_equal(loaded.feasible, feasible.feasible)
    assert loaded.to_yaml() == feasible.to_yaml()
    assert 'feasible: {m1: ' in feasible.to_yaml()
    assert 'feasible' not in planar.to_yaml(), 'as written before there were any'
    assert IdentifiedModel.from_yaml(planar.to_yaml()).feasible is None


@pytest.mark.parametrize(('change', 'message'), [
    ({'m1': np.nan}, r'feasible\.m1 must be a finite number'),
    ({'Izz3': 1e11}, 'do not give its base parameters'),
    ({'fv1': 0.0}, 'do not give its base parameters'),
    ({'m7': 1.0}, 'not those of its blocks'),
])
def test_feasible_parameters_of_another_fit_are_refused(feasible, change, message):
    content = yaml.safe_load(unprotected(feasible.to_yaml()))
    content['feasible'] |= change
    with pytest.raises(ModelError, match=rf'm\.yaml: .*{message}'):
        IdentifiedModel.from_yaml(yaml.safe_dump(content, sort_keys=False), 'm.yaml')
    del content['feasible']['m1']
    with pytest.raises(ModelError, match='not those of its blocks'):
        IdentifiedModel.from_yaml(yaml.safe_dump(content, sort_keys=False), 'm.yaml')
    content['feasible'] = [1.0]
    with pytest.raises(ModelError, match=r'm\.yaml: '):
        IdentifiedModel.from_yaml(yaml.safe_dump(content, sort_keys=False), 'm.yaml')


@pytest.mark.parametrize('text', ['', '[]', '3', 'a: b', '\x00', '{', 'robot: {}', '&a [*a]'])
def test_texts_that_are_no_model_file_are_refused(text):
    with pytest.raises(ModelError, match=r'm\.yaml'):
        IdentifiedModel.from_yaml(text, 'm.yaml')


def test_missing_binary_and_unwritable_files(planar, tmp_path):
    with pytest.raises(UsageError, match='cannot be read'):
        IdentifiedModel.load(tmp_path / 'none.yaml')
    (tmp_path / 'bin.yaml').write_bytes(bytes(range(128, 256)))
    with pytest.raises(ModelError, match='not a text file'):
        IdentifiedModel.load(tmp_path / 'bin.yaml')
    with pytest.raises(UsageError, match='there is no folder'):
        planar.save(tmp_path / 'no_folder' / 'm.yaml')


def test_model_of_another_robot_is_refused(planar, tmp_path):
    planar.save(tmp_path / 'm.yaml')
    with pytest.raises(ModelError, match=r'identified for planar_3r.*not for ur10e'):
        IdentifiedModel.load(tmp_path / 'm.yaml', load_robot('ur10e'))
    tilted = load_robot('planar_3r').with_gravity([0.0, 0.0, -1.62])
    with pytest.raises(ModelError, match='joints, geometry or gravity differ'):
        IdentifiedModel.load(tmp_path / 'm.yaml', tilted)
    assert IdentifiedModel.load(tmp_path / 'm.yaml', load_robot('planar_3r'))


@pytest.mark.parametrize(('pattern', 'wrong', 'words'), [
    (r'(nominal|parameters): \[[-+.\de]+', r'\1: [3e-300', 'a mass is 3e-300 kg'),
    (r'(- \{name: fv1.*\n)', r'\1\1', 'combinations are not those of the parameters'),
])
def test_masses_and_names_that_none_can_have_are_refused(
    pattern: str, wrong: str, words: str
) -> None:
    text = re.sub(pattern, wrong, unprotected(nominal_model('planar_3r').to_yaml()))
    with pytest.raises(ModelError, match=words):
        IdentifiedModel.from_yaml(text)


@pytest.mark.parametrize(('end', 'value'), [('lower', '-1.8e+30'), ('effort', '1e+90')])
def test_limits_of_a_robot_that_none_can_have_are_refused(end: str, value: str) -> None:
    text = unprotected(nominal_model('planar_3r').to_yaml())
    wrong = re.sub(rf'{end}: [-+.\de]+', f'{end}: {value}', text, count=1)
    with pytest.raises(ModelError, match='limits of joint joint_1: positions are at most 1e'):
        IdentifiedModel.from_yaml(wrong)
