"""Compiled torque of elastic gears within an implicit step, one tile of motions at a time.

A gear bends by u = theta + e(theta) - q, e being its kinematic error; it transmits

    T = K u + D u' + s + sum_k h_k z_k(u),

and its motor bears (1 + de/dtheta) T. From the state at the begin of a step z is a function of u
alone as long as u turns nowhere within the step: it grows with u, so a tangent in u is a spring
beside K. T is taken on its tangent where the last round of Newton's method ended.

``gears`` are None where a robot has none: numba compiles its kernels apart, without a trace of
gears. Else they are table (e, GEAR_COLUMNS), states (k, STATE_COLUMNS), and what a step keeps of a
tile: deflections (e, LANES) and states (k, LANES) at its begin, tangents (e, 3, LANES), the change
(n, LANES) at which they are taken, and which motions (1, LANES) are off them.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.friction import STOP
from robot_dynid.kernels.newton_euler import LANES, compiled, inlined

#: columns of a gear: coordinates of motor and link, K, D, s, turns w and sizes of the wave's
#: sine and cosine
MOTOR, LINK, STIFFNESS, DAMPING, OFFSET, WAVE, SINE, COSINE = range(8)
GEAR_COLUMNS = 8
#: columns of a state of hysteresis: place of its gear, kind of term, length, amplitude
OWNER, KIND, LENGTH, AMPLITUDE = range(4)
STATE_COLUMNS = 4
#: what is kept of the tangents of a gear: torque without change, slope by rate, share on the motor
REST, SLOPE, SHARE = 0, 1, 2
#: rounds in which a deflection is sought at most, and the part of it by which the last changes it
MOST_ROUNDS, FINEST = 100, 1e-15
#: part of the torque of a gear by which two rounds may differ at the end
SETTLED = 1e-10


@inlined
def _wave(gear, theta):
    """Return the kinematic error of a gear and its slope at a motor's position."""
    if gear[WAVE] == 0.0:
        return 0.0, 0.0
    phase = gear[WAVE] * theta
    sine, cosine = np.sin(phase), np.cos(phase)
    return (gear[SINE] * sine + gear[COSINE] * cosine,
            gear[WAVE] * (gear[SINE] * cosine - gear[COSINE] * sine))


@inlined
def _moved(state, z, travel):
    """Return a state after a ``travel`` of the deflection from ``z``, and its slope by that."""
    part = travel / state[LENGTH]
    if state[KIND] == STOP:
        moved = z + part
        slope = 1.0 / state[LENGTH] if abs(moved) < 1.0 or part == 0.0 else 0.0
        return min(max(moved, -1.0), 1.0), slope
    if part == 0.0:  # the steeper of both sides, so that Newton's method does not go too far
        return z, (1.0 + abs(z)) / state[LENGTH]
    left, side = np.exp(-abs(part)), 1.0 if part > 0.0 else -1.0
    return side + (z - side) * left, (1.0 - side * z) * left / state[LENGTH]


@inlined
def _torque(gears, i, k, motion):
    """Return the torque of gear ``i`` in lane ``k``, its slope by u and the share on the motor.

    ``motion``: positions and velocities of motor and link; damping is not in the slope.
    """
    table, states, bent, past = gears[:4]
    theta, theta_d, q, q_d = motion
    gear = table[i]
    error, slope = _wave(gear, theta)
    u, share = theta + error - q, 1.0 + slope
    torque = gear[STIFFNESS] * u + gear[DAMPING] * (share * theta_d - q_d) + gear[OFFSET]
    stiffness = gear[STIFFNESS]
    for t in range(states.shape[0]):
        if int(states[t, OWNER]) == i:
            z, steep = _moved(states[t], past[t, k], u - bent[i, k])
            torque += states[t, AMPLITUDE] * z
            stiffness += states[t, AMPLITUDE] * steep
    return torque, stiffness, share


@inlined
def _motion_of(gear, start, change, k):
    """Return positions and velocities of motor and link when a step has changed by ``change``."""
    v, _, q, reach = start
    m, j = int(gear[MOTOR]), int(gear[LINK])
    theta_d, q_d = v[m, k] + change[m, k], v[j, k] + change[j, k]
    return q[m, k] + reach * theta_d, theta_d, q[j, k] + reach * q_d, q_d


@inlined
def _press_gears(gears, start, load, factor):
    """Take gears off ``load``, and add to the matrix what they resist changes of velocity.

    On their tangents at the change where the last round ended, which is ``gears[5]``.
    """
    if gears is None:
        return
    table, lines, guess = gears[0], gears[4], gears[5]
    duration, reach = start[1], start[3]
    for i in range(table.shape[0]):
        gear = table[i]
        m, j = int(gear[MOTOR]), int(gear[LINK])
        for k in range(LANES):
            torque, stiffness, share = _torque(gears, i, k, _motion_of(gear, start, guess, k))
            slope = gear[DAMPING] + reach * stiffness
            rest = torque - slope * (share * guess[m, k] - guess[j, k])
            lines[i, REST, k], lines[i, SLOPE, k], lines[i, SHARE, k] = rest, slope, share
            load[m, k] -= duration * share * rest
            load[j, k] += duration * rest
            factor[m, m, k] += duration * share * share * slope
            factor[m, j, k] -= duration * share * slope
            factor[j, j, k] += duration * slope


