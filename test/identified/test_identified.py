"""identified/model.py: the identified model: inverse and forward dynamics, messages of bad input.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from identified_models import COULOMB, ROTORS, VISCOUS, WIDTH, nominal_model, states
from tolerances import SAME_FORMULA, SOLVED

from robot_dynid.errors import DynIdError, ModelError, UsageError
from robot_dynid.friction import law_from
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import impossible
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import Samples


@pytest.fixture(scope='module')
def model():
    """Return a model of a coupled robot."""
    return nominal_model('tx40')


@pytest.fixture(scope='module')
def planar():
    """Return a small model, whose file is short."""
    return nominal_model('planar_3r')


@pytest.mark.parametrize('name', ['planar_3r', 'stanford_arm', 'tx40', 'ur10e', 'seven_axis'])
def test_forward_undoes_inverse(name):
    model = nominal_model(name)
    q, qd, qdd = states(model, 100)
    again = model.forward(q, qd, model.inverse(q, qd, qdd))
    worst = np.linalg.cond(model.mass_matrix(q)).max()
    scale = np.abs(model.inverse(q, qd, qdd)).max() / np.abs(qdd).max()
    assert again == pytest.approx(qdd, abs=100 * SOLVED * worst * (1.0 + scale))


@pytest.mark.parametrize('name', ['planar_3r', 'ur10e', 'seven_axis'])
def test_dynamics_are_pinocchios_with_armature_and_friction(name):
    pin = pytest.importorskip('pinocchio')
    model = nominal_model(name)
    robot = model.robot
    full = pin.buildModelFromUrdf(robot.source)
    locked = [j for j in range(1, full.njoints) if full.names[j] not in robot.joints]
    peer = pin.buildReducedModel(full, locked, pin.neutral(full)) if locked else full
    assert list(peer.names[1:]) == list(robot.joints)
    peer.gravity.linear = np.array(robot.gravity)
    peer.armature = np.full(robot.n, ROTORS)
    data = peer.createData()
    q, qd, qdd = states(model, 50)
    friction = VISCOUS * qd + COULOMB * np.clip(qd / WIDTH, -1.0, 1.0)
    effort = model.inverse(q, qd, qdd)
    found = model.forward(q, qd, effort)
    for k in range(50):
        position = [x for v, j in zip(q[k], peer.joints[1:])
                    for x in ((np.cos(v), np.sin(v)) if j.nq == 2 else (v,))]
        position = np.array(position)
        expected = pin.rnea(peer, data, position, qd[k], qdd[k]) + friction[k]
        if not np.allclose(pin.rnea(peer, data, position, 0 * q[k], np.eye(robot.n)[0])
                           - pin.rnea(peer, data, position, 0 * q[k], 0 * q[k]),
                           pin.crba(peer, data, position)[0]):
            expected += ROTORS * qdd[k]  # this version leaves the armature out of RNEA
        # right angles of the URDF have ten digits
        assert effort[k] == pytest.approx(expected, abs=10.0 * SAME_FORMULA * np.abs(effort).max())
        acceleration = pin.aba(peer, data, position, qd[k], effort[k] - friction[k])
        assert found[k] == pytest.approx(acceleration, abs=1e-8 * np.abs(acceleration).max())


def test_coupled_rotor_and_friction_enter_both_joints(model):
    """Closed form for the wrist motor that turns with joints 5 and 6."""
    q, qd, qdd = states(model)
    bare = nominal_model('tx40', rotors=0.0, viscous=0.0, coulomb=0.0)
    speed = np.column_stack([qd, qd[:, 4] + qd[:, 5]])
    change = ROTORS * np.column_stack([qdd, qdd[:, 4] + qdd[:, 5]]) + VISCOUS * speed \
        + COULOMB * np.clip(speed / WIDTH, -1.0, 1.0)
    expected = change[:, :6].copy()
    expected[:, 4] += change[:, 6]
    expected[:, 5] += change[:, 6]
    found = model.inverse(q, qd, qdd) - bare.inverse(q, qd, qdd)
    assert found == pytest.approx(expected, abs=1e-9)


def test_gravity_friction_and_inertia_add_up_to_the_effort(model):
    q, qd, qdd = states(model)
    still = np.zeros_like(q)
    effort = model.inverse(q, qd, qdd)
    assert model.inverse(q, still, still) == pytest.approx(
        model.gravity(q) + model.friction(q, still))
    inertia = np.einsum('kij,kj->ki', model.mass_matrix(q), qdd)
    assert effort - model.inverse(q, qd, still) == pytest.approx(inertia, abs=1e-8)
    mass = model.mass_matrix(q)
    assert mass == pytest.approx(mass.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(mass).min() > 0.0
    assert model.gravity(q) == pytest.approx(
        nominal_model('tx40', 0.0, 0.0, 0.0).inverse(q, still, still), abs=1e-9)


def test_regressor_and_recursion_agree(model):
    q, qd, qdd = states(model)
    samples = Samples(model.joints, np.arange(30.0), q, qd, qdd)
    assert model.predicted(samples) == pytest.approx(model.inverse(q, qd, qdd), abs=1e-8)
    measured = replace(samples, measured=model.inverse(q, qd, qdd) + 1.0)
    assert model.residual(measured) == pytest.approx(np.ones((30, 6)), abs=1e-8)
    with pytest.raises(UsageError, match='no measured effort'):
        model.residual(samples)


def test_single_states_are_rows_of_batches(model):
    q, qd, qdd = states(model, 4)
    effort = model.inverse(q, qd, qdd)
    for k in range(4):
        assert model.inverse(q[k], qd[k], qdd[k]) == pytest.approx(effort[k], rel=SAME_FORMULA)
        assert model.forward(q[k], qd[k], effort[k]) == pytest.approx(qdd[k], abs=1e-6)
        assert model.gravity(q[k]) == pytest.approx(model.gravity(q)[k])
        assert model.mass_matrix(q[k]).shape == (6, 6)
    lists = model.inverse(q.tolist(), qd.tolist(), qdd.tolist())
    assert np.array_equal(lists, effort)
    empty = model.inverse(*np.zeros((3, 0, 6)))
    assert empty.shape == (0, 6) and model.forward(*np.zeros((3, 0, 6))).shape == (0, 6)


@pytest.mark.parametrize(('arguments', 'message'), [
    ((np.zeros(5), np.zeros(6), np.zeros(6)), r'position has shape \(5,\)'),
    ((np.zeros(6), np.zeros((2, 6)), np.zeros(6)), r'velocity has shape \(2, 6\)'),
    ((np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((3, 6))), r'has shape \(3, 6\)'),
    ((np.zeros((1, 2, 6)),) * 3, r'shape \(1, 2, 6\)'),
    ((0.0, 0.0, 0.0), r'shape \(\)'),
])
def test_wrong_shapes_are_named(model, arguments, message):
    for function in (model.inverse, model.forward):
        with pytest.raises(UsageError, match=message):
            function(*arguments)


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('place', [0, 1, 2])
def test_numbers_that_are_not_finite_are_named(model, bad, place):
    arguments = [np.zeros((3, 6)) for _ in range(3)]
    arguments[place][2, 4] = bad
    for function in (model.inverse, model.forward):
        with pytest.raises(UsageError, match='of joint joint_5 in state 2 is'):
            function(*arguments)


def test_text_instead_of_numbers_is_refused(model):
    with pytest.raises((UsageError, ValueError)):
        model.inverse(['a'] * 6, np.zeros(6), np.zeros(6))


def test_indefinite_mass_matrix_is_refused(planar):
    values = planar.values.copy()
    values[planar.names.index('Izz3')] = -5.0
    broken = replace(planar, values=values)
    with pytest.raises(ModelError, match=r'not positive definite in state 0 .*identify'):
        broken.forward(np.zeros(3), np.zeros(3), np.zeros(3))
    assert [w for w in impossible(broken) if '1000 of 1000' in w]
    assert impossible(planar) == []


def test_gravity_compensated_effort_has_no_weight():
    with_weight = nominal_model('ur10e')
    without = nominal_model('ur10e', kind='gravity_compensated_torque')
    assert len(without.names) <= len(with_weight.names)
    q, qd, qdd = states(without)
    assert not without.gravity(q).any()
    assert without.inverse(q, qd, qdd) + with_weight.gravity(q) == pytest.approx(
        with_weight.inverse(q, qd, qdd), abs=1e-8)
    loaded = IdentifiedModel.from_yaml(without.to_yaml())
    assert np.array_equal(loaded.inverse(q, qd, qdd), without.inverse(q, qd, qdd))


def test_model_error_and_usage_error_are_dynid_errors():
    assert issubclass(ModelError, DynIdError) and issubclass(UsageError, DynIdError)


def test_a_model_of_another_process_needs_no_kernels_of_its_own() -> None:
    """Arrays that were sent can be written to; what is cached of them is not sent."""
    model = nominal_model('planar_3r')
    state = np.zeros((100, 3))
    before = model.forward(state, state, state)
    sent = pickle.loads(pickle.dumps(model))
    assert not {'_forward_dynamics', 'geometry'} & {*vars(sent), *vars(sent.robot)}
    np.testing.assert_array_equal(sent.forward(state, state, state), before)


def test_laws_are_described_with_the_settings_that_they_have() -> None:
    robot = load_robot('planar_3r')
    laws = [('coulomb', {'width': 0.0125}),
            ('stribeck+levelling', {'width': 0.02, 'speed': 0.2, 'levelling': {
                'speed': 0.53, 'speeds': [-1.4, 1.4]}}), ('coulomb', {'width': 0.01})]
    structure = Structure.of(
        True, [(name, law_from(name, settings)) for name, settings in laws], None)
    assert structure.described == (
        'coulomb: width 0.0125',
        'stribeck+levelling: width 0.02, speed 0.2, levelling speed 0.53, speeds -1.4 1.4',
        'coulomb: width 0.01')
    same = Structure.uniform(robot, True, 'coulomb', {'width': 0.01})
    assert same.described == ('coulomb: width 0.01',)
