// Effort and inertia of rotors; work arrays as of `newton_euler`.
//
// Rotors are (inertia (N, N), carriers (m,), axes (m, 3), motions (m, N)), see `rotors.Rotors`. The
// links must have been placed, which `forward_pass` does.

namespace rotors {

// rows of the room to work: axis in the base frame, torque on the link, that on the motor, spin
// and its rate, what of it acts on a joint
constexpr Index LINE = 0, DRAG = 3, BACK = 6, SPIN = 7, RATE = 8, SHARE = 9, ROOM = 10;

/// Fill LINE with a vector of the link in base coordinates.
inline auto line(auto own, auto axis, auto room) {
    auto x = axis(0);
    auto y = axis(1);
    auto z = axis(2);
    for (Index i = 0; i < 3; ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < LANES; ++k) {
            room(LINE + i, k) = own(3 * i, k) * x + own(3 * i + 1, k) * y + own(3 * i + 2, k) * z;
        }
    }
}

/// Fill SPIN and RATE with the motion of a rotor.
inline auto spin(auto motion, auto v, auto a, auto room) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        room(SPIN, k) = room(RATE, k) = 0.0;
    }
    for (Index j = 0; j < motion.shape(0); ++j) {
        auto share = motion(j);
        if (share != 0.0) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                room(SPIN, k) += share * v(j, k);
                room(RATE, k) += share * a(j, k);
            }
        }
    }
}

/// Fill DRAG and BACK from the motion of the link that carries the rotor.
inline auto drag(auto own, auto room) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        auto x = room(LINE, k);
        auto y = room(LINE + 1, k);
        auto z = room(LINE + 2, k);
        auto wx = own(newton_euler::VEL, k);
        auto wy = own(newton_euler::VEL + 1, k);
        auto wz = own(newton_euler::VEL + 2, k);
        auto speed = room(SPIN, k);
        auto rate = room(RATE, k);
        room(DRAG, k) = rate * x + speed * (wy * z - wz * y);
        room(DRAG + 1, k) = rate * y + speed * (wz * x - wx * z);
        room(DRAG + 2, k) = rate * z + speed * (wx * y - wy * x);
        room(BACK, k) = x * own(newton_euler::ACC, k) + y * own(newton_euler::ACC + 1, k) +
                        z * own(newton_euler::ACC + 2, k);
    }
}

/// Fill SHARE with three rows of the room along the rotation of a screw.
inline auto along(auto axis, auto room, auto first) {
#pragma GCC ivdep
    for (Index k = 0; k < LANES; ++k) {
        room(SHARE, k) = axis(0, k) * room(first, k) + axis(1, k) * room(first + 1, k) +
                         axis(2, k) * room(first + 2, k);
    }
}

/// Add ``inertia`` (N, N) times the acceleration (N, LANES) to ``load``.
inline auto reflected(auto inertia, auto a, auto load) {
    for (Index j = 0; j < load.shape(0); ++j) {
        for (Index i = 0; i < load.shape(0); ++i) {
            auto share = inertia(j, i);
            if (share != 0.0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    load(j, k) += share * a(i, k);
                }
            }
        }
    }
}

/// Add the coupling of rotors with links to ``load`` (N, LANES).
///
/// ``motion`` are v and a (N, LANES).
inline auto add_effort(auto work, auto parents, auto rotors, auto motion, auto room, auto load) {
    auto [unused0, carriers, axes, motions] = rotors;
    auto [v, a] = motion;
    for (Index r = 0; r < carriers.shape(0); ++r) {
        auto own = work(carriers(r) + 1);
        rotors::line(own, axes(r), room);
        rotors::spin(motions(r), v, a, room);
        rotors::drag(own, room);
        Index j;
        for (Index j = 0; j < load.shape(0); ++j) {
            auto share = motions(r, j);
            if (share != 0.0) {
#pragma GCC ivdep
                for (Index k = 0; k < LANES; ++k) {
                    load(j, k) += share * room(BACK, k);
                }
            }
        }
        j = carriers(r);
        while (j >= 0) {
            rotors::along(work(j + 1).from(newton_euler::AXIS), room, DRAG);
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                load(j, k) += room(SHARE, k);
            }
            j = parents(j);
        }
    }
}

