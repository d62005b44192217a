// Inverse dynamics of links, rotors and friction; work arrays as of `newton_euler`.

namespace inverse_dynamics {

/// Add to ``torque`` (a, LANES) what ``grows`` with the ``effort`` (n, LANES) of the links.
inline auto press(auto friction, auto effort, auto row, auto grows, auto torque) {
    auto transmission = std::get<3>(friction);
    for (Index i = 0; i < transmission.shape(0); ++i) {
        sliding_friction::along(transmission(i), effort, row);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            torque(i, k) += grows(i, k) * std::abs(row(k));
        }
    }
}

/// Return the work arrays of `move`.
inline auto inverse_memory(auto tree, auto friction) {
    Index n = std::get<1>(tree).shape(0);
    Index axes = std::get<0>(friction).shape(0);
    auto work = new_zeros<double, 3, LANES>(n + 1, newton_euler::ROWS, LANES);
    newton_euler::base(work, std::get<2>(tree));
    return std::make_tuple(
        work, new_array<double, 2, LANES>(rotors::ROOM, LANES),
        std::make_tuple(new_zeros<double, 2, LANES>(n, LANES),
                        new_zeros<double, 2, LANES>(n, LANES),
                        new_array<double, 2, LANES>(n, LANES)),
        std::make_tuple(new_array<double, 2, LANES>(axes, LANES),
                        new_array<double, 2, LANES>(axes, LANES)),
        std::make_tuple(new_array<double, 1, LANES>(LANES), new_array<double, 1, LANES>(LANES)));
}

/// Fill the results of `inverse_dynamics`, tile by tile.
inline auto move(auto model, auto inputs, auto out, auto memory) {
    auto tree = std::get<0>(model);
    auto [parameters, rotors] = std::get<1>(model);
    auto friction = std::get<2>(model);
    auto work = std::get<0>(memory);
    auto room = std::get<1>(memory);
    auto [v, a, load] = std::get<2>(memory);
    auto [torque, grows] = std::get<3>(memory);
    auto row = std::get<4>(memory);
    auto parents = std::get<1>(tree);
    for (Index first = 0; first < out.shape(0); first += LANES) {
        Index used = newton_euler::forward_pass(work, parents, std::get<0>(tree), inputs, first);
        for (Index j = 0; j < v.shape(0); ++j) {
            for (Index k = 0; k < used; ++k) {
                v(j, k) = std::get<1>(inputs)(first + k, j);
                a(j, k) = std::get<2>(inputs)(first + k, j);
            }
        }
        sliding_friction::sliding_parts(friction, v, row, torque, grows);
        if (std::get<3>(friction).shape(0) > 0) {
            newton_euler::effort(work, parents, std::get<4>(friction), load);
            inverse_dynamics::press(friction, load, std::get<0>(row), grows, torque);
        }
        newton_euler::effort(work, parents, parameters, load);
        rotors::reflected(std::get<0>(rotors), a, load);
        rotors::add_effort(work, parents, rotors, std::make_tuple(v, a), room, load);
        sliding_friction::add_torque(std::get<0>(friction), torque, load);
        for (Index j = 0; j < load.shape(0); ++j) {
            for (Index k = 0; k < used; ++k) {
                out(first + k, j) = load(j, k);
            }
        }
    }
}

/// Do what `inverse_dynamics` does.
inline auto efforts(auto tree, auto links, auto friction, auto inputs, auto out) {
    auto memory = inverse_dynamics::inverse_memory(tree, friction);
    inverse_dynamics::move(std::make_tuple(tree, links, friction), inputs, out, memory);
}

/// Efforts ``out`` (K, n) from ``inputs`` (q, qd, qdd), each (K, n).
///
/// ``tree``, ``links`` and ``friction`` as of `forward_dynamics`, without coordinates beyond the
/// joints.
inline auto inverse_dynamics(auto tree, auto links, auto friction, auto inputs, auto out) {
    inverse_dynamics::efforts(tree, links, friction, inputs, out);
}

}  // namespace inverse_dynamics
