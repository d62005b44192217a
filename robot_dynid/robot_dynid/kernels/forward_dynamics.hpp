// Mass matrix and forward dynamics; work arrays as of `newton_euler`.

namespace forward_dynamics {

// verdict on a state that no acceleration solves: friction that grows faster than its load falls
constexpr double UNSETTLED = -INFINITY;

/// Composite bodies: lower triangle of ``matrix`` (n, n, LANES), and bias torque in place.
///
/// Rows from the link ``first`` on. Sums MC, SIG, FORCE and MOMENT towards it, so it is called
/// once per tile.
inline auto sum_composites(auto work, auto parents, auto first, auto mass, auto matrix,
                           auto wrench) {
    for (Index j = parents.shape(0) - 1; j > first - 1; --j) {
        auto own = work(j + 1);
        newton_euler::wrench(own, newton_euler::AXIS, mass(j), wrench);
        Index i;
        for (Index i = 0; i < j; ++i) {
            matrix(j, i) = 0.0;
        }
        i = j;
        while (i >= 0) {
            newton_euler::project(work(i + 1).from(newton_euler::AXIS), wrench, matrix(j, i));
            i = parents(i);
        }
        if (parents(j) >= first) {
            newton_euler::accumulate(work(parents(j) + 1), own, newton_euler::MC, 9);
            newton_euler::accumulate(work(parents(j) + 1), own, newton_euler::FORCE, 6);
            mass(parents(j)) += mass(j);
        }
    }
}

/// Composite-rigid-body algorithm: ``out`` (N, n, n) from positions ``q`` (N, n).
inline auto mass_matrix(auto geometry, auto parents, auto gravity, auto parameters, auto q,
                        auto out) {
    const Scope scope;
    Index n = parents.shape(0);
    auto work = new_zeros<double, 3, LANES>(n + 1, newton_euler::ROWS, LANES);
    auto turned = new_array<double, 2, LANES>(9, LANES);
    auto matrix = new_zeros<double, 3, LANES>(n, n, LANES);
    auto wrench = new_array<double, 2, LANES>(6, LANES);
    newton_euler::base(work, gravity);
    for (Index first = 0; first < out.shape(0); first += LANES) {
        Index used =
            newton_euler::forward_pass(work, parents, geometry, std::make_tuple(q, q, q), first);
        for (Index j = 0; j < n; ++j) {
            newton_euler::inertia(work(j + 1), parameters(j), turned);
        }
        forward_dynamics::sum_composites(work, parents, 0, column_of(parameters, 0), matrix,
                                         wrench);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < j + 1; ++i) {
                for (Index k = 0; k < used; ++k) {
                    out(first + k, i, j) = out(first + k, j, i) = matrix(j, i, k);
                }
            }
        }
    }
}

/// Factorise L D L^T in place, L^-1 times ``right`` (n, LANES); ``pivots`` gets the least D.
///
/// The diagonal then holds the reciprocals of D.
inline auto eliminate(auto matrix, auto right, auto pivots) {
    for (Index j = 0; j < right.shape(0); ++j) {
        for (Index i = 0; i < j; ++i) {
            for (Index h = 0; h < i; ++h) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    matrix(j, i, k) -= matrix(j, h, k) * matrix(i, h, k);
                }
            }
        }
        for (Index i = 0; i < j; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                auto scaled = matrix(j, i, k) * matrix(i, i, k);
                matrix(j, j, k) -= scaled * matrix(j, i, k);
                matrix(j, i, k) = scaled;
                right(j, k) -= scaled * right(i, k);
            }
        }
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            pivots(k) = j == 0 ? matrix(j, j, k) : min_of(pivots(k), matrix(j, j, k));
            matrix(j, j, k) = 1.0 / matrix(j, j, k);
        }
    }
}

/// Begin a solution with the ``factor`` of `eliminate`: L^-1 times ``right`` (n, LANES).
inline auto forward_substitute(auto factor, auto right) {
    for (Index j = 0; j < right.shape(0); ++j) {
        for (Index i = 0; i < j; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                right(j, k) -= factor(j, i, k) * right(i, k);
            }
        }
    }
}

