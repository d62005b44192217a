// Monitor of joint states: residual, momentum observer and contact, from one to the next.
//
// The states of a robot are followed one by one or many in a call, with the same result: whatever
// they depend on of the past is kept in arrays of the caller.

namespace monitor {

// rows of the memory: two stages of the low-pass of position, velocity, effort, friction; the
// observer; the shares of slowness and of friction claimed in it; how long contact is about to
// change, in seconds and states; contact
constexpr Index FIRST = 0, SECOND = 4, MOMENTUM = 8, DRIVE = 9, OUTSIDE = 10;
constexpr Index SLOW = 11, CLAIM = 12, SECONDS = 13, STATES = 14, TOUCHED = 15, MEMORY_ROWS = 16;
// rows of a result, each (n,)
constexpr Index PREDICTED = 0, RESIDUAL = 1, EXTERNAL = 2, CLAIMED = 3, THRESHOLD = 4, CONTACT = 5,
                FRICTION = 6, DRY = 7;
constexpr Index VISCOUS_SCALE = 8, DRY_SCALE = 9, RESULT_ROWS = 10;
// rows of the levels of contact, each (n,)
constexpr Index MOVING = 0, HOLDING = 1, SPEED = 2;
// deviations of what slow coefficients explain that a threshold is raised by
constexpr double RAISED = 2.0;
// places of the settings: gain and corner of the low-pass [1/s], and of contact
constexpr Index GAIN = 0, CORNER = 1, RELEASE = 2, DURATION = 3, LEAST = 4;

/// Update MOMENTUM, DRIVE and OUTSIDE, exactly for a drive that changes linearly.
inline auto observe(auto memory, auto p, auto drive, auto gain, auto step) {
    auto share = -std::expm1(-gain * step);
    for (Index j = 0; j < p.shape(0); ++j) {
        if (step > 0.0) {
            auto rate = (p(j) - memory(MOMENTUM, j)) / step;
            auto outside = rate - 0.5 * (memory(DRIVE, j) + drive(j));
            memory(OUTSIDE, j) += share * (outside - memory(OUTSIDE, j));
        } else {
            memory(OUTSIDE, j) = 0.0;
        }
        memory(MOMENTUM, j) = p(j);
        memory(DRIVE, j) = drive(j);
    }
}

/// Update contact, and fill CLAIMED, THRESHOLD and CONTACT of ``result``.
///
/// ``state`` (3, n): velocity, dry friction, by how much thresholds are raised.
inline auto detect(auto memory, auto contact, auto state, auto step, auto result) {
    auto velocity = state(0), dry = state(1), raised = state(2);
    auto [levels, settings] = contact;
    auto share = -std::expm1(-settings(GAIN) * step);
    for (Index j = 0; j < velocity.shape(0); ++j) {
        auto slow = std::abs(velocity(j)) < levels(SPEED, j) ? 1.0 : 0.0;
        if (step > 0.0) {
            memory(SLOW, j) += share * (slow - memory(SLOW, j));
            memory(CLAIM, j) += share * (slow * dry(j) - memory(CLAIM, j));
        } else {
            memory(SLOW, j) = 1.0;
            memory(CLAIM, j) = memory(TOUCHED, j) = 0.0;
        }
        auto threshold = levels(MOVING, j) + levels(HOLDING, j) * memory(SLOW, j) + raised(j);
        auto size = std::abs(memory(OUTSIDE, j) - memory(CLAIM, j));
        auto touched = memory(TOUCHED, j) != 0.0;
        if (step > 0.0 && (touched ? size < settings(RELEASE) * threshold : size > threshold)) {
            memory(SECONDS, j) += step;
            memory(STATES, j) += 1.0;
            if (memory(SECONDS, j) >= settings(DURATION) && memory(STATES, j) >= settings(LEAST)) {
                memory(TOUCHED, j) = touched ? 0.0 : 1.0;
                memory(SECONDS, j) = memory(STATES, j) = 0.0;
            }
        } else {
            memory(SECONDS, j) = memory(STATES, j) = 0.0;
        }
        result(CLAIMED, j) = memory(CLAIM, j);
        result(THRESHOLD, j) = threshold;
        result(CONTACT, j) = memory(TOUCHED, j);
    }
}

/// Update the low-pass; fill ``middle`` (5, n): as `state`, friction, acceleration.
inline auto smooth(auto memory, auto state, auto friction, auto corner, auto step, auto middle) {
    auto share = -std::expm1(-corner * step);
    for (Index j = 0; j < state.shape(1); ++j) {
        for (Index i = 0; i < 4; ++i) {
            auto value = i < 3 ? state(i, j) : friction(j);
            Index first = FIRST + i;
            Index second = SECOND + i;
            if (step > 0.0) {
                auto before = memory(second, j);
                memory(first, j) += share * (value - memory(first, j));
                memory(second, j) += share * (memory(first, j) - before);
                middle(i, j) = 0.5 * (before + memory(second, j));
                if (i == 1) {
                    middle(4, j) = (memory(second, j) - before) / step;
                }
            } else {
                memory(first, j) = memory(second, j) = value;
            }
        }
    }
}

/// Fill PREDICTED and RESIDUAL of ``result`` from the middle of a step.
inline auto compare(auto tree, auto links, auto rotors, auto middle, auto work, auto result) {
    single_state::place(tree, middle(0), middle(1), middle(4), work);
    single_state::effort_of(std::get<1>(tree), links, work, result(PREDICTED));
    single_state::add_rotor_effort(std::get<1>(tree), rotors,
                                   std::make_tuple(middle(1), middle(4)), work, result(PREDICTED));
    for (Index j = 0; j < links.shape(0); ++j) {
        result(PREDICTED, j) += middle(3, j);
        result(RESIDUAL, j) = middle(2, j) - result(PREDICTED, j);
    }
}

/// Add what changes slowly to the friction ``total`` (2, n); ``columns`` (n, 2) by joint.
///
/// ``state``: velocity (n,) and the step.
inline auto adapt(auto friction, auto adaptation, auto state, auto total, auto columns) {
    auto [tables, memory] = adaptation;
    auto [axes, unused0, straight, unused1] = friction;
    auto [velocity, step] = state;
    columns = 0.0;
    for (Index i = 0; i < axes.shape(0); ++i) {
        auto viscous = straight(i, 0) * friction::along(axes(i), velocity);
        auto offset = straight(i, 1);
        for (Index j = 0; j < axes.shape(1); ++j) {
            columns(j, adaptation::VISCOUS) += axes(i, j) * viscous;
            columns(j, adaptation::DRY) -= axes(i, j) * (viscous + offset);
        }
    }
    for (Index j = 0; j < axes.shape(1); ++j) {
        columns(j, adaptation::DRY) += total(0, j);
        total(0, j) += adaptation::corrected(tables, memory, j, columns(j), velocity(j), step);
    }
}

/// Learn slow coefficients of joints that move, unless a contact is there or about to be.
inline auto learn(auto adaptation, auto memory, auto velocity, auto step, auto columns) {
    auto [tables, slow] = adaptation;
    auto free = step > 0.0;
    for (Index j = 0; j < columns.shape(0); ++j) {
        free = free && memory(TOUCHED, j) == 0.0 && memory(SECONDS, j) == 0.0;
    }
    for (Index j = 0; j < columns.shape(0); ++j) {
        if (free && std::abs(velocity(j)) >= std::get<3>(tables)(j, adaptation::MOVES)) {
            adaptation::take(tables, slow, j, columns(j), memory(OUTSIDE, j), step);
        }
    }
}

/// Fill ``results`` (N, RESULT_ROWS, n) of ``states``: position, velocity, effort (N, 3, n),
/// steps (N,) [s] since the state before.
///
/// A step of zero begins anew; there is no residual then, but NaN. Slow changes go on.
inline auto follow(auto model, auto contact, auto memories, auto states, auto results) {
    const Scope scope;
    auto [tree, links, rotors, friction, load_links, slow_tables] = model;
    auto settings = std::get<1>(contact);
    auto [memory, past, slow_memory] = memories;
    auto [inputs, steps] = states;
    Index n = links.shape(0);
    auto work = new_zeros<double, 3, 1>(n + 1, wide::newton_euler::ROWS, 1);
    auto still = new_zeros<double, 1, 0>(n);
    auto load = new_zeros<double, 1, 0>(n);
    auto p = new_array<double, 1, 0>(n);
    auto drive = new_array<double, 1, 0>(n);
    auto total = new_array<double, 2, 0>(2, n);
    auto middle = new_array<double, 2, 0>(5, n);
    auto seen = new_array<double, 2, 0>(3, n);
    auto columns = new_array<double, 2, 2>(n, 2);
    auto adaptation = std::make_tuple(slow_tables, slow_memory);
    auto adapts = std::get<3>(slow_tables).shape(0) > 0;
    for (Index k = 0; k < steps.shape(0); ++k) {
        auto state = inputs(k);
        auto result = results(k);
        auto step = steps(k);
        single_state::place(tree, state(0), state(1), still, work);
        if (load_links.shape(0) > 0) {
            single_state::effort_of(std::get<1>(tree), load_links, work, load);
        }
        friction::friction_torque(friction, state, load, past, step <= 0.0, total);
        result(VISCOUS_SCALE) = 1.0;
        result(DRY_SCALE) = 1.0;
        if (adapts) {
            monitor::adapt(friction, adaptation, std::make_tuple(state(1), step), total, columns);
            const auto pair0 = std::get<2>(slow_memory);
            result(VISCOUS_SCALE) = pair0(0);
            result(DRY_SCALE) = pair0(1);
        }
        single_state::momentum_of(tree, links, work, p, drive);
        single_state::add_rotor_momentum(std::get<1>(tree), rotors, state(1), work,
                                         std::make_tuple(p, drive));
        for (Index j = 0; j < n; ++j) {
            drive(j) += state(2, j) - total(0, j);
        }
        monitor::observe(memory, p, drive, settings(GAIN), step);
        seen(0) = state(1);
        seen(1) = total(1);
        seen(2) = 0.0;
        if (adapts) {
            for (Index j = 0; j < n; ++j) {
                seen(2, j) =
                    RAISED * adaptation::uncertain(slow_tables, slow_memory, j, columns(j));
            }
        }
        monitor::detect(memory, contact, seen, step, result);
        if (adapts) {
            monitor::learn(adaptation, memory, state(1), step, columns);
        }
        result(EXTERNAL) = memory(OUTSIDE);
        result(FRICTION) = total(0);
        result(DRY) = total(1);
        monitor::smooth(memory, state, total(0), settings(CORNER), step, middle);
        if (step > 0.0) {
            monitor::compare(tree, links, rotors, middle, work, result);
        } else {
            result(PREDICTED) = result(RESIDUAL) = NaN;
        }
    }
}

}  // namespace monitor
