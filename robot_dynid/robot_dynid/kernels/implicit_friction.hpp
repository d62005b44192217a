// Steps with friction that acts implicitly, one tile of motions at a time.
//
// Friction of an axis at its speed w at the end of a step is taken on its tangent, found by Newton's
// method: the tangent at a speed gives the next one. An axis that would reverse is taken at rest
// next, so it passes through the ramp of its dry friction and does not jump to and fro across a
// steep one. Friction that falls with the speed is held as it is. Elastic gears act beside it, see
// `gears`.

namespace implicit_friction {

// columns of what is straight: viscous, offset
constexpr Index VISCOUS = 0, OFFSET = 1;
// most tangents of a step; 300 000 steps of hard-braked arms with ramps took five at most
constexpr Index MOST_CHANGES = 10;
// what is kept of the axes and terms between steps, each (.., LANES): speeds at which tangents are
// taken, the tangents rest + slope * speed, sizes of all terms of an axis, and of each term; a row
// with a number above zero where tangents are to be taken again
constexpr Index AT = 0, REST = 1, SLOPE = 2, BOUND = 3, SIZES = 4, STALE = 5;
// share of the friction of an axis by which the tangents of two rounds may differ at the end
constexpr double SETTLED = 1e-10;

/// Fill BOUND and SIZES of ``lines`` under loads ``pressed`` (a, LANES).
inline auto set_sizes(auto friction, auto pressed, auto lines) {
    std::get<STALE>(lines)(0) = 1.0;
    auto terms = std::get<2>(friction);
    auto bound = std::get<BOUND>(lines);
    auto sizes = std::get<SIZES>(lines);
    double i;
    for (Index i = 0; i < bound.shape(0); ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            bound(i, k) = 0.0;
        }
    }
    for (Index e = 0; e < terms.shape(0); ++e) {
        auto weight = terms(e, friction::WEIGHT);
        auto load = terms(e, friction::LOAD);
        i = Index(terms(e, friction::ROW));
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            sizes(e, k) = weight + load * std::abs(pressed(i, k));
            bound(i, k) += std::abs(sizes(e, k));
        }
    }
}

/// Take ramps of sizes below zero, which least squares may give, off ``load``.
inline auto explicit_friction(auto friction, auto v, auto sizes, auto load, auto row) {
    auto [axes, unused0, terms] = friction;
    auto [speed, torque] = row;
    for (Index e = 0; e < terms.shape(0); ++e) {
        auto term = terms(e);
        if (!sliding_friction::is_ramp(term) ||
            (term(friction::LOAD) == 0.0 && term(friction::WEIGHT) >= 0.0)) {
            continue;
        }
        auto axis = axes(Index(term(friction::ROW)));
        sliding_friction::along(axis, v, speed);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            torque(k) = min_of(sizes(e, k), 0.0) * std::get<0>(friction::tangent(term, speed(k)));
        }
        for (Index j = 0; j < load.shape(0); ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                load(j, k) -= axis(j) * torque(k);
            }
        }
    }
}

/// Fill rest and slope (LANES,) of the axis of term ``e``, its first, near the speed ``at``.
///
/// Return the first term of the next axis.
inline auto tangent_of_axis(auto terms, auto sizes, auto e, auto at, auto tangents) {
    auto [rest, slope] = tangents;
    auto i = terms(e, friction::ROW);
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        rest(k) = slope(k) = 0.0;
    }
    bool falls = false;
    while (e < terms.shape(0) && terms(e, friction::ROW) == i) {
        auto term = terms(e);
        auto size = sizes(e);
        if (sliding_friction::is_ramp(term)) {
            auto width = term(friction::SCALE);
            auto low = term(friction::LOWEST);
            auto high = term(friction::HIGHEST);
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                auto edge = min_of(max_of(at(k), low), high);
                auto height = max_of(size(k), 0.0);
                auto side = edge >= width ? 1.0 : (edge <= -width ? -1.0 : 0.0);
                rest(k) += height * side;
                slope(k) += height / width * (1.0 - std::abs(side));
            }
        } else {
            falls = true;
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                auto [value, rise] = friction::tangent(term, at(k));
                rest(k) += size(k) * (value - rise * at(k));
                slope(k) += size(k) * rise;
            }
        }
        e += 1;
    }
    if (falls) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            rest(k) += min_of(slope(k), 0.0) * at(k);
            slope(k) = max_of(slope(k), 0.0);
        }
    }
    return e;
}

/// Fill the tangents of all axes at the speeds where they are taken.
inline auto take_tangents(auto friction, auto lines) {
    auto terms = std::get<2>(friction);
    Index e = 0;
    while (e < terms.shape(0)) {
        Index i = Index(terms(e, friction::ROW));
        e = implicit_friction::tangent_of_axis(
            terms, std::get<SIZES>(lines), e, std::get<AT>(lines)(i),
            std::make_tuple(std::get<REST>(lines)(i), std::get<SLOPE>(lines)(i)));
    }
}

