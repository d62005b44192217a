// Recursive Newton-Euler algorithm for tiles of samples, and the passes of the other recursions.
//
// Samples are worked off in tiles of ``LANES``: every quantity of a joint is a row of a work array
// with one column per sample of the tile, so the innermost loops run over contiguous memory and
// become vector instructions. All motion is expressed about the base origin in base coordinates: the
// recursions then need no transforms between links, trees cost the same as chains, and composite
// inertias are plain sums (the recursions are those of Featherstone, Rigid Body Dynamics Algorithms,
// 2008, chapters 5 and 6).
//
// Second moments ``SIG`` (integral of r r^T dm) stand in for rotational inertias: they transform like
// the pseudo-inertia, and ``I x = trace(SIG) x - SIG x``.

namespace newton_euler {

// first row of each quantity in the work array of one joint
constexpr Index ROT = 0, POS = 9, AXIS = 12, VEL = 18, ACC = 24, MC = 30, SIG = 33, FORCE = 39,
                MOMENT = 42;
constexpr Index INPUT = 45, TRIG = 48, ROWS = 50;
// first column of the spring of a joint, behind the ten of its link, where it has one
constexpr Index SPRING = 10;
// first column of each constant of a joint: R(q) = A + B cos q + C sin q, p(q) = P + D q
constexpr Index G_A = 0, G_B = 9, G_C = 18, G_P = 27, G_D = 30, G_AXIS = 33;

/// Fill the rows TRIG with sine and cosine (Cody-Waite reduction, Cephes polynomials).
inline auto sine_cosine(auto work) {
#pragma GCC ivdep
    for (Index lane = 0; lane < LANES; ++lane) {
        auto x = work(INPUT, lane);
        auto k = std::floor(x * 0.6366197723675814 + 0.5);
        auto r = x - k * 1.5707963267341256;
        r = r - k * 6.077100506303966e-11;
        r = r - k * 2.0222662487959506e-21;
        auto t = r * r;
        auto s =
            2.7557313621385722e-06 + t * (-2.5050747762857807e-08 + t * 1.5896230157654656e-10);
        s = 0.008333333333322118 + t * (-0.0001984126982958954 + t * s);
        auto sine = r + r * t * (-0.1666666666666663 + t * s);
        auto c = -2.755731417929674e-07 + t * (2.087570084197473e-09 - t * 1.1358536521387682e-11);
        c = -0.0013888888888873056 + t * (2.4801587288851704e-05 + t * c);
        auto cosine = 1.0 - 0.5 * t + t * t * (0.041666666666666595 + t * c);
        auto quadrant = k - 4.0 * std::floor(k * 0.25);
        auto odd = quadrant == 1.0 || quadrant == 3.0;
        auto a = odd ? cosine : sine;
        auto b = odd ? sine : cosine;
        work(TRIG, lane) = quadrant >= 2.0 ? -a : a;
        work(TRIG + 1, lane) = quadrant == 1.0 || quadrant == 2.0 ? -b : b;
    }
}

/// Fill ROT and POS, the placement of a link in the base frame.
///
/// ``local`` (12, LANES) receives the rotation and the translation in the parent's frame.
inline auto pose(auto parent, auto work, auto g, auto local) {
    double a;
    double b;
    double c;
    for (Index i = 0; i < 9; ++i) {
        a = g(G_A + i);
        b = g(G_B + i);
        c = g(G_C + i);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            local(i, k) = a + b * work(TRIG + 1, k) + c * work(TRIG, k);
        }
    }
    for (Index i = 0; i < 3; ++i) {
        a = g(G_P + i);
        b = g(G_D + i);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            local(9 + i, k) = a + b * work(INPUT, k);
        }
    }
    for (Index row = 0; row < 3; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            a = parent(3 * row, k);
            b = parent(3 * row + 1, k);
            c = parent(3 * row + 2, k);
            for (Index i = 0; i < 3; ++i) {
                work(3 * row + i, k) = a * local(i, k) + b * local(3 + i, k) + c * local(6 + i, k);
            }
            auto moved = a * local(9, k) + b * local(10, k) + c * local(11, k);
            work(POS + row, k) = parent(POS + row, k) + moved;
        }
    }
}

