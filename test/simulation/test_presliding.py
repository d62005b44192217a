"""Dry friction of simulated motors that builds up over a travel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.errors import RobotError
from robot_dynid.friction import AxisMotion, law_from
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.presliding import Bristles
from robot_dynid.simulation.truth import Truth, load_truth

ROBOT = replace(load_robot('planar_3r'), gravity=np.zeros(3))
LENGTH = 2e-4


def truth(**changes: object) -> Truth:
    """Return joints with Coulomb friction of 1 N m that builds up over LENGTH."""
    given = replace(load_truth(ROBOT), viscous=np.zeros(3), coulomb=np.ones(3),
                    presliding=np.full(3, LENGTH))
    return replace(given, **changes)  # type: ignore[arg-type]


def test_states_are_those_of_the_friction_law() -> None:
    position = 1e-3 * np.sin(np.linspace(0.0, 9.0, 500))
    bristles = Bristles(np.array([LENGTH, 0.0]))
    bristles.relax(np.full(2, position[0]))
    found = np.array([bristles.states(np.full(2, x)) for x in position])
    still = np.zeros(len(position))
    expected = law_from('dahl', {'length': LENGTH}).columns(
        AxisMotion(still, position, still))[1]
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-12)
    assert not found[:, 1].any()
    assert Bristles.of(None) is None
    assert Bristles.of(np.zeros(2)) is None


def test_a_joint_gives_before_it_slides() -> None:
    """At rest under a torque u the state is u / coulomb, so the travel is -length log(1 - u)."""
    plant = Plant(ROBOT, truth(viscous=np.full(3, 5.0)))
    plant.set_state(np.zeros(3), np.zeros(3))
    for torque in np.linspace(0.0, 0.5, 4000):
        plant.step(np.array([0.0, 0.0, torque]), steps=4)
    plant.step(np.array([0.0, 0.0, 0.5]), steps=4000)
    assert plant.state()[0][2] == pytest.approx(-LENGTH * np.log(0.5), rel=0.02)
    plant.step(np.array([0.0, 0.0, 1.2]), steps=8000)
    assert plant.state()[0][2] > 100.0 * LENGTH


def test_friction_only_takes_energy() -> None:
    plant = Plant(ROBOT, truth())
    plant.set_state(np.full(3, 0.4), np.array([1.0, -1.0, 1.0]))
    plant.step(np.zeros(3), steps=8000)
    assert np.abs(plant.state()[1]).max() < 0.02


def test_what_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(RobotError, match=r'presliding of joint_3 is too short.*or more'):
        Plant(ROBOT, truth(presliding=np.array([0.0, 0.0, 1e-9])))
    tx40 = load_robot('tx40')
    with pytest.raises(RobotError, match='motor of joint_6 turns with several joints'):
        Plant(tx40, replace(load_truth(tx40), presliding=np.full(6, LENGTH)))
    path = tmp_path / 'robot.yaml'
    path.write_text('simulation: {joint_1: {presliding: -1.0}}')
    with pytest.raises(RobotError, match=r'presliding is -1\.0'):
        load_truth(ROBOT, path)
    path.write_text('simulation: {joint_1: {presliding: 1.0e-4}}')
    found = load_truth(ROBOT, path).presliding
    assert found is not None
    assert found.tolist() == [1e-4, 0.0, 0.0]
