"""identified/error_law.py and expected_error.py: the error to expect on a planned motion."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from identified_models import nominal_model
from numpy.typing import NDArray
from strange_gears import recording as strange_recording
from strange_plant import TRAINING, Motion, Plant, judging, load_arm

from robot_dynid import identify, identify_payload, load_log, load_robot
from robot_dynid.effects.links import AttachedBody
from robot_dynid.errors import ModelError
from robot_dynid.identified.error_law import ErrorLaw, learn_error_law
from robot_dynid.identified.expected_error import expected_errors
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate

#: least share of 95 % intervals that hold, of 42 pairs of recordings of two joints each and more
HELD = 0.9
#: least length of a window in one half of a range, and what is left out at both ends [s]
SHORTEST, CLEAR = 2.5, 0.05
#: seconds and speeds of motions of the strange arm; the first two are fitted
STRANGE_MOTIONS = ((5.0, 0.5), (8.0, 0.6), (6.0, 0.35), (5.0, 0.8))
#: motions that other arms are identified from
STRANGE_TRAINING = ('long', 'random', 'pick')
#: a law that knows of no cause
EVEN = ErrorLaw((0.04,) * 3, (0.0,) * 3, (0.0,) * 3, 0.1, 7.0)
#: times its baseline that the error of a joint may be in poses never fitted
WORSE = 1.05
#: mass of the load of the UR10e [kg]
WEIGHED = 2.805
#: windows of the only recording of the TX40: of the fit, and held out
TX40_WINDOWS = ((('[:5.1]',), '[5.2:]'), (('[2.6:]',), '[:2.5]'),
                (('[:2.5]', '[5.2:]'), '[2.6:5.1]'))


def recorded(
    rest: float, share: float, slow: float = 0.0, seconds: float = 60.0, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return time, errors and inertial effort of a joint, and when it is slow."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 0.01)
    near = np.sin(2.0 * time) > 0.7
    inertia = (1.0 + np.sin(time / 5.0)) * rng.normal(size=len(time))
    error = rng.normal(size=len(time)) * np.sqrt(rest + share * inertia ** 2 + slow * near)
    return time, error[:, None], inertia[:, None], near[:, None]


def states(
    count: int = 400, size: float = 1.0, held: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return times and states along a motion of three joints, with accelerations of ``size``.

    The first joint may be ``held``.
    """
    time = np.linspace(0.0, 2.0 * np.pi, count)
    phase = time[:, None] + np.arange(3.0)
    motion = np.array([np.sin(phase), np.cos(phase), -size * np.sin(phase)])
    motion[:, :, 0] *= not held
    return time, *motion


def test_refused_joints_are_left_out() -> None:
    model = replace(with_law(EVEN),
                    not_identified=('joint_2',))
    assert [one.joint for one in expected_errors(model, *states())] == ['joint_1', 'joint_3']


def with_law(
    law: ErrorLaw | None, std: float = 0.0, viscous: float = 0.0, coulomb: float = 0.0
) -> IdentifiedModel:
    """Return a model whose parameters have the deviation ``std``."""
    model = replace(nominal_model('planar_3r', viscous=viscous, coulomb=coulomb),
                    not_identified=())
    size = len(model.values)
    return replace(model, std=np.full(size, std), correlation_factor=np.eye(size),
                   record=replace(model.record, error_law=law))


def test_law_of_the_errors_is_found() -> None:
    law = learn_error_law([recorded(0.04, 0.09, 0.5, seed=seed) for seed in range(4)])
    assert law is not None
    assert law.rest[0] == pytest.approx(0.04, rel=0.15)
    assert law.share[0] == pytest.approx(0.09, rel=0.15)
    assert law.slow[0] == pytest.approx(0.5, rel=0.1)
    assert law.freedom == 7.0
    assert 0.0 < law.scatter < 0.05


def test_scatter_is_that_between_stretches() -> None:
    time, error, _, near = recorded(0.04, 0.0, seconds=64.0)
    size = np.where(time < 32.0, 1.0, 2.0)[:, None]
    law = learn_error_law([(time, size * error, np.zeros_like(error), near)])
    assert law is not None
    assert law.scatter == pytest.approx(np.std(np.log([1.0] * 4 + [2.0] * 4), ddof=1), rel=0.1)


def test_recordings_of_one_block_have_no_law() -> None:
    assert learn_error_law([recorded(0.04, 0.0, seconds=0.9)]) is None
    assert learn_error_law([]) is None


