"""Cells of distinct motion and their folds: what passes the same states is in one fold."""

import ast
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import RATE, repeated_motion

from robot_dynid.signals import held_out_motion
from robot_dynid.signals.held_out_motion import (
    BETWEEN,
    GUARD,
    MAX_STATES,
    MOTION_FOLDS,
    SHORTEST_CELL,
    DistinctMotion,
    folds,
)
from robot_dynid.types import Samples


def folds_of(recordings, guard=0.0):
    held_out = DistinctMotion()
    cells = [held_out.add(samples) for samples in recordings]
    fold = folds(held_out.seconds, guard)
    return [fold[own] for own in cells]


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(3.0, 20.0), st.integers(2, 4), st.integers(2, 7))
def test_periods_share_their_folds(seed, period, periods, joints):
    samples = repeated_motion(seed, period, periods, joints, noise=1e-3)
    fold, = folds_of([samples])
    length = round(period * RATE)
    first = fold[:length]
    for k in range(1, periods):
        later = fold[k * length:(k + 1) * length]
        borders = 2.0 * SHORTEST_CELL * RATE * MOTION_FOLDS
        assert np.count_nonzero(first[:len(later)] != later) <= borders
    assert np.all(np.bincount(first, minlength=MOTION_FOLDS) > 0.5 * length / MOTION_FOLDS)


def test_states_of_days_are_thinned(monkeypatch):
    """A recording of 66 h at 0.01 Hz; interpolated at 100 Hz it would have 24 million states."""
    time = np.arange(0.0, 2.4e5, 100.0)
    position = np.sin(np.outer(time, [3e-4, 5e-4, 7e-4]))
    velocity = np.gradient(position, time, axis=0)
    slow = Samples(('a', 'b', 'c'), time, position, velocity, np.zeros_like(position))
    held_out = DistinctMotion()
    monkeypatch.setattr(held_out_motion, 'MAX_VISITED', 5000)
    held_out.add(slow)
    assert held_out.moments[0].max() == pytest.approx(5000, abs=1)


def test_a_motion_recorded_again_is_in_the_folds_of_the_first_wherever_it_begins():
    once, other = repeated_motion(3, 8.0, 1), repeated_motion(4, 8.0, 1)
    again = repeated_motion(3, 8.0, 1.5, begins=3.3)
    first, second, third = folds_of([once, again, other])
    expected = np.interp((again.time + 3.3) % 8.0, once.time, first)
    assert np.mean(second == expected) > 0.85
    assert not set(third) & set(first[:300])


@pytest.mark.parametrize('merged', [False, True])
def test_a_motion_recorded_again_whole_turns_away_is_the_same(merged):
    """As a driver reports it that wraps, where the motion begins near the seam."""
    once, again = repeated_motion(3, 8.0, 1), repeated_motion(3, 8.0, 1.5, begins=3.3)
    away = replace(again, position=again.position + 2.0 * np.pi * np.array([1.0, -2.0, 0.0]))
    held_out, other, plain = DistinctMotion(), DistinctMotion(), DistinctMotion()
    held_out.add(once), plain.add(once)
    if merged:
        other.add(away)
        held_out, _ = held_out.merge(other)
    else:
        held_out.add(away)
    plain.add(again)
    assert held_out.seconds.sum() < 1.05 * plain.seconds.sum()
    np.testing.assert_allclose(held_out.moments, plain.moments, rtol=1e-9 if not merged else 0.02,
                               atol=1e-6 if not merged else 1.0)


def test_a_part_of_a_motion_of_many_turns_stays_where_it_is():
    once, part = repeated_motion(3, 8.0, 1), repeated_motion(3, 8.0, 0.4)
    along = 4.0 * once.time[:, None]
    spin, again = (replace(one, position=one.position + along[:len(one.time)],
                           velocity=one.velocity + 4.0) for one in (once, part))
    held_out = DistinctMotion()
    held_out.add(spin)
    before = held_out.seconds.sum()
    held_out.add(again)
    assert held_out.seconds.sum() < before + 0.2


