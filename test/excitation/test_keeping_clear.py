"""excitation/design.py: designed motions of random robots collide nowhere, as Pinocchio and coal
see it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from random_robots import Peer, colliding_urdf

from robot_dynid.collision.scene import build_scene
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import DesignCriteria, design_within
from robot_dynid.excitation.design_criteria import keeping_clear
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.search.constraints import KeepClear, constraint_values
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import Surroundings
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Motion

FINE = 2000  # instants of the whole motion
SPEEDS = {'velocity': 2.0, 'acceleration': 8.0}


def drawn(path, seed):
    """Return a random robot and its limits, all turns limited; Pinocchio knows no capsules."""
    rng = np.random.default_rng(seed)
    text = colliding_urdf(rng, int(rng.integers(2, 7)), float(rng.choice([0.0, 0.4])))
    path.write_text(text.replace('<capsule', '<cylinder'))
    robot = load_robot(path)
    own = {joint: {**SPEEDS, 'position': [-2.0, 2.0]} for joint in robot.joints}
    return robot, motion_limits(robot, own)


def collisions(path, robot, scene, q):
    """Return the pairs of bodies (names) which Pinocchio finds in touch at any of q (T, n)."""
    model = pin.buildModelFromUrdf(str(path))
    shapes = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION)
    shapes.addAllCollisionPairs()
    peer, data = Peer.of(model, robot), pin.GeometryData(shapes)
    bodies = dict(zip(peer.ids, robot.bodies)) | {0: robot.base_link}
    looked = {frozenset(pair) for pair in (*scene.pairs, *scene.always_separated)}
    found = set()
    names = [frozenset(bodies[shapes.geometryObjects[i].parentJoint]
                       for i in (pair.first, pair.second)) for pair in shapes.collisionPairs]
    for row in q:
        pin.computeCollisions(peer.model, peer.data, shapes, data, peer.position(row), False)
        found |= {name for name, result in zip(names, data.collisionResults)
                  if result.isCollision() and name in looked}
    return found


def design_and_look(path, seed):
    """Return whether a motion was found; assert that it collides nowhere, not even finely."""
    robot, limits = drawn(path, seed)
    scene = build_scene(robot, Surroundings(floor=-1.0))
    request = parse_request('fourier', {'duration': 6.0, 'harmonics': 3, 'seed': seed})
    try:
        found = design_within(limits, request, keeping_clear(DesignCriteria(), scene))
    except DynIdError as error:
        assert 'none of 300 random poses' in str(error) or 'no motion' in str(error)
        return False
    q = found.trajectory.sample(np.linspace(0.0, found.trajectory.duration, FINE)).position
    assert found.clearance.free
    assert not collisions(path, robot, scene, q)
    assert np.all(scene.nearest(q, scene.required).distance >= scene.required - 1e-4)
    return True


@pytest.mark.parametrize('seed', range(8))
def test_designs_of_random_robots_collide_nowhere(tmp_path, seed):
    assert design_and_look(tmp_path / 'r.urdf', seed)


@pytest.mark.soak
def test_designs_of_a_hundred_random_robots_collide_nowhere(tmp_path):
    designed = [design_and_look(tmp_path / 'r.urdf', seed) for seed in range(100)]
    assert np.mean(designed) > 0.8


def test_pinocchio_sees_the_collisions_of_a_motion_that_was_not_designed(tmp_path):
    """The oracle itself can fail: random motions of the same robots do collide."""
    hits = 0
    for seed in range(8):
        robot, limits = drawn(tmp_path / 'r.urdf', seed)
        scene = build_scene(robot, Surroundings(floor=-1.0))
        q = np.random.default_rng(seed).uniform(limits.lower, limits.upper, (100, robot.n))
        hits += bool(collisions(tmp_path / 'r.urdf', robot, scene, q))
    assert hits > 2


def test_the_nearest_pair_is_named_with_its_distance():
    """Of all instants, relative to the clearance that it requires."""
    robot = load_robot('tx40')
    scene = build_scene(robot, Surroundings(floor=-0.1))
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (6, robot.n))
    still = np.zeros_like(q)
    slack = (scene.distances(q) - scene.required).min(axis=0)
    pair = int(np.argmin(slack))
    told = KeepClear(scene).worst(Motion(q, still, still, still))
    assert told == (f'{" and ".join(scene.pairs[pair])} come within '
                    f'{slack[pair] + scene.required[pair]:.4g} m, the clearance is '
                    f'{scene.required[pair]:.4g} m')


def test_constraints_are_weighed_up_to_the_first_that_is_not_kept() -> None:
    """What is at its bound is not kept: a barrier would be infinite there."""
    def values(*margins: float) -> list[float]:
        constraints = [SimpleNamespace(values=lambda motion, m=margin: np.array([[1.0, m]]))
                       for margin in margins]
        return [float(one.min()) for one in constraint_values(constraints, None)]

    assert values(0.5, 0.2, 0.3) == [0.5, 0.2, 0.3]
    assert values(0.5, 0.0, 0.3) == [0.5, 0.0]
    assert values(-0.1, 0.2) == [-0.1]
