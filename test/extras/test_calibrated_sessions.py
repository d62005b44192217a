"""health/calibration.py: sessions of a real and of a simulated arm, predicted once calibrated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from everyday_arm import cut, errors, taken
from scipy.signal import lfilter

from robot_dynid import identify, load_log, load_robot
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid_extras.health import calibration as module
from robot_dynid_extras.health.calibration import LEAST_SECONDS, FrictionSession, calibrate
from robot_dynid_extras.health.everyday_motion import slowest_sliding

#: UR10e: when the second half of a session begins [s]; others begin in the middle
MIDDLES = {'20_01_17': 25.0, '20_02_05': 11.0, '20_02_06': 11.0, '20_02_10': 16.0,
           '20_02_12': 21.0, '20_02_19': 26.0}


@dataclass(frozen=True, eq=False)
class Day:
    """Both halves of a session of a real robot, and a ``model`` of other days."""

    name: str
    model: IdentifiedModel
    first: RawLog
    second: RawLog

    def whole(self) -> FrictionSession:
        """Return what the first half shows as a recording."""
        return taken(self.model, [self.first])

    def everyday(self) -> FrictionSession:
        """Return what it shows as the node takes it, in whole stretches of five seconds."""
        time = self.first.time - self.first.time[0]
        return taken(self.model, [cut(self.first, time // 5.0 == number)
                                  for number in range(int(time[-1] / 5.0))])


@pytest.fixture(scope='module')
def days(shared_data: Path) -> list[Day]:
    """Sessions of the UR10e: of all joints, and of one joint each."""
    robot, folder = load_robot('ur10e'), shared_data / 'ur10e'
    train = sorted((folder / 'train').iterdir())
    found, models = [], {}
    for path in sorted(folder.glob('t*/*')) + sorted((folder / 'single_joint').iterdir()):
        if path.name.startswith('20_02_19_14'):  # another of its day is used
            continue
        others = tuple(one for one in train if one.name[:8] != path.name[:8])
        if others not in models:
            models[others] = identify(robot, [load_log(one, robot) for one in others]).model
        log = load_log(path, robot)
        first = log.time - log.time[0] < MIDDLES.get(path.name[:8], 0.5 * np.ptp(log.time))
        found.append(Day(path.name.split('-')[0].split('.')[0], models[others],
                         cut(log, first), cut(log, ~first)))
    return found


@pytest.mark.soak
def test_gain_on_the_second_half_of_real_sessions(days: list[Day]) -> None:
    """Plain causal: the model is fitted to other days, calibrated by the first half."""
    gains: dict[str, list[FloatArray]] = {}
    for day in days:
        served, joint = errors(day.model, day.second), day.name.removeprefix('joint_')
        for way, friction in (('recording', day.whole), ('node', day.everyday)):
            try:
                made = friction().calibrated().model
            except DataError as error:
                sys.stdout.write(f'{day.name}, {way}: {error}\n')
                continue
            gain = 100.0 * (1.0 - errors(made, day.second) / served)
            if joint != day.name:
                gain = gain[int(joint) - 1]
            sys.stdout.write(f'{day.name}, {way}: {np.round(gain, 1).tolist()} % less\n')
            gains.setdefault(f'{way}, {"all joints" if joint == day.name else "one joint"}',
                             []).append(gain)
    for way, values in gains.items():
        sys.stdout.write(f'mean, {way}: {np.round(np.mean(values, axis=0), 1).tolist()} % less\n')
        assert np.mean(values) > 0.0


@pytest.mark.soak
def test_gain_on_simulated_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PUMA 560 in MuJoCo, whose friction warms up, drifts, and depends on the position."""
    monkeypatch.setattr(module, 'LEAST_SECONDS', 0.0)  # what it spares is printed, too
    robot = load_robot('puma560')
    model = identify(robot, [simulated(robot, seed, 40.0) for seed in range(4)]).model
    for seconds in (10.0, 20.0, 60.0):
        gains, held = [], []
        for seed in range(100, 110):
            log = simulated(robot, seed, seconds + 30.0)
            first, second = (cut(log, rows) for rows in (log.time < seconds, log.time >= seconds))
            found, after = (calibrate(model, [one]) for one in (first, second))
            gains.append(100.0 * (1.0 - errors(found.model, second) / errors(model, second)))
            held += [
                abs(one.share - other.share) < np.hypot(one.half_interval, other.half_interval)
                for one, other in zip(found.changes, after.changes, strict=True)]
        sys.stdout.write(f'{seconds:.0f} s: {np.round(np.mean(gains, axis=0), 1).tolist()} % '
                         f'less, worst {np.min(gains):.1f} %, {100.0 * np.mean(held):.0f} % '
                         'of intervals hold\n')
        assert seconds < 60.0 or np.mean(gains) > 0.0


