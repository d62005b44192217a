// Reverse mode of the regressor: gradients of weighted sums of its entries in the motion.
//
// F = sum_ip G_ip Y_ip is a sum over pairs of a joint i and a body j that it carries: the power of
// the wrench of a body with the parameters G_ij, which moves like body j, along the screw of joint i.
// Backwards, gradients in velocity and acceleration of a body are wrenches; about the base origin
// they add up from the last links to the first without transforms, like forces. With the screw S_k,
// velocity V_k and acceleration A_k of a body, its gradients v, a (a wrench each, of all it carries):
//
//     v += qd_k S_k x* a,  F_qdd = S_k . a,  F_qd = S_k . v + (V_k x S_k) . a,
//     F_q = (V_k x S_k) . v + ((A_k - qd_k V_k x S_k) x S_k) . a + S_k . t
//
// where t are the wrenches turned by the screws before k that they act along.

namespace regressor_gradient {

// gradients in the link frame: of the origin's acceleration, of w, of al
constexpr Index G_ORIGIN = 0, G_OMEGA = 3, G_ALPHA = 6, G_ROWS = 9;
// wrenches (moment, force) of a body: gradients in velocity, in acceleration, turned wrenches
constexpr Index BAR_VEL = 0, BAR_ACC = 6, BAR_TURN = 12, BAR_ROWS = 18;

/// Gradients and wrench (moment, force) of mass and first moments ``body`` rows 0 to 3.
inline auto mass_pair(auto screw, auto link, auto body, auto grad, auto wrench) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = screw(0, k);
        auto y = screw(1, k);
        auto z = screw(2, k);
        auto u = screw(3, k);
        auto v = screw(4, k);
        auto w = screw(5, k);
        auto m = body(0, k);
        auto a = body(1, k);
        auto b = body(2, k);
        auto c = body(3, k);
        auto p = link(regressor::OMEGA, k);
        auto q = link(regressor::OMEGA + 1, k);
        auto r = link(regressor::OMEGA + 2, k);
        auto ox = link(regressor::ORIGIN, k);
        auto oy = link(regressor::ORIGIN + 1, k);
        auto oz = link(regressor::ORIGIN + 2, k);
        grad(G_ORIGIN, k) += m * u + y * c - z * b;
        grad(G_ORIGIN + 1, k) += m * v + z * a - x * c;
        grad(G_ORIGIN + 2, k) += m * w + x * b - y * a;
        grad(G_ALPHA, k) += b * w - c * v;
        grad(G_ALPHA + 1, k) += c * u - a * w;
        grad(G_ALPHA + 2, k) += a * v - b * u;
        auto along = p * a + q * b + r * c;
        auto over = p * u + q * v + r * w;
        auto twice = 2.0 * (u * a + v * b + w * c);
        grad(G_OMEGA, k) += u * along + a * over - twice * p;
        grad(G_OMEGA + 1, k) += v * along + b * over - twice * q;
        grad(G_OMEGA + 2, k) += w * along + c * over - twice * r;
        wrench(0, k) = b * oz - c * oy;
        wrench(1, k) = c * ox - a * oz;
        wrench(2, k) = a * oy - b * ox;
        wrench(3, k) = m * ox + link(3, k) * a + link(4, k) * b + link(5, k) * c;
        wrench(4, k) = m * oy + link(6, k) * a + link(7, k) * b + link(8, k) * c;
        wrench(5, k) = m * oz + link(9, k) * a + link(10, k) * b + link(11, k) * c;
    }
}

