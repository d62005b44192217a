"""Coefficients that change slowly: warmth from dissipated power, and what a model leaves over.

On line what is left over is known through the low-pass of the momentum observer, so that columns
of the coefficients, and what they explained already, pass the same low-pass.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import compiled, inlined

#: a coefficient stays within so many of its deviations
BOUND = 3.0
#: places of the settings: noise [N^2 m^2 s], the deviations of a left over that is too large, and,
#: on line, the speed below which nothing is learnt and the gain of the observer [1/s]
NOISE, GATE, MOVES, GAIN = 0, 1, 2, 3
#: a pause [s] makes one measurement no better
LONGEST = 0.1
#: rows of the state of m coefficients: means, room for their gains, and the first of covariances
MEAN, ROOM, COVARIANCE = 0, 1, 2
#: columns of friction
VISCOUS, DRY = 0, 1
#: places of the law of warming of a joint: mean power, then by kind of friction its rise and falls
POWER, RISE, FALLS = 0, 1, 2
#: places of the past of a joint: power and correction of the last state, correction that passed
#: the low-pass, deviation of what the coefficients explain; then warmth, then pairs of a column
LAST_POWER, LAST_CORRECTION, SLOW_CORRECTION, DEVIATION, HEAD = 0, 1, 2, 3, 4


@inlined
def warm(warmth, rates, power, step):
    """Let the ``warmth`` (k,) follow ``power`` for ``step`` [s]; ``rates`` (k,) [1/s]."""
    for i in range(warmth.shape[0]):
        warmth[i] -= np.expm1(-rates[i] * step) * (power - warmth[i])


@inlined
def begin(state, deviations):
    """Fill ``state`` (2 + m, m) with coefficients of which nothing but ``deviations`` is known."""
    state[:] = 0.0
    for p in range(deviations.shape[0]):
        state[COVARIANCE + p, p] = deviations[p] ** 2


@inlined
def forget(state, deviations, rates, step):
    """Let ``step`` [s] pass: means return to zero, variances to those of unknown coefficients.

    ``state`` (2 + m, m): means, room, covariance; ``deviations``, ``rates`` (m,) [1/s].
    """
    count = deviations.shape[0]
    for p in range(count):
        same = p > 0 and rates[p] == rates[p - 1]  # as all of friction, and all of ripple
        state[ROOM, p] = state[ROOM, p - 1] if same else np.exp(-rates[p] * step)
        state[MEAN, p] *= state[ROOM, p]
    for p in range(count):
        keep = state[ROOM, p]
        for q in range(count):
            state[COVARIANCE + p, q] *= keep * state[ROOM, q]
        state[COVARIANCE + p, p] += deviations[p] ** 2 * (1.0 - keep ** 2)


@inlined
def explain(state, column):
    """Return mean and variance of ``column`` (m,) @ coefficients; room: covariance @ column."""
    count = column.shape[0]
    mean, variance = 0.0, 0.0
    state[ROOM] = 0.0
    for p in range(count):
        mean += column[p] * state[MEAN, p]
        for q in range(count):
            state[ROOM, q] += column[p] * state[COVARIANCE + p, q]
    for p in range(count):
        variance += column[p] * state[ROOM, p]
    return mean, variance


@inlined
def learn(state, deviations, innovation, variance):
    """Take ``innovation``, of ``variance`` with its noise, after `explain` of its column."""
    count = deviations.shape[0]
    for p in range(count):
        gain = state[ROOM, p] / variance
        for q in range(count):
            state[COVARIANCE + p, q] -= gain * state[ROOM, q]
        most = BOUND * deviations[p]
        state[MEAN, p] = min(max(state[MEAN, p] + gain * innovation, -most), most)


@compiled
def follow_warmth(power, law, steps, rates, warmth, out):
    """Fill ``out`` (N, k) with the warmth along ``power`` (N, 2), beginning with ``warmth`` (k,).

    The power is that of viscous and of dry friction without changes, ``law`` (2, 1 + k) has their
    rises and falls. ``steps`` (N,) [s] since the sample before, ``rates`` (k,) [1/s]. Within a
    step the power is the mean of both ends.
    """
    last = 0.0
    for i in range(steps.shape[0]):
        now = 0.0  # of friction as warm as it was
        for kind in range(2):
            scale = 1.0 + law[kind, 0]
            for p in range(warmth.shape[0]):
                scale -= law[kind, 1 + p] * warmth[p]
            now += scale * power[i, kind]
        now = max(now, 0.0)
        if i > 0:
            warm(warmth, rates, 0.5 * (last + now), steps[i])
        last = now
        out[i] = warmth


@compiled
def follow_coefficients(columns, left, prior, settings, state, means):
    """Fill ``means`` (N, m) with coefficients from what was ``left`` before each sample.

    ``columns`` (N, m): what a coefficient adds at one; ``left`` (2, N): what was left over, and
    the steps [s] since the sample before, of which zero begins anew; ``prior`` (2, m): deviations
    and rates [1/s]; ``settings`` see NOISE, GATE; ``state`` (2 + m, m) is carried on. What is NaN,
    or off by too much, is not learnt from.
    """
    deviations, rates = prior[0], prior[1]
    for i in range(columns.shape[0]):
        step = left[1, i]
        if step > 0.0:
            forget(state, deviations, rates, step)
        else:
            begin(state, deviations)
        for p in range(deviations.shape[0]):
            means[i, p] = state[MEAN, p]
        if step > 0.0:
            mean, variance = explain(state, columns[i])
            variance += settings[NOISE] / min(step, LONGEST)
            innovation = left[0, i] - mean
            if innovation ** 2 < settings[GATE] ** 2 * variance:
                learn(state, deviations, innovation, variance)


@inlined
def corrected(tables, memory, j, column, velocity, step):
    """Return the torque that warming and slow coefficients add to the friction of joint ``j``.

    ``column`` (2,): viscous and dry friction of its law; ``velocity`` of the joint. See
    `adaptation.on_line` for ``tables`` and ``memory``. Fills the scales of both kinds of friction.
    """
    rates, laws, prior, settings = tables
    pasts, states, scales = memory
    past, count = pasts[j], rates.shape[1]
    begins = step <= 0.0
    actual = 0.0  # friction as warm as it was
    for kind in range(2):
        scale = 1.0 + laws[j, kind, RISE]
        for i in range(count):
            scale -= laws[j, kind, FALLS + i] * past[HEAD + i]
        actual += scale * column[kind]
    power = max(actual * velocity, 0.0)
    if not begins:
        mean = 0.5 * (past[LAST_POWER] + power) / laws[j, 0, POWER]
        for i in range(count):
            past[HEAD + i] -= np.expm1(-rates[j, i] * step) * (mean - past[HEAD + i])
        forget(states[j], prior[j, 0], prior[j, 1], step)
    past[LAST_POWER] = power
    total, slow = 0.0, 0.0
    for kind in range(2):
        scale = laws[j, kind, RISE]
        for i in range(count):
            scale -= laws[j, kind, FALLS + i] * past[HEAD + i]
        total += scale * column[kind]
        scales[kind, j] = 1.0 + scale + states[j, MEAN, kind]
    for p in range(column.shape[0]):
        slow += states[j, MEAN, p] * column[p]
    _pass(past, HEAD + count, column, slow, settings[j, GAIN], step)
    return total + slow


@inlined
def _pass(past, first, column, slow, gain, step):
    """Take columns and correction through the low-pass of the observer, of ``gain`` [1/s]."""
    share = -np.expm1(-gain * step)
    for p in range(column.shape[0]):
        last, low = first + 2 * p, first + 2 * p + 1
        if step > 0.0:
            past[low] += share * (0.5 * (past[last] + column[p]) - past[low])
        else:
            past[low] = 0.0
        past[last] = column[p]
    if step > 0.0:
        mean = 0.5 * (past[LAST_CORRECTION] + slow)
        past[SLOW_CORRECTION] += share * (mean - past[SLOW_CORRECTION])
    else:
        past[SLOW_CORRECTION] = 0.0
    past[LAST_CORRECTION] = slow


@inlined
def uncertain(tables, memory, j, column):
    """Fill ``column`` (m,) with what passed the low-pass; return the deviation of its torque."""
    first = HEAD + tables[0].shape[1]
    past = memory[0][j]
    for p in range(column.shape[0]):
        column[p] = past[first + 2 * p + 1]
    _, variance = explain(memory[1][j], column)
    past[DEVIATION] = np.sqrt(max(variance, 0.0))
    return past[DEVIATION]


@inlined
def take(tables, memory, j, column, outside, step):
    """Learn from the torque from ``outside`` that is none, after `uncertain` of the ``column``."""
    mean = 0.0
    for p in range(column.shape[0]):
        mean += column[p] * memory[1][j, MEAN, p]
    variance = memory[0][j, DEVIATION] ** 2 + tables[3][j, NOISE] / min(step, LONGEST)
    innovation = memory[0][j, SLOW_CORRECTION] - outside - mean
    if innovation ** 2 < tables[3][j, GATE] ** 2 * variance:
        learn(memory[1][j], tables[2][j, 0], innovation, variance)
