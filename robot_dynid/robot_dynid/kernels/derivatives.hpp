// Derivatives of inverse and forward dynamics; work arrays as of `newton_euler`.
//
// In base coordinates, with the screw S_j of a joint, the twist V and acceleration A of its parent,
// its rates P_j = V x S_j and Q_j = A x S_j + V x P_j say how what it carries moves on. The wrench
// F_i of all that joint i carries has the derivatives
//
//     by q_j:  C_i P_j + I_i Q_j   and for j = i or beyond, S_j x* F_j
//     by qd_j: C_i S_j + 2 I_i P_j
//     by qdd_j: I_i S_j
//
// with composite inertia I, and C x = sum of m (r x f, f), f = 2 w x v(r), over the particles of the
// composite body, which its linear momentum L and the moment N = sum of m v r^T hold. Source: Singh,
// Russell, Wensing, IEEE RA-L 2022, 7, 1776-1783; C by particles makes its 36 entries 12 numbers. The
// spin of a rotor adds its moment of momentum to N.
//
// Friction and gears are straight lines at a state; load-dependent friction follows the wrench.

namespace derivatives {

// rows of a link after those of `newton_euler`: P and Q of its joint, L, N row by row
constexpr Index FIRST_RATE = newton_euler::ROWS, SECOND_RATE = newton_euler::ROWS + 6,
                LINEAR = newton_euler::ROWS + 12, SPREAD = newton_euler::ROWS + 15,
                LINK_ROWS = newton_euler::ROWS + 24;
// derivatives by position, velocity, acceleration
constexpr Index BY_POSITION = 0, BY_VELOCITY = 1, BY_ACCELERATION = 2;
// rows of the room to work: turned inertia, I S, C^T S, columns by velocity and by position,
// momentum
constexpr Index TURNED = 0, CARRIED = 9, RETURNED = 15, FASTER = 18, FARTHER = 24, MOMENTUM = 30,
                SCRATCH = 36;

/// Add the motion cross product of two motions (6, LANES) to ``out``.
inline auto add_crossed(auto twist, auto screw, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto wx = twist(0, k);
        auto wy = twist(1, k);
        auto wz = twist(2, k);
        auto vx = twist(3, k);
        auto vy = twist(4, k);
        auto vz = twist(5, k);
        auto ax = screw(0, k);
        auto ay = screw(1, k);
        auto az = screw(2, k);
        auto bx = screw(3, k);
        auto by = screw(4, k);
        auto bz = screw(5, k);
        out(0, k) += wy * az - wz * ay;
        out(1, k) += wz * ax - wx * az;
        out(2, k) += wx * ay - wy * ax;
        out(3, k) += wy * bz - wz * by + vy * az - vz * ay;
        out(4, k) += wz * bx - wx * bz + vz * ax - vx * az;
        out(5, k) += wx * by - wy * bx + vx * ay - vy * ax;
    }
}

/// Fill both rates of all screws.
inline auto rates(auto work, auto parents) {
    for (Index j = 0; j < parents.shape(0); ++j) {
        auto own = work(j + 1);
        auto parent = work(parents(j) + 1);
        for (Index row = 0; row < 12; ++row) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                own(FIRST_RATE + row, k) = 0.0;
            }
        }
        derivatives::add_crossed(parent.from(newton_euler::VEL), own.from(newton_euler::AXIS),
                                 own.from(FIRST_RATE));
        derivatives::add_crossed(parent.from(newton_euler::ACC), own.from(newton_euler::AXIS),
                                 own.from(SECOND_RATE));
        derivatives::add_crossed(parent.from(newton_euler::VEL), own.from(FIRST_RATE),
                                 own.from(SECOND_RATE));
    }
}

