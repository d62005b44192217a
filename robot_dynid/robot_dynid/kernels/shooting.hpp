// Stages of simulated intervals, with the derivatives of what is simulated.
//
// The scheme is that of `kernels.rollout`. A stage solves M k + bias + F(before + reach k) = effort
// for the acceleration k, and by the theorem of the implicit function its derivatives solve
//
//     (M + reach F') dk = -(d effort of links and rotors) - F' d before - (columns of parameters)
//
// Friction is a table of terms by parameter, see `kernels.friction`, of the speeds of axes.

namespace shooting {

// most tangents of a stage, and the change of the speeds [rad/s, m/s] that ends them
constexpr Index MOST_CHANGES = 30;
constexpr double SETTLED = 1e-12;

/// Replace the lower triangle of a symmetric matrix (n, n) by L and D of L D L^T.
inline auto factorise(auto matrix) {
    for (Index j = 0; j < matrix.shape(0); ++j) {
        for (Index i = 0; i < j; ++i) {
            for (Index m = 0; m < i; ++m) {
                matrix(j, i) -= matrix(j, m) * matrix(i, m);
            }
        }
        for (Index i = 0; i < j; ++i) {
            auto scaled = matrix(j, i) / matrix(i, i);
            matrix(j, j) -= scaled * matrix(j, i);
            matrix(j, i) = scaled;
        }
    }
}

/// Replace ``right`` (n, P) by the solution; ``factor`` is that of `factorise`.
inline auto substitute(auto factor, auto right) {
    const Index n = right.shape(0);
    const Index count = right.shape(1);
    double share;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < j; ++i) {
            share = factor(j, i);
            for (Index p = 0; p < count; ++p) {
                right(j, p) -= share * right(i, p);
            }
        }
    }
    for (Index j = n - 1; j > -1; --j) {
        auto scale = 1.0 / factor(j, j);
        for (Index p = 0; p < count; ++p) {
            right(j, p) *= scale;
        }
        for (Index i = j + 1; i < n; ++i) {
            share = factor(i, j);
            for (Index p = 0; p < count; ++p) {
                right(j, p) -= share * right(i, p);
            }
        }
    }
}

/// Fill ``torque`` and ``slope`` (a,) of the axes at their speeds (a,) under loads (a,).
inline auto friction(auto friction, auto pressed, auto speed, auto torque, auto slope) {
    auto [unused0, owner, terms, values] = friction;
    torque = 0.0;
    slope = 0.0;
    for (Index e = 0; e < terms.shape(0); ++e) {
        Index parameter = Index(terms(e, friction::ROW));
        Index axis = owner(parameter);
        auto size = values(parameter) *
                    (terms(e, friction::WEIGHT) + terms(e, friction::LOAD) * pressed(axis));
        auto [value, rise] = friction::tangent(terms(e), speed(axis));
        torque(axis) += size * value;
        slope(axis) += size * rise;
    }
}

/// Fill ``out`` (n, n) with the mass matrix and what friction adds within a stage.
inline auto damped(auto mass, auto axes, auto slope, auto reach, auto out) {
    Index n = mass.shape(0);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < n; ++i) {
            out(j, i) = mass(j, i);
        }
    }
    for (Index a = 0; a < axes.shape(0); ++a) {
        for (Index j = 0; j < n; ++j) {
            if (axes(a, j) != 0.0) {
                auto share = reach * slope(a) * axes(a, j);
                for (Index i = 0; i < n; ++i) {
                    out(j, i) += share * axes(a, i);
                }
            }
        }
    }
}

/// Add to ``out`` (n,) the effort of the torques (a,) of the axes, times ``sign``.
inline auto add_effort(auto axes, auto torque, auto sign, auto out) {
    for (Index a = 0; a < axes.shape(0); ++a) {
        for (Index j = 0; j < axes.shape(1); ++j) {
            out(j) += sign * axes(a, j) * torque(a);
        }
    }
}

/// Fill the speeds (a,) of the axes, and where tangents are taken next; return how far.
inline auto move(auto axes, auto velocity, auto speed, auto at) {
    double moved = 0.0;
    for (Index a = 0; a < axes.shape(0); ++a) {
        speed(a) = friction::along(axes(a), velocity);
        auto there = speed(a) * at(a) < 0.0 ? 0.0 : speed(a);
        moved = max_of(moved, std::abs(there - at(a)));
        at(a) = there;
    }
    return moved;
}

