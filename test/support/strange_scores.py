"""What identification makes of the strange plant, against plain least squares of its own.

    PYTHONPATH=FOLDERS_OF_EXAMPLE_ROBOT_DATA_AND_PYBULLET_DATA python test/support/strange_scores.py \
        --arms ur5,panda --motions repeated,pick --seeds 1
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import butter, filtfilt
from strange_arms import Arm, available, inverse_dynamics, load_arm
from strange_motions import TRAINING, judging
from strange_plant import Plant, Recorded, regressor

from robot_dynid import identify
from robot_dynid.errors import DynIdError
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.identified.by_parameters import effort_by_parameters
from robot_dynid.identified.suitability import FEED_FORWARD, GRAVITY
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import validate

#: samples per second that plain least squares looks at, and its low-pass filter [Hz]
LOOKS, CUTOFF = 100.0, 10.0
#: seeds of the two motions to judge on, and when they begin [s]
JUDGED = ((901, 150.0), (902, 300.0))


@dataclass(frozen=True, eq=False)
class Case:
    """One arm identified from one motion, judged on two others; arrays are (n,).

    ``product``, ``plain`` and ``nominal`` are errors over the effort on the new motions; ``got``
    and ``promised`` root mean square errors [N m]. ``feed_forward`` is the verdict, ``static`` the
    promised error of the static effort [N m] and ``static_error`` the true 99th percentile.
    ``covered`` is the share of new motion within its 95 % interval, ``waves`` the ripple (said,
    of these truly there, truly there), ``contacts`` the false ones in ``watched`` seconds.
    """

    arm: str
    motion: str
    seed: int
    joints: tuple[str, ...]
    rate: float
    product: FloatArray
    plain: FloatArray
    nominal: FloatArray
    got: FloatArray
    promised: FloatArray
    feed_forward: tuple[str, ...]
    moving_error: FloatArray
    static: FloatArray
    static_error: FloatArray
    covered: FloatArray
    waves: FloatArray
    contacts: int
    watched: float
    refused: tuple[str, ...]
    definite: float
    laws: tuple[str, ...]
    seconds: float


class PlainFit:
    """Weighted least squares on Pinocchio's regressor, rotors, Coulomb, viscous, offset."""

    def __init__(self, arm: Arm, recorded: Recorded) -> None:
        self.arm = arm
        states, effort = _looked_at(recorded)
        columns = self._columns(states)
        n, width = arm.n, columns.shape[2]
        rows = columns.reshape(-1, width)
        scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-12)
        weights = np.ones(n)
        for _ in range(2):
            weighted = (columns / scale * weights[:, None]).reshape(-1, width)
            values = np.linalg.lstsq(weighted, (effort * weights).ravel(), rcond=1e-8)[0] / scale
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
        measured, plain, nominal = [], [], []
        for recorded in recordings:
            states, _ = _looked_at(recorded)
            measured.append(_every(recorded.log.effort, recorded))
            plain.append(self._columns(states) @ self.values)
            links = inverse_dynamics(self.arm.nominal, *states)
            nominal.append(links + np.column_stack([
                _friction_columns(states[1][:, j]) @ self.friction[j]
                for j in range(self.arm.n)]))
        truth = np.vstack(measured)
        size = np.linalg.norm(truth, axis=0)
        return tuple(np.linalg.norm(np.vstack(one) - truth, axis=0) / size
                     for one in (plain, nominal))


def _friction_columns(v: FloatArray) -> FloatArray:
    return np.stack([v, np.sign(v) * (np.abs(v) > 1e-3), np.ones_like(v)], axis=-1)


def _every(values: FloatArray, recorded: Recorded) -> FloatArray:
    rate = 1.0 / np.median(np.diff(recorded.log.time))
    return values[::max(1, round(rate / LOOKS))]


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