/// Fill L and N of a link, whose ``momentum`` (linear first) is given.
inline auto spread(auto own, auto momentum) {
    for (Index row = 0; row < 3; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            own(LINEAR + row, k) = momentum(row, k);
        }
    }
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto wx = own(newton_euler::VEL, k);
        auto wy = own(newton_euler::VEL + 1, k);
        auto wz = own(newton_euler::VEL + 2, k);
        auto vx = own(newton_euler::VEL + 3, k);
        auto vy = own(newton_euler::VEL + 4, k);
        auto vz = own(newton_euler::VEL + 5, k);
        auto hx = own(newton_euler::MC, k);
        auto hy = own(newton_euler::MC + 1, k);
        auto hz = own(newton_euler::MC + 2, k);
        auto xx = own(newton_euler::SIG, k);
        auto xy = own(newton_euler::SIG + 1, k);
        auto yy = own(newton_euler::SIG + 2, k);
        auto xz = own(newton_euler::SIG + 3, k);
        auto yz = own(newton_euler::SIG + 4, k);
        auto zz = own(newton_euler::SIG + 5, k);
        own(SPREAD, k) = vx * hx + wy * xz - wz * xy;
        own(SPREAD + 1, k) = vx * hy + wy * yz - wz * yy;
        own(SPREAD + 2, k) = vx * hz + wy * zz - wz * yz;
        own(SPREAD + 3, k) = vy * hx + wz * xx - wx * xz;
        own(SPREAD + 4, k) = vy * hy + wz * xy - wx * yz;
        own(SPREAD + 5, k) = vy * hz + wz * xz - wx * zz;
        own(SPREAD + 6, k) = vz * hx + wx * xy - wy * xx;
        own(SPREAD + 7, k) = vz * hy + wx * yy - wy * xy;
        own(SPREAD + 8, k) = vz * hz + wx * yz - wy * xz;
    }
}

/// Fill inertia, force, L and N of all links for the motion that was placed.
inline auto links(auto work, auto parents, auto parameters, auto room) {
    for (Index j = 0; j < parents.shape(0); ++j) {
        auto own = work(j + 1);
        newton_euler::inertia(own, parameters(j), room.from(TURNED));
        newton_euler::inertial_force(own, parameters(j, 0), room.from(MOMENTUM));
        derivatives::spread(own, room.from(MOMENTUM));
    }
}

/// Add to a link what the spin of a rotor gives to its moment and to N.
inline auto spinning(auto own, auto room) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto half = 0.5 * room(rotors::SPIN, k);
        auto x = half * room(rotors::LINE, k);
        auto y = half * room(rotors::LINE + 1, k);
        auto z = half * room(rotors::LINE + 2, k);
        own(SPREAD + 1, k) -= z;
        own(SPREAD + 2, k) += y;
        own(SPREAD + 3, k) += z;
        own(SPREAD + 5, k) -= x;
        own(SPREAD + 6, k) -= y;
        own(SPREAD + 7, k) += x;
    }
    for (Index row = 0; row < 3; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            own(newton_euler::MOMENT + row, k) += room(rotors::DRAG + row, k);
        }
    }
}

/// Fill BACK, three rows, with the velocity of the axis of a rotor.
inline auto turning(auto own, auto room) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = room(rotors::LINE, k);
        auto y = room(rotors::LINE + 1, k);
        auto z = room(rotors::LINE + 2, k);
        auto wx = own(newton_euler::VEL, k);
        auto wy = own(newton_euler::VEL + 1, k);
        auto wz = own(newton_euler::VEL + 2, k);
        room(rotors::BACK, k) = wy * z - wz * y;
        room(rotors::BACK + 1, k) = wz * x - wx * z;
        room(rotors::BACK + 2, k) = wx * y - wy * x;
    }
}

