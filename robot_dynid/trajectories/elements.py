"""The elements of trajectories: series, swings, sweeps, splines and poses, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.trajectories.composite import elementary
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.sine import SineSwing
from robot_dynid.trajectories.sweep import Sweep
from robot_dynid.trajectories.trajectory import QuinticMove, Trajectory
from robot_dynid.types import FloatArray

FOURIER, SINE, SWEEP, BSPLINE, POSE = 'fourier', 'sine', 'sweep', 'bspline', 'pose'


def _positions(joints: tuple[str, ...], position: FloatArray) -> dict[str, float]:
    return dict(zip(joints, np.asarray(position).tolist(), strict=True))


def _fourier(part: FourierTrajectory) -> dict[str, Any]:
    """Return frequencies [Hz], and of every joint its offset and amplitudes [rad, m]."""
    count = part.sine.shape[1]
    return {'type': FOURIER, 'periods': part.periods,
            'frequencies': [k * part.base_frequency for k in range(1, count + 1)],
            'joints': {joint: {
                'offset': float(part.offset[j]),
                'amplitudes': np.hypot(part.sine[j], part.cosine[j]).tolist(),
                'sine': part.sine[j].tolist(), 'cosine': part.cosine[j].tolist(),
            } for j, joint in enumerate(part.joints)}}


def _sine(part: SineSwing) -> dict[str, Any]:
    return {'type': SINE, 'joint': part.moving, 'amplitude': part.amplitude,
            'frequency': part.frequency, 'periods': part.periods,
            'configuration': _positions(part.joints, part.position)}


def _sweep(part: Sweep) -> dict[str, Any]:
    return {'type': SWEEP, 'joint': part.moving, 'speed': part.speed, 'travel': part.travel,
            'configuration': _positions(part.joints, part.position)}


def _bspline(part: BSplineTrajectory) -> dict[str, Any]:
    """Return the time between knots [s], and bounds of every joint's motion [rad, m]."""
    peaks = part.peaks()
    return {'type': BSPLINE, 'points': part.points.shape[1],
            'knot_interval': part.duration / (part.points.shape[1] + 1),
            'joints': {joint: {'lower': float(peaks.lower[j]), 'upper': float(peaks.upper[j])}
                       for j, joint in enumerate(part.joints)}}


def _pose(part: QuinticMove) -> dict[str, Any] | None:
    """Return a stretch at rest; ways from one place to the next are no element."""
    if not np.array_equal(part.start, part.goal):
        return None
    return {'type': POSE, 'configuration': _positions(part.joints, part.start)}


DESCRIBED: dict[type, Callable[[Any], dict[str, Any] | None]] = {
    FourierTrajectory: _fourier, SineSwing: _sine, Sweep: _sweep, BSplineTrajectory: _bspline,
    QuinticMove: _pose,
}


def elements(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Return the elements of a trajectory in order, in plain types and SI units.

    Every element has its ``type``, ``begin`` and ``seconds``. Of a Fourier series ``frequencies``
    of the harmonics, and of its ``joints`` the ``offset``, and by harmonic ``amplitudes`` with
    their parts ``sine`` and ``cosine``; of a swing or sweep the ``joint`` that moves,
    ``amplitude`` and ``frequency``, or ``speed`` and ``travel``, and the ``configuration`` of all
    joints about which it goes; of a B-spline ``knot_interval`` and the bounds of every joint; of
    poses at rest the ``configuration``. Types without an entry here are left out.
    """
    found = []
    for begin, part in elementary(trajectory):
        describe = DESCRIBED.get(type(part))
        own = None if describe is None else describe(part)
        if own is not None:
            found.append({'type': own.pop('type'), 'begin': begin, 'seconds': part.duration,
                          **own})
    return found
