"""Adaptive sequences: as precise as they say, shorter than planned ones, honest about limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.adaptive_swings import (
    Candidate,
    Choice,
    Wanted,
    out_of_reach,
)
from robot_dynid.excitation.precision import UNKNOWN, Precision, covariance_of
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import violations
from robot_dynid.trajectories.sine import SineSwing
from robot_dynid.types import Samples

PLANAR = load_robot('planar_3r')
CRITERIA = design_criteria(PLANAR)
STEP = 0.005


def adaptive(robot=PLANAR, criteria=CRITERIA, **options):
    """Return the design of an adaptive sequence."""
    request = parse_request('sine-sequence', {'procedure': 'adaptive', **options})
    return design(robot, request, criteria)


def deviations(criteria, swings):
    """Return the relative deviations after swings, from their stacked equations.

    Noise of every sample; what friction takes of a joint at rest is one unknown effort more, of
    the sign of each parameter's own: it adds to the noise as a variance that does not average out.
    """
    precision, model = criteria.precision, criteria.model
    rows, seen = [np.eye(len(precision.names)) / UNKNOWN], set()
    for swing in swings:
        time = np.arange(0.5 * STEP, swing.duration, STEP)
        motion = swing.sample(time)
        samples = Samples(model.robot.joints, time, motion.position, motion.velocity,
                          motion.acceleration)
        columns = model.columns(samples) * precision.sizes[:, None]
        place = (swing.index, swing.amplitude, *swing.position)
        for i, own in enumerate(columns):
            noise = precision.density[i] / np.sqrt(STEP)
            if i == swing.index:
                rows.append(own.T / noise)
            elif place not in seen:
                held = precision.held[i] * np.sqrt(len(time))
                rows.append((own - own.mean(axis=1, keepdims=True)).T / np.hypot(noise, held))
        seen.add(place)
        rows = [np.linalg.qr(np.vstack(rows), mode='r')]
    return np.linalg.norm(np.linalg.pinv(rows[0]), axis=1)


def test_a_swing_tells_what_its_equations_do():
    """Own effort and variations of the others, sample by sample, against the rows of a plan."""
    model, precision = CRITERIA.model, CRITERIA.precision
    swing = SineSwing(PLANAR.joints, 'joint_2', np.array([0.3, -0.4, 0.5]), 0.6, 0.7, 2)
    time = np.arange(0.5 * STEP, swing.duration, STEP)
    motion = swing.sample(time)
    columns = model.columns(Samples(PLANAR.joints, time, motion.position, motion.velocity,
                                    motion.acceleration)) * precision.sizes[:, None]
    found = Candidate.of(model, swing, precision)
    own = columns[1] / precision.density[1]

    def same(rows, gram):
        size = np.sqrt(np.maximum(np.diag(gram), 1e-9 * np.diag(gram).max()))
        assert (rows.T @ rows) / np.outer(size, size) == pytest.approx(
            gram / np.outer(size, size), abs=0.05)  # two of 50 instants are reversals

    same(found.own, own @ own.T * STEP)
    expected = 0.0
    for i in (0, 2):
        varying = columns[i] - columns[i].mean(axis=1, keepdims=True)
        spread = np.hypot(precision.density[i], precision.held[i] * np.sqrt(swing.duration))
        expected = expected + varying @ varying.T * STEP / spread**2
    same(found.locked, expected)
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
    assert expected.max() < 0.3 * 1.05
    assert session.swings[-1].least_known == CRITERIA.precision.names[int(np.argmax(expected))]
    assert not violations(found.trajectory.peaks(), found.limits)


@pytest.mark.parametrize(('name', 'seeds', 'share'), [('planar_3r', range(3), 0.6),
                                                      ('ur10e', range(1), 0.2)])
def test_it_takes_less_time_than_a_planned_sequence_for_the_same_accuracy(name, seeds, share):
    robot = load_robot(name)
    criteria = design_criteria(robot)
    for seed in seeds:
        planned = design(robot, parse_request('sine-sequence', {'seed': seed}), criteria)
        reached = float(deviations(criteria, swings_of(planned.trajectory)).max())
        found = adaptive(robot, criteria, accuracy=reached, seed=seed)
        assert found.session.met
        assert found.trajectory.duration < share * planned.trajectory.duration


def test_what_was_measured_is_not_measured_again():
    first = adaptive(accuracy=0.5)
    columns = deviations(CRITERIA, swings_of(first.trajectory))
    precision = CRITERIA.precision
    known = replace(precision, information=np.diag(1.0 / (columns * precision.sizes)**2))
    later = adaptive(criteria=replace(CRITERIA, precision=known), accuracy=0.4)
    fresh = adaptive(accuracy=0.4)
    assert later.trajectory.duration < 0.7 * fresh.trajectory.duration
    enough = replace(precision, information=np.diag(1.0 / (0.1 * precision.sizes)**2))
    with pytest.raises(DynIdError, match=r'accuracy 0\.2 is met: .* nothing more is to'):
        adaptive(criteria=replace(CRITERIA, precision=enough), accuracy=0.2)


def test_noise_decides_which_joint_swings_longer():
    precision = CRITERIA.precision
    loud = replace(precision, density=precision.density * np.array([1.0, 1.0, 10.0]))
    seconds = []
    for one in (precision, loud):
        rows = adaptive(criteria=replace(CRITERIA, precision=one), accuracy=0.3).session.swings
        seconds.append(sum(row.duration for row in rows if row.moving == 'joint_3'))
    assert seconds[1] > 3.0 * seconds[0]


def test_what_no_swing_can_reach_is_named():
    """A joint that creeps shows no viscous friction, whatever time there is."""
    options = {'limits': {'joint_2': {'velocity': 0.002}}, 'accuracy': 0.1, 'longest': 60.0}
    found = adaptive(**options)
    assert not found.session.met
    assert found.trajectory.duration <= 60.0
    assert {'fv2', 'fc2'} <= set(found.session.unreachable)
    assert 'mx1' not in found.session.unreachable
    known = CRITERIA.precision.information.copy()
    for i, name in enumerate(CRITERIA.precision.names):
        if name not in found.session.unreachable:
            known[i, i] = 1e6
    rest = replace(CRITERIA, precision=replace(CRITERIA.precision, information=known))
    with pytest.raises(DynIdError, match=r'the accuracy 0.1 is out of reach for .*fv2.*60 s'):
        adaptive(criteria=rest, **options)


def test_only_so_many_swings_are_planned_at_once():
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
    blank = Precision(('a',), np.ones(1), np.ones(1), np.ones(1), np.zeros((1, 1)))
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
        adaptive(criteria=replace(CRITERIA, precision=None))


def test_nothing_within_the_time_tells_more_than_all_swings_at_once():
    model, precision = CRITERIA.model, CRITERIA.precision
    swings = [SineSwing(PLANAR.joints, joint, np.array([0.3, -0.4, 0.5]), 0.6, 0.7, 1)
              for joint in PLANAR.joints]
    candidates = [Candidate.of(model, one, precision) for one in swings]
    for longest in (2.0, 200.0):
        tall = [np.eye(len(precision.names)) / UNKNOWN]
        for one in candidates:
            tall += [one.own, one.locked, np.sqrt(longest * 0.7) * one.more]
        expected = np.linalg.norm(np.linalg.pinv(np.vstack(tall)), axis=1)
        accuracy = float(np.median(expected))
        found = out_of_reach(precision, candidates, Wanted(accuracy, longest, 9, 1))
        clear = np.abs(expected / accuracy - 1.0) > 1e-3
        np.testing.assert_array_equal(found[clear], (expected > accuracy)[clear])


def test_what_held_a_joint_holds_it_again():
    """A swing that is repeated tells by its own effort only."""
    swing = SineSwing(PLANAR.joints, 'joint_2', np.array([0.3, -0.4, 0.5]), 0.6, 0.7, 1)
    one = Candidate.of(CRITERIA.model, swing, CRITERIA.precision)
    choice = Choice(CRITERIA.precision.relative)
    first = choice.told(one, 1)
    assert len(first) == len(one.own) + len(one.locked) + len(one.more)
    choice.chosen.append((one, 1))
    assert len(choice.told(one, 1)) == len(one.own) + len(one.more)
    assert choice.told(one, 3)[-len(one.more):] == pytest.approx(np.sqrt(2.0) * one.more)
