// Integration of many motions: tiles of LANES motions run side by side through time.
//
// A step solves M(q) k = effort - bias(q, v) - F(w) three times: position and velocity in M and the
// bias are those of an explicit Runge-Kutta scheme of third order, friction F is taken at the
// velocity w of a diagonally implicit one with the same weights, whose last stage is the end of the
// step (semi-implicit schemes: Boscarino, Filbet, Russo, J. Sci. Comput. 68, 2016).
//
// With nodes 4/9 and 14/15 of the explicit scheme, third order of its coupling into friction fixes
// the implicit one, which is of second order. Of all nodes these were chosen by what follows for an
// axis by itself, however large the step: viscous friction damps it without overshoot, and dry
// friction never adds energy and brings it to rest under any load it can hold (a table of
// `test/dynamics/test_rollout_friction.py`). Schemes that are merely L-stable swing to and fro for
// ever.
//
// Coordinates beyond the joints of the tree are motors behind springs, which act at a position with
// weights of its own (SPRING): of those that give second order and keep an undamped oscillator from
// growing at any stiffness, two that err little where the step resolves it. A motion that the step
// does not resolve is damped to nothing (`test/dynamics/test_elastic_rollout.py`).

namespace rollout {

constexpr Index STAGES = 3;
constexpr double EXPLICIT[3][3] = {
    {0.0, 0.0, 0.0}, {4.0 / 9.0, 0.0, 0.0}, {-91.0 / 150.0, 77.0 / 50.0, 0.0}};
// the last row also holds the weights
constexpr double IMPLICIT[3][3] = {{1.0 / 8.0, 0.0, 0.0},
                                   {113.0 / 504.0, 83.0 / 504.0, 0.0},
                                   {1.0 / 7.0, 27.0 / 44.0, 75.0 / 308.0}};
// the stages' positions of springs from the implicit velocities; its rows add up to second order
constexpr double SPRING[3][3] = {{3.0 / 20.0, 0.0, 0.0},
                                 {1919.0 / 9450.0, 9.0 / 50.0, 0.0},
                                 {1.0 / 7.0, 27.0 / 44.0, 75.0 / 308.0}};
// why a motion stopped
constexpr Index RUNNING = 0, INDEFINITE = 1, OVERFLOW = 2;

/// Fill ``equations``: lower triangle of M, and effort minus bias, at ``state`` (q, v).
inline auto equations(auto tree, auto work, auto state, auto effort, auto scratch,
                      auto equations) {
    auto [geometry, parents, parameters, rotors] = tree;
    auto [local, turned, wrench, mass, room, rest] = scratch;
    auto [matrix, load] = equations;
    auto [q, v] = state;
    Index n = parents.shape(0);
    for (Index j = 0; j < n; ++j) {
        auto own = work(j + 1);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            own(newton_euler::INPUT, k) = q(j, k);
            own(newton_euler::INPUT + 1, k) = v(j, k);
            own(newton_euler::INPUT + 2, k) = 0.0;
        }
        newton_euler::place(work(parents(j) + 1), own, geometry(j), local);
        newton_euler::inertia(own, parameters(j), turned);
        newton_euler::inertial_force(own, parameters(j, 0), wrench);
        mass(j) = parameters(j, 0);
    }
    forward_dynamics::sum_composites(work, parents, 0, mass, matrix, wrench);
    for (Index j = 0; j < n; ++j) {
        newton_euler::project(work(j + 1).from(newton_euler::AXIS),
                              work(j + 1).from(newton_euler::FORCE), load(j));
        newton_euler::add_spring(work(j + 1), parameters(j), load(j));
    }
    for (Index j = n; j < load.shape(0); ++j) {
        matrix(j) = 0.0;
        load(j) = 0.0;
    }
    rotors::add_inertia(work, parents, rotors, room, matrix);
    rotors::add_effort(work, parents, rotors, std::make_tuple(v, rest), room, load);
    for (Index j = 0; j < load.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            load(j, k) = effort(j, k) - load(j, k);
        }
    }
}

/// Fill the sizes of the terms of friction at the load of links where `equations` put them.
///
/// ``load`` is (friction, transmission (a, n) of the axes, parameters (n, 10) of the links).
inline auto press(auto tree, auto work, auto load, auto scratch, auto pressing) {
    auto [friction, transmission, links] = load;
    auto [unused0, turned, wrench] = first<3>(scratch);
    auto [effort, pressed, first, lines] = pressing;
    auto parents = std::get<1>(tree);
    Index n = parents.shape(0);
    for (Index j = first; j < n; ++j) {
        newton_euler::inertia(work(j + 1), links(j), turned);
        newton_euler::inertial_force(work(j + 1), links(j, 0), wrench);
    }
    for (Index j = n - 1; j > first - 1; --j) {
        newton_euler::project(work(j + 1).from(newton_euler::AXIS),
                              work(j + 1).from(newton_euler::FORCE), effort(j));
        if (parents(j) >= first) {
            newton_euler::accumulate(work(parents(j) + 1), work(j + 1), newton_euler::FORCE, 6);
        }
    }
    for (Index i = 0; i < transmission.shape(0); ++i) {
        sliding_friction::along(transmission(i), effort, pressed(i));
    }
    implicit_friction::set_sizes(friction, pressed, lines);
}

