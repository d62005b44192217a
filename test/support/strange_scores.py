"""The strange plant identified with default settings, judged on motions it has never seen: tables.

Identification must beat plain weighted least squares, written here: columns of Pinocchio, rotors,
Coulomb and viscous friction and an offset, all through one low-pass filter; beside it are the
links of the description with friction and offset fitted to them.

Of arms and motions that the command line names, with the folders of example-robot-data and
pybullet_data on PYTHONPATH: one row per joint, and the figures of all joints by kind of motion.

    python test/support/strange_scores.py --arms ur5,panda --motions repeated,pick --seeds 1
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import butter, filtfilt
from strange_plant import (
    TRAINING,
    Arm,
    Plant,
    Recorded,
    available,
    inverse_dynamics,
    judging,
    load_arm,
    regressor,
)

from robot_dynid import identify
from robot_dynid.errors import DynIdError
from robot_dynid.identified.suitability import FEED_FORWARD, GRAVITY
from robot_dynid.identified.uncertainty import effort_intervals, half_intervals
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import Trace, validate

#: samples per second that are looked at, and the low-pass filter [Hz]
LOOKS, CUTOFF = 100.0, 10.0
#: speeds [rad/s, m/s] below which no Coulomb friction counts
STICKS = 1e-3
#: singular values below this share of the largest are open; columns are scaled by their size in
#: states anywhere within the limits, but by no less than this
OPEN, TINY = 1e-3, 1e-9
#: seconds at both ends that are not looked at: filters settle
ENDS = 0.5


class PlainFit:
    """Weighted least squares on Pinocchio's regressor, rotors, Coulomb, viscous, offset."""

    def __init__(self, arm: Arm, recorded: Recorded) -> None:
        self.arm = arm
        states, effort = _looked_at(recorded)
        columns = self._columns(states)
        n, width = arm.n, columns.shape[2]
        scale = np.maximum(np.linalg.norm(self._columns(_anywhere(arm)), axis=(0, 1)), TINY)
        weights = np.ones(n)
        for _ in range(2):
            weighted = (columns / scale * weights[:, None]).reshape(-1, width)
            values = np.linalg.lstsq(weighted, (effort * weights).ravel(), rcond=OPEN)[0] / scale
            weights = 1.0 / np.maximum(np.std(effort - columns @ values, axis=0), 1e-9)
        self.values = values
        self.friction = []
        links = inverse_dynamics(arm.nominal, *states)
        for j in range(n):
            own = _friction_columns(states[1][:, j])
            self.friction.append(np.linalg.lstsq(own, effort[:, j] - links[:, j], rcond=None)[0])

    def _columns(self, states: Sequence[FloatArray]) -> FloatArray:
        n, (_, v, a) = self.arm.n, states
        links = regressor(self.arm.nominal, *states)
        each = np.concatenate([_friction_columns(v).reshape(len(v), n, 3), a[:, :, None]], axis=2)
        alone = np.zeros((len(v), n, 4 * n))
        for j in range(n):
            alone[:, j, 4 * j:4 * j + 4] = each[:, j]
        return np.concatenate([links, alone], axis=2)

    def errors(self, recordings: Iterable[Recorded]) -> tuple[FloatArray, FloatArray]:
        """Return the relative errors (n,) of plain least squares, and of nominal links."""
        errors, size = np.zeros((2, self.arm.n)), np.zeros(self.arm.n)
        for recorded in recordings:
            states, _ = _looked_at(recorded)
            measured = _every(recorded.log.effort, recorded)
            links = inverse_dynamics(self.arm.nominal, *states)
            friction = np.column_stack([_friction_columns(v) @ values for v, values in zip(
                states[1].T, self.friction, strict=True)])
            errors += [((self._columns(states) @ self.values - measured)**2).sum(axis=0),
                       ((links + friction - measured)**2).sum(axis=0)]
            size += (measured**2).sum(axis=0)
        plain, nominal = np.sqrt(errors / size)
        return plain, nominal


def _anywhere(arm: Arm) -> tuple[FloatArray, ...]:
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 200, arm.n))
    return arm.middle + q * arm.half, v * arm.speed, a * arm.acceleration