/// Add those of the inertias xx xy yy xz yz zz, ``body`` rows 4 to 9.
inline auto inertia_pair(auto screw, auto link, auto body, auto grad, auto wrench) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = screw(0, k);
        auto y = screw(1, k);
        auto z = screw(2, k);
        auto xx = body(4, k);
        auto xy = body(5, k);
        auto yy = body(6, k);
        auto xz = body(7, k);
        auto yz = body(8, k);
        auto zz = body(9, k);
        auto p = link(regressor::OMEGA, k);
        auto q = link(regressor::OMEGA + 1, k);
        auto r = link(regressor::OMEGA + 2, k);
        auto a = link(regressor::ALPHA, k);
        auto b = link(regressor::ALPHA + 1, k);
        auto c = link(regressor::ALPHA + 2, k);
        auto hx = xx * p + xy * q + xz * r;
        auto hy = xy * p + yy * q + yz * r;
        auto hz = xz * p + yz * q + zz * r;
        wrench(0, k) += xx * a + xy * b + xz * c + q * hz - r * hy;
        wrench(1, k) += xy * a + yy * b + yz * c + r * hx - p * hz;
        wrench(2, k) += xz * a + yz * b + zz * c + p * hy - q * hx;
        grad(G_ALPHA, k) += xx * x + xy * y + xz * z;
        grad(G_ALPHA + 1, k) += xy * x + yy * y + yz * z;
        grad(G_ALPHA + 2, k) += xz * x + yz * y + zz * z;
        auto e = y * r - z * q;
        auto f = z * p - x * r;
        auto g = x * q - y * p;
        grad(G_OMEGA, k) += xx * e + xy * f + xz * g + hy * z - hz * y;
        grad(G_OMEGA + 1, k) += xy * e + yy * f + yz * g + hz * x - hx * z;
        grad(G_OMEGA + 2, k) += xz * e + yz * f + zz * g + hx * y - hy * x;
    }
}

/// Express a wrench (moment, force) of the link frame in the base frame, in place.
inline auto about_base(auto work, auto wrench) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto a = wrench(0, k);
        auto b = wrench(1, k);
        auto c = wrench(2, k);
        auto u = wrench(3, k);
        auto v = wrench(4, k);
        auto w = wrench(5, k);
        auto px = work(newton_euler::POS, k);
        auto py = work(newton_euler::POS + 1, k);
        auto pz = work(newton_euler::POS + 2, k);
        auto fx = work(0, k) * u + work(1, k) * v + work(2, k) * w;
        auto fy = work(3, k) * u + work(4, k) * v + work(5, k) * w;
        auto fz = work(6, k) * u + work(7, k) * v + work(8, k) * w;
        wrench(0, k) = work(0, k) * a + work(1, k) * b + work(2, k) * c + py * fz - pz * fy;
        wrench(1, k) = work(3, k) * a + work(4, k) * b + work(5, k) * c + pz * fx - px * fz;
        wrench(2, k) = work(6, k) * a + work(7, k) * b + work(8, k) * c + px * fy - py * fx;
        wrench(3, k) = fx;
        wrench(4, k) = fy;
        wrench(5, k) = fz;
    }
}

/// Add the wrench turned against a screw to the rows of one body, take it from another's.
inline auto turned(auto screw, auto wrench, auto own, auto other) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = screw(0, k);
        auto y = screw(1, k);
        auto z = screw(2, k);
        auto u = screw(3, k);
        auto v = screw(4, k);
        auto w = screw(5, k);
        auto a = wrench(0, k);
        auto b = wrench(1, k);
        auto c = wrench(2, k);
        auto f = wrench(3, k);
        auto g = wrench(4, k);
        auto h = wrench(5, k);
        auto t0 = y * c - z * b + v * h - w * g;
        auto t1 = z * a - x * c + w * f - u * h;
        auto t2 = x * b - y * a + u * g - v * f;
        auto t3 = y * h - z * g;
        auto t4 = z * f - x * h;
        auto t5 = x * g - y * f;
        own(0, k) -= t0;
        own(1, k) -= t1;
        own(2, k) -= t2;
        own(3, k) -= t3;
        own(4, k) -= t4;
        own(5, k) -= t5;
        other(0, k) += t0;
        other(1, k) += t1;
        other(2, k) += t2;
        other(3, k) += t3;
        other(4, k) += t4;
        other(5, k) += t5;
    }
}

