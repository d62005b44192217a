// Friction of states that slide steadily, one tile at a time, also under the load of their motion.
//
// Friction of the axes, which move at A v, is rest + grows |p|. The load p = T (M qdd + h) is what
// the axes transmit of the effort of links with inertia M and bias h. It is linear in the
// acceleration, friction therefore piecewise linear: with the accelerations a0 without `grows`, and X
// those under a unit of torque on each axis,
//
//     p + N |p| = T (M a0 + h),    N = T M X diag(grows).
//
// It is the solution of a linear system once the signs of p are known. All wrong signs change at
// once, while their number falls; else the first of them alone, which ends wherever every right side
// has one solution: det(I + N S) > 0 for all signs S, as where friction takes a part of the load.
// Source: block principal pivoting, Judice, Pires, Computers & Operations Research 1994, 21; Murty,
// Linear Algebra and its Applications 1974, 9.

namespace sliding_friction {

// changes of signs at most, one at a time after the first ones; share of the greatest load by
// which one may be on the other side of zero than its sign
constexpr Index MOST_CHANGES = 200;
constexpr double ROUNDING = 1e-13;
// least pivot of I + N without exchange of rows
constexpr double LEAST_PIVOT = 0.1;

/// Fill ``out`` with the motion of one axis.
inline auto along(auto axis, auto motion, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        out(k) = 0.0;
    }
    for (Index j = 0; j < motion.shape(0); ++j) {
        auto share = axis(j);
        if (share != 0.0) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                out(k) += share * motion(j, k);
            }
        }
    }
}

inline auto is_ramp(auto term) {
    return term(friction::KIND) == friction::RAMP && term(friction::SIDE) == 0.0 &&
           term(friction::FADE) == 0.0 && term(friction::ABOVE) == 0.0;
}

/// Fill ``out`` with a term of weight one at the speeds of its axis.
inline auto fill_term(auto term, auto speed, auto out) {
    if (sliding_friction::is_ramp(term)) {
        auto width = term(friction::SCALE);
        auto low = term(friction::LOWEST);
        auto high = term(friction::HIGHEST);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto edge = min_of(max_of(speed(k), low), high);
            auto side = edge >= width ? 1.0 : (edge <= -width ? -1.0 : 0.0);
            out(k) = side + (1.0 - std::abs(side)) / width * speed(k);
        }
    } else {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            out(k) = std::get<0>(friction::tangent(term, speed(k)));
        }
    }
}

/// Fill ``rest`` and ``grows`` (a, LANES) of axes that move with ``v``.
inline auto sliding_parts(auto friction, auto v, auto row, auto rest, auto grows) {
    auto [axes, straight, terms] = first<3>(friction);
    auto [speed, shape] = row;
    Index e = 0;
    for (Index i = 0; i < axes.shape(0); ++i) {
        sliding_friction::along(axes(i), v, speed);
        auto viscous = straight(i, 0);
        auto offset = straight(i, 1);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            rest(i, k) = viscous * speed(k) + offset;
            grows(i, k) = 0.0;
        }
        while (e < terms.shape(0) && terms(e, friction::ROW) == i) {
            auto weight = terms(e, friction::WEIGHT);
            auto load = terms(e, friction::LOAD);
            sliding_friction::fill_term(terms(e), speed, shape);
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                rest(i, k) += weight * shape(k);
            }
            if (load != 0.0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    grows(i, k) += load * shape(k);
                }
            }
            e += 1;
        }
    }
}

/// Add torques (a, LANES) of axes to ``out`` (N, LANES).
inline auto add_torque(auto axes, auto torque, auto out) {
    for (Index i = 0; i < axes.shape(0); ++i) {
        for (Index j = 0; j < axes.shape(1); ++j) {
            auto share = axes(i, j);
            if (share != 0.0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    out(j, k) += share * torque(i, k);
                }
            }
        }
    }
}

inline auto sign_of(auto load) { return load < 0.0 ? -1.0 : 1.0; }

/// Bring ``matrix`` (m, m, LANES) p = p to a triangle; 0 in ``settled`` at small pivots.
inline auto eliminate_as_it_is(auto matrix, auto p, auto settled) {
    for (Index i = 0; i < p.shape(0); ++i) {
        for (Index j = 0; j < i; ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                matrix(i, j, k) = matrix(i, j, k) / matrix(j, j, k);
                p(i, k) -= matrix(i, j, k) * p(j, k);
            }
            for (Index h = j + 1; h < p.shape(0); ++h) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    matrix(i, h, k) -= matrix(i, j, k) * matrix(j, h, k);
                }
            }
        }
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            settled(k) = matrix(i, i, k) > LEAST_PIVOT ? settled(k) : 0.0;
        }
    }
}