def _friction_columns(v: FloatArray) -> FloatArray:
    return np.stack([v, np.sign(v) * (np.abs(v) > STICKS), np.ones_like(v)], axis=-1)


def _every(values: FloatArray, recorded: Recorded) -> FloatArray:
    time = recorded.log.time
    inside = np.flatnonzero((time > time[0] + ENDS) & (time < time[-1] - ENDS))
    return values[inside[::max(1, round(1.0 / (np.median(np.diff(time)) * LOOKS)))]]


def _looked_at(recorded: Recorded) -> tuple[tuple[FloatArray, ...], FloatArray]:
    """Return filtered states (3 of (K, n)) and the effort (K, n) filtered likewise."""
    log = recorded.log
    step = float(np.median(np.diff(log.time)))
    even = np.arange(log.time[0], log.time[-1], step)
    b, a = butter(4, min(CUTOFF, 0.4 / step) * 2.0 * step)

    def smooth(values: FloatArray) -> FloatArray:
        return filtfilt(b, a, np.column_stack([
            np.interp(even, log.time, one) for one in values.T]), axis=0)

    q = smooth(log.position)
    v = np.gradient(q, step, axis=0)
    parts = (q, v, np.gradient(v, step, axis=0), smooth(log.effort))
    rows = [np.column_stack([np.interp(log.time, even, one) for one in part.T]) for part in parts]
    *states, effort = (_every(part, recorded) for part in rows)
    return tuple(states), effort


#: seeds of the two motions to judge on, and when they begin [s]
JUDGED = ((901, 150.0), (902, 300.0))
#: a joint moves above this share of its speed
MOVES = 0.05
#: a wave is that of the gear where their orders differ by less than this share, or by less than
#: half a wave over the way of the joint
SAME_ORDER = 0.02
#: names of parameters of links and rotors
RIGID = re.compile(r'(m[xyz]?|I[xyz][xyz]|Ia)\d+')


@dataclass(frozen=True, eq=False)
class Case:
    """One arm identified from one motion, judged on two others; arrays are (n,).

    ``product``, ``plain`` and ``nominal`` are errors over the effort on the new motions, of the
    package, of plain least squares and of nominal links with fitted friction, ``moving`` those of
    the package in motion; ``got`` and ``promised`` root mean square errors [N m].
    ``feed_forward`` is the verdict. ``static`` is the promised error of the static effort [N m],
    ``static_error`` and ``weight_error`` the true 99th percentile with and without cables and
    offset. ``covered`` is the share of new motion within its 95 % interval; ``waves`` counts the
    ripple that is named, that of these which is there, and all that is there; ``contacts`` are
    those in ``watched`` seconds without any; ``definite`` is the share of poses with a positive
    definite mass matrix.
    """

    arm: str
    motion: str
    seed: int
    joints: tuple[str, ...]
    rate: float
    product: FloatArray
    plain: FloatArray
    nominal: FloatArray
    moving: FloatArray
    got: FloatArray
    promised: FloatArray
    feed_forward: tuple[str, ...]
    static: FloatArray
    static_error: FloatArray
    weight_error: FloatArray
    covered: FloatArray
    waves: tuple[int, int, int]
    contacts: int
    watched: float
    refused: tuple[str, ...]
    definite: float
    laws: tuple[str, ...]
    seconds: float


def training_of(plant: Plant, motion: str, seed: int) -> Recorded:
    """Return a recording of a plant to train on: motion and noise are drawn from the ``seed``."""
    return plant.record(TRAINING[motion](plant.arm, np.random.default_rng((seed, 11))), seed)


