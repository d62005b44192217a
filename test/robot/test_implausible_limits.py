"""robot/implausible.py: the limits of docs/identification.md, each from just inside and beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from robot_dynid.robot.implausible import (
    described,
    implausible_inertials,
    reach,
    without_inertials,
)
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import robot_from_urdf

LINKS = 4
#: a needle as thick as a tenth of its length holds a thousandth of a cubic metre
ROD = ((0.1 / (4.0 / 3.0 * math.pi)) ** (1.0 / 3.0), 1e-4, 1e-4)


@dataclass(frozen=True)
class Body:
    """A solid ellipsoid: mass [kg], semi-axes [m], centre of mass [m]; ``spin`` adds to Izz."""

    mass: float = 20.0
    axes: tuple[float, float, float] = (0.25, 0.2, 0.15)
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    spin: float = 0.0

    def element(self) -> str:
        a, b, c = (self.mass / 5.0 * axis**2 for axis in self.axes)
        return (f'<inertial><origin xyz="{self.com[0]!r} {self.com[1]!r} {self.com[2]!r}"/>'
                f'<mass value="{self.mass!r}"/><inertia ixx="{b + c!r}" iyy="{a + c!r}" '
                f'izz="{a + b + self.spin!r}" ixy="0" ixz="0" iyz="0"/></inertial>')


def arm(bodies: Sequence[Body | None], step: float = 1.0) -> RobotModel:
    """Return a chain of turning links, ``step`` [m] from joint to joint, the first at the base."""
    text = '<robot name="chain"><link name="base"/>'
    for i, body in enumerate(bodies):
        parent, at = (f'link_{i - 1}', step) if i else ('base', 0.0)
        text += (f'<link name="link_{i}">{body.element() if body else ""}</link>'
                 f'<joint name="joint_{i}" type="continuous"><parent link="{parent}"/>'
                 f'<child link="link_{i}"/><origin xyz="{at} 0 0"/><axis xyz="0 0 1"/></joint>')
    return robot_from_urdf(text + '</robot>')


def with_last(body: Body, step: float = 1.0) -> RobotModel:
    return arm([*[Body()] * (LINKS - 1), body], step)


def of_density(density: float, mass: float) -> Body:
    size = (mass / (density * 4.0 / 3.0 * math.pi * 0.48)) ** (1.0 / 3.0)
    return Body(mass, (size, 0.8 * size, 0.6 * size))


def disc(radius_of_gyration: float) -> Body:
    """Return a thin disc of 60 kg, dense enough for a link."""
    size = math.sqrt(2.5) * radius_of_gyration
    return Body(60.0, (size, size, 0.001))


def test_reach_is_the_longest_chain_with_its_travel_and_frames() -> None:
    robot = arm([Body()] * 3, 0.7)
    assert reach(robot) == pytest.approx(1.4, rel=1e-12)
    forked = robot_from_urdf(
        '<robot name="fork"><link name="base"/><link name="a"/><link name="b"/><link name="c"/>'
        '<link name="tool"/>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="a"/>'
        '<origin xyz="0 0 0.5"/></joint><joint name="k" type="prismatic"><parent link="a"/>'
        '<child link="b"/><origin xyz="0.3 0 0.4"/><limit lower="-0.1" upper="0.6"/></joint>'
        '<joint name="l" type="continuous"><parent link="base"/><child link="c"/>'
        '<origin xyz="1.2 0 0"/></joint><joint name="f" type="fixed"><parent link="b"/>'
        '<child link="tool"/><origin xyz="0 0.2 0"/></joint></robot>')
    assert reach(forked) == pytest.approx(0.5 + 0.5 + 0.7 + 0.2, rel=1e-12)
    endless = replace(forked, limits=replace(forked.limits, upper=np.full(3, np.inf)))
    assert reach(endless) == pytest.approx(0.5 + 0.5 + 0.2, rel=1e-12)


@pytest.mark.parametrize(('inside', 'beyond', 'words', 'misleading'), [
    (of_density(0.021, 1.0), of_density(0.0195, 1.0), 'mass of 1 kg', True),
    (of_density(0.98e5, 30.0), of_density(1.02e5, 30.0), 'placeholder', False),
    (disc(1.48 * 3.0), disc(1.52 * 3.0), 'radius of gyration of 4.56 m on a robot of 3 m', True),
    (Body(27_000.0, (1.0,) * 3), Body(27_500.0, (1.3, 1.2, 1.1)), 'placeholder', True),
    (Body(98.0, ROD), Body(102.0, ROD), 'mass of 102 kg', False),
    (Body(com=(0.0, 0.0, 9.0)), Body(com=(0.0, 5.5, 7.3)), 'its centre of mass is 9.14 m from its '
     'frame, on a robot of 3 m; it looks like mm or cm, write m', True),
], ids=['thin', 'dense', 'wide', 'heavy', 'rod', 'outside'])
def test_a_link_is_named_just_beyond_a_limit(
    inside: Body, beyond: Body, words: str, misleading: bool
) -> None:
    assert implausible_inertials(with_last(inside)) == ()
    (found,) = implausible_inertials(with_last(beyond))
    assert (found.link, found.body, found.misleading) == ('link_3', 3, misleading)
    assert words in found.text
    expected = [True, True, True, True] if not misleading else [False] * 4
    assert described(with_last(beyond)).tolist() == expected


def usual(mass: float, inertia: float, length: float = 3.0) -> Body:
    """Return a usual link of an arm, its mass and inertia times these powers of ten.

    It has 500 kg/m^3, a radius of gyration of 0.1 lengths, and 3 kg times the cubed length.
    """
    weight = 3.0 * length**3
    square = 5.0 * (0.1 * length) ** 2 / 2.0  # of both large semi-axes
    low = weight / (500.0 * 4.0 / 3.0 * math.pi * square)
    scale = 10.0 ** ((inertia - mass) / 2.0)
    return Body(weight * 10.0**mass, (scale * math.sqrt(square),) * 2 + (scale * low,))


@pytest.mark.parametrize(('words', 'at', 'next_words', 'next_at'), [
    ('inertia looks like g m^2', (0, 3), 'inertia looks like kg cm^2', (0, 4)),
    ('inertia looks like kg cm^2', (0, 4), 'inertia looks like kg mm^2', (0, 6)),
    ('inertia looks like kg mm^2', (0, 6), 'inertia looks like g cm^2', (0, 7)),
    ('inertia looks like g cm^2', (0, 7), 'inertia looks like g mm^2', (0, 9)),
    ('g and kg mm^2', (3, 6), 'g and g cm^2', (3, 7)),
    ('g and g cm^2', (3, 7), 'g and g mm^2', (3, 9)),
    ('inertia looks like g m^2', (0, 3), 'g and g cm^2', (3, 7)),
    ('inertia looks like kg cm^2', (0, 4), 'g and g mm^2', (3, 9)),
    ('inertia looks like kg mm^2', (0, 6), 'g and g mm^2', (3, 9)),
])
def test_the_nearer_of_two_units_is_told(
    words: str, at: tuple[int, int], next_words: str, next_at: tuple[int, int]
) -> None:
    """In decades of density, radius of gyration and mass, counted from a usual link."""
    for share, told in ((0.0, words), (0.49, words), (0.51, next_words), (1.0, next_words)):
        mass, inertia = (a + share * (b - a) for a, b in zip(at, next_at))
        found = implausible_inertials(arm([usual(mass, inertia)] * LINKS))
        assert len(found) == LINKS and all(f'{told}, write kg and kg m^2' in one.text
                                           for one in found), share


@pytest.mark.parametrize(('words', 'mass', 'inertia', 'directions'), [
    ('mass looks like g', 3, 0, 'heavier lighter wider'),
    ('mass and inertia look like g and g m^2', 3, 3, 'heavier smaller wider'),
    ('mass and inertia look like g and kg mm^2', 3, 6, 'heavier smaller'),
    ('mass and inertia look like g and g mm^2', 3, 9, 'lighter wider'),
    ('inertia looks like g mm^2', 0, 9, 'lighter wider'),
])
def test_a_unit_explains_two_decades_of_density(
    words: str, mass: int, inertia: int, directions: str
) -> None:
    """Density goes with the mass to the power of 2.5 and the inertia to that of -1.5."""
    steps = {'heavier': (0.4, 0.0), 'lighter': (-0.4, 0.0), 'wider': (0.0, 2.0 / 3.0),
             'smaller': (0.0, -2.0 / 3.0)}
    for direction in directions.split():
        dm, di = steps[direction]
        for decades, told in ((1.96, words), (2.04, 'placeholder')):
            link = usual(mass + decades * dm, inertia + decades * di, 1.0)
            found = implausible_inertials(arm([link] * LINKS, 1.0 / 3.0))
            assert len(found) == LINKS and all(told in one.text for one in found), direction


@pytest.mark.parametrize(('heavy', 'mass', 'said'), [
    (2, 5.0, 'placeholder'), (3, 5.0, 'mass looks like g,'), (1, 27.5, 'mass looks like g,')])
def test_heavy_links_of_up_to_half_an_arm_are_no_unit(heavy: int, mass: float, said: str) -> None:
    """Payloads that are described as points are dense in the right unit, and not too heavy."""
    in_grams = Body(1000.0 * mass, tuple(axis / math.sqrt(1000.0) for axis in Body().axes))
    found = implausible_inertials(arm([*[Body(40.0)] * (LINKS - heavy), *[in_grams] * heavy]))
    assert len(found) == heavy and all(
        said in one.text and one.misleading == (heavy != 2) for one in found)


@pytest.mark.parametrize(('moments', 'masses', 'named'), [
    ((40.0, 36.0, 12.0), (1.0, 1.0), 'camera'), ((12.0, 40.0, 36.0), (1.0, 1.0), 'camera'),
    ((36.0, 12.0, 40.0), (1.0, 1.0), 'camera'), ((40.0, 32.0, 11.0), (1.0, 1.0), 'link'),
    (None, (1.0, 2.0), 'camera'), (None, (2.0, 1.0), 'link')])
def test_of_links_fixed_to_each_other_that_with_most_inertia_is_named(
    moments: tuple[float, ...] | None, masses: tuple[float, float], named: str
) -> None:
    """Without inertia that with most mass."""
    elements = ''.join(
        f'<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="{x}" iyy="{y}" '
        f'izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial></link>' for name, mass, (x, y, z) in zip(
            ('link', 'camera'), masses,
            ((28.0,) * 3, moments) if moments else ((0.0,) * 3, (0.0,) * 3)))
    (found,) = implausible_inertials(robot_from_urdf(
        f'<robot name="r"><link name="base"/>{elements}<joint name="j" type="continuous"><parent '
        'link="base"/><child link="link"/></joint><joint name="f" type="fixed"><parent '
        'link="link"/><child link="camera"/></joint></robot>'))
    assert found.link == named


def test_arms_shorter_than_a_metre_are_measured_as_one_metre() -> None:
    assert implausible_inertials(with_last(Body(com=(2.95, 0.0, 0.0)), 0.1)) == ()
    (found,) = implausible_inertials(with_last(Body(com=(3.05, 0.0, 0.0)), 0.1))
    assert 'is 3.05 m from its frame, on a robot of 0.3 m' in found.text
    assert implausible_inertials(with_last(disc(1.48), 0.1)) == ()
    assert implausible_inertials(with_last(disc(1.52), 0.1))


@pytest.mark.parametrize(('share', 'named'), [(0.97e-3, False), (1.05e-3, True)])
def test_links_with_a_thousandth_of_the_mass_are_judged(share: float, named: bool) -> None:
    mass = share * 60.0 / (1.0 - share)
    assert bool(implausible_inertials(with_last(of_density(3e5, mass)))) is named


@pytest.mark.parametrize(('share', 'named'), [(0.95, False), (1.05, True)])
def test_links_with_a_thousandth_of_the_inertia_are_judged(share: float, named: bool) -> None:
    """Its trace is held against the mass of the robot times its length squared."""
    trace = share * 1e-3 * 60.01 * 9.0
    mass = 0.01
    size = math.sqrt(trace / (0.4 * mass * (1.0 + 0.64 + 0.36)))
    body = Body(mass, (size, 0.8 * size, 0.6 * size))
    assert bool(implausible_inertials(with_last(body))) is named


@pytest.mark.parametrize(('extra', 'named', 'misleading'), [
    (0.0, False, False), (0.03, True, False), (0.3, True, True)])
def test_an_inertia_beyond_the_triangle_inequality_is_impossible(
    extra: float, named: bool, misleading: bool
) -> None:
    """Broken by a tenth of the trace it is misleading, too."""
    base = Body()
    thin = replace(base, axes=(0.25, 0.2, 1e-4))
    trace = 2.0 * base.mass / 5.0 * (0.25**2 + 0.2**2)
    found = implausible_inertials(with_last(replace(thin, spin=extra * trace)))
    assert bool(found) is named
    if named:
        assert (found[0].link, found[0].misleading) == ('link_3', misleading)
        assert 'its inertia is physically impossible (smallest eigenvalue' in found[0].text


def about_frame(offset: float) -> Body:
    """Return a body whose written inertia is about its frame: parallel axis terms added."""
    own = Body(com=(offset, 0.0, 0.0))
    a, b, c = (0.25**2 / 5.0, 0.2**2 / 5.0 + offset**2, 0.15**2 / 5.0)
    moments = np.array([c + b - offset**2, a + c + offset**2, a + b])  # about the frame [m^2]
    second = 0.5 * moments.sum() - moments
    return replace(own, axes=tuple(np.sqrt(5.0 * second).tolist()))


@pytest.mark.parametrize(('links', 'named'), [(2, 0), (3, 3), (4, 4)])
def test_inertias_about_frames_show_in_three_links(links: int, named: int) -> None:
    robot = arm([*[Body()] * (LINKS - links), *[about_frame(0.6)] * links])
    found = implausible_inertials(robot)
    assert [one.link for one in found] == [f'link_{i}' for i in range(LINKS - named, LINKS)]
    assert not any(one.misleading for one in found)
    mixed = arm([*[about_frame(0.6)] * 3, Body(com=(0.6, 0.0, 0.0))])
    assert implausible_inertials(mixed) == (), 'one of them is about its centre of mass'


@pytest.mark.parametrize(('length', 'named'), [(1.001, 4), (0.985, 0)])
def test_inertias_about_frames_leave_valid_bodies(length: float, named: int) -> None:
    """A body whose second moment is that of its centre may be a point about the frame."""
    borderline = Body(axes=(length * 0.2 * math.sqrt(5.0), 0.2, 0.15), com=(0.2, 0.0, 0.0))
    found = implausible_inertials(arm([*[about_frame(0.6)] * 3, borderline]))
    assert len(found) == named


@pytest.mark.parametrize(('lacking', 'said'), [
    ((), ()), ((1, 3), ('no inertial in the description: link_1, link_3; nominal links lack their '
                        'mass',)),
    ((0, 1, 2, 3), ('the description of the robot has no inertials: nothing is compared with '
                    'nominal links',))])
def test_links_without_inertial_are_told(lacking: tuple[int, ...], said: tuple[str, ...]) -> None:
    robot = arm([None if i in lacking else Body(0.1) for i in range(LINKS)])
    assert without_inertials(robot) == said
    assert described(robot).tolist() == [i < max(set(range(LINKS)) - set(lacking), default=-1) + 1
                                         for i in range(LINKS)]
