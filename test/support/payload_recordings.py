"""Recordings of arms with and without a payload, with known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from random_robots import random_urdf
from scipy.signal import lfilter

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects.links import AttachedBody
from robot_dynid.robot.inertia import move_parameters, parameters_from_com
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import RawLog

DT = 0.01
VISCOUS, COULOMB, RAMP = 4.0, 3.0, 0.02


def torque_robot(name):
    """Return a robot of the package whose effort is torque."""
    return replace(load_robot(name), drive=Drive('torque'))


def random_chain(seed, joints=5):
    """Return a random chain whose effort is torque."""
    robot = robot_from_urdf(random_urdf(np.random.default_rng(seed), joints, 0.0))
    return replace(robot, drive=Drive('torque'))


def random_payload(rng, mass=None):
    """Return the ten parameters of a box of random mass, size and place."""
    mass = rng.uniform(0.5, 6.0) if mass is None else mass
    sides = rng.uniform(0.05, 0.3, 3) ** 2
    moments = mass / 12.0 * (sides.sum() - sides)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return parameters_from_com(mass, rng.uniform(-0.15, 0.15, 3), turn @ np.diag(moments) @ turn.T)


def motion(robot, seed, seconds, moving=None):
    """Return time and q, qd, qdd (T, n): five sines per joint; only ``moving`` joints move."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, DT)
    q, qd, qdd = np.zeros((3, len(time), robot.n))
    for _ in range(5):
        rate, phase = rng.uniform(0.4, 3.0, robot.n), rng.uniform(0.0, 6.0, robot.n)
        size = rng.uniform(0.2, 0.5, robot.n)
        if moving is not None:
            size = np.where(np.isin(np.arange(robot.n), moving), size, 0.0)
        angle = time[:, None] * rate + phase
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    return time, q, qd, qdd


def noisy(effort, noise, rng):
    """Return the effort with noise that is alike over a tenth of a second, as on real robots."""
    white = rng.normal(size=effort.shape) * np.sqrt(1.0 - 0.81)
    return effort + noise * effort.std(axis=0) * lfilter([1.0], [1.0, -0.9], white, axis=0)


def recording(robot, motions, payload=None, seed=0, noise=0.0, friction=1.0, link='', grip=0.0):
    """Return what a robot with friction reports on a motion, carrying ``payload`` on ``link``.

    ``grip`` of the transmitted torque is friction, too.
    """
    time, q, qd, qdd = motions
    links = robot.nominal.copy()
    if payload is not None:
        body = AttachedBody.on(robot, link)
        links[body.joint] += move_parameters(payload, body.placement)
    effort = rigid_body.inverse_dynamics(robot, q, qd, qdd, links)
    effort = effort + grip * np.abs(effort) * np.clip(qd / RAMP, -1.0, 1.0)
    effort = effort + friction * (VISCOUS * qd + COULOMB * np.clip(qd / RAMP, -1.0, 1.0))
    effort = noisy(effort, noise, np.random.default_rng(seed))
    gains = robot.drive.gains if robot.drive.kind == 'current' else 1.0
    return RawLog(f'run{seed}', robot.joints, time, q, qd, effort / gains)


def pair(robot, payload, seed=1, seconds=20.0, noise=0.0, link=''):
    """Return a loaded and an unloaded recording of the same motion."""
    same = motion(robot, seed, seconds)
    return (recording(robot, same, payload, 2 * seed, noise, link=link),
            recording(robot, same, None, 2 * seed + 1, noise))