/// Add the gradients in velocity and acceleration of a body, as wrenches in the base frame.
inline auto body_gradients(auto work, auto link, auto grad, auto wrench, auto bar) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {  // o = acceleration + w x velocity of the origin
        auto wx = work(newton_euler::VEL, k);
        auto wy = work(newton_euler::VEL + 1, k);
        auto wz = work(newton_euler::VEL + 2, k);
        auto px = work(newton_euler::POS, k);
        auto py = work(newton_euler::POS + 1, k);
        auto pz = work(newton_euler::POS + 2, k);
        auto vx = work(newton_euler::VEL + 3, k) + wy * pz - wz * py;
        auto vy = work(newton_euler::VEL + 4, k) + wz * px - wx * pz;
        auto vz = work(newton_euler::VEL + 5, k) + wx * py - wy * px;
        auto u = work(0, k) * vx + work(3, k) * vy + work(6, k) * vz;
        auto v = work(1, k) * vx + work(4, k) * vy + work(7, k) * vz;
        auto w = work(2, k) * vx + work(5, k) * vy + work(8, k) * vz;
        auto x = grad(G_ORIGIN, k);
        auto y = grad(G_ORIGIN + 1, k);
        auto z = grad(G_ORIGIN + 2, k);
        auto p = link(regressor::OMEGA, k);
        auto q = link(regressor::OMEGA + 1, k);
        auto r = link(regressor::OMEGA + 2, k);
        wrench(0, k) = grad(G_OMEGA, k) + v * z - w * y;
        wrench(1, k) = grad(G_OMEGA + 1, k) + w * x - u * z;
        wrench(2, k) = grad(G_OMEGA + 2, k) + u * y - v * x;
        wrench(3, k) = y * r - z * q;
        wrench(4, k) = z * p - x * r;
        wrench(5, k) = x * q - y * p;
    }
    regressor_gradient::about_base(work, wrench);
    for (Index row = 0; row < 6; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            bar(BAR_VEL + row, k) += wrench(row, k);
        }
    }
    for (Index row = 0; row < 3; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            wrench(row, k) = grad(G_ALPHA + row, k);
            wrench(3 + row, k) = grad(G_ORIGIN + row, k);
        }
    }
    regressor_gradient::about_base(work, wrench);
    for (Index row = 0; row < 6; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            bar(BAR_ACC + row, k) += wrench(row, k);
        }
    }
}

/// Fill the three rows of ``out``: gradients in q, qd, qdd; complete the one in velocity.
inline auto joint_gradients(auto work, auto bar, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto qd = work(newton_euler::INPUT + 1, k);
        auto x = work(newton_euler::AXIS, k);
        auto y = work(newton_euler::AXIS + 1, k);
        auto z = work(newton_euler::AXIS + 2, k);
        auto u = work(newton_euler::AXIS + 3, k);
        auto v = work(newton_euler::AXIS + 4, k);
        auto w = work(newton_euler::AXIS + 5, k);
        auto a0 = bar(BAR_ACC, k);
        auto a1 = bar(BAR_ACC + 1, k);
        auto a2 = bar(BAR_ACC + 2, k);
        auto a3 = bar(BAR_ACC + 3, k);
        auto a4 = bar(BAR_ACC + 4, k);
        auto a5 = bar(BAR_ACC + 5, k);
        bar(BAR_VEL, k) += qd * (y * a2 - z * a1 + v * a5 - w * a4);
        bar(BAR_VEL + 1, k) += qd * (z * a0 - x * a2 + w * a3 - u * a5);
        bar(BAR_VEL + 2, k) += qd * (x * a1 - y * a0 + u * a4 - v * a3);
        bar(BAR_VEL + 3, k) += qd * (y * a5 - z * a4);
        bar(BAR_VEL + 4, k) += qd * (z * a3 - x * a5);
        bar(BAR_VEL + 5, k) += qd * (x * a4 - y * a3);
        auto p = work(newton_euler::VEL, k);
        auto q = work(newton_euler::VEL + 1, k);
        auto r = work(newton_euler::VEL + 2, k);
        auto d = work(newton_euler::VEL + 3, k);
        auto e = work(newton_euler::VEL + 4, k);
        auto f = work(newton_euler::VEL + 5, k);
        auto c0 = q * z - r * y;
        auto c1 = r * x - p * z;
        auto c2 = p * y - q * x;
        auto c3 = q * w - r * v + e * z - f * y;
        auto c4 = r * u - p * w + f * x - d * z;
        auto c5 = p * v - q * u + d * y - e * x;
        p = work(newton_euler::ACC, k) - qd * c0;
        q = work(newton_euler::ACC + 1, k) - qd * c1;
        r = work(newton_euler::ACC + 2, k) - qd * c2;
        d = work(newton_euler::ACC + 3, k) - qd * c3;
        e = work(newton_euler::ACC + 4, k) - qd * c4;
        f = work(newton_euler::ACC + 5, k) - qd * c5;
        auto along = (q * z - r * y) * a0 + (r * x - p * z) * a1 + (p * y - q * x) * a2;
        along += (q * w - r * v + e * z - f * y) * a3;
        along += (r * u - p * w + f * x - d * z) * a4;
        along += (p * v - q * u + d * y - e * x) * a5;
        auto b0 = bar(BAR_VEL, k);
        auto b1 = bar(BAR_VEL + 1, k);
        auto b2 = bar(BAR_VEL + 2, k);
        auto b3 = bar(BAR_VEL + 3, k);
        auto b4 = bar(BAR_VEL + 4, k);
        auto b5 = bar(BAR_VEL + 5, k);
        along += c0 * b0 + c1 * b1 + c2 * b2 + c3 * b3 + c4 * b4 + c5 * b5;
        along += x * bar(BAR_TURN, k) + y * bar(BAR_TURN + 1, k) + z * bar(BAR_TURN + 2, k);
        along += u * bar(BAR_TURN + 3, k) + v * bar(BAR_TURN + 4, k) + w * bar(BAR_TURN + 5, k);
        out(0, k) = along;
        out(1, k) = x * b0 + y * b1 + z * b2 + u * b3 + v * b4 + w * b5;
        out(1, k) += c0 * a0 + c1 * a1 + c2 * a2 + c3 * a3 + c4 * a4 + c5 * a5;
        out(2, k) = x * a0 + y * a1 + z * a2 + u * a3 + v * a4 + w * a5;
    }
}

