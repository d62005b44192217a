"""Known external wrenches in the samples: the effort that the links receive with their help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog, Samples, interpolated

#: range of the factor by which J^T w shows in the effort for which the wrench is accepted as given
ACCEPTED_FACTORS = (0.5, 2.0)
#: deviations from one that are reported, for residuals correlated over this time [s]
REPORTED_DEVIATIONS, RESIDUAL_CORRELATION_TIME = 5.0, 0.25


def net_torque(robot: RobotModel, log: RawLog) -> FloatArray:
    """Return the torque (T, n) [N m] on the links: that of the drives plus J^T w.

    The recording must have efforts.
    """
    assert log.effort is not None
    torque = log.effort * robot.torque_factors
    return torque if log.external_torque is None else torque + log.external_torque


def add_external_torque(
    samples: Samples, torque: FloatArray | None, smooth: Callable[[FloatArray], FloatArray]
) -> Samples:
    """Return samples with the external ``torque`` (N, n) [N m] added to their efforts.

    It is given at the time of the samples, unfiltered, and passes ``smooth``, the filter of the
    motion, for filtered effort. Equations of motors and gears do not contain it.
    """
    if torque is None:
        return samples
    assert samples.effort is not None and samples.measured is not None
    n, filtered = torque.shape[1], smooth(torque)
    stamps = samples.time if samples.stamps is None else samples.stamps
    effort, measured = samples.effort.copy(), samples.measured.copy()
    effort[:, :n] += interpolated(samples.time, filtered, stamps)
    measured[:, :n] += interpolated(samples.time, torque, stamps, degree=1)
    return replace(samples, effort=effort, measured=measured, external=filtered)


def check_external(samples: Samples, residual: FloatArray) -> str:
    """Return a warning if the effort contradicts the wrench, else ''.

    ``residual`` (N, n) [N m] is measured minus modelled effort of the samples. If the wrench is k
    times as large as given, the residual is (1 - k) J^T w, less what the model absorbs.
    """
    if samples.external is None or samples.measured is None:
        return ''
    external = samples.at_stamps(samples.external)
    left = residual[:, :external.shape[1]]
    weight = 1.0 / np.maximum(np.var(left, axis=0), np.finfo(float).tiny)
    energy = float(np.sum(weight * external**2))
    if energy == 0.0 or len(samples) < 2:
        return ''
    factor = 1.0 - float(np.sum(weight * external * left)) / energy
    alike = max(1.0, RESIDUAL_CORRELATION_TIME / float(np.median(np.diff(samples.time))))
    if ACCEPTED_FACTORS[0] < factor < ACCEPTED_FACTORS[1] or (
            abs(factor - 1.0) < REPORTED_DEVIATIONS * float(np.sqrt(alike / energy))):
        return ''
    return (f'the effort shows {factor:.2g} times the external torque: check the sign '
            '(what the surroundings exert on the link), the units (N, N m) and the frame of the '
            'wrench')