def simulated(robot: RobotModel, seed: int, seconds: float, rate: float = 100.0) -> RawLog:
    """Return a session of another day, along a random Fourier series."""
    rng, arm, truth = (np.random.default_rng(seed), np.random.default_rng(99), load_truth(robot))
    still = replace(truth, viscous=0.0 * truth.viscous, coulomb=0.0 * truth.coulomb)
    time = np.arange(round(seconds * rate)) / rate
    motion = random_fourier(motion_limits(robot).scaled(0.8), FourierOptions(
        seconds, round(seconds / 2.0)), rng).sample(time)
    q, qd, qdd = motion.position, motion.velocity, motion.acceleration
    day = 1.0 + 0.05 * rng.normal(size=(2, robot.n))
    cold = 0.08 * np.exp(-(time[:, None] + rng.uniform(0.0, 300.0)) / 200.0)
    keep = np.exp(-1.0 / (30.0 * rate))
    drift = 0.03 * lfilter([np.sqrt(1.0 - keep ** 2)], [1.0, -keep], rng.normal(
        size=(len(time) + 20000, robot.n)), axis=0)[20000:]
    phase, size = arm.uniform(0.0, 6.28, (3, robot.n)), arm.uniform(0.03, 0.1, (3, robot.n))
    shape = 1.0 + sum(size[k] * np.sin((k + 1) * q + phase[k]) for k in range(3))
    dry = np.tanh(qd / 0.01) * (1.0 + 0.3 * np.exp(-(qd / 0.1) ** 2)) * shape
    effort = (Plant(robot, still).inverse(q, qd, qdd)
              + truth.viscous * day[0] * (1.0 + 2.0 * cold + drift) * qd
              + truth.coulomb * (day[1] * (1.0 + cold + drift) * dry
                                 + 0.02 * rng.normal(size=robot.n)))
    return RawLog(f'day {seed}', robot.joints, time, q,
                  velocity=qd + 1e-4 * rng.normal(size=q.shape),
                  effort=effort + 0.03 * truth.coulomb * rng.normal(size=q.shape))


@pytest.mark.soak
def test_dry_friction_of_real_sessions_falls_from_half_to_half(days: list[Day]) -> None:
    """Dry friction falls from half to half; of states, none found in one half predicts both."""
    falls, shares = [], {}
    for day in days:
        if day.name.startswith('joint') or np.ptp(day.first.time) < 1.2 * LEAST_SECONDS:
            continue
        halves = [calibrate(day.model, [half]) for half in (day.first, day.second)]
        falls += [
            (later.share - one.share, np.hypot(later.half_interval, one.half_interval) / 1.96)
            for one, later in zip(*(half.changes for half in halves), strict=True)
            if one.kind == 'dry']
        before, after = (errors(half.model, day.second) for half in halves)
        shares.setdefault('friction of the second half itself', []).append(
            np.stack([0.0 * before, 100.0 * (1.0 - after / before)]))
        motions = [residual_motion(halves[0].model, half) for half in (day.first, day.second)]
        for state in STATES:
            shares.setdefault(state, []).append(np.transpose([
                explained(state, j, *motions) for j in range(day.model.robot.n)]))
    change, deviation = np.array(falls).T
    mean, size = np.average(change, weights=deviation ** -2.0), np.sum(deviation ** -2.0) ** -0.5
    sys.stdout.write(f'dry friction from half to half: {100.0 * mean:.1f} ± '
                     f'{100.0 * size:.1f} % (one deviation)\n')
    for state, values in shares.items():
        causal, own = np.mean(values, axis=0)
        sys.stdout.write(f'{state}: {np.round(causal, 1).tolist()} % less, fitted to the second '
                         f'half itself {np.round(own, 1).tolist()} %\n')
        assert causal.mean() < own.mean()


#: states that residual friction may depend on, as columns by position, velocity, effort, time [s]
STATES: dict[str, Callable[..., list[FloatArray]]] = {
    'time since start': lambda q, v, tau, t: [t * np.tanh(v / 0.01), t * v, t],
    'position': lambda q, v, tau, t: [
        part * wave(k * q) for k in (1, 2, 3, 4) for wave in (np.sin, np.cos)
        for part in (1.0, np.tanh(v / 0.01))],
    'position history': lambda q, v, tau, t: [
        travel(q, reach) for reach in (1e-3, 0.01, 0.1, 0.5)],
    'motor current': lambda q, v, tau, t: [np.abs(tau) * np.tanh(v / 0.01), tau, np.abs(tau) * v]}


def travel(q: FloatArray, reach: float) -> FloatArray:
    """Return the travel (N,) since a joint reversed, as a share of ``reach`` [rad], at most 1."""
    found = np.zeros(len(q))
    for i, step in enumerate(np.diff(q) / reach):
        found[i + 1] = np.clip(found[i] + step, -1.0, 1.0)
    return found


def residual_motion(model: IdentifiedModel, log: RawLog) -> tuple[Samples, FloatArray, FloatArray]:
    """Return samples, residual effort (N, n), and where joints slide (N, n)."""
    repaired = repair(model.robot, log)
    samples = prepare(model.robot, repaired, model.preprocessing.limited_to(repaired))
    assert samples.effort is not None
    return (samples, samples.effort - model.torque_model.effort(samples, model.values),
            np.abs(samples.velocity) > slowest_sliding(model))


def explained(state: str, joint: int, *halves: tuple[Samples, FloatArray, FloatArray]
              ) -> tuple[float, ...]:
    """Return the falls [%] of the second residual by a state fitted to the first, to itself."""
    fits = []
    for samples, residual, slides in halves:
        rows = slides[:, joint]
        assert samples.effort is not None
        fits.append((np.stack(STATES[state](*(part[rows, joint] for part in (
            samples.position, samples.velocity, samples.effort)),
            (samples.time - halves[0][0].time[0])[rows]), axis=1), residual[rows, joint]))
    second, rest = fits[1]
    return tuple(100.0 * (1.0 - np.linalg.norm(rest - second @ ridge(*fit)) / np.linalg.norm(rest))
                 for fit in fits)


def ridge(columns: FloatArray, values: FloatArray) -> FloatArray:
    """Return the least-squares fit (k,), drawn towards zero by a thousandth of its columns."""
    least = np.diag(np.sqrt(1e-3 * np.sum(columns ** 2, axis=0)))
    return np.linalg.lstsq(np.vstack([columns, least]),
                           np.append(values, np.zeros(len(least))), rcond=None)[0]
