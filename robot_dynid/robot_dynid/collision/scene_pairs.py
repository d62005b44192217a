"""Pairs of bodies to be kept apart: links, boxes, obstacles and the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.collision.shapes import (
    BASE,
    Shape,
    environment_shapes,
    floor_shape,
    plain_box,
    robot_shapes,
)
from robot_dynid.errors import UsageError
from robot_dynid.robot.inertia import com_from_parameters, homogeneous
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.surroundings import Surroundings

FLOOR, BOX = 'floor', 'keep_out'
NO_FLOOR = "floor NOT checked: none is given; add 'scene: {floor: z}' to the robot YAML"
GIVE_SHAPES = "give every link <collision> elements in the robot's URDF, or collision in screws"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two bodies to be kept apart.

    ``bodies`` indices of the joints that move them, BASE if fixed; ``parts`` pairs of shapes.
    """

    names: tuple[str, str]
    bodies: tuple[int, int]
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """All shapes, the pairs to check, and the gaps of the check.

    ``stand_ins`` are the bodies without collision shape; ``blind`` says which existing bodies
    cannot be checked, ``unchecked`` also what is not described at all.
    """

    shapes: tuple[Shape, ...]
    pairs: tuple[Pair, ...]
    blind: tuple[str, ...]
    unchecked: tuple[str, ...]
    stand_ins: tuple[str, ...]


@one_blas_thread()
def layout(robot: RobotModel, around: Surroundings) -> Layout:
    """Return shapes and pairs of a robot in its surroundings.

    Bodies joined by one joint and those in ``ignore_pairs`` are not checked. A body without
    collision shape is represented by thin rods along its axes and a sphere of equal inertia.
    Raises UsageError for an unknown body.
    """
    links, left_out = robot_shapes(robot, around.ignore_links)
    bare = {robot.bodies[i]: i for i in range(robot.n) if all(s.body != i for s in links)}
    stand_ins = tuple(s for i in bare.values() for s in _stand_ins(robot, i))
    boxes = tuple(plain_box(f'{BOX}[{i}]', box.placement, box.size)
                  for i, box in enumerate(around.keep_out))
    obstacles = environment_shapes(around.environment) if around.environment else ()
    floor = () if around.floor is None else (floor_shape(FLOOR, around.floor),)
    shapes = (*links, *stand_ins, *boxes, *obstacles, *floor)
    ignored = _ignored(robot, around, shapes)
    pairs = [pair for pair in _candidates(robot, shapes, set(bare))
             if frozenset(pair.names) not in ignored]
    blind = (*_blind(robot, around, tuple(bare)), *left_out)
    unchecked = blind if around.floor is not None else (*blind, NO_FLOOR)
    return Layout(shapes, tuple(pairs), blind, unchecked, tuple(bare))


def _blind(robot: RobotModel, around: Surroundings, bare: tuple[str, ...]) -> tuple[str, ...]:
    warnings = []
    if len(bare) == robot.n:
        warnings.append(f'{robot.name} has no collision shapes: self-collision '
                        f'was NOT checked; {GIVE_SHAPES}')
    elif bare:
        warnings.append(f'{", ".join(bare)} without collision shape: self-collision with it was '
                        f'NOT checked; {GIVE_SHAPES}')
    if around.environment and len(bare) == robot.n:
        warnings.append(f'the environment {around.environment} was NOT checked: the robot has no '
                        'collision shapes')
    return tuple(warnings)


def _candidates(
    robot: RobotModel, shapes: Sequence[Shape], bare: set[str]
) -> list[Pair]:
    """Return the pairs that can be measured; bodies without shapes only with floor and boxes."""
    owners: dict[str, list[int]] = {}
    for i, shape in enumerate(shapes):
        owners.setdefault(shape.owner, []).append(i)
    moving = [name for name in robot.bodies if name in owners]
    resting = [name for name in owners if name not in robot.bodies]
    pairs = []
    for a, first in enumerate(robot.bodies):
        for second in (*moving[moving.index(first) + 1:], *resting) if first in owners else ():
            region = second == FLOOR or second.startswith(BOX)
            if _adjacent(robot, a, second) or (bare & {first, second} and not region):
                continue
            parts = tuple((i, j) for i in owners[first] for j in owners[second])
            pairs.append(Pair((first, second), (a, shapes[parts[0][1]].body), parts))
    return pairs


def _adjacent(robot: RobotModel, a: int, second: str) -> bool:
    if second == robot.base_link:
        return int(robot.parents[a]) == BASE
    if second not in robot.bodies:
        return False
    b = robot.bodies.index(second)
    return int(robot.parents[a]) == b or int(robot.parents[b]) == a


def _ignored(
    robot: RobotModel, around: Surroundings, shapes: Sequence[Shape]
) -> set[frozenset[str]]:
    """Return the pairs that may touch; links count as the body they are fixed to."""
    body = {link.name: robot.bodies[link.body] for link in robot.links}
    names = {*robot.bodies, *body, robot.base_link, FLOOR, *(s.owner for s in shapes)}
    ignored = set()
    for pair in around.ignore_pairs:
        for name in pair:
            if name not in names:
                raise UsageError(f'ignore_pairs: there is no body {name!r}; valid: '
                                 f"{', '.join(sorted(names))}")
        ignored.add(frozenset(body.get(name, name) for name in pair))
    return ignored


def _stand_ins(robot: RobotModel, body: int) -> list[Shape]:
    """Return rods from the origin of a body to its child joints, and a sphere of its inertia.

    The sphere is uniform and has the second moments of the body's mass.
    """
    name = robot.bodies[body]
    shapes = [Shape(name, body, 'sphere', np.eye(4), np.zeros(3))]
    for child in np.flatnonzero(robot.parents == body):
        end = robot.translations[child]
        length = float(np.linalg.norm(end))
        if length > 0.0:
            z = end / length
            x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
            x /= np.linalg.norm(x)
            middle = homogeneous(np.column_stack([x, np.cross(z, x), z]), 0.5 * end)
            shapes.append(Shape(name, body, 'capsule', middle, np.array([0, 0, length / 2])))
    mass = float(robot.nominal[body, 0])
    if mass > 0.0:
        _, centre, inertia = com_from_parameters(robot.nominal[body])
        second = 0.5 * float(np.trace(inertia)) / mass
        radius = float(np.sqrt(max(5.0 / 3.0 * second, 0.0)))
        shapes.append(Shape(name, body, 'sphere', homogeneous(np.eye(3), centre), np.zeros(3),
                            ball=radius))
    return shapes
