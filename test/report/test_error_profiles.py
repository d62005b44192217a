"""report/errors.py, report/thinning.py: bins, bands and densities of errors known beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked
from scipy import signal, stats

from robot_dynid import figures
from robot_dynid.report import errors, thinning
from robot_dynid.types import FloatArray
from robot_dynid.validation.effort_parts import EffortParts
from robot_dynid.validation.validate import Trace, Validation

MODEL = nominal_model('planar_3r')


def trace(error: FloatArray, step: float = 0.01, **more: Any) -> Trace:
    """Return a recording whose errors (N,) are those of every joint, for an effort of 10 N m."""
    measured = np.full((len(error), 3), 10.0)
    return Trace('x.csv', 7.0 + step * np.arange(len(error)), measured, measured - error[:, None],
                 measured, np.ones(len(error)), None, **more)


def moved(speed: FloatArray, place: FloatArray, load: FloatArray, error: FloatArray) -> Trace:
    """Return one with the motion (N,) of joint 1, and a friction of 4 N m."""
    still = np.zeros((len(error), 3))

    def at_1(values: FloatArray) -> FloatArray:
        return still + np.outer(values, [0.0, 1.0, 0.0])

    predicted = at_1(load + 4.0)
    one = trace(error, position=at_1(place), velocity=at_1(speed),
                split=EffortParts(still, still, at_1(np.full(len(error), 4.0)), still))
    return replace(one, predicted=predicted, measured=predicted + error[:, None])


@pytest.mark.parametrize(('bins', 'known'), [(4, [393, 4, 3, 0]), (40, [397, 2, 1] + 37 * [0])])
def test_a_bin_holds_a_hundredth_of_the_samples_or_its_share_of_many_bins(
    bins: int, known: list[int]
) -> None:
    edges = np.arange(bins + 1.0)
    quantity = np.repeat(np.arange(bins) + 1.0, known)  # at the upper edge of each
    error = np.repeat(np.arange(bins) + 1.0, known) * (-1.0)**np.arange(400)
    found = errors.profile(quantity, error, edges)
    np.testing.assert_allclose(found.share, np.array(known) / 400.0)
    np.testing.assert_allclose(found.error, [1.0, 2.0] + (bins - 2) * [np.nan])
    assert found.whole == pytest.approx(np.sqrt(np.mean(error**2)))
    np.testing.assert_allclose(found.middle, np.arange(bins) + 0.5)
    assert found.worst == 1


def test_profiles_are_of_the_joint_without_friction_and_recordings_follow_one_another() -> None:
    place = np.linspace(-2.0, 1.0, 500)
    first = moved(np.linspace(-3.0, 2.0, 500), place, np.linspace(-5.0, 9.0, 500), np.ones(500))
    second = moved(place, place, place, np.full(500, 3.0))
    found = errors.profiles([first, second], 1, 1)
    assert list(found) == [errors.SPEED, errors.POSITION, errors.LOAD, errors.TIME]
    speed, position, load, time = found.values()
    np.testing.assert_allclose(speed.edges, 3.0 * np.linspace(0.0, 1.0, 21)**2)
    np.testing.assert_allclose(position.edges, np.linspace(-2.0, 1.0, 21))
    loads = np.abs(np.concatenate([np.linspace(-5.0, 9.0, 500), place]))
    np.testing.assert_allclose(load.edges, np.linspace(loads.min(), 9.0, 21))
    assert (load.error[-1], load.share[-1]) == (1.0, np.mean(loads > load.edges[-2]))
    np.testing.assert_allclose(time.edges, np.linspace(0.0, 2 * 4.99 + 0.02 * 4.99, 61))
    np.testing.assert_allclose(time.error[[0, 28, -28, -1]], [1.0, 1.0, 3.0, 3.0])
    assert list(errors.profiles([first, replace(second, split=None)], 1, 1)) == [errors.TIME]
    for name in ('position', 'velocity'):
        assert list(errors.profiles([replace(first, **{name: None})], 1, 1)) == [errors.TIME]


@pytest.mark.parametrize(('count', 'size'), [(4607, 1024), (4608, 1024), (300, 300)])
def test_spectra_are_those_of_welch_in_twelfths_of_a_decade(count: int, size: int) -> None:
    rng = np.random.default_rng(4)
    step, error = 0.004, rng.standard_normal(count) + 2.0
    one = trace(error, step)
    one = replace(one, measured=one.measured + np.cumsum(error)[:, None],
                  predicted=one.predicted + np.cumsum(error)[:, None])
    short = trace(1e3 * error[:200], step)
    frequency, of_error, of_effort = errors.spectrum([short, one, short], 2)
    lines, density = signal.welch(np.stack([error, one.measured[:, 2]]), 1.0 / step,
                                  nperseg=size, noverlap=size - size // 2)
    power = density[:, 1:] * lines[1]
    power[:, -1] *= 2.0  # SciPy takes the line at the Nyquist frequency once
    apart = np.diff(np.log10(frequency))[-6:]
    np.testing.assert_allclose(apart, 1.0 / 12.0, rtol=0.07)
    band = np.searchsorted(frequency * 10.0**(0.5 * apart[-1]), lines[1:])
    for i, found in enumerate((of_error, of_effort)):
        np.testing.assert_allclose(found[-4:]**2, np.bincount(band, power[i])[:len(found)][-4:],
                                   rtol=1e-6)
        assert np.sum(found**2) == pytest.approx(power[i].sum())


def test_the_largest_errors_stand_with_their_place_and_share() -> None:
    """Errors of 1 N m, of 3 at the end of the range, of 1.4 at the load in its middle."""
    place, load = np.linspace(0.0, 4.0, 2000), np.tile(np.linspace(0.0, 20.0, 100), 20)
    size = np.where(place > 3.8, 3.0, np.where(np.abs(load - 10.5) < 0.4, 1.4, 1.0))
    one = moved(np.ones(2000), place, load, size * (-1.0)**np.arange(2000))
    largest, by = errors.errors(Validation({}, {}, (one,), ()), MODEL)
    (table,) = largest.tables
    assert table.columns == (
        'joint', 'RMS error [N m]', 'largest by speed [rad/s]', 'largest by position [rad]',
        'largest by load [N m]', 'largest over time [s]', 'frequency')
    joint, whole, _, position, by_load, time, frequency = table.rows[1].cells
    rms = np.sqrt(np.mean(size**2))
    assert (joint, whole) == ('joint_2', f'{rms:.3g}')
    assert (position.text, position.mark) == (f'{3.0 / rms:.1f} ×', 'fair')
    assert position.note == '3.80 to 4.00: 5.0 % of all'
    assert by_load.note == '10.0 to 11.0: 5.0 % of all' and by_load.mark == ''
    assert time.mark == 'fair' and frequency == 'half of it below 45 Hz'  # 41 to 50
    assert [figure.title for figure in by.figures] == [
        'By speed', 'By position', 'By load', 'Over time', 'By frequency']
    assert [figure.link for figure in by.figures] == ['', '', '', 'time', 'frequency']
    assert by.beside and by.folded
    effort = np.sqrt(np.mean(one.measured[:, 1]**2))
    curve = by.figures[2].spec['data'][1]  # load in per cent of its largest, error of the effort
    np.testing.assert_allclose(unpacked(curve['x']), np.arange(2.5, 100.0, 5.0), rtol=1e-5)
    assert unpacked(curve['y'])[10] == pytest.approx(
        100.0 * np.sqrt(np.mean(size[np.abs(load - 10.5) < 0.5]**2)) / effort, rel=1e-5)
    assert (curve['mode'], by.figures[3].spec['data'][1]['mode']) == ('lines+markers', 'lines')
    np.testing.assert_allclose(unpacked(by.figures[1].spec['data'][1]['x'])[[0, -1]], [0.1, 3.9],
                               rtol=1e-5)
    assert by.figures[1].spec['layout']['xaxis']['title']['text'] == 'position [rad]'


@pytest.mark.parametrize(('above', 'mark'), [(1.52, 'fair'), (1.48, '')])
def test_an_error_stands_out_above_one_and_a_half_times_the_rms(above: float, mark: str) -> None:
    # the last of 60 bins has a times the RMS of all: a^2 / (59 + a^2) of 60
    size = np.ones(6000)
    size[-100:] = np.sqrt(59.0 * above**2 / (60.0 - above**2))
    largest, _ = errors.errors(Validation({}, {}, (trace(1e-3 * size),), ()), MODEL)
    cell = largest.tables[0].rows[0].cells[2]
    assert (cell.text, cell.mark) == (f'{above:.1f} ×', mark)
    assert cell.note.endswith('1.7 % of all')


def test_a_model_without_errors_has_no_largest_one() -> None:
    largest, by = errors.errors(Validation({}, {}, (trace(np.zeros(500)),), ()), MODEL)
    assert largest.tables[0].columns[2:] == ('largest over time [s]', 'frequency')
    assert largest.tables[0].rows[0].cells[2].text == '–'
    assert [figure.title for figure in by.figures] == ['Over time', 'By frequency']


def test_a_joint_without_effort_has_no_curve_in_per_cent_of_it() -> None:
    one = trace(np.ones(500))
    dead = replace(one, measured=one.measured * [1.0, 0.0, 1.0])
    over_time = errors.errors(Validation({}, {}, (dead,), ()), MODEL)[1].figures[0].spec
    assert [(curve['name'], curve['line']['color']) for curve in over_time['data']] == [
        (MODEL.joints[i], figures.series(i)) for i in (0, 2)]


def test_residuals_are_drawn_as_densities_in_units_of_their_rms() -> None:
    error = np.where(np.arange(1000) % 5 == 0, 3.0, -1.0)  # RMS sqrt(2.6)
    section = errors.residuals(Validation({}, {}, (trace(error),), ()), MODEL)
    correlation, density = (figure.spec for figure in section.figures)
    assert section.beside and section.folded
    assert [curve['name'] for curve in density['data']] == ['normal', *MODEL.joints]
    x, y = (unpacked(density['data'][2][name]) for name in 'xy')
    np.testing.assert_allclose(x, np.arange(-3.95, 4.0, 0.1), rtol=1e-5)
    assert {round(float(x[k]), 2): pytest.approx(y[k]) for k in np.flatnonzero(y)} == {
        1.85: 2.0, -0.65: 8.0}
    np.testing.assert_allclose(unpacked(density['data'][0]['y']), stats.norm.pdf(x), rtol=1e-5)
    lag, value = (unpacked(correlation['data'][0][name]) for name in 'xy')
    assert correlation['layout']['yaxis']['range'] == [-1.05, 1.05]
    # that of a fifth: every fifth lag is 1 but for those at the ends, -1 / 4 between
    np.testing.assert_allclose(value[[1, 4, 5]], [-0.25, -0.25, 1.0], rtol=0.0, atol=0.01)
    np.testing.assert_allclose(lag[[0, 1, -1]], [0.0, 0.01, 2.0], rtol=0.0, atol=0.011)


def test_recordings_of_another_rate_are_left_out_of_the_autocorrelation() -> None:
    alternating, constant = (-1.0)**np.arange(400), np.repeat([1.0, -1.0], 200)
    known, one = thinning.autocorrelation([trace(alternating)], 0), trace(alternating)
    ramp = np.arange(400.0)[:, None]  # of the effort is in no error
    found = thinning.autocorrelation(
        [replace(one, measured=one.measured + ramp, predicted=one.predicted + ramp)], 0)
    np.testing.assert_allclose(found[1], known[1], rtol=1e-9, atol=1e-9)
    for step, same in ((0.010095, False), (0.010105, True)):
        found = thinning.autocorrelation([trace(alternating), trace(constant, step)], 0)
        assert np.array_equal(found[1], known[1]) is same
        assert np.array_equal(found[0], known[0])
    np.testing.assert_allclose(known[1][:4], [1.0, -399 / 400, 398 / 400, -397 / 400])
    with_one = thinning.autocorrelation([trace(alternating), trace(alternating[:1])], 0)
    assert np.array_equal(with_one[1], known[1])
    with_one = thinning.autocorrelation([trace(alternating[:1]), trace(alternating)], 0)
    assert np.array_equal(with_one[1], known[1])
    assert np.isnan(thinning.autocorrelation([trace(np.ones(400))], 0)[1]).all()


def test_lags_go_to_two_seconds_in_two_hundred_equal_ratios() -> None:
    lag, value = thinning.autocorrelation([trace(np.array([1.0, -1.0]), 0.25)], 0)
    np.testing.assert_allclose(lag, 0.25 * np.arange(9.0))
    np.testing.assert_allclose(value, [1.0, -0.5, *7 * [0.0]], rtol=0.0, atol=1e-12)
    lag, _ = thinning.autocorrelation([trace(np.array([1.0, -1.0]), 2.0**-14)], 0)
    rows = lag * 2.0**14 + 1.0
    assert rows[-1] == 2.0**15 + 1.0
    assert rows[-1] / rows[-2] == pytest.approx(rows[-1]**(1.0 / 199.0), abs=1e-4)


def test_the_mean_step_leaves_gaps_out() -> None:
    one = trace(np.zeros(101))
    late = replace(one, time=one.time + np.where(np.arange(101) > 40, 1.0, 0.0))
    assert thinning.mean_step(late) == pytest.approx(0.01)
    # a step of ten times the median is no gap yet
    steps = np.array([1.0, 1.0, 1.0, 10.0, 1.0, 1.0])
    even = replace(trace(np.zeros(7)), time=np.append(0.0, np.cumsum(steps)))
    assert thinning.mean_step(even) == pytest.approx(2.5)
    assert thinning.curve([even], 0, 0).gaps == ()
    two = replace(trace(np.zeros(2)), time=np.array([1.0, 1.5]))
    assert thinning.mean_step(two) == 0.5


@pytest.mark.parametrize(('signals', 'width'), [(1, 20), (2, 40)])
def test_every_stretch_keeps_least_and_largest_of_every_signal(signals: int, width: int) -> None:
    values = np.random.default_rng(1).standard_normal((signals, 997))
    values[:, 990] = 9.0
    kept = {0, 996}
    for start in range(0, 997, width):
        stretch = values[:, start:start + width]
        kept |= {start + int(k) for k in (*stretch.argmin(axis=1), *stretch.argmax(axis=1))}
    assert thinning.extremes(list(values), 100).tolist() == sorted(kept)
    assert thinning.extremes(list(values), 997).tolist() == list(range(997))
    assert len(thinning.extremes(list(values), 996)) < 997


def test_recordings_follow_with_a_pause_of_a_fiftieth_of_their_mean_length() -> None:
    traces = [trace(np.zeros(count)) for count in (201, 401, 0)]
    assert thinning.offsets(traces) == pytest.approx([0.0, 2.04, 6.08])
    traces = traces[:2]
    ramps = [{'a': one.time, 'b': -one.time} for one in traces]
    time, columns = thinning.joined(traces, ramps, 10_000)
    ends = np.flatnonzero(np.isnan(time))
    assert ends.tolist() == [201, 603]
    assert (time[0], time[200], time[202]) == pytest.approx((0.0, 2.0, 2.06))
    np.testing.assert_allclose(columns['a'], -columns['b'])
    assert columns['a'][202] == 7.0 and np.isnan(columns['a'][201])
    # ramps have their extremes at the ends of stretches: two of each, and the share of a trace
    time, _ = thinning.joined(traces, ramps, 120)
    sizes = np.diff(np.flatnonzero(np.isnan(time)), prepend=-1) - 1
    assert 35 <= sizes[0] <= 40 and 70 <= sizes[1] <= 80


def test_curves_have_gaps_turns_and_outliers_at_their_instants() -> None:
    count = 400
    error = np.where(np.arange(count) % 2, 1.0, -1.0)  # quartiles at -1 and 1: fences at +-7
    error[[50, 51, 100, 150, 200, 300, 302]] = 7.1, 8.0, -7.1, 6.9, -6.9, 7.5, 7.6
    speed = np.where(np.arange(count) % 100 < 50, 1.0, -1.0)
    speed[120:130] = -0.04  # too slow to be a turn: 0.05 of the RMS
    speed[320:330] = -0.06
    one = trace(error, velocity=np.repeat(speed[:, None], 3, axis=1))
    late = np.where(np.arange(count) > 249, 1.0, 0.0)
    one = replace(one, time=one.time + late, control=0.5 * one.measured)
    found = thinning.curve([one], 1, 2)
    np.testing.assert_allclose(found.outliers, [
        [0.51, 8.0], [4.02, 7.6], [4.0, 7.5], [1.0, -7.1]])
    assert found.gaps == (pytest.approx((2.49, 3.5)),)
    assert np.flatnonzero(np.isnan(found.time)).tolist() == [250, 401]
    np.testing.assert_allclose(
        found.reversals, [0.49, 0.99, 1.49, 1.99, 2.49, 3.99, 4.19, 4.29, 4.49])
    np.testing.assert_allclose(found.control[[0, 251, 400]], 5.0)
    np.testing.assert_allclose((found.measured - found.predicted)[[51, 251]], [8.0, -1.0])
    assert thinning.curve([one, replace(one, control=None)], 1, 2).control is None
    assert thinning.curve([replace(one, velocity=None)], 1, 2).reversals.size == 0
    empty = trace(np.zeros(0))
    assert thinning.curve([empty, one], 1, 2).time[0] == pytest.approx(0.0499)  # the pause


def test_many_turns_and_outliers_are_thinned() -> None:
    count = 2402
    speed = np.repeat((-1.0)**np.arange(1201), 2)
    error = np.random.default_rng(0).uniform(-1.0, 1.0, count)
    error[::20] = 100.0 + np.arange(121)
    one = trace(error, velocity=np.repeat(speed[:, None], 3, axis=1))
    found = thinning.curve([one], 0, 0)
    assert len(found.reversals) == 600 and found.reversals[1] == pytest.approx(0.05)
    np.testing.assert_allclose(found.outliers[:, 1], 220.0 - np.arange(60))


@pytest.mark.parametrize(('low', 'high', 'at'), [
    # half of the power, neither of the amplitude nor of its cube
    ((3.0,), 6 * (1.1,), 4.0), (4 * (1.6,), (3.0,), 13.5)])
def test_half_of_the_power_is_below_a_frequency(
    low: tuple[float, ...], high: tuple[float, ...], at: float
) -> None:
    time = 0.01 * np.arange(4096)
    of = zip((*low, *high), 4.0 * 1.5**np.arange(7.0), strict=False)
    error = sum(size * np.sin(2.0 * np.pi * hertz * time) for size, hertz in of)
    largest, _ = errors.errors(Validation({}, {}, (trace(error),), ()), MODEL)
    words = largest.tables[0].rows[0].cells[-1].split()
    assert words[:4] == ['half', 'of', 'it', 'below']
    assert float(words[4]) == pytest.approx(at, rel=0.15)


def test_points_of_a_curve_are_shared_out_by_length() -> None:
    rng = np.random.default_rng(0)
    traces = [trace(rng.standard_normal(count)) for count in (1000, 3000, 10)]
    found = thinning.curve(traces, 0, 0, 400)
    sizes = np.diff(np.flatnonzero(np.isnan(found.time)), prepend=-1) - 1
    assert 70 <= sizes[0] <= 100 and 200 <= sizes[1] <= 300
    # of ten among four thousand: the ends, least and largest (the effort is constant)
    ends = {0, 9, int(traces[2].predicted[:, 0].argmin()), int(traces[2].predicted[:, 0].argmax())}
    assert sizes[2] == len(ends)


def test_a_control_without_links_is_none_and_one_recording_without_keeps_the_others() -> None:
    nothing = np.full((50, 3), np.nan)
    assert thinning.curve([replace(trace(np.ones(50)), control=nothing)], 0, 0).control is None


def test_quartiles_decide_what_is_far_outside() -> None:
    error = np.linspace(-1.0, 1.0, 1001)  # quartiles at -0.5 and 0.5: fences at -3.5 and 3.5
    error[[0, 200, 400, 402, 600]] = 3.46, 3.54, -3.46, -3.54, 9.0
    found = thinning.curve([trace(error)], 0, 0).outliers
    np.testing.assert_allclose(found, [[6.0, 9.0], [2.0, 3.54], [4.02, -3.54]])


@pytest.mark.parametrize(('turns', 'shown'), [(600, 600), (601, 301)])
def test_reversals_are_thinned_beyond_six_hundred(turns: int, shown: int) -> None:
    speed = np.repeat((-1.0)**np.arange(turns + 1), 2)
    one = trace(np.zeros(len(speed)), velocity=np.repeat(speed[:, None], 3, axis=1))
    assert len(thinning.curve([one], 0, 0).reversals) == shown


@pytest.mark.parametrize(('count', 'whole'), [(6000, True), (6001, False)])
def test_curves_have_all_samples_up_to_six_thousand(count: int, whole: bool) -> None:
    one = trace(np.random.default_rng(0).standard_normal(count))
    drawn = int(np.isfinite(thinning.curve([one], 0, 0).time).sum())
    assert drawn == 6000 if whole else 3000 <= drawn <= 6000
    time, columns = thinning.joined([one], [{'a': one.time}], 6000)
    assert columns['a'][0] == 7.0 and len(time) == (6001 if whole else len(columns['a']))


def test_a_single_sample_has_no_gap() -> None:
    found = thinning.curve([trace(np.ones(1))], 0, 0)
    assert (found.gaps, np.isfinite(found.time).sum()) == ((), 1)
