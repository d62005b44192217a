"""excitation/design.py: huge options are refused by their range or by the length of the motion,
before the work."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from sources import ranges_of

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import UsageError
from robot_dynid.excitation.design import (
    EFFORT_BATCH,
    design,
    effort_peaks,
)
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import FAMILIES, parse_request
from robot_dynid.excitation.request import DesignOptions
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits

ROBOT = load_robot('planar_3r')
NUMBERS = [(kind, name) for kind, family in FAMILIES.items()
           for owner in (family.options, *((DesignOptions,) if family.basis else ()))
           for name in ranges_of(owner)]


def test_every_number_of_every_family_has_a_range() -> None:
    for kind, family in FAMILIES.items():
        numbers = {f.name for f in fields(family.options)
                   if f.type.removesuffix(' | None') in ('int', 'float')}
        assert numbers == set(ranges_of(family.options)), kind


@pytest.mark.parametrize(('kind', 'name'), NUMBERS)
@pytest.mark.parametrize('huge', [10**30, 1e308, -(10**30), float('nan')])
def test_a_huge_option_is_refused_by_its_range(kind: str, name: str, huge: float) -> None:
    with pytest.raises(UsageError, match=rf"option '{name}' must be .*\(range .* to ") as refused:
        parse_request(kind, {name: huge})
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(('kind', 'options'), [
    ('fourier', {'duration': 99_999.0}),
    ('bspline', {'duration': 99_999.0}),
    ('static-poses', {'poses': 40, 'dwell': 600.0}),
    ('constant-velocity', {'ladder': {'joint_1': [1e-9, 0.1]}, 'joints': ['joint_1']}),
    ('composite', {'segments': [{'type': 'static-poses', 'poses': 40, 'dwell': 600.0}]}),
])
def test_a_motion_that_would_take_days_is_refused_by_its_length(
    kind: str, options: dict[str, object]
) -> None:
    with pytest.raises(UsageError, match=r'the motion takes .* s, more than 36000 s'):
        design(ROBOT, parse_request(kind, options), replace(design_criteria(ROBOT), score=None))


def test_efforts_of_a_long_motion_are_looked_at_in_batches() -> None:
    """Peaks are those of all instants at once, and the memory does not grow with the length."""
    limits = motion_limits(ROBOT)
    motion = random_fourier(limits, FourierOptions(2.0 * EFFORT_BATCH * 1e-3 + 7.0, 3),
                            np.random.default_rng(0))
    peak_sizes = []

    def inverse(*states: np.ndarray) -> np.ndarray:
        peak_sizes.append(len(states[0]))
        return np.asarray(inverse_dynamics(ROBOT, *states))

    time = np.linspace(0.0, motion.duration, int(np.ceil(motion.duration / 1e-3)) + 1)
    whole = motion.sample(time)
    expected = np.abs(inverse_dynamics(
        ROBOT, whole.position, whole.velocity, whole.acceleration)).max(axis=0)
    np.testing.assert_allclose(effort_peaks(motion, inverse, 1e-3), expected, rtol=1e-12)
    assert len(peak_sizes) == 3 and max(peak_sizes) == EFFORT_BATCH
    assert sum(peak_sizes) == len(time)
