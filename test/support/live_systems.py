"""Running systems as a few seconds of messages, in order or with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.execution.checklist import Facts, Requirements, StateMessage
from robot_dynid.execution.guards import GuardSettings
from robot_dynid.robot.model import RobotModel
from robot_dynid.setting_up.live import Live
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, RawLog

NOW, DURATION, RATE = 1000.0, 5.0, 125.0
CONTROLLER = 'joint_trajectory_controller'
Spoil = Callable[[dict[str, FloatArray]], None]


def motion(robot: RobotModel, time: FloatArray, size: float) -> tuple[FloatArray, ...]:
    """Return position, velocity and acceleration (T, n) within the limits, at ``time`` (T,) s."""
    middle = 0.5 * (np.nan_to_num(robot.limits.lower) + np.nan_to_num(robot.limits.upper))
    around = middle + 0.6 * np.cos(1.0 + 2.0 * np.arange(robot.n))
    rate, phase = 1.5 + 0.4 * np.arange(robot.n), 0.7 * np.arange(robot.n)
    angle = np.outer(time, rate) + phase
    return (around + 0.4 * size * np.sin(angle), 0.4 * size * rate * np.cos(angle),
            -0.4 * size * rate**2 * np.sin(angle))


def arrays(robot: RobotModel, moving: bool) -> dict[str, FloatArray]:
    """Return arrival, stamp (T,), position, velocity and effort (T, n) of a robot in order."""
    arrival = NOW - DURATION + (np.arange(round(DURATION * RATE)) + 0.5) / RATE
    q, qd, qdd = motion(robot, arrival, 1.0 if moving else 0.0)
    torque = rigid_body.inverse_dynamics(robot.rigid, q, qd, qdd)
    torque += 0.02 * np.abs(torque).max(axis=0) * np.tanh(qd / 0.02)
    noise = np.random.default_rng(0).normal(0.0, 1e-3, torque.shape)
    effort = robot.motor_torque(torque) / robot.torque_factors * (1.0 + noise) + noise
    return {'arrival': arrival, 'stamp': arrival - 1e-3, 'position': q, 'velocity': qd,
            'effort': effort}


def system(
    robot: RobotModel, spoil: Spoil = lambda _: None, *, moving: bool = False,
    names: tuple[str, ...] | None = None,
) -> Live:
    """Return what is seen of the system of a robot, whose messages ``spoil`` has changed."""
    data = arrays(robot, moving)
    spoil(data)
    known = dict.fromkeys(('position', 'velocity', 'effort')) | data
    states = tuple(
        StateMessage(float(at), float(stamp), names or robot.joints, *(
            () if known[name] is None else tuple(known[name][k])
            for name in ('position', 'velocity', 'effort')))
        for k, (at, stamp) in enumerate(zip(data['arrival'], data['stamp'])))
    whole = arrays(robot, moving)
    controller = tuple(
        StateMessage(float(at), float(at), robot.joints, tuple(q), tuple(qd))
        for at, q, qd in zip(whole['arrival'], whole['position'], whole['velocity']))
    limits = motion_limits(robot)
    limits = replace(limits, effort=limits.effort / np.abs(robot.torque_factors))
    gravity = rigid_body.gravity_effort(robot.rigid, data['position'][-1:])
    facts = Facts(DURATION, NOW, states, controller=f'action server {CONTROLLER}',
                  controller_states=controller,
                  gravity=(robot.motor_torque(gravity) / robot.torque_factors)[0])
    log = RawLog('/joint_states', robot.joints, data['stamp'] - data['stamp'][0],
                 *(known[name] for name in ('position', 'velocity', 'effort')))
    return Live('/joint_states', CONTROLLER, facts,
                Requirements(robot.joints, GuardSettings(), limits), ('/driver',), log=log)
