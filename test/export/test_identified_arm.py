"""export/identified_arm.py: which bodies are physical, and the states exports are checked in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import feasible_model

from robot_dynid.errors import ModelError
from robot_dynid.export.identified_arm import IdentifiedArm, is_physical, margin_of
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray


def arm(trained: dict[str, FloatArray]) -> IdentifiedArm:
    """Return the planar arm, whose second joint has no limits."""
    robot = load_robot('planar_3r')
    nowhere = np.array([np.inf, -np.inf])
    limits = replace(robot.limits, lower=np.array([-1.0, nowhere[1], 0.0]),
                     upper=np.array([2.0, nowhere[0], 0.5]), velocity=np.array([0.5, np.inf, 0.0]),
                     acceleration=np.array([15.0, np.inf, np.inf]))
    model = feasible_model(replace(robot, limits=limits), robot.nominal)
    return IdentifiedArm(model.mechanism, trained)


@pytest.mark.parametrize(('margin', 'physical'), [(1.1e-12, True), (0.9e-12, False), (0.0, False),
                                                  (-1e-3, False), (0.1, True)])
def test_a_body_is_physical_if_two_moments_exceed_the_third(
    margin: float, physical: bool
) -> None:
    moments = np.array([1.0, 2.0, 3.0]) - np.array([0.0, 0.0, 6.0 * margin])
    link = parameters_from_com(0.5, np.zeros(3), np.diag(moments))
    assert margin_of(np.diag(moments)) == (pytest.approx(6.0 * margin, abs=1e-15),
                                           pytest.approx(6.0 - 6.0 * margin))
    assert is_physical(link) is physical
    assert not is_physical(-link) and not is_physical(0.0 * link)


def test_links_of_an_arm_are_to_be_physical() -> None:
    robot = load_robot('planar_3r')
    links = robot.nominal * np.array([[1.0], [-1.0], [1.0]])
    with pytest.raises(ModelError, match=r'link_2.*--method feasible'):
        IdentifiedArm(feasible_model(robot, links).mechanism, {})


def test_states_are_those_of_the_training_else_of_the_limits_else_usual() -> None:
    free = arm({})
    assert free.speeds.tolist() == [0.5, 1.0, 1.0]
    q, qd, qdd = free.states(1000)
    for values, low, high in ((q, [-1.0, -np.pi, 0.0], [2.0, np.pi, 0.5]),
                              (qd, [-0.5, -1.0, -1.0], [0.5, 1.0, 1.0]),
                              (qdd, [-15.0, -5.0, -5.0], [15.0, 5.0, 5.0])):
        size = (np.array(high) - low) / 1000.0
        # one in the middle of each of equal parts
        np.testing.assert_allclose(np.sort(values, axis=0)[[0, 1, -1]], [
            low + 0.5 * size, low + 1.5 * size, high - 0.5 * size], rtol=0.0, atol=1e-9)
    assert not np.array_equal(q, free.states(1000, 1)[0])
    assert np.array_equal(q, free.states(1000)[0])
    trained = {'position': np.array([[-0.5, 0.1], [1.0, 2.0], [0.0, 0.1]]),
               'velocity': np.array([[-3.0, 1.0], [0.0, 0.5], [0.0, 0.0]]),
               'acceleration': np.array([[-1.0, 2.0]] * 3)}
    moved = arm(trained)
    assert moved.speeds.tolist() == [3.0, 0.5, 1.0]
    q, qd, qdd = moved.states(1000)
    assert (q.min(axis=0), q.max(axis=0)) == (
        pytest.approx(trained['position'][:, 0], abs=2e-3),
        pytest.approx(trained['position'][:, 1], abs=2e-3))
    assert np.abs(qd).max(axis=0) == pytest.approx([3.0, 0.5, 1.0], rel=2e-3)
    assert (qdd.min(), qdd.max()) == (pytest.approx(-1.0, abs=2e-3), pytest.approx(2.0, abs=2e-3))


def test_joints_that_slide_without_limits_are_moved_a_metre_in_all() -> None:
    robot = arm({}).robot
    slides = replace(robot, types=np.array([robot.types[0], PRISMATIC, robot.types[2]]))
    made = IdentifiedArm(feasible_model(slides, slides.nominal).mechanism, {})
    q = made.states(1000)[0][:, 1]
    assert (q.min(), q.max()) == (pytest.approx(-0.4995, abs=1e-9),
                                  pytest.approx(0.4995, abs=1e-9))
    assert (made.delay, made.not_identified, made.ripples, made.changing) == (0.0, (), (), ())
