"""Errors by speed, position, load, time and frequency: the fourth chapter of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid import figures
from robot_dynid.document import Cell, Figure, Row, Section, Table, number, percent
from robot_dynid.figures import FROM_ZERO, Spec, axis, line
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import thinning
from robot_dynid.robot.units import effort_unit, length, rate
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import Trace, Validation

#: bins of a range, of the time axis, and of the frequency axis per decade
RANGE_BINS, SPANS, PER_DECADE = 20, 60, 12
#: share of the samples that a bin must hold; ratio to the error of all from which one stands out
LEAST_BIN_SHARE, STANDS_OUT = 0.01, 1.5
#: samples of the stretches whose spectra are averaged
SPECTRUM_SAMPLES = 1024
#: decimals of the edges of a bin at most
EDGE_DECIMALS = 6
SPEED, POSITION, LOAD, TIME = 'speed', 'position', 'load', 'time'


@dataclass(frozen=True, eq=False)
class ErrorProfile:
    """RMS error of one equation in bins of a quantity.

    ``edges`` (k + 1,) of the bins, ``error`` (k,) [N m, N], NaN where a bin holds too little, and
    the ``share`` (k,) of the samples in each; ``whole`` is the RMS error of all.
    """

    edges: FloatArray
    error: FloatArray
    share: FloatArray
    whole: float

    @property
    def middle(self) -> FloatArray:
        """The middle of each bin (k,)."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @property
    def worst(self) -> int:
        """The bin with the largest error."""
        return int(np.nanargmax(self.error))


def profile(quantity: FloatArray, error: FloatArray, edges: FloatArray) -> ErrorProfile:
    """Return the RMS of errors (N,) in bins of a quantity (N,) with ``edges`` (k + 1,)."""
    square = error**2
    bins = np.searchsorted(edges[1:-1], quantity)
    count = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    total = np.bincount(bins, square, minlength=len(edges) - 1)
    share = count / len(error)
    enough = share >= LEAST_BIN_SHARE * min(1.0, RANGE_BINS / len(count))
    with np.errstate(invalid='ignore'):  # empty bins
        rms = np.sqrt(total / count)
    return ErrorProfile(edges, np.where(enough, rms, np.nan), share,
                        float(np.sqrt(np.mean(square))))


def profiles(traces: Sequence[Trace], row: int, joint: int) -> dict[str, ErrorProfile]:
    """Return the profiles of an equation by quantity; without motion, that over time alone.

    Speed [rad/s, m/s] without its sign; position [rad, m]; load [N m, N], the modelled effort
    without friction, without its sign; time [s], recordings one after the other.
    """
    error = thinning.residuals(traces, row)
    time = np.concatenate([t.time - t.time[0] + start for t, start in zip(
        traces, thinning.offsets(traces), strict=True)])
    by_quantity = {}
    signals = [(t.position, t.velocity, t.friction, t.predicted) for t in traces
               if t.position is not None and t.velocity is not None and t.friction is not None]
    if len(signals) == len(traces):
        speed = np.abs(np.concatenate([velocity[:, joint] for _, velocity, _, _ in signals]))
        position = np.concatenate([own[:, joint] for own, _, _, _ in signals])
        load = np.abs(np.concatenate([all_[:, row] - own[:, row] for _, _, own, all_ in signals]))
        finer = np.linspace(0.0, 1.0, RANGE_BINS + 1)**2
        by_quantity = {SPEED: profile(speed, error, float(speed.max()) * finer),
                       POSITION: profile(position, error, _even(position, RANGE_BINS)),
                       LOAD: profile(load, error, _even(load, RANGE_BINS))}
    return {**by_quantity, TIME: profile(time, error, _even(time, SPANS))}


def _even(values: FloatArray, count: int) -> FloatArray:
    return np.linspace(float(values.min()), float(values.max()), count + 1)