def test_distinct_motion_is_cut_in_order_of_time_whatever_the_recordings_are():
    recordings = [repeated_motion(seed, 4.0, 1) for seed in range(7)]
    order = np.concatenate(folds_of(recordings))
    assert np.all(np.diff(order) >= 0)
    assert np.all(np.bincount(order) > 0.9 * len(order) / MOTION_FOLDS)


def test_rest_belongs_to_what_was_before_it():
    samples = repeated_motion(1, 8.0, 1)
    still = np.repeat(samples.position[400:401], 500, axis=0)
    position = np.concatenate([samples.position[:400], still, samples.position[400:]])
    velocity = np.concatenate([samples.velocity[:400], 0.0 * still, samples.velocity[400:]])
    time = np.arange(len(position)) / RATE
    fold, = folds_of([Samples(samples.joints, time, position, velocity, velocity)])
    assert len(np.unique(fold[410:890])) == 1


@pytest.mark.parametrize('still', [True, False])
def test_short_or_still_recordings_have_folds_in_time(still):
    samples = repeated_motion(2, 1.0, 1)
    if still:
        samples = Samples(samples.joints, samples.time, 0.0 * samples.position,
                          0.0 * samples.velocity, 0.0 * samples.position)
    fold, = folds_of([samples])
    assert len(set(fold)) == MOTION_FOLDS


def test_cells_of_a_later_recording_are_those_it_passes_again():
    once, other = repeated_motion(3, 8.0, 1), repeated_motion(4, 8.0, 1)
    again = repeated_motion(3, 8.0, 1.5, begins=3.3)
    held_out = DistinctMotion()
    first, second, third = (held_out.add(samples) for samples in (once, again, other))
    count = first.max() + 1
    assert np.mean(second < count) > 0.85 and not np.any(third < count)
    assert held_out.seconds.sum() == pytest.approx(16.0, rel=0.1)


@pytest.mark.parametrize('parts', [1, 2, 3])
def test_motion_merges_as_if_it_had_been_added_in_one_place(parts):
    recordings = [repeated_motion(seed, 8.0, periods) for seed, periods in (
        (3, 2), (4, 1), (3, 1), (5, 2))]
    whole, apart = DistinctMotion(), [DistinctMotion(), DistinctMotion()]
    for samples in recordings:
        whole.add(samples)
    cells = [apart[i >= parts].add(samples) for i, samples in enumerate(recordings)]
    both, places = apart[0].merge(apart[1])
    assert both.seconds.sum() == pytest.approx(whole.seconds.sum(), rel=0.03)
    assert both.moments == pytest.approx(whole.moments)
    again = cells[2] if parts > 2 else places[cells[2]]
    assert np.mean(np.abs(cells[0][:len(again)] - again) <= 1) > 0.9
    assert len(apart[0].seconds) == max(c.max() for c in cells[:parts]) + 1  # is as it was


def test_a_recording_at_rest_comes_after_one_that_moves():
    held_out, still = DistinctMotion(), repeated_motion(2, 1.0, 1)
    held_out.add(repeated_motion(3, 8.0, 1))
    count = len(held_out.seconds)
    cells = held_out.add(Samples(still.joints, still.time, 0.0 * still.position,
                                 0.0 * still.velocity, 0.0 * still.position))
    assert cells.min() == count and cells.max() == len(held_out.seconds) - 1


