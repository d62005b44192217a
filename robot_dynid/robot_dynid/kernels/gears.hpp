// Compiled torque of elastic gears within an implicit step, one tile of motions at a time.
//
// A gear bends by u = theta + e(theta) - q, e being its kinematic error; it transmits
//
//     T = K u + D u' + s + sum_k h_k z_k(u),
//
// and its motor bears (1 + de/dtheta) T. From the state at the begin of a step z is a function of u
// alone as long as u turns nowhere within the step: it grows with u, so a tangent in u is a spring
// beside K. T is taken on its tangent where the last round of Newton's method ended.
//
// ``gears`` are empty where a robot has none. Else they are table (e, GEAR_COLUMNS), states
// (k, STATE_COLUMNS), and what a step keeps of a tile: deflections (e, LANES) and states (k, LANES)
// at its begin, tangents (e, 3, LANES), the change (n, LANES) at which they are taken, and which
// motions (1, LANES) are off them.

namespace gears {

// columns of a gear: coordinates of motor and link, K, D, s, turns w and sizes of the wave's
// sine and cosine
constexpr Index MOTOR = 0, LINK = 1, STIFFNESS = 2, DAMPING = 3, OFFSET = 4, WAVE = 5, SINE = 6,
                COSINE = 7;
constexpr Index GEAR_COLUMNS = 8;
// columns of a state of hysteresis: place of its gear, kind of term, length, amplitude
constexpr Index OWNER = 0, KIND = 1, LENGTH = 2, AMPLITUDE = 3;
constexpr Index STATE_COLUMNS = 4;
// what is kept of the tangents of a gear: torque without change, slope by rate, share on the motor
constexpr Index REST = 0, SLOPE = 1, SHARE = 2;
// rounds in which a deflection is sought at most, and the part of it by which the last changes it
constexpr double MOST_ROUNDS = 100, FINEST = 1e-15;
// part of the torque of a gear by which two rounds may differ at the end
constexpr double SETTLED = 1e-10;

/// Return the kinematic error of a gear and its slope at a motor's position.
inline auto wave(auto gear, auto theta) {
    if (gear(WAVE) == 0.0) {
        return std::make_tuple(0.0, 0.0);
    }
    auto phase = gear(WAVE) * theta;
    auto sine = std::sin(phase);
    auto cosine = std::cos(phase);
    return std::make_tuple(gear(SINE) * sine + gear(COSINE) * cosine,
                           gear(WAVE) * (gear(SINE) * cosine - gear(COSINE) * sine));
}

/// Return a state after a ``travel`` of the deflection from ``z``, and its slope by that.
inline auto moved(auto state, auto z, auto travel) {
    auto part = travel / state(LENGTH);
    if (state(KIND) == friction::STOP) {
        auto moved = z + part;
        auto slope = std::abs(moved) < 1.0 || part == 0.0 ? 1.0 / state(LENGTH) : 0.0;
        return std::make_tuple(min_of(max_of(moved, -1.0), 1.0), slope);
    }
    if (part == 0.0) {  // the steeper of both sides, so that Newton's method does not go too far
        return std::make_tuple(z, (1.0 + std::abs(z)) / state(LENGTH));
    }
    auto left = std::exp(-std::abs(part));
    auto side = part > 0.0 ? 1.0 : -1.0;
    return std::make_tuple(side + (z - side) * left, (1.0 - side * z) * left / state(LENGTH));
}

/// Return the torque of gear ``i`` in lane ``k``, its slope by u and the share on the motor.
///
/// ``motion``: positions and velocities of motor and link; damping is not in the slope.
inline auto torque(auto gears, auto i, auto k, auto motion) {
    auto [table, states, bent, past] = first<4>(*gears);
    auto [theta, theta_d, q, q_d] = motion;
    auto gear = table(i);
    auto [error, slope] = gears::wave(gear, theta);
    auto u = theta + error - q;
    auto share = 1.0 + slope;
    auto torque = gear(STIFFNESS) * u + gear(DAMPING) * (share * theta_d - q_d) + gear(OFFSET);
    auto stiffness = gear(STIFFNESS);
    for (Index t = 0; t < states.shape(0); ++t) {
        if (Index(states(t, OWNER)) == i) {
            auto [z, steep] = gears::moved(states(t), past(t, k), u - bent(i, k));
            torque += states(t, AMPLITUDE) * z;
            stiffness += states(t, AMPLITUDE) * steep;
        }
    }
    return std::make_tuple(torque, stiffness, share);
}

/// Return positions and velocities of motor and link when a step has changed by ``change``.
inline auto motion_of(auto gear, auto start, auto change, auto k) {
    auto [v, unused0, q, reach] = start;
    Index m = Index(gear(MOTOR));
    Index j = Index(gear(LINK));
    auto theta_d = v(m, k) + change(m, k);
    auto q_d = v(j, k) + change(j, k);
    return std::make_tuple(q(m, k) + reach * theta_d, theta_d, q(j, k) + reach * q_d, q_d);
}

/// Take gears off ``load``, and add to the matrix what they resist changes of velocity.
///
/// On their tangents at the change where the last round ended, which is ``gears[5]``.
inline auto press_gears(auto gears, auto start, auto load, auto factor) {
    if (!gears) {
        return;
    }
    auto table = std::get<0>(*gears);
    auto lines = std::get<4>(*gears);
    auto guess = std::get<5>(*gears);
    auto duration = std::get<1>(start);
    auto reach = std::get<3>(start);
    for (Index i = 0; i < table.shape(0); ++i) {
        auto gear = table(i);
        Index m = Index(gear(MOTOR));
        Index j = Index(gear(LINK));
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto [torque, stiffness, share] =
                gears::torque(gears, i, k, gears::motion_of(gear, start, guess, k));
            auto slope = gear(DAMPING) + reach * stiffness;
            auto rest = torque - slope * (share * guess(m, k) - guess(j, k));
            lines(i, REST, k) = rest;
            lines(i, SLOPE, k) = slope;
            lines(i, SHARE, k) = share;
            load(m, k) -= duration * share * rest;
            load(j, k) += duration * rest;
            factor(m, m, k) += duration * share * share * slope;
            factor(m, j, k) -= duration * share * slope;
            factor(j, j, k) += duration * slope;
        }
    }
}

