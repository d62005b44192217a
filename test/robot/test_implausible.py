"""Inertials in other units than SI are named, those of real robots are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from random_robots import random_urdf
from robot_descriptions import public_urdfs

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.setting_up.description import read_arm

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / 'robot_dynid'
ARMS = [*sorted((PACKAGE / 'urdf').glob('*.urdf')), ROOT / 'examples' / 'arm.urdf']
#: those with three links at least whose centre of mass is far from the frame
LONG = [path for path in ARMS if path.stem in ('arm', 'ur10e', 'tx40', 'seven_axis', 'planar_3r')]
#: mass and inertia as they are written, over those in SI
WRITTEN = {
    'inertia looks like g m^2': (1.0, 1e3),
    'inertia looks like kg cm^2': (1.0, 1e4),
    'inertia looks like kg mm^2': (1.0, 1e6),
    'inertia looks like g cm^2': (1.0, 1e7),
    'inertia looks like g mm^2': (1.0, 1e9),
    'mass looks like g': (1e3, 1.0),
    'mass and inertia look like g and g m^2': (1e3, 1e3),
    'mass and inertia look like g and kg mm^2': (1e3, 1e6),
    'mass and inertia look like g and g cm^2': (1e3, 1e7),
    'mass and inertia look like g and g mm^2': (1e3, 1e9),
    'placeholder': (1.0, 1e-10),
}
#: public descriptions, all of toys and legged robots, whose inertials are those of no body: an
#: inertia of zero or one, or (aliengo, laikago) about the frames of the links
WRONG = {'icub', 'icub_reduced', 'simple_humanoid', 'simple_humanoid_classical', 'aliengo',
         'laikago', 'laikago_toes', 'laikago_toes_limits', 'cartpole', 'pr2_gripper', 'minitaur',
         'minitaur_fixed_knees', 'minitaur_single_motor', 'minitaur_v1', 'quadruped', 'r2d2',
         'racecar_differential'}
IMPOSSIBLE = 'physically impossible'


def rewritten(path: Path, change: Callable[[str], str], links: int = 99) -> RobotModel:
    """Return the robot of a URDF with the first <inertial> elements of moving links changed."""
    text = path.read_text()
    first = re.search('<joint', text).start()  # the base link has none, or comes before
    return robot_from_urdf(text[:first] + re.sub(
        r'<inertial>.*?</inertial>', lambda found: change(found[0]), text[first:], count=links,
        flags=re.DOTALL))


def scaled(pattern: str, factor: float) -> Callable[[str], str]:
    """Return a change of all numbers of the attributes that ``pattern`` matches."""
    return lambda text: re.sub(rf'({pattern})="([^"]+)"', lambda found: '{}="{}"'.format(
        found[1], ' '.join(repr(factor * float(word)) for word in found[2].split())), text)


def in_units(mass: float, inertia: float) -> Callable[[str], str]:
    return lambda text: scaled('value', mass)(scaled('i[xyz][xyz]', inertia)(text))


@pytest.mark.parametrize('path', ARMS, ids=lambda path: path.stem)
@pytest.mark.parametrize('unit', WRITTEN)
def test_names_the_links_in_other_units(path: Path, unit: str) -> None:
    robot = rewritten(path, in_units(*WRITTEN[unit]))
    wrong = implausible_inertials(robot)
    assert len(wrong) >= 0.3 * robot.n and len({one.link for one in wrong}) == len(wrong)
    assert all(one.misleading == (unit != 'placeholder') for one in wrong)
    bodies = {link.name: link.body for link in robot.links}
    assert all(bodies[one.link] == one.body for one in wrong)


@pytest.mark.parametrize('unit', WRITTEN)
def test_names_the_unit(unit: str) -> None:
    robot = rewritten(ROOT / 'examples' / 'arm.urdf', in_units(*WRITTEN[unit]))
    assert all(unit in one.text for one in implausible_inertials(robot))


def test_a_mass_beyond_all_units_is_misleading() -> None:
    robot = rewritten(ROOT / 'examples' / 'arm.urdf', in_units(1e6, 1.0), links=1)
    wrong, = implausible_inertials(robot)
    assert (wrong.link, wrong.misleading) == ('column', True)


def test_warns_of_the_radius_of_gyration() -> None:
    robot = rewritten(ROOT / 'examples' / 'arm.urdf', in_units(1.0, 1e6))
    assert len(robot.warnings) == robot.n
    assert re.fullmatch(
        r"link 'upper': mass of 6 kg with a radius of gyration of 129 m on a robot of 0\.95 m; "
        r'inertia looks like kg mm\^2, write kg and kg m\^2', robot.warnings[1])


@pytest.mark.parametrize('path', ARMS, ids=lambda path: path.stem)
@pytest.mark.parametrize('unit', ('inertia looks like kg mm^2', 'inertia looks like g mm^2',
                                  'mass looks like g'))
def test_names_the_only_link_that_is_wrong(path: Path, unit: str) -> None:
    robot = rewritten(path, in_units(*WRITTEN[unit]), links=1)
    wrong, = implausible_inertials(robot)
    assert (wrong.body, wrong.misleading) == (0, True)


@pytest.mark.parametrize('factor', (1e3, 1e2))
def test_names_a_centre_of_mass_in_another_unit(factor: float) -> None:
    robot = rewritten(ROOT / 'examples' / 'arm.urdf', scaled('xyz', factor))
    wrong = implausible_inertials(robot)
    assert {one.body for one in wrong} == {0, 1, 2}
    assert all('centre of mass' in one.text and 'mm or cm' in one.text for one in wrong)


@pytest.mark.parametrize('path', LONG, ids=lambda path: path.stem)
def test_names_inertias_about_the_frames_of_links(path: Path) -> None:
    robot = robot_from_urdf(path.read_text())
    moved = []
    for link in robot.links:
        mass, com = link.parameters[0], link.parameters[1:4] / max(link.parameters[0], 1e-12)
        share = mass * (com @ com * np.eye(3) - np.outer(com, com))
        moved.append(np.concatenate([link.parameters[:4], link.parameters[4:] + share[
            (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]]))
    text = path.read_text()
    for link, parameters in zip(robot.links, moved):
        if link.has_inertial:
            text = with_inertial(text, link.name, parameters)
    wrong = implausible_inertials(robot_from_urdf(text))
    assert len(wrong) >= 3 and not any(one.misleading for one in wrong)
    assert all('about the frame of the link' in one.text for one in wrong)


def with_inertial(text: str, link: str, parameters: np.ndarray) -> str:
    """Return a URDF in which a link has other standard ``parameters`` (10,)."""
    mass, first = parameters[0], parameters[1:4]
    com = first / mass
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - mass * (
        com @ com * np.eye(3) - np.outer(com, com))
    moments = ' '.join(f'i{"xyz"[i]}{"xyz"[j]}="{float(about[i, j])!r}"'
                       for i in range(3) for j in range(i, 3))
    inertial = (f'<inertial><origin xyz="{" ".join(map(repr, com.tolist()))}"/>'
                f'<mass value="{float(mass)!r}"/><inertia {moments}/></inertial>')
    return re.sub(rf'(<link name="{link}">.*?)<inertial>.*?</inertial>',
                  lambda found: found[1] + inertial, text, count=1, flags=re.DOTALL)


@pytest.mark.parametrize('path', ARMS, ids=lambda path: path.stem)
def test_arms_of_the_package_are_plausible(path: Path) -> None:
    assert implausible_inertials(robot_from_urdf(path.read_text())) == ()


@pytest.mark.parametrize('seed', range(12))
def test_random_robots_are_plausible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert implausible_inertials(robot_from_urdf(random_urdf(rng, 1 + seed % 8, 0.3))) == ()


@pytest.mark.parametrize('path', public_urdfs())
def test_public_descriptions_are_plausible(path: Path) -> None:
    try:
        arm = read_arm(path)
        robot = robot_from_urdf(path.read_text(), Selection(arm.base, arm.tip, arm.joints))
    except (RobotError, UsageError):
        return
    wrong = [one for one in implausible_inertials(robot) if IMPOSSIBLE not in one.text]
    assert not wrong or path.stem in WRONG


def test_implausible_inertials_adds_fixed_links_to_their_body() -> None:
    path = ROOT / 'examples' / 'arm.urdf'
    camera = ('<link name="camera"><inertial><mass value="{}"/><inertia ixx="{}" iyy="{}" '
              'izz="{}" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="mount" '
              'type="fixed"><parent link="fore"/><child link="camera"/></joint></robot>')
    small, wide = (robot_from_urdf(path.read_text().replace('</robot>', camera.format(
        0.2, moment, moment, moment))) for moment in (1e-9, 40.0))
    assert implausible_inertials(small) == ()
    assert [one.link for one in implausible_inertials(wide)] == ['camera']


def with_finger(mass: float, moment: float) -> RobotModel:
    """Return an arm with a small link that moves at its end."""
    text = (ROOT / 'examples' / 'arm.urdf').read_text()
    return robot_from_urdf(text.replace('</robot>', (
        f'<link name="finger"><inertial><mass value="{mass}"/><inertia ixx="{moment}" '
        f'iyy="{moment}" izz="{0.9 * moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="bend" type="continuous"><parent link="fore"/><child link="finger"/>'
        '<axis xyz="0 0 1"/></joint></robot>')))


def test_names_a_small_link_by_its_density() -> None:
    """With a radius of gyration of 1 m it is within the robot."""
    assert [one.link for one in implausible_inertials(with_finger(0.05, 0.05))] == ['finger']


def test_small_links_are_of_no_consequence() -> None:
    assert implausible_inertials(with_finger(0.01, 0.003)) == ()


def test_names_a_light_long_link_by_its_mass() -> None:
    """The boom of the Stanford arm is less dense in g than metal is."""
    robot = rewritten(PACKAGE / 'urdf' / 'stanford_arm.urdf', in_units(1e3, 1e3))
    assert 'link_3' in {one.link for one in implausible_inertials(robot)}