/// Add the inertia of rotors to the lower triangle of ``matrix`` (N, N, LANES).
///
/// What a rotor turns with comes after the joints that carry it.
inline auto add_inertia(auto work, auto parents, auto rotors, auto room, auto matrix) {
    auto [inertia, carriers, axes, motions] = rotors;
    Index i;
    for (Index j = 0; j < matrix.shape(0); ++j) {
        for (Index i = 0; i < j + 1; ++i) {
#pragma GCC ivdep
            for (Index k = 0; k < LANES; ++k) {
                matrix(j, i, k) += inertia(j, i);
            }
        }
    }
    for (Index r = 0; r < carriers.shape(0); ++r) {
        rotors::line(work(carriers(r) + 1), axes(r), room);
        i = carriers(r);
        while (i >= 0) {
            rotors::along(work(i + 1).from(newton_euler::AXIS), room, LINE);
            for (Index j = 0; j < matrix.shape(0); ++j) {
                auto share = motions(r, j);
                if (share != 0.0) {
#pragma GCC ivdep
                    for (Index k = 0; k < LANES; ++k) {
                        matrix(j, i, k) += share * room(SHARE, k);
                    }
                }
            }
            i = parents(i);
        }
    }
}

/// Fill ``out`` (K, N) with the effort of rotors; ``inputs`` are q, qd, qdd (K, N).
inline auto rotor_effort(auto tree, auto rotors, auto inputs, auto out) {
    const Scope scope;
    auto [geometry, parents, gravity] = tree;
    Index count = out.shape(1);
    auto work = new_zeros<double, 3, LANES>(parents.shape(0) + 1, newton_euler::ROWS, LANES);
    auto room = new_array<double, 2, LANES>(ROOM, LANES);
    auto v = new_zeros<double, 2, LANES>(count, LANES);
    auto a = new_zeros<double, 2, LANES>(count, LANES);
    auto load = new_array<double, 2, LANES>(count, LANES);
    newton_euler::base(work, gravity);
    for (Index first = 0; first < out.shape(0); first += LANES) {
        Index used = newton_euler::forward_pass(work, parents, geometry, inputs, first);
        load = 0.0;
        for (Index j = 0; j < count; ++j) {
            for (Index k = 0; k < used; ++k) {
                v(j, k) = std::get<1>(inputs)(first + k, j);
                a(j, k) = std::get<2>(inputs)(first + k, j);
            }
        }
        rotors::reflected(std::get<0>(rotors), a, load);
        rotors::add_effort(work, parents, rotors, std::make_tuple(v, a), room, load);
        for (Index j = 0; j < count; ++j) {
            for (Index k = 0; k < used; ++k) {
                out(first + k, j) = load(j, k);
            }
        }
    }
}

/// Fill ``out`` (K, N, N) with the inertia of rotors at positions ``q`` (K, N).
inline auto rotor_inertia(auto tree, auto rotors, auto q, auto out) {
    const Scope scope;
    auto [geometry, parents, gravity] = tree;
    Index count = out.shape(1);
    auto work = new_zeros<double, 3, LANES>(parents.shape(0) + 1, newton_euler::ROWS, LANES);
    auto room = new_array<double, 2, LANES>(ROOM, LANES);
    auto matrix = new_array<double, 3, LANES>(count, count, LANES);
    newton_euler::base(work, gravity);
    for (Index first = 0; first < out.shape(0); first += LANES) {
        Index used =
            newton_euler::forward_pass(work, parents, geometry, std::make_tuple(q, q, q), first);
        matrix = 0.0;
        rotors::add_inertia(work, parents, rotors, room, matrix);
        for (Index j = 0; j < count; ++j) {
            for (Index i = 0; i < j + 1; ++i) {
                for (Index k = 0; k < used; ++k) {
                    out(first + k, i, j) = out(first + k, j, i) = matrix(j, i, k);
                }
            }
        }
    }
}

}  // namespace rotors