/// Fill AXIS, the joint screw in base coordinates (angular, linear about the base origin).
inline auto screw(auto work, auto g) {
    auto ax = g(33);
    auto ay = g(34);
    auto az = g(35);
    auto bx = g(36);
    auto by = g(37);
    auto bz = g(38);
    for (Index row = 0; row < 3; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto a = work(3 * row, k);
            auto b = work(3 * row + 1, k);
            auto c = work(3 * row + 2, k);
            work(AXIS + row, k) = a * ax + b * ay + c * az;
            work(AXIS + 3 + row, k) = a * bx + b * by + c * bz;
        }
    }
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = work(AXIS, k);
        auto y = work(AXIS + 1, k);
        auto z = work(AXIS + 2, k);
        auto px = work(POS, k);
        auto py = work(POS + 1, k);
        auto pz = work(POS + 2, k);
        work(AXIS + 3, k) += py * z - pz * y;
        work(AXIS + 4, k) += pz * x - px * z;
        work(AXIS + 5, k) += px * y - py * x;
    }
}

/// Fill VEL and ACC, spatial velocity and acceleration (gravity included) of a link.
inline auto motion(auto parent, auto work) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto qd = work(INPUT + 1, k);
        auto qdd = work(INPUT + 2, k);
        auto ax = work(AXIS, k);
        auto ay = work(AXIS + 1, k);
        auto az = work(AXIS + 2, k);
        auto bx = work(AXIS + 3, k);
        auto by = work(AXIS + 4, k);
        auto bz = work(AXIS + 5, k);
        auto wx = parent(VEL, k);
        auto wy = parent(VEL + 1, k);
        auto wz = parent(VEL + 2, k);
        auto vx = parent(VEL + 3, k);
        auto vy = parent(VEL + 4, k);
        auto vz = parent(VEL + 5, k);
        work(VEL, k) = wx + ax * qd;
        work(VEL + 1, k) = wy + ay * qd;
        work(VEL + 2, k) = wz + az * qd;
        work(VEL + 3, k) = vx + bx * qd;
        work(VEL + 4, k) = vy + by * qd;
        work(VEL + 5, k) = vz + bz * qd;
        auto cx = wy * az - wz * ay;
        auto cy = wz * ax - wx * az;
        auto cz = wx * ay - wy * ax;
        work(ACC, k) = parent(ACC, k) + ax * qdd + cx * qd;
        work(ACC + 1, k) = parent(ACC + 1, k) + ay * qdd + cy * qd;
        work(ACC + 2, k) = parent(ACC + 2, k) + az * qdd + cz * qd;
        cx = wy * bz - wz * by + vy * az - vz * ay;
        cy = wz * bx - wx * bz + vz * ax - vx * az;
        cz = wx * by - wy * bx + vx * ay - vy * ax;
        work(ACC + 3, k) = parent(ACC + 3, k) + bx * qdd + cx * qd;
        work(ACC + 4, k) = parent(ACC + 4, k) + by * qdd + cy * qd;
        work(ACC + 5, k) = parent(ACC + 5, k) + bz * qdd + cz * qd;
    }
}

/// Set the motion of the fixed base: at rest, accelerated against gravity.
inline auto base(auto work, auto gravity) {
    work(0) = 0.0;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        work(0, ROT, k) = work(0, ROT + 4, k) = work(0, ROT + 8, k) = 1.0;
        for (Index row = 0; row < 3; ++row) {
            work(0, ACC + 3 + row, k) = -gravity(row);
        }
    }
}

/// Fill pose, screw and motion of a link from its rows INPUT and those of its parent.
inline auto place(auto parent, auto own, auto g, auto local) {
    newton_euler::sine_cosine(own);
    newton_euler::pose(parent, own, g, local);
    newton_euler::screw(own, g);
    newton_euler::motion(parent, own);
}