def run_case(name: str, motion: str, seed: int) -> Case:
    """Identify an arm from a motion with default settings, and judge it on two others.

    Raises DynIdError where the package makes no model of it.
    """
    arm = load_arm(name)
    plant = Plant(arm, seed)
    training = training_of(plant, motion, seed)
    tests = [plant.record(one, *when) for one, when in zip(judging(arm, seed), JUDGED)]
    plain, nominal = PlainFit(arm, training).errors(tests)
    started = time.perf_counter()
    result = identify(arm.robot, [training.log])
    seconds = time.perf_counter() - started
    model = result.model
    validation = validate(model, [one.log for one in tests])
    scores = [validation.model['all'][joint] for joint in model.joints]
    moving = [validation.model['motion'][joint].relative_error for joint in model.joints]
    contacts, watched = _contacts(model, tests)
    return Case(
        name, motion, seed, model.joints, plant.rate,
        np.array([one.relative_error for one in scores]), plain, nominal, np.array(moving),
        np.array([one.rmse for one in scores]), result.held_out.promise[:arm.n],
        tuple(one.word for one in _uses(result, FEED_FORWARD)),
        *_static(result, plant, training), _covered(model, validation.traces, tests),
        _waves(model, plant, training), contacts, watched, tuple(model.not_identified),
        _definite(model, arm, seed), model.structure.described, seconds)


def _uses(result: Any, use: str) -> list[Any]:
    return [one for joint in result.verdict.joints for one in joint.uses if one.use == use]


