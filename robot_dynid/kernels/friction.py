"""Compiled friction: one evaluator of tables of elementary terms of the motion of an axis.

A term is weight * size * share * shape: the shape is a function of the velocity v, or a state of
the position that slips; the share falls with the speed, with time, or grows with temperature; the
size is one, or that of the load. With s = scale:

    CONSTANT  1                   POWER  v |v|^(s - 1)
    RAMP      clip(v / s, -1, 1)  TANH   tanh(v / s)
    STOP      spring that slips at the travel s; dz = dq / s within -1, 1
    DAHL      dz = (dq - |dq| z) / s, exact while the direction holds

It acts on the way SIDE (0: both) from the speed ABOVE on, and beyond the velocities LOWEST and
HIGHEST goes on along its tangent.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import compiled, inlined

#: columns of a term: row of the result (parameter or axis), shape, its scale; weight, and weight
#: per size of the load; whether it holds an axis at rest; direction, least speed, velocities
#: beyond which it is linear; speed over which it fades as 1 - tanh(|v| / fade), 0: it does not;
#: ramp of a state in steady sliding; time constant [s] of its decay, 0: none, and the share that
#: stays; reference temperature, NaN: none, and the range that is known
(ROW, KIND, SCALE, WEIGHT, LOAD, HOLDS, SIDE, ABOVE, LOWEST, HIGHEST, FADE, WIDTH, SECONDS, LEAST,
 REFERENCE, COLDEST, HOTTEST, COLUMNS) = range(18)
#: shapes; those from STOP on are states
CONSTANT, POWER, RAMP, TANH, STOP, DAHL = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0
#: speed [rad/s, m/s] from which a state begins as it slides; below, it begins the more relaxed
SLIDING = 0.01


@inlined
def _ramp(velocity, width):
    return min(max(velocity / width, -1.0), 1.0)


@inlined
def _shape(term, velocity):
    """Return the shape at a velocity, and its slope."""
    kind, scale = term[KIND], term[SCALE]
    if kind == RAMP:
        inside = abs(velocity) < scale
        return _ramp(velocity, scale), 1.0 / scale if inside else 0.0
    if kind == TANH:
        steep = np.tanh(velocity / scale)
        return steep, (1.0 - steep**2) / scale
    if kind == POWER:
        if scale == 1.0:
            return velocity, 1.0
        size = abs(velocity) if scale == 2.0 else abs(velocity)**(scale - 1.0)
        return velocity * size, scale * size
    return 1.0, 0.0


@inlined
def _fading(term, velocity):
    """Return the share that is left at a velocity, and its slope."""
    if term[FADE] == 0.0:
        return 1.0, 0.0
    steep = np.tanh(abs(velocity) / term[FADE])
    return 1.0 - steep, -np.sign(velocity) * (1.0 - steep**2) / term[FADE]


@inlined
def tangent(term, velocity):
    """Return a term without a past, of weight one, at a velocity, and its slope."""
    edge = min(max(velocity, term[LOWEST]), term[HIGHEST])
    if velocity * term[SIDE] < 0.0 or abs(edge) < term[ABOVE]:
        return 0.0, 0.0
    value, slope = _shape(term, edge)
    if term[FADE] != 0.0:
        share, falls = _fading(term, edge)
        slope = slope * share + value * falls
        value *= share
    return value + slope * (velocity - edge), slope


@inlined
def unit(term, z, travel, velocity, begins):
    """Return a term of weight one after a ``travel`` from the state ``z``, and its state by then.

    Where a motion ``begins`` a state is that of sliding, none at rest.
    """
    if term[KIND] < STOP:
        return tangent(term, velocity)[0], 0.0
    if begins:
        z = _ramp(velocity, SLIDING)
    elif term[KIND] == STOP:
        z = min(max(z + travel / term[SCALE], -1.0), 1.0)
    else:
        left = np.exp(-abs(travel) / term[SCALE])
        z = z * left + np.sign(travel) * (1.0 - left)
    return z * _share(term, velocity), z


@inlined
def _share(term, velocity):
    """Return the share of a state that is left at a speed."""
    edge = min(max(velocity, term[LOWEST]), term[HIGHEST])
    share, falls = _fading(term, edge)
    return share + falls * (velocity - edge)


@inlined
def _fill_shapes(term, velocity, out):
    """Fill ``out`` (N,) with the shape of a term: ramps and lines become vector loops."""
    scale = term[SCALE]
    if term[KIND] == RAMP:
        for i in range(out.shape[0]):
            out[i] = min(max(velocity[i] / scale, -1.0), 1.0)
    elif term[KIND] == POWER and scale == 1.0:
        for i in range(out.shape[0]):
            out[i] = velocity[i]
    elif term[KIND] == TANH:
        for i in range(out.shape[0]):
            out[i] = np.tanh(velocity[i] / scale)
    else:
        for i in range(out.shape[0]):
            out[i] = _shape(term, velocity[i])[0]


@inlined
def _restrict(term, velocity, out):
    """Take from shapes ``out`` (N,) what fades, and the velocities at which nothing acts."""
    side, above, fade = term[SIDE], term[ABOVE], term[FADE]
    if fade != 0.0:
        for i in range(out.shape[0]):
            out[i] *= 1.0 - np.tanh(abs(velocity[i]) / fade)
    if side != 0.0 or above != 0.0:
        for i in range(out.shape[0]):
            acts = velocity[i] * side >= 0.0 and abs(velocity[i]) >= above
            out[i] = out[i] if acts else 0.0


@inlined
def _fill_units(term, motion, out):
    """Fill ``out`` (N,) with a term of weight one along a segment."""
    position, velocity = motion
    if term[KIND] < STOP and np.isinf(term[LOWEST]) and np.isinf(term[HIGHEST]):
        _fill_shapes(term, velocity, out)
        _restrict(term, velocity, out)
        return
    z = 0.0
    for i in range(out.shape[0]):
        travel = position[i] - position[i - 1] if i > 0 else 0.0
        out[i], z = unit(term, z, travel, velocity[i], i == 0)


@inlined
def _weigh(term, motion, out):
    """Multiply ``out`` (N,) by the weight of a term along a segment.

    ``motion``: time since the recording began, load and temperature, (N,) or (0,) where unknown.
    """
    since, load, temperature = motion
    weight, grows = term[WEIGHT], term[LOAD]
    if grows != 0.0 and load.shape[0] > 0:
        for i in range(out.shape[0]):
            out[i] *= weight + grows * abs(load[i])
    else:
        for i in range(out.shape[0]):
            out[i] *= weight
    if term[SECONDS] != 0.0:
        for i in range(out.shape[0]):
            out[i] *= max(np.exp(-since[i] / term[SECONDS]), term[LEAST])
    if not np.isnan(term[REFERENCE]):
        for i in range(out.shape[0]):
            known = temperature[i] if temperature.shape[0] > 0 else term[REFERENCE]
            known = known if temperature.shape[0] == 0 else min(max(known, term[COLDEST]),
                                                                term[HOTTEST])
            out[i] *= known - term[REFERENCE]


@compiled
def fill_columns(tables, motion, first, out):
    """Fill ``out`` (rows, N) with the sums of the terms of each row.

    ``tables``: terms (t, COLUMNS), and the same without a past. ``motion``: time since the
    recording began, position, velocity (N,), load and temperature (N,), or (0,) where unknown.
    ``first`` (S + 1,) has the first sample of every segment and the end; a segment of one sample
    has no past.
    """
    terms, slid = tables
    since, position, velocity, load, temperature = motion
    out[:] = 0.0
    work = np.empty(velocity.shape[0])
    for e in range(terms.shape[0]):
        row = out[int(terms[e, ROW])]
        for s in range(first.shape[0] - 1):
            start, stop = first[s], first[s + 1]
            own = work[start:stop]
            along = since[start:stop], load[start:stop], temperature[start:stop]
            if stop == start + 1:
                own[0] = tangent(slid[e], velocity[start])[0]
                _weigh(slid[e], along, own)
            else:
                _fill_units(terms[e], (position[start:stop], velocity[start:stop]), own)
                _weigh(terms[e], along, own)
        for i in range(work.shape[0]):
            row[i] += work[i]


@compiled
def fill_sliding(terms, velocity, values, slopes):
    """Fill ``values`` and ``slopes`` (rows, N): terms without a past, and their derivatives.

    ``velocity`` (rows, N) of the axis of each row.
    """
    values[:] = 0.0
    slopes[:] = 0.0
    for e in range(terms.shape[0]):
        row, weight = int(terms[e, ROW]), terms[e, WEIGHT]
        for i in range(velocity.shape[1]):
            value, slope = tangent(terms[e], velocity[row, i])
            values[row, i] += weight * value
            slopes[row, i] += weight * slope


@inlined
def along(axis, motion):
    """Return the motion of an axis (n,)."""
    total = 0.0
    for j in range(axis.shape[0]):
        total += axis[j] * motion[j]
    return total


@compiled
def sliding_torque(friction, velocity, load, out):
    """Fill ``out`` (K, n) with the friction of states at ``velocity`` (K, n), none with a past.

    ``friction``: axes (a, n), straight (a, 2), terms (t, COLUMNS) by axis; ``load`` (K, a), or
    (0, a) where nothing depends on it.
    """
    axes, straight, terms = friction
    speed, torque, work = (np.empty(velocity.shape[0]), np.empty(velocity.shape[0]),
                           np.empty(velocity.shape[0]))
    out[:] = 0.0
    e = 0
    for i in range(axes.shape[0]):
        for k in range(speed.shape[0]):
            speed[k] = along(axes[i], velocity[k])
            torque[k] = straight[i, 0] * speed[k] + straight[i, 1]
        while e < terms.shape[0] and terms[e, ROW] == i:
            _fill_units(terms[e], (speed, speed), work)
            _weigh(terms[e], (speed, load[:, i], load[:0, i]), work)
            for k in range(speed.shape[0]):
                torque[k] += work[k]
            e += 1
        for j in range(axes.shape[1]):
            share = axes[i, j]
            if share != 0.0:
                for k in range(speed.shape[0]):
                    out[k, j] += share * torque[k]


@inlined
def friction_torque(friction, state, load, past, begins, out):
    """Fill ``out`` (2, n) with the friction of the joints, and the part that holds at rest.

    ``friction``: axes (a, n), transmission (a, n) or (0, n), straight (a, 2), terms (t, COLUMNS)
    by axis. ``past`` (t + a,) keeps the states of the terms and the positions of the axes.
    """
    axes, transmission, straight, terms = friction
    out[:] = 0.0
    e, count = 0, terms.shape[0]
    for i in range(axes.shape[0]):
        position, velocity = along(axes[i], state[0]), along(axes[i], state[1])
        pressed = abs(along(transmission[i], load)) if transmission.shape[0] > 0 else 0.0
        torque, dry = straight[i, 0] * velocity + straight[i, 1], 0.0
        travel, past[count + i] = position - past[count + i], position
        while e < count and terms[e, ROW] == i:
            value, past[e] = unit(terms[e], past[e], travel, velocity, begins)
            value *= terms[e, WEIGHT] + terms[e, LOAD] * pressed
            torque += value
            if terms[e, HOLDS] != 0.0:
                dry += value
            e += 1
        for j in range(axes.shape[1]):
            out[0, j] += axes[i, j] * torque
            out[1, j] += axes[i, j] * dry
