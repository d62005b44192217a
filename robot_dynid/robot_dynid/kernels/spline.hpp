// Cubic splines through many columns over the same instants.

namespace spline {

// columns that go side by side
constexpr Index SIDE = 8;

/// Fill ``place`` (M,), the stretches that ``asked`` (M,) are in, and ``weights`` (M, 3).
///
/// These are of the rise over the stretch, and of the slopes where it begins and ends.
inline auto places(auto known, auto step, auto asked, auto place, auto weights) {
    Index i = 0;
    for (Index m = 0; m < asked.shape(0); ++m) {  // those that are asked are mostly in order, too
        while (i < step.shape(0) - 1 && known(i + 1) < asked(m)) {
            i += 1;
        }
        while (i > 0 && known(i) >= asked(m)) {
            i -= 1;
        }
        auto x = asked(m) - known(i);
        auto u = x / step(i);
        place(m) = i;
        weights(m, 0) = u * u * (3.0 - 2.0 * u);
        weights(m, 1) = x * (1.0 - u) * (1.0 - u);
        weights(m, 2) = x * u * (u - 1.0);
    }
}

/// Fill ``slope`` (N, SIDE) of the splines through ``y`` (N, SIDE).
inline auto slopes(auto step, auto y, auto slope) {
    const Scope scope;
    Index last = step.shape(0);
    auto begin = step(0) + step(1);
    auto end = step(last - 2) + step(last - 1);
    auto share = new_array<double, 1, 0>(last);
    share(0) = begin / step(1);
    double right;
#pragma GCC ivdep
    for (Index k = 0; k < SIDE; ++k) {
        right = (step(0) + 2.0 * begin) * step(1) / step(0) * (y(1, k) - y(0, k)) +
                square(step(0)) / step(1) * (y(2, k) - y(1, k));
        slope(0, k) = right / begin / step(1);
    }
    double inverse;
    for (Index i = 1; i < last; ++i) {
        inverse = 1.0 / (2.0 * (step(i - 1) + step(i)) - step(i) * share(i - 1));
        share(i) = step(i - 1) * inverse;
        auto before = 3.0 * step(i) / step(i - 1);
        auto after = 3.0 * step(i - 1) / step(i);
#pragma GCC ivdep
        for (Index k = 0; k < SIDE; ++k) {
            right = before * (y(i, k) - y(i - 1, k)) + after * (y(i + 1, k) - y(i, k));
            slope(i, k) = (right - step(i) * slope(i - 1, k)) * inverse;
        }
    }
    inverse = 1.0 / (step(last - 2) - end * share(last - 1));
#pragma GCC ivdep
    for (Index k = 0; k < SIDE; ++k) {
        right = square(step(last - 1)) / step(last - 2) * (y(last - 1, k) - y(last - 2, k)) +
                (2.0 * end + step(last - 1)) * step(last - 2) / step(last - 1) *
                    (y(last, k) - y(last - 1, k));
        slope(last, k) = (right / end - end * slope(last - 1, k)) * inverse;
    }
    for (Index i = last - 1; i > -1; --i) {
#pragma GCC ivdep
        for (Index k = 0; k < SIDE; ++k) {
            slope(i, k) -= share(i) * slope(i + 1, k);
        }
    }
}

/// Fill ``out`` (k, M) with the cubic splines through ``columns`` (k, N) at ``asked`` (M,).
///
/// ``columns`` are given at the instants ``known`` (N,), N at least 4, in order. Not a knot next
/// to either end.
/// Source: de Boor 2001, A practical guide to splines, chapter IV.
inline auto cubic_spline(auto known, auto columns, auto asked, auto out) {
    const Scope scope;
    Index count = known.shape(0);
    auto step = differences(known);
    auto place = new_array<Index, 1, 0>(asked.shape(0));
    auto weights = new_array<double, 2, 3>(asked.shape(0), 3);
    spline::places(known, step, asked, place, weights);
    auto y = new_zeros<double, 2, SIDE>(count, SIDE);
    auto slope = new_array<double, 2, SIDE>(count, SIDE);
    for (Index first = 0; first < columns.shape(0); first += SIDE) {
        Index used = min_of(SIDE, columns.shape(0) - first);
        Index i;
        for (Index k = 0; k < used; ++k) {
            for (Index i = 0; i < count; ++i) {
                y(i, k) = columns(first + k, i);
            }
        }
        spline::slopes(step, y, slope);
        for (Index k = 0; k < used; ++k) {
            for (Index m = 0; m < asked.shape(0); ++m) {
                i = place(m);
                out(first + k, m) = y(i, k) + weights(m, 0) * (y(i + 1, k) - y(i, k)) +
                                    weights(m, 1) * slope(i, k) + weights(m, 2) * slope(i + 1, k);
            }
        }
    }
}

}  // namespace spline