/// Finish what `eliminate_as_it_is` began.
inline auto substitute_back(auto matrix, auto p) {
    for (Index i = p.shape(0) - 1; i > -1; --i) {
        for (Index j = i + 1; j < p.shape(0); ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                p(i, k) -= matrix(i, j, k) * p(j, k);
            }
        }
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            p(i, k) = p(i, k) / matrix(i, i, k);
        }
    }
}

/// Solve p + N |p| = p0 in place with the signs of p0, which is kept in ``scratch``.
inline auto first_loads(auto shares, auto p, auto scratch, auto settled) {
    auto [matrix, given] = scratch;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        settled(k) = 1.0;
    }
    for (Index i = 0; i < p.shape(0); ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            given(i, k) = p(i, k);
        }
        for (Index j = 0; j < p.shape(0); ++j) {
            auto one = i == j ? 1.0 : 0.0;
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                matrix(i, j, k) = one + shares(i, j, k) * sliding_friction::sign_of(p(j, k));
            }
        }
    }
    sliding_friction::eliminate_as_it_is(matrix, p, settled);
    sliding_friction::substitute_back(matrix, p);
    for (Index i = 0; i < p.shape(0); ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            settled(k) =
                p(i, k) * sliding_friction::sign_of(given(i, k)) >= 0.0 ? settled(k) : 0.0;
        }
    }
}

/// Solve ``matrix`` (m, m) p = p in place, rows exchanged for the greatest pivots.
inline auto solve_with_exchange(auto matrix, auto p) {
    Index count = p.shape(0);
    for (Index j = 0; j < count; ++j) {
        Index best = j;
        for (Index i = j + 1; i < count; ++i) {
            if (std::abs(matrix(i, j)) > std::abs(matrix(best, j))) {
                best = i;
            }
        }
        for (Index h = 0; h < count; ++h) {
            const auto new0 = matrix(best, h);
            const auto new1 = matrix(j, h);
            matrix(j, h) = new0;
            matrix(best, h) = new1;
        }
        const auto new2 = p(best);
        const auto new3 = p(j);
        p(j) = new2;
        p(best) = new3;
        for (Index i = j + 1; i < count; ++i) {
            auto share = matrix(i, j) / matrix(j, j);
            for (Index h = j; h < count; ++h) {
                matrix(i, h) -= share * matrix(j, h);
            }
            p(i) -= share * p(j);
        }
    }
    for (Index i = count - 1; i > -1; --i) {
        for (Index h = i + 1; h < count; ++h) {
            p(i) -= matrix(i, h) * p(h);
        }
        p(i) = p(i) / matrix(i, i);
    }
}

/// Solve p + N |p| = ``given`` of one lane for ``p`` (m,); return 1 where the signs settled.
inline auto settle(auto shares, auto given, auto k, auto scratch, auto p) {
    auto [matrix, sign] = scratch;
    Index count = p.shape(0);
    double most = 0.0;
    Index fewest = count + 1;
    for (Index i = 0; i < count; ++i) {
        sign(i) = sliding_friction::sign_of(given(i, k));
        most += std::abs(given(i, k));
    }
    for (Index round0 = 0; round0 < (std::isfinite(most) ? MOST_CHANGES : 0); ++round0) {
        for (Index i = 0; i < count; ++i) {
            p(i) = given(i, k);
            for (Index j = 0; j < count; ++j) {
                matrix(i, j) = (i == j ? 1.0 : 0.0) + shares(i, j, k) * sign(j);
            }
        }
        sliding_friction::solve_with_exchange(matrix, p);
        Index wrong = 0;
        Index first = -1;
        for (Index i = 0; i < count; ++i) {
            if (!(sign(i) * p(i) >= -ROUNDING * most)) {
                wrong += 1;
                first = first < 0 ? i : first;
            }
        }
        if (wrong == 0) {
            return 1.0;
        }
        for (Index i = 0; i < count; ++i) {
            auto turned = !(sign(i) * p(i) >= -ROUNDING * most) && (wrong < fewest || i == first);
            sign(i) = turned ? -sign(i) : sign(i);
        }
        fewest = min_of(fewest, wrong);
    }
    return 0.0;
}

/// Solve p + N |p| = p0 in place of p0 ``p`` (m, LANES), N = ``shares`` (m, m, LANES).
///
/// ``settled`` (LANES,) receives 1 where there is a solution, else 0.
inline auto settled_loads(auto shares, auto used, auto p, auto scratch, auto settled) {
    auto [matrix, given, other, sign, own] = scratch;
    sliding_friction::first_loads(shares, p, std::make_tuple(matrix, given), settled);
    for (Index k = 0; k < used; ++k) {
        if (settled(k) == 0.0) {
            settled(k) =
                sliding_friction::settle(shares, given, k, std::make_tuple(other, sign), own);
            for (Index i = 0; i < own.shape(0); ++i) {
                p(i, k) = own(i);
            }
        }
    }
}

}  // namespace sliding_friction
