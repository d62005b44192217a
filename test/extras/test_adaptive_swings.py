"""Adaptive sequences: as precise as they say, shorter than planned ones, honest about limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import SessionOver, design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import violations
from robot_dynid.trajectories.single_joint import SineSwing
from robot_dynid.types import Samples
from robot_dynid_extras.session.adaptive_swings import Candidate, Known, Reach, next_swings
from robot_dynid_extras.session.precision import (
    UNKNOWN,
    Precision,
    Resting,
    covariance_of,
    precision_of,
)

PLANAR = load_robot('planar_3r')
CRITERIA = design_criteria(PLANAR)
BEFORE = precision_of(CRITERIA)
STEP = 0.005


def adaptive(robot=PLANAR, criteria=CRITERIA, precision=None, **options):
    """Return the design of an adaptive sequence, after what is known with a ``precision``."""
    request = parse_request('sine-sequence', {'procedure': 'adaptive', **options})

    def plan(criteria, limits, options, rng):
        return next_swings(criteria, precision, limits, options.goal, rng)

    if precision is not None:
        request = replace(request, family=replace(request.family, plan=plan))
    return design(robot, request, criteria)


def rows_of(criteria, swing):
    """Return the regressor (n, b, N) in terms of sizes, and its variations within each second."""
    time = np.arange(0.5 * STEP, swing.duration, STEP)
    motion = swing.sample(time)
    columns = criteria.model.columns(Samples(
        swing.joints, time, motion.position, motion.velocity,
        motion.acceleration)) * precision_of(criteria).sizes[:, None]
    parts = np.split(columns, np.arange(200, len(time), 200), axis=2)
    return columns, np.concatenate(
        [part - part.mean(axis=2, keepdims=True) for part in parts], axis=2)


def deviations(criteria, swings):
    """Return the relative deviations after swings, from their stacked equations.

    Noise of every sample; what friction takes of a joint at rest is an error of one sign in all
    samples in which another one swings: it adds to the noise as a variance that does not average
    out, however many they are.
    """
    precision = precision_of(criteria)
    looked = [(swing, *rows_of(criteria, swing)) for swing in swings]
    rows = [np.eye(len(precision.names)) / UNKNOWN]
    for swing, columns, varying in looked:
        count = sum(found.shape[2] for one, found, _ in looked if one.index == swing.index)
        for i in range(len(columns)):
            noise = precision.density[i] / np.sqrt(STEP)
            rows.append(columns[i].T / noise if i == swing.index else
                        varying[i].T / np.hypot(noise, precision.held[i] * np.sqrt(count)))
        rows = [np.linalg.qr(np.vstack(rows), mode='r')]
    return np.linalg.norm(np.linalg.pinv(rows[0]), axis=1)


def test_a_swing_tells_what_its_equations_do():
    """Own effort and variations of the others, sample by sample, against those of a plan."""
    model, precision = CRITERIA.model, BEFORE
    swing = SineSwing(PLANAR.joints, 'joint_2', np.array([0.3, -0.4, 0.5]), 0.6, 0.7, 2)
    time = np.arange(0.5 * STEP, swing.duration, STEP)
    columns, varying = rows_of(CRITERIA, swing)
    found = Candidate.of(model, swing, precision)
    own = columns[1] / precision.density[1]

    def same(told, gram):
        size = np.sqrt(np.maximum(np.diag(gram), 1e-9 * np.diag(gram).max()))
        assert told / np.outer(size, size) == pytest.approx(
            gram / np.outer(size, size), abs=0.05)  # two of 50 instants are reversals

    same(found.own, own @ own.T * STEP)
    for i in (0, 2):
        same(found.resting[i], varying[i] @ varying[i].T * STEP)
    assert not found.resting[1].any()
    middle = (time > 1.0 / 0.7) & (time < swing.duration - 1.0 / 0.7)
    same(found.more, own[:, middle] @ own[:, middle].T * STEP)


def swings_of(trajectory):
    """Return the swings of a sequence."""
    return [segment for segment in trajectory.segments if isinstance(segment, SineSwing)]


@pytest.mark.parametrize('seed', [0, 1])
def test_deviations_are_those_of_the_equations(seed):
    found = adaptive(accuracy=0.3, seed=seed)
    session = found.session
    assert session.met and not session.unreachable
    worst = [row.largest_deviation for row in session.swings]
    assert worst == sorted(worst, reverse=True)
    expected = deviations(CRITERIA, swings_of(found.trajectory))
    assert worst[-1] == pytest.approx(expected.max(), rel=0.05)
    assert expected.max() < 0.9 * 0.3 * 1.05, 'a tenth is left for what is found otherwise'
    least = BEFORE.names.index(session.swings[-1].least_known)
    assert expected[least] > 0.95 * expected.max()
    assert not violations(found.trajectory.peaks(), found.limits)


@pytest.mark.parametrize(('name', 'seeds', 'share'), [('planar_3r', range(3), 0.6),
                                                      ('ur10e', range(1), 0.2)])
def test_adaptive_sequence_is_shorter_than_planned_for_equal_accuracy(name, seeds, share):
    robot = load_robot(name)
    criteria = design_criteria(robot)
    for seed in seeds:
        planned = design(robot, parse_request('sine-sequence', {'seed': seed}), criteria)
        reached = float(deviations(criteria, swings_of(planned.trajectory)).max())
        found = adaptive(robot, criteria, accuracy=reached, seed=seed)
        assert found.session.met
        assert found.trajectory.duration < share * planned.trajectory.duration


def test_adaptive_sequence_omits_what_is_already_measured():
    first = adaptive(accuracy=0.5)
    columns = deviations(CRITERIA, swings_of(first.trajectory))
    precision = BEFORE
    known = replace(precision, information=np.diag(1.0 / (columns * precision.sizes)**2))
    later = adaptive(precision=known, accuracy=0.4)
    fresh = adaptive(accuracy=0.4)
    assert later.trajectory.duration < 0.7 * fresh.trajectory.duration
    accuracy = np.where(np.array(precision.names) == 'mx2', 0.15, 0.1)
    enough = replace(precision, information=np.diag(1.0 / (accuracy * precision.sizes)**2))
    with pytest.raises(DynIdError, match=r'the accuracy 0\.2 is met: mx2 is known worst, to '
                                         r'0\.15; no further recording is needed$'):
        adaptive(precision=enough, accuracy=0.2)


def test_noise_decides_which_joint_swings_longer():
    precision = BEFORE
    loud = replace(precision, density=precision.density * np.array([1.0, 1.0, 10.0]))
    seconds = []
    for one in (precision, loud):
        rows = adaptive(precision=one, accuracy=0.3).session.swings
        seconds.append(sum(row.duration for row in rows if row.moving == 'joint_3'))
    assert seconds[1] > 3.0 * seconds[0]


def test_adaptive_sequence_names_parameters_out_of_reach():
    """A joint that creeps shows no viscous friction, whatever time there is."""
    options = {'limits': {'joint_2': {'velocity': 0.002}}, 'accuracy': 0.1, 'longest': 60.0}
    found = adaptive(**options)
    assert not found.session.met
    assert found.trajectory.duration <= 60.0
    assert {'fv2', 'fc2'} <= set(found.session.unreachable)
    assert 'mx1' not in found.session.unreachable
    known = BEFORE.information.copy()
    for i, name in enumerate(BEFORE.names):
        if name not in ('fv2', 'fc2'):
            known[i, i] = 1e6
    rest = replace(BEFORE, information=known)
    with pytest.raises(SessionOver, match=r'0.1 is out of reach for fc2.*: .*fv2: no swing'):
        adaptive(precision=rest, **options)


def test_a_session_that_no_swing_brings_nearer_is_over():
    """None fits into the time allowed: what was not seen is named, the worst of it first."""
    deviations = np.array([{'fv2': 0.1001, 'Izz1': 0.2}.get(name, 0.05) for name in BEFORE.names])
    precision = replace(BEFORE, information=np.diag((deviations * BEFORE.sizes)**-2.0))
    with pytest.raises(SessionOver) as caught:
        adaptive(precision=precision, accuracy=0.1, longest=1.0)
    over = caught.value
    assert not over.met and over.unreachable == tuple(
        name for name in BEFORE.names if name in ('fv2', 'Izz1'))
    assert over.worst == ('Izz1', pytest.approx(0.2, rel=1e-4)) and over.deviation == over.worst[1]
    assert str(over).startswith('the accuracy 0.1 is out of reach for Izz1, fv2: ')
    assert str(over).endswith('; all else is known as well as asked for')
    with pytest.raises(SessionOver, match=r'0\.21 is met: Izz1 is known worst, to 0\.2;') as met:
        adaptive(precision=precision, accuracy=0.21, longest=1.0)
    assert met.value.met and met.value.unreachable == ()


def test_adaptive_sessions_plan_at_most_the_swings_asked_for():
    whole, found = adaptive(accuracy=0.3), adaptive(accuracy=0.3, swings=2)
    assert found.session.swings == whole.session.swings[:2]
    assert whole.session.met and not found.session.met


def test_a_swing_is_not_told_to_excite_all_parameters():
    """It is a part of its session; what that does not reach is named there."""
    found = adaptive(swings=1)
    assert found.score.condition_number > 1e6
    assert not any('does not excite' in warning for warning in found.warnings)


def test_covariance_of_very_different_sizes():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6)) * np.geomspace(1e-4, 1e4, 6)
    information = root.T @ root
    expected = np.linalg.pinv(root) @ np.linalg.pinv(root).T
    assert covariance_of(information) == pytest.approx(expected, rel=1e-6)
    assert covariance_of(np.array([information, information])) == pytest.approx(
        np.array([expected, expected]), rel=1e-6)
    blank = Precision(('a',), np.ones(1), np.ones(1), np.ones(1), np.zeros((1, 1)),
                      Resting.none(1, 1))
    assert blank.worst == ('a', pytest.approx(UNKNOWN))


@pytest.mark.parametrize(('options', 'message'), [
    ({'accuracy': 0.1}, "option 'accuracy' has no effect on a sine-sequence that is planned as"),
    ({'swings': 3}, "option 'swings' has no effect"),
    ({'procedure': 'adaptive', 'accuracy': 0.0}, "option 'accuracy' must be positive"),
    ({'procedure': 'adaptive', 'longest': 0.0}, "option 'longest' must be positive")])
def test_wrong_options_are_named(options, message):
    with pytest.raises(UsageError, match=message):
        parse_request('sine-sequence', options)


def test_a_robot_without_inertials_is_told_so():
    with pytest.raises(DynIdError, match="procedure 'adaptive' compares with nominal parameters"):
        adaptive(criteria=replace(CRITERIA, sizes=None))


SWINGS = [SineSwing(PLANAR.joints, joint, np.array([0.3, -0.4, 0.5]), 0.6, 0.7, 1)
          for joint in PLANAR.joints]
CANDIDATES = [Candidate.of(CRITERIA.model, one, BEFORE) for one in SWINGS]


def test_reach_equals_the_information_of_all_swings_at_once():
    precision = BEFORE
    for longest in (2.0, 200.0):
        total = np.eye(len(precision.names)) / UNKNOWN**2
        for one in CANDIDATES:
            variance = precision.density**2 + longest * precision.held**2
            total = total + one.own + longest * 0.7 * one.more + (
                longest / one.swing.duration * np.tensordot(1.0 / variance, one.resting, 1))
        expected = np.sqrt(np.diag(covariance_of(total)))
        accuracy = float(np.median(expected))
        found = Reach.of(Known.of(precision), CANDIDATES, accuracy, longest)
        assert found.best == pytest.approx(expected, rel=1e-3)
        clear = np.abs(expected / accuracy - 1.0) > 1e-3
        np.testing.assert_array_equal(found.missed[clear], (expected > accuracy)[clear])


def test_the_best_mixture_of_configurations_is_what_can_be_reached():
    """No division of a joint's time between two configurations knows the missing ones better."""
    other = SineSwing(PLANAR.joints, 'joint_1', np.array([0.3, 1.4, -1.0]), 1.5, 0.3, 1)
    pair = [CANDIDATES[0], Candidate.of(CRITERIA.model, other, BEFORE)]
    known = Known.of(BEFORE).after([one.told(9) for one in CANDIDATES[1:]])
    accuracy, longest = 1e-6, 100.0
    sums = []
    for share in np.linspace(0.0, 1.0, 41):
        told = [replace(one.told(1), own=one.own + longest / one.again * one.more,
                        resting=part * longest / one.swing.duration * one.resting,
                        seconds=part * longest)
                for one, part in zip(pair, (share, 1.0 - share), strict=True)]
        sums.append(np.log(known.after(told).deviations).sum())
    best = Reach.of(known, pair, accuracy, longest).best
    assert max(sums) > min(sums) + 1.0
    assert np.log(best).sum() == pytest.approx(min(sums), abs=0.2)


