"""Monitor of joint states: residual, momentum observer and contact, from one to the next.

The states of a robot are followed one by one or many in a call, with the same result: whatever
they depend on of the past is kept in arrays of the caller.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.adaptation import DRY as DRY_COLUMN
from robot_dynid.kernels.adaptation import MOVES, VISCOUS, corrected, take, uncertain
from robot_dynid.kernels.friction import along, friction_torque
from robot_dynid.kernels.newton_euler import ROWS, compiled, inlined
from robot_dynid.kernels.single_state import (
    add_rotor_effort,
    add_rotor_momentum,
    effort_of,
    momentum_of,
    place,
)

#: rows of the memory: two stages of the low-pass of position, velocity, effort, friction; the
#: observer; the shares of slowness and of friction claimed in it; how long contact is about to
#: change, in seconds and states; contact
FIRST, SECOND, MOMENTUM, DRIVE, OUTSIDE = 0, 4, 8, 9, 10
SLOW, CLAIM, SECONDS, STATES, TOUCHED, MEMORY_ROWS = 11, 12, 13, 14, 15, 16
#: rows of a result, each (n,)
PREDICTED, RESIDUAL, EXTERNAL, CLAIMED, THRESHOLD, CONTACT, FRICTION, DRY = range(8)
VISCOUS_SCALE, DRY_SCALE, RESULT_ROWS = 8, 9, 10
#: rows of the levels of contact, each (n,)
MOVING, HOLDING, SPEED = 0, 1, 2
#: deviations of what slow coefficients explain that a threshold is raised by
RAISED = 2.0
#: places of the settings: gain and corner of the low-pass [1/s], and of contact
GAIN, CORNER, RELEASE, DURATION, LEAST = 0, 1, 2, 3, 4


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
def _detect(memory, contact, state, step, result):
    """Update contact, and fill CLAIMED, THRESHOLD and CONTACT of ``result``.

    ``state`` (3, n): velocity, dry friction, by how much thresholds are raised.
    """
    velocity, dry, raised = state
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
        threshold = levels[MOVING, j] + levels[HOLDING, j] * memory[SLOW, j] + raised[j]
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


@inlined
def _adapt(friction, adaptation, state, total, columns):
    """Add what changes slowly to the friction ``total`` (2, n); ``columns`` (n, 2) by joint.

    ``state``: velocity (n,) and the step.
    """
    tables, memory = adaptation
    axes, _, straight, _ = friction
    velocity, step = state
    columns[:] = 0.0
    for i in range(axes.shape[0]):
        viscous, offset = straight[i, 0] * along(axes[i], velocity), straight[i, 1]
        for j in range(axes.shape[1]):
            columns[j, VISCOUS] += axes[i, j] * viscous
            columns[j, DRY_COLUMN] -= axes[i, j] * (viscous + offset)
    for j in range(axes.shape[1]):
        columns[j, DRY_COLUMN] += total[0, j]
        total[0, j] += corrected(tables, memory, j, columns[j], velocity[j], step)


@inlined
def _learn(adaptation, memory, velocity, step, columns):
    """Learn slow coefficients of joints that move, unless a contact is there or about to be."""
    tables, slow = adaptation
    free = step > 0.0
    for j in range(columns.shape[0]):
        free = free and memory[TOUCHED, j] == 0.0 and memory[SECONDS, j] == 0.0
    for j in range(columns.shape[0]):
        if free and abs(velocity[j]) >= tables[3][j, MOVES]:
            take(tables, slow, j, columns[j], memory[OUTSIDE, j], step)


@compiled
def follow(model, contact, memories, states, results):
    """Fill ``results`` (N, RESULT_ROWS, n) of ``states``: position, velocity, effort (N, 3, n),
    steps (N,) [s] since the state before.

    A step of zero begins anew; there is no residual then, but NaN. Slow changes go on.
    """
    tree, links, rotors, friction, load_links, slow_tables = model
    settings = contact[1]
    memory, past, slow_memory = memories
    inputs, steps = states
    n = links.shape[0]
    work = np.zeros((n + 1, ROWS, 1))
    still, load, p, drive, total = (
        np.zeros(n), np.zeros(n), np.empty(n), np.empty(n), np.empty((2, n)))
    middle, seen, columns = np.empty((5, n)), np.empty((3, n)), np.empty((n, 2))
    adaptation = (slow_tables, slow_memory)
    adapts = slow_tables[3].shape[0] > 0
    for k in range(steps.shape[0]):
        state, result, step = inputs[k], results[k], steps[k]
        place(tree, state[0], state[1], still, work)
        if load_links.shape[0] > 0:
            effort_of(tree[1], load_links, work, load)
        friction_torque(friction, state, load, past, step <= 0.0, total)
        result[VISCOUS_SCALE], result[DRY_SCALE] = 1.0, 1.0
        if adapts:
            _adapt(friction, adaptation, (state[1], step), total, columns)
            result[VISCOUS_SCALE], result[DRY_SCALE] = slow_memory[2]
        momentum_of(tree, links, work, p, drive)
        add_rotor_momentum(tree[1], rotors, state[1], work, (p, drive))
        for j in range(n):
            drive[j] += state[2, j] - total[0, j]
        _observe(memory, p, drive, settings[GAIN], step)
        seen[0], seen[1], seen[2] = state[1], total[1], 0.0
        if adapts:
            for j in range(n):
                seen[2, j] = RAISED * uncertain(slow_tables, slow_memory, j, columns[j])
        _detect(memory, contact, seen, step, result)
        if adapts:
            _learn(adaptation, memory, state[1], step, columns)
        result[EXTERNAL] = memory[OUTSIDE]
        result[FRICTION], result[DRY] = total
        _smooth(memory, state, total[0], settings[CORNER], step, middle)
        if step > 0.0:
            _compare(tree, links, rotors, middle, work, result)
        else:
            result[PREDICTED] = result[RESIDUAL] = np.nan