def spectrum(traces: Sequence[Trace], row: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return frequencies (f,) [Hz] and the RMS (f,) of error and effort in bands about them.

    Welch: half-overlapping stretches under a Hann window; the longest recording counts.
    Source: IEEE Trans. Audio Electroacoust. 1967, 15, 70.
    """
    trace = max(traces, key=lambda t: len(t.time))
    size = min(SPECTRUM_SAMPLES, len(trace.time))
    starts = np.arange(0, len(trace.time) - size + 1, size // 2)
    window = np.hanning(size + 1)[:-1]
    step, scale = thinning.mean_step(trace), float(np.sum(window**2))
    rows = []
    for signal in (trace.measured[:, row] - trace.predicted[:, row], trace.measured[:, row]):
        cut = np.lib.stride_tricks.sliding_window_view(signal, size)[starts]
        power = np.abs(np.fft.rfft((cut - cut.mean(axis=1, keepdims=True)) * window))**2
        rows.append(2.0 * power.mean(axis=0)[1:] / scale / size)  # of each line
    frequency = np.fft.rfftfreq(size, step)[1:]
    decades = np.log10(frequency[-1] / frequency[0])
    edges = np.geomspace(frequency[0] * 0.999, frequency[-1] * 1.001,
                         max(int(PER_DECADE * decades), 1) + 1)
    bins = np.searchsorted(edges[1:-1], frequency)
    occupied = np.unique(bins)
    bands = [np.sqrt(np.bincount(bins, one)[occupied]) for one in rows]
    return np.sqrt(edges[:-1] * edges[1:])[occupied], bands[0], bands[1]


def errors(validation: Validation, model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the errors of all joints by each quantity, as a table and as figures."""
    robot, traces = model.robot, validation.traces
    rows = list(zip(robot.row_names, robot.row_joints, strict=True))
    by_joint = {name: profiles(traces, i, joint) for i, (name, joint) in enumerate(rows)}
    spectra = {name: spectrum(traces, i) for i, name in enumerate(by_joint)}
    sizes = {name: float(np.sqrt(np.mean(np.concatenate(
        [t.measured[:, i] for t in traces])**2))) for i, name in enumerate(by_joint)}
    text = ('Error that grows at low speed is friction; with load, gears or inertials; with '
            'position, cables, ripple or a wrong axis; over time, warming up.')
    at = ' or '.join(dict.fromkeys(length(robot, joint) for _, joint in rows))
    speed = rate(at)
    titles = {SPEED: ('By speed', f'speed [{speed}]'),
              POSITION: ('By position', f'position [{at}]'),
              LOAD: ('By load', 'load: effort without friction [% of its largest]'),
              TIME: ('Over time', 'time [s], recordings one after the other')}
    drawn = [Figure(_by(by_joint, sizes, kind, title), head, link='time' if kind == TIME else '')
             for kind, (head, title) in titles.items() if kind in next(iter(by_joint.values()))]
    units = {SPEED: f'by speed [{speed}]', POSITION: f'by position [{at}]',
             LOAD: f'by load [{effort_unit(robot)}]', TIME: 'over time [s]'}
    heads = (f'RMS error [{effort_unit(robot)}]', *(
        f'largest {head}' for kind, head in units.items()
        if kind in next(iter(by_joint.values()))))
    drawn.append(Figure(spectra_figure(effort_unit(robot), spectra), 'By frequency',
                        link='frequency'))
    return (Section('Where the error is largest', text=text,
                    tables=(_largest(heads, by_joint, spectra),)),
            Section('Error by speed, position, load, time and frequency', figures=tuple(drawn),
                    text='RMS error in bins, in per cent of the effort of the joint: a rising '
                         'curve says what the model lacks.', beside=True, folded=True))


def _by(found: dict[str, dict[str, ErrorProfile]], sizes: dict[str, float], kind: str,
        title: str) -> Spec:
    """Return one curve per joint that has an effort over the bins of a quantity."""
    curves = []
    for i, (name, profile_) in enumerate(found.items()):
        if not sizes[name]:
            continue
        one = profile_[kind]
        x = 100.0 * one.middle / max(float(one.edges[-1]), 1e-12) if kind == LOAD else one.middle
        y, colour = 100.0 * one.error / sizes[name], figures.series(i)
        curves.append(line(x, y, name, colour, more={} if kind == TIME else {
            'mode': 'lines+markers', 'connectgaps': True}))
    return figures.figure(curves, axis(title), axis('error / effort, RMS [%]', FROM_ZERO))


def spectra_figure(
    units: str, spectra: dict[str, tuple[FloatArray, FloatArray, FloatArray]]
) -> Spec:
    """Return the RMS errors [``units``] in bands (b,) over their frequency (b,) [Hz]."""
    curves = [line(frequency, error, name, figures.series(i))
              for i, (name, (frequency, error, _)) in enumerate(spectra.items())]
    drawn = [(frequency, error[error > 0.0]) for frequency, error, _ in spectra.values()]
    across, up = ({'type': 'log', **figures.tick_names(float(values.min()), float(values.max()))}
                  if values.size else {} for values in map(np.concatenate, zip(*drawn)))
    return figures.figure(curves, axis('frequency [Hz]', across), axis(
        f'error in each band, RMS [{units}]', up))


def _largest(heads: Sequence[str], found: dict[str, dict[str, ErrorProfile]],
             spectra: dict[str, tuple[FloatArray, FloatArray, FloatArray]]) -> Table:
    """Return the largest errors of every joint by each quantity, as ratios to its RMS."""
    kinds = list(next(iter(found.values())))
    rows = []
    for name, one in found.items():
        frequency, error, _ = spectra[name]
        power = np.cumsum(error**2)
        half = float(frequency[np.searchsorted(power, 0.5 * power[-1])])
        rows.append(Row((name, number(next(iter(one.values())).whole, 3),
                         *(_place(one[kind]) for kind in kinds), f'half of it below '
                         f'{number(half, 2)} Hz')))
    return Table(('joint', *heads, 'frequency'), tuple(rows),
                 'Multiples of the RMS error, and the share of the samples there')


def _place(one: ErrorProfile) -> Cell:
    if not np.isfinite(one.error).any() or not one.whole > 0.0:
        return Cell('–')
    k = one.worst
    ratio = float(one.error[k]) / one.whole
    place = ' to '.join(rounded(one.edges[k:k + 2]))
    return Cell(f'{ratio:.1f} ×', 'fair' if ratio > STANDS_OUT else '',
                f'{place}: {percent(float(one.share[k]))} % of all')


def rounded(edges: FloatArray) -> tuple[str, ...]:
    """Return the edges (2,) of a bin with the digits that its width asks for."""
    width = float(edges[1] - edges[0])
    digits = max(1 - int(np.floor(np.log10(width))), 0) if width > 0.0 else EDGE_DECIMALS
    digits = min(digits, EDGE_DECIMALS)
    return tuple(f'{round(edge, digits) + 0.0:.{digits}f}' for edge in edges.tolist())


def residuals(validation: Validation, model: IdentifiedModel) -> Section:
    """Return autocorrelation and distribution of the residuals."""
    traces, names = validation.traces, model.robot.row_names
    text = ('A slowly falling autocorrelation is an effect that the model lacks (friction near '
            'zero speed, elasticity, temperature); noise falls to zero at once.')
    return Section('Autocorrelation and distribution of the residual', text=text, beside=True,
                   folded=True,
                   figures=(Figure(correlation(traces, names), 'Autocorrelation'),
                            Figure(histogram(traces, names), 'Distribution')))


def correlation(traces: Sequence[Trace], joints: Sequence[str]) -> Spec:
    """Return the autocorrelation of all residuals."""
    curves = [line(*thinning.autocorrelation(traces, i), joint, figures.series(i))
              for i, joint in enumerate(joints)]
    return figures.figure(curves, axis('lag [s]'), axis(
        'autocorrelation of the residual', more={'range': [-1.05, 1.05]}))


def histogram(traces: Sequence[Trace], joints: Sequence[str]) -> Spec:
    """Return the densities of the residuals, each in units of its RMS, beside the normal one."""
    edges = np.linspace(-4.0, 4.0, 81)
    middle = 0.5 * (edges[1:] + edges[:-1])
    normal = np.exp(-0.5 * middle**2) / np.sqrt(2 * np.pi)
    curves = [line(middle, normal, 'normal', figures.LINE, more={
        'fill': 'tozeroy', 'fillcolor': '@measured/25'})]
    for i, joint in enumerate(joints):
        error = thinning.residuals(traces, i)
        size = float(np.sqrt(np.mean(error**2))) or np.nan
        density = np.histogram(error / size, edges)[0] / len(error) / (edges[1] - edges[0])
        curves.append(line(middle, density, joint, figures.series(i)))
    return figures.figure(curves, axis('residual / RMS of the residual'),
                          axis('density', FROM_ZERO))