/// Fill ``pivots`` with the least pivot of ``matrix``, friction left out.
inline auto least_pivots(auto matrix, auto factor, auto unused, auto pivots) {
    for (Index j = 0; j < matrix.shape(0); ++j) {
        for (Index i = 0; i < j + 1; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                factor(j, i, k) = matrix(j, i, k);
            }
        }
    }
    forward_dynamics::eliminate(factor, unused, pivots);
}

/// Fill the explicit arguments of a stage, and what precedes its implicit velocity.
inline auto stage_arguments(auto stage, auto h, auto state, auto stages) {
    auto [q, v] = state;
    auto [explicit_q, explicit_v, implicit_v, rate, unused0] = stages;
    for (Index j = 0; j < q.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            explicit_q(j, k) = q(j, k);
            explicit_v(stage, j, k) = implicit_v(stage, j, k) = v(j, k);
        }
        for (Index s = 0; s < stage; ++s) {
            auto a = h * EXPLICIT[stage][s];
            auto b = h * IMPLICIT[stage][s];
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                explicit_q(j, k) += a * explicit_v(s, j, k);
                explicit_v(stage, j, k) += a * rate(s, j, k);
                implicit_v(stage, j, k) += b * rate(s, j, k);
            }
        }
    }
}

/// Fill what precedes the position of springs in a stage.
inline auto spring_arguments(auto stage, auto h, auto q, auto stages) {
    auto [unused0, unused1, implicit_v, unused2, spring_q] = stages;
    for (Index j = 0; j < q.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            spring_q(j, k) = q(j, k);
        }
        for (Index s = 0; s < stage; ++s) {
            auto a = h * SPRING[stage][s];
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                spring_q(j, k) += a * implicit_v(s, j, k);
            }
        }
    }
}

/// Complete the implicit velocity and fill the ``rate`` of the stage.
inline auto finish_stage(auto stage, auto h, auto stages, auto change) {
    auto [unused0, unused1, implicit_v, rate, unused2] = stages;
    auto scale = 1.0 / (h * IMPLICIT[stage][stage]);
    for (Index j = 0; j < change.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            implicit_v(stage, j, k) += change(j, k);
            rate(stage, j, k) = scale * change(j, k);
        }
    }
}

/// Move the position by the weighted mean of the stages, the velocity to the last of them.
inline auto advance(auto h, auto state, auto stages) {
    auto [q, v] = state;
    auto [unused0, unused1, implicit_v, unused2, unused3] = stages;
    for (Index j = 0; j < q.shape(0); ++j) {
        for (Index s = 0; s < STAGES; ++s) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                q(j, k) += h * IMPLICIT[STAGES - 1][s] * implicit_v(s, j, k);
            }
        }
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            v(j, k) = implicit_v(STAGES - 1, j, k);
        }
    }
}

/// Advance ``state`` (q, v) of a tile by ``h``; ``pivots`` get the least of mass matrices.
inline auto step(auto tree, auto axes, auto state, auto effort, auto h, auto memory) {
    auto [links, passes, stages, equations, change, lines, pivots, scratch, pressing] = memory;
    auto friction = first<3>(axes);
    auto transmission = std::get<3>(axes);
    auto load_links = std::get<4>(axes);
    auto gears = std::get<5>(axes);
    auto [matrix, load] = equations;
    auto [factor, least, row, other] = std::get<0>(scratch);
    implicit_friction::first_speeds(friction, std::get<1>(state), lines);
    for (Index stage = 0; stage < STAGES; ++stage) {
        rollout::stage_arguments(stage, h, state, stages);
        if (load.shape(0) > std::get<1>(tree).shape(0)) {
            rollout::spring_arguments(stage, h, std::get<0>(state), stages);
        }
        auto at = std::get<0>(stages);
        auto moving = std::get<1>(stages)(stage);
        auto before = std::get<2>(stages)(stage);
        rollout::equations(tree, links, std::make_tuple(at, moving), effort, passes, equations);
        if (transmission.shape(0) > 0) {
            rollout::press(tree, links, std::make_tuple(friction, transmission, load_links),
                           passes, std::tuple_cat(pressing, std::make_tuple(lines)));
        }
        implicit_friction::explicit_friction(friction, moving,
                                             std::get<implicit_friction::SIZES>(lines), load,
                                             std::make_tuple(row, other));
        if (stage == 0) {
            rollout::least_pivots(matrix, factor, change, pivots);
        }
        auto start = std::make_tuple(before, h * IMPLICIT[stage][stage], std::get<4>(stages),
                                     h * SPRING[stage][stage]);
        implicit_friction::implicit_step(friction, equations, start, lines, scratch, change,
                                         gears);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            pivots(k) = min_of(pivots(k), least(k));
        }
        rollout::finish_stage(stage, h, stages, change);
    }
    rollout::advance(h, state, stages);
    gears::carry_gears(gears, std::get<0>(state), false);
}