/// Add to ``rows`` (4, LANES) what a joint and the drive of a rotor do to each other.
inline auto drive_row(auto own, auto share, auto room, auto rows) {
    auto [by_position, by_velocity, back, inertia] = rows;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = room(rotors::LINE, k);
        auto y = room(rotors::LINE + 1, k);
        auto z = room(rotors::LINE + 2, k);
        auto u = room(rotors::BACK, k);
        auto v = room(rotors::BACK + 1, k);
        auto w = room(rotors::BACK + 2, k);
        auto turned = own(newton_euler::AXIS, k) * u + own(newton_euler::AXIS + 1, k) * v +
                      own(newton_euler::AXIS + 2, k) * w;
        auto px = own(FIRST_RATE, k);
        auto py = own(FIRST_RATE + 1, k);
        auto pz = own(FIRST_RATE + 2, k);
        by_position(k) += share * (own(SECOND_RATE, k) * x + own(SECOND_RATE + 1, k) * y +
                                   own(SECOND_RATE + 2, k) * z + px * u + py * v + pz * w);
        by_velocity(k) += share * (turned + 2.0 * (px * x + py * y + pz * z));
        back(k) += share * turned;
        inertia(k) +=
            share * (own(newton_euler::AXIS, k) * x + own(newton_euler::AXIS + 1, k) * y +
                     own(newton_euler::AXIS + 2, k) * z);
    }
}

/// Add rotors to their links, and to ``out`` (3, N, N, LANES) what links and drives share.
///
/// ``motion`` are v and a (N, LANES) of the coordinates. What a rotor turns with comes after the
/// joints that carry it: of the inertia the lower triangle is filled.
inline auto rotors(auto work, auto parents, auto rotors, auto motion, auto room, auto out) {
    auto [unused0, carriers, axes, motions] = rotors;
    auto [v, a] = motion;
    for (Index r = 0; r < carriers.shape(0); ++r) {
        auto own = work(carriers(r) + 1);
        rotors::line(own, axes(r), room);
        rotors::spin(motions(r), v, a, room);
        rotors::drag(own, room);
        derivatives::spinning(own, room);
        derivatives::turning(own, room);
        Index j = carriers(r);
        while (j >= 0) {
            for (Index i = 0; i < motions.shape(1); ++i) {
                auto share = motions(r, i);
                if (share != 0.0) {
                    derivatives::drive_row(
                        work(j + 1), share, room,
                        std::make_tuple(out(BY_POSITION, i, j), out(BY_VELOCITY, i, j),
                                        out(BY_VELOCITY, j, i), out(BY_ACCELERATION, i, j)));
                }
            }
            j = parents(j);
        }
    }
}

/// Fill ``out`` (3, LANES) with the angular part of C^T S; its linear part is zero.
inline auto returned(auto own, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = own(newton_euler::AXIS, k);
        auto y = own(newton_euler::AXIS + 1, k);
        auto z = own(newton_euler::AXIS + 2, k);
        auto u = own(newton_euler::AXIS + 3, k);
        auto v = own(newton_euler::AXIS + 4, k);
        auto w = own(newton_euler::AXIS + 5, k);
        auto lx = own(LINEAR, k);
        auto ly = own(LINEAR + 1, k);
        auto lz = own(LINEAR + 2, k);
        auto a = own(SPREAD, k);
        auto b = own(SPREAD + 4, k);
        auto c = own(SPREAD + 8, k);
        out(0, k) = 2.0 * (ly * w - lz * v + (b + c) * x - own(SPREAD + 3, k) * y -
                           own(SPREAD + 6, k) * z);
        out(1, k) = 2.0 * (lz * u - lx * w - own(SPREAD + 1, k) * x + (a + c) * y -
                           own(SPREAD + 7, k) * z);
        out(2, k) = 2.0 * (lx * v - ly * u - own(SPREAD + 2, k) * x - own(SPREAD + 5, k) * y +
                           (a + b) * z);
    }
}