/// Pose and motion of all links for the tile of samples that begins at ``first``.
inline auto forward_pass(auto work, auto parents, auto geometry, auto inputs, auto first) {
    const Scope scope;
    auto [q, qd, qdd] = inputs;
    auto used = min_of(LANES, q.shape(0) - first);
    auto local = new_array<double, 2, LANES>(12, LANES);
    for (Index j = 0; j < parents.shape(0); ++j) {
        auto own = work(j + 1);
        auto parent = work(parents(j) + 1);
        for (Index k = 0; k < used; ++k) {
            own(INPUT, k) = q(first + k, j);
            own(INPUT + 1, k) = qd(first + k, j);
            own(INPUT + 2, k) = qdd(first + k, j);
        }
        newton_euler::place(parent, own, geometry(j), local);
    }
    return used;
}

/// Fill MC and SIG: first and second moments of a link about the base origin.
///
/// ``turned`` (9, LANES) receives R times the second moments in the link frame.
inline auto inertia(auto work, auto p, auto turned) {
    auto half = 0.5 * (p(4) + p(6) + p(9));
    auto sxx = half - p(4);
    auto syy = half - p(6);
    auto szz = half - p(9);
    auto sxy = -p(5);
    auto sxz = -p(7);
    auto syz = -p(8);
    auto mass = p(0);
    auto mx = p(1);
    auto my = p(2);
    auto mz = p(3);
    for (Index i = 0; i < 3; ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto x = work(3 * i, k);
            auto y = work(3 * i + 1, k);
            auto z = work(3 * i + 2, k);
            work(MC + i, k) = x * mx + y * my + z * mz;
            turned(3 * i, k) = x * sxx + y * sxy + z * sxz;
            turned(3 * i + 1, k) = x * sxy + y * syy + z * syz;
            turned(3 * i + 2, k) = x * sxz + y * syz + z * szz;
        }
    }
    for (Index i = 0; i < 3; ++i) {
        for (Index j = 0; j < i + 1; ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                auto a = work(3 * j, k) * turned(3 * i, k);
                auto b = work(3 * j + 1, k) * turned(3 * i + 1, k);
                auto central = a + b + work(3 * j + 2, k) * turned(3 * i + 2, k);
                auto hi = work(MC + i, k);
                auto hj = work(MC + j, k);
                auto pi = work(POS + i, k);
                auto pj = work(POS + j, k);
                work(SIG + i * (i + 1) / 2 + j, k) = central + hi * pj + (hj + mass * pj) * pi;
            }
        }
    }
    for (Index i = 0; i < 3; ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            work(MC + i, k) += mass * work(POS + i, k);
        }
    }
}

/// Fill the six rows of ``out`` (linear, angular) with inertia times the motion rows.
inline auto wrench(auto work, auto motion, auto mass, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto wx = work(motion, k);
        auto wy = work(motion + 1, k);
        auto wz = work(motion + 2, k);
        auto vx = work(motion + 3, k);
        auto vy = work(motion + 4, k);
        auto vz = work(motion + 5, k);
        auto hx = work(MC, k);
        auto hy = work(MC + 1, k);
        auto hz = work(MC + 2, k);
        auto xx = work(SIG, k);
        auto xy = work(SIG + 1, k);
        auto yy = work(SIG + 2, k);
        auto xz = work(SIG + 3, k);
        auto yz = work(SIG + 4, k);
        auto zz = work(SIG + 5, k);
        out(0, k) = mass * vx + wy * hz - wz * hy;
        out(1, k) = mass * vy + wz * hx - wx * hz;
        out(2, k) = mass * vz + wx * hy - wy * hx;
        out(3, k) = (yy + zz) * wx - xy * wy - xz * wz + hy * vz - hz * vy;
        out(4, k) = (xx + zz) * wy - xy * wx - yz * wz + hz * vx - hx * vz;
        out(5, k) = (xx + yy) * wz - xz * wx - yz * wy + hx * vy - hy * vx;
    }
}