def run_case(name: str, motion: str, seed: int) -> Case:
    """Identify an arm from a motion with default settings, and judge it on two others."""
    arm = load_arm(name)
    plant = Plant(arm, seed)
    training = plant.record(
        TRAINING[motion](arm, np.random.default_rng((seed, 11))), seed)
    tests = [plant.record(one, *when) for one, when in zip(judging(arm, seed), JUDGED)]
    plain, nominal = PlainFit(arm, training).errors(tests)
    started = time.perf_counter()
    result = identify(arm.robot, [training.log])
    seconds = time.perf_counter() - started
    model = result.model
    validation = validate(model, [one.log for one in tests])
    scores, moving = validation.model['all'], validation.model['motion']
    known, true_static = _static(result, plant, training)
    contacts, watched = _contacts(model, tests)
    return Case(
        name, motion, seed, arm.robot.joints, plant.rate,
        np.array([scores[j].relative_error for j in arm.robot.joints]), plain, nominal,
        np.array([scores[j].rmse for j in arm.robot.joints]),
        np.sqrt(result.held_out.raw[:arm.n]), _words(result, FEED_FORWARD),
        np.array([moving[j].relative_error for j in arm.robot.joints]), known, true_static,
        _covered(model, plant, tests), _waves(model, plant), contacts, watched,
        tuple(model.not_identified), _definite(model, arm, seed), model.structure.described,
        seconds)


def _words(result: Any, use: str) -> tuple[str, ...]:
    return tuple(next(one.word for one in joint.uses if one.use == use)
                 for joint in result.verdict.joints)


def _static(result: Any, plant: Plant, training: Recorded) -> tuple[FloatArray, FloatArray]:
    """Return the promised error (n,) of the static effort, and the true 99th percentile."""
    arm, q = plant.arm, training.states[0]
    draw = np.random.default_rng(3)
    poses = draw.uniform(q.min(axis=0), q.max(axis=0), (400, arm.n))
    rest = np.zeros_like(poses)
    error = np.abs(result.model.inverse(poses, rest, rest) - plant.gravity(poses))
    known = np.full(arm.n, np.nan)
    for j, joint in enumerate(result.verdict.joints):
        words = next(one.words for one in joint.uses if one.use == GRAVITY)
        match = re.search(r'known to ([\d.e+-]+) N', words)
        known[j] = float(match.group(1)) if match else np.nan
    return known, np.percentile(error, 99, axis=0)