/// Record motions of the tile that cannot go on, and set their state to NaN.
inline auto stop(auto state, auto pivots, auto cause, auto step, auto place) {
    auto [q, v] = state;
    auto [first, used, t] = place;
    for (Index k = 0; k < used; ++k) {
        double total = 0.0;
        for (Index j = 0; j < q.shape(0); ++j) {
            total += q(j, k) + v(j, k);
        }
        if (pivots(k) > 0.0 && std::isfinite(total)) {
            continue;
        }
        if (cause(first + k) == RUNNING) {
            cause(first + k) = pivots(k) > 0.0 || std::isnan(pivots(k)) ? OVERFLOW : INDEFINITE;
            step(first + k) = t;
        }
        for (Index j = 0; j < q.shape(0); ++j) {
            q(j, k) = v(j, k) = NaN;
        }
    }
}

/// Record where a motion is outside the joint limits for the first time.
inline auto watch_limits(auto q, auto limits, auto joint, auto step, auto place) {
    auto [first, used, t] = place;
    for (Index k = 0; k < used; ++k) {
        if (step(first + k) >= 0) {
            continue;
        }
        for (Index j = 0; j < q.shape(0); ++j) {
            if (q(j, k) < limits(0, j) || q(j, k) > limits(1, j)) {
                joint(first + k) = j;
                step(first + k) = t;
                break;
            }
        }
    }
}

/// Return the work arrays of a tile: links, passes, stages, equations, then those of a step.
inline auto memory(auto joints, auto n, auto friction, auto gravity) {
    auto links = new_zeros<double, 3, LANES>(joints + 1, newton_euler::ROWS, LANES);
    newton_euler::base(links, gravity);
    auto passes = std::make_tuple(
        new_zeros<double, 2, LANES>(12, LANES), new_zeros<double, 2, LANES>(9, LANES),
        new_zeros<double, 2, LANES>(6, LANES), new_zeros<double, 1, 0>(joints),
        new_zeros<double, 2, LANES>(rotors::ROOM, LANES), new_zeros<double, 2, LANES>(n, LANES));
    auto stages = std::make_tuple(
        new_zeros<double, 2, LANES>(n, LANES), new_zeros<double, 3, LANES>(STAGES, n, LANES),
        new_zeros<double, 3, LANES>(STAGES, n, LANES),
        new_zeros<double, 3, LANES>(STAGES, n, LANES), new_zeros<double, 2, LANES>(n, LANES));
    auto equations = std::make_tuple(new_zeros<double, 3, LANES>(n, n, LANES),
                                     new_zeros<double, 2, LANES>(n, LANES));
    auto change = new_zeros<double, 2, LANES>(n, LANES);
    Index axes = std::get<0>(friction).shape(0);
    auto pivots = new_zeros<double, 1, LANES>(LANES);
    auto lines = std::make_tuple(
        new_zeros<double, 2, LANES>(axes, LANES), new_zeros<double, 2, LANES>(axes, LANES),
        new_zeros<double, 2, LANES>(axes, LANES), new_zeros<double, 2, LANES>(axes, LANES),
        new_zeros<double, 2, LANES>(std::get<2>(friction).shape(0), LANES),
        new_zeros<double, 2, LANES>(1, LANES));
    auto scratch = std::make_tuple(
        std::make_tuple(new_zeros<double, 3, LANES>(n, n, LANES),
                        new_zeros<double, 1, LANES>(LANES), new_zeros<double, 1, LANES>(LANES),
                        new_zeros<double, 1, LANES>(LANES)),
        new_zeros<double, 1, LANES>(LANES), new_zeros<double, 1, LANES>(LANES),
        new_zeros<double, 1, LANES>(LANES));
    auto pressing = std::make_tuple(new_zeros<double, 2, LANES>(joints, LANES),
                                    new_zeros<double, 2, LANES>(axes, LANES),
                                    forward_dynamics::first_loading(friction));
    implicit_friction::set_sizes(friction, std::get<1>(pressing), lines);
    return std::make_tuple(links, passes, stages, equations, change, lines, pivots, scratch,
                           pressing);
}