/// Add C times the motion rows of a link to ``out`` (6, LANES), linear first.
inline auto add_coupled(auto own, auto motion, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = own(motion, k);
        auto y = own(motion + 1, k);
        auto z = own(motion + 2, k);
        auto lx = own(LINEAR, k);
        auto ly = own(LINEAR + 1, k);
        auto lz = own(LINEAR + 2, k);
        auto a = own(SPREAD, k);
        auto b = own(SPREAD + 4, k);
        auto c = own(SPREAD + 8, k);
        out(0, k) += 2.0 * (y * lz - z * ly);
        out(1, k) += 2.0 * (z * lx - x * lz);
        out(2, k) += 2.0 * (x * ly - y * lx);
        out(3, k) += 2.0 * ((b + c) * x - own(SPREAD + 1, k) * y - own(SPREAD + 2, k) * z);
        out(4, k) += 2.0 * ((a + c) * y - own(SPREAD + 3, k) * x - own(SPREAD + 5, k) * z);
        out(5, k) += 2.0 * ((a + b) * z - own(SPREAD + 6, k) * x - own(SPREAD + 7, k) * y);
    }
}

/// Fill CARRIED, RETURNED, FASTER and FARTHER of a composite body.
inline auto columns(auto own, auto mass, auto room) {
    auto faster = room.from(FASTER);
    auto farther = room.from(FARTHER);
    newton_euler::wrench(own, newton_euler::AXIS, mass, room.from(CARRIED));
    derivatives::returned(own, room.from(RETURNED));
    newton_euler::wrench(own, FIRST_RATE, mass, faster);
    for (Index row = 0; row < 6; ++row) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            faster(row, k) *= 2.0;
        }
    }
    derivatives::add_coupled(own, newton_euler::AXIS, faster);
    newton_euler::wrench(own, SECOND_RATE, mass, farther);
    derivatives::add_coupled(own, FIRST_RATE, farther);
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = own(newton_euler::AXIS, k);
        auto y = own(newton_euler::AXIS + 1, k);
        auto z = own(newton_euler::AXIS + 2, k);
        auto u = own(newton_euler::AXIS + 3, k);
        auto v = own(newton_euler::AXIS + 4, k);
        auto w = own(newton_euler::AXIS + 5, k);
        auto fx = own(newton_euler::FORCE, k);
        auto fy = own(newton_euler::FORCE + 1, k);
        auto fz = own(newton_euler::FORCE + 2, k);
        auto nx = own(newton_euler::MOMENT, k);
        auto ny = own(newton_euler::MOMENT + 1, k);
        auto nz = own(newton_euler::MOMENT + 2, k);
        farther(0, k) += y * fz - z * fy;
        farther(1, k) += z * fx - x * fz;
        farther(2, k) += x * fy - y * fx;
        farther(3, k) += y * nz - z * ny + v * fz - w * fy;
        farther(4, k) += z * nx - x * nz + w * fx - u * fz;
        farther(5, k) += x * ny - y * nx + u * fy - v * fx;
    }
}

/// Add the derivatives of the effort of a joint by the motion of one that carries it.
inline auto add_row(auto own, auto room, auto by_position, auto by_velocity) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto fx = room(CARRIED, k);
        auto fy = room(CARRIED + 1, k);
        auto fz = room(CARRIED + 2, k);
        auto nx = room(CARRIED + 3, k);
        auto ny = room(CARRIED + 4, k);
        auto nz = room(CARRIED + 5, k);
        auto a = room(RETURNED, k);
        auto b = room(RETURNED + 1, k);
        auto c = room(RETURNED + 2, k);
        auto px = own(FIRST_RATE, k);
        auto py = own(FIRST_RATE + 1, k);
        auto pz = own(FIRST_RATE + 2, k);
        by_position(k) += a * px + b * py + c * pz + nx * own(SECOND_RATE, k) +
                          ny * own(SECOND_RATE + 1, k) + nz * own(SECOND_RATE + 2, k) +
                          fx * own(SECOND_RATE + 3, k) + fy * own(SECOND_RATE + 4, k) +
                          fz * own(SECOND_RATE + 5, k);
        auto rate = nx * px + ny * py + nz * pz + fx * own(FIRST_RATE + 3, k);
        rate += fy * own(FIRST_RATE + 4, k) + fz * own(FIRST_RATE + 5, k);
        by_velocity(k) += a * own(newton_euler::AXIS, k) + b * own(newton_euler::AXIS + 1, k) +
                          c * own(newton_euler::AXIS + 2, k) + 2.0 * rate;
    }
}