/// Finish the solution that `eliminate` began.
inline auto substitute(auto matrix, auto right) {
    Index n = right.shape(0);
    for (Index j = n - 1; j > -1; --j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            right(j, k) *= matrix(j, j, k);
        }
        for (Index i = j + 1; i < n; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                right(j, k) -= matrix(i, j, k) * right(i, k);
            }
        }
    }
}

/// Fill ``equations``, the lower triangle of M and the bias (n, LANES), of placed links.
///
/// Only those from the link ``first`` on are looked at, and only their rows are filled.
inline auto links(auto work, auto tree, auto parameters, auto first, auto scratch,
                  auto equations) {
    auto [turned, wrench, mass] = scratch;
    auto [matrix, bias] = equations;
    auto parents = std::get<1>(tree);
    for (Index j = first; j < parents.shape(0); ++j) {
        newton_euler::inertia(work(j + 1), parameters(j), turned);
        newton_euler::inertial_force(work(j + 1), parameters(j, 0), wrench);
        mass(j) = parameters(j, 0);
    }
    forward_dynamics::sum_composites(work, parents, first, mass, matrix, wrench);
    for (Index j = first; j < parents.shape(0); ++j) {
        newton_euler::project(work(j + 1).from(newton_euler::AXIS),
                              work(j + 1).from(newton_euler::FORCE), bias(j));
        newton_euler::add_spring(work(j + 1), parameters(j), bias(j));
    }
}

/// Return the indices of the axes whose friction grows with their load.
inline auto loaded_axes(auto friction) {
    auto terms = std::get<2>(friction);
    auto loaded = new_zeros<double, 1, 0>(std::get<0>(friction).shape(0));
    for (Index e = 0; e < terms.shape(0); ++e) {
        if (terms(e, friction::LOAD) != 0.0) {
            loaded(Index(terms(e, friction::ROW))) = 1.0;
        }
    }
    return nonzero(loaded);
}

/// Return the first link whose effort loads an axis with friction that grows.
inline auto first_loading(auto friction) {
    auto terms = std::get<2>(friction);
    auto transmission = std::get<3>(friction);
    Index first = std::get<4>(friction).shape(0);
    for (Index e = 0; e < terms.shape(0); ++e) {
        for (Index j = 0; j < first; ++j) {
            if (terms(e, friction::LOAD) != 0.0 &&
                transmission(Index(terms(e, friction::ROW)), j) != 0.0) {
                first = min_of(first, j);
            }
        }
    }
    return first;
}

/// Fill the ``loads`` of the loaded axes: rows (m, n, LANES) T M and T h (m, LANES).
inline auto transmit(auto transmission, auto loaded, auto links, auto loads) {
    auto [matrix, bias] = links;
    auto [rows, still] = loads;
    Index n = bias.shape(0);
    rows = 0.0;
    still = 0.0;
    for (Index m = 0; m < loaded.shape(0); ++m) {
        for (Index j = 0; j < n; ++j) {
            auto share = transmission(loaded(m), j);
            if (share == 0.0) {
                continue;
            }
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                still(m, k) += share * bias(j, k);
            }
            for (Index i = 0; i < n; ++i) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    rows(m, i, k) += share * (i <= j ? matrix(j, i, k) : matrix(i, j, k));
                }
            }
        }
    }
}

/// Add what the axis of ``rows`` (n, LANES) transmits under accelerations ``a`` to ``load``.
inline auto add_load(auto rows, auto a, auto load) {
    for (Index j = 0; j < rows.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            load(k) += rows(j, k) * a(j, k);
        }
    }
}

