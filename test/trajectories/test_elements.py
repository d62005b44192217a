"""trajectories/composite.py: what trajectories consist of, against their own motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tolerances import SAME_FORMULA

from robot_dynid.cli.terminal import Terminal
from robot_dynid.document import Chapter, Section
from robot_dynid.report.plan import element_tables
from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.trajectories.composite import Composite, elements
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.single_joint import SineSwing, Sweep
from robot_dynid.trajectories.trajectory import QuinticMove, Trajectory
from robot_dynid.types import FloatArray

JOINTS = ('a', 'b')
HOME = np.array([0.3, -0.2])


def sequence() -> Composite:
    """Return a swing, a sweep and a rest, with ways between them."""
    swing = SineSwing(JOINTS, 'b', HOME, 0.4, 0.5, 2)
    sweep = Sweep(JOINTS, 'a', HOME, 0.6, 0.5, 1.0)
    start = sweep.sample(0.0).position[0]
    return Composite((swing, QuinticMove(JOINTS, HOME, start, 2.0), sweep,
                      QuinticMove(JOINTS, start, HOME, 2.0), QuinticMove(JOINTS, HOME, HOME, 1.5)))


def rebuilt(element: dict[str, Any], time: FloatArray) -> FloatArray:
    """Return the positions (T, n) that a series or swing says, the latter at full amplitude."""
    turns = 2.0 * np.pi * time[:, None]
    if element['type'] == 'fourier':
        phase = turns * element['frequencies']
        return np.array([own['offset'] + np.sin(phase) @ own['sine'] + np.cos(phase)
                         @ own['cosine'] for own in element['joints'].values()]).T
    position = np.tile([element['configuration'][j] for j in JOINTS], (len(time), 1))
    position[:, JOINTS.index(element['joint'])] += element['amplitude'] * np.sin(
        turns[:, 0] * element['frequency'])
    return position


def printed(trajectory: Trajectory, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the tables of a trajectory."""
    tables = element_tables(elements(trajectory))
    Terminal().document([Chapter('', (Section('elements', tables=tables),))])
    return capsys.readouterr().out


def test_series(capsys: pytest.CaptureFixture[str]) -> None:
    sine, cosine = np.random.default_rng(0).normal(size=(2, 2, 3))
    series = FourierTrajectory(JOINTS, 0.25, HOME, sine, cosine, periods=2)
    (element,) = elements(series)
    assert (element['begin'], element['seconds']) == (0.0, 8.0)
    assert element['frequencies'] == [0.25, 0.5, 0.75] and element['periods'] == 2
    time = np.linspace(0.0, 8.0, 50)
    np.testing.assert_allclose(rebuilt(element, time), series.sample(time).position,
                               rtol=0.0, atol=SAME_FORMULA)
    for own in element['joints'].values():
        np.testing.assert_allclose(own['amplitudes'], np.hypot(own['sine'], own['cosine']))
    assert '0.75 Hz' in printed(series, capsys)


def test_swings_sweeps_and_poses(capsys: pytest.CaptureFixture[str]) -> None:
    path = sequence()
    swing, sweep, pose = elements(path)
    assert [one['type'] for one in (swing, sweep, pose)] == ['sine', 'sweep', 'pose']
    time = np.linspace(2.0, 6.0, 40)  # between rise and fall, each a period of two seconds
    np.testing.assert_allclose(rebuilt(swing, time), path.sample(time).position,
                               rtol=0.0, atol=SAME_FORMULA)
    assert swing['periods'] == 2 and swing['joint'] == 'b'
    middle = sweep['begin'] + 0.25 * sweep['seconds']
    motion = path.sample([middle])
    assert sweep['joint'] == 'a' and motion.velocity[0, 0] == pytest.approx(sweep['speed'])
    assert motion.position[0] == pytest.approx(list(sweep['configuration'].values()))
    way = path.sample(sweep['begin'] + np.linspace(0.0, sweep['seconds'], 999)).position[:, 0]
    assert np.ptp(way) == pytest.approx(sweep['travel'], rel=1e-4)
    rest = path.sample(pose['begin'] + np.linspace(0.0, pose['seconds'], 9)).position
    np.testing.assert_allclose(rest, np.tile(list(pose['configuration'].values()), (9, 1)))
    text = printed(path, capsys)
    assert 'frequency [Hz' in text and 'configuration [rad, m' in text and '0.3 -0.2' in text


def test_splines(capsys: pytest.CaptureFixture[str]) -> None:
    points = np.random.default_rng(1).normal(size=(2, 5))
    spline = BSplineTrajectory(JOINTS, 6.0, points)
    (element,) = elements(spline)
    assert element['points'] == 5 and element['knot_interval'] == pytest.approx(1.0)
    path = spline.sample(np.linspace(0.0, 6.0, 600)).position
    for column, own in zip(path.T, element['joints'].values(), strict=True):
        assert own['lower'] <= column.min() and column.max() <= own['upper']
        assert own['upper'] - own['lower'] < 1.1 * np.ptp(column)
    assert 'knot every 1 s' in ' '.join(printed(spline, capsys).split())