def test_a_gap_is_between_folds_of_short_cells_only():
    seconds = np.full(40, SHORTEST_CELL)
    fold = folds(seconds, GUARD)
    assert np.count_nonzero(fold == BETWEEN) == (MOTION_FOLDS - 1) * round(GUARD / SHORTEST_CELL)
    assert np.all(fold[np.flatnonzero(fold == BETWEEN) - 1] + 1
                  == fold[np.flatnonzero(fold == BETWEEN) + 1])
    for long in (np.full(40, 1.0), np.full(40, np.inf)):
        assert np.array_equal(folds(long, GUARD), np.arange(40) // 8)


@given(st.lists(st.floats(0.05, 30.0), min_size=1, max_size=80))
def test_every_fold_has_cells_and_they_are_in_order(seconds):
    fold = folds(np.array(seconds), GUARD)
    count = fold.max() + 1
    assert count <= MOTION_FOLDS and set(range(count)) <= set(fold.tolist())
    assert np.all(np.diff(fold[fold != BETWEEN]) >= 0)


def test_cells_get_coarser_and_hold_all_seconds():
    held_out = DistinctMotion()
    held_out.add(repeated_motion(7, 9.0, 1))
    coarse = held_out.coarser()
    assert len(coarse.seconds) == -(-len(held_out.seconds) // 2)
    assert coarse.seconds.sum() == pytest.approx(held_out.seconds.sum())
    assert np.array_equal(coarse.cells, held_out.cells // 2)


def test_states_stay_few_and_motion_is_known_again():
    held_out = DistinctMotion()
    for seed in range(50, 59):
        held_out.add(repeated_motion(seed, 100.0, 1))
    assert len(held_out.states) <= MAX_STATES
    count = len(held_out.seconds)
    assert np.mean(held_out.add(repeated_motion(52, 100.0, 1)) < count) > 0.9


#: who holds motion out, and to decide what
CALLERS = {
    'estimation/feasible/near_nominal.py': 'whether least squares learn noise',
    'estimation/feasible/simultaneous.py': 'the weight of the prior',
    'estimation/friction_selection/candidate_columns.py': 'laws of friction and their shapes',
    'estimation/friction_selection/second_motion.py': 'break-away',
    'estimation/staged/joint_effort.py': 'settings of the method staged',
    'estimation/uncertainty/held_out.py': 'scores, refusals, verdicts, intervals',
    'excitation/design.py': 'whether the validation motion is another one',
    'identification/chosen_effects.py': 'effects of single joints',
    'identification/fit.py': 'scores of the fit, the side of the gear that a sensor is on',
    'identification/gathered.py': 'weights near reversals',
    'identification/gear_effects.py': 'effects of elastic gears',
    'identification/gears.py': 'whether elasticity matters, waves that belong to another ratio',
    'identification/learnt.py': 'torque ripple',
    'identification/residual_fit.py': 'residual models of deflection',
    'identification/selection.py': 'cut-off, lag, ramp',
}
#: who cuts time into stretches instead: changes with time, and paths that are simulated in one go
IN_TIME = {
    'effects/slow_changes_search.py', 'latent/latent.py', 'trajectory/trajectory_fit.py',
    'estimation/payload.py', 'identified/error_law.py',
}


@pytest.mark.always
def test_motion_is_held_out_by_one_owner(root):
    """Folds, and scores on folds, come from here; what is cut in time is known."""
    holding, in_time = set(), set()
    packages = [root / 'robot_dynid' / name for name in ('robot_dynid', 'robot_dynid_extras')]
    for package, path in ((p, path) for p in packages for path in sorted(p.rglob('*.py'))):
        name = path.relative_to(package).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {one.name for one in node.names}
                if node.module.endswith('.uncertainty.held_out') and names & {
                        'folds', 'held_out', 'errors_by_cell'}:
                    holding.add(name)
                if node.module.endswith('.held_out_motion') and names & {
                        'folds', 'DistinctMotion'}:
                    holding.add(name)
                if node.module.endswith('.signals') and 'held_out_motion' in names:
                    holding.add(name)
                if node.module.endswith('.uncertainty.between_recordings') and names & {
                        'stretches', 'long_batches'}:
                    in_time.add(name)
            if isinstance(node, ast.Name) and node.id.endswith('FOLDS') and name != \
                    'signals/held_out_motion.py':
                in_time.add(name)
    # they carry cells, and cut nothing
    holding -= {'estimation/information.py', 'io/information_file.py'}
    assert holding == set(CALLERS)
    assert in_time == IN_TIME


def test_cells_of_many_states_are_found_again(monkeypatch):
    """Of every second state, as often as they are too many, each with its cell."""
    monkeypatch.setattr(held_out_motion, 'MAX_STATES', 100)
    once = repeated_motion(3, 8.0, 1)
    held_out = DistinctMotion()
    cells = held_out.add(once)
    assert 50 < len(held_out.states) <= 100 and len(held_out.cells) == len(held_out.states)
    whole = DistinctMotion()
    monkeypatch.setattr(held_out_motion, 'MAX_STATES', MAX_STATES)
    np.testing.assert_array_equal(cells, whole.add(once))
    places = [int(np.flatnonzero((whole.states == state).all(axis=1))[0])
              for state in held_out.states]
    assert len(set(np.diff(places))) == 1
    np.testing.assert_array_equal(held_out.cells, whole.cells[places])


@pytest.mark.parametrize(('seconds', 'guard', 'expected'), [
    ([1.0] * 10, 0.0, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    ([1.0] * 10, 1.0, [0, 0, -1, 1, -1, 2, -1, 3, -1, 4]),
    ([1.0] * 10, 0.5, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),  # such cells are their own guard
    ([1.0] * 15, 1.4, [0, 0, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4]),
    ([np.inf] * 10, 0.0, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    ([1.0] * 5, 1.0, [0, 1, 2, 3, 4]),  # no fold consists of guards
    # by their middles: half of the long one is in the fifth part
    ([1.0] * 5 + [3.0], 0.0, [0, 0, 1, 2, 2, 3]),
    ([8.0, 1.0, 1.0], 0.0, [0, 1, 1]), ([1.0, 1.0, 1.0], 0.0, [0, 1, 2]), ([], 0.0, [])])
def test_motion_is_dealt_out_in_five_parts_with_guards_between(seconds, guard, expected):
    assert folds(np.array(seconds), guard).tolist() == expected


def test_distinct_motion_counts_its_states_and_the_memory_of_filters():
    time = np.arange(0.0, 1.0, 0.02)
    position = np.column_stack([time, -3.0 * time])
    line = Samples(('a', 'b'), time, position, np.full_like(position, [1.0, -3.0]),
                   np.zeros_like(position), cutoff=2.0)
    motion = DistinctMotion()
    cells = np.floor(time / 0.2).tolist()
    assert motion.add(line).tolist() == cells
    fine = np.arange(0.0, 0.985, 0.01)  # at 100 Hz
    states = np.column_stack([fine, -3.0 * fine, np.ones(99), np.full(99, -3.0)])
    np.testing.assert_allclose(motion.states, states, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(motion.moments, [
        np.full(4, 99.0), states.sum(axis=0), (states**2).sum(axis=0)])
    counts = np.bincount(np.floor(fine / 0.2).astype(int))
    np.testing.assert_allclose(motion.seconds, 0.01 * counts)
    assert motion.guard == 0.25 and DistinctMotion().guard == GUARD == 0.2
    assert motion.add(replace(line, cutoff=10.0)).tolist() == cells
    assert motion.guard == 0.25 and len(motion.seconds) == 5
    np.testing.assert_allclose(motion.moments[0], 198.0)


def recording(position, velocity):
    """Return samples at 100 Hz of joints with these positions and velocities (N, n)."""
    names = tuple('abcd'[:position.shape[1]])
    return Samples(names, 0.01 * np.arange(len(position)), position, velocity,
                   np.zeros_like(position))


def wave():
    """Return positions and velocities (400, 1) of swings on a way that returns nowhere."""
    time = 0.01 * np.arange(400)[:, None]
    return np.sin(3.0 * time) + 2.0 * time, 3.0 * np.cos(3.0 * time) + 2.0


def test_states_are_compared_with_those_of_batches_before_the_last_second():
    """A motion of one second counts twice, because neighbouring seconds are not compared."""
    phase = 2.0 * np.pi * 0.01 * np.arange(600)[:, None]
    motion = DistinctMotion()
    cells = motion.add(recording(np.sin(phase), 2.0 * np.pi * np.cos(phase)))
    assert cells[10:200:20].tolist() == list(range(10))
    assert motion.seconds.sum() == pytest.approx(2.0) and cells.max() == 9
    assert (cells[210:300:20] % 5).tolist() == list(range(5))


@pytest.mark.parametrize(('share', 'same'), [(0.048, True), (0.052, False)])
@pytest.mark.parametrize('speed', [False, True])
def test_states_within_a_twentieth_of_the_deviations_are_the_same(share, same, speed):
    """Of position, or of speed; of all states so far, most of them elsewhere."""
    position, velocity = wave()
    far = np.hstack([position + 20.0, np.linspace(-1.0, 1.0, 400)[:, None]])
    rates = np.hstack([velocity, np.linspace(-1.0, 1.0, 400)[:, None]])
    once = np.hstack([position, 0.0 * position]), np.hstack([velocity, 0.0 * velocity])
    deviation = np.std(np.concatenate([np.linspace(-1.0, 1.0, 400), np.zeros(800)]))
    off = share * deviation * np.array([0.0, 1.0])
    motion = DistinctMotion()
    motion.add(recording(far, rates))
    motion.add(recording(*once))
    count = len(motion.seconds)
    again = motion.add(recording(once[0] + off * (not speed), once[1] + off * speed))
    assert np.all((again < count) == same)


@pytest.mark.parametrize(('size', 'same'), [(0.95e-3, True), (1.05e-3, False)])
def test_a_joint_that_deviates_by_less_than_a_millimetre_stands(size, same):
    position, velocity = (np.hstack([one, 0.0 * one]) for one in wave())
    motion = DistinctMotion()
    motion.add(recording(position, velocity))
    again = motion.add(recording(position + np.array([0.0, 2.0 * size]), velocity))
    assert motion.guard == 0.2  # without a cut-off
    assert np.all((again < 20) == same)


@pytest.mark.parametrize(('share', 'rests'), [(0.048, True), (0.052, False)])
def test_an_arm_slower_than_a_twentieth_of_its_deviation_of_speed_rests(share, rests):
    position, velocity = wave()
    creep = share * np.std(np.concatenate([velocity[:, 0], np.zeros(100)]))
    place = 5.0 + creep * 0.01 * np.arange(100.0)[:, None]
    cells = DistinctMotion().add(recording(
        np.concatenate([position, place]),
        np.concatenate([velocity, np.full((100, 1), creep)])))
    assert cells[410::20].tolist() == ([19] * 5 if rests else [20, 21, 22, 23, 24])


@pytest.mark.parametrize('turned', ['position', 'velocity'])
def test_whole_turns_are_removed_from_positions_only(turned):
    position, velocity = wave()
    motion = DistinctMotion()
    motion.add(recording(position, velocity))
    again = motion.add(recording(position + 2.0 * np.pi * (turned == 'position'),
                                 velocity + 2.0 * np.pi * (turned == 'velocity')))
    assert np.all((again < 20) == (turned == 'position'))


@pytest.mark.parametrize(('rows', 'same'), [(8, False), (14, True)])
def test_a_cell_is_that_of_most_of_its_states(rows, same):
    """Of twenty states every fourth is compared; the others are elsewhere by the second joint."""
    position, velocity = (np.hstack([one, 0.0 * one]) for one in wave())
    motion = DistinctMotion()
    motion.add(recording(position, velocity))
    away = (np.arange(400) % 20 >= rows)[:, None] * np.array([0.0, 1.0])
    again = motion.add(recording(position + away, velocity))
    assert np.all((again[25:] < 20) == same)