def test_repeated_swings_do_not_average_out_friction_of_other_joints():
    """Ten times the swing tell no more by the others' efforts, and ten times by its own."""
    known, one = Known.of(BEFORE), CANDIDATES[1]
    once, often = known.after([one.told(1)]), known.after([one.told(1)] * 10)
    rest = [found.resting.information(found.density, found.held) for found in (once, often)]
    assert np.linalg.norm(rest[1]) < 1.05 * np.linalg.norm(rest[0])
    assert often.own - known.own == pytest.approx(10.0 * (once.own - known.own), rel=1e-6)
    options = [one.told(3), CANDIDATES[0].longer(2)]
    assert once.deviations_after(options) == pytest.approx(
        np.array([once.after([option]).deviations for option in options]), rel=1e-6)


def test_the_first_swings_are_those_that_tell_most():
    """Whoever executes only the first and plans again is not kept waiting for a joint."""
    found = adaptive(accuracy=0.3)
    rows = found.session.swings
    assert {row.moving for row in rows[:3]} == set(PLANAR.joints)
    assert rows[2].largest_deviation < 10.0, 'all was seen'
    known = Known.of(BEFORE)
    swings = [Candidate.of(CRITERIA.model, replace(one, periods=1), BEFORE).told(
        one.periods) for one in swings_of(found.trajectory)]
    excess = np.log(np.maximum(known.deviations_after(swings) / 0.3, 1.0)).sum(axis=1)
    begin = np.log(np.maximum(known.deviations / 0.3, 1.0)).sum()
    gain = (begin - excess) / np.array([one.seconds for one in swings])
    assert gain[0] == pytest.approx(gain.max(), rel=0.05)


