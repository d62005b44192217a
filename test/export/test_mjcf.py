"""MuJoCo's file: its accelerations are ours where it can hold the law, and its errors are said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from exported import ARM, BALL, arm_model
from identified_models import feasible_model, model_named, random_model, with_friction
from tolerances import MUJOCO_ACCELERATION

from robot_dynid.effects import axes_of
from robot_dynid.effects.ripple import TorqueRipple
from robot_dynid.errors import ExportWarning, UsageError
from robot_dynid.export.mujoco import HELD_STEPS, accelerations
from robot_dynid.export.written import Motion, axis_friction
from robot_dynid.friction.laws import Stribeck
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf, source_text


def identified(model: IdentifiedModel, motion: Motion) -> np.ndarray:
    """Return the accelerations (K, N) that the identified model gives."""
    n = model.robot.n
    if not model.elastic_joints:
        return model.forward(motion.x, motion.v, motion.effort)
    own = [model.robot.index(joint) for joint in model.elastic_joints]
    theta, speed = motion.x[:, :n].copy(), motion.v[:, :n].copy()
    theta[:, own], speed[:, own] = motion.x[:, n:], motion.v[:, n:]
    links, motors = model.forward_elastic(motion.x[:, :n], motion.v[:, :n], motion.effort, theta,
                                          speed)
    return np.hstack([links, motors[:, own]])


@pytest.mark.parametrize('name', ['ur10e', 'tx40', 'elastic_2r', 'tree'])
def test_accelerations_are_those_of_the_model(name: str) -> None:
    model = model_named(name)
    assert name != 'elastic_2r' or (model.mechanism.gears.offset != 0.0).all()
    mjcf, peer = model.to_mjcf(), model.to_mujoco()
    motion = Motion.of(mjcf.written, HELD_STEPS * peer.opt.timestep)
    ours, theirs = identified(model, motion), accelerations(mjcf.written, peer, motion)
    assert len(ours) == 1000
    assert np.all(np.abs(theirs - ours).max(axis=0) <= MUJOCO_ACCELERATION * np.abs(ours).max(0))
    facts = mjcf.facts()
    assert facts['error'] <= MUJOCO_ACCELERATION
    assert mjcf.warnings == ()
    assert max(row['most'] for row in facts['missing']) <= 1e-9


def test_motors_of_elastic_joints_are_compared_within_a_tenth_of_their_balance() -> None:
    """Gears bear 0.9 to 1.1 times the effort of their motors."""
    written = model_named('elastic_2r').to_mjcf().written
    motion, gears = Motion.of(written), written.mechanism.gears
    own = list(gears.joints)
    n = motion.effort.shape[1]
    borne = (motion.x[:, n:] - motion.x[:, own]) * gears.stiffness / motion.effort[:, own]
    assert 0.9 <= borne.min() < 0.91 and 1.09 < borne.max() <= 1.1
    np.testing.assert_array_equal(motion.v[:, n:], motion.v[:, own])


def test_shapes_meshes_and_fixed_links_of_the_urdf(tmp_path: Path) -> None:
    (tmp_path / 'part.obj').write_text('v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n'
                                       'f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n')
    mesh = ('<visual><geometry><mesh filename="{}" scale="1 1 2"/></geometry></visual>')
    text = ARM.replace('<link name="flange">', '<link name="flange">' + mesh.format('part.obj')
                       + mesh.format('part.dae'))
    mjcf = arm_model().to_mjcf(text, str(tmp_path / 'arm.urdf'))
    peer = mujoco.MjModel.from_xml_string(mjcf.text)
    assert {peer.body(i).name for i in range(peer.nbody)} == {
        'world', 'base', 'upper', 'lower', 'flange'}
    assert peer.nmesh == 1 and peer.ngeom == 2
    sphere, drawn = peer.geom(0), peer.geom(1)
    assert (int(sphere.type[0]), sphere.size[0]) == (mujoco.mjtGeom.mjGEOM_SPHERE, 1.0)
    assert (int(drawn.contype[0]), int(drawn.group[0])) == (0, 2)
    assert [w for w in mjcf.warnings if 'part.dae' in w] == [
        "link 'flange' visual: mesh part.dae is missing; it is left out"]
    assert peer.jnt_range[0].tolist() == [-1.0, 1.0] and not peer.jnt_limited[1]
    assert peer.actuator_ctrlrange[0].tolist() == [-30.0, 30.0]
    seen = load_robot('ur10e')
    shown = feasible_model(seen, seen.nominal + BALL).to_mjcf(source_text(seen), seen.source)
    assert mujoco.MjModel.from_xml_string(shown.text).ngeom > 20
    assert shown.facts()['error'] <= MUJOCO_ACCELERATION


def test_a_file_replaces_its_own_kind_only(tmp_path: Path) -> None:
    path = tmp_path / 'arm.xml'
    arm_model().to_mjcf().save(path)
    arm_model().to_mjcf().save(path)
    path.write_text('<mujoco/>')
    with pytest.raises(UsageError):
        arm_model().to_mjcf().save(path)


LAWS = ('coulomb', 'asymmetric', 'two-speed', 'stribeck', 'dahl', 'maxwell+load',
        'coulomb+levelling+breakaway')


@pytest.mark.parametrize('law', LAWS)
def test_to_mjcf_states_the_error_of_friction_that_mjcf_cannot_hold(law: str) -> None:
    model = random_model(robot_from_urdf(ARM))
    model = with_friction(model, [law] * 2, model.feasible_links)
    facts = model.to_mjcf().facts()
    assert facts['error'] <= MUJOCO_ACCELERATION
    rng = np.random.default_rng(0)
    top = np.array([row['speed'] for row in facts['friction']])
    qd = rng.uniform(-top, top, (4000, 2))
    qd = qd[np.all(np.abs(qd) > 0.3, axis=1)]
    q, qdd = rng.uniform(-1.0, 1.0, qd.shape), rng.uniform(-5.0, 5.0, qd.shape)
    off = model.friction(q, qd, qdd)
    for j, row in enumerate(facts['friction']):
        written = row['damping'] * qd[:, j] + row['friction'] * np.sign(qd[:, j]) + row['offset']
        found = np.abs(off[:, j] - written)
        assert found.max() <= 1.1 * row['most'] + 1e-9, row
        assert np.isclose(row['rms'], facts['missing'][j]['rms'], rtol=0.2, atol=1e-9)
    exact = law in ('coulomb', 'dahl')
    assert all((row['rms'] < 1e-9) == exact for row in facts['friction'])
    warned = ' '.join(model.to_mjcf().warnings)
    assert ('error of the effort of' in warned) == (not exact)
    assert ('builds up after a reversal: shoulder, elbow' in warned) == (
        law.startswith(('dahl', 'maxwell')))


def test_ripple_and_slow_changes_that_no_form_holds_are_said() -> None:
    model = random_model(robot_from_urdf(ARM))
    assert 'ripple' not in ' '.join(model.to_mjcf().warnings)
    wave = np.array([0.3, 0.4, 0.0, 0.0, 0.0, 0.0])  # sine and cosine: 0.5 N m
    ripple = TorqueRipple(np.array([200.0]), np.zeros(1), 0.0, 0.1, 1.0, wave)
    model = replace(model, learnt={
        'ripple': (None, ripple), 'adaptation': (object(), None)})
    exported = model.to_mjcf()
    warned = ' '.join(exported.warnings)
    assert 'torque ripple, rms [N m]: elbow 0.35' in warned
    assert 'friction that warms up or drifts: shoulder' in warned and 'drifts: elbow' not in warned
    none, found = (row['ripple'] for row in exported.facts()['missing'])
    assert none == 0.0 and found == pytest.approx(0.5 / np.sqrt(2.0), rel=0.02)


def test_friction_is_the_nearest_in_least_squares() -> None:
    model = with_friction(random_model(robot_from_urdf(ARM)), ['stribeck'] * 2)
    found = axis_friction(model.arm)
    qd = np.linspace(-1.0, 1.0, 4001)[:, None] * found.speed
    own = np.abs(qd[:, 1]) > Stribeck().width
    design = np.stack([qd[own, 1], np.sign(qd[own, 1])], axis=1)
    true = model.friction(np.zeros_like(qd), qd)[own, 1] - model.standard['f02']
    best = np.linalg.lstsq(design, true, rcond=None)[0]
    assert [found.damping[1], found.dry[1]] == pytest.approx(best, rel=0.02)


def test_rotors_that_spin_on_moving_links_are_said() -> None:
    robot = load_robot('tx40')
    axes = np.zeros((6, 3))
    axes[1, 2] = 1.0
    own = replace(robot, drive=replace(robot.drive, rotor_axes=axes))
    model = random_model(own)
    with pytest.warns(ExportWarning) as said:
        model.to_mujoco()
    assert ['rotors that spin on moving links: joint_2' in str(w.message) for w in said] == [
        True, False]
    plain = replace(model, robot=robot)
    q, qd, qdd = model.arm.states(500, seed=3)
    off = np.abs(model.inverse(q, qd, qdd) - plain.inverse(q, qd, qdd))
    rows = model.to_mjcf().facts()['missing']
    for j, row in enumerate(rows):
        assert off[:, j].max() <= 1.5 * row['most'] + 1e-9
        assert off[:, j].max() >= 0.5 * row['most'] - 1e-9
    assert max(row['most'] for row in rows) > 1e-3
    assert axes_of(robot).labels == axes_of(own).labels
