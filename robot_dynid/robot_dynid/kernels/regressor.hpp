// Regressor of a torque model: links, rotors, and all that is linear in signals.

namespace regressor {

// kinds of signals: coordinates of position, velocity, acceleration; one; rows of the history
constexpr Index POSITION = 0, VELOCITY = 1, ACCELERATION = 2, ONE = 3, HISTORY = 4;
// rows of the link-frame quantities: acceleration of the origin, D = S(al) + S(w)^2, w, al
constexpr Index ORIGIN = 0, DERIVATIVE = 3, OMEGA = 12, ALPHA = 15, LINK_ROWS = 18;

/// Fill the link-frame motion: classical acceleration of the origin, D, w and al.
inline auto link_motion(auto work, auto link) {
    double ax;
    double ay;
    double az;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto wx = work(newton_euler::VEL, k);
        auto wy = work(newton_euler::VEL + 1, k);
        auto wz = work(newton_euler::VEL + 2, k);
        ax = work(newton_euler::ACC, k);
        ay = work(newton_euler::ACC + 1, k);
        az = work(newton_euler::ACC + 2, k);
        auto px = work(newton_euler::POS, k);
        auto py = work(newton_euler::POS + 1, k);
        auto pz = work(newton_euler::POS + 2, k);
        auto vx = work(newton_euler::VEL + 3, k) + wy * pz - wz * py;
        auto vy = work(newton_euler::VEL + 4, k) + wz * px - wx * pz;
        auto vz = work(newton_euler::VEL + 5, k) + wx * py - wy * px;
        auto ox = work(newton_euler::ACC + 3, k) + ay * pz - az * py + wy * vz - wz * vy;
        auto oy = work(newton_euler::ACC + 4, k) + az * px - ax * pz + wz * vx - wx * vz;
        auto oz = work(newton_euler::ACC + 5, k) + ax * py - ay * px + wx * vy - wy * vx;
        for (Index i = 0; i < 3; ++i) {
            auto a = work(i, k);
            auto b = work(3 + i, k);
            auto c = work(6 + i, k);
            link(ORIGIN + i, k) = a * ox + b * oy + c * oz;
            link(OMEGA + i, k) = a * wx + b * wy + c * wz;
            link(ALPHA + i, k) = a * ax + b * ay + c * az;
        }
    }
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = link(OMEGA, k);
        auto y = link(OMEGA + 1, k);
        auto z = link(OMEGA + 2, k);
        ax = link(ALPHA, k);
        ay = link(ALPHA + 1, k);
        az = link(ALPHA + 2, k);
        link(DERIVATIVE, k) = -y * y - z * z;
        link(DERIVATIVE + 1, k) = x * y - az;
        link(DERIVATIVE + 2, k) = x * z + ay;
        link(DERIVATIVE + 3, k) = x * y + az;
        link(DERIVATIVE + 4, k) = -x * x - z * z;
        link(DERIVATIVE + 5, k) = y * z - ax;
        link(DERIVATIVE + 6, k) = x * z - ay;
        link(DERIVATIVE + 7, k) = y * z + ax;
        link(DERIVATIVE + 8, k) = -x * x - y * y;
    }
}

/// Fill ``moments`` (18, LANES): those of the unit inertias xx xy yy xz yz zz.
inline auto unit_moments(auto link, auto moments) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = link(OMEGA, k);
        auto y = link(OMEGA + 1, k);
        auto z = link(OMEGA + 2, k);
        auto a = link(ALPHA, k);
        auto b = link(ALPHA + 1, k);
        auto c = link(ALPHA + 2, k);
        auto xx = x * x;
        auto yy = y * y;
        auto zz = z * z;
        auto xy = x * y;
        auto xz = x * z;
        auto yz = y * z;
        moments(0, k) = a;
        moments(1, k) = xz;
        moments(2, k) = -xy;
        moments(3, k) = b - xz;
        moments(4, k) = a + yz;
        moments(5, k) = xx - yy;
        moments(6, k) = -yz;
        moments(7, k) = b;
        moments(8, k) = xy;
        moments(9, k) = c + xy;
        moments(10, k) = zz - xx;
        moments(11, k) = a - yz;
        moments(12, k) = yy - zz;
        moments(13, k) = c - xy;
        moments(14, k) = b + xz;
        moments(15, k) = yz;
        moments(16, k) = -xz;
        moments(17, k) = c;
    }
}

/// Express a joint screw (angular, linear about the base origin) in the frame of a link.
inline auto screw_in_link(auto axis, auto work, auto screw) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = axis(0, k);
        auto y = axis(1, k);
        auto z = axis(2, k);
        auto px = work(newton_euler::POS, k);
        auto py = work(newton_euler::POS + 1, k);
        auto pz = work(newton_euler::POS + 2, k);
        auto u = axis(3, k) + y * pz - z * py;
        auto v = axis(4, k) + z * px - x * pz;
        auto w = axis(5, k) + x * py - y * px;
        for (Index i = 0; i < 3; ++i) {
            auto a = work(i, k);
            auto b = work(3 + i, k);
            auto c = work(6 + i, k);
            screw(i, k) = a * x + b * y + c * z;
            screw(3 + i, k) = a * u + b * v + c * w;
        }
    }
}

