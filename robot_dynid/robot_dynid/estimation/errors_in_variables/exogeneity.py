"""Durbin-Wu-Hausman test: do least squares and instrumental variables differ by more than chance?

The covariance of the difference comes from leaving out batches, so it holds for coloured
residuals. Sources: Hausman 1978; Hotelling 1931 (few batches).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.estimation.estimate import fisher_tail, student_quantile
from robot_dynid.estimation.uncertainty.between_recordings import covariance
from robot_dynid.types import FloatArray

#: level of the test, and of the bounds of all parameters together
EXOGENEITY_LEVEL = 0.05
#: maximum number of tested directions, as a share of the number of batches
TESTED = 0.25
#: a difference below this share of the parameters is rounding
PARAMETER_ROUNDING = 1e-9
#: parameters named in a warning
NAMED_PARAMETERS = 5


@dataclass(frozen=True)
class HausmanTest:
    """Durbin-Wu-Hausman test: F with its two `degrees_of_freedom`, p-value and verdict."""

    f: float
    degrees_of_freedom: tuple[int, int]
    p_value: float
    least_squares_biased: bool


@dataclass(frozen=True)
class Bias:
    """Another estimate minus instrumental variables in one parameter, and its deviation."""

    name: str
    bias: float
    std: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Difference of two estimates, first minus second: `bias` and `std` (b,).

    The statistic of its `test` has the F distribution if the first estimate is unbiased.
    """

    bias: FloatArray
    std: FloatArray
    test: HausmanTest

    def significant(self) -> list[int]:
        """Return the indices of the significantly different parameters, most significant first."""
        degrees = max(sum(self.test.degrees_of_freedom) - 1, 1)
        return beyond_chance(self.bias, self.std, degrees, EXOGENEITY_LEVEL)

    def warnings(self, names: Sequence[str]) -> Iterator[str]:
        """Yield a warning if least squares is biased."""
        if not self.test.least_squares_biased:
            return
        clear = [f'{names[i]} {self.bias[i]:+.3g} ({self.bias[i] / self.std[i]:+.1f} deviations)'
                 for i in self.significant()[:NAMED_PARAMETERS]]
        largest = f', most clearly in {", ".join(clear)}' if clear else ''
        degrees = ', '.join(map(str, self.test.degrees_of_freedom))
        yield (f'least squares is biased{largest}: Durbin-Wu-Hausman F({degrees}) = '
               f'{self.test.f:.3g}, p = {self.test.p_value:.2g}. The cause is encoder noise in '
               'the regressor, or an effect that the model lacks')

    def biases(self, names: Sequence[str]) -> tuple[Bias, ...]:
        """Return the difference of every parameter."""
        return tuple(map(Bias, names, self.bias.tolist(), self.std.tolist()))


def beyond_chance(
    difference: FloatArray, std: FloatArray, degrees: int, level: float
) -> list[int]:
    """Return the indices of significant entries of `difference` (k,), most significant first.

    `std` (k,) are its deviations; `level` holds for all k together (Bonferroni), with Student's t
    of `degrees` degrees of freedom.
    """
    bound = student_quantile(1.0 - 0.5 * level / max(len(difference), 1), degrees)
    with np.errstate(divide='ignore', invalid='ignore'):
        deviations = np.nan_to_num(np.abs(difference) / std, nan=0.0, posinf=0.0)
    return [int(i) for i in np.argsort(-deviations) if deviations[i] > bound]


def compare(
    first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray],
    directions: FloatArray,
) -> Comparison:
    """Compare two estimates, given as values (b,) and their changes (batches, b) by batch.

    As many of the `directions` (b, r) are tested, the last ones first, as the number of batches
    allows.
    """
    bias, changes = first[0] - second[0], first[1] - second[1]
    count = len(changes)
    spread, _ = covariance(changes)
    std = np.sqrt(np.diag(spread))
    tested = min(directions.shape[1], int(TESTED * count))
    if tested < 1:
        return Comparison(bias, std, HausmanTest(0.0, (0, 0), 1.0, False))
    along = np.linalg.pinv(directions)[-tested:]
    size = PARAMETER_ROUNDING * max(float(np.linalg.norm(along @ second[0])), 1e-100)
    difference = along @ bias
    hotelling = float(difference @ np.linalg.solve(
        along @ spread @ along.T + size**2 * np.eye(tested), difference))
    degrees = (tested, count - tested)
    statistic = hotelling * degrees[1] / (tested * (count - 1))
    probability = fisher_tail(statistic, degrees)
    return Comparison(bias, std, HausmanTest(
        statistic, degrees, probability, probability < EXOGENEITY_LEVEL))