def _covered(model: Any, plant: Plant, tests: Sequence[Recorded]) -> FloatArray:
    """Return the share (n,) of moving samples whose true effort is in its 95 % interval."""
    hits, count = np.zeros(plant.arm.n), np.zeros(plant.arm.n)
    factor = interval_factor(model.record.degrees_of_freedom or np.inf)
    for recorded in tests:
        pace = max(1, len(recorded.effort) // 400)
        q, v, a = (one[::pace] for one in recorded.states)
        columns = effort_by_parameters(model, q, v, a)
        half = factor * np.linalg.norm(columns @ model.covariance_factor.T, axis=2)
        inside = np.abs(recorded.effort[::pace] - model.inverse(q, v, a)) <= half
        moves = np.abs(v) > 0.05 * plant.arm.speed
        hits += (inside & moves).sum(axis=0)
        count += moves.sum(axis=0)
    return hits / np.maximum(count, 1.0)


def _waves(model: Any, plant: Plant) -> FloatArray:
    said, right = 0, 0
    for ripple in model.record.ripple:
        j = model.robot.joints.index(ripple.joint)
        said += len(ripple.waves)
        right += sum(bool(plant.orders[j]) and abs(w.order / plant.orders[j] - 1.0) < 0.02
                     for w in ripple.waves)
    return np.array([said, right, np.count_nonzero(plant.orders)])


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


def _quantiles(values: FloatArray) -> str:
    values = values[np.isfinite(values)]
    if not len(values):
        return 'none'
    return ' '.join(f'{one:.3g}' for one in (*np.percentile(values, (50, 90)), values.max()))


def show_case(case: Case) -> None:
    """Print one row per joint."""
    said, right, there = case.waves.astype(int)
    print(f'{case.arm} {case.motion} seed {case.seed} {case.rate:g} Hz: {case.seconds:.1f} s, '
          f'waves {said} said {right} right of {there}, contacts {case.contacts} in '
          f'{case.watched:.0f} s, definite {case.definite:.2f}, refused '
          f'{", ".join(case.refused) or "none"}')
    print('  joint                 product  plain nominal %  ratio | got    promised  ratio |'
          ' feed-forward | static known error | covered %  law')
    for j, joint in enumerate(case.joints):
        print(f'  {joint:20.20} {100 * case.product[j]:8.1f} {100 * case.plain[j]:6.1f} '
              f'{100 * case.nominal[j]:7.1f}   {case.product[j] / case.plain[j]:6.2f} | '
              f'{case.got[j]:7.3g} {case.promised[j]:7.3g} '
              f'{case.got[j] / case.promised[j]:6.2f} | {case.feed_forward[j]:12} | '
              f'{case.static[j]:7.3g} {case.static_error[j]:7.3g} | {100 * case.covered[j]:5.0f}'
              f'   {case.laws[j] if j < len(case.laws) else ""}', flush=True)


def summary(cases: Sequence[Case]) -> dict[str, Any]:
    """Return the figures of the tables: of all joints of the cases together."""
    def each(of: Any) -> FloatArray:
        return np.concatenate([np.asarray(of(case)) for case in cases])

    good = each(lambda c: [word == 'good' for word in c.feed_forward])
    wrong = good & (each(lambda c: c.moving_error) > 0.2)
    static = each(lambda c: c.static_error / c.static)
    waves = np.sum([case.waves for case in cases], axis=0).astype(int)
    return {
        'joints': len(good),
        'product over plain': each(lambda c: c.product / c.plain),
        'product over nominal': each(lambda c: c.product / c.nominal),
        'got over promised': each(lambda c: c.got / c.promised),
        'good for feed-forward': int(good.sum()),
        'of these wrong': int(wrong.sum()),
        'static beyond promise': float(np.mean(static[np.isfinite(static)] > 1.0)),
        'covered': each(lambda c: c.covered),
        'waves said, right, there': tuple(map(int, waves)),
        'false contacts': sum(case.contacts for case in cases),
        'watched': sum(case.watched for case in cases),
        'refused': sum(len(case.refused) for case in cases),
        'indefinite': sum(case.definite < 1.0 for case in cases),
    }


def show_summary(title: str, cases: Sequence[Case]) -> dict[str, Any]:
    """Print the tables of some cases, and return their figures."""
    figures = summary(cases)
    ratios = figures['product over plain']
    print(f'\n{title}: {len(cases)} recordings, {figures["joints"]} joints '
          '(median, 90 %, largest)')
    for name in ('product over plain', 'product over nominal', 'got over promised'):
        print(f'  {name:28} {_quantiles(figures[name])}')
    print(f'  {"above 1.1 of plain":28} {np.count_nonzero(ratios > 1.1)} of {len(ratios)}')
    print(f'  {"good for feed-forward":28} {figures["good for feed-forward"]}, of these above '
          f'20 %: {figures["of these wrong"]}')
    print(f'  {"static error beyond promise":28} {100 * figures["static beyond promise"]:.0f} %')
    covered = 100.0 * figures['covered']
    print(f'  {"95 % intervals hold in %":28} mean {np.mean(covered):.0f}, least '
          f'{covered.min():.0f}')
    for name in ('waves said, right, there', 'false contacts', 'watched', 'refused',
                 'indefinite'):
        print(f'  {name:28} {figures[name]}', flush=True)
    return figures


def run(arms: Sequence[str], motions: Sequence[str], seeds: Sequence[int]) -> list[Case]:
    """Run and print all cases; what the package refuses is printed."""
    cases = []
    for name in arms:
        for motion in motions:
            for seed in seeds:
                try:
                    cases.append(run_case(name, motion, seed))
                except DynIdError as error:
                    print(f'{name} {motion} seed {seed}: {type(error).__name__}: {error}',
                          flush=True)
                else:
                    show_case(cases[-1])
    return cases


def main() -> None:
    """Run what the command line names, and print the tables by kind of motion."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--arms', default='ur10e,scara', help=f'of {", ".join(available())}')
    parser.add_argument('--motions', default='repeated,pick', help=f'of {", ".join(TRAINING)}')
    parser.add_argument('--seeds', default='1', help='plants, such as 1,2,3')
    given = parser.parse_args()
    warnings.simplefilter('ignore')
    arms = available() if given.arms == 'all' else given.arms.split(',')
    motions = tuple(TRAINING) if given.motions == 'all' else given.motions.split(',')
    cases = run(arms, motions, [int(seed) for seed in given.seeds.split(',')])
    for motion in motions:
        some = [case for case in cases if case.motion == motion]
        if some:
            show_summary(motion, some)
    if cases:
        show_summary('all', cases)


if __name__ == '__main__':
    main()
