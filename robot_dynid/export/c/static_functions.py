"""Static functions of C that the code of a robot calls, by name; only those called are written."""

from __future__ import annotations

#: rounds in which the signs of loads are looked for; they take one or two
ROUNDS = 20
STATIC_FUNCTIONS = {
    'all_finite': """static int all_finite(const double *values, int count)
{
    for (int i = 0; i < count; ++i) {
        if (!(fabs(values[i]) <= DBL_MAX)) {
            return 0;
        }
    }
    return 1;
}""",
    'all_above_zero': """static int all_above_zero(const double *values, int count)
{
    for (int i = 0; i < count; ++i) {
        if (!(values[i] > 0.0)) {
            return 0;
        }
    }
    return 1;
}""",
    'fill': """static void fill(double *values, double value)
{
    for (int i = 0; i < JOINTS; ++i) {
        values[i] = value;
    }
}""",
    'settle_loads': """/* Solve load + coupling |load| = start: linear where signs are known. */
static int settle_loads(const double *start, double coupling[LOADS][LOADS], double *load)
{
    double sign[LOADS];
    for (int i = 0; i < LOADS; ++i) {
        sign[i] = start[i] < 0.0 ? -1.0 : 1.0;
    }
    for (int round = 0; round < ROUNDS; ++round) {
        double matrix[LOADS][LOADS];
        int changed = 0;
        for (int i = 0; i < LOADS; ++i) {
            for (int j = 0; j < LOADS; ++j) {
                matrix[i][j] = coupling[i][j] * sign[j] + (i == j ? 1.0 : 0.0);
            }
            load[i] = start[i];
        }
        for (int k = 0; k < LOADS; ++k) {
            int row = k;
            for (int i = k + 1; i < LOADS; ++i) {
                row = fabs(matrix[i][k]) > fabs(matrix[row][k]) ? i : row;
            }
            for (int j = 0; j < LOADS; ++j) {
                const double kept = matrix[k][j];
                matrix[k][j] = matrix[row][j];
                matrix[row][j] = kept;
            }
            const double first = load[k];
            load[k] = load[row];
            load[row] = first;
            for (int i = k + 1; i < LOADS; ++i) {
                const double share = matrix[i][k] / matrix[k][k];
                for (int j = k; j < LOADS; ++j) {
                    matrix[i][j] -= share * matrix[k][j];
                }
                load[i] -= share * load[k];
            }
        }
        for (int k = LOADS - 1; k >= 0; --k) {
            for (int j = k + 1; j < LOADS; ++j) {
                load[k] -= matrix[k][j] * load[j];
            }
            load[k] /= matrix[k][k];
        }
        for (int i = 0; i < LOADS; ++i) {
            if (load[i] * sign[i] < 0.0) {
                sign[i] = -sign[i];
                changed = 1;
            }
        }
        if (!changed) {
            return 1;
        }
    }
    return 0;
}"""}
