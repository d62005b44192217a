"""Recordings in which one joint at a time moves, made with the torque model itself."""

from __future__ import annotations

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.sine_sequence import sine_sequence
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, Samples

STEP = 0.01


def torque_model(robot: RobotModel) -> TorqueModel:
    """Return the torque model with rotors and friction."""
    return Structure.uniform(robot, True, 'coulomb', {'width': 0.05}).torque_model(robot)


def truth_of(model: TorqueModel, coulomb: float = 0.0) -> FloatArray:
    """Return plausible base parameters; ``coulomb`` [N m] is the dry friction of every axis."""
    rng = np.random.default_rng(1)
    standard = {name: rng.uniform(0.1, 0.5) for name in model.reduction.standard}
    standard |= dict(zip(model.blocks[0].names, model.robot.nominal.ravel()))
    standard |= {name: coulomb for name in standard if name.startswith('fc')}
    return model.reduction.base(list(standard.values()))


def planned(model: TorqueModel, **options: object) -> Samples:
    """Return the states of a planned sine sequence."""
    request = parse_request('sine-sequence', options)
    limits = motion_limits(model.robot).scaled(0.9)
    trajectory = sine_sequence(DesignCriteria(model=model), limits, request.options,
                               np.random.default_rng(0)).trajectory
    time = np.arange(0.0, trajectory.duration, STEP)
    motion = trajectory.sample(time)
    return Samples(model.robot.joints, time, motion.position, motion.velocity,
                   motion.acceleration)


def with_effort(model: TorqueModel, samples: Samples, parameters: FloatArray,
                noise: float = 0.0, seed: int = 0) -> Samples:
    """Return the samples with the modelled effort and white noise, a share of its largest."""
    effort = model.effort(samples, parameters)
    spread = noise * np.abs(effort).max(axis=0)
    effort = effort + spread * np.random.default_rng(seed).standard_normal(effort.shape)
    return Samples(samples.joints, samples.time, samples.position, samples.velocity,
                   samples.acceleration, effort, effort)
