// Friction: one evaluator of tables of elementary terms of the motion of an axis.
//
// A term is weight * size * share * shape: the shape is a function of the velocity v, or a state of
// the position that slips; the share falls with the speed, with time, or grows with temperature; the
// size is one, or that of the load. With s = scale:
//
//     CONSTANT  1                   POWER  v |v|^(s - 1)
//     RAMP      clip(v / s, -1, 1)  TANH   tanh(v / s)
//     STOP      spring that slips at the travel s; dz = dq / s within -1, 1
//     DAHL      dz = (dq - |dq| z) / s, exact while the direction holds
//
// It acts on the way SIDE (0: both) from the speed ABOVE on, and beyond the velocities LOWEST and
// HIGHEST goes on along its tangent.

namespace friction {

// columns of a term: row of the result (parameter or axis), shape, its scale; weight, and weight
// per size of the load; whether it holds an axis at rest; direction, least speed, velocities
// beyond which it is linear; speed over which it fades as 1 - tanh(|v| / fade), 0: it does not;
// ramp of a state in steady sliding; time constant [s] of its decay, 0: none, and the share that
// stays; reference temperature, NaN: none, and the range that is known
constexpr Index ROW = 0, KIND = 1, SCALE = 2, WEIGHT = 3, LOAD = 4, HOLDS = 5, SIDE = 6, ABOVE = 7,
                LOWEST = 8, HIGHEST = 9, FADE = 10, WIDTH = 11, SECONDS = 12, LEAST = 13,
                REFERENCE = 14, COLDEST = 15, HOTTEST = 16, COLUMNS = 17;
// shapes; those from STOP on are states
constexpr double CONSTANT = 0.0, POWER = 1.0, RAMP = 2.0, TANH = 3.0, STOP = 4.0, DAHL = 5.0;
// speed [rad/s, m/s] from which a state begins as it slides; below, it begins the more relaxed
constexpr double SLIDING = 0.01;

inline auto ramp(auto velocity, auto width) { return min_of(max_of(velocity / width, -1.0), 1.0); }

/// Return the shape at a velocity, and its slope.
inline auto shape(auto term, auto velocity) {
    auto kind = term(KIND);
    auto scale = term(SCALE);
    if (kind == RAMP) {
        auto inside = std::abs(velocity) < scale;
        return std::make_tuple(friction::ramp(velocity, scale), inside ? 1.0 / scale : 0.0);
    }
    if (kind == TANH) {
        auto steep = std::tanh(velocity / scale);
        return std::make_tuple(steep, (1.0 - square(steep)) / scale);
    }
    if (kind == POWER) {
        if (scale == 1.0) {
            return std::make_tuple(velocity, 1.0);
        }
        auto size = scale == 2.0 ? std::abs(velocity) : std::pow(std::abs(velocity), scale - 1.0);
        return std::make_tuple(velocity * size, scale * size);
    }
    return std::make_tuple(1.0, 0.0);
}

/// Return the share that is left at a velocity, and its slope.
inline auto fading(auto term, auto velocity) {
    if (term(FADE) == 0.0) {
        return std::make_tuple(1.0, 0.0);
    }
    auto steep = std::tanh(std::abs(velocity) / term(FADE));
    return std::make_tuple(1.0 - steep, -sign(velocity) * (1.0 - square(steep)) / term(FADE));
}

/// Return a term without a past, of weight one, at a velocity, and its slope.
inline auto tangent(auto term, auto velocity) {
    auto edge = min_of(max_of(velocity, term(LOWEST)), term(HIGHEST));
    if (velocity * term(SIDE) < 0.0 || std::abs(edge) < term(ABOVE)) {
        return std::make_tuple(0.0, 0.0);
    }
    auto [value, slope] = friction::shape(term, edge);
    if (term(FADE) != 0.0) {
        auto [share, falls] = friction::fading(term, edge);
        slope = slope * share + value * falls;
        value *= share;
    }
    return std::make_tuple(value + slope * (velocity - edge), slope);
}

/// Return the share of a state that is left at a speed.
inline auto share(auto term, auto velocity) {
    auto edge = min_of(max_of(velocity, term(LOWEST)), term(HIGHEST));
    auto [share, falls] = friction::fading(term, edge);
    return share + falls * (velocity - edge);
}

/// Return a term of weight one after a ``travel`` from the state ``z``, and its state by then.
///
/// Where a motion ``begins`` a state is that of sliding, none at rest.
inline auto unit(auto term, auto z, auto travel, auto velocity, auto begins) {
    if (term(KIND) < STOP) {
        return std::make_tuple(std::get<0>(friction::tangent(term, velocity)), 0.0);
    }
    if (begins) {
        z = friction::ramp(velocity, SLIDING);
    } else {
        if (term(KIND) == STOP) {
            z = min_of(max_of(z + travel / term(SCALE), -1.0), 1.0);
        } else {
            auto left = std::exp(-std::abs(travel) / term(SCALE));
            z = z * left + sign(travel) * (1.0 - left);
        }
    }
    return std::make_tuple(z * friction::share(term, velocity), z);
}

/// Fill ``out`` (N,) with the shape of a term: ramps and lines become vector loops.
inline auto fill_shapes(auto term, auto velocity, auto out) {
    auto scale = term(SCALE);
    if (term(KIND) == RAMP) {
        for (Index i = 0; i < out.shape(0); ++i) {
            out(i) = min_of(max_of(velocity(i) / scale, -1.0), 1.0);
        }
    } else {
        if (term(KIND) == POWER && scale == 1.0) {
            for (Index i = 0; i < out.shape(0); ++i) {
                out(i) = velocity(i);
            }
        } else {
            if (term(KIND) == TANH) {
                for (Index i = 0; i < out.shape(0); ++i) {
                    out(i) = std::tanh(velocity(i) / scale);
                }
            } else {
                for (Index i = 0; i < out.shape(0); ++i) {
                    out(i) = std::get<0>(friction::shape(term, velocity(i)));
                }
            }
        }
    }
}

/// Take from shapes ``out`` (N,) what fades, and the velocities at which nothing acts.
inline auto restrict(auto term, auto velocity, auto out) {
    auto side = term(SIDE);
    auto above = term(ABOVE);
    auto fade = term(FADE);
    if (fade != 0.0) {
        for (Index i = 0; i < out.shape(0); ++i) {
            out(i) *= 1.0 - std::tanh(std::abs(velocity(i)) / fade);
        }
    }
    if (side != 0.0 || above != 0.0) {
        for (Index i = 0; i < out.shape(0); ++i) {
            auto acts = velocity(i) * side >= 0.0 && std::abs(velocity(i)) >= above;
            out(i) = acts ? out(i) : 0.0;
        }
    }
}

/// Fill ``out`` (N,) with a term of weight one along a segment.
inline auto fill_units(auto term, auto motion, auto out) {
    auto [position, velocity] = motion;
    if (term(KIND) < STOP && std::isinf(term(LOWEST)) && std::isinf(term(HIGHEST))) {
        friction::fill_shapes(term, velocity, out);
        friction::restrict(term, velocity, out);
        return;
    }
    double z = 0.0;
    for (Index i = 0; i < out.shape(0); ++i) {
        auto travel = i > 0 ? position(i) - position(i - 1) : 0.0;
        const auto pair0 = friction::unit(term, z, travel, velocity(i), i == 0);
        out(i) = std::get<0>(pair0);
        z = std::get<1>(pair0);
    }
}

/// Multiply ``out`` (N,) by the weight of a term along a segment.
///
/// ``motion``: time since the recording began, load and temperature, (N,) or (0,) where unknown.
inline auto weigh(auto term, auto motion, auto out) {
    auto [since, load, temperature] = motion;
    auto weight = term(WEIGHT);
    auto grows = term(LOAD);
    if (grows != 0.0 && load.shape(0) > 0) {
        for (Index i = 0; i < out.shape(0); ++i) {
            out(i) *= weight + grows * std::abs(load(i));
        }
    } else {
        for (Index i = 0; i < out.shape(0); ++i) {
            out(i) *= weight;
        }
    }
    if (term(SECONDS) != 0.0) {
        for (Index i = 0; i < out.shape(0); ++i) {
            out(i) *= max_of(std::exp(-since(i) / term(SECONDS)), term(LEAST));
        }
    }
    if (!std::isnan(term(REFERENCE))) {
        for (Index i = 0; i < out.shape(0); ++i) {
            auto known = temperature.shape(0) > 0 ? temperature(i) : term(REFERENCE);
            known = temperature.shape(0) == 0
                        ? known
                        : min_of(max_of(known, term(COLDEST)), term(HOTTEST));
            out(i) *= known - term(REFERENCE);
        }
    }
}

/// Fill ``out`` (rows, N) with the sums of the terms of each row.
///
/// ``tables``: terms (t, COLUMNS), and the same without a past. ``motion``: time since the
/// recording began, position, velocity (N,), load and temperature (N,), or (0,) where unknown.
/// ``first`` (S + 1,) has the first sample of every segment and the end; a segment of one sample
/// has no past.
inline auto fill_columns(auto tables, auto motion, auto first, auto out) {
    const Scope scope;
    auto [terms, slid] = tables;
    auto [since, position, velocity, load, temperature] = motion;
    out = 0.0;
    auto work = new_array<double, 1, 0>(velocity.shape(0));
    for (Index e = 0; e < terms.shape(0); ++e) {
        auto row = out(Index(terms(e, ROW)));
        for (Index s = 0; s < first.shape(0) - 1; ++s) {
            Index start = first(s);
            Index stop = first(s + 1);
            auto own = work.part(start, stop);
            auto along = std::make_tuple(since.part(start, stop), load.part(start, stop),
                                         temperature.part(start, stop));
            if (stop == start + 1) {
                own(0) = std::get<0>(friction::tangent(slid(e), velocity(start)));
                friction::weigh(slid(e), along, own);
            } else {
                friction::fill_units(
                    terms(e),
                    std::make_tuple(position.part(start, stop), velocity.part(start, stop)), own);
                friction::weigh(terms(e), along, own);
            }
        }
        for (Index i = 0; i < work.shape(0); ++i) {
            row(i) += work(i);
        }
    }
}

/// Fill ``values`` and ``slopes`` (rows, N): terms without a past, and their derivatives.
///
/// ``velocity`` (rows, N) of the axis of each row.
inline auto fill_sliding(auto terms, auto velocity, auto values, auto slopes) {
    values = 0.0;
    slopes = 0.0;
    for (Index e = 0; e < terms.shape(0); ++e) {
        Index row = Index(terms(e, ROW));
        auto weight = terms(e, WEIGHT);
        for (Index i = 0; i < velocity.shape(1); ++i) {
            auto [value, slope] = friction::tangent(terms(e), velocity(row, i));
            values(row, i) += weight * value;
            slopes(row, i) += weight * slope;
        }
    }
}

/// Return the motion of an axis (n,).
inline auto along(auto axis, auto motion) {
    double total = 0.0;
    for (Index j = 0; j < axis.shape(0); ++j) {
        total += axis(j) * motion(j);
    }
    return total;
}

/// Fill ``out`` (K, n) with the friction of states at ``velocity`` (K, n), none with a past.
///
/// ``friction``: axes (a, n), straight (a, 2), terms (t, COLUMNS) by axis; ``load`` (K, a), or
/// (0, a) where nothing depends on it.
inline auto sliding_torque(auto friction, auto velocity, auto load, auto out) {
    const Scope scope;
    auto [axes, straight, terms] = friction;
    auto speed = new_array<double, 1, 0>(velocity.shape(0));
    auto torque = new_array<double, 1, 0>(velocity.shape(0));
    auto work = new_array<double, 1, 0>(velocity.shape(0));
    auto none = new_array<double, 1, 0>(0);
    out = 0.0;
    Index e = 0;
    for (Index i = 0; i < axes.shape(0); ++i) {
        const Scope of_axis;
        auto pressed = column_of(load, i);
        for (Index k = 0; k < speed.shape(0); ++k) {
            speed(k) = friction::along(axes(i), velocity(k));
            torque(k) = straight(i, 0) * speed(k) + straight(i, 1);
        }
        while (e < terms.shape(0) && terms(e, ROW) == i) {
            friction::fill_units(terms(e), std::make_tuple(speed, speed), work);
            friction::weigh(terms(e), std::make_tuple(speed, pressed, none), work);
            for (Index k = 0; k < speed.shape(0); ++k) {
                torque(k) += work(k);
            }
            e += 1;
        }
        for (Index j = 0; j < axes.shape(1); ++j) {
            auto share = axes(i, j);
            if (share != 0.0) {
                for (Index k = 0; k < speed.shape(0); ++k) {
                    out(k, j) += share * torque(k);
                }
            }
        }
    }
}

/// Fill ``out`` (2, n) with the friction of the joints, and the part that holds at rest.
///
/// ``friction``: axes (a, n), transmission (a, n) or (0, n), straight (a, 2), terms (t, COLUMNS)
/// by axis. ``past`` (t + a,) keeps the states of the terms and the positions of the axes.
inline auto friction_torque(auto friction, auto state, auto load, auto past, auto begins,
                            auto out) {
    auto [axes, transmission, straight, terms] = friction;
    out = 0.0;
    Index e = 0;
    Index count = terms.shape(0);
    for (Index i = 0; i < axes.shape(0); ++i) {
        auto position = friction::along(axes(i), state(0));
        auto velocity = friction::along(axes(i), state(1));
        auto pressed =
            transmission.shape(0) > 0 ? std::abs(friction::along(transmission(i), load)) : 0.0;
        auto torque = straight(i, 0) * velocity + straight(i, 1);
        double dry = 0.0;
        auto travel = position - past(count + i);
        past(count + i) = position;
        while (e < count && terms(e, ROW) == i) {
            const auto pair0 = friction::unit(terms(e), past(e), travel, velocity, begins);
            auto value = std::get<0>(pair0);
            past(e) = std::get<1>(pair0);
            value *= terms(e, WEIGHT) + terms(e, LOAD) * pressed;
            torque += value;
            if (terms(e, HOLDS) != 0.0) {
                dry += value;
            }
            e += 1;
        }
        for (Index j = 0; j < axes.shape(1); ++j) {
            out(0, j) += axes(i, j) * torque;
            out(1, j) += axes(i, j) * dry;
        }
    }
}

}  // namespace friction
