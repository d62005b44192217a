"""The one table of tolerances: each bound stands here with its reason."""

from typing import Final

# Two implementations of the same closed formula in double precision: about 1e-15 per operation,
# some thousand operations per torque, relative to the largest torque of the set.
SAME_FORMULA: Final = 1e-10

# Solution of linear equations by two methods: rounding times the condition number of the matrix,
# which this factor multiplies.
SOLVED: Final = 1e-14

# Central difference with a step of 1e-5 of quantities near 1 whose third derivatives reach 100:
# truncation 1e-10 * 100 / 6, rounding 1e-15 / 1e-5.
DIFFERENCE: Final = 1e-7

# Sine and cosine of angles up to 1e4 rad against those of NumPy: a few units in the last place of
# 1. A reduction by a quarter turn in one double would be off by 6367 * 6e-17 = 4e-13.
LARGE_ANGLE: Final = 1e-15
