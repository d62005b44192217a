"""Registry of the kinds of excitation; a new kind is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_dynid.errors import reported
from robot_dynid.excitation.planned.composite import CompositeOptions, plan_composite
from robot_dynid.excitation.planned.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.excitation.planned.sine_sequence import SineSequenceOptions, sine_sequence
from robot_dynid.excitation.planned.static_poses import StaticPosesOptions, plan_static_poses
from robot_dynid.excitation.request import Family, Request, checked_request
from robot_dynid.excitation.search.fourier_basis import FourierBasis
from robot_dynid.trajectories.bspline import BSplineBasis, BSplineOptions
from robot_dynid.trajectories.fourier import FourierOptions

#: everything that can be designed: options, and a basis or a plan
FAMILIES: dict[str, Family] = {
    'fourier': Family(FourierOptions, basis=FourierBasis),
    'bspline': Family(BSplineOptions, basis=BSplineBasis),
    'sine-sequence': Family(SineSequenceOptions, plan=sine_sequence),
    'constant-velocity': Family(ConstantVelocityOptions, plan=plan_sweeps),
    'static-poses': Family(StaticPosesOptions, plan=plan_static_poses),
    'composite': Family(CompositeOptions, plan=plan_composite),
}
DEFAULT = 'fourier'


@reported
def parse_request(kind: str, options: Mapping[str, Any] | None) -> Request:
    """Return the checked request of a ``kind`` in FAMILIES, '' for DEFAULT.

    Raises UsageError naming the wrong kind or option.
    """
    return checked_request(FAMILIES, kind or DEFAULT, options)
