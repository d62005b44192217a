"""estimation/uncertainty/random_effects.py: bias taken off, intervals that hold, variances in
closed form."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.estimation.uncertainty.random_effects import fit_random_effects
from robot_dynid.types import FloatArray

TRUTH, NOISE, GROUPS = np.array([2.0, -1.0, 0.5]), 0.1, np.repeat([0, 1], 6)


def equations(seed: int, sizes: tuple[float, float]) -> FloatArray:
    """Return [A, Z, y] of 400 samples whose effects look much like the parameters."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((400, 3))
    effects = base[:, GROUPS] + 0.4 * rng.standard_normal((400, len(GROUPS)))
    amplitudes = np.array(sizes)[GROUPS] * rng.standard_normal(len(GROUPS))
    y = base @ TRUTH + effects @ amplitudes + NOISE * rng.standard_normal(400)
    return np.asarray(np.linalg.qr(np.column_stack([base, effects, y]), 'r'))


def fit(tall: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return least squares, what is best beside effects, and its deviations."""
    plain = np.linalg.lstsq(tall[:, :3], tall[:, -1], rcond=None)[0]
    solution, _ = fit_random_effects(tall, GROUPS, NOISE**2)
    deviation = NOISE * np.linalg.norm(solution.root, axis=1)
    return plain, solution.values[:3], deviation[:3]


def test_intervals_hold_beside_effects() -> None:
    fits = [fit(equations(seed, (0.3, 0.0))) for seed in range(60)]
    plain, best, deviation = (np.array(own) - truth for own, truth in zip(
        zip(*fits, strict=True), (TRUTH, TRUTH, 0.0), strict=True))
    assert np.mean(np.abs(best) < 1.96 * deviation) == pytest.approx(0.95, abs=0.04)
    assert np.std(best[:, 0]) < 0.5 * np.std(plain[:, 0])


def test_the_best_parameters_are_those_of_the_marginal_likelihood() -> None:
    """With the variances that were found: generalised least squares with Z v Z^T + noise."""
    tall = equations(1, (0.3, 0.1))
    base, effects, y = tall[:, :3], tall[:, 3:-1], tall[:, -1]
    _, found, found_deviation = fit(tall)

    def covariance(variance: FloatArray) -> FloatArray:
        return NOISE**2 * np.eye(len(y)) + (effects * variance[GROUPS]) @ effects.T

    def likelihood(variance: FloatArray) -> float:
        inverse = np.linalg.inv(covariance(variance))
        inner = base.T @ inverse @ base
        left = y - base @ np.linalg.solve(inner, base.T @ inverse @ y)
        return float(-np.linalg.slogdet(covariance(variance))[1]
                     - np.linalg.slogdet(inner)[1] - left @ inverse @ left)

    grid = np.geomspace(1e-3, 1.0, 25)
    best = max(((a, b) for a in grid for b in grid), key=lambda v: likelihood(np.array(v)))
    inverse = np.linalg.inv(covariance(np.array(best)))
    inner = np.linalg.inv(base.T @ inverse @ base)
    deviation = np.sqrt(np.diag(inner))
    assert np.all(np.abs(found - inner @ base.T @ inverse @ y) < 0.1 * deviation)
    np.testing.assert_allclose(found_deviation, deviation, rtol=0.1)


def test_the_pull_of_effects_and_noise_are_the_covariance() -> None:
    tall = equations(2, (0.3, 0.1))
    solution, pulled = fit_random_effects(tall, GROUPS, NOISE**2)
    of_noise = solution.root @ solution.root.T @ tall[:, :-1].T @ tall[:, :-1] @ solution.root
    np.testing.assert_allclose(pulled + NOISE**2 * of_noise @ solution.root.T,
                               NOISE**2 * solution.root @ solution.root.T, rtol=1e-6, atol=1e-12)


def test_without_effects_nothing_changes() -> None:
    """Nothing beyond what effects as small as the noise of one of them would make."""
    for seed in range(5):
        plain, best, deviation = fit(equations(seed, (0.0, 0.0)))
        assert np.all(np.abs(best - plain) < 0.05)
        assert np.all(deviation < 0.05)
    plain, best, deviation = fit(equations(0, (0.3, 0.3)))
    assert np.abs(best - plain)[0] > 0.2 and deviation[0] < 0.1


@pytest.mark.filterwarnings('error')
def test_variances_of_separate_effects_are_those_of_their_amplitudes_and_noise() -> None:
    """Effects that are orthogonal once the parameters are eliminated: one number per group.

    With t^2 the mean square of the amplitudes that least squares gives, in units of their noise,
    the iteration for u, the variance in the same units, ends at t^2 - 1, or slowly nears zero.
    """
    rng, noise, groups = np.random.default_rng(3), 0.04, np.array([1, 0, 1, 0, 0])
    basis = np.linalg.qr(rng.normal(size=(12, 8)))[0]
    base, apart = basis[:, :3] @ rng.normal(size=(3, 3)), basis[:, 3:]
    sizes = np.array([3.0, 0.5])[groups]
    effects = apart * sizes + base @ rng.normal(size=(3, 5))
    signal = np.array([2.0, 0.7, -0.5, -1.4, 0.6])  # in deviations of the noise
    signal *= np.sqrt(np.array([5.0, 0.5]) * [3, 2] / [
        np.sum(signal[groups == g]**2) for g in (0, 1)])[groups]
    y = base @ TRUTH + np.sqrt(noise) * apart @ signal
    units, previous = [5.0, 1.0], [np.inf, np.inf]
    while any(abs(u - old) > 1e-3 * (u + 1.0) for u, old in zip(units, previous)):
        previous, units = units, [u / (1.0 + u) + (u / (1.0 + u))**2 * square
                                  for u, square in zip(units, (5.0, 0.5))]
    assert units[0] == pytest.approx(4.0, rel=0.01) and 0.01 < units[1] < 0.1
    shrunk = np.array(units)[groups] / (1.0 + np.array(units)[groups])
    amplitudes = np.sqrt(noise) * signal / sizes * shrunk
    solution, pulled = fit_random_effects(np.column_stack([base, effects, y]), groups, noise)
    assert solution.values[3:] == pytest.approx(amplitudes, rel=1e-9)
    assert solution.values[:3] == pytest.approx(
        np.linalg.lstsq(base, y - effects @ amplitudes, rcond=None)[0], rel=1e-9)
    spread = noise / sizes**2 * shrunk
    assert noise * solution.root[3:] @ solution.root[3:].T == pytest.approx(
        np.diag(spread), rel=1e-9, abs=1e-12)
    variance = noise / sizes**2 * np.array(units)[groups]
    assert pulled[3:, 3:] == pytest.approx(np.diag(spread**2 / variance), rel=1e-9, abs=1e-12)
    share = np.linalg.lstsq(base, effects, rcond=None)[0]
    assert pulled[:3, :3] == pytest.approx(
        share * (spread**2 / variance) @ share.T, rel=1e-8, abs=1e-12)
