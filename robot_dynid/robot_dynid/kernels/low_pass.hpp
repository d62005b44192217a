// Zero-phase filter: sections of order two in a row, forward and backward.

namespace low_pass {

// columns filtered side by side
constexpr Index SIDE = 8;

/// Pass ``rows`` (N, SIDE) through a section in place; they have always been as the first.
inline auto through(auto section, auto rows) {
    const Scope scope;
    auto b0 = section(0);
    auto b1 = section(1);
    auto b2 = section(2);
    auto a1 = section(4);
    auto a2 = section(5);
    auto gain = (b0 + b1 + b2) / (1.0 + a1 + a2);
    auto first = new_array<double, 1, SIDE>(SIDE);
    auto second = new_array<double, 1, SIDE>(SIDE);
#pragma GCC ivdep
    for (Index k = 0; k < SIDE; ++k) {
        first(k) = (gain - b0) * rows(0, k);
        second(k) = (b2 - a2 * gain) * rows(0, k);
    }
    for (Index i = 0; i < rows.shape(0); ++i) {
#pragma GCC ivdep
        for (Index k = 0; k < SIDE; ++k) {
            auto x = rows(i, k);
            auto y = b0 * x + first(k);
            first(k) = b1 * x - a1 * y + second(k);
            second(k) = b2 * x - a2 * y;
            rows(i, k) = y;
        }
    }
}

/// Fill ``out`` (k, N) with ``columns`` (k, N), filtered forward and backward.
///
/// ``sections`` (s, 6) are b0, b1, b2, 1, a1, a2 each, direct form II transposed. Either end goes
/// on for ``padding`` samples, turned about itself, and is at rest before.
inline auto zero_phase(auto sections, auto padding, auto columns, auto out) {
    const Scope scope;
    Index count = columns.shape(1);
    auto rows = new_zeros<double, 2, SIDE>(count + 2 * padding, SIDE);
    for (Index begin = 0; begin < columns.shape(0); begin += SIDE) {
        Index used = min_of(SIDE, columns.shape(0) - begin);
        for (Index k = 0; k < used; ++k) {
            auto own = columns(begin + k);
            for (Index i = 0; i < padding; ++i) {
                rows(i, k) = 2.0 * own(0) - own(padding - i);
                rows(padding + count + i, k) = 2.0 * own(count - 1) - own(count - 2 - i);
            }
            for (Index i = 0; i < count; ++i) {
                rows(padding + i, k) = own(i);
            }
        }
        for (Index s = 0; s < sections.shape(0); ++s) {
            low_pass::through(sections(s), rows);
        }
        for (Index s = 0; s < sections.shape(0); ++s) {
            low_pass::through(sections(s), rows.reversed());
        }
        for (Index k = 0; k < used; ++k) {
            for (Index i = 0; i < count; ++i) {
                out(begin + k, i) = rows(padding + i, k);
            }
        }
    }
}

}  // namespace low_pass