def test_the_outlook_says_what_is_missing_and_how_long_it_takes():
    whole, first = adaptive(accuracy=0.3).session, adaptive(accuracy=0.3, swings=1).session
    assert first.later == whole.swings[1:] and whole.later == ()
    assert [row.missing for row in whole.swings] == sorted(
        (row.missing for row in whole.swings), reverse=True)
    assert whole.outlook.startswith('the accuracy 0.3 is met then')
    seconds = sum(row.duration for row in first.later)
    row = first.swings[0]
    assert first.outlook.startswith(
        f'{row.missing} parameters miss the accuracy 0.3 then, the worst is {row.least_known}, '
        f'not seen yet; {len(first.later)} more swings, {seconds:.0f} s, are expected to meet')


def test_reach_words_state_why_parameters_are_out_of_reach():
    """Noise, that no swing shows it, and friction that holds joints at rest."""
    names = ('a', 'b', 'c', 'd')
    found = Reach(best=np.array([0.2, 0.3, 900.0, 0.05]), accuracy=0.1, longest=60.0,
                  frictionless=np.array([0.15, 0.02, 900.0, 0.01]))
    noise, unseen, held = found.words(names).split('; ', 2)
    assert noise == 'a: the noise asks for more than 240 s of swings, 60 s are allowed'
    assert unseen.startswith('c: no swing') and held.startswith('b: only the efforts of joints at')
    # with friction that takes much of the efforts at rest, only these tell what is left
    loud = replace(BEFORE, held=20.0 * BEFORE.held)
    lost = adaptive(precision=loud, accuracy=0.3).session
    assert {'Izz3', 'Ia3'} <= set(lost.unreachable) and not lost.met
    assert lost.why.startswith(', '.join(lost.unreachable) + ': only the efforts of joints at')
    assert lost.outlook.endswith(lost.why) and 'met then' in lost.outlook