def test_blocks_are_of_a_second_and_ten_samples() -> None:
    """Of errors that are the same in each second, the law is their mean square."""
    def law(seconds: float, step: float, begin: float = 0.0) -> ErrorLaw | None:
        time = begin + np.arange(0.0, seconds - 1e-9, step)
        errors = np.sqrt(1.0 + np.floor(time - begin + 1e-9))[:, None]
        return learn_error_law([(time, errors, 0.0 * errors, np.ones(errors.shape, dtype=bool))])

    for begin in (0.0, 0.5):
        found = law(3.0, 1.0 / 16.0, begin)
        assert found is not None and found.rest == (pytest.approx(2.0),)
        assert (found.share, found.slow) == ((0.0,), (0.0,))  # never swift
        short = law(2.5, 1.0 / 16.0, begin)  # the last block has eight samples
        assert short is not None and short.rest == (pytest.approx(1.5),)
    assert law(2.0, 1.0 / 16.0) is not None and law(1.5, 1.0 / 16.0) is None
    assert law(9.0, 1.0 / 9.0) is None and law(9.0, 1.0 / 10.0) is not None


@pytest.mark.parametrize(('near', 'rest', 'slow'), [(102, 1.0, 8.0), (103, 7.4375, 0.0)])
def test_a_fifth_of_swift_motion_tells_the_errors_of_slow_motion_apart(
    near: int, rest: float, slow: float
) -> None:
    rows = np.arange(3 * 128)
    is_near = (rows % 128 < near)[:, None]
    errors = np.where(is_near, 3.0, 1.0)
    law = learn_error_law([(rows / 128.0, errors, np.zeros(errors.shape), is_near)])
    assert law is not None
    assert (law.rest, law.share, law.slow) == ((pytest.approx(rest),), (0.0,), (
        pytest.approx(slow),))


def test_expected_error_grows_with_the_acceleration() -> None:
    law = ErrorLaw((0.04,) * 3, (0.01,) * 3, (0.0,) * 3, 0.1, 7.0)
    model = with_law(law)
    slow, fast = (expected_errors(model, *states(size=size)) for size in (0.0, 10.0))
    _, q, qd, qdd = states(size=10.0)
    inertia = model.frictionless_effort(q, qd, qdd) - model.frictionless_effort(q, 0 * q, 0 * q)
    for j, (one, other) in enumerate(zip(slow, fast, strict=True)):
        assert other.rmse == pytest.approx(np.sqrt(0.04 + 0.01 * np.mean(inertia[:, j] ** 2)))
        assert one.rmse < other.rmse
        factor = np.exp(2.3646 * np.sqrt(2.0) * 0.1)
        assert other.high / other.rmse == pytest.approx(factor, rel=1e-4)
        assert other.rmse / other.low == pytest.approx(factor, rel=1e-4)


def test_uncertain_parameters_raise_all_but_the_lower_end() -> None:
    law = EVEN
    sure, unsure = (expected_errors(with_law(law, std), *states()) for std in (0.0, 0.3))
    _, q, qd, qdd = states()
    model = with_law(law)
    rows, effort = effort_by_parameters(model, q, qd, qdd), model.inverse(q, qd, qdd)
    for j, (one, other) in enumerate(zip(sure, unsure, strict=True)):
        assert one.rmse == pytest.approx(0.2) and other.low == pytest.approx(one.low)
        variance = 0.3**2 * np.mean(np.sum(rows[:, j]**2, axis=1))
        assert other.rmse == pytest.approx(np.sqrt(0.04 + variance))
        assert other.high / other.rmse == pytest.approx(one.high / one.rmse)
        assert other.effort == pytest.approx(np.sqrt(np.mean(effort[:, j]**2)))


def test_friction_that_changes_from_day_to_day_raises_the_expected_error() -> None:
    """By what is usual, if one recording tells nothing; by more, if more was seen."""
    none, usual = (with_law(EVEN, viscous=viscous) for viscous in (0.0, 2.0))
    more = replace(usual, record=replace(
        usual.record, recordings=('a', 'b', 'c'), friction_spread={'viscous': 0.3}))
    first, second, third = (expected_errors(model, *states()) for model in (none, usual, more))
    speed = np.mean(states()[2]**2, axis=0)
    seen = (4.0 * 0.05**2 + 2.0 * 3.0 * 0.3**2) / 10.0  # two days more of three axes
    for one, other, last, square in zip(first, second, third, speed, strict=True):
        assert [found.rmse for found in (one, other, last)] == pytest.approx(
            [np.sqrt(0.04 + share * 2.0**2 * square) for share in (0.0, 0.05**2, seen)])
        assert one.low == other.low == last.low