/// Add those of the effort of the carrying joint by the motion of what it carries.
///
/// ``into``: rows (LANES,) by position, by velocity, and of the inertia.
inline auto add_column(auto own, auto room, auto into) {
    auto [by_position, by_velocity, inertia] = into;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = own(newton_euler::AXIS, k);
        auto y = own(newton_euler::AXIS + 1, k);
        auto z = own(newton_euler::AXIS + 2, k);
        auto u = own(newton_euler::AXIS + 3, k);
        auto v = own(newton_euler::AXIS + 4, k);
        auto w = own(newton_euler::AXIS + 5, k);
        by_position(k) += u * room(FARTHER, k) + v * room(FARTHER + 1, k) +
                          w * room(FARTHER + 2, k) + x * room(FARTHER + 3, k) +
                          y * room(FARTHER + 4, k) + z * room(FARTHER + 5, k);
        by_velocity(k) += u * room(FASTER, k) + v * room(FASTER + 1, k) + w * room(FASTER + 2, k) +
                          x * room(FASTER + 3, k) + y * room(FASTER + 4, k) +
                          z * room(FASTER + 5, k);
        inertia(k) += u * room(CARRIED, k) + v * room(CARRIED + 1, k) + w * room(CARRIED + 2, k) +
                      x * room(CARRIED + 3, k) + y * room(CARRIED + 4, k) +
                      z * room(CARRIED + 5, k);
    }
}

/// Add the derivatives of all links to ``out`` (3, N, N, LANES), of the inertia below as above.
///
/// Sums inertia, force, L and N towards the base, so that FORCE and MOMENT are then what each
/// joint carries.
inline auto collect(auto work, auto parents, auto mass, auto room, auto out) {
    Index i;
    for (Index j = parents.shape(0) - 1; j > -1; --j) {
        auto own = work(j + 1);
        derivatives::columns(own, mass(j), room);
        i = j;
        while (i >= 0) {
            derivatives::add_column(work(i + 1), room,
                                    std::make_tuple(out(BY_POSITION, i, j), out(BY_VELOCITY, i, j),
                                                    out(BY_ACCELERATION, j, i)));
            if (i != j) {
                derivatives::add_row(work(i + 1), room, out(BY_POSITION, j, i),
                                     out(BY_VELOCITY, j, i));
            }
            i = parents(i);
        }
        if (parents(j) >= 0) {
            auto parent = work(parents(j) + 1);
            newton_euler::accumulate(parent, own, newton_euler::MC, 9);
            newton_euler::accumulate(parent, own, newton_euler::FORCE, 6);
            newton_euler::accumulate(parent, own, LINEAR, 12);
            mass(parents(j)) += mass(j);
        }
    }
    for (Index j = 0; j < out.shape(1); ++j) {
        for (Index i = 0; i < j; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                out(BY_ACCELERATION, i, j, k) = out(BY_ACCELERATION, j, i, k);
            }
        }
    }
}

/// Add the slopes of the springs at the joints to ``out`` (N, N, LANES).
inline auto springs(auto work, auto parameters, auto out) {
    if (parameters.shape(1) > newton_euler::SPRING) {
        for (Index j = 0; j < parameters.shape(0); ++j) {
            auto sine = parameters(j, newton_euler::SPRING);
            auto cosine = parameters(j, newton_euler::SPRING + 1);
            auto x = parameters(j, newton_euler::SPRING + 2);
            auto y = parameters(j, newton_euler::SPRING + 3);
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                auto s = work(j + 1, newton_euler::TRIG, k);
                auto c = work(j + 1, newton_euler::TRIG + 1, k);
                auto square = 1.0 + x * x + y * y - 2.0 * (x * c - y * s);
                auto turned = (sine * s + cosine * c) * (x * s + y * c) / square;
                out(j, j, k) += (sine * c - cosine * s - turned) / std::sqrt(square);
            }
        }
    }
}

