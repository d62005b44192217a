// Coefficients that change slowly: warmth from dissipated power, and what a model leaves over.
//
// On line what is left over is known through the low-pass of the momentum observer, so that columns
// of the coefficients, and what they explained already, pass the same low-pass.

namespace adaptation {

// a coefficient stays within so many of its deviations
constexpr double BOUND = 3.0;
// places of the settings: noise [N^2 m^2 s], the deviations of a left over that is too large, and,
// on line, the speed below which nothing is learnt and the gain of the observer [1/s]
constexpr Index NOISE = 0, GATE = 1, MOVES = 2, GAIN = 3;
// a pause [s] makes one measurement no better
constexpr double LONGEST = 0.1;
// rows of the state of m coefficients: means, room for their gains, and the first of covariances
constexpr Index MEAN = 0, ROOM = 1, COVARIANCE = 2;
// columns of friction
constexpr Index VISCOUS = 0, DRY = 1;
// places of the law of warming of a joint: mean power, then by kind of friction its rise and falls
constexpr Index POWER = 0, RISE = 1, FALLS = 2;
// places of the past of a joint: power and correction of the last state, correction that passed
// the low-pass, deviation of what the coefficients explain; then warmth, then pairs of a column
constexpr Index LAST_POWER = 0, LAST_CORRECTION = 1, SLOW_CORRECTION = 2, DEVIATION = 3, HEAD = 4;

/// Let the ``warmth`` (k,) follow ``power`` for ``step`` [s]; ``rates`` (k,) [1/s].
inline auto warm(auto warmth, auto rates, auto power, auto step) {
    for (Index i = 0; i < warmth.shape(0); ++i) {
        warmth(i) -= std::expm1(-rates(i) * step) * (power - warmth(i));
    }
}

/// Fill ``state`` (2 + m, m) with coefficients of which nothing but ``deviations`` is known.
inline auto begin(auto state, auto deviations) {
    state = 0.0;
    for (Index p = 0; p < deviations.shape(0); ++p) {
        state(COVARIANCE + p, p) = square(deviations(p));
    }
}

/// Let ``step`` [s] pass: means return to zero, variances to those of unknown coefficients.
///
/// ``state`` (2 + m, m): means, room, covariance; ``deviations``, ``rates`` (m,) [1/s].
inline auto forget(auto state, auto deviations, auto rates, auto step) {
    Index count = deviations.shape(0);
    for (Index p = 0; p < count; ++p) {
        auto same = p > 0 && rates(p) == rates(p - 1);  // as all of friction, and all of ripple
        state(ROOM, p) = same ? state(ROOM, p - 1) : std::exp(-rates(p) * step);
        state(MEAN, p) *= state(ROOM, p);
    }
    for (Index p = 0; p < count; ++p) {
        auto keep = state(ROOM, p);
        for (Index q = 0; q < count; ++q) {
            state(COVARIANCE + p, q) *= keep * state(ROOM, q);
        }
        state(COVARIANCE + p, p) += square(deviations(p)) * (1.0 - square(keep));
    }
}

/// Return mean and variance of ``column`` (m,) @ coefficients; room: covariance @ column.
inline auto explain(auto state, auto column) {
    Index count = column.shape(0);
    double mean = 0.0;
    double variance = 0.0;
    state(ROOM) = 0.0;
    for (Index p = 0; p < count; ++p) {
        mean += column(p) * state(MEAN, p);
        for (Index q = 0; q < count; ++q) {
            state(ROOM, q) += column(p) * state(COVARIANCE + p, q);
        }
    }
    for (Index p = 0; p < count; ++p) {
        variance += column(p) * state(ROOM, p);
    }
    return std::make_tuple(mean, variance);
}

/// Take ``innovation``, of ``variance`` with its noise, after `explain` of its column.
inline auto learn(auto state, auto deviations, auto innovation, auto variance) {
    Index count = deviations.shape(0);
    for (Index p = 0; p < count; ++p) {
        auto gain = state(ROOM, p) / variance;
        for (Index q = 0; q < count; ++q) {
            state(COVARIANCE + p, q) -= gain * state(ROOM, q);
        }
        auto most = BOUND * deviations(p);
        state(MEAN, p) = min_of(max_of(state(MEAN, p) + gain * innovation, -most), most);
    }
}

/// Fill ``out`` (N, k) with the warmth along ``power`` (N, 2), beginning with ``warmth`` (k,).
///
/// The power is that of viscous and of dry friction without changes, ``law`` (2, 1 + k) has their
/// rises and falls. ``steps`` (N,) [s] since the sample before, ``rates`` (k,) [1/s]. Within a
/// step the power is the mean of both ends.
inline auto follow_warmth(auto power, auto law, auto steps, auto rates, auto warmth, auto out) {
    double last = 0.0;
    for (Index i = 0; i < steps.shape(0); ++i) {
        double now = 0.0;  // of friction as warm as it was
        for (Index kind = 0; kind < 2; ++kind) {
            auto scale = 1.0 + law(kind, 0);
            for (Index p = 0; p < warmth.shape(0); ++p) {
                scale -= law(kind, 1 + p) * warmth(p);
            }
            now += scale * power(i, kind);
        }
        now = max_of(now, 0.0);
        if (i > 0) {
            adaptation::warm(warmth, rates, 0.5 * (last + now), steps(i));
        }
        last = now;
        out(i) = warmth;
    }
}

/// Fill ``means`` (N, m) with coefficients from what was ``left`` before each sample.
///
/// ``columns`` (N, m): what a coefficient adds at one; ``left`` (2, N): what was left over, and
/// the steps [s] since the sample before, of which zero begins anew; ``prior`` (2, m): deviations
/// and rates [1/s]; ``settings`` see NOISE, GATE; ``state`` (2 + m, m) is carried on. What is NaN,
/// or off by too much, is not learnt from.
inline auto follow_coefficients(auto columns, auto left, auto prior, auto settings, auto state,
                                auto means) {
    auto deviations = prior(0);
    auto rates = prior(1);
    for (Index i = 0; i < columns.shape(0); ++i) {
        auto step = left(1, i);
        if (step > 0.0) {
            adaptation::forget(state, deviations, rates, step);
        } else {
            adaptation::begin(state, deviations);
        }
        for (Index p = 0; p < deviations.shape(0); ++p) {
            means(i, p) = state(MEAN, p);
        }
        if (step > 0.0) {
            auto [mean, variance] = adaptation::explain(state, columns(i));
            variance += settings(NOISE) / min_of(step, LONGEST);
            auto innovation = left(0, i) - mean;
            if (square(innovation) < square(settings(GATE)) * variance) {
                adaptation::learn(state, deviations, innovation, variance);
            }
        }
    }
}

/// Take columns and correction through the low-pass of the observer, of ``gain`` [1/s].
inline auto pass(auto past, auto first, auto column, auto slow, auto gain, auto step) {
    auto share = -std::expm1(-gain * step);
    for (Index p = 0; p < column.shape(0); ++p) {
        auto last = first + 2 * p;
        auto low = first + 2 * p + 1;
        if (step > 0.0) {
            past(low) += share * (0.5 * (past(last) + column(p)) - past(low));
        } else {
            past(low) = 0.0;
        }
        past(last) = column(p);
    }
    if (step > 0.0) {
        auto mean = 0.5 * (past(LAST_CORRECTION) + slow);
        past(SLOW_CORRECTION) += share * (mean - past(SLOW_CORRECTION));
    } else {
        past(SLOW_CORRECTION) = 0.0;
    }
    past(LAST_CORRECTION) = slow;
}

/// Return the torque that warming and slow coefficients add to the friction of joint ``j``.
///
/// ``column`` (2,): viscous and dry friction of its law; ``velocity`` of the joint. See
/// `adaptation.on_line` for ``tables`` and ``memory``. Fills the scales of both kinds of friction.
inline auto corrected(auto tables, auto memory, auto j, auto column, auto velocity, auto step) {
    auto [rates, laws, prior, settings] = tables;
    auto [pasts, states, scales] = memory;
    auto past = pasts(j);
    Index count = rates.shape(1);
    auto begins = step <= 0.0;
    double actual = 0.0;  // friction as warm as it was
    double scale;
    for (Index kind = 0; kind < 2; ++kind) {
        scale = 1.0 + laws(j, kind, RISE);
        for (Index i = 0; i < count; ++i) {
            scale -= laws(j, kind, FALLS + i) * past(HEAD + i);
        }
        actual += scale * column(kind);
    }
    auto power = max_of(actual * velocity, 0.0);
    if (!begins) {
        auto mean = 0.5 * (past(LAST_POWER) + power) / laws(j, 0, POWER);
        for (Index i = 0; i < count; ++i) {
            past(HEAD + i) -= std::expm1(-rates(j, i) * step) * (mean - past(HEAD + i));
        }
        adaptation::forget(states(j), prior(j, 0), prior(j, 1), step);
    }
    past(LAST_POWER) = power;
    double total = 0.0;
    double slow = 0.0;
    for (Index kind = 0; kind < 2; ++kind) {
        scale = laws(j, kind, RISE);
        for (Index i = 0; i < count; ++i) {
            scale -= laws(j, kind, FALLS + i) * past(HEAD + i);
        }
        total += scale * column(kind);
        scales(kind, j) = 1.0 + scale + states(j, MEAN, kind);
    }
    for (Index p = 0; p < column.shape(0); ++p) {
        slow += states(j, MEAN, p) * column(p);
    }
    adaptation::pass(past, HEAD + count, column, slow, settings(j, GAIN), step);
    return total + slow;
}

/// Fill ``column`` (m,) with what passed the low-pass; return the deviation of its torque.
inline auto uncertain(auto tables, auto memory, auto j, auto column) {
    Index first = HEAD + std::get<0>(tables).shape(1);
    auto past = std::get<0>(memory)(j);
    for (Index p = 0; p < column.shape(0); ++p) {
        column(p) = past(first + 2 * p + 1);
    }
    auto [unused0, variance] = adaptation::explain(std::get<1>(memory)(j), column);
    past(DEVIATION) = std::sqrt(max_of(variance, 0.0));
    return past(DEVIATION);
}

/// Learn from the torque from ``outside`` that is none, after `uncertain` of the ``column``.
inline auto take(auto tables, auto memory, auto j, auto column, auto outside, auto step) {
    double mean = 0.0;
    for (Index p = 0; p < column.shape(0); ++p) {
        mean += column(p) * std::get<1>(memory)(j, MEAN, p);
    }
    auto variance = square(std::get<0>(memory)(j, DEVIATION)) +
                    std::get<3>(tables)(j, NOISE) / min_of(step, LONGEST);
    auto innovation = std::get<0>(memory)(j, SLOW_CORRECTION) - outside - mean;
    if (square(innovation) < square(std::get<3>(tables)(j, GATE)) * variance) {
        adaptation::learn(std::get<1>(memory)(j), std::get<2>(tables)(j, 0), innovation, variance);
    }
}

}  // namespace adaptation