def test_dry_friction_is_unknown_where_a_joint_is_held() -> None:
    """The error that slow motion has is expected; at most, dry friction has any value at rest."""
    law = replace(EVEN, slow=(0.05,) * 3)
    model = with_law(law, coulomb=1.5)
    moving, held = (expected_errors(model, *states(held=one)) for one in (False, True))
    assert held[0].rmse == pytest.approx(np.sqrt(0.09))
    assert held[0].high == pytest.approx(held[0].rmse / held[0].low * np.sqrt(
        0.04 + 1.5**2 / 3.0), rel=1e-3)
    for one in moving:
        assert np.sqrt(0.04) < one.rmse < np.sqrt(0.09)
        assert one.high / one.rmse == pytest.approx(one.rmse / one.low, rel=0.1)


def test_models_without_the_law_are_named() -> None:
    with pytest.raises(ModelError, match='identify it again'):
        expected_errors(with_law(None), *states())


def held(
    model: IdentifiedModel, log: RawLog, payload: FloatArray | None = None
) -> tuple[list[bool], FloatArray]:
    """Return whether the RMSE (n,) on a recording is inside the interval for its motion.

    And the relative errors (n,) [%]. ``payload`` (10,) are the parameters of one on the last link.
    """
    trace = validate(model, [log]).traces[0]
    assert trace.position is not None and trace.velocity is not None
    time = np.arange(trace.time[0], trace.time[-1], 0.01)
    q, qd = (np.array([np.interp(time, trace.time, column) for column in of.T]).T
             for of in (trace.position, trace.velocity))
    expected = expected_errors(model, time, q, qd, np.gradient(qd, time, axis=0))
    measured = trace.measured[:, :q.shape[1]]
    error = measured - trace.predicted[:, :q.shape[1]]
    if payload is not None:
        samples = prepare(model.robot, repair(model.robot, log), model.preprocessing)
        efforts = np.einsum('jkt,k->jt', AttachedBody.on(model.robot, '').columns(samples.moved),
                            payload)
        error -= np.array([np.interp(trace.time, samples.time, one) for one in efforts]).T
    known = np.isfinite(error).all(axis=1)
    rmse, size = (np.sqrt(np.mean(of[known]**2, axis=0)) for of in (error, measured))
    return ([one.low < found < one.high for one, found in zip(expected, rmse, strict=True)],
            100.0 * rmse / size)


@pytest.mark.soak
def test_intervals_hold_on_other_recordings_of_real_arms(shared_data: Path) -> None:
    robot, inside = load_robot('ur10e'), dict[str, list[bool]]()
    logs = [load_log(path, robot) for folder in ('train', 'test')
            for path in sorted((shared_data / 'ur10e' / folder).iterdir())]
    for log in logs:
        model = identify(robot, [log]).model
        for other in logs:
            if other is not log:
                inside.setdefault('UR10e', []).extend(held(model, other)[0])
    robot, path = load_robot('tx40'), shared_data / 'tx40' / 'exciting.csv.gz'
    for fit, test in TX40_WINDOWS:
        model = identify(robot, [load_log(f'{path}{window}', robot) for window in fit]).model
        inside.setdefault('TX40', []).extend(held(model, load_log(f'{path}{test}', robot))[0])
    for arm, one in inside.items():
        sys.stdout.write(f'{arm}: {100.0 * np.mean(one):.1f} % of {len(one)} intervals hold\n')
        assert np.mean(one) >= HELD


@cache
def strange(seed: int, number: int) -> tuple[RobotModel, RawLog]:
    """Return an arm with two elastic joints that the package does not simulate, and a motion."""
    seconds, speed = STRANGE_MOTIONS[number]
    return strange_recording(
        {1: 2e4, 2: 1.5e4}, seconds, speed, seed=seed, path=100 * number + seed)


@pytest.mark.soak
def test_intervals_hold_with_elastic_joints() -> None:
    inside, soft = list[bool](), 0
    for seed, fitted in product(range(5, 11), range(2)):
        robot, log = strange(seed, fitted)
        model = identify(robot, [log]).model
        soft += len(model.elastic_joints)
        for other in set(range(len(STRANGE_MOTIONS))) - {fitted}:
            inside += held(model, strange(seed, other)[1])[0]
    sys.stdout.write(f'UR10e of six seeds, in 12 fits {soft} of 24 elastic joints shown: '
                     f'{100.0 * np.mean(inside):.1f} % of {len(inside)} intervals hold\n')
    assert soft >= 12 and np.mean(inside) >= HELD


