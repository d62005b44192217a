// Forward kinematics of many configurations.

namespace kinematics {

/// Fill ``rotations`` (N, n, 3, 3) and ``origins`` (N, n, 3) at positions ``q`` (N, n).
inline auto link_poses(auto parents, auto geometry, auto q, auto rotations, auto origins) {
    const Scope scope;
    Index n = parents.shape(0);
    auto work = new_zeros<double, 3, LANES>(n + 1, newton_euler::ROWS, LANES);
    auto local = new_array<double, 2, LANES>(12, LANES);
    for (Index i = 0; i < 3; ++i) {
        work(0, newton_euler::ROT + 4 * i) = 1.0;
    }
    for (Index first = 0; first < q.shape(0); first += LANES) {
        Index used = min_of(LANES, q.shape(0) - first);
        for (Index j = 0; j < n; ++j) {
            auto own = work(j + 1);
            for (Index k = 0; k < used; ++k) {
                own(newton_euler::INPUT, k) = q(first + k, j);
            }
            newton_euler::sine_cosine(own);
            newton_euler::pose(work(parents(j) + 1), own, geometry(j), local);
            for (Index k = 0; k < used; ++k) {
                for (Index i = 0; i < 3; ++i) {
                    origins(first + k, j, i) = own(newton_euler::POS + i, k);
                    for (Index h = 0; h < 3; ++h) {
                        rotations(first + k, j, i, h) = own(newton_euler::ROT + 3 * i + h, k);
                    }
                }
            }
        }
    }
}

}  // namespace kinematics
