"""Exact gradient in the motion of what a rotor on a moving link takes."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: joint; its axis, and turning, its rate and weighted axes of the link before, all (N, 3)
Before = tuple[int, FloatArray, FloatArray, FloatArray, FloatArray]


def rotor_pullback(
    robot: RobotModel, rotors: Rotors, samples: Samples, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return gradients (N, coordinates) in position, velocity, acceleration of a weighted effort.

    That of the first rotor on a moving link, reflected inertia left out, by ``weights``
    (coordinates, N). With u the sum of the weighted joint axes before the rotor it is
    u . (theta_dd a + theta_d w x a) + (weight of the motor) a . w_d; turning a joint turns what is
    beyond it against the motion of the link before.
    """
    motion = rotors.motions[0]
    speed, rate, back = (x[:, None] for x in (
        samples.velocity @ motion, samples.acceleration @ motion, weights.T @ motion))
    before, (line, turn, _, weighted) = _along_chain(robot, rotors, samples, weights)
    spun = np.cross(turn, line)
    of_turn, of_weighted = speed * np.cross(line, weighted), rate * line + speed * spun
    of_rate = back * line
    gradients = tuple(np.zeros(samples.position.shape) for _ in range(3))
    for j, axis, turn_before, rate_before, weighted_before in before:
        moved = np.cross(turn_before, axis)
        gradients[0][:, j] = (
            _dot(of_turn, moved) + _dot(of_weighted, np.cross(weighted_before, axis))
            + _dot(of_rate, np.cross(rate_before, axis) + np.cross(turn_before - turn, moved)))
        gradients[1][:, j] = _dot(of_turn, axis) + _dot(
            of_rate, 2.0 * moved - np.cross(turn, axis))
        gradients[2][:, j] = _dot(of_rate, axis)
    gradients[1][:] += np.outer(_dot(weighted, spun), motion)
    gradients[2][:] += np.outer(_dot(weighted, line), motion)
    return gradients[0], gradients[1], gradients[2]


def _along_chain(
    robot: RobotModel, rotors: Rotors, samples: Samples, weights: FloatArray
) -> tuple[list[Before], tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Return the joints before the rotor, then axis, turning, its rate and weighted axes of it."""
    chain = [int(rotors.carriers[0])]
    while robot.parents[chain[-1]] >= 0:
        chain.append(int(robot.parents[chain[-1]]))
    count = len(samples)
    rotation = np.tile(np.eye(3), (count, 1, 1))
    turn, rate, weighted = (np.zeros((count, 3)) for _ in range(3))
    found: list[Before] = []
    for j in reversed(chain):
        table, q = robot.geometry[j], samples.position[:, j, None, None]
        rotation = rotation @ (
            table[:9].reshape(3, 3) + np.cos(q) * table[9:18].reshape(3, 3)
            + np.sin(q) * table[18:27].reshape(3, 3))
        axis = rotation @ robot.axes[j] * float(robot.types[j] != PRISMATIC)
        found.append((j, axis, turn, rate, weighted))
        speed = samples.velocity[:, j, None]
        rate = rate + samples.acceleration[:, j, None] * axis + speed * np.cross(turn, axis)
        turn, weighted = turn + speed * axis, weighted + weights[j, :, None] * axis
    return found, (rotation @ rotors.axes[0], turn, rate, weighted)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum('nk,nk->n', a, b))
