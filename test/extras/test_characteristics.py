"""robot_dynid_extras/fleet/characteristics.py: readings by normal equations, sums, kinds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from motions import lively, torque_model, with_effort

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import FILTERED, Accumulator, Information
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    joint_weights,
    solve,
    solve_rows,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray
from robot_dynid_extras.fleet.characteristics import CAUSES, Characteristics, Reading, cause

MODEL = torque_model('planar_3r')
NAMES = MODEL.reduction.names
#: kinds whose causes go by the sign, and their causes by their first words
FIRST = {
    'friction': ('wear, lack', 'run in, new'), 'viscous': ('colder', 'warmer'),
    'dry': ('wear, worn', 'run in, new'), 'offset': ('zero', 'zero'),
    'load': ('payload or tool left on', 'tool or payload taken off'),
    'link': ('load or cables', 'part taken off'), 'rotor': ('another drive', 'another drive'),
    'gear': ('another gear, or', 'another gear, or'),
    'stiffness': ('another gear, more', 'worn or cracked'), 'other': ('unknown', 'unknown')}


@cache
def information(noise: float, seed: int = 0, count: int = 1500) -> Information:
    """Return the information of a lively motion, its joints as noisy as each other by torque."""
    rng, clean = np.random.default_rng(seed), lively(MODEL, count)
    assert clean.effort is not None
    size = noise * np.array([1.0, 0.6, 0.3])
    return Experiment.of(MODEL, [with_effort(clean, clean.effort + size * rng.normal(
        size=clean.effort.shape))]).information


@cache
def fleet() -> Characteristics:
    """Return the characteristics about the fit to a fleet."""
    return Characteristics.of(MODEL, information(0.5))


def normal_equations(own: Information, weights: FloatArray, known: FloatArray
                     ) -> tuple[FloatArray, FloatArray]:
    """Return the normal matrix (b, b) of base parameters, and the right side beyond ``known``."""
    normal, right = np.zeros((len(known), len(known))), np.zeros(len(known))
    for batch in own.batches:
        for weight, factor, there in zip(weights, batch.factors, own.structure, strict=True):
            count = int(there.sum())
            columns = weight * factor[:, :count]
            left = weight * factor[:, count + FILTERED] - columns @ known[there]
            normal[np.ix_(there, there)] += columns.T @ columns
            right[there] += columns.T @ left
    return normal, right


def deviations_of(reading: Reading, own: int) -> FloatArray:
    """Return the deviations (p,) of a reading by the scatter of its stretches."""
    return np.sqrt(np.diag(reading.covariance) * reading.colour)[:own]


def test_characteristics_are_scales_of_friction_then_parameters_then_sums() -> None:
    made = fleet()
    reference = solve(information(0.5), joint_weights(information(0.5))).values
    np.testing.assert_allclose(made.reference, reference)
    scales = friction_scales(MODEL, reference)
    assert scales is not None and made.own == len(made.all) - 4 == 9 + 11
    assert [(one.name, one.part, one.kind, one.unit, one.group) for one in made.all[:3]] == [
        ('viscous_1', 'joint_1', 'viscous', '', 'friction'),
        ('dry_1', 'joint_1', 'dry', '', 'friction'),
        ('offset_1', 'joint_1', 'offset', '', 'offset')]
    assert [(one.name, one.kind, one.part, one.unit, one.relative) for one in made.all[
        made.own - 3:]] == [
        ('Izz3', 'link', 'link_3', 'kg m^2', False), ('Ia2', 'rotor', 'joint_2', 'kg m^2', False),
        ('Ia3', 'rotor', 'joint_3', 'kg m^2', False), *((
            f'friction_joint_{k}', 'friction', f'joint_{k}', '', True) for k in (1, 2, 3)),
        ('load_link_3', 'load', 'link_3', 'kg', False)]
    np.testing.assert_allclose(made.directions[:, :9], scales.directions)
    np.testing.assert_array_equal(made.directions[:, 9:], np.eye(len(NAMES))[:, :11])
    assert made.daily.tolist() == 9 * [True] + 11 * [False] + 3 * [True] + [False]
    values = np.arange(1.0, 21.0)
    np.testing.assert_allclose(made.base(values), reference + made.directions @ values)


@pytest.mark.parametrize('noise', [0.2, 30.0])
def test_a_reading_is_weighted_least_squares_about_the_fleet(noise: float) -> None:
    """Known is what one deviation is smaller than: of friction itself, else of the effort."""
    made, own = fleet(), information(noise, 5, 900)
    reading, count = made.reading(own), made.own
    weights = joint_weights(information(0.5))
    np.testing.assert_allclose(made.weights, weights)
    normal, right = normal_equations(own, weights, made.reference)
    covariance = np.linalg.inv(made.directions.T @ normal @ made.directions)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(reading.values[:count] / scale,
                               covariance @ made.directions.T @ right / scale, rtol=1e-6,
                               atol=1e-6)
    np.testing.assert_allclose(reading.covariance[:count, :count] / np.outer(scale, scale),
                               covariance / np.outer(scale, scale), rtol=1e-6, atol=1e-6)
    projected = own.projected(range(3), own.structure, made.directions, made.reference)
    scatter = batch_covariance(projected, weights, solve_rows(weighted_factor(
        projected, weights)))[0]
    both = np.vstack([np.eye(count), made.sums])
    np.testing.assert_allclose(reading.colour, np.diag(both @ scatter @ both.T) / np.diag(
        both @ covariance @ both.T), rtol=1e-5)
    np.testing.assert_allclose(reading.values[count:], made.sums @ reading.values[:count])
    effort = np.abs(MODEL.moderate_effort @ made.directions)
    reach = np.array([1.0 if one.relative else effort[:, k].max() / information(0.5).size()[
        np.argmax(effort[:, k])] for k, one in enumerate(made.all[:count])])
    known = deviations_of(reading, count) * reach <= 1.0
    np.testing.assert_array_equal(reading.known[:count], known)
    assert known.all() if noise < 1.0 else 0 < known.sum() < count
    np.testing.assert_array_equal(reading.known[count:], [
        known[row != 0.0].all() for row in made.sums])


def test_what_a_session_does_not_show_is_not_known() -> None:
    """Friction of a joint that rests, and what it adds up to."""
    still = Experiment.of(MODEL, [lively(MODEL, 900, 0.01, moving=(0, 1))]).information
    reading = fleet().reading(still)
    known = {one.name: bool(is_so) for one, is_so in zip(
        fleet().all, reading.known, strict=True)}
    assert not any(known[name] for name in ('viscous_3', 'dry_3', 'friction_joint_3'))
    assert all(known[f'{kind}_{k}'] for kind in ('viscous', 'dry', 'friction_joint')
               for k in (1, 2))


def test_friction_beside_links_is_that_with_the_links_of_all_sessions() -> None:
    made, own = fleet(), information(4.0, 7, 600)
    apart, daily = made.reading(own), made.daily[:made.own]
    links = np.linspace(-0.05, 0.07, made.own)
    found = made.beside(own, links, apart)
    known = made.reference + made.directions @ np.where(daily, 0.0, links)
    normal, right = normal_equations(own, made.weights, known)
    directions = made.directions[:, daily]
    covariance = np.linalg.inv(directions.T @ normal @ directions)
    np.testing.assert_allclose(found.values[:9], covariance @ directions.T @ right, rtol=1e-5)
    np.testing.assert_array_equal(found.values[9:20], apart.values[9:20])
    whole = np.zeros((20, 20))
    whole[:9, :9], whole[9:, 9:] = covariance, apart.covariance[9:20, 9:20]
    np.testing.assert_allclose(found.covariance[:20, :20], whole, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(found.colour[9:20], apart.colour[9:20])
    projected = own.projected(range(3), own.structure, directions, known)
    scatter = batch_covariance(projected, made.weights, solve_rows(weighted_factor(
        projected, made.weights)))[0]
    np.testing.assert_allclose(found.colour[:9], np.diag(scatter) / np.diag(covariance), rtol=1e-5)
    np.testing.assert_allclose(found.values[20:], made.sums @ found.values[:20])


def test_viscous_and_dry_friction_add_up_by_their_torque() -> None:
    made, own = fleet(), information(0.5)
    for axis, row in enumerate(made.sums[:3]):
        order = [one.name for one in made.all[:9]]
        places = [order.index(f'{kind}_{axis + 1}') for kind in ('viscous', 'dry')]
        expected = np.zeros(made.own)
        for place in places:
            expected[place] = np.sqrt(max(sum(np.sum((
                batch.factors[j][:, :there.sum()] @ made.directions[there, place])**2)
                for batch in own.batches) for j, there in enumerate(own.structure)))
        np.testing.assert_allclose(row, expected / expected.sum())


def test_the_mass_carried_is_the_best_linear_guess_from_changes_of_links() -> None:
    """Of any rigid load exactly; of a change that is none by their covariance in the fleet."""
    made = fleet()
    row, rng = made.sums[3], np.random.default_rng(0)
    links = [k for k, one in enumerate(made.all) if one.kind == 'link']
    assert not np.delete(row, links).any()
    matrix = MODEL.reduction.matrix[:9]
    for _ in range(3):
        standard = np.zeros(matrix.shape[1])
        load = rng.normal(size=10)
        standard[20:30] = load
        change = np.zeros(made.own)
        change[links] = matrix @ standard
        assert row @ change == pytest.approx(load[0], abs=1e-9)
    normal, _ = normal_equations(information(0.5), made.weights, made.reference)
    covariance = np.linalg.inv(made.directions.T @ normal @ made.directions)[np.ix_(links, links)]
    design = matrix[:, 20:30]
    inverse = np.linalg.inv(covariance)
    best = np.linalg.pinv(design.T @ inverse @ design, rcond=1e-9, hermitian=True) \
        @ design.T @ inverse
    np.testing.assert_allclose(row[links], best[0], rtol=1e-4, atol=1e-6)


def test_parameters_of_gears_are_shares_of_those_of_the_fleet() -> None:
    robot = load_robot('elastic_2r')
    model = Structure.uniform(robot, True, 'coulomb', {'width': 0.05}).torque_model(robot)
    rng, count = np.random.default_rng(1), len(model.reduction.names)
    columns = rng.normal(size=(model.robot.rows, count, 400)) * model.structure[:, :, None]
    values = rng.uniform(-3.0, 3.0, count)
    made = Accumulator(model.reduction.names, model.structure, 100)
    made.begin()
    effort = np.einsum('b,jbn->nj', values, columns) + 0.01 * rng.normal(size=(
        400, model.robot.rows))
    made.add(columns, effort, effort)
    found = Characteristics.of(model, made.information())
    kinds = {one.name: (one.kind, one.group, one.unit) for one in found.all}
    assert kinds['K1'] == ('stiffness', 'gear', '') and kinds['D2'] == ('gear', 'gear', '')
    assert kinds['Ia1'][0] == 'rotor' and kinds['Izz2'] == ('link', 'link', 'kg m^2')
    for k, one in enumerate(found.all[:found.own]):
        if one.name in model.reduction.names:
            place = model.reduction.names.index(one.name)
            size = abs(found.reference[place]) if one.name[0] in 'KDs' else 1.0
            np.testing.assert_allclose(found.directions[:, k], size * np.eye(count)[place])


def test_causes_go_by_the_kind_and_the_sign() -> None:
    assert set(CAUSES) == set(FIRST)
    for kind, (rise, fall) in FIRST.items():
        assert cause(kind, 0.2).startswith(rise) and cause(kind, -0.2).startswith(fall)
