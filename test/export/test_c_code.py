"""C code of models: compiled without warnings, and the same numbers as ours."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_c import Compiled, compiler, pointer
from geared_robots import random_geared
from identified_models import ALL_LAWS, AUTO, counterbalanced, model_with_laws
from tolerances import WRITTEN_OUT

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.wrist import WristCompensation, WristSensor
from robot_dynid.effects import axes_of
from robot_dynid.errors import ModelError, RefusedJointWarning, UsageError
from robot_dynid.export.c_code import (
    CCode,
    Provenance,
    broken,
    c_code,
    c_name,
    comment,
    quoted,
)
from robot_dynid.friction import AxisMotion
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray

STATES = 1000
#: states of friction fit in a buffer of this size
CASES = {
    'ur10e': lambda: model_with_laws(load_robot('ur10e'), AUTO),
    # motor 6 turns with joints 5 and 6
    'tx40': lambda: model_with_laws(load_robot('tx40'), ALL_LAWS),
    # joint 3 slides
    'stanford_arm': lambda: model_with_laws(load_robot('stanford_arm'), ALL_LAWS[3:]),
    'planar_3r': lambda: model_with_laws(load_robot('planar_3r'), ALL_LAWS),
    'elastic_2r': lambda: model_with_laws(load_robot('elastic_2r'), ALL_LAWS[4:]),
    'counterbalanced': lambda: counterbalanced(model_with_laws(load_robot('ur10e'), AUTO)),
    # rotors on moving links; a chain and a tree with coupled motors, one with elastic gears
    'chain': lambda: model_with_laws(random_geared(4).robot, ALL_LAWS),
    'tree': lambda: model_with_laws(random_geared(3).robot, ALL_LAWS),
    'elastic tree': lambda: model_with_laws(random_geared(5, gives=True).robot, AUTO[1:]),
}


@pytest.fixture(scope='module', params=CASES, ids=lambda name: name.replace(' ', '_'))
def made(request, tmp_path_factory) -> tuple[IdentifiedModel, Compiled]:
    model = CASES[request.param]()
    return model, Compiled(model.to_c(), tmp_path_factory.mktemp('c'))


def states(model: IdentifiedModel) -> list[FloatArray]:
    """Return position, velocity, acceleration, effort and those of motors, each (STATES, n)."""
    rng, shape = np.random.default_rng(7), (STATES, model.robot.n)
    q, qd, qdd = (size * rng.uniform(-1.0, 1.0, shape) for size in (3.0, 2.0, 5.0))
    qd[::10] *= 1e-3  # within the ramps
    theta, theta_d = q + 3e-3 * rng.normal(size=shape), qd + 0.02 * rng.normal(size=shape)
    return [q, qd, qdd, 20.0 * rng.normal(size=shape), theta, theta_d]


def assert_same(ours: FloatArray, theirs: FloatArray) -> None:
    assert np.isfinite(ours).all()
    assert np.abs(ours - theirs).max() <= WRITTEN_OUT * np.abs(theirs).max()


def test_effort_and_inertia_are_ours(made) -> None:
    model, compiled = made
    n = model.robot.n
    q, qd, qdd, *_ = states(model)
    (effort,) = compiled('inverse_dynamics', [(n,)], q, qd, qdd)
    assert_same(effort, model.frictionless_effort(q, qd, qdd))
    assert_same(compiled('gravity', [(n,)], q)[0], model.gravity(q))
    assert_same(compiled('mass_matrix', [(n, n)], q)[0], model.mass_matrix(q))
    assert_same(compiled('inverse_dynamics_with_friction', [(n,)], q, qd, qdd)[0],
                model.inverse(q, qd, qdd))


def test_friction_in_steady_sliding_is_ours(made) -> None:
    model, compiled = made
    q, qd, qdd, _, _, theta_d = states(model)
    motors = [theta_d] if model.elastic_joints else []
    (friction,) = compiled('friction_sliding', [(model.robot.n,)], q, qd, qdd, *motors)
    load = loads(model, q, qd, qdd)
    assert_same(friction, model.mechanism.friction.torque(theta_d if motors else qd, load))


def loads(model: IdentifiedModel, q, qd, qdd) -> FloatArray:
    """Return the loads (K, a) of the axes."""
    own = model.mechanism.friction
    effort = rigid_body.inverse_dynamics(model.mechanism.robot, q, qd, qdd, own.links)
    return effort @ own.transmission.T


def test_acceleration_takes_the_effort_it_was_found_from(made) -> None:
    model, compiled = made
    q, qd, _, effort, *_ = states(model)
    shape = [(model.robot.n,)]
    (found,) = compiled('forward_dynamics', shape, q, qd, effort)
    back = model.frictionless_effort(q, qd, found)
    assert np.abs(back - effort).max() <= WRITTEN_OUT * np.abs(back).max() * 10.0
    (found,) = compiled('forward_dynamics_with_friction', shape, q, qd, effort)
    back = model.inverse(q, qd, found)
    assert np.abs(back - effort).max() <= WRITTEN_OUT * np.abs(back).max() * 10.0


def motion(model: IdentifiedModel) -> list[FloatArray]:
    """Return position, velocity, acceleration of a motion with reversals and rests, (N, n)."""
    rng = np.random.default_rng(2)
    time = np.arange(1500) * 0.002
    rate, phase = rng.uniform(2.0, 9.0, (2, model.robot.n))
    swing = np.outer(time, rate) + phase
    gate = np.clip(np.sin(3.0 * time), 0.0, 1.0)[:, None]  # at rest every other second
    position = 0.05 * gate**3 * np.sin(swing) + 2e-4 * np.sin(7.0 * swing)
    velocity = 6.0 * np.gradient(position, time, axis=0)  # beyond the speeds of the fits
    return [position, velocity, np.gradient(velocity, time, axis=0)]


def friction_by_columns(
    model: IdentifiedModel, q, qd, qdd, theta, theta_d
) -> FloatArray:
    """Return the friction (N, n) with its past, by the columns that a fit uses."""
    own, load = model.mechanism.friction, loads(model, q, qd, qdd)
    labels = axes_of(model.mechanism.robot).labels
    total = np.zeros_like(q)
    for i, (label, law) in enumerate(zip(labels, model.structure.laws, strict=True)):
        along = AxisMotion(np.arange(len(q)) * 0.002, theta @ own.axes[i], theta_d @ own.axes[i],
                           load=load[:, i] if own.needs_load else None, began=-1e9)  # warm
        values = [model.standard[f'{name}{label}'] for name in law.parameters]
        total += np.outer(np.array(values) @ law.columns(along), own.axes[i])
    return total


def test_friction_along_a_motion_is_that_of_its_columns(made) -> None:
    model, compiled = made
    q, qd, qdd = motion(model)
    theta, theta_d = (q + 1e-4 * np.cos(40.0 * q), qd) if model.elastic_joints else (q, qd)
    motors = [theta, theta_d] if model.elastic_joints else []
    found = compiled.friction_along([q, qd, qdd, *motors], motors or [q, qd])
    assert_same(found, friction_by_columns(model, q, qd, qdd, theta, theta_d))


def test_links_and_motors_of_elastic_joints_accelerate_as_ours(made) -> None:
    model, compiled = made
    if not model.elastic_joints:
        assert 'elastic' not in compiled.source.read_text()
        return
    q, qd, _, effort, theta, theta_d = states(model)
    shape = (model.robot.n,)
    found = compiled('forward_dynamics_elastic', [shape, shape], q, qd, effort, theta, theta_d)
    expected = model.forward_elastic(q, qd, effort, theta, theta_d)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.abs(ours - theirs).max() <= 100.0 * WRITTEN_OUT * np.abs(theirs).max()
    gears = model.mechanism.gears
    assert gears is not None
    own = list(gears.joints)
    (torque,) = compiled('gear_torque', [shape], q, qd, theta, theta_d)
    assert_same(torque[:, own], gears.torque(np.array([theta - q, theta_d - qd])[:, :, own]))
    assert not np.delete(torque, own, axis=1).any()


def test_only_the_mathematics_of_the_library_is_called(made) -> None:
    """No memory is asked for, and nothing is kept: constants alone are stored."""
    _, compiled = made
    listed = subprocess.run([compiler('nm'), '--dynamic', str(compiled.library)], check=True,
                            capture_output=True, text=True).stdout
    wanted = {line.split()[1].partition('@')[0] for line in listed.splitlines()
              if line.split()[0] == 'U'}
    assert wanted <= {'sin', 'cos', 'sincos', 'sqrt', 'tanh', 'exp', 'pow'}
    text = compiled.source.read_text()
    assert not re.search(r'^(?!const|static \w+ \w+\(|extern)\w+ .*=', text, re.M)


@pytest.fixture(scope='module')
def arm(tmp_path_factory) -> tuple[IdentifiedModel, Compiled]:
    model = model_with_laws(load_robot('planar_3r'), AUTO)
    return model, Compiled(model.to_c(), tmp_path_factory.mktemp('c'))


def test_the_same_files_are_cpp(made) -> None:
    made[1].require_cpp()


def test_results_may_be_stored_where_arguments_were(arm) -> None:
    model, compiled = arm
    q, qd, qdd = (a[0].copy() for a in states(model)[:3])
    expected = model.inverse(q, qd, qdd)
    compiled.call('inverse_dynamics_with_friction', *map(pointer, (q, qd, qdd, qdd)))
    assert_same(qdd, expected)
    expected = model.forward(q, qd, qdd)
    assert compiled.call('forward_dynamics_with_friction', *map(pointer, (q, qd, qdd, qd))) == 0
    np.testing.assert_allclose(qd, expected, rtol=1e-9)


@pytest.mark.parametrize('wrong', [np.nan, np.inf])
def test_friction_refuses_what_is_not_finite_and_keeps_its_state(arm, wrong) -> None:
    _, compiled = arm
    state, out = ctypes.create_string_buffer(256), np.ones(3)
    good, bad = np.full(3, 0.1), np.array([0.1, wrong, 0.1])
    assert compiled.call('friction_begin', state, pointer(good), pointer(good)) == 0
    kept = state.raw
    assert any(kept)
    for arguments in ([bad, good, good], [good, bad, good], [good, good, bad]):
        assert compiled.call('friction_step', state, *map(pointer, (*arguments, out))) == 1
    assert compiled.call('friction_begin', state, pointer(bad), pointer(good)) == 1
    assert state.raw == kept
    assert not out.any()


def test_acceleration_that_cannot_be_is_not_a_number(arm, tmp_path) -> None:
    model, compiled = arm
    out, good, bad = np.ones(3), np.full(3, 0.1), np.array([0.1, np.nan, 0.1])
    for name in ('forward_dynamics', 'forward_dynamics_with_friction'):
        for arguments in ([bad, good, good], [good, bad, good], [good, good, bad]):
            assert compiled.call(name, *map(pointer, (*arguments, out))) == 1
            assert np.isnan(out).all()
    mechanism = model.mechanism
    hollow = replace(mechanism, links=-mechanism.links)
    broken = Compiled(c_code(hollow), tmp_path)
    assert broken.call('forward_dynamics', *map(pointer, (good, good, good, out))) == 1
    assert np.isnan(out).all()


def test_refused_joints_have_no_numbers(arm, tmp_path) -> None:
    model, whole = arm
    with pytest.warns(RefusedJointWarning):
        lost = Compiled(replace(model, not_identified=('joint_2',)).to_c(), tmp_path)
    lost.require_cpp()
    given, keep = states(model)[:4], [0, 2]
    for name, shape, count in (
        ('inverse_dynamics', (3,), 3), ('gravity', (3,), 1), ('mass_matrix', (3, 3), 1),
        ('friction_sliding', (3,), 3), ('inverse_dynamics_with_friction', (3,), 3),
    ):
        ours, full = (code(name, [shape], *given[:count])[0] for code in (lost, whole))
        assert np.isnan(ours[:, 1]).all()
        rest = np.ix_(range(STATES), *[keep] * len(shape))
        np.testing.assert_array_equal(ours[rest], full[rest])
        assert np.isfinite(ours).sum() == ours[rest].size
    out, good = np.ones(3), np.full(3, 0.1)
    for name in ('forward_dynamics', 'forward_dynamics_with_friction'):
        assert lost.call(name, *map(pointer, (good, good, good, out))) == 1
        assert np.isnan(out).all()
    assert np.isnan(lost.friction_along([row[:5] for row in given[:3]], [g[:5] for g in given[:2]])
                    ).all(axis=0).tolist() == [False, True, False]


def test_the_head_says_what_the_model_is(tmp_path: Path) -> None:
    model = model_with_laws(load_robot('elastic_2r'), AUTO)
    trained = {'velocity': np.array([[-1.5, 1.25], [-0.5, 0.5]])}
    code = c_code(model.mechanism, Provenance('abc', 'method wls', trained,
                                              ('Do not */ use joint_1.',)))
    header, source = code.header, code.source
    for part in ('#define ELASTIC_2R_JOINTS 2', '#define ELASTIC_2R_DIGEST "abc"',
                 'joint_1 [rad], joint_2 [rad]', 'Gears of joint_1, joint_2 are elastic',
                 'Do not * / use joint_1.', 'elastic_2r_trained_velocity[ELASTIC_2R_JOINTS][2];'):
        assert part in header
    assert '{{-1.5, 1.25}, {-0.5, 0.5}}' in source
    assert '{"joint_1", "joint_2"}' in source
    assert max(map(len, (header + source).splitlines())) < 100
    code.save(tmp_path)
    code.save(tmp_path)  # one of ours is replaced
    assert (tmp_path / 'elastic_2r.h').read_text() == header
    (tmp_path / 'elastic_2r.c').write_text('int main;')
    with pytest.raises(UsageError, match=r'elastic_2r\.c'):
        code.save(tmp_path)


def test_the_digest_is_that_of_the_model_file(tmp_path: Path) -> None:
    model = model_with_laws(load_robot('planar_3r'), AUTO)
    path = tmp_path / 'model.yaml'
    model.save(path)
    found = subprocess.run(['sha256sum', path], check=True, capture_output=True, text=True)
    assert f'"{found.stdout.split()[0]}"' in IdentifiedModel.load(path).to_c().header


@pytest.mark.parametrize(('name', 'expected'), [
    ('UR10e', 'ur10e'), ('my robot-2', 'my_robot_2'), ('3R', 'robot_3r'), ('', 'robot')])
def test_robots_get_names_of_c(name: str, expected: str) -> None:
    assert c_name(name) == expected


def test_c_code_refuses_nan_links_and_zero_stiffness() -> None:
    mechanism = model_with_laws(load_robot('elastic_2r'), AUTO).mechanism
    links = mechanism.links.copy()
    links[0, 9] = np.nan
    with pytest.raises(ModelError, match='nan'):
        c_code(replace(mechanism, links=links))
    assert mechanism.gears is not None
    with pytest.raises(ModelError, match='joint_1: stiffness'):
        c_code(replace(mechanism, gears=replace(mechanism.gears, stiffness=np.zeros(2))))


def test_c_code_in_another_form_of_casadi_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import casadi

    mechanism = model_with_laws(load_robot('planar_3r'), AUTO).mechanism
    dump = casadi.CodeGenerator.dump
    for old, new in (('static int casadi_f0', 'int f0'), (' : 0;', ' : 0.0;'), ('!=0', '')):
        monkeypatch.setattr(casadi.CodeGenerator, 'dump',
                            lambda code, old=old, new=new: dump(code).replace(old, new))
        with pytest.raises(ModelError, match='C code in another form: install one from'):
            c_code(mechanism)


def test_a_quarter_turn_costs_nothing() -> None:
    """Constants of a wrist whose axes are perpendicular and meet are folded away."""
    plain = model_with_laws(load_robot('planar_3r'), AUTO)
    code: CCode = c_code(plain.mechanism)
    body = code.source.partition('planar_3r_gravity')[2].partition('\n}')[0]
    assert body.count('*') < 20


@pytest.mark.parametrize('name', ['x */ int y; /*', 'a, b && c ' * 9,
                                  '\u202e"\\??/%s', 'x' * 200])
def test_names_are_no_code(name: str, tmp_path: Path) -> None:
    robot = load_robot('planar_3r')
    named = replace(robot, joints=(name, *robot.joints[1:]), bodies=(*robot.bodies[:2], name),
                    links=tuple(replace(link, name=name) if link.name == robot.bodies[2] else link
                                for link in robot.links))
    sensor = WristSensor(robot.name, named.hash(), name, np.zeros(10), np.zeros(6), np.eye(3), 1)
    code = c_code(model_with_laws(named, AUTO).mechanism, Provenance('abc', name, {}, (name,)),
                  WristCompensation(named, sensor))
    for text in (code.header, code.source):
        outside = re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', '', text, flags=re.DOTALL)
        assert not re.search('[xy]{3}|int y|&& c|\u202e', outside)
    assert '\u202e' not in code.header
    names = ctypes.c_char_p * 3
    library = Compiled(code, tmp_path).functions
    assert names.in_dll(library, 'planar_3r_joint_names')[0] == name.encode()


def test_lines_are_broken_at_commas_beyond_ninety_six_characters() -> None:
    whole = f'    call({"a" * 40}, {"b" * 43});'
    assert len(whole) == 96 and broken(whole) == [whole]
    assert broken(whole.replace('b);', 'bb);')) == [
        f'    call({"a" * 40},', f'            {"b" * 44});']
    words = f'if (!({"a" * 50} && {"b" * 50})) {{'
    assert broken(words) == [f'if (!({"a" * 50} &&', f'        {"b" * 50})) {{']
    assert broken('x = "a b";' + 100 * 'c') == ['x = "a b";' + 100 * 'c']


def test_comments_are_wrapped_and_cannot_be_ended_within() -> None:
    assert comment('Ends */ and /* begins.') == ['/* Ends * / and / * begins. */']
    first, second = comment('word ' * 18 + 'last')
    assert (first, second) == ('/* ' + 'word ' * 17 + 'word', '   last */')
    assert len(comment('w' * 90)) == 1 and len(comment('v ' + 'w' * 89)) == 2


def test_texts_are_literals_of_printable_characters() -> None:
    assert quoted('a ~!b') == '"a ~!b"'
    assert quoted('"\\?\x7f\x1f\u00e9') == r'"\042\134\077\177\037\303\251"'
    assert quoted('a, b & c') == r'"a,\040b &\040c"'


def test_code_is_read_by_the_compiler_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = CCode('arm', '/* header */', 'int x;', 'ab12', ('careful',))
    names = ['arm.h', 'arm.c']
    monkeypatch.setattr('shutil.which', lambda name: None)
    assert code.facts() == {'names': names, 'digest': 'ab12',
                            'tool': 'not compiled: there is no C compiler, cc or gcc'}
    monkeypatch.setattr('shutil.which', {'gcc': '/usr/bin/false'}.get)
    with pytest.raises(ModelError, match=r'^/usr/bin/false refuses the C code'):
        replace(code).save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr('shutil.which', lambda name: '/usr/bin/true')
    header, source = replace(code).save(tmp_path / 'new')
    assert (header.name, header.read_text(), source.name, source.read_text()) == (
        'arm.h', '/* header */', 'arm.c', 'int x;')
    assert replace(code).facts()['tool'] == '/usr/bin/true'


def test_statements_are_indented_by_four_and_comments_end_within_the_width() -> None:
    mechanism = model_with_laws(load_robot('planar_3r'), (('coulomb', {}),) * 3).mechanism
    words = f'{"a" * 45} {"b" * 46}'
    code = c_code(mechanism, Provenance('', '', {}, (words, f'{words}b'), (1,)))
    assert f'\n * {words}\n *\n * {"a" * 45}\n * {"b" * 47}\n */\n' in code.header
    bodies = {name: code.source.partition(f' planar_3r_{name}(')[2].partition(')\n')[2].partition(
        '\n}\n')[0] for name in ('forward_dynamics', 'friction_begin', 'friction_step', 'gravity')}
    assert bodies['forward_dynamics'].split('\n') == [
        '{', '    (void)position;', '    (void)velocity;', '    (void)effort;',
        '    fill(acceleration, NAN);', '    return 1;']
    assert bodies['friction_begin'].split('\n') == [
        '{', '    (void)state;',
        '    if (!(all_finite(position, JOINTS) && all_finite(velocity, JOINTS))) {',
        '        return 1;', '    }', '    return 0;']
    assert bodies['friction_step'].split('\n')[5:8] == [
        '        fill(friction, 0.0);', '        return 1;', '    }']
    # sines and cosines come first, in a block of their own
    head, _, rest = bodies['gravity'].partition('\n    }\n')
    assert head.startswith('{\n    double out[3];\n    double turn[6];\n    {\n        double a0')
    assert head.count('sin(') == head.count('cos(') == 3 and 'sin(' not in rest


def test_the_header_declares_arrays_of_their_sizes(arm) -> None:
    model, _ = arm
    bare = c_code(model_with_laws(load_robot('planar_3r'), (('coulomb', {}),) * 3).mechanism,
                  Provenance('', 'wls', {'velocity': np.array([[-1.0, 2.0]] * 3),
                                         'unknown': np.zeros((3, 2))}))
    assert 'double state[1];' in bare.header and 'double position[1];' in bare.header
    assert 'Digest of the model' not in bare.header
    assert 'planar_3r_trained_velocity[PLANAR_3R_JOINTS][2];' in bare.header
    assert 'unknown' not in bare.header + bare.source
    header = ' '.join(c_code(model.mechanism, Provenance(
        'ab12', 'method wls')).header.replace('\n *', ' ').split())
    assert 'Digest of the model: ab12; method wls.' in header
    assert 'double state[3];' in header and 'double position[3];' in header
    for declared in (
            'void planar_3r_mass_matrix(const double position[PLANAR_3R_JOINTS], double matrix'
            '[PLANAR_3R_JOINTS][PLANAR_3R_JOINTS]);',
            'void planar_3r_gravity(const double position[PLANAR_3R_JOINTS], double '
            'effort[PLANAR_3R_JOINTS]);',
            'int planar_3r_friction_begin(planar_3r_friction_state *state, const double '
            'position[PLANAR_3R_JOINTS], const double velocity[PLANAR_3R_JOINTS]);'):
        assert declared in header
    assert 'joint_1 [rad], joint_2 [rad], joint_3 [rad]. Units are SI' in header
