"""export/description.py: URDF and MJCF made of screws: the same dynamics in Pinocchio and MuJoCo.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from identified_models import feasible_model, random_links
from tolerances import MUJOCO_ACCELERATION, READ_BY_OTHERS

pin = pytest.importorskip('pinocchio')

from random_robots import Peer, random_urdf  # noqa: E402

from robot_dynid import IdentifiedModel, load_robot  # noqa: E402
from robot_dynid.cli.main import main  # noqa: E402
from robot_dynid.collision.scene import build_scene  # noqa: E402
from robot_dynid.dynamics import rigid_body  # noqa: E402
from robot_dynid.errors import RobotError, UsageError  # noqa: E402
from robot_dynid.export.description import Description  # noqa: E402
from robot_dynid.robot.model import RobotModel  # noqa: E402
from robot_dynid.robot.screws import Screw, robot_from_screws  # noqa: E402
from robot_dynid.robot.surroundings import KeepOut, Surroundings  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf, source_text  # noqa: E402
from robot_dynid.simulation.mujoco_model import build_model  # noqa: E402
from robot_dynid.simulation.plant import Plant  # noqa: E402
from robot_dynid.simulation.truth import Truth  # noqa: E402

KINDS = ('revolute', 'continuous', 'prismatic')
#: upright, upside down and along the axes of the base, where angles of a rotation are not unique
STRAIGHT = np.concatenate([np.eye(3), -np.eye(3)])


def random_screws(seed: int) -> RobotModel:
    """Return a chain or a tree of joints of all kinds about tilted axes of any length."""
    rng = np.random.default_rng(seed)
    screws: list[Screw] = []
    links = random_links(rng, int(rng.integers(1, 7)))
    for i, parameters in enumerate(links):
        axis = STRAIGHT[rng.integers(6)] if rng.random() < 0.4 else rng.normal(size=3)
        parent = screws[int(rng.integers(i))].name if i and rng.random() < 0.3 else ''
        limits = np.array([-2.0, 2.0, 3.0, 50.0]) if rng.random() < 0.5 else np.full(4, np.nan)
        screws.append(Screw(
            f'j{i}', axis * rng.uniform(0.1, 5.0), rng.normal(size=3) * 0.4,
            str(rng.choice(KINDS)), parameters, parent, limits=limits))
    return robot_from_screws('random', screws).with_gravity(rng.normal(size=3) * 9.81)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_dynamics_are_those_of_the_screws(seed: int) -> None:
    robot = random_screws(seed)
    text = source_text(robot)
    rng = np.random.default_rng(seed)
    states = rng.uniform(-2.0, 2.0, (3, 10, robot.n))
    efforts = rigid_body.inverse_dynamics(robot, *states)
    size = np.abs(efforts).max()  # that of one state may be what weight and motion leave
    (q, v, a), effort = states[:, 0], efforts[0]
    assert robot_from_urdf(text).with_gravity(robot.gravity).hash() == robot.hash()
    peer = Peer.of(pin.buildModelFromXML(text), robot)
    assert np.abs(peer.inverse_dynamics(q, v, a) - effort).max() < READ_BY_OTHERS * size
    plant = Plant(robot, Truth.ideal(robot.n))
    assert np.abs(plant.inverse(q, v, a)[0] - effort).max() < READ_BY_OTHERS * size
    made = Description(robot).to_mjcf().model()
    data = mujoco.MjData(made)
    rows = [int(made.joint(name).dofadr[0]) for name in robot.joints]
    data.qpos[rows], data.qvel[rows], data.qacc[rows] = q, v, a
    mujoco.mj_inverse(made, data)
    assert np.abs(data.qfrc_inverse[rows] - effort).max() < READ_BY_OTHERS * size


def test_exports_of_models_need_no_urdf() -> None:
    robot = random_screws(11)
    model = feasible_model(robot, random_links(np.random.default_rng(3), robot.n))
    export = model.to_urdf()
    assert export.written is not None and export.facts()['error'] < MUJOCO_ACCELERATION
    again = robot_from_urdf(export.text).with_gravity(robot.gravity)
    q, v, a = np.random.default_rng(1).normal(size=(3, 5, robot.n))
    expected = model.inverse(q, v, a)
    found = rigid_body.inverse_dynamics(again, q, v, a)
    assert np.abs(found - expected).max() < READ_BY_OTHERS * np.abs(expected).max()


def test_limits_and_frames_are_written() -> None:
    robot = robot_from_screws('one', [Screw('a', [0, 0, 2.0], [0, 0, 1.0], limits=np.array(
        [-1.0, 2.0, np.nan, np.nan]))])
    text = source_text(robot)
    limit = ET.fromstring(text).find('joint/limit')
    assert limit is not None
    assert limit.attrib == {'lower': '-1.0', 'upper': '2.0', 'velocity': '0.0', 'effort': '0.0'}
    assert '<inertial>' not in text and 'type="revolute"' in text
    arm = robot_from_urdf(random_urdf(np.random.default_rng(7), 8, 0.0))
    fixed = {link.name for link in arm.links} - set(arm.bodies)
    made = feasible_model(arm, random_links(np.random.default_rng(0), arm.n)).to_urdf().text
    again = {link.name: link for link in robot_from_urdf(made).links}
    assert fixed
    for link in arm.links:
        assert np.allclose(again[link.name].placement, link.placement)


MASSLESS = 'effort_kind: torque\nscrews: [{name: j, axis: [0, 0, 1], origin: [0, 0, 0]}]\n'


def test_simulation_says_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / 'bare.yaml'
    path.write_text(MASSLESS)
    robot = load_robot(path)
    with pytest.raises(RobotError, match=r'(?s)bare.yaml: MuJoCo cannot use it.*moving link'):
        build_model(robot, Truth.ideal(1))
    with pytest.raises(RobotError, match=r"bare.yaml: link 'j_link' has no physically valid mass"):
        Description(robot).to_mjcf()


SHAPED = """
effort_kind: torque
base_link: floor_plate
screws:
  - {name: a, axis: [0, 0, 1], origin: [0, 0, 0.5], mass: 1, inertia: {ixx: 1, iyy: 1, izz: 1},
     collision: [{cylinder: {radius: 0.1, length: 1.0}, xyz: [0, 0, -0.2]}]}
  - {name: b, axis: [0, 1, 0], origin: [0.5, 0, 0.5], mass: 1, inertia: {ixx: 1, iyy: 1, izz: 1},
     collision: [{sphere: {radius: 0.02}}]}
  - {name: c, axis: [0, 1, 0], origin: [0.5, 0, 0.5], mass: 1, inertia: {ixx: 1, iyy: 1, izz: 1},
     collision: [{box: {size: [0.2, 0.4, 0.6]}, xyz: [0, 0, 0.1], rpy: [0, 1.5707963267948966, 0]},
                 {sphere: {radius: 0.3}, xyz: [0.2, 0, 0]}]}