/// Solve a stage of K intervals.
///
/// ``friction``: axes (a, n), the axis of each parameter (k,), terms (t, COLUMNS) by parameter,
/// values (k,). ``equations``: mass matrices (K, n, n), and the effort (K, n) less bias and less
/// friction at the measured velocity. ``motion``: velocity (K, n) before, that measured (K, n),
/// size of the loads (K, a). Fills ``out``: acceleration, velocity (K, n), slope of friction
/// (K, a), factor (K, n, n) of the matrix of the derivatives.
///
/// Friction is on its tangents, taken again at the speeds they give; an axis that would reverse is
/// taken at rest next, and friction that falls with the speed is held, as in `implicit_friction`.
inline auto solve_stage(auto friction, auto equations, auto motion, auto reach, auto out) {
    const Scope scope;
    auto axes = std::get<0>(friction);
    auto [mass, load] = equations;
    auto [before, measured, pressed] = motion;
    auto [acceleration, velocity, slopes, factors] = out;
    const Index count = before.shape(0);
    const Index n = before.shape(1);
    Index number = axes.shape(0);
    auto at = new_array<double, 1, 0>(number);
    auto speed = new_array<double, 1, 0>(number);
    auto torque = new_array<double, 1, 0>(number);
    auto slope = new_array<double, 1, 0>(number);
    auto left = new_array<double, 1, 0>(n);
    auto right = new_array<double, 2, 1>(n, 1);
    for (Index k = 0; k < count; ++k) {
        for (Index a = 0; a < number; ++a) {
            at(a) = friction::along(axes(a), measured(k));
        }
        shooting::friction(friction, pressed(k), at, torque, slope);
        for (Index j = 0; j < n; ++j) {
            left(j) = load(k, j);
        }
        shooting::add_effort(axes, torque, 1.0, left);
        for (Index round0 = 0; round0 < MOST_CHANGES; ++round0) {
            shooting::friction(friction, pressed(k), at, torque, slope);
            for (Index a = 0; a < number; ++a) {
                slope(a) = max_of(slope(a), 0.0);
                torque(a) += slope(a) * (friction::along(axes(a), before(k)) - at(a));
            }
            for (Index j = 0; j < n; ++j) {
                right(j, 0) = left(j);
            }
            shooting::add_effort(axes, torque, -1.0, View<double, 1>(right.data, {n}, {1}));
            shooting::damped(mass(k), axes, slope, reach, factors(k));
            shooting::factorise(factors(k));
            shooting::substitute(factors(k), right);
            for (Index j = 0; j < n; ++j) {
                acceleration(k, j) = right(j, 0);
                velocity(k, j) = before(k, j) + reach * right(j, 0);
            }
            if (!(shooting::move(axes, velocity(k), speed, at) > SETTLED)) {
                break;
            }
        }
        shooting::friction(friction, pressed(k), speed, torque, slopes(k));
        shooting::damped(mass(k), axes, slopes(k), reach, factors(k));
        shooting::factorise(factors(k));
    }
}

/// Fill the derivatives (n, P) of the arguments of a stage of interval ``k``.
inline auto arguments(auto stage, auto h, auto k, auto by, auto d_at, auto d_before) {
    auto [state, explicit_v, unused0, rate] = by;
    const Index n = d_at.shape(0);
    const Index count = d_at.shape(1);
    for (Index j = 0; j < n; ++j) {
        for (Index p = 0; p < count; ++p) {
            d_at(j, p) = state(0, k, j, p);
            explicit_v(stage, k, j, p) = d_before(j, p) = state(1, k, j, p);
        }
        for (Index s = 0; s < stage; ++s) {
            auto a = h * wide::rollout::EXPLICIT[stage][s];
            auto b = h * wide::rollout::IMPLICIT[stage][s];
            for (Index p = 0; p < count; ++p) {
                d_at(j, p) += a * explicit_v(s, k, j, p);
                explicit_v(stage, k, j, p) += a * rate(s, k, j, p);
                d_before(j, p) += b * rate(s, k, j, p);
            }
        }
    }
}

/// Take ``matrix`` (n, n) @ ``factor`` (n, P) off ``right`` (n, P).
inline auto take_product(auto matrix, auto factor, auto right) {
    const Index n = right.shape(0);
    const Index count = right.shape(1);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < n; ++i) {
            auto share = matrix(j, i);
            if (share != 0.0) {
                for (Index p = 0; p < count; ++p) {
                    right(j, p) -= share * factor(i, p);
                }
            }
        }
    }
}

/// Take the columns of all parameters off ``right`` (n, P).
inline auto take_columns(auto columns, auto place, auto k, auto right) {
    auto [moving, beside, weights] = columns;
    auto [moving_at, beside_at, first] = place;
    for (Index j = 0; j < right.shape(0); ++j) {
        for (Index c = 0; c < moving_at.shape(0); ++c) {
            right(j, moving_at(c)) -= moving(j, c, k);
        }
        for (Index c = 0; c < beside_at.shape(0); ++c) {
            double total = 0.0;
            for (Index x = 0; x < weights.shape(0); ++x) {
                total += weights(x) * beside(k, first + x, j, c);
            }
            right(j, beside_at(c)) -= total;
        }
    }
}

