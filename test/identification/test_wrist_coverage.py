"""Intervals of wrist sensors: how often they hold the weighed truth, printed with the errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip('mujoco')

from wrist_plant import HOSE, Plant, arm, moving, random_poses, resting

from robot_dynid.identification.wrist import identify_wrist_sensor
from robot_dynid.robot.inertia import rpy_from_rotation
from robot_dynid.types import FloatArray

SEEDS = range(100, 120)
#: numbers by the place of their columns
NUMBERS = {'mass [kg]': slice(0, 1), 'centre of mass [m]': slice(1, 4),
           'moments of inertia [kg m^2]': slice(4, 7), 'bias of the force [N]': slice(7, 10),
           'bias of the torque [N m]': slice(10, 13), 'mounting [rad]': slice(13, 16)}


def random_plant(seed: int, hose: float) -> Plant:
    """Return a tool, a bias and about two degrees of mounting error, of either sign."""
    rng = np.random.default_rng(1000 + seed)
    return Plant(
        mass=rng.uniform(0.5, 3.5),
        com=tuple(rng.uniform([-0.06, -0.06, 0.0], [0.06, 0.06, 0.12])),
        moments=tuple(np.array([0.01, 0.009, 0.012]) * rng.uniform(0.6, 1.0)),
        turn=tuple(rng.uniform(-1.0, 1.0, 3)), hose=hose, sign=int(rng.choice([1, -1])),
        bias=tuple(rng.normal(size=6) * [15.0, 15.0, 30.0, 1.0, 1.0, 1.0]),
        rpy=tuple(np.radians(2.0) * rng.normal(size=3) / np.sqrt(3.0)))


def fitted(plant: Plant, motion: tuple[FloatArray, ...], seed: int) -> FloatArray:
    """Return errors and half-widths of 95 % intervals (2, 16), in the order of NUMBERS."""
    result = identify_wrist_sensor(arm(), [plant.record(motion, seed)])
    tool, sensor = result.estimate, result.sensor
    return np.array([
        np.hstack([tool.mass - plant.mass, tool.centre_of_mass - plant.com,
                   np.diag(tool.inertia - plant.inertia), sensor.bias - plant.bias,
                   rpy_from_rotation(plant.rotation.T @ sensor.rotation)]),
        np.hstack([tool.margins * np.hstack([tool.mass_std, tool.centre_of_mass_std]),
                   tool.margins[0] * np.diag(tool.inertia_std), result.bias_width,
                   result.rotation_width])])


@pytest.mark.soak
@pytest.mark.parametrize('hose', [0.0, HOSE])
@pytest.mark.parametrize('kind', ['motion', 'poses'])
def test_intervals_hold_the_truth(kind: str, hose: float) -> None:
    fits = np.array([fitted(
        random_plant(seed, hose), moving(seed, 16.0) if kind == 'motion' else resting(
            random_poses(seed, 10)), seed) for seed in SEEDS])
    shown = np.isfinite(fits[:, 1])  # moments of inertia may not be
    errors, widths = (np.where(shown, part, np.nan) for part in (fits[:, 0], fits[:, 1]))
    held = np.where(shown, np.abs(errors) <= widths, np.nan)
    lines = [f'{kind}, hose {hose:g} N/m: {np.nanmean(held):.1%} of {shown.sum()} intervals']
    lines += [f'{name:28}: RMS error {np.sqrt(np.nanmean(errors[:, place] ** 2)):.2g}, median '
              f'half-width {np.nanmedian(widths[:, place]):.2g}, held '
              f'{np.nanmean(held[:, place]):.0%} of {shown[:, place].sum()}'
              for name, place in NUMBERS.items()]
    sys.stdout.write('\n'.join(['', *lines, '']))
    assert np.nanmean(held) > 0.92
    assert all(np.nanmean(held[:, place]) > 0.85 for place in NUMBERS.values())
