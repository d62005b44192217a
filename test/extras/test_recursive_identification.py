"""robot_dynid_extras/health/recursive_identification.py: each round by sums over all samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from everyday_samples import MODEL, STEP, Samples, stretches

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray
from robot_dynid_extras.health.recursive_identification import (
    Recent,
    RecursiveIdentification,
    prior_root,
)


@dataclass
class Reference:
    """Recursive least squares by normal equations, from samples."""

    memory: float
    density: FloatArray = field(default_factory=lambda: np.zeros(3))
    values: FloatArray = field(default_factory=lambda: MODEL.values)
    weight: FloatArray = field(default_factory=lambda: np.zeros(3))
    seconds: float = 0.0

    def __post_init__(self) -> None:
        root, b = prior_root(MODEL), len(MODEL.values)
        self.prior, self.scale = np.linalg.inv(root.T @ root), np.linalg.norm(root, axis=0)
        self.normal, self.right = np.zeros((3, b, b)), np.zeros((3, b))
        self.excited = np.full(b, -np.inf)
        self.samples, self.errors = np.zeros(3), np.zeros((2, 3))

    def learn(self, parts: list[Samples]) -> None:
        """Take the first stretches: four densities, each about the fit with that before."""
        values, time = MODEL.values, sum(one.sliding for one in parts)
        for _ in range(4):
            self.density = sum(one.scatter(values) for one in parts) / time
            normal, right = self.prior / 10.0**2, np.zeros(len(values))
            for one in parts:
                weighted = one.columns * (STEP / self.density)[:, None, None]
                normal = normal + np.einsum('jan,jbn->ab', weighted, one.columns)
                right = right + np.einsum('jan,nj->a', weighted, one.left(MODEL.values))
            values = MODEL.values + np.linalg.solve(normal, right)
        self.weight = np.where(time > 10.0, 1800.0, time)
        for one in parts:
            self.follow(one)

    def follow(self, one: Samples) -> None:
        """Take a stretch with the density that is known."""
        self.seconds += 5.0
        share = max(1.0 - 5.0 / self.memory, 0.0)
        self.errors = share * self.errors + np.array([
            np.sum(one.left(values)**2, axis=0) for values in (MODEL.values, self.values)])
        self.samples = share * self.samples + one.sliding / STEP
        weighted = one.columns * (STEP / self.density)[:, None, None]
        told = np.einsum('jan,jan->a', weighted, one.columns) * self.scale**2
        self.excited[told > 5.0 / self.memory] = self.seconds
        keep = 1.0 - np.minimum(one.sliding / self.memory, 0.5)
        self.normal = keep[:, None, None] * self.normal + np.einsum(
            'jan,jbn->jab', weighted, one.columns)
        self.right = keep[:, None] * self.right + np.einsum(
            'jan,nj->ja', weighted, one.left(MODEL.values))
        self.information = self.prior + self.normal.sum(axis=0)
        self.values = MODEL.values + np.linalg.solve(self.information, self.right.sum(axis=0))

    def refine(self, one: Samples) -> None:
        """Bring the density up to date."""
        most = 4.0 * self.density * one.sliding
        total = np.minimum(one.scatter(self.values), most)
        self.weight = np.minimum(self.weight + one.sliding, 1800.0)
        self.density = self.density + (total - self.density * one.sliding) / self.weight


@pytest.mark.parametrize('memory', [120.0, 8.0])
def test_stretches_are_followed_as_by_normal_equations(memory: float) -> None:
    """A minute to learn from, quiet ones, and one far off that counts as four times the noise."""
    parts = stretches(16)
    parts[14].effort += np.array([4.0, -5.0, 3.0])
    found, expected = RecursiveIdentification(MODEL, memory), Reference(memory)
    for one in parts[:11]:
        found.take(one.motion)
        assert found.learning and found.seconds > 0.0 and np.isinf(found.excited).all()
    found.take(parts[11].motion)
    expected.learn(parts[:12])
    for number in range(11, 16):
        if number > 11:
            found.take(parts[number].motion)
            expected.follow(parts[number])
        assert found.density is not None and found.recent is not None
        assert found.seconds == pytest.approx(5.0 * (number + 1))
        if number > 11:
            expected.refine(parts[number])
        np.testing.assert_allclose(found.density, expected.density, rtol=1e-6)
        np.testing.assert_allclose(found.departure, expected.values - MODEL.values, rtol=1e-5,
                                   atol=1e-8)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
        np.testing.assert_allclose(found.root.T @ found.root, np.linalg.inv(expected.information),
                                   rtol=1e-5, atol=1e-10)
        np.testing.assert_array_equal(found.excited, expected.excited)
        np.testing.assert_allclose(found.recent.samples, expected.samples)
        np.testing.assert_allclose(found.recent.errors, expected.errors, rtol=1e-6)


def test_what_is_left_of_recent_motion_is_its_root_mean_square() -> None:
    parts, found = stretches(14), RecursiveIdentification(MODEL, 50.0)
    assert found.left_over(MODEL.values).tolist() == [0.0, 0.0, 0.0]
    for one in parts:
        found.take(one.motion)
    weights = 0.9 ** np.arange(13, -1, -1)
    values = 1.1 * MODEL.values
    squares = sum(weight * np.sum(one.left(values)**2, axis=0)
                  for weight, one in zip(weights, parts, strict=True))
    np.testing.assert_allclose(found.left_over(values), np.sqrt(
        squares / (weights.sum() * parts[0].sliding / STEP)), rtol=1e-6)


def test_torque_of_a_change_is_the_root_mean_square_of_its_effort() -> None:
    """Independent changes add up by their squares; fewer than one sample count as one."""
    rng = np.random.default_rng(3)
    active = np.array([[True, True, False], [True, False, True]])
    columns = rng.normal(size=(2, 6, 2))
    factors = tuple(np.hstack([own, rng.normal(size=(6, 3))]) for own in columns)
    recent = Recent(factors, np.array([8.0, 0.25]), rng.uniform(1.0, 2.0, (2, 2)))
    root = rng.normal(size=(2, 3))
    expected = [np.sqrt(sum(np.sum((own @ row[on])**2) for row in root) / count)
                for own, on, count in zip(columns, active, (8.0, 1.0), strict=True)]
    np.testing.assert_allclose(recent.torque(active, root), expected)
    faded = recent.faded(0.3)
    np.testing.assert_allclose(faded.samples, [2.4, 0.075])
    np.testing.assert_allclose(faded.errors, 0.3 * recent.errors)
    np.testing.assert_allclose(faded.torque(active, root), [
        expected[0], expected[1] * np.sqrt(0.3)])


def learnt(model: IdentifiedModel, parts: list[Samples]) -> FloatArray:
    """Return the density (n,) after stretches."""
    found = RecursiveIdentification(model, 120.0)
    for one in parts:
        found.take(one.motion)
    assert found.density is not None
    return found.density


def test_a_joint_that_rested_has_the_largest_density_of_the_others() -> None:
    parts = stretches(12)
    for one in parts:
        one.columns = one.columns * np.array([1.0, 1.0, 0.0])[:, None, None]
        one.effort[:, 2] = 0.0
        one.sliding = np.array([5.0, 4.0, 0.0])
    density = learnt(MODEL, parts)
    assert density[2] == pytest.approx(density[:2].max()) and density[0] != density[1]


def test_densities_are_at_least_rounding_of_the_largest_effort() -> None:
    """A part in 1e16 of its square, of every joint of that of all."""
    parts = stretches(12)
    for one in parts:
        one.effort = np.einsum('b,jbn->nj', MODEL.values, one.columns)
    size = np.max([one.motion.information.size(1) for one in parts])
    assert np.all(learnt(MODEL, parts) >= 0.99e-16 * size**2)
    assert np.all(learnt(MODEL, parts) < 1e-12 * size**2)
