"""Payload fit (`estimation.payload`) against refits of the rows and at its limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from robot_dynid.errors import DataError
from robot_dynid.estimation.information import Accumulator
from robot_dynid.estimation.least_squares import batch_covariance, joint_weights, solve
from robot_dynid.estimation.payload import PayloadStatus, fit_payload
from robot_dynid.robot.inertia import (
    PARAMETERS,
    com_from_parameters,
    parameters_from_com,
    symmetric,
)

NAMES = ('fv1', 'fc2', *PARAMETERS)
STRUCTURE = np.ones((2, 12), dtype=bool)
STRUCTURE[0, 1] = STRUCTURE[1, 0] = False
#: reach of parameters that any data determines
EASY = np.full((2, 10), 1e-9)
BODY = parameters_from_com(0.8, [0.05, -0.12, 0.2], symmetric([0.9, 0.1, 1.2, -0.2, 0.15, 1.4]))
#: its mass acts little, so that it is uncertain while all else is known well
LIGHT = np.array([0.01, *np.linspace(0.8, 1.9, 9)])


@dataclass
class Rows:
    """Equations of two joints and twelve parameters, noise in proportion to `level`."""

    columns: np.ndarray
    clean: np.ndarray
    noise: np.ndarray

    @classmethod
    def drawn(cls, body=BODY, scale=None, count=369, seed=4):
        rng = np.random.default_rng(seed)
        columns = rng.normal(size=(2, 12, count)) * STRUCTURE[:, :, None]
        columns[0] *= 2.0
        columns[:, 2:] *= np.linspace(0.6, 2.1, 10)[:, None] if scale is None else scale[:, None]
        truth = np.array([0.7, -1.3, *body])
        noise = rng.normal(size=(count, 2)) * [0.02, 0.07]
        return cls(columns, np.einsum('ikn,k->ni', columns, truth), noise)

    def information(self, level=1.0, batch=20):
        accumulator = Accumulator(NAMES, STRUCTURE, batch)
        effort = self.clean + level * self.noise
        accumulator.add(self.columns, effort, 1.5 * effort)  # raw effort differs
        return accumulator.information()

    def refit(self, rows, weights, scale=(1.0, 1.0)):
        """Return mass and so on (20,) of weighted least squares of some rows."""
        columns = np.concatenate([w * c[:, rows].T for w, c in zip(
            weights, self.columns, strict=True)])
        effort = (self.clean + self.noise)[rows] * scale * weights
        found = np.linalg.lstsq(columns, effort.T.ravel(), rcond=None)[0][2:]
        mass, com, inertia = com_from_parameters(found)
        return np.array([*found, mass, *com, *inertia[np.tril_indices(3)]])


def test_payload_and_its_deviations_are_those_of_refits():
    rows, gains = Rows.drawn(), np.array([0.03, 0.08])
    information = rows.information()
    found = fit_payload(information, EASY, gains)
    weights, everything = joint_weights(information), np.arange(369)
    best = rows.refit(everything, weights)
    # 18 batches, the last one of 29 rows, in eight groups: two of three batches, then of two
    ends = np.cumsum([0, 60, 60, 40, 40, 40, 40, 40, 49])
    left = np.array([rows.refit(np.delete(everything, slice(a, b)), weights)
                     for a, b in pairwise(ends)])
    scatter = np.sqrt(7 / 8 * np.sum((left - left.mean(axis=0)) ** 2, axis=0))
    moved = np.array([rows.refit(everything, weights, scale) - best
                      for scale in ([1.03, 1.0], [1.0, 1.08])])
    by_gains = np.maximum(np.abs(moved.sum(axis=0)), np.sqrt(np.sum(moved**2, axis=0)))
    std = np.hypot(scatter, by_gains)
    assert found.status is PayloadStatus.OK and not found.constrained
    assert found.not_excited == found.directions == ()
    assert found.parameters == pytest.approx(best[:10], rel=1e-8)
    assert found.mass == pytest.approx(best[10], rel=1e-8)
    assert found.centre_of_mass == pytest.approx(best[11:14], rel=1e-8)
    lower = np.tril_indices(3)
    assert found.inertia[lower] == pytest.approx(best[14:], rel=1e-8)
    assert found.inertia.tolist() == found.inertia.T.tolist()
    assert found.parameters_std == pytest.approx(std[:10], rel=1e-5)
    assert found.mass_std == pytest.approx(std[10], rel=1e-5)
    assert found.mass_std_gains == pytest.approx(by_gains[10], rel=1e-5)
    assert found.centre_of_mass_std == pytest.approx(std[11:14], rel=1e-5)
    assert found.inertia_std[lower] == pytest.approx(std[14:], rel=1e-5)
    degrees = 7 * (std / scatter)[10:14] ** 4
    assert found.degrees_of_freedom == pytest.approx(degrees, rel=1e-4)
    assert found.margins == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-4)
    values = solve(information, weights).values
    residual = rows.clean + rows.noise - np.einsum('ikn,k->ni', rows.columns, values)
    assert found.noise == pytest.approx(np.sqrt(np.sum(residual**2, axis=0) / (369 - 11)))
    exact = fit_payload(information, EASY)
    assert exact.mass_std_gains == 0.0 and exact.degrees_of_freedom.tolist() == [7.0] * 4
    assert exact.mass_std == pytest.approx(scatter[10], rel=1e-5)


@pytest.mark.parametrize(('name', 'com', 'moments'), [
    ('m', 'xyz', ('xx', 'xy', 'yy', 'xz', 'yz', 'zz')), ('mx', 'x', ('xy', 'yy', 'xz', 'zz')),
    ('my', 'y', ('xx', 'xy', 'yz', 'zz')), ('mz', 'z', ('xx', 'yy', 'xz', 'yz')),
    ('Ixx', '', ('xx',)), ('Ixy', '', ('xy',)), ('Iyz', '', ('yz',))])
@pytest.mark.parametrize('joint', [0, 1])
def test_a_parameter_of_a_payload_is_open_if_it_could_make_all_effort(name, com, moments, joint):
    rows, place = Rows.drawn(), PARAMETERS.index(name)
    information = rows.information()
    weights = joint_weights(information)
    covariance = batch_covariance(information, weights, solve(information, weights))[0]
    std = np.sqrt(covariance[2 + place, 2 + place])
    size = 1.5 * np.sqrt(np.mean((rows.clean + rows.noise)[:, joint] ** 2))
    reach = EASY.copy()
    reach[joint, place] = 0.97 * size / std
    assert fit_payload(information, reach).not_excited == ()
    reach[joint, place] = 1.03 * size / std
    found = fit_payload(information, reach)
    assert found.status is PayloadStatus.NOT_EXCITED and found.not_excited == (name,)
    assert np.isinf(found.parameters_std).tolist() == [p == name for p in PARAMETERS]
    assert np.isfinite(found.parameters).all()
    assert np.isnan(found.mass) == np.isinf(found.mass_std) == (name == 'm')
    assert np.isnan(found.centre_of_mass).tolist() == [axis in com for axis in 'xyz']
    assert np.isinf(found.centre_of_mass_std).tolist() == [axis in com for axis in 'xyz']
    expected = [[''.join(sorted(a + b)) in moments for a in 'xyz'] for b in 'xyz']
    assert np.isnan(found.inertia).tolist() == expected
    assert np.isinf(found.inertia_std).tolist() == expected


@pytest.mark.parametrize(('ratio', 'status'), [
    (0.96, PayloadStatus.NO_PAYLOAD), (1.04, PayloadStatus.OK)])
def test_a_mass_within_its_interval_of_zero_is_no_payload(ratio, status):
    """Noise that makes the mass this many times the half-width of its interval."""
    rows = Rows.drawn(scale=LIGHT)
    found = fit_payload(rows.information(), EASY)
    limit = ratio * stats.t.ppf(0.975, 7) * found.mass_std
    found = fit_payload(rows.information(0.8 / (limit - (found.mass - 0.8))), EASY)
    assert found.mass == pytest.approx(ratio * stats.t.ppf(0.975, 7) * found.mass_std)
    assert found.status is status and not found.constrained
    none = status is PayloadStatus.NO_PAYLOAD
    for values, std in ((found.centre_of_mass, found.centre_of_mass_std),
                        (found.inertia, found.inertia_std)):
        assert np.isnan(values).all() == np.isinf(std).all() == none
        assert np.isnan(values).any() == np.isinf(std).any() == none
    assert np.isfinite(found.parameters_std).all()


@pytest.mark.parametrize(('ratio', 'refused'), [(0.97, False), (1.03, True)])
def test_a_mass_below_zero_beyond_its_interval_is_refused(ratio, refused):
    body = BODY * [-1.0, *9 * [1.0]]
    rows = Rows.drawn(body, scale=LIGHT)

    def mass_of(information):
        weights = joint_weights(information)
        solution = solve(information, weights)
        covariance, freedom = batch_covariance(information, weights, solution)
        return solution.values[2], np.sqrt(covariance[2, 2]), stats.t.ppf(0.975, freedom)

    mass, std, margin = mass_of(rows.information())
    information = rows.information(0.8 / (ratio * margin * std + (mass + 0.8)))
    mass, std, margin = mass_of(information)
    assert mass == pytest.approx(-ratio * margin * std)
    if not refused:
        assert fit_payload(information, EASY).constrained
        return
    with pytest.raises(DataError) as caught:
        fit_payload(information, EASY)
    assert str(caught.value) == (
        f'the mass of the payload is negative ({mass:.4g} +- {std:.2g} kg): check that the '
        'recordings with and without it are not exchanged, and the signs of effort and gravity')


def test_a_payload_needs_two_batches_and_a_sample_per_parameter():
    rows = Rows.drawn(count=12)
    assert fit_payload(rows.information(batch=6), EASY).mass == pytest.approx(0.8, abs=0.3)
    few = replace(rows, columns=rows.columns[..., :11], clean=rows.clean[:11],
                  noise=rows.noise[:11])
    for information, count in ((few.information(batch=5), 11), (rows.information(batch=12), 12)):
        with pytest.raises(DataError) as caught:
            fit_payload(information, EASY)
        assert str(caught.value) == (f'{count} usable samples are too few for 12 parameters: '
                                     'record a longer motion')


def test_combinations_of_a_payload_without_information_are_written_out():
    rows = Rows.drawn()
    ixx, ixy, iyy, izz, mz = 6, 7, 8, 11, 5
    rows.columns[:, ixx] = (0.4 * rows.columns[:, iyy] - 0.052 * rows.columns[:, izz]
                            - 0.048 * rows.columns[:, ixy])
    rows.columns[:, mz] = 0.0
    rows.clean = np.einsum('ikn,k->ni', rows.columns, [0.7, -1.3, *BODY])
    found = fit_payload(rows.information(), EASY)
    assert found.directions == ('mz', 'Ixx -0.4 Iyy +0.052 Izz')
    assert found.not_excited == ('mz', 'Ixx', 'Iyy', 'Izz')
    assert found.status is PayloadStatus.NOT_EXCITED


def test_every_parameter_of_a_payload_has_some_information_under_any_noise():
    found = fit_payload(Rows.drawn().information(3e4), EASY)
    assert found.directions == () and found.status is PayloadStatus.NO_PAYLOAD