/// Turn accelerations ``a`` (N, LANES) without the friction that grows into those with it.
///
/// ``factor`` is that of `eliminate`; ``memory`` as of `load_memory`, with ``grows`` filled.
inline auto under_load(auto friction, auto factor, auto used, auto loads, auto memory, auto a) {
    auto axes = std::get<0>(friction);
    auto [rows, p] = loads;
    auto [loaded, grows, pushed, shares, scratch, settled] = memory;
    for (Index m = 0; m < loaded.shape(0); ++m) {
        Index own = loaded(m);
        for (Index j = 0; j < a.shape(0); ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                pushed(m, j, k) = axes(own, j) * grows(own, k);
            }
        }
        forward_dynamics::forward_substitute(factor, pushed(m));
        forward_dynamics::substitute(factor, pushed(m));
        forward_dynamics::add_load(rows(m), a, p(m));
    }
    for (Index m = 0; m < loaded.shape(0); ++m) {
        for (Index i = 0; i < loaded.shape(0); ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                shares(m, i, k) = 0.0;
            }
            forward_dynamics::add_load(rows(m), pushed(i), shares(m, i));
        }
    }
    sliding_friction::settled_loads(shares, used, p, scratch, settled);
    for (Index m = 0; m < loaded.shape(0); ++m) {
        for (Index j = 0; j < a.shape(0); ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                a(j, k) -= pushed(m, j, k) * std::abs(p(m, k));
            }
        }
    }
}

/// Return the work arrays of `under_load` for ``count`` coordinates.
inline auto load_memory(auto friction, auto count) {
    Index axes = std::get<0>(friction).shape(0);
    auto loaded = forward_dynamics::loaded_axes(friction);
    Index own = loaded.shape(0);
    auto scratch =
        std::make_tuple(new_array<double, 3, LANES>(own, own, LANES),
                        new_array<double, 2, LANES>(own, LANES), new_array<double, 2, 0>(own, own),
                        new_array<double, 1, 0>(own), new_array<double, 1, 0>(own));
    return std::make_tuple(loaded, new_zeros<double, 2, LANES>(axes, LANES),
                           new_array<double, 3, LANES>(own, count, LANES),
                           new_array<double, 3, LANES>(own, own, LANES), scratch,
                           new_ones<double, 1, LANES>(LANES));
}

/// Add what rotors do to ``equations`` of links, and those of motors apart from their links.
inline auto rotors(auto work, auto parents, auto rotors, auto scratch, auto equations) {
    auto [room, v, rest] = scratch;
    auto [matrix, bias] = equations;
    for (Index j = parents.shape(0); j < bias.shape(0); ++j) {
        matrix(j) = 0.0;
        bias(j) = 0.0;
    }
    rotors::add_effort(work, parents, rotors, std::make_tuple(v, rest), room, bias);
    rotors::add_inertia(work, parents, rotors, room, matrix);
}

/// Return the work arrays of `accelerate` for ``count`` coordinates.
inline auto forward_memory(auto tree, auto friction, auto count) {
    Index n = std::get<1>(tree).shape(0);
    Index axes = std::get<0>(friction).shape(0);
    auto work = new_zeros<double, 3, LANES>(n + 1, newton_euler::ROWS, LANES);
    newton_euler::base(work, std::get<2>(tree));
    auto loading = forward_dynamics::load_memory(friction, count);
    Index own = std::get<0>(loading).shape(0);
    return std::make_tuple(
        work,
        std::make_tuple(new_array<double, 2, LANES>(9, LANES),
                        new_array<double, 2, LANES>(6, LANES), new_array<double, 1, 0>(n)),
        std::make_tuple(new_zeros<double, 3, LANES>(count, count, LANES),
                        new_array<double, 2, LANES>(count, LANES)),
        new_array<double, 1, LANES>(LANES),
        std::make_tuple(new_array<double, 2, LANES>(rotors::ROOM, LANES),
                        new_zeros<double, 2, LANES>(count, LANES),
                        new_zeros<double, 2, LANES>(count, LANES)),
        std::make_tuple(new_array<double, 2, LANES>(axes, LANES),
                        std::make_tuple(new_array<double, 1, LANES>(LANES),
                                        new_array<double, 1, LANES>(LANES))),
        loading,
        std::make_tuple(new_array<double, 3, LANES>(own, n, LANES),
                        new_array<double, 2, LANES>(own, LANES)));
}

/// Turn the bias ``right`` (N, LANES) into effort minus bias.
inline auto net_effort(auto effort, auto first, auto used, auto right) {
    for (Index j = 0; j < right.shape(0); ++j) {
        for (Index k = 0; k < used; ++k) {
            right(j, k) = effort(first + k, j) - right(j, k);
        }
    }
}

