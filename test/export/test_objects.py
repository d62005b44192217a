"""export/pinocchio.py: models of Pinocchio and Drake: accelerations of random states, and what
they say they lack."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pinocchio as pin
import pytest
from exported import ARM
from identified_models import NAMES, model_named, random_model
from tolerances import DRAKE_ACCELERATION, MUJOCO_ACCELERATION

from robot_dynid.errors import ExportWarning, MissingDependency
from robot_dynid.export.pinocchio import pinocchio_model
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.urdf import robot_from_urdf


@pytest.mark.parametrize('name', NAMES)
def test_pinocchio_moves_the_same(name: str) -> None:
    model = model_named(name)
    found = pinocchio_model(model.arm)
    assert found.error() <= MUJOCO_ACCELERATION
    said = ' '.join(found.warnings)
    assert ('rotors that turn with several joints: joint_5' in said) == (name == 'tx40')
    assert ('elastic gears: joint_1, joint_2' in said) == (name == 'elastic_2r')


@pytest.mark.parametrize('name', ['ur10e', 'tree'])
def test_pinocchio_computes_the_effort_of_the_model(name: str) -> None:
    """With friction as the caller of Pinocchio adds it, and the offset that it says it lacks."""
    model = model_named(name)
    with pytest.warns(ExportWarning, match='offset of the effort'):
        peer = model.to_pinocchio()
    assert list(peer.names)[1:] == list(model.joints)
    data, rng = peer.createData(), np.random.default_rng(0)
    q, v, a = rng.uniform(-2.0, 2.0, (3, 200, model.robot.n))
    v += 0.1 * np.sign(v)
    offset = np.array([model.standard[f'f0{i + 1}'] for i in range(model.robot.n)])
    theirs = np.array([pin.rnea(peer, data, *state) for state in zip(q, v, a)])
    theirs += peer.damping * v + peer.upperDryFrictionLimit * np.sign(v) + offset
    ours = model.inverse(q, v, a)
    assert np.abs(theirs - ours).max() <= MUJOCO_ACCELERATION * np.abs(ours).max()
    limits = model.robot.limits
    known = np.isfinite(limits.lower)
    assert np.array_equal(peer.lowerPositionLimit[known], limits.lower[known])
    assert np.isinf(peer.lowerPositionLimit[~known]).all()
    if name == 'tree':
        links = {frame.name for frame in peer.frames}
        assert set(model.robot.bodies) | {link.name for link in model.robot.links} <= links


def test_gear_ratios_divide_the_rotors() -> None:
    model = model_named('elastic_2r')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ExportWarning)
        peer = model.to_pinocchio()
    ratios = model.robot.drive.gear_ratios
    assert np.allclose(peer.rotorInertia * ratios**2, peer.armature)
    assert np.allclose(peer.armature, [model.standard['Ia1'], model.standard['Ia2']])


@pytest.mark.parametrize('name', NAMES)
def test_drake_moves_the_same(name: str) -> None:
    pytest.importorskip('pydrake', reason='Drake is not installed')
    from robot_dynid.export.sdf import drake_plant

    model = model_named(name)
    found = drake_plant(model.arm)
    assert 'dry friction [N m]' in found.warnings[0]
    assert found.error() <= DRAKE_ACCELERATION
    assert found.plant.GetJointActuatorByName(model.joints[0]).default_rotor_inertia() > 0.0


def test_absent_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_named('elastic_2r')
    for library, module in (('pydrake.multibody.parsing', 'drake'), ('pinocchio', 'pinocchio')):
        monkeypatch.setitem(sys.modules, library, None)
        monkeypatch.delitem(sys.modules, f'robot_dynid.export.{module}', raising=False)
        with pytest.raises(MissingDependency, match='pip install'):
            getattr(model, f'to_{module}')()


def test_frames_of_links_fixed_to_bodies_are_where_they_are() -> None:
    model = model_named('seven_axis')
    robot, peer = model.robot, pinocchio_model(model.arm).model
    (link,) = (one for one in robot.links if one.name not in robot.bodies)
    frame = peer.frames[peer.getFrameId(link.name)]
    assert link.name == 'tool_link'
    assert frame.parentJoint == peer.getJointId(robot.joints[link.body])
    np.testing.assert_allclose(frame.placement.homogeneous, link.placement, rtol=0.0, atol=1e-12)
    parts = pin.buildModelFromUrdf(robot.source)
    body = parts.frames[parts.getFrameId('tool_link')]
    np.testing.assert_allclose(frame.placement.homogeneous, body.placement.homogeneous,
                               rtol=0.0, atol=1e-9)


def test_pinocchio_has_limits_joints_and_gravity_of_the_robot() -> None:
    robot = robot_from_urdf(ARM).with_gravity([0.5, -1.0, -9.0])
    peer = pinocchio_model(random_model(robot).arm).model
    assert peer.name == 'arm' and peer.gravity.linear.tolist() == [0.5, -1.0, -9.0]
    assert [joint.shortname() for joint in list(peer.joints)[1:]] == 2 * ['JointModelRY']

    def numbers(*names: str) -> list[float]:
        return next(getattr(peer, name).tolist() for name in names if hasattr(peer, name))

    assert numbers('lowerPositionLimit') == [-1.0, -np.inf]
    assert numbers('upperPositionLimit') == [1.0, np.inf]
    assert numbers('upperVelocityLimit', 'velocityLimit') == [2.0, np.inf]
    assert numbers('upperEffortLimit', 'effortLimit') == [30.0, np.inf]
    for name, opposite in (('lowerVelocityLimit', 'upperVelocityLimit'),
                           ('lowerEffortLimit', 'upperEffortLimit'),
                           ('lowerDryFrictionLimit', 'upperDryFrictionLimit')):
        if hasattr(peer, name):
            np.testing.assert_array_equal(getattr(peer, name), -getattr(peer, opposite))
    tree = model_named('tree').arm
    expected = []
    for axis, kind in zip(tree.robot.axes.tolist(), tree.robot.types.tolist(), strict=True):
        along = 'XYZ'[axis.index(1.0)] if sorted(axis) == [0.0, 0.0, 1.0] else None
        whole = 'Prismatic' if kind == PRISMATIC else 'Revolute'
        expected.append(f'JointModel{whole[0]}{along}' if along else f'JointModel{whole}Unaligned')
    assert len(set(expected)) > 2
    made = list(pinocchio_model(tree).model.joints)[1:]
    assert [joint.shortname() for joint in made] == expected