/// Take the tangents of all axes at their speeds at the begin of a step.
inline auto first_speeds(auto friction, auto v, auto lines) {
    for (Index i = 0; i < std::get<0>(friction).shape(0); ++i) {
        sliding_friction::along(std::get<0>(friction)(i), v, std::get<AT>(lines)(i));
    }
    std::get<STALE>(lines)(0) = 1.0;
}

/// Take the tangents at the speeds that followed from them; return whether it matters.
inline auto change_tangents(auto friction, auto v, auto change, auto lines, auto scratch) {
    auto [axes, unused0, terms] = friction;
    auto [at, rest, slope, bound, sizes, stale] = lines;
    auto [speed, step, wrong, other_rest, other_slope] = scratch;
    auto turned = stale(0);
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        wrong(k) = turned(k) = 0.0;
    }
    Index e = 0;
    while (e < terms.shape(0)) {
        Index i = Index(terms(e, friction::ROW));
        sliding_friction::along(axes(i), v, speed);
        sliding_friction::along(axes(i), change, step);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            speed(k) += step(k);
        }
        e = implicit_friction::tangent_of_axis(terms, sizes, e, speed,
                                               std::make_tuple(other_rest, other_slope));
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto more = (other_slope(k) - slope(i, k)) * speed(k) + (other_rest(k) - rest(i, k));
            auto off = std::abs(more) > SETTLED * bound(i, k) ? 1.0 : 0.0;
            auto back = at(i, k) * speed(k) < 0.0 ? off : 0.0;
            wrong(k) += off;
            turned(k) += back;
            at(i, k) = speed(k) * (1.0 - back);
            rest(i, k) = other_rest(k);
            slope(i, k) = other_slope(k);
        }
    }
    return wrong.max() > 0.0;
}

/// Take the ``torque`` of one axis off ``load``, add its ``damping`` to the matrix.
inline auto damp(auto axis, auto torque, auto damping, auto load, auto factor) {
    for (Index j = 0; j < load.shape(0); ++j) {
        if (axis(j) != 0.0) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                load(j, k) -= axis(j) * torque(k);
            }
            for (Index i = 0; i < j + 1; ++i) {
                auto share = axis(j) * axis(i);
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    factor(j, i, k) += share * damping(k);
                }
            }
        }
    }
}

/// Solve M d + duration (F(v + d) - load) = 0 for ``change`` d, F on its tangents.
///
/// ``gears`` are at the position q + reach (v + d).
inline auto linear_step(auto friction, auto equations, auto start, auto lines, auto scratch,
                        auto change, auto gears) {
    auto [axes, straight, unused0] = friction;
    auto [matrix, load] = equations;
    auto v = std::get<0>(start);
    auto duration = std::get<1>(start);
    auto [factor, least, speed, damping] = scratch;
    for (Index j = 0; j < load.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            change(j, k) = duration * load(j, k);
        }
        for (Index i = 0; i < j + 1; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                factor(j, i, k) = matrix(j, i, k);
            }
        }
    }
    for (Index i = 0; i < axes.shape(0); ++i) {
        auto viscous = duration * straight(i, VISCOUS);
        auto offset = duration * straight(i, OFFSET);
        auto rest = std::get<REST>(lines)(i);
        auto slope = std::get<SLOPE>(lines)(i);
        sliding_friction::along(axes(i), v, speed);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            damping(k) = viscous + duration * slope(k);
            speed(k) = offset + duration * rest(k) + damping(k) * speed(k);
        }
        implicit_friction::damp(axes(i), speed, damping, change, factor);
    }
    gears::press_gears(gears, start, change, factor);
    forward_dynamics::eliminate(factor, change, least);
    forward_dynamics::substitute(factor, change);
}

/// Solve M d + duration (F(v + d) - load) = 0 for ``change`` d.
///
/// ``start`` is (v, duration, q, reach): ``gears`` are at q + reach (v + d). Begins with the
/// tangents at the speeds in ``lines`` and leaves there those at v + d.
inline auto implicit_step(auto friction, auto equations, auto start, auto lines, auto scratch,
                          auto change, auto gears) {
    auto [unused0, unused1, row, other] = std::get<0>(scratch);
    gears::begin_gears(gears);
    for (Index round2 = 0; round2 < MOST_CHANGES; ++round2) {
        if (std::get<STALE>(lines).max() > 0.0) {
            implicit_friction::take_tangents(friction, lines);
        }
        implicit_friction::linear_step(friction, equations, start, lines, std::get<0>(scratch),
                                       change, gears);
        auto turned = gears::change_gears(gears, start, change);
        if (!implicit_friction::change_tangents(
                friction, std::get<0>(start), change, lines,
                std::make_tuple(row, other, std::get<3>(scratch), std::get<1>(scratch),
                                std::get<2>(scratch))) &&
            !turned) {
            break;
        }
    }
}

}  // namespace implicit_friction