/// Fill ``effort`` (n, LANES) with that of the links whose forces were summed.
inline auto efforts(auto work, auto effort) {
    for (Index j = 0; j < effort.shape(0); ++j) {
        newton_euler::project(work(j + 1).from(newton_euler::AXIS),
                              work(j + 1).from(newton_euler::FORCE), effort(j));
    }
}

/// Fill the slopes (LANES,) of the friction of axis ``i`` by its speed and by its load.
inline auto slopes(auto terms, auto i, auto speed, auto load, auto rows) {
    auto [by_speed, by_load] = rows;
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        by_speed(k) = by_load(k) = 0.0;
    }
    for (Index e = 0; e < terms.shape(0); ++e) {
        if (terms(e, friction::ROW) == i) {
            auto weight = terms(e, friction::WEIGHT);
            auto grows = terms(e, friction::LOAD);
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                auto [value, rise] = friction::tangent(terms(e), speed(k));
                by_speed(k) += (weight + grows * std::abs(load(k))) * rise;
                by_load(k) += grows * sign(load(k)) * value;
            }
        }
    }
}

/// Add to ``out`` (N, N, LANES) what one axis adds by its speed.
inline auto damped(auto axis, auto by_speed, auto out) {
    for (Index j = 0; j < axis.shape(0); ++j) {
        for (Index h = 0; h < axis.shape(0); ++h) {
            auto share = axis(j) * axis(h);
            if (share != 0.0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    out(j, h, k) += share * by_speed(k);
                }
            }
        }
    }
}

/// Fill ``out`` (LANES,) with ``shares`` (m,) @ ``rows`` (m, LANES).
inline auto sum_rows(auto shares, auto rows, auto out) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        out(k) = 0.0;
    }
    for (Index j = 0; j < shares.shape(0); ++j) {
        auto share = shares(j);
        if (share != 0.0) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                out(k) += share * rows(j, k);
            }
        }
    }
}

/// Add to ``out`` (N, N, LANES) what one axis adds by its load, with ``slopes`` of efforts.
inline auto pressed(auto axis, auto transmission, auto by_load, auto slopes, auto out,
                    auto slope) {
    for (Index h = 0; h < slopes.shape(1); ++h) {
        derivatives::sum_rows(transmission, slopes.column(h), slope);
        for (Index j = 0; j < axis.shape(0); ++j) {
            auto share = axis(j);
            if (share != 0.0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    out(j, h, k) += share * by_load(k) * slope(k);
                }
            }
        }
    }
}

/// Add the friction of all axes at velocity ``v`` (N, LANES) to ``out``.
inline auto friction(auto friction, auto v, auto loads, auto lines, auto out) {
    auto [axes, unused0, terms, transmission, unused1] = friction;
    auto speed = lines(0);
    auto load = lines(1);
    auto by_speed = lines(2);
    auto by_load = lines(3);
    auto slope = lines(4);
    auto [effort, slopes] = loads;
    for (Index i = 0; i < axes.shape(0); ++i) {
        derivatives::sum_rows(axes(i), v, speed);
        load = 0.0;
        if (transmission.shape(0) > 0) {
            derivatives::sum_rows(transmission(i), effort, load);
        }
        derivatives::slopes(terms, i, speed, load, std::make_tuple(by_speed, by_load));
        derivatives::damped(axes(i), by_speed, out(BY_VELOCITY));
        if (transmission.shape(0) > 0) {
            for (Index channel = 0; channel < 3; ++channel) {
                derivatives::pressed(axes(i), transmission(i), by_load, slopes(channel),
                                     out(channel), slope);
            }
        }
    }
}

