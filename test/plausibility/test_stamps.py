"""plausibility/stamps.py, excerpt.py and content.py: clocks, publishers, excerpts and digests of
hand-made recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.plausibility.content import candidates, digests, merge_digests, shared_share
from robot_dynid.plausibility.excerpt import (
    excerpt,
    join_excerpts,
    sample_excerpts,
    thin_excerpt,
    typical_step,
)
from robot_dynid.plausibility.finding import (
    KINDS,
    Finding,
    Severity,
    accept_findings,
    check_kinds,
    read_sentences,
)
from robot_dynid.plausibility.stamps import stamp_findings
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog, take

ROBOT = load_robot('planar_3r')
STEP = 2.0**-7


def log_of(time: FloatArray, rate: float = 0.3) -> RawLog:
    """Return rows of joints that swing at up to ``rate`` rad/s, with efforts of them."""
    q = np.sin(np.outer(np.arange(len(time)) * STEP, [rate, 0.7 * rate, -0.5 * rate]))
    return RawLog('run', ROBOT.joints, time, q, None, 3.0 * q + 1.0)


def regular(count: int) -> FloatArray:
    """Return regular stamps that begin at 5 s."""
    return 5.0 + STEP * np.arange(count)


def test_a_clock_that_is_set_back_is_told_with_row_and_size() -> None:
    time = regular(300)
    assert stamp_findings(log_of(time)) == []
    time[200:] -= 1.0
    time[250:] -= 0.5
    (one,) = stamp_findings(log_of(time))
    assert (one.kind, one.recording, one.joints, one.severity) == ('clock', 'run', (),
                                                                   Severity.WARN)
    assert one.looks_like == (
        f'stamps go back 2 times (first by {1.0 - STEP:.4g} s in row 201): the clock was set '
        'back, the 3 parts are treated as separate recordings')
    assert one.remedy == 'record with a monotonic clock'
    time[200:] -= time[200] - 0.99
    (one,) = stamp_findings(log_of(time))
    assert 'in row 201, nearly to zero, as when a simulation is reset)' in one.looks_like
    time[200:] += 0.02
    log = log_of(time)
    assert log.effort is not None
    (one,) = stamp_findings(replace(log, effort_messages=(time, log.effort)))
    assert one.severity is Severity.REFUSE and 'nearly to zero' not in one.looks_like
    assert one.looks_like.endswith('efforts have separate stamps, so they cannot be matched')


@pytest.mark.parametrize(('turn', 'apart', 'repeats', 'refused'), [
    (2, 0.1, False, True), (3, 0.1, False, True), (6, 0.1, False, True), (7, 0.1, False, False),
    # neighbours a millimetre apart, or a difference of half of that
    (2, 0.9e-3, False, False), (2, 1.2e-3, True, True)])
def test_rows_that_alternate_are_of_several_publishers(
    turn: int, apart: float, repeats: bool, refused: bool
) -> None:
    log = log_of(regular(600), rate=1e-3)
    offsets = apart * (np.arange(600) % turn == 0)[:, None]
    time = np.repeat(log.time[:300], 2) if repeats else log.time
    found = stamp_findings(replace(log, time=time, position=log.position + offsets))
    assert [one.severity for one in found] == [Severity.REFUSE] * refused or not refused
    assert any('several publishers look mixed' in one.looks_like for one in found) is refused
    if refused:
        # two steps in so many rows
        near = apart * 2.0 / turn
        (one,) = found
        assert one.looks_like.startswith(f'rows of position alternate: {turn} rows apart they')
        told = float(one.looks_like.split('neighbours do (')[1].split(')')[0])
        assert told == pytest.approx(near, rel=0.01)
        assert f'and {50 if repeats else 0}% of the stamps repeat' in one.looks_like


@pytest.mark.parametrize(('share', 'refused'), [(0.48, True), (0.52, False)])
def test_publishers_alternate_by_twice_what_they_move_in_turn(share: float, refused: bool) -> None:
    """Two milliradians in two rows; twenty steps at least, in rows without holes."""
    log = log_of(regular(41))
    offsets = 2e-3 / share * (np.arange(41) % 2)
    log = replace(log, position=(1e-3 * np.arange(41) + offsets)[:, None] * np.ones(3))
    found = stamp_findings(log)
    assert len(found) == refused
    if refused:
        assert f'differ by 48% of what neighbours do ({2e-3 / share:.3g})' in found[0].looks_like
    assert [len(stamp_findings(take(log, slice(0, rows)))) for rows in (20, 21)] == [0, refused]
    for holes in (21, 22):
        log.position[:holes, 1] = np.nan
        assert bool(stamp_findings(log)) is (refused and holes == 21)


@pytest.mark.parametrize(('repeats', 'back', 'size', 'refused'), [
    (9, 1, 0.1, False), (11, 1, 0.1, True), (0, 2, 0.1, False), (0, 3, 0.1, True),
    (11, 0, 0.9e-6, False), (11, 0, 1.2e-6, True)])
def test_efforts_that_alternate_are_of_publishers_if_stamps_are_odd(
    repeats: int, back: int, size: float, refused: bool
) -> None:
    """Above a tenth of repeated stamps, or two hundredths of steps back."""
    time = regular(101)
    time[2:2 * repeats + 2:2] = time[1:2 * repeats + 1:2]
    time[50:50 + 3 * back:3] -= 5.5 * STEP
    log = log_of(time, rate=0.0)
    found = stamp_findings(replace(log, effort=size * (np.arange(101) % 2)[:, None] * np.ones(3)))
    assert any('rows of effort alternate' in one.looks_like for one in found) is refused


@pytest.mark.parametrize(('copies', 'words'), [(89, 'look rounded'), (91, 'count once')])
def test_rows_with_repeated_stamps_are_copies_from_nine_tenths_on(
    copies: int, words: str
) -> None:
    time = regular(801)
    rows = np.arange(8, 801, 8)
    time[rows] = time[rows - 1]
    log = log_of(time)
    for values in (log.position, log.effort):
        assert values is not None
        values[rows[:copies]] = values[rows[:copies] - 1]
    (one,) = stamp_findings(log)
    assert one.looks_like.startswith('12% of the stamps repeat') and words in one.looks_like


@pytest.mark.parametrize(('share', 'told'), [(0.09, False), (0.12, True)])
@pytest.mark.parametrize('copies', [True, False])
def test_stamps_that_repeat_are_of_copies_or_rounded(
    share: float, told: bool, copies: bool
) -> None:
    time = regular(1001)
    rows = np.arange(1, 1001)[::round(1.0 / share)]
    time[rows] = time[rows - 1]
    log = log_of(time)
    for values in (log.position, log.effort):
        if copies and values is not None:
            values[rows] = values[rows - 1]
    found = stamp_findings(log)
    assert len(found) == told
    if told:
        assert found[0].severity is Severity.WARN and found[0].joints == ()
        assert found[0].looks_like == (
            f'{len(rows) / 1000:.0%} of the stamps repeat: ' + (
                'their rows are the same and count once' if copies else
                'stamps look rounded to 0.00781 s, only the first row of each counts'))
        assert found[0].remedy == ('stop the second publisher' if copies
                                   else 'record stamps with full resolution')


def test_typical_steps_are_positive_and_possible() -> None:
    assert typical_step(np.array([0.0, 1.0, 1.0, 3.0, 2.0, 5.0])) == 2.0
    assert typical_step(np.array([0.0, np.nan, 1.0, 2.0, 3e19])) == 1.0
    assert np.isnan([typical_step(np.array(time)) for time in ([1.0, 1.0, 0.0], [1.0])]).all()


@pytest.mark.parametrize(('step', 'count'), [(STEP, 1281), (0.001, 10_001), (0.05, 401)])
def test_an_excerpt_holds_motion_in_even_rows_and_its_travel(step: float, count: int) -> None:
    """At 16 Hz, a quarter of a second from either end; travel within a fifth of a second."""
    time = 3.0 + step * np.arange(count)
    phase = np.outer(time, [0.5, 0.4, -0.3])
    rate = np.array([0.5, 0.4, -0.3])
    log = RawLog('run', ROBOT.joints, time, np.sin(phase), rate * np.cos(phase), np.cos(phase))
    found = excerpt(ROBOT, log)
    grid = max(0.01, step)
    every, edge = max(1, round(1.0 / 16.0 / grid)), max(2, round(0.25 / grid))
    windows = count // int(10.0 / step)  # of ten seconds each
    assert len(found) == pytest.approx((count * step - 2.0 * windows * edge * grid) / (
        every * grid), abs=4)
    assert found.step == pytest.approx(step)
    first = 3.0 + edge * grid
    np.testing.assert_allclose(found.position[0], np.sin(first * rate), rtol=0.0, atol=3e-3)
    np.testing.assert_allclose(found.velocity[0], rate * np.cos(first * rate), rtol=0.0, atol=5e-3)
    np.testing.assert_allclose(found.acceleration[5:20].mean(axis=0), np.mean(
        [-rate**2 * found.position[k] for k in range(5, 20)], axis=0), rtol=0.0, atol=0.02)
    np.testing.assert_allclose(found.torque[0], np.cos(first * rate), rtol=0.0, atol=3e-3)
    np.testing.assert_allclose(found.seconds[:3], round(0.2 / step) * step)
    np.testing.assert_allclose(found.integrated, found.travel, rtol=0.0, atol=1e-4)
    np.testing.assert_allclose(found.travel[0], np.sin((3.0 + found.seconds[0]) * rate)
                               - np.sin(3.0 * rate), rtol=0.0, atol=1e-9)
    assert np.isnan(excerpt(ROBOT, replace(log, velocity=None)).integrated).all()


def steady(step: float, count: int, torque: FloatArray | None = None) -> RawLog:
    """Return joints that turn by 0.01 rad/s from a stamp of 3 s on."""
    time = step * np.arange(count)
    return RawLog('run', ROBOT.joints, 3.0 + time, 0.01 * time[:, None] * np.ones(3),
                  effort=np.ones((count, 3)) if torque is None else torque[:, None] * np.ones(3))


@pytest.mark.parametrize(('step', 'count', 'rows', 'starts'), [
    # of ten seconds, eight at most; without a quarter of a second at the ends
    (2.0**-4, 1280, 152, np.arange(0, 1280, 160)), (2.0**-4, 1601, 152, np.linspace(0, 1441, 8)),
    (2.0**-7, 1280, 159, [0]),
    # of a hundred rows at least
    (0.25, 300, 96, [0, 100, 200]), (0.25, 10, 6, [0]), (0.25, 9, 0, []), (0.5, 40, 36, [0])])
def test_windows_of_an_excerpt_are_spread_over_the_recording(
    step: float, count: int, rows: int, starts: list[int]
) -> None:
    found = excerpt(ROBOT, steady(step, count))
    first = np.floor(starts) + max(2, round(0.25 / step))
    assert len(found) == rows * len(starts)
    np.testing.assert_allclose(found.position[::rows or 1, 0], 0.01 * step * first,
                               rtol=0.0, atol=2e-5)


@pytest.mark.parametrize(('step', 'frequency'), [(0.01, 4.0), (0.1, 2.0)])
def test_an_excerpt_passes_half_of_four_hertz_or_of_a_fifth_of_its_rate(
    step: float, frequency: float
) -> None:
    wave = np.cos(2.0 * np.pi * frequency * step * np.arange(801) + 0.7)
    found = excerpt(ROBOT, steady(step, 801, wave))
    np.testing.assert_allclose(np.std(found.torque[15:50], axis=0), 0.5 * np.sqrt(0.5), rtol=0.03)


def test_fast_rows_are_averaged_around_the_grid() -> None:
    """What alternates every 4.9 ms would be a slow wave at every 10 ms."""
    found = excerpt(ROBOT, steady(0.0049, 2001, (-1.0)**np.arange(2001)))
    assert np.std(found.torque[10:-10]) < 0.1


def test_excerpts_are_thinned_joined_and_shared_out() -> None:
    whole = excerpt(ROBOT, log_of(regular(1281)))
    count = len(whole)
    for rows in (count, count - 1, 20, 1):
        every = int(np.ceil(count / rows))
        thin = thin_excerpt(whole, rows)
        np.testing.assert_array_equal(thin.torque, whole.torque[::every])
        assert thin.travel is whole.travel
    both = join_excerpts([whole, replace(whole, step=3.0 * whole.step), replace(
        whole, step=np.nan)])
    assert len(both) == 3 * count and both.step == 2.0 * whole.step
    few = thin_excerpt(whole, 10)
    shared = sample_excerpts([few, whole, whole], 70)
    assert len(shared) == len(few) + 2 * len(thin_excerpt(whole, (70 - len(few)) // 2))
    assert len(shared.travel) == 0 and shared.step == whole.step
    assert len(sample_excerpts([whole] * 5, 3)) == 5
    assert set(excerpt(ROBOT, steady(0.5, 40)).seconds) == {0.5}


def test_pauses_and_missing_values_part_excerpts() -> None:
    """Stretches of at most a second, or of few rows, are left out."""
    time = regular(1281)
    log = log_of(time)
    assert log.effort is not None
    time[700:] += 0.5
    whole = len(excerpt(ROBOT, replace(log, time=regular(1281))))
    # every sixth of 547 and 453 rows at 100 Hz, without 25 at the ends
    assert len(excerpt(ROBOT, log)) == 83 + 68 < whole
    for stop, used in ((128, False), (133, True)):
        assert (len(excerpt(ROBOT, log_of(regular(stop)))) > 0) is used
    assert len(excerpt(ROBOT, replace(log, effort=None))) == 0
    hidden = log.effort.copy()
    hidden[100:1200, 1] = np.nan
    assert len(excerpt(ROBOT, replace(log, effort=hidden))) == 0


def test_digests_are_of_pairs_of_rows_and_not_of_stamps_or_rest() -> None:
    log = log_of(regular(500), rate=5.0)
    whole = digests(log)
    assert len(whole) == 499 and np.all(np.diff(whole.astype(float)) >= 0.0)
    np.testing.assert_array_equal(digests(replace(log, time=log.time + 9.0)), whole)
    rounded = replace(log, position=log.position * (1.0 + 1e-9))
    assert np.isin(digests(rounded), whole).mean() > 0.98
    other = replace(log, position=log.position + 1e-2)
    assert not np.isin(digests(other), whole).any()
    still = log_of(np.zeros(50), rate=0.0)
    assert len(digests(still)) == 0
    halves = [digests(replace(log, time=log.time[rows], position=log.position[rows],
                              effort=np.asarray(log.effort)[rows]))
              for rows in (slice(0, 251), slice(250, 500))]
    np.testing.assert_array_equal(merge_digests(halves), whole)
    assert shared_share(whole, halves[0]) == 1.0
    assert shared_share(halves[0], whole) == pytest.approx(len(halves[0]) / 499)
    few = [halves[0][:k] for k in (19, 20)]
    assert [shared_share(whole, one) for one in few] == [0.0, 1.0]
    assert candidates(3, [whole, few[0], few[1]].__getitem__) == [(0, 2)]
    assert len(merge_digests([np.arange(3000, dtype=np.uint64)])) == 2048


def test_digests_are_of_four_digits_and_shares_of_what_both_sketches_cover() -> None:
    values = np.round(np.random.default_rng(0).uniform(1.0, 9.0, (200, 3)), 3)
    log = RawLog('run', ROBOT.joints, regular(200), values, effort=10.0 * values)
    whole = digests(log)
    for off, same in ((3e-4, True), (-3e-4, True), (7e-4, False)):
        other = digests(replace(log, position=values + off))
        assert np.isin(other, whole).sum() == (199 if same else 0)
    dense, sparse = np.arange(2048, dtype=np.uint64), 10 * np.arange(2048, dtype=np.uint64)
    assert shared_share(dense, sparse) == 1.0
    assert shared_share(sparse, dense) == pytest.approx(205 / 2048)
    assert shared_share(dense[:2047], sparse) == pytest.approx(205 / 2048)


def test_findings_are_sentences_that_are_read_back() -> None:
    one = Finding('clock', 'run: a', ('j1', 'j2'), Severity.WARN, 'stamps leap', 'cut it; then go')
    assert one.sentence == 'run: a: clock of j1, j2: stamps leap; cut it; then go'
    bare = replace(one, kind='gravity', joints=())
    assert bare.sentence == 'run: a: gravity: stamps leap; cut it; then go'
    accepted, other = accept_findings((one, bare), ('clock',))
    assert accepted.severity is Severity.ACCEPT and other is bare
    assert accepted.sentence == f'{one.sentence} (accepted)'
    sentences = (one.sentence, bare.sentence, accepted.sentence, 'run: another: thing; to do')
    assert read_sentences(sentences) == (one, bare)
    assert check_kinds(iter(KINDS)) == tuple(KINDS)
    with pytest.raises(UsageError, match="accept: there is no finding 'clocks'; choose one of "
                       'time_unit, clock, '):
        check_kinds(['clock', 'clocks'])
