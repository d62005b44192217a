"""Compiled: everything the monitor works out of a joint state, from one to the next.

The states of a robot are followed one by one or many in a call, with the same result: whatever
they depend on of the past is kept in arrays of the caller.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import ROWS, compiled, inlined
from robot_dynid.kernels.single_state import (
    add_rotor_effort,
    add_rotor_momentum,
    effort_of,
    momentum_of,
    place,
)

#: columns of the elements of friction: axis, kind, scale of its argument, amplitude [N m], how it
#: grows with the load of the axis, whether it may hold an axis at rest, direction in which it acts
#: (0: both), speed below which it does not, lowest and highest velocity it is not linear beyond
AXIS, KIND, SCALE, AMPLITUDE, LOAD, HOLDS, SIDE, ABOVE, LOWEST, HIGHEST, COLUMNS = range(11)
#: kinds: ramp of the velocity, stop operator and Dahl's state of the position; hyperbolic tangent,
#: the same opening from a half to one, the velocity so opened; powers of the velocity
RAMP, STOP, DAHL, TANH, OPEN, OPENED, LINEAR, SQUARE, CUBE = (
    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
#: speed [rad/s, m/s] from which a state begins as it slides; below, it begins the more relaxed
SLIDING = 0.01
#: rows of the memory: two stages of the low-pass of position, velocity, effort, friction; the
#: observer; the shares of slowness and of friction claimed in it; how long contact is about to
#: change, in seconds and states; contact
FIRST, SECOND, MOMENTUM, DRIVE, OUTSIDE = 0, 4, 8, 9, 10
SLOW, CLAIM, SECONDS, STATES, TOUCHED, MEMORY_ROWS = 11, 12, 13, 14, 15, 16
#: rows of a result, each (n,)
PREDICTED, RESIDUAL, EXTERNAL, CLAIMED, THRESHOLD, CONTACT, FRICTION, DRY, RESULT_ROWS = range(9)
#: rows of the levels of contact, each (n,)
MOVING, HOLDING, SPEED = 0, 1, 2
#: places of the settings: gain and corner of the low-pass [1/s], and of contact
GAIN, CORNER, RELEASE, DURATION, LEAST = 0, 1, 2, 3, 4


@inlined
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@inlined
def _slope(row, velocity):
    """Return by how much an element of friction that has no past grows with the velocity."""
    if row[KIND] == LINEAR:
        return 1.0
    if row[KIND] == SQUARE:
        return 2.0 * abs(velocity)
    if row[KIND] == CUBE:
        return 3.0 * velocity**2
    steep = abs(np.tanh(velocity / row[SCALE]))
    rise = (1.0 - steep**2) / row[SCALE]
    if row[KIND] == OPENED:
        return 0.5 * (1.0 + steep + abs(velocity) * rise)
    return rise


@inlined
def _within(row, velocity):
    """Return the same at a velocity it is not linear beyond."""
    if row[KIND] == RAMP:
        return min(max(velocity / row[SCALE], -1.0), 1.0)
    if row[KIND] == LINEAR:
        return velocity
    if row[KIND] == SQUARE:
        return velocity * abs(velocity)
    if row[KIND] == CUBE:
        return velocity**3
    steep = np.tanh(velocity / row[SCALE])
    if row[KIND] == TANH:
        return steep
    return 0.5 * (1.0 + abs(steep)) * (steep if row[KIND] == OPEN else velocity)


@inlined
def _of_velocity(row, speed):
    """Return an element of friction at an amplitude of one that has no past."""
    velocity = min(max(speed, row[LOWEST]), row[HIGHEST])
    if speed * row[SIDE] < 0.0 or abs(velocity) < row[ABOVE]:
        return 0.0
    if velocity != speed:
        return _within(row, velocity) + _slope(row, velocity) * (speed - velocity)
    return _within(row, velocity)


@inlined
def _element(row, z, travel, velocity, fresh):
    """Return an element of friction at an amplitude of one; states from the last, z."""
    if row[KIND] != STOP and row[KIND] != DAHL:
        return _of_velocity(row, velocity)
    if fresh:
        return min(max(velocity / SLIDING, -1.0), 1.0)
    if row[KIND] == STOP:
        return min(max(z + travel / row[SCALE], -1.0), 1.0)
    left = np.exp(-abs(travel) / row[SCALE])
    return z * left + np.sign(travel) * (1.0 - left)


@inlined
def _friction(friction, state, load, past, fresh, out):
    """Fill ``out`` (2, n) with the friction of the joints, and the dry part of it.

    ``past`` (e + a,) holds the states of the elements and the positions of the axes before.
    """
    axes, transmission, straight, elements = friction
    out[:] = 0.0
    e, count = 0, elements.shape[0]
    for i in range(axes.shape[0]):
        position, velocity = _dot(axes[i], state[0]), _dot(axes[i], state[1])
        pressed = abs(_dot(transmission[i], load)) if transmission.shape[0] > 0 else 0.0
        torque, travel, dry = straight[i, 0] * velocity + straight[i, 1], 0.0, 0.0
        travel, past[count + i] = position - past[count + i], position
        while e < count and elements[e, AXIS] == i:
            past[e] = _element(elements[e], past[e], travel, velocity, fresh)
            size = (elements[e, AMPLITUDE] + elements[e, LOAD] * pressed) * past[e]
            torque += size
            if elements[e, HOLDS] != 0.0:
                dry += size
            e += 1
        for j in range(axes.shape[1]):
            out[0, j] += axes[i, j] * torque
            out[1, j] += axes[i, j] * dry


@inlined
def _observe(memory, p, drive, gain, step):
    """Update MOMENTUM, DRIVE and OUTSIDE, exactly for a drive that changes linearly."""
    share = -np.expm1(-gain * step)
    for j in range(p.shape[0]):
        if step > 0.0:
            rate = (p[j] - memory[MOMENTUM, j]) / step
            outside = rate - 0.5 * (memory[DRIVE, j] + drive[j])
            memory[OUTSIDE, j] += share * (outside - memory[OUTSIDE, j])
        else:
            memory[OUTSIDE, j] = 0.0
        memory[MOMENTUM, j], memory[DRIVE, j] = p[j], drive[j]


@inlined
def _detect(memory, contact, velocity, dry, step, result):
    """Update contact, and fill CLAIMED, THRESHOLD and CONTACT of ``result``."""
    levels, settings = contact
    share = -np.expm1(-settings[GAIN] * step)
    for j in range(velocity.shape[0]):
        slow = 1.0 if abs(velocity[j]) < levels[SPEED, j] else 0.0
        if step > 0.0:
            memory[SLOW, j] += share * (slow - memory[SLOW, j])
            memory[CLAIM, j] += share * (slow * dry[j] - memory[CLAIM, j])
        else:
            memory[SLOW, j] = 1.0
            memory[CLAIM, j] = memory[TOUCHED, j] = 0.0
        threshold = levels[MOVING, j] + levels[HOLDING, j] * memory[SLOW, j]
        size = abs(memory[OUTSIDE, j] - memory[CLAIM, j])
        touched = memory[TOUCHED, j] != 0.0
        if step > 0.0 and (size < settings[RELEASE] * threshold if touched else size > threshold):
            memory[SECONDS, j] += step
            memory[STATES, j] += 1.0
            if memory[SECONDS, j] >= settings[DURATION] and memory[STATES, j] >= settings[LEAST]:
                memory[TOUCHED, j] = 0.0 if touched else 1.0
                memory[SECONDS, j] = memory[STATES, j] = 0.0
        else:
            memory[SECONDS, j] = memory[STATES, j] = 0.0
        result[CLAIMED, j], result[THRESHOLD, j] = memory[CLAIM, j], threshold
        result[CONTACT, j] = memory[TOUCHED, j]


@inlined
def _smooth(memory, state, friction, corner, step, middle):
    """Update the low-pass; fill ``middle`` (5, n): as `state`, friction, acceleration."""
    share = -np.expm1(-corner * step)
    for j in range(state.shape[1]):
        for i in range(4):
            value = state[i, j] if i < 3 else friction[j]
            first, second = FIRST + i, SECOND + i
            if step > 0.0:
                before = memory[second, j]
                memory[first, j] += share * (value - memory[first, j])
                memory[second, j] += share * (memory[first, j] - before)
                middle[i, j] = 0.5 * (before + memory[second, j])
                if i == 1:
                    middle[4, j] = (memory[second, j] - before) / step
            else:
                memory[first, j] = memory[second, j] = value


@inlined
def _compare(tree, links, rotors, middle, work, result):
    """Fill PREDICTED and RESIDUAL of ``result`` from the middle of a step."""
    place(tree, middle[0], middle[1], middle[4], work)
    effort_of(tree[1], links, work, result[PREDICTED])
    add_rotor_effort(tree[1], rotors, (middle[1], middle[4]), work, result[PREDICTED])
    for j in range(links.shape[0]):
        result[PREDICTED, j] += middle[3, j]
        result[RESIDUAL, j] = middle[2, j] - result[PREDICTED, j]


@compiled
def follow(model, contact, memories, states, results):
    """Fill ``results`` (N, RESULT_ROWS, n) of ``states``: position, velocity, effort (N, 3, n),
    friction and dry friction of axes with a law of their own (N, 2, n), steps (N,) [s].

    A step of zero begins anew; there is no residual then, but NaN.
    """
    tree, links, rotors, friction, load_links = model
    settings = contact[1]
    memory, past = memories
    inputs, other, steps = states
    n = links.shape[0]
    work = np.zeros((n + 1, ROWS, 1))
    still, load, p, drive, total = (
        np.zeros(n), np.zeros(n), np.empty(n), np.empty(n), np.empty((2, n)))
    middle = np.empty((5, n))
    for k in range(steps.shape[0]):
        state, result, step = inputs[k], results[k], steps[k]
        place(tree, state[0], state[1], still, work)
        if load_links.shape[0] > 0:
            effort_of(tree[1], load_links, work, load)
        _friction(friction, state, load, past, step <= 0.0, total)
        total += other[k]
        momentum_of(tree, links, work, p, drive)
        add_rotor_momentum(tree[1], rotors, state[1], work, (p, drive))
        for j in range(n):
            drive[j] += state[2, j] - total[0, j]
        _observe(memory, p, drive, settings[GAIN], step)
        _detect(memory, contact, state[1], total[1], step, result)
        result[EXTERNAL] = memory[OUTSIDE]
        result[FRICTION], result[DRY] = total
        _smooth(memory, state, total[0], settings[CORNER], step, middle)
        if step > 0.0:
            _compare(tree, links, rotors, middle, work, result)
        else:
            result[PREDICTED] = result[RESIDUAL] = np.nan