/// Fill FORCE and MOMENT: rate of change of the momentum of a link, about the base origin.
inline auto inertial_force(auto work, auto mass, auto momentum) {
    newton_euler::wrench(work, VEL, mass, momentum);
    newton_euler::wrench(work, ACC, mass, work.from(FORCE));
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto wx = work(VEL, k);
        auto wy = work(VEL + 1, k);
        auto wz = work(VEL + 2, k);
        auto vx = work(VEL + 3, k);
        auto vy = work(VEL + 4, k);
        auto vz = work(VEL + 5, k);
        auto lx = momentum(0, k);
        auto ly = momentum(1, k);
        auto lz = momentum(2, k);
        auto nx = momentum(3, k);
        auto ny = momentum(4, k);
        auto nz = momentum(5, k);
        work(FORCE, k) += wy * lz - wz * ly;
        work(FORCE + 1, k) += wz * lx - wx * lz;
        work(FORCE + 2, k) += wx * ly - wy * lx;
        work(MOMENT, k) += wy * nz - wz * ny + vy * lz - vz * ly;
        work(MOMENT + 1, k) += wz * nx - wx * nz + vz * lx - vx * lz;
        work(MOMENT + 2, k) += wx * ny - wy * nx + vx * ly - vy * lx;
    }
}

/// Add rows of a link to those of its parent.
inline auto accumulate(auto parent, auto work, auto first, auto count) {
    for (Index row = first; row < first + count; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            parent(row, k) += work(row, k);
        }
    }
}

/// Fill ``out`` with the power of a wrench (linear, angular) along a screw.
inline auto project(auto axis, auto wrench, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto linear =
            axis(3, k) * wrench(0, k) + axis(4, k) * wrench(1, k) + axis(5, k) * wrench(2, k);
        auto angular =
            axis(0, k) * wrench(3, k) + axis(1, k) * wrench(4, k) + axis(2, k) * wrench(5, k);
        out(k) = linear + angular;
    }
}

/// Add to ``load`` (LANES,) the torque of the spring at a joint, see `counterbalance`.
inline auto add_spring(auto own, auto p, auto load) {
    if (p.shape(0) > SPRING) {
        auto sine = p(SPRING);
        auto cosine = p(SPRING + 1);
        auto x = p(SPRING + 2);
        auto y = p(SPRING + 3);
        auto square = 1.0 + x * x + y * y;
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto s = own(TRIG, k);
            auto c = own(TRIG + 1, k);
            load(k) += (sine * s + cosine * c) / std::sqrt(square - 2.0 * (x * c - y * s));
        }
    }
}

/// Fill ``load`` (n, LANES) with the effort of the motion that was placed.
inline auto effort(auto work, auto parents, auto parameters, auto load) {
    const Scope scope;
    auto turned = new_array<double, 2, LANES>(9, LANES);
    auto momentum = new_array<double, 2, LANES>(6, LANES);
    for (Index j = 0; j < parents.shape(0); ++j) {
        newton_euler::inertia(work(j + 1), parameters(j), turned);
        newton_euler::inertial_force(work(j + 1), parameters(j, 0), momentum);
    }
    for (Index j = parents.shape(0) - 1; j > -1; --j) {
        newton_euler::project(work(j + 1).from(AXIS), work(j + 1).from(FORCE), load(j));
        newton_euler::add_spring(work(j + 1), parameters(j), load(j));
        newton_euler::accumulate(work(parents(j) + 1), work(j + 1), FORCE, 6);
    }
}

/// Recursive Newton-Euler: ``out`` (N, n) from ``inputs`` q, qd, qdd and parameters (n, 10).
///
/// Those of springs are behind them, (n, 14), where there are any.
inline auto inverse_dynamics(auto geometry, auto parents, auto gravity, auto parameters,
                             auto inputs, auto out) {
    const Scope scope;
    Index n = parents.shape(0);
    auto work = new_zeros<double, 3, LANES>(n + 1, ROWS, LANES);
    auto load = new_array<double, 2, LANES>(n, LANES);
    newton_euler::base(work, gravity);
    for (Index first = 0; first < out.shape(0); first += LANES) {
        Index used = newton_euler::forward_pass(work, parents, geometry, inputs, first);
        newton_euler::effort(work, parents, parameters, load);
        for (Index j = 0; j < n; ++j) {
            for (Index k = 0; k < used; ++k) {
                out(first + k, j) = load(j, k);
            }
        }
    }
}

}  // namespace newton_euler