/// Rows 0 to 3 of ``block``: power of the force of unit mass and unit first moments.
inline auto mass_columns(auto screw, auto link, auto block) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = screw(0, k);
        auto y = screw(1, k);
        auto z = screw(2, k);
        auto u = screw(3, k);
        auto v = screw(4, k);
        auto w = screw(5, k);
        auto ox = link(ORIGIN, k);
        auto oy = link(ORIGIN + 1, k);
        auto oz = link(ORIGIN + 2, k);
        block(0, k) = u * ox + v * oy + w * oz;
        block(1, k) = u * link(3, k) + v * link(6, k) + w * link(9, k) + z * oy - y * oz;
        block(2, k) = u * link(4, k) + v * link(7, k) + w * link(10, k) + x * oz - z * ox;
        block(3, k) = u * link(5, k) + v * link(8, k) + w * link(11, k) + y * ox - x * oy;
    }
}

/// Rows 4 to 9 of ``block``: power of the moments of the unit inertias.
inline auto inertia_columns(auto screw, auto moments, auto block) {
    for (Index i = 0; i < 6; ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            block(4 + i, k) = screw(0, k) * moments(3 * i, k) +
                              screw(1, k) * moments(3 * i + 1, k) +
                              screw(2, k) * moments(3 * i + 2, k);
        }
    }
}

/// Copy the ``used`` first lanes to ``out`` (M,) from ``first`` on.
inline auto store(auto values, auto used, auto out, auto first) {
    if (used == LANES) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            out(first + k) = values(k);
        }
    } else {
        for (Index k = 0; k < used; ++k) {
            out(first + k) = values(k);
        }
    }
}

/// Fill the columns of links: ``columns`` (n, 10), -1 for none.
inline auto fill_links(auto work, auto parents, auto columns, auto room, auto target) {
    auto [link, moments, screw, block] = room;
    auto [place, at, used, out] = target;
    for (Index j = 0; j < parents.shape(0); ++j) {
        auto masses = columns(j).to(4).max() >= 0;
        auto inertias = columns(j).from(4).max() >= 0;
        if (masses || inertias) {
            regressor::link_motion(work(j + 1), link);
        }
        if (inertias) {
            regressor::unit_moments(link, moments);
        }
        Index i = masses || inertias ? j : -1;
        while (i >= 0) {
            regressor::screw_in_link(work(i + 1).from(newton_euler::AXIS), work(j + 1), screw);
            if (masses) {
                regressor::mass_columns(screw, link, block);
            }
            if (inertias) {
                regressor::inertia_columns(screw, moments, block);
            }
            for (Index parameter = 0; parameter < 10; ++parameter) {
                auto column = columns(j, parameter);
                if (column >= 0 && place(i, column) >= 0) {
                    regressor::store(block(parameter), used, out, place(i, column) + at);
                }
            }
            i = parents(i);
        }
    }
}

/// Fill ``load`` (N, LANES) with the effort of one rotor of inertia one on a moving link.
inline auto rotor_load(auto work, auto parents, auto rotor, auto motion, auto room, auto load) {
    auto [carrier, axis, share] = rotor;
    auto own = work(carrier + 1);
    rotors::line(own, axis, room);
    rotors::spin(share, std::get<0>(motion), std::get<1>(motion), room);
    rotors::drag(own, room);
    Index j;
    for (Index j = 0; j < load.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            load(j, k) = share(j) * (room(rotors::RATE, k) + room(rotors::BACK, k));
        }
    }
    j = carrier;
    while (j >= 0) {
        rotors::along(work(j + 1).from(newton_euler::AXIS), room, rotors::DRAG);
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            load(j, k) += room(rotors::SHARE, k);
        }
        j = parents(j);
    }
}

/// Fill the columns of rotors on moving links.
inline auto fill_rotors(auto work, auto parents, auto rotors, auto motion, auto room,
                        auto target) {
    auto [columns, carriers, axes, motions, shares] = rotors;
    auto [place, at, used, out] = target;
    auto [turning, load] = room;
    for (Index r = 0; r < columns.shape(0); ++r) {
        regressor::rotor_load(work, parents, std::make_tuple(carriers(r), axes(r), motions(r)),
                              motion, turning, load);
        for (Index i = 0; i < place.shape(0); ++i) {
            auto begin = place(i, columns(r));
            if (begin >= 0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    turning(rotors::SHARE, k) = 0.0;
                }
                for (Index j = 0; j < load.shape(0); ++j) {
#pragma GCC ivdep
                    for (Index k = 0; k < LANES; ++k) {
                        turning(rotors::SHARE, k) += shares(j, i) * load(j, k);
                    }
                }
                regressor::store(turning(rotors::SHARE), used, out, begin + at);
            }
        }
    }
}