/// Fill a tile with the motions from ``place`` on; lanes beyond the last one rest at zero.
inline auto take_start(auto start, auto place, auto state, auto held) {
    auto [q, v] = state;
    auto [first, used] = place;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        for (Index j = 0; j < q.shape(0); ++j) {
            q(j, k) = k < used ? std::get<0>(start)(first + k, j) : 0.0;
            v(j, k) = k < used ? std::get<1>(start)(first + k, j) : 0.0;
            held(j, k) = 0.0;
        }
    }
}

/// Put the lanes of ``rows`` (m, LANES) that are used into ``out`` (K, m).
inline auto put(auto rows, auto place, auto out) {
    auto [first, used] = place;
    for (Index k = 0; k < used; ++k) {
        for (Index j = 0; j < rows.shape(0); ++j) {
            out(first + k, j) = rows(j, k);
        }
    }
}

/// Integrate the motions of `rollout`, tile by tile; ``memory`` as of `memory`.
inline auto motions(auto model, auto start, auto effort, auto clock, auto results, auto memory) {
    auto [tree, friction, limits] = model;
    auto motion = std::get<0>(results);
    auto [limit_step, limit_joint, stop_step, cause] = std::get<1>(results);
    auto [h, steps] = clock;
    const Index count = effort.shape(0);
    const Index samples = effort.shape(1);
    const Index n = effort.shape(2);
    auto [state, held, step] = memory;
    auto [q, v] = state;
    auto gears = std::get<5>(friction);
    for (Index first = 0; first < count; first += LANES) {
        Index used = min_of(LANES, count - first);
        rollout::take_start(start, std::make_tuple(first, used), state, held);
        gears::take_gears(gears, q, std::get<2>(motion), std::make_tuple(first, used));
        for (Index t = 0; t < samples; ++t) {
            for (Index k = 0; k < used; ++k) {
                for (Index j = 0; j < n; ++j) {
                    held(j, k) = effort(first + k, t, j);
                }
            }
            for (Index round1 = 0; round1 < steps; ++round1) {
                rollout::step(tree, friction, state, held, h, step);
                rollout::stop(state, std::get<6>(step), cause, stop_step,
                              std::make_tuple(first, used, t));
                rollout::watch_limits(q, limits, limit_joint, limit_step,
                                      std::make_tuple(first, used, t));
            }
            rollout::put(q, std::make_tuple(first, used), std::get<0>(motion).column(t));
            rollout::put(v, std::make_tuple(first, used), std::get<1>(motion).column(t));
        }
        gears::put_gears(gears, std::make_tuple(first, used), std::get<2>(motion));
    }
}

/// Do what `rollout` does.
inline auto integrate(auto tree, auto gravity, auto friction, auto limits, auto start, auto effort,
                      auto clock, auto motion, auto events) {
    const Scope scope;
    Index n = effort.shape(2);
    auto memory =
        std::make_tuple(std::make_tuple(new_zeros<double, 2, LANES>(n, LANES),
                                        new_zeros<double, 2, LANES>(n, LANES)),
                        new_zeros<double, 2, LANES>(n, LANES),
                        rollout::memory(std::get<1>(tree).shape(0), n, friction, gravity));
    rollout::motions(std::make_tuple(tree, friction, limits), start, effort, clock,
                     std::make_tuple(motion, events), memory);
}

/// Integrate K motions of T samples.
///
/// ``tree`` (geometry, parents, parameters (joints, 10), rotors as in `rotors`) with n
/// coordinates, those beyond the joints move by their rotors alone; ``friction``: axes (m, n),
/// straight (m, 2), terms of steady sliding (t, COLUMNS) by axis, transmission (m, joints) and
/// parameters (joints, 10) of the links that load them, or (0, ...), `gears` or None; ``limits``
/// (2, n); ``start`` q, v (K, n); ``effort`` (K, T, n), held for ``clock`` (internal step [s],
/// internal steps per sample). Fills ``motion`` q, v (K, T, n), moves its states (K, k) of gears
/// on, and fills ``events`` (K,) each: sample and joint of the first excess of a limit, sample and
/// cause of a stop.
inline auto rollout(auto tree, auto gravity, auto friction, auto limits, auto start, auto effort,
                    auto clock, auto motion, auto events) {
    rollout::integrate(tree, gravity, friction, limits, start, effort, clock, motion, events);
}

}  // namespace rollout