/// Fill ``body`` (10, LANES) with the weights of a row that belong to the columns of a body.
inline auto weighted_body(auto columns, auto weights, auto first, auto used, auto body) {
    for (Index parameter = 0; parameter < 10; ++parameter) {
        auto column = columns(parameter);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            body(parameter, k) = 0.0;
        }
        if (column >= 0) {
            for (Index k = 0; k < used; ++k) {
                body(parameter, k) = weights(column, first + k);
            }
        }
    }
}

/// Add to three arrays (N, n) the gradients of sum(weights * regressor) in q, qd, qdd.
///
/// ``flow`` holds the weights (n, k, N), like the output of `rigid_regressor`, then the three;
/// ``columns`` (n, 10) as there.
inline auto rigid_pullback(auto geometry, auto parents, auto gravity, auto columns, auto inputs,
                           auto flow) {
    const Scope scope;
    Index n = parents.shape(0);
    auto [weights, in_position, in_velocity, in_acceleration] = flow;
    auto work = new_zeros<double, 3, LANES>(n + 1, newton_euler::ROWS, LANES);
    auto bars = new_zeros<double, 3, LANES>(n + 1, BAR_ROWS, LANES);
    auto link = new_array<double, 2, LANES>(regressor::LINK_ROWS, LANES);
    auto screw = new_array<double, 2, LANES>(6, LANES);
    auto body = new_array<double, 2, LANES>(10, LANES);
    auto grad = new_array<double, 2, LANES>(G_ROWS, LANES);
    auto wrench = new_array<double, 2, LANES>(6, LANES);
    auto out = new_array<double, 2, LANES>(3, LANES);
    newton_euler::base(work, gravity);
    for (Index first = 0; first < weights.shape(2); first += LANES) {
        Index used = newton_euler::forward_pass(work, parents, geometry, inputs, first);
        bars = 0.0;
        for (Index j = 0; j < n; ++j) {
            if (columns(j).max() < 0) {
                continue;
            }
            regressor::link_motion(work(j + 1), link);
            grad = 0.0;
            Index i = j;
            while (i >= 0) {
                regressor_gradient::weighted_body(columns(j), weights(i), first, used, body);
                regressor::screw_in_link(work(i + 1).from(newton_euler::AXIS), work(j + 1), screw);
                regressor_gradient::mass_pair(screw, link, body, grad, wrench);
                regressor_gradient::inertia_pair(screw, link, body, grad, wrench);
                regressor_gradient::about_base(work(j + 1), wrench);
                regressor_gradient::turned(work(i + 1).from(newton_euler::AXIS), wrench,
                                           bars(j + 1).from(BAR_TURN), bars(i + 1).from(BAR_TURN));
                i = parents(i);
            }
            regressor_gradient::body_gradients(work(j + 1), link, grad, wrench, bars(j + 1));
        }
        for (Index j = n - 1; j > -1; --j) {
            regressor_gradient::joint_gradients(work(j + 1), bars(j + 1), out);
            auto parent = bars(parents(j) + 1);
            for (Index row = 0; row < BAR_ROWS; ++row) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    parent(row, k) += bars(j + 1, row, k);
                }
            }
            for (Index k = 0; k < used; ++k) {
                in_position(first + k, j) += out(0, k);
                in_velocity(first + k, j) += out(1, k);
                in_acceleration(first + k, j) += out(2, k);
            }
        }
    }
}

}  // namespace regressor_gradient