def _static(
    result: Any, plant: Plant, training: Recorded
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the promised error (n,) of the static effort, and two true 99th percentiles.

    In poses within the ranges of the training: of weight, cables and offset, and of weight alone.
    """
    arm, q = plant.arm, training.states[0]
    poses = np.random.default_rng(3).uniform(q.min(axis=0), q.max(axis=0), (400, arm.n))
    rest = np.zeros_like(poses)
    errors = [result.model.inverse(poses, rest, rest) - plant.gravity(poses),
              result.model.gravity(poses) - plant.weight(poses)]
    promised = [re.search(r'error of ([\d.e+-]+) N', one.words) for one in _uses(result, GRAVITY)]
    return (np.array([float(match.group(1)) if match else np.nan for match in promised]),
            *(np.percentile(np.abs(one), 99, axis=0) for one in errors))


def _covered(model: Any, traces: Sequence[Trace], tests: Sequence[Recorded]) -> FloatArray:
    """Return the share (n,) of samples in motion whose effort is in its 95 % interval."""
    hits, count = np.zeros(model.robot.n), np.zeros(model.robot.n)
    for trace, recorded in zip(traces, tests, strict=True):
        shown = np.arange(0, len(trace.time), max(1, len(trace.time) // 400))
        rows = np.searchsorted(recorded.log.time, trace.time[shown] - 1e-6)
        q, v, a = (one[rows] for one in recorded.states)
        away = np.abs(recorded.effort[rows] - trace.predicted[shown])
        inside = away <= effort_intervals(model, q, v, a)
        moves = np.abs(v) > MOVES * np.abs(v).max(axis=0)
        hits += (inside & moves).sum(axis=0)
        count += moves.sum(axis=0)
    return hits / np.maximum(count, 1.0)


def _waves(model: Any, plant: Plant, training: Recorded) -> tuple[int, int, int]:
    resolved = np.maximum(SAME_ORDER * plant.orders, np.pi / np.ptp(training.states[0], axis=0))
    away = [(abs(plant.orders[j] - wave.order), plant.orders[j], resolved[j])
            for ripple in model.record.ripple for wave in ripple.waves
            for j in [model.joints.index(ripple.joint)]]
    right = sum(order > 0.0 and distance < reach for distance, order, reach in away)
    return len(away), int(right), int(np.count_nonzero(plant.orders))


def _contacts(model: Any, tests: Sequence[Recorded]) -> tuple[int, float]:
    if model.noise_levels is None:
        return 0, 0.0
    events = contact_events(model, [one.log for one in tests])
    return sum(len(one.contacts) for one in events), \
        sum(float(one.time[-1] - one.time[0]) for one in events)


def _definite(model: Any, arm: Arm, seed: int) -> float:
    draw = np.random.default_rng(seed)
    poses = arm.middle + draw.uniform(-1.0, 1.0, (300, arm.n)) * arm.half
    return float(np.mean(np.linalg.eigvalsh(model.mass_matrix(poses)).min(axis=1) > 0.0))


def covered_parameters(name: str, motion: str, seed: int, repetitions: int) -> FloatArray:
    """Return the share of repetitions (b,) in which the interval of a parameter holds its truth.

    One plant, again and again with another motion of its kind and other noise; the base parameters
    of links and rotors that are in the model every time.
    """
    plant = Plant(load_arm(name), seed)
    truth, hits = plant.standard(), dict[str, list[bool]]()
    for repetition in range(repetitions):
        training = training_of(plant, motion, 1000 * seed + repetition)
        model = identify(plant.arm.robot, [training.log]).model
        values = model.reduction.base([truth.get(name, 0.0) for name in model.reduction.standard])
        inside = np.abs(model.values - values) <= half_intervals(model)
        for parameter, hit in zip(model.names, inside.tolist(), strict=True):
            if RIGID.fullmatch(parameter):
                hits.setdefault(parameter, []).append(hit)
    return np.array([np.mean(one) for one in hits.values() if len(one) == repetitions])


#: "good for feed-forward" is wrong above this error in motion
FEED_FORWARD_ERROR = 0.2
HEADER = ('joint', 'product %', 'plain %', 'nominal %', 'over plain', 'got', 'promised', 'ratio',
          'feed-forward', 'static', 'true', 'weight', 'covered %', 'law')
WIDTHS = (20, 9, 8, 9, 10, 9, 9, 6, 12, 9, 9, 9, 9, 0)


def _row(cells: Sequence[object]) -> str:
    texts = [f'{one:.3g}' if isinstance(one, float) else str(one) for one in cells]
    return '  ' + ' '.join(
        text[:width or None].ljust(width) if i in (0, len(texts) - 1) else text.rjust(width)
        for i, (text, width) in enumerate(zip(texts, WIDTHS, strict=True)))


def case_lines(case: Case) -> Iterator[str]:
    """Yield what a case shows, one row per joint."""
    named, right, there = case.waves
    yield (f'{case.arm} {case.motion} seed {case.seed} {case.rate:g} Hz: {case.seconds:.1f} s, '
           f'{named} waves named, {right} of the {there} there; {case.contacts} false contacts in '
           f'{case.watched:.0f} s; mass matrix definite in {100 * case.definite:.0f} %; refused: '
           f'{", ".join(case.refused) or "none"}')
    yield _row(HEADER)
    for j, joint in enumerate(case.joints):
        yield _row((
            joint, 100.0 * case.product[j], 100.0 * case.plain[j], 100.0 * case.nominal[j],
            case.product[j] / case.plain[j], case.got[j], case.promised[j],
            case.got[j] / case.promised[j], case.feed_forward[j], case.static[j],
            case.static_error[j], case.weight_error[j], 100.0 * case.covered[j], case.laws[j]))


@dataclass(frozen=True, eq=False)
class Summary:
    """The figures of all joints of some cases together.

    ``over_plain``, ``over_nominal``, ``over_better`` (of these two alternatives) and ``promise``
    (got over promised) are ratios (joints,),
    ``covered`` shares (joints,); ``good`` joints are "good for feed-forward", of which ``wrong``
    are not. ``static`` and ``weight`` are the shares of joints whose static effort, and weight
    alone, is off by more than is said; ``waves`` are named, right and there.
    """

    cases: int
    over_plain: FloatArray
    over_nominal: FloatArray
    over_better: FloatArray
    promise: FloatArray
    good: int
    wrong: int
    static: float
    weight: float
    covered: FloatArray
    waves: tuple[int, int, int]
    contacts: int
    watched: float
    refused: int
    indefinite: int

    @classmethod
    def of(cls, cases: Sequence[Case]) -> Summary:
        """Sum up some cases."""
        def each(of: Callable[[Case], Sequence[float] | FloatArray]) -> FloatArray:
            return np.concatenate([np.asarray(of(case), dtype=float) for case in cases])

        good = each(lambda c: [word == 'good' for word in c.feed_forward]) > 0.5
        static, weight = (each(of) for of in (
            lambda c: c.static_error / c.static, lambda c: c.weight_error / c.static))
        judged = np.isfinite(static)
        named, right, there = np.sum([case.waves for case in cases], axis=0).tolist()
        return cls(
            len(cases), each(lambda c: c.product / c.plain), each(lambda c: c.product / c.nominal),
            each(lambda c: c.product / np.minimum(c.plain, c.nominal)),
            each(lambda c: c.got / c.promised), int(good.sum()),
            int((good & (each(lambda c: c.moving) > FEED_FORWARD_ERROR)).sum()),
            float(np.mean(static[judged] > 1.0)), float(np.mean(weight[judged] > 1.0)),
            each(lambda c: c.covered), (named, right, there),
            sum(case.contacts for case in cases), sum(case.watched for case in cases),
            sum(len(case.refused) for case in cases), sum(case.definite < 1.0 for case in cases))

    def lines(self, title: str) -> Iterator[str]:
        """Yield the tables."""
        yield f'{title}: {self.cases} recordings, {len(self.promise)} joints'
        yield f'  {"":36}{"median":>11}{"90 %":>11}{"largest":>11}'
        for name, values in (('error over plain least squares', self.over_plain),
                             ('error over nominal links + friction', self.over_nominal),
                             ('error over the better of these', self.over_better),
                             ('error got over promised', self.promise)):
            figures = (*np.percentile(values, (50, 90)), values.max())
            yield f'  {name:36}' + ''.join(f'{one:11.3g}' for one in figures)
        named, right, there = self.waves
        for name, figure in (
                ('above 1.1 of plain, of the better',
                 f'{np.count_nonzero(self.over_plain > 1.1)}, '
                 f'{np.count_nonzero(self.over_better > 1.1)} of {len(self.over_plain)}'),
                ('good for feed-forward, but is not', f'{self.wrong} of {self.good}'),
                ('static effort beyond what is said', f'{100 * self.static:.0f} %'),
                ('weight beyond what is said', f'{100 * self.weight:.0f} %'),
                ('95 % intervals of effort hold in', f'{100 * self.covered.mean():.0f} %, '
                 f'{100 * self.covered.min():.0f} to {100 * self.covered.max():.0f} %'),
                ('ripple waves', f'{named} named, {right} right, {there} there'),
                ('false contacts', f'{self.contacts} in {self.watched:.0f} s'),
                ('joints refused', self.refused),
                ('mass matrix not definite', f'{self.indefinite} of {self.cases}')):
            yield f'  {name:36}{figure}'


def write_line(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f'{text}\n')
    sys.stdout.flush()


def run_cases(
    arms: Sequence[str], motions: Sequence[str], seeds: Sequence[int]
) -> tuple[list[Case], list[str]]:
    """Run and print all cases, and the tables by kind of motion; return them, and what failed."""
    cases, failures = [], []
    for motion in motions:
        for name in arms:
            for seed in seeds:
                try:
                    cases.append(run_case(name, motion, seed))
                except DynIdError as error:
                    failures.append(f'{name} {motion} seed {seed}: {error}')
                    write_line(failures[-1])
                    continue
                for line in case_lines(cases[-1]):
                    write_line(line)
    for title, chosen in (*((motion, [motion]) for motion in motions), ('all motions', motions)):
        some = [case for case in cases if case.motion in chosen]
        for line in Summary.of(some).lines(title) if some else ():
            write_line(line)
    return cases, failures


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--arms', default='ur10e,scara', help=f'all, or {",".join(available())}')
    parser.add_argument('--motions', default='repeated,pick', help=f'all, or {",".join(TRAINING)}')
    parser.add_argument('--seeds', default='1', help='of the plants, such as 1,2,3')
    parser.add_argument('--repetitions', type=int, default=0,
                        help='of each case, for the intervals of parameters alone')
    given = parser.parse_args()
    warnings.simplefilter('ignore')
    arms = available() if given.arms == 'all' else given.arms.split(',')
    motions = tuple(TRAINING) if given.motions == 'all' else given.motions.split(',')
    seeds = [int(seed) for seed in given.seeds.split(',')]
    if not given.repetitions:
        run_cases(arms, motions, seeds)
        return
    for name in arms:
        for motion in motions:
            shares = 100.0 * covered_parameters(name, motion, seeds[0], given.repetitions)
            write_line(f'{name} {motion}: 95 % intervals of {len(shares)} parameters of links and '
                       f'rotors hold in {shares.mean():.0f} % of {given.repetitions}, the least '
                       f'in {shares.min():.0f} %')


if __name__ == '__main__':
    main()