/// Fill ``out`` (LANES,) with a coordinate of the motion, or ones.
inline auto read(auto motion, auto kind, auto index, auto tile, auto out) {
    auto [first, used] = tile;
    if (kind == POSITION) {
        for (Index k = 0; k < used; ++k) {
            out(k) = std::get<0>(motion)(first + k, index);
        }
    } else {
        if (kind == VELOCITY) {
            for (Index k = 0; k < used; ++k) {
                out(k) = std::get<1>(motion)(first + k, index);
            }
        } else {
            if (kind == ACCELERATION) {
                for (Index k = 0; k < used; ++k) {
                    out(k) = std::get<2>(motion)(first + k, index);
                }
            } else {
                for (Index k = 0; k < used; ++k) {
                    out(k) = 1.0;
                }
            }
        }
    }
}

/// Write ``share`` times ``values`` (M,) to ``out`` (M,), or add it where there is ``more``.
inline auto put(auto values, auto share, auto used, auto more, auto out) {
    if (more) {
        for (Index k = 0; k < used; ++k) {
            out(k) += share * values(k);
        }
    } else {
        for (Index k = 0; k < used; ++k) {
            out(k) = share * values(k);
        }
    }
}

/// Fill what is linear in signals; entries of one place follow each other and add up.
inline auto fill_signals(auto signals, auto motion, auto history, auto first, auto target) {
    const Scope scope;
    auto [entries, shares] = signals;
    auto [place, at, used, out] = target;
    auto values = new_array<double, 1, LANES>(LANES);
    Index before = -1;
    for (Index e = 0; e < entries.shape(0); ++e) {
        auto begin = place(entries(e, 0), entries(e, 1));
        auto kind = entries(e, 2);
        auto index = entries(e, 3);
        if (begin < 0) {
            continue;
        }
        auto own = out.part(begin + at, begin + at + used);
        if (kind == HISTORY) {
            regressor::put(history(index).part(first, first + used), shares(e), used,
                           begin == before, own);
        } else {
            regressor::read(motion, kind, index, std::make_tuple(first, used), values);
            regressor::put(values, shares(e), used, begin == before, own);
        }
        before = begin;
    }
}

/// Fill a regressor: the first of ``rows`` is at ``place[i, c]`` in ``out``, others follow.
///
/// ``columns``: links (n, 10) with the column of each parameter or -1; rotors of inertia one on
/// moving links with their columns (m,), carriers (m,), axes (m, 3), motions (m, N), and the share
/// (N, R) of an effort on a coordinate in each equation; entries (e, 4) of row, column, kind and
/// index of a signal, by row and column, and their shares (e,). ``signals``: q, qd, qdd (K, N)
/// and history (h, K); ``rows``: first and end. ``target``: ``place`` (R, k), -1 for what is not
/// wanted, and ``out`` (M,). Equations of joints that do not carry a link are left as they are.
inline auto fill_regressor(auto tree, auto columns, auto signals, auto rows, auto target) {
    const Scope scope;
    auto [geometry, parents, gravity] = tree;
    auto [links, rotors, entries, shares] = columns;
    auto [motion, history] = signals;
    auto [place, out] = target;
    Index n = parents.shape(0);
    Index count = std::get<0>(motion).shape(1);
    auto work = new_zeros<double, 3, LANES>(n + 1, newton_euler::ROWS, LANES);
    auto room = std::make_tuple(
        new_array<double, 2, LANES>(LINK_ROWS, LANES), new_array<double, 2, LANES>(18, LANES),
        new_array<double, 2, LANES>(6, LANES), new_array<double, 2, LANES>(10, LANES));
    auto turning = std::make_tuple(new_array<double, 2, LANES>(rotors::ROOM, LANES),
                                   new_array<double, 2, LANES>(count, LANES));
    auto v = new_zeros<double, 2, LANES>(count, LANES);
    auto a = new_zeros<double, 2, LANES>(count, LANES);
    newton_euler::base(work, gravity);
    for (Index first = std::get<0>(rows); first < std::get<1>(rows); first += LANES) {
        auto used = min_of(LANES, std::get<1>(rows) - first);
        auto tile = std::make_tuple(place, first - std::get<0>(rows), used, out);
        if (n > 0) {
            newton_euler::forward_pass(work, parents, geometry, motion, first);
            regressor::fill_links(work, parents, links, room, tile);
        }
        if (std::get<0>(rotors).shape(0) > 0) {
            for (Index j = 0; j < count; ++j) {
                for (Index k = 0; k < used; ++k) {
                    v(j, k) = std::get<1>(motion)(first + k, j);
                    a(j, k) = std::get<2>(motion)(first + k, j);
                }
            }
            regressor::fill_rotors(work, parents, rotors, std::make_tuple(v, a), turning, tile);
        }
        regressor::fill_signals(std::make_tuple(entries, shares), motion, history, first, tile);
    }
}

}  // namespace regressor