/// Return whether gears are off their tangents, which are taken at ``change`` next there.
///
/// Lane by lane: a motion is the same whatever runs beside it.
inline auto change_gears(auto gears, auto start, auto change) {
    if (!gears) {
        return false;
    }
    auto [table, states, unused0, unused1, lines, guess, off] = *gears;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        off(0, k) = 0.0;
    }
    for (Index i = 0; i < table.shape(0); ++i) {
        auto gear = table(i);
        if (gear(WAVE) == 0.0 && states.shape(0) == 0) {
            continue;
        }
        Index m = Index(gear(MOTOR));
        Index j = Index(gear(LINK));
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto [torque, unused2, share] =
                gears::torque(gears, i, k, gears::motion_of(gear, start, change, k));
            auto rest = lines(i, REST, k);
            auto slope = lines(i, SLOPE, k);
            auto before = lines(i, SHARE, k);
            auto taken = rest + slope * (before * change(m, k) - change(j, k));
            auto wrong = std::abs(torque - taken) + std::abs(share - before) * std::abs(torque);
            if (wrong > SETTLED * (std::abs(torque) + std::abs(rest))) {
                off(0, k) = 1.0;
            }
        }
    }
    for (Index n = 0; n < guess.shape(0); ++n) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            guess(n, k) = off(0, k) > 0.0 ? change(n, k) : guess(n, k);
        }
    }
    return off.max() > 0.0;
}

/// Forget the change where the last step ended.
inline auto begin_gears(auto gears) {
    if (!gears) {
        return;
    }
    auto guess = std::get<5>(*gears);
    for (Index n = 0; n < guess.shape(0); ++n) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            guess(n, k) = 0.0;
        }
    }
}

/// Move the states of hysteresis on to positions ``q``; where a motion begins they stay.
inline auto carry_gears(auto gears, auto q, auto begins) {
    if (!gears) {
        return;
    }
    auto [table, states, bent, past] = first<4>(*gears);
    for (Index i = 0; i < table.shape(0); ++i) {
        auto gear = table(i);
        Index m = Index(gear(MOTOR));
        Index j = Index(gear(LINK));
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto u = q(m, k) + std::get<0>(gears::wave(gear, q(m, k))) - q(j, k);
            if (!begins) {
                for (Index t = 0; t < states.shape(0); ++t) {
                    if (Index(states(t, OWNER)) == i) {
                        past(t, k) =
                            std::get<0>(gears::moved(states(t), past(t, k), u - bent(i, k)));
                    }
                }
            }
            bent(i, k) = u;
        }
    }
}

/// Begin with the motions from ``place`` on at ``q`` (n, LANES), their states in ``before``.
inline auto take_gears(auto gears, auto q, auto before, auto place) {
    if (!gears) {
        return;
    }
    auto past = std::get<3>(*gears);
    auto [first, used] = place;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        for (Index e = 0; e < past.shape(0); ++e) {
            past(e, k) = k < used ? before(first + k, e) : 0.0;
        }
    }
    gears::carry_gears(gears, q, true);
}