def planned(model: IdentifiedModel, plant: Plant, motion: Motion, seed: int) -> list[bool]:
    """Return whether the RMSE (n,) on a motion is inside the interval for it as planned."""
    trace = validate(model, [plant.record(motion, seed, 100.0).log]).traces[0]
    found = np.sqrt(np.nanmean((trace.measured - trace.predicted)**2, axis=0))
    time = np.linspace(0.0, motion.duration, 2000)
    return [one.low < found[model.joints.index(one.joint)] < one.high
            for one in expected_errors(model, time, *motion.states(time))]


@pytest.mark.soak
def test_intervals_hold_for_plans_of_other_arms() -> None:
    """Friction is of no law of the package, and a program of moves is no motion of the fit."""
    inside = list[bool]()
    for name, kind, seed in product(('planar', 'stanford', 'ur10e'), STRANGE_TRAINING, (61, 62)):
        arm = load_arm(name)
        plant, generator = Plant(arm, seed), np.random.default_rng((seed, 0))
        model = identify(arm.robot, [plant.record(TRAINING[kind](arm, generator), seed).log]).model
        for number, motion in enumerate(judging(arm, seed)):
            inside += planned(model, plant, motion, 10 * seed + number)
    sys.stdout.write(f'other arms: {100.0 * np.mean(inside):.1f} % of {len(inside)} intervals '
                     'hold\n')
    assert np.mean(inside) >= HELD


def windows(path: Path, log: RawLog, joint: int, middle: float) -> dict[bool, list[str]]:
    """Return the windows of a recording with a joint above and below the ``middle`` [rad]."""
    time, above = log.time - log.time[0], log.position[:, joint] > middle
    edges = np.flatnonzero(np.diff(above, prepend=not above[0], append=not above[-1]))
    found: dict[bool, list[str]] = {True: [], False: []}
    for a, b in pairwise(edges):
        if time[b - 1] - time[a] > SHORTEST:
            found[bool(above[a])].append(
                f'{path}[{time[a] + CLEAR:.2f}:{time[b - 1] - CLEAR:.2f}]')
    return found


@pytest.mark.soak
@pytest.mark.parametrize('joint', [0, 2])
@pytest.mark.parametrize('fitted', [True, False])
def test_errors_in_the_other_half_of_a_range(
    shared_data: Path, joint: int, fitted: bool
) -> None:
    """From poses with the pan or the elbow joint above its median to those below, and back."""
    robot = load_robot('ur10e')
    paths = [path for folder in ('train', 'test')
             for path in sorted((shared_data / 'ur10e' / folder).iterdir())]
    logs = [load_log(path, robot) for path in paths]
    middle = float(np.median(np.concatenate([log.position[:, joint] for log in logs])))
    halves = [windows(path, log, joint, middle) for path, log in zip(paths, logs, strict=True)]
    inside, outside = ([load_log(one, robot) for half in halves for one in half[side]]
                       for side in (fitted, not fitted))
    model = identify(robot, inside).model
    found = validate(model, outside)
    errors, baseline = (np.array([100.0 * one.relative_error for one in of['all'].values()])
                        for of in (found.model, found.control))
    share = 100.0 * np.mean([one for log in outside for one in held(model, log)[0]])
    sys.stdout.write(f'joint {joint + 1}, fitted {"above" if fitted else "below"}: errors '
                     f'{errors.round(1)} %, baseline {baseline.round(1)} %, {share:.1f} % of the '
                     f'intervals of {len(outside)} windows hold\n')
    assert np.all(errors < WORSE * baseline)


@pytest.mark.soak
def test_errors_with_a_load_of_a_model_without(shared_data: Path) -> None:
    """A model of other motions without load; the load from one half of a motion, for the other."""
    robot, data = load_robot('ur10e'), shared_data / 'ur10e'
    motion = '20_02_19_14harm50sec'
    logs = [load_log(path, robot) for folder in ('train', 'test')
            for path in sorted((data / folder).iterdir()) if motion not in path.name]
    model = identify(robot, logs).model
    loaded, held_in_all = data / 'payload_2.805kg' / f'{motion}Load.csv.gz', list[bool]()
    for fit, test in (('[:26]', '[27:]'), ('[27:]', '[:26]')):
        payload = identify_payload(
            robot, [load_log(f'{loaded}{fit}', robot)], model=model).estimate
        inside, error = held(model, load_log(f'{loaded}{test}', robot), payload.parameters)
        _, bare = held(model, load_log(f'{data}/train/{motion}.csv.gz{test}', robot))
        sys.stdout.write(f'loaded {test}: {payload.mass:.3f} kg, errors {error.round(1)} %, '
                         f'without load {bare.round(1)} %, {sum(inside)} of 6 intervals hold\n')
        held_in_all += inside
        assert payload.mass == pytest.approx(WEIGHED, rel=0.02)
    assert np.mean(held_in_all) >= HELD