/// Fill the results of `forward_dynamics`, tile by tile.
inline auto accelerate(auto model, auto inputs, auto results, auto memory) {
    auto tree = std::get<0>(model);
    auto [parameters, rotors] = std::get<1>(model);
    auto friction = std::get<2>(model);
    auto [q, qd, effort, still] = inputs;
    auto [out, verdicts] = results;
    auto work = std::get<0>(memory);
    auto scratch = std::get<1>(memory);
    auto equations = std::get<2>(memory);
    auto least = std::get<3>(memory);
    auto turning = std::get<4>(memory);
    auto [torque, row] = std::get<5>(memory);
    auto loading = std::get<6>(memory);
    auto loads = std::get<7>(memory);
    auto [matrix, right] = equations;
    auto v = std::get<1>(turning);
    auto loaded = std::get<0>(loading);
    auto settled = std::get<5>(loading);
    auto parents = std::get<1>(tree);
    Index start = forward_dynamics::first_loading(friction);
    for (Index first = 0; first < out.shape(0); first += LANES) {
        Index used = newton_euler::forward_pass(work, parents, std::get<0>(tree),
                                                std::make_tuple(q, qd, still), first);
        for (Index j = 0; j < v.shape(0); ++j) {
            for (Index k = 0; k < used; ++k) {
                v(j, k) = qd(first + k, j);
            }
        }
        sliding_friction::sliding_parts(friction, v, row, torque, std::get<1>(loading));
        if (loaded.shape(0) > 0) {
            forward_dynamics::links(work, tree, std::get<4>(friction), start, scratch, equations);
            forward_dynamics::transmit(std::get<3>(friction), loaded,
                                       std::make_tuple(matrix, right.to(parents.shape(0))), loads);
        }
        forward_dynamics::links(work, tree, parameters, 0, scratch, equations);
        forward_dynamics::rotors(work, parents, rotors, turning, equations);
        sliding_friction::add_torque(std::get<0>(friction), torque, right);
        forward_dynamics::net_effort(effort, first, used, right);
        forward_dynamics::eliminate(matrix, right, least);
        forward_dynamics::substitute(matrix, right);
        if (loaded.shape(0) > 0) {
            forward_dynamics::under_load(friction, matrix, used, loads, loading, right);
        }
        for (Index k = 0; k < used; ++k) {
            verdicts(first + k) = settled(k) > 0.0 ? least(k) : UNSETTLED;
            for (Index j = 0; j < right.shape(0); ++j) {
                out(first + k, j) = right(j, k);
            }
        }
    }
}

/// Do what `forward_dynamics` does.
inline auto accelerations(auto tree, auto links, auto friction, auto inputs, auto out,
                          auto verdicts) {
    const Scope scope;
    auto [q, qd, effort] = inputs;
    auto still = new_zeros_like(q);
    auto memory = forward_dynamics::forward_memory(tree, friction, out.shape(1));
    forward_dynamics::accelerate(std::make_tuple(tree, links, friction),
                                 std::make_tuple(q, qd, effort, still),
                                 std::make_tuple(out, verdicts), memory);
}

/// Accelerations ``out`` (K, N) from ``inputs`` (q, qd, effort), each (K, N).
///
/// ``tree``: geometry, parents, gravity; ``links``: their parameters (n, 10) and rotors, as of
/// `rotors`, of N coordinates, those beyond the joints move by their rotors alone;
/// ``friction``: axes (a, N), straight (a, ..), terms (t, COLUMNS) of steady sliding by axis,
/// transmission (a, n) and parameters (n, 10) of the links that load them, or (0, ...).
/// ``verdicts`` (K,) receives the least pivot of the factorisation of the mass matrix, which is
/// positive exactly where that is definite; UNSETTLED where friction under load leaves no
/// acceleration.
inline auto forward_dynamics(auto tree, auto links, auto friction, auto inputs, auto out,
                             auto verdicts) {
    forward_dynamics::accelerations(tree, links, friction, inputs, out, verdicts);
}

}  // namespace forward_dynamics