@inlined
def _change_gears(gears, start, change):
    """Return whether gears are off their tangents, which are taken at ``change`` next there.

    Lane by lane: a motion is the same whatever runs beside it.
    """
    if gears is None:
        return False
    table, states, _, _, lines, guess, off = gears
    for k in range(LANES):
        off[0, k] = 0.0
    for i in range(table.shape[0]):
        gear = table[i]
        if gear[WAVE] == 0.0 and states.shape[0] == 0:
            continue
        m, j = int(gear[MOTOR]), int(gear[LINK])
        for k in range(LANES):
            torque, _, share = _torque(gears, i, k, _motion_of(gear, start, change, k))
            rest, slope, before = lines[i, REST, k], lines[i, SLOPE, k], lines[i, SHARE, k]
            taken = rest + slope * (before * change[m, k] - change[j, k])
            wrong = abs(torque - taken) + abs(share - before) * abs(torque)
            if wrong > SETTLED * (abs(torque) + abs(rest)):
                off[0, k] = 1.0
    for n in range(guess.shape[0]):
        for k in range(LANES):
            guess[n, k] = change[n, k] if off[0, k] > 0.0 else guess[n, k]
    return off.max() > 0.0


@inlined
def _begin_gears(gears):
    """Forget the change where the last step ended."""
    if gears is None:
        return
    guess = gears[5]
    for n in range(guess.shape[0]):
        for k in range(LANES):
            guess[n, k] = 0.0


@inlined
def _carry_gears(gears, q, begins):
    """Move the states of hysteresis on to positions ``q``; where a motion begins they stay."""
    if gears is None:
        return
    table, states, bent, past = gears[:4]
    for i in range(table.shape[0]):
        gear = table[i]
        m, j = int(gear[MOTOR]), int(gear[LINK])
        for k in range(LANES):
            u = q[m, k] + _wave(gear, q[m, k])[0] - q[j, k]
            if not begins:
                for t in range(states.shape[0]):
                    if int(states[t, OWNER]) == i:
                        past[t, k] = _moved(states[t], past[t, k], u - bent[i, k])[0]
            bent[i, k] = u


@inlined
def _take_gears(gears, q, before, place):
    """Begin with the motions from ``place`` on at ``q`` (n, LANES), their states in ``before``."""
    if gears is None:
        return
    past, (first, used) = gears[3], place
    for k in range(LANES):
        for e in range(past.shape[0]):
            past[e, k] = before[first + k, e] if k < used else 0.0
    _carry_gears(gears, q, True)


@inlined
def _put_gears(gears, place, after):
    """Put the states of the motions from ``place`` on into ``after`` (K, k)."""
    if gears is None:
        return
    past, (first, used) = gears[3], place
    for k in range(used):
        for e in range(past.shape[0]):
            after[first + k, e] = past[e, k]


@inlined
def _loop(states, i, now, z):
    """Return torque and slope of the hysteresis of gear ``i`` after a travel ``now``."""
    torque, slope = 0.0, 0.0
    for t in range(states.shape[0]):
        if int(states[t, OWNER]) == i:
            value, steep = _moved(states[t], z[t], now)
            torque += states[t, AMPLITUDE] * value
            slope += states[t, AMPLITUDE] * steep
    return torque, slope


@compiled
def hysteresis_along(states, bent, noise, begins, relaxed, before, out):  # noqa: PLR0913
    """Fill ``out`` (2, N, e) with torque of hysteresis at deflections ``bent`` (N, e), and doubt.

    ``before`` are deflection and direction (e,) of the last travel and the states (k,) by then,
    and move on; where a motion ``begins`` (N,) the states are ``relaxed`` (k,). A deflection that
    is NaN is none. One that turns back by less than the ``noise`` (N, e) is no travel yet: doubt
    is the torque that it would make.
    """
    last, side, z = before
    for r in range(bent.shape[0]):
        if begins[r]:
            z[:], side[:], last[:] = relaxed, 0.0, np.nan
        for i in range(bent.shape[1]):
            if np.isnan(last[i]):
                last[i] = bent[r, i]
            away = bent[r, i] - last[i]
            away = 0.0 if np.isnan(away) else away
            if away * side[i] > 0.0 or abs(away) > noise[r, i]:
                for t in range(states.shape[0]):
                    if int(states[t, OWNER]) == i:
                        z[t] = _moved(states[t], z[t], away)[0]
                last[i], side[i], away = last[i] + away, np.sign(away), 0.0
            out[0, r, i] = _loop(states, i, 0.0, z)[0]
            out[1, r, i] = abs(_loop(states, i, away, z)[0] - out[0, r, i])


@compiled
def bent_along(table, states, torque, step, out):
    """Fill ``out`` (2, N, e) with the deflection that transmits ``torque`` (N, e), and its rate.

    Along samples ``step`` [s] apart, from relaxed states at rest, by backward differences of
    second order, which fade whatever the damping is.
    """
    z = np.zeros(states.shape[0])
    for i in range(table.shape[0]):
        gear = table[i]
        for r in range(torque.shape[0]):
            # rate = (u - base) * pace, from one or two samples before
            if r == 0:
                before = (torque[0, i] - gear[OFFSET]) / gear[STIFFNESS]
                base, pace = before, 0.0
            elif r == 1:
                before = base = out[0, 0, i]
                pace = 1.0 / step
            else:
                before = out[0, r - 1, i]
                base, pace = (4.0 * before - out[0, r - 2, i]) / 3.0, 1.5 / step
            u = before
            for _ in range(MOST_ROUNDS):
                loop, steep = _loop(states, i, u - before, z)
                off = (gear[STIFFNESS] * u + gear[DAMPING] * pace * (u - base) + gear[OFFSET]
                       + loop - torque[r, i])
                move = off / (gear[STIFFNESS] + gear[DAMPING] * pace + steep)
                u -= move
                if abs(move) <= FINEST * abs(u):
                    break
            out[0, r, i], out[1, r, i] = u, pace * (u - base)
            for t in range(states.shape[0]):
                if int(states[t, OWNER]) == i:
                    z[t] = _moved(states[t], z[t], u - before)[0]
