"""Excitation: trajectories, their design within limits, and their supervised execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.excitation.bspline import BSplineBasis, BSplineOptions, BSplineTrajectory
from robot_dynid.excitation.composite import CompositeOptions, plan_composite
from robot_dynid.excitation.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.excitation.fourier import FourierOptions, FourierTrajectory
from robot_dynid.excitation.fourier_basis import FourierBasis
from robot_dynid.excitation.request import Family
from robot_dynid.excitation.sequence import SineSequenceOptions, sine_sequence
from robot_dynid.excitation.sine import SineSwing
from robot_dynid.excitation.static_poses import StaticPosesOptions, plan_static_poses
from robot_dynid.excitation.sweep import Sweep
from robot_dynid.excitation.trajectory import Composite, QuinticMove, Trajectory

# Everything a trajectory file can hold, by the name of its type.
TRAJECTORIES: dict[str, type[Trajectory]] = {
    'fourier': FourierTrajectory,
    'bspline': BSplineTrajectory,
    'sine': SineSwing,
    'sweep': Sweep,
    'quintic': QuinticMove,
    'composite': Composite,
}
# Everything that can be designed: options, and a basis or a plan.
DESIGNS: dict[str, Family] = {
    'fourier': Family(FourierOptions, basis=FourierBasis),
    'bspline': Family(BSplineOptions, basis=BSplineBasis),
    'sine-sequence': Family(SineSequenceOptions, plan=sine_sequence),
    'constant-velocity': Family(ConstantVelocityOptions, plan=plan_sweeps),
    'static-poses': Family(StaticPosesOptions, plan=plan_static_poses),
    'composite': Family(CompositeOptions, plan=plan_composite),
}


def describe(trajectory: Trajectory) -> dict[str, Any]:
    """Return type and parameters of a trajectory in plain types; `build` is the inverse."""
    for name, kind in TRAJECTORIES.items():
        if type(trajectory) is kind:
            return {'type': name, **trajectory.parameters()}
    raise UsageError(f'{type(trajectory).__name__} is not a registered type of trajectory')


def build(description: Mapping[str, Any]) -> Trajectory:
    """Return the trajectory that `describe` described.

    Raises UsageError that names the wrong type or parameter.
    """
    if not isinstance(description, Mapping):
        raise UsageError('a trajectory must be a mapping with type and parameters')
    name = description.get('type')
    if name not in TRAJECTORIES:
        raise UsageError(f"unknown trajectory type '{name}'; known: {', '.join(TRAJECTORIES)}")
    return TRAJECTORIES[name].from_parameters(description)
