// QR decomposition that takes rows as they come.
//
// The triangle R of all rows so far grows by further ones: each reflection meets one row of R only,
// so rows cost the same however they are cut, and nothing is stacked.
// Source: Golub, Van Loan 2013, Matrix computations, sections 5.1 and 6.5.

namespace triangle {

// rows reflected at once: with some fifty columns they stay in the cache next to a core
constexpr Index ROWS = 128;

/// Clear the first ``count`` rows of a table, given as columns ``rows`` (k, m), into R.
inline auto reflect(auto triangle, auto rows, auto count) {
    for (Index j = 0; j < rows.shape(0); ++j) {
        auto own = rows(j);
        double squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (Index i = 0; i < count; ++i) {
            squares += own(i) * own(i);
        }
        if (squares == 0.0) {
            continue;
        }
        auto head = triangle(j, j);
        auto norm = std::sqrt(head * head + squares);
        norm = head > 0.0 ? -norm : norm;
        auto pivot = head - norm;
        triangle(j, j) = norm;
        for (Index c = j + 1; c < rows.shape(0); ++c) {
            auto other = rows(c);
            auto product = pivot * triangle(j, c);
#pragma omp simd reduction(+ : product)
            for (Index i = 0; i < count; ++i) {
                product += own(i) * other(i);
            }
            product /= norm * pivot;
            triangle(j, c) += pivot * product;
#pragma omp simd
            for (Index i = 0; i < count; ++i) {
                other(i) += own(i) * product;
            }
        }
    }
}

/// Grow ``triangle`` R (k, k) by the rows of a table, given as ``columns`` (k, N).
///
/// Afterwards R^T R is what it was, plus columns columns^T.
inline auto add_rows(auto triangle, auto columns) {
    const Scope scope;
    auto work = new_array<double, 2, 0>(columns.shape(0), ROWS);
    for (Index start = 0; start < columns.shape(1); start += ROWS) {
        Index count = min_of(ROWS, columns.shape(1) - start);
        for (Index c = 0; c < columns.shape(0); ++c) {
            work(c).to(count) = columns(c).part(start, start + count);
        }
        triangle::reflect(triangle, work, count);
    }
}

/// Grow triangles by stretches of the equations of one joint.
///
/// ``columns`` (b, N) are those of the parameters, of which the ``active`` (k,) count; behind them
/// stand ones and the ``efforts`` (e, N). Stretch s, from ``first[s]`` up to ``first[s + 1]``,
/// grows ``triangles`` (S, k + 1 + e, k + 1 + e) [s].
inline auto add_equations(auto columns, auto active, auto efforts, auto first, auto triangles) {
    const Scope scope;
    Index k = active.shape(0);
    auto work = new_array<double, 2, 0>(triangles.shape(1), ROWS);
    for (Index s = 0; s < triangles.shape(0); ++s) {
        for (Index start = first(s); start < first(s + 1); start += ROWS) {
            Index count = min_of(ROWS, first(s + 1) - start);
            for (Index c = 0; c < k; ++c) {
                work(c).to(count) = columns(active(c)).part(start, start + count);
            }
            work(k) = 1.0;
            for (Index c = 0; c < efforts.shape(0); ++c) {
                work(k + 1 + c).to(count) = efforts(c).part(start, start + count);
            }
            triangle::reflect(triangles(s), work, count);
        }
    }
}

/// Copy the ``chosen`` columns, scaled to one, and the last one; returns how many are chosen.
///
/// Only their first ``count`` rows.
inline auto gather(auto table, auto chosen, auto count, auto rows, auto norms) {
    Index k = 0;
    while (k < chosen.shape(0) && chosen(k) >= 0) {
        auto own = table(chosen(k));
        double squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (Index m = 0; m < count; ++m) {
            squares += own(m) * own(m);
        }
        norms(k) = squares > 0.0 ? std::sqrt(squares) : 1.0;
        for (Index m = 0; m < count; ++m) {
            rows(k, m) = own(m) / norms(k);
        }
        k += 1;
    }
    rows(k).to(count) = table(table.shape(0) - 1).to(count);
    return k;
}

/// Add R^-1 times the last column to ``values`` (k,); returns the energy of R^-1.
inline auto solve(auto r, auto k, auto values) {
    const Scope scope;
    auto inverse = new_array<double, 1, 0>(k);
    double energy = 0.0;
    for (Index j = 0; j < k; ++j) {  // column j of the inverse
        for (Index i = j; i > -1; --i) {
            auto found = i == j ? 1.0 : 0.0;
            for (Index m = i + 1; m < j + 1; ++m) {
                found -= r(i, m) * inverse(m);
            }
            inverse(i) = found / r(i, i);
            energy += inverse(i) * inverse(i);
            values(i) += inverse(i) * r(j, k);
        }
    }
    return energy;
}

/// Solve least squares problems made of some columns of upper triangles.
///
/// ``tables`` (F, d + 1, d + 1) are triangles of ``[columns, target]``, column by column;
/// ``chosen`` (C, k) the columns of each problem, -1 behind the last. ``values`` (C, F, k) become
/// the solutions; ``apart`` (C, F) a bound from below of the least singular value, columns scaled
/// to one. Where that is zero, or not a number, there is no solution.
inline auto solve_chosen(auto tables, auto chosen, auto values, auto apart) {
    const Scope scope;
    Index most = chosen.shape(1);
    auto rows = new_array<double, 2, 0>(most + 1, tables.shape(2));
    auto norms = new_array<double, 1, 0>(most);
    auto r = new_array<double, 2, 0>(most + 1, most + 1);
    values = 0.0;
    for (Index c = 0; c < chosen.shape(0); ++c) {
        auto count = chosen(c).max() + 1;  // below there are zeros
        for (Index f = 0; f < tables.shape(0); ++f) {
            Index k = triangle::gather(tables(f), chosen(c), count, rows, norms);
            r = 0.0;
            triangle::reflect(r, rows.to(k + 1), count);
            apart(c, f) = 1.0 / std::sqrt(triangle::solve(r, k, values(c, f)));
            for (Index i = 0; i < k; ++i) {
                values(c, f, i) /= norms(i);
            }
        }
    }
}

}  // namespace triangle
