"""Our problem given to IPOPT (PyPI cyipopt) with forward differences, as FIGAROH does it.

The same Fourier series, limits, efforts and objective; only the search differs. Limits are linear
in the coefficients, and IPOPT is told their exact derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.excitation.search.basis import motion_of
from robot_dynid.excitation.search.objective import Measured
from robot_dynid.excitation.search.optimise import Problem
from robot_dynid.types import FloatArray

NAME = 'IPOPT, forward differences'
STEP = 1e-6
#: value of a motion that has none
REFUSED = 1e10
#: tolerances and memory as FIGAROH sets them
OPTIONS = {'tol': 1e-3, 'acceptable_tol': 1e-2, 'max_iter': 3000, 'mu_strategy': 'adaptive',
           'hessian_approximation': 'limited-memory', 'print_level': 0, 'sb': 'yes'}


def available() -> bool:
    """Return whether the solver can be imported."""
    try:
        import cyipopt  # noqa: F401
    except ImportError:
        return False
    return True


def optimise(problem: Problem, start: FloatArray, budget: float) -> FloatArray:
    """Return the coefficients (n, P) after at most ``budget`` seconds from ``start`` (n, P)."""
    import cyipopt

    search = Search(problem)
    low, high = search.bounds()
    solver = cyipopt.Problem(n=start.size, m=len(low), problem_obj=search, cl=low, cu=high)
    for name, value in OPTIONS.items():
        solver.add_option(name, value)
    solver.add_option('max_wall_time', max(budget, 1.0))
    search.best = (np.inf, start)
    solver.solve(start.ravel())
    return search.best[1]


@dataclass(eq=False)
class Search:
    """What IPOPT asks for; the best point that keeps everything is remembered."""

    problem: Problem

    def __post_init__(self) -> None:
        basis = self.problem.basis
        self._shape = (len(basis.joints), basis.size)
        self._bands = self.problem.barrier.bands
        self._kept = basis.matrices(self.problem.instants(2))
        self.best: tuple[float, FloatArray] = (np.inf, np.zeros(self._shape))
        eye = np.eye(self._shape[0])
        self._linear = np.vstack([np.kron(eye, band.matrix) for band in self._bands])

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of `constraints`."""
        rows = [(np.repeat(b.centre - b.half, len(b.matrix)),
                 np.repeat(b.centre + b.half, len(b.matrix))) for b in self._bands]
        low, high = (np.concatenate(side) for side in zip(*rows, strict=True))
        count = len(self._nonlinear(np.zeros(self._shape)))
        far = np.full(count, 2e19)
        return np.concatenate([low, np.zeros(count)]), np.concatenate([high, far])

    def objective(self, x: FloatArray) -> float:
        """Return what is minimised."""
        coefficients = x.reshape(self._shape)
        value = self._value(coefficients)
        if value < self.best[0] and np.isfinite(self.problem.barrier.value(coefficients)) \
                and np.all(self._nonlinear(coefficients) >= 0.0):
            self.best = (value, coefficients.copy())
        return value

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return forward differences of the objective."""
        here = self._value(x.reshape(self._shape))
        return np.array([(self._value(moved.reshape(self._shape)) - here) / STEP
                         for moved in x + STEP * np.eye(len(x))])

    def constraints(self, x: FloatArray) -> FloatArray:
        """Return limits and constraints at their instants."""
        return np.concatenate([self._linear @ x, self._nonlinear(x.reshape(self._shape))])

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return the exact derivatives of the limits, forward differences of the rest."""
        here = self._nonlinear(x.reshape(self._shape))
        if not len(here):
            return self._linear.ravel()
        rest = np.stack([(self._nonlinear(moved.reshape(self._shape)) - here) / STEP
                         for moved in x + STEP * np.eye(len(x))], axis=1)
        return np.vstack([self._linear, rest]).ravel()

    def _value(self, coefficients: FloatArray) -> float:
        """Return the objective without its gradient, which would only cost time here."""
        measured = self.problem.objective
        assert isinstance(measured, Measured)
        columns = measured.observation.columns(self.problem.motion(coefficients))
        information = measured.samples * measured.observation.information(columns)
        value, _ = measured.measure(information)
        return float(value) if np.isfinite(value) else REFUSED

    def _nonlinear(self, coefficients: FloatArray) -> FloatArray:
        motion: Any = motion_of(self._kept, coefficients)
        values = [c.values(motion).ravel() for c in self.problem.constraints]
        return np.concatenate(values) if values else np.zeros(0)