/// Put the states of the motions from ``place`` on into ``after`` (K, k).
inline auto put_gears(auto gears, auto place, auto after) {
    if (!gears) {
        return;
    }
    auto past = std::get<3>(*gears);
    auto [first, used] = place;
    for (Index k = 0; k < used; ++k) {
        for (Index e = 0; e < past.shape(0); ++e) {
            after(first + k, e) = past(e, k);
        }
    }
}

/// Return torque and slope of the hysteresis of gear ``i`` after a travel ``now``.
inline auto loop(auto states, auto i, auto now, auto z) {
    double torque = 0.0;
    double slope = 0.0;
    for (Index t = 0; t < states.shape(0); ++t) {
        if (Index(states(t, OWNER)) == i) {
            auto [value, steep] = gears::moved(states(t), z(t), now);
            torque += states(t, AMPLITUDE) * value;
            slope += states(t, AMPLITUDE) * steep;
        }
    }
    return std::make_tuple(torque, slope);
}

/// Fill ``out`` (2, N, e) with torque of hysteresis at deflections ``bent`` (N, e), and doubt.
///
/// ``before`` are deflection and direction (e,) of the last travel and the states (k,) by then,
/// and move on; where a motion ``begins`` (N,) the states are ``relaxed`` (k,). A deflection that
/// is NaN is none. One that turns back by less than the ``noise`` (N, e) is no travel yet: doubt
/// is the torque that it would make.
inline auto hysteresis_along(auto states, auto bent, auto noise, auto begins, auto relaxed,
                             auto before, auto out) {
    auto [last, side, z] = before;
    for (Index r = 0; r < bent.shape(0); ++r) {
        if (begins(r)) {
            z = relaxed;
            side = 0.0;
            last = NaN;
        }
        for (Index i = 0; i < bent.shape(1); ++i) {
            if (std::isnan(last(i))) {
                last(i) = bent(r, i);
            }
            auto away = bent(r, i) - last(i);
            away = std::isnan(away) ? 0.0 : away;
            if (away * side(i) > 0.0 || std::abs(away) > noise(r, i)) {
                for (Index t = 0; t < states.shape(0); ++t) {
                    if (Index(states(t, OWNER)) == i) {
                        z(t) = std::get<0>(gears::moved(states(t), z(t), away));
                    }
                }
                last(i) = last(i) + away;
                side(i) = sign(away);
                away = 0.0;
            }
            out(0, r, i) = std::get<0>(gears::loop(states, i, 0.0, z));
            out(1, r, i) = std::abs(std::get<0>(gears::loop(states, i, away, z)) - out(0, r, i));
        }
    }
}

/// Fill ``out`` (2, N, e) with the deflection that transmits ``torque`` (N, e), and its rate.
///
/// Along samples ``step`` [s] apart, from relaxed states at rest, by backward differences of
/// second order, which fade whatever the damping is.
inline auto bent_along(auto table, auto states, auto torque, auto step, auto out) {
    const Scope scope;
    auto z = new_zeros<double, 1, 0>(states.shape(0));
    for (Index i = 0; i < table.shape(0); ++i) {
        auto gear = table(i);
        for (Index r = 0; r < torque.shape(0); ++r) {
            double before;
            double base;
            double pace;
            // rate = (u - base) * pace, from one or two samples before
            if (r == 0) {
                before = (torque(0, i) - gear(OFFSET)) / gear(STIFFNESS);
                base = before;
                pace = 0.0;
            } else {
                if (r == 1) {
                    before = out(0, 0, i);
                    base = before;
                    pace = 1.0 / step;
                } else {
                    before = out(0, r - 1, i);
                    base = (4.0 * before - out(0, r - 2, i)) / 3.0;
                    pace = 1.5 / step;
                }
            }
            auto u = before;
            for (Index round0 = 0; round0 < MOST_ROUNDS; ++round0) {
                auto [loop, steep] = gears::loop(states, i, u - before, z);
                auto off = gear(STIFFNESS) * u + gear(DAMPING) * pace * (u - base) + gear(OFFSET) +
                           loop - torque(r, i);
                auto move = off / (gear(STIFFNESS) + gear(DAMPING) * pace + steep);
                u -= move;
                if (std::abs(move) <= FINEST * std::abs(u)) {
                    break;
                }
            }
            out(0, r, i) = u;
            out(1, r, i) = pace * (u - base);
            for (Index t = 0; t < states.shape(0); ++t) {
                if (Index(states(t, OWNER)) == i) {
                    z(t) = std::get<0>(gears::moved(states(t), z(t), u - before));
                }
            }
        }
    }
}

}  // namespace gears