/// Take velocity and acceleration of a tile, and what no state changes.
inline auto begin(auto inputs, auto first, auto used, auto motion, auto straight, auto out) {
    auto [v, a] = motion;
    for (Index j = 0; j < v.shape(0); ++j) {
        for (Index k = 0; k < used; ++k) {
            v(j, k) = std::get<1>(inputs)(first + k, j);
            a(j, k) = std::get<2>(inputs)(first + k, j);
        }
    }
    for (Index channel = 0; channel < 3; ++channel) {
        for (Index i = 0; i < v.shape(0); ++i) {
            for (Index j = 0; j < v.shape(0); ++j) {
                out(channel, i, j) = straight(channel, i, j);
            }
        }
    }
}

/// Write a matrix of a tile into ``out`` (K, N, N).
inline auto put(auto tile, auto first, auto used, auto out) {
    for (Index i = 0; i < tile.shape(0); ++i) {
        for (Index j = 0; j < tile.shape(1); ++j) {
            for (Index k = 0; k < used; ++k) {
                out(first + k, i, j) = tile(i, j, k);
            }
        }
    }
}

/// Fill ``outputs``, derivatives (K, N, N) of the effort by ``inputs`` q, qd, qdd (K, N).
///
/// ``tree``: geometry, parents, gravity; ``links``: parameters (n, 10) and rotors as of
/// `rotors`; ``straight`` (3, N, N): constant stiffness, damping, inertia; ``friction``:
/// axes (a, N), what is in ``straight`` already, terms without a past (t, COLUMNS), transmission
/// (a, n) and links (n, 10) of the load, (0, ..) where nothing depends on it.
inline auto inverse_derivatives(auto tree, auto links, auto straight, auto friction, auto inputs,
                                auto outputs) {
    const Scope scope;
    auto [geometry, parents, gravity] = tree;
    auto [parameters, rotors] = links;
    Index n = parents.shape(0);
    Index count = straight.shape(1);
    auto work = new_zeros<double, 3, LANES>(n + 1, LINK_ROWS, LANES);
    auto room = new_array<double, 2, LANES>(SCRATCH, LANES);
    auto out = new_array<double, 4, LANES>(3, count, count, LANES);
    auto spin = new_array<double, 2, LANES>(rotors::ROOM + 2, LANES);
    auto v = new_zeros<double, 2, LANES>(count, LANES);
    auto a = new_zeros<double, 2, LANES>(count, LANES);
    auto lines = new_array<double, 2, LANES>(5, LANES);
    auto load = new_zeros<double, 2, LANES>(n, LANES);
    auto slopes = new_array<double, 4, LANES>(3, n, n, LANES);
    newton_euler::base(work, gravity);
    for (Index first = 0; first < std::get<0>(inputs).shape(0); first += LANES) {
        Index used = newton_euler::forward_pass(work, parents, geometry, inputs, first);
        derivatives::begin(inputs, first, used, std::make_tuple(v, a), straight, out);
        derivatives::rates(work, parents);
        for (Index own = (std::get<3>(friction).shape(0) > 0 ? 0 : 1); own < 2;
             ++own) {  // the links of the load first
            auto bodies = own ? parameters : std::get<4>(friction);
            auto found = own ? out : slopes;
            derivatives::links(work, parents, bodies, room);
            if (own) {
                derivatives::springs(work, parameters, out(BY_POSITION));
                derivatives::rotors(work, parents, rotors, std::make_tuple(v, a), spin, out);
            } else {
                slopes = 0.0;
            }
            derivatives::collect(work, parents, column_of(bodies, 0), room, found);
            if (!own) {
                derivatives::efforts(work, load);
            }
        }
        derivatives::friction(friction, v, std::make_tuple(load, slopes), lines, out);
        Index channel = 0;
        for (auto output : {std::get<0>(outputs), std::get<1>(outputs), std::get<2>(outputs)}) {
            derivatives::put(out(channel++), first, used, output);
        }
    }
}