/// Take off ``right`` (n, P) what steady sliding differs between two speeds (a,).
inline auto take_friction(auto friction, auto speeds, auto pressed, auto places, auto right) {
    auto [axes, owner, terms, unused0] = friction;
    auto [here, there] = speeds;
    for (Index e = 0; e < terms.shape(0); ++e) {
        Index parameter = Index(terms(e, friction::ROW));
        Index axis = owner(parameter);
        auto size = terms(e, friction::WEIGHT) + terms(e, friction::LOAD) * pressed(axis);
        auto change = size * (std::get<0>(friction::tangent(terms(e), here(axis))) -
                              std::get<0>(friction::tangent(terms(e), there(axis))));
        for (Index j = 0; j < right.shape(0); ++j) {
            right(j, places(parameter)) -= axes(axis, j) * change;
        }
    }
}

/// Move the derivatives of interval ``k`` to the end of the step.
inline auto finish(auto h, auto k, auto state, auto implicit) {
    for (Index j = 0; j < state.shape(2); ++j) {
        for (Index s = 0; s < wide::rollout::STAGES; ++s) {
            auto weight = h * wide::rollout::IMPLICIT[wide::rollout::STAGES - 1][s];
            for (Index p = 0; p < state.shape(3); ++p) {
                state(0, k, j, p) += weight * implicit(s, k, j, p);
            }
        }
        for (Index p = 0; p < state.shape(3); ++p) {
            state(1, k, j, p) = implicit(wide::rollout::STAGES - 1, k, j, p);
        }
    }
}

/// Fill the derivatives in P parameters of a stage of K intervals, after the last its step's.
///
/// ``friction`` as of `solve_stage`; ``motion``: velocity of the end, that measured (K, n), size
/// of the loads (K, a); ``equations``: derivatives of the effort of links and rotors in position
/// and velocity (K, n, n), then slopes and factors of `solve_stage`; ``columns``: (n, m, K) of
/// links and rotors, (K, m + 3, n, c) of all others and weights (4,) of their samples; ``place``
/// of these columns among the parameters (m,), (c,), the first sample, and that of friction (k,);
/// ``clock``: stage and step [s]. ``by``: derivatives (2, K, n, P) of position and velocity; of
/// explicit and implicit velocity and of the rate of all stages (STAGES, K, n, P).
inline auto stage_gradient(auto friction, auto motion, auto equations, auto columns, auto place,
                           auto clock, auto by) {
    const Scope scope;
    auto axes = std::get<0>(friction);
    auto [velocity, measured, pressed] = motion;
    auto [by_q, by_v, slopes, factors] = equations;
    auto [stage, h] = clock;
    auto [state, explicit_v, implicit, rate] = by;
    const Index count = state.shape(1);
    const Index n = state.shape(2);
    const Index size = state.shape(3);
    Index number = axes.shape(0);
    auto reach = h * wide::rollout::IMPLICIT[stage][stage];
    auto d_at = new_array<double, 2, 0>(n, size);
    auto d_before = new_array<double, 2, 0>(n, size);
    auto here = new_array<double, 1, 0>(number);
    auto there = new_array<double, 1, 0>(number);
    auto damping = new_array<double, 2, 0>(n, n);
    auto none = new_zeros<double, 2, 0>(n, n);
    for (Index k = 0; k < count; ++k) {
        auto right = rate(stage, k);
        right = 0.0;
        shooting::arguments(stage, h, k, by, d_at, d_before);
        shooting::damped(none, axes, slopes(k), 1.0, damping);
        shooting::take_product(by_q(k), d_at, right);
        shooting::take_product(by_v(k), explicit_v(stage, k), right);
        shooting::take_product(damping, d_before, right);
        shooting::take_columns(
            columns, std::make_tuple(std::get<0>(place), std::get<1>(place), std::get<2>(place)),
            k, right);
        for (Index a = 0; a < number; ++a) {
            here(a) = friction::along(axes(a), velocity(k));
            there(a) = friction::along(axes(a), measured(k));
        }
        shooting::take_friction(friction, std::make_tuple(here, there), pressed(k),
                                std::get<3>(place), right);
        shooting::substitute(factors(k), right);
        for (Index j = 0; j < n; ++j) {
            for (Index p = 0; p < size; ++p) {
                implicit(stage, k, j, p) = d_before(j, p) + reach * right(j, p);
            }
        }
        if (stage == wide::rollout::STAGES - 1) {
            shooting::finish(h, k, state, implicit);
        }
    }
}

}  // namespace shooting