"""


def test_shapes_of_screws_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / 'shaped.yaml'
    path.write_text(SHAPED)
    robot = load_robot(path)
    scene = build_scene(robot, Surroundings(floor=-2.0))
    found = dict(zip(scene.pairs, scene.distances(np.zeros((1, 3)))[0], strict=True))
    # the frame of c: x as the base's, z along its y; the box stands on its side there
    assert found[('a_link', 'c_link')] == pytest.approx(0.5 - 0.3 - 0.1, abs=2e-5)
    assert found[('c_link', 'floor')] == pytest.approx(2.5 - 0.3, abs=2e-5)
    assert not any('NOT checked' in text for text in scene.unchecked)
    made = load_robot_text(source_text(robot), tmp_path)
    other = build_scene(made, Surroundings(floor=-2.0))
    assert dict(zip(other.pairs, other.distances(np.zeros((1, 3)))[0], strict=True)) == \
        pytest.approx(found)
    assert Description(robot).to_mjcf().model().ngeom == 8, 'seen and touched'
    model = feasible_model(robot, robot.nominal)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.robot.shapes == robot.shapes
    assert again.to_mjcf().model().ngeom == 8 and again.to_urdf().text.count('<collision>') == 4


def load_robot_text(text: str, folder: Path) -> RobotModel:
    (folder / 'made.urdf').write_text(text)
    return load_robot(folder / 'made.urdf')


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('sphere: {radius: 0.3}', 'ball: {radius: 0.3}', r'\[1\] must be one of box, cylinder, sph'),
    ('sphere: {radius: 0.3}', 'sphere: {size: 0.3}', r'sphere must be a mapping of radius \[m\]'),
    ('radius: 0.3', 'radius: -0.3', 'collision.*radius must be'),
    ('size: [0.2, 0.4, 0.6]', 'size: [0.2, 0.4]', 'collision.*size must be a list of 3'),
    ('[{cylinder: {radius: 0.1, length: 1.0}, xyz: [0, 0, -0.2]}]', '3', 'must be a list of shap'),
])
def test_wrong_shapes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / 'shaped.yaml'
    assert old in SHAPED
    path.write_text(SHAPED.replace(old, new))
    with pytest.raises(RobotError, match=message) as caught:
        load_robot(path)
    assert str(path) in str(caught.value)


def test_planning_keeps_clear_of_boxes_with_rods() -> None:
    robot = random_screws(5)
    found = build_scene(robot, Surroundings(
        floor=-3.0, keep_out=(KeepOut((1.5, 0.0, 0.0), (0.1, 0.1, 0.1)),)))
    assert {'floor'} < {name for pair in found.pairs for name in pair}
    assert any('rods along the axes' in text for text in found.checked)


@pytest.mark.parametrize(('words', 'message'), [
    ('', 'is a robot, not an identified model: give --out OUT.urdf, --mjcf'),
    ('--c code --out o.urdf', 'and not --c'),
    ('--urdf x.urdf --out o.urdf', 'and not --urdf'),
])
def test_export_of_a_robot_refuses_options_of_identified_models(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(['export', 'planar_3r', *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_description_replaces_only_its_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'bare.yaml').write_text(MASSLESS)
    for _ in range(2):
        assert main(['export', 'bare.yaml', '--out', 'o.urdf']) == 0
    assert load_robot(tmp_path / 'o.urdf').joints == ('j',)
    (tmp_path / 'o.urdf').write_text('<robot/>')
    assert main(['export', 'bare.yaml', '--out', 'o.urdf']) == 2
    with pytest.raises(UsageError):
        source_text(load_robot('planar_3r').__class__(
            **{**vars(load_robot('planar_3r')), 'source': str(tmp_path / 'gone.urdf')}))
