"""The one table of tolerances: each bound stands here with its reason."""

from typing import Final

# Two implementations of the same closed formula in double precision: about 1e-15 per operation,
# some thousand operations per torque, relative to the largest torque of the set.
SAME_FORMULA: Final = 1e-10
