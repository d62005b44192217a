"""export/sdf.py: SDF and the parameters of inverse_dynamics_solver, read by others and compared by
dynamics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pinocchio as pin
import pytest
import yaml
from exported import rigid, states
from identified_models import NAMES, model_named
from random_robots import Peer
from tolerances import DRAKE_ACCELERATION, MUJOCO_ACCELERATION, READ_BY_OTHERS

from robot_dynid.errors import ModelError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uses import rigid_equivalent
from robot_dynid.robot.inertia import rotation_from_rpy, rpy_from_rotation

Arrays = tuple[np.ndarray, ...]


def numbers(element: ET.Element, tag: str) -> np.ndarray:
    return np.array([float(word) for word in element.findtext(tag, '').split()])


def place(pose: np.ndarray) -> pin.SE3:
    return pin.SE3(rotation_from_rpy(pose[3:]), pose[:3])


def read_sdf(text: str) -> pin.Model:
    """Return Pinocchio's model of what SDFormat says: poses of joints in their parents."""
    root = ET.fromstring(text)
    assert root.attrib['version'] == '1.9'
    body = root.find('model')
    model, ids = pin.Model(), {'base_link': 0}
    links = {e.attrib['name']: e for e in body.findall('link')}
    base, *joints = body.findall('joint')
    assert (base.attrib['type'], base.findtext('parent')) == ('fixed', 'world')
    ids[base.findtext('child')] = 0
    for e in joints:
        above, below = e.findtext('parent'), e.findtext('child')
        assert e.find('pose').attrib['relative_to'] == above
        axis = numbers(e.find('axis'), 'xyz')
        slides = e.attrib['type'] == 'prismatic'
        kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
        ids[below] = model.addJoint(ids[above], kind(axis), place(numbers(e, 'pose')),
                                    e.attrib['name'])
        link = links[below]
        assert link.find('pose').attrib['relative_to'] == e.attrib['name']
        assert not numbers(link, 'pose').any()
        inertial = link.find('inertial')
        six = {i.tag: float(i.text) for i in inertial.find('inertia')}
        matrix = np.array([[six['i' + ''.join(sorted(a + b))] for a in 'xyz'] for b in 'xyz'])
        model.appendBodyToJoint(ids[below], pin.Inertia(
            float(inertial.findtext('mass')), np.zeros(3), matrix), place(numbers(
                inertial, 'pose')))
    return model


def assert_same_effort(model: IdentifiedModel, peer: Peer) -> None:
    motion = states(model.robot, 20)
    ours = rigid(rigid_equivalent(model)).inverse(*motion)
    theirs = np.array([peer.inverse_dynamics(*state) for state in zip(*motion)])
    assert np.abs(theirs - ours).max() <= READ_BY_OTHERS * np.abs(ours).max()


@pytest.mark.parametrize('name', NAMES)
def test_sdf_moves_the_same(name: str, tmp_path: Path) -> None:
    model = model_named(name)
    sdf = model.to_sdf()
    assert_same_effort(model, Peer.of(read_sdf(sdf.text), model.robot))
    sdf.save(tmp_path / 'arm.sdf')
    (tmp_path / 'arm.sdf').write_text('<sdf/>')
    with pytest.raises(UsageError):
        sdf.save(tmp_path / 'arm.sdf')
    body = ET.fromstring(sdf.text).find('model')
    frames = {e.attrib['name'] for e in body.findall('frame')}
    assert frames == {link.name for link in model.robot.links} - set(model.robot.bodies)
    last, row = body.findall('joint')[-1].find('axis'), sdf.facts()['friction'][-1]
    for tag in ('damping', 'friction'):
        assert float(last.find('dynamics').findtext(tag)) == row[tag] > 0.0
    assert 'rotor inertia [kg m^2]' in sdf.warnings[0]


@pytest.mark.parametrize('name', NAMES)
def test_drake_reads_the_sdf(name: str) -> None:
    pytest.importorskip('pydrake', reason='Drake is not installed')
    facts = model_named(name).to_sdf().facts()
    assert facts['error'] <= DRAKE_ACCELERATION and facts['tool'].startswith('Drake ')


@pytest.mark.parametrize('name', NAMES[:3])
def test_the_solver_gets_the_chain_and_its_gravity(name: str) -> None:
    model = model_named(name)
    model = replace(model, robot=model.robot.with_gravity([0.5, 0.0, -9.7]))
    found = model.to_solver_parameters()
    node = yaml.safe_load(found.text)['/**']['ros__parameters']
    assert node['inverse_dynamics_solver_plugin_name'].startswith('kdl_inverse_dynamics_solver/')
    assert node['kdl'] == {'root': 'base_link', 'tip': model.robot.bodies[-1],
                           'gravity': [0.5, 0.0, -9.7]}
    assert all(type(g) is float for g in node['kdl']['gravity'])
    peer = Peer.of(pin.buildModelFromXML(node['robot_description']), model.robot)
    assert_same_effort(model, peer)
    facts = found.facts()
    assert facts['error'] <= MUJOCO_ACCELERATION
    q, qd, qdd = model.arm.states(200, seed=5)
    rest = rigid_equivalent(model)
    off = np.abs(rest.inverse(q, qd, qdd) - rigid(rest).inverse(q, qd, qdd)).max(axis=0)
    most = [row['most'] for row in facts['missing']]
    assert np.all(off <= 1.3 * np.array(most)) and np.all(off >= 0.6 * np.array(most))


def test_the_solver_knows_no_trees() -> None:
    with pytest.raises(ModelError, match='is a tree, and inverse_dynamics_solver supports chains'):
        model_named('tree').to_solver_parameters()


@pytest.mark.parametrize('pitch', [0.3, 0.5 * np.pi, -0.5 * np.pi, 0.5 * np.pi - 1e-8])
def test_angles_of_rotations(pitch: float) -> None:
    for roll, yaw in np.random.default_rng(0).uniform(-3.0, 3.0, (50, 2)):
        rotation = rotation_from_rpy([roll, pitch, yaw])
        assert np.abs(rotation_from_rpy(rpy_from_rotation(rotation)) - rotation).max() < 1e-15