/// Take the pivot row off another, whose column ``p`` then is that of the inverse.
inline auto clear(auto row, auto p, auto pivot_row, auto factor) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        factor(k) = row(p, k);
        row(p, k) = 0.0;
    }
    for (Index j = 0; j < row.shape(0); ++j) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            row(j, k) -= factor(k) * pivot_row(j, k);
        }
    }
}

/// Invert ``matrix`` (N, N, LANES) in place; ``pivots`` gets the least pivot.
///
/// Gauss and Jordan's elimination without exchange of rows: the inertia is positive definite, and
/// what friction adds to it is small.
inline auto invert(auto matrix, auto pivots, auto factor) {
    Index count = matrix.shape(0);
    for (Index p = 0; p < count; ++p) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            auto pivot = matrix(p, p, k);
            pivots(k) = p == 0 ? pivot : min_of(pivots(k), pivot);
            factor(k) = 1.0 / pivot;
            matrix(p, p, k) = 1.0;
        }
        for (Index j = 0; j < count; ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                matrix(p, j, k) *= factor(k);
            }
        }
        for (Index i = 0; i < count; ++i) {
            if (i != p) {
                derivatives::clear(matrix(i), p, matrix(p), factor);
            }
        }
    }
}

/// Read a matrix of a tile from ``source`` (K, N, N).
inline auto get(auto source, auto first, auto used, auto tile) {
    for (Index i = 0; i < tile.shape(0); ++i) {
        for (Index j = 0; j < tile.shape(1); ++j) {
            for (Index k = 0; k < used; ++k) {
                tile(i, j, k) = source(first + k, i, j);
            }
        }
    }
}

/// Fill ``product`` (N, N, LANES) with minus ``inverse`` @ ``right``.
inline auto solve(auto inverse, auto right, auto product) {
    for (Index i = 0; i < inverse.shape(0); ++i) {
        for (Index j = 0; j < inverse.shape(0); ++j) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                product(i, j, k) = 0.0;
            }
            for (Index h = 0; h < inverse.shape(0); ++h) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    product(i, j, k) -= inverse(i, h, k) * right(h, j, k);
                }
            }
        }
    }
}

/// Turn derivatives (K, N, N) of the effort, in place, into those of the acceleration.
///
/// By position and velocity, and by effort in place of acceleration. ``pivots`` (K,) as of
/// `forward_dynamics`.
inline auto solved_derivatives(auto outputs, auto pivots) {
    const Scope scope;
    const Index samples = std::get<2>(outputs).shape(0);
    const Index count = std::get<2>(outputs).shape(1);
    auto inverse = new_ones<double, 3, LANES>(count, count, LANES);
    auto right = new_zeros<double, 3, LANES>(count, count, LANES);
    auto product = new_array_like(right);
    auto least = new_array<double, 1, LANES>(LANES);
    auto factor = new_array<double, 1, LANES>(LANES);
    for (Index first = 0; first < samples; first += LANES) {
        Index used = min_of(LANES, samples - first);
        derivatives::get(std::get<BY_ACCELERATION>(outputs), first, used, inverse);
        derivatives::invert(inverse, least, factor);
        for (Index k = 0; k < used; ++k) {
            pivots(first + k) = least(k);
        }
        for (auto output : {std::get<BY_POSITION>(outputs), std::get<BY_VELOCITY>(outputs)}) {
            derivatives::get(output, first, used, right);
            derivatives::solve(inverse, right, product);
            derivatives::put(product, first, used, output);
        }
        derivatives::put(inverse, first, used, std::get<BY_ACCELERATION>(outputs));
    }
}

}  // namespace derivatives
