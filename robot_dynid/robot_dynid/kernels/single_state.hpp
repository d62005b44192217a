// Recursions of one state at a time: the passes of the tiles at a width of one sample.
//
// Work arrays are (n + 1, ROWS, 1), as of `newton_euler`.

namespace single_state {

// most states of a call that are faster one by one than as a tile
constexpr Index FEW = 6;

/// Fill pose and motion of all links in ``work``; ``q``, ``qd``, ``qdd`` (n,).
inline auto place(auto tree, auto q, auto qd, auto qdd, auto work) {
    const Scope scope;
    auto [geometry, parents, gravity] = tree;
    auto local = new_array<double, 2, 1>(12, 1);
    narrow::newton_euler::base(work, gravity);
    for (Index j = 0; j < parents.shape(0); ++j) {
        auto own = work(j + 1);
        own(narrow::newton_euler::INPUT, 0) = q(j);
        own(narrow::newton_euler::INPUT + 1, 0) = qd(j);
        own(narrow::newton_euler::INPUT + 2, 0) = qdd(j);
        narrow::newton_euler::place(work(parents(j) + 1), own, geometry(j), local);
    }
}

/// Fill ``out`` (n,) with the effort of the state that was placed.
inline auto effort_of(auto parents, auto parameters, auto work, auto out) {
    narrow::newton_euler::effort(work, parents, parameters, out.as_column());
}

/// Fill ``out`` (6, 1) with the motion cross product of the parent's twist and AXIS.
inline auto screw_rate(auto parent, auto own, auto out) {
    auto ax = own(narrow::newton_euler::AXIS, 0);
    auto ay = own(narrow::newton_euler::AXIS + 1, 0);
    auto az = own(narrow::newton_euler::AXIS + 2, 0);
    auto bx = own(narrow::newton_euler::AXIS + 3, 0);
    auto by = own(narrow::newton_euler::AXIS + 4, 0);
    auto bz = own(narrow::newton_euler::AXIS + 5, 0);
    auto wx = parent(narrow::newton_euler::VEL, 0);
    auto wy = parent(narrow::newton_euler::VEL + 1, 0);
    auto wz = parent(narrow::newton_euler::VEL + 2, 0);
    auto vx = parent(narrow::newton_euler::VEL + 3, 0);
    auto vy = parent(narrow::newton_euler::VEL + 4, 0);
    auto vz = parent(narrow::newton_euler::VEL + 5, 0);
    out(0, 0) = wy * az - wz * ay;
    out(1, 0) = wz * ax - wx * az;
    out(2, 0) = wx * ay - wy * ax;
    out(3, 0) = wy * bz - wz * by + vy * az - vz * ay;
    out(4, 0) = wz * bx - wx * bz + vz * ax - vx * az;
    out(5, 0) = wx * by - wy * bx + vx * ay - vy * ax;
}

/// Fill ``out`` and ``rate`` (n,) with M(q) qd and dL/dq of the state that was placed.
///
/// With the momentum H_i of all links beyond joint i, moving that joint turns them past the twist
/// v of its parent, so dT/dq_i = H_i . (v x s_i); the weight adds its power along the screw s_i.
inline auto momentum_of(auto tree, auto parameters, auto work, auto out, auto rate) {
    const Scope scope;
    auto [unused0, parents, gravity] = tree;
    Index n = parents.shape(0);
    auto turned = new_array<double, 2, 1>(9, 1);
    auto axis = new_array<double, 2, 1>(6, 1);
    auto weight = new_array<double, 2, 1>(6, 1);
    auto power = new_array<double, 1, 1>(1);
    auto mass = column_of(parameters, 0);
    auto gx = gravity(0);
    auto gy = gravity(1);
    auto gz = gravity(2);
    for (Index j = 0; j < n; ++j) {
        narrow::newton_euler::inertia(work(j + 1), parameters(j), turned);
        narrow::newton_euler::wrench(work(j + 1), narrow::newton_euler::VEL, mass(j),
                                     work(j + 1).from(narrow::newton_euler::FORCE));
    }
    for (Index j = n - 1; j > -1; --j) {
        auto own = work(j + 1);
        auto parent = work(parents(j) + 1);
        narrow::newton_euler::project(own.from(narrow::newton_euler::AXIS),
                                      own.from(narrow::newton_euler::FORCE), power);
        out(j) = power(0);
        single_state::screw_rate(parent, own, axis);
        narrow::newton_euler::project(axis, own.from(narrow::newton_euler::FORCE), power);
        rate(j) = power(0);
        auto hx = own(narrow::newton_euler::MC, 0);
        auto hy = own(narrow::newton_euler::MC + 1, 0);
        auto hz = own(narrow::newton_euler::MC + 2, 0);
        weight(0, 0) = mass(j) * gx;
        weight(1, 0) = mass(j) * gy;
        weight(2, 0) = mass(j) * gz;
        weight(3, 0) = hy * gz - hz * gy;
        weight(4, 0) = hz * gx - hx * gz;
        weight(5, 0) = hx * gy - hy * gx;
        narrow::newton_euler::project(own.from(narrow::newton_euler::AXIS), weight, power);
        rate(j) += power(0);
        power(0) = 0.0;
        narrow::newton_euler::add_spring(own, parameters(j), power);
        rate(j) -= power(0);
        if (parents(j) >= 0) {
            mass(parents(j)) += mass(j);
            narrow::newton_euler::accumulate(parent, own, narrow::newton_euler::MC, 3);
            narrow::newton_euler::accumulate(parent, own, narrow::newton_euler::FORCE, 6);
        }
    }
}

/// Add to ``out`` (n,) the effort of rotors, see `rotors`.
///
/// ``motion`` are qd, qdd (n,) of the state that was placed.
inline auto add_rotor_effort(auto parents, auto rotors, auto motion, auto work, auto out) {
    const Scope scope;
    auto room = new_array<double, 2, 1>(narrow::rotors::ROOM, 1);
    auto v = std::get<0>(motion).as_column();
    auto a = std::get<1>(motion).as_column();
    auto load = out.as_column();
    narrow::rotors::reflected(std::get<0>(rotors), a, load);
    narrow::rotors::add_effort(work, parents, rotors, std::make_tuple(v, a), room, load);
}

/// Add what rotors have to M(q) qd and dL/dq, each (n,), of the state that was placed.
///
/// As `momentum_of`, with the momentum that the spin of a rotor gives to its link.
inline auto add_rotor_momentum(auto parents, auto rotors, auto qd, auto work, auto results) {
    const Scope scope;
    auto [inertia, carriers, axes, motions] = rotors;
    auto [out, rate] = results;
    Index n = out.shape(0);
    auto room = new_array<double, 2, 1>(narrow::rotors::ROOM, 1);
    auto axis = new_array<double, 2, 1>(6, 1);
    auto v = qd.as_column();
    narrow::rotors::reflected(inertia, v, out.as_column());
    for (Index r = 0; r < carriers.shape(0); ++r) {
        auto own = work(carriers(r) + 1);
        narrow::rotors::line(own, axes(r), room);
        narrow::rotors::spin(motions(r), v, v, room);
        narrow::rotors::along(own.from(narrow::newton_euler::VEL), room, narrow::rotors::LINE);
        Index j;
        for (Index j = 0; j < n; ++j) {
            out(j) += motions(r, j) * room(narrow::rotors::SHARE, 0);
        }
        j = carriers(r);
        while (j >= 0) {
            narrow::rotors::along(work(j + 1).from(narrow::newton_euler::AXIS), room,
                                  narrow::rotors::LINE);
            out(j) += room(narrow::rotors::SPIN, 0) * room(narrow::rotors::SHARE, 0);
            single_state::screw_rate(work(parents(j) + 1), work(j + 1), axis);
            narrow::rotors::along(axis, room, narrow::rotors::LINE);
            rate(j) += room(narrow::rotors::SPIN, 0) * room(narrow::rotors::SHARE, 0);
            j = parents(j);
        }
    }
}

/// Fill ``results`` with M(q) qd and dL/dq, each (N, n); ``inputs`` are q, qd (N, n).
///
/// ``links`` are their parameters (n, 10) and rotors.
inline auto momentum(auto tree, auto links, auto inputs, auto results) {
    const Scope scope;
    auto [q, qd] = inputs;
    auto [out, rate] = results;
    auto [parameters, rotors] = links;
    Index n = q.shape(1);
    auto work = new_zeros<double, 3, 1>(n + 1, narrow::newton_euler::ROWS, 1);
    auto still = new_zeros<double, 1, 0>(n);
    for (Index k = 0; k < q.shape(0); ++k) {
        single_state::place(tree, q(k), qd(k), still, work);
        single_state::momentum_of(tree, parameters, work, out(k), rate(k));
        single_state::add_rotor_momentum(std::get<1>(tree), rotors, qd(k), work,
                                         std::make_tuple(out(k), rate(k)));
    }
}

/// Fill ``out`` and ``verdicts`` as `forward_dynamics.forward_dynamics`, state by state.
inline auto forward_dynamics(auto tree, auto links, auto friction, auto inputs, auto out,
                             auto verdicts) {
    narrow::forward_dynamics::accelerations(tree, links, friction, inputs, out, verdicts);
}

/// Fill ``out`` as `inverse_dynamics.inverse_dynamics`, state by state.
inline auto inverse_dynamics(auto tree, auto links, auto friction, auto inputs, auto out) {
    narrow::inverse_dynamics::efforts(tree, links, friction, inputs, out);
}

/// Integrate motions as `rollout.rollout`, motion by motion.
inline auto rollout(auto tree, auto gravity, auto friction, auto limits, auto start, auto effort,
                    auto clock, auto motion, auto events) {
    narrow::rollout::integrate(tree, gravity, friction, limits, start, effort, clock, motion,
                               events);
}

}  // namespace single_state
