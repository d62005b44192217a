"""estimation/feasible/near_nominal.py: fits between nominal links and least squares, never worse
than both."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from chains import random_chain
from feasible_recordings import motion, moved, recorded, truth_of

from robot_dynid.effects.counterbalance import Spring
from robot_dynid.estimation import Feasible, LeastSquares
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible import near_nominal
from robot_dynid.estimation.feasible.near_nominal import (
    FREE_FIT_EXCESS,
    PULLS,
    NearNominal,
    best_held_out,
    best_of,
    by_fold,
    worse_than_nominal,
)
from robot_dynid.estimation.feasible.prior import link_transforms
from robot_dynid.estimation.feasible.simultaneous import open_offsets
from robot_dynid.estimation.information import RAW
from robot_dynid.estimation.least_squares import joint_weights, solve, weighted_factor
from robot_dynid.estimation.uncertainty.held_out import folds, held_out
from robot_dynid.identification.fit import control_parameters
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot

#: rotors and Coulomb friction
STRUCTURE = Structure.uniform(load_robot('ur10e'), True, 'coulomb', {'width': 0.05})


def experiment(count: int, off: float = 0.0, noise: float = 0.3) -> Experiment:
    """Return a recording of a chain whose links are ``off`` their description."""
    rng = np.random.default_rng(3)
    robot = random_chain(rng, 4)
    links = [moved(body, rng, off) for body in robot.nominal]
    return recorded(robot, links, rng, noise, count=count).experiment


def test_the_ends_are_nominal_links_with_fitted_friction_and_least_squares() -> None:
    data = experiment(600, 0.2)
    values = NearNominal.of(data).values(data.information)
    control = control_parameters(data.model, data.information)
    free = solve(data.information, joint_weights(data.information)).values
    assert values[0] == pytest.approx(control, rel=1e-6, abs=1e-6 * np.abs(control).max())
    assert np.array_equal(values[-1], free)
    assert len(values) == len(PULLS)


def test_fits_in_between_are_least_squares_with_a_prior_on_the_links() -> None:
    """Also their sums of squares, the prior included; of the effort, and of another column."""
    data = experiment(300, 0.2)
    fits, robot, matrix = NearNominal.of(data), data.model.robot, data.model.reduction.matrix
    information, links = data.information, 10 * data.model.robot.n
    found, products = fits.responses(information)
    tall = weighted_factor(information, joint_weights(information))
    tall = tall / np.sqrt(information.samples * len(information.structure))
    design, effort = tall[:, :-1], tall[:, -1] - tall[:, :-1] @ (
        matrix[:, :links] @ robot.nominal.ravel())
    units = np.hstack([matrix[:, 10 * i:10 * i + 10] @ one
                       for i, one in enumerate(link_transforms(robot))])
    free = np.hstack([units, matrix[:, links:]])
    for pull, values, product in zip(PULLS[1:-1], found[1:, :, 0], products[1:], strict=True):
        prior = np.sqrt(0.5 * pull / robot.n) * np.eye(links, free.shape[1])
        rows, target = np.vstack([design @ free, prior]), np.append(effort, np.zeros(links))
        best = np.linalg.lstsq(rows, target, rcond=1e-12)[0]
        expected = matrix[:, :links] @ robot.nominal.ravel() + free @ best
        assert values == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())
        assert product[0, 0] == pytest.approx(np.sum((target - rows @ best)**2), rel=1e-6)


def test_each_joint_takes_the_pull_of_its_least_mean_error() -> None:
    errors = np.array([[[1.0, 5.0], [9.0, 5.0]], [[4.0, 6.0], [4.0, 7.0]], [[6.0, 4.0]] * 2])
    assert best_of(errors).tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert best_of(np.empty((3, 0, 2))).shape == (0, 2)


def test_friction_of_no_motion_is_none_in_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A joint that is held moves by rounding: a model with a value of 1e12 cannot be read."""
    data = experiment(600)
    tall = weighted_factor(data.information, joint_weights(data.information)).copy()
    held = data.model.reduction.names.index('fv4')
    tall[:, held] *= 1e-17
    monkeypatch.setattr('robot_dynid.identification.fit.weighted_factor', lambda *_: tall)
    control = control_parameters(data.model, data.information)
    assert abs(control[held]) < 1e-12 and np.abs(control).max() > 0.1


def test_the_near_nominal_fit_is_hardly_worse_than_nominal_links_or_free_fit() -> None:
    data = experiment(300, 0.1)
    errors = best_held_out(data).mean(axis=0)
    information = by_fold(data.information)
    nominal = held_out(information, fit=lambda own: control_parameters(
        data.model, information.subset(own)))
    for other in (nominal, held_out(information)):
        assert ((1.0 - FREE_FIT_EXCESS)**2 * errors <= 1.0001 * other.folds.mean(axis=0)).all()


def test_noise_that_least_squares_learn_is_told_by_joint() -> None:
    """Of short recordings, where the description is right; not of long or other ones."""
    worse = worse_than_nominal(experiment(120))
    assert worse
    assert all(nominal < 0.9 * free for free, nominal in worse.values())
    assert not worse_than_nominal(experiment(3000))
    assert not worse_than_nominal(experiment(600, 0.3, 0.05))


def test_held_out_errors_are_those_of_the_prior_that_was_chosen() -> None:
    data, method = experiment(120), Feasible(prior_weight=1e-2)
    estimate = method.fit(data)
    fit = method.fit_to_batches(data, estimate)
    assert fit is not None
    every = fit(range(len(data.information.distinct.batches)))
    assert every == pytest.approx(estimate.values, abs=1e-4 * np.abs(estimate.values).max())
    drawn, free = held_out(data.information, fit=fit), held_out(data.information)
    assert drawn.raw.mean() < 0.9 * free.raw.mean()


def test_least_squares_that_are_feasible_are_judged_as_least_squares() -> None:
    data = experiment(3000, noise=0.05)
    estimate = Feasible().fit(data)
    assert estimate.prior_weight == 0.0
    assert Feasible().fit_to_batches(data, estimate) is None


def test_an_offset_that_is_not_told_from_weight_is_none() -> None:
    """The shoulder hardly moves: of its offset and its weight only the sum shows."""
    robot, rng = load_robot('ur10e'), np.random.default_rng(5)
    model = STRUCTURE.torque_model(robot)
    counterbalanced = replace(
        STRUCTURE, chosen={'counterbalance': (Spring(1, 0.4, 0.0),)}).torque_model(robot)
    truth = truth_of(model, [moved(body, rng, 0.1) for body in robot.nominal], rng)
    samples, other = (motion(robot, 800, rng) for _ in range(2))
    for signal, middle in ((samples.position, -1.2), (samples.velocity, 0.0),
                           (samples.acceleration, 0.0)):
        signal[:, 1] = middle + 0.02 * signal[:, 1]
    clean = model.effort(samples, model.reduction.base(truth))
    effort = clean + 0.1 * clean.std(axis=0) * rng.normal(size=clean.shape)
    data = Experiment.of(model, [replace(samples, effort=effort, measured=effort)])
    assert 'f02' in open_offsets(data)
    assert 'f02' not in open_offsets(Experiment.of(counterbalanced, data.recordings))
    estimate = Feasible().fit(data)
    offset = model.reduction.standard.index('f02')
    assert abs(estimate.standard[offset]) < 0.5
    there = model.effort(other, model.reduction.base(truth))[:, 1]
    left = [np.std(there - model.effort(other, values)[:, 1])
            for values in (estimate.values, LeastSquares().fit(data).values)]
    assert left[0] < 0.5 * left[1]


def test_the_best_pull_of_each_joint_has_the_least_mean_over_folds() -> None:
    errors = np.array([[[1.0, 5.0], [3.0, 5.0]], [[2.5, 1.0], [2.5, 8.0]]])  # pull, fold, joint
    np.testing.assert_array_equal(best_of(errors), [[1.0, 1.0], [3.0, 8.0]])
    assert best_of(errors[:, :0]).shape == (0, 2)


def known_errors(monkeypatch: pytest.MonkeyPatch, nominal: list[float], pulled: list[float],
                 free: list[float]) -> Experiment:
    """Return an experiment of one joint whose held-out errors [N m] of the folds are known."""
    errors = np.full((len(PULLS), len(free), 1), 1e3)
    errors[0, :, 0], errors[3, :, 0], errors[-1, :, 0] = (
        np.square(one) for one in (nominal, pulled, free))
    monkeypatch.setattr(NearNominal, 'of', lambda _: SimpleNamespace(held_out=lambda _: errors))
    monkeypatch.setattr(near_nominal, 'by_fold', lambda _: None)
    return SimpleNamespace(  # type: ignore[return-value]
        information=None, model=SimpleNamespace(robot=SimpleNamespace(row_names=('one', 'two'))))


@pytest.mark.parametrize(('size', 'taken'), [(0.89, True), (0.91, False)])
def test_a_pull_is_taken_where_it_reduces_the_error_by_a_tenth(
    monkeypatch: pytest.MonkeyPatch, size: float, taken: bool
) -> None:
    data = known_errors(monkeypatch, [9.0, 9.0], [size, 2.0 * size], [1.0, 2.0])
    expected = [size, 2.0 * size] if taken else [1.0, 2.0]
    assert best_held_out(data)[:, 0] == pytest.approx(np.square(expected))
    assert worse_than_nominal(data) == {}


@pytest.mark.parametrize(('nominal', 'told'), [
    ([0.89, 1.7, 2.6], True), ([0.91, 1.82, 2.73], False),
    ([1.1, 2.1, 1.0], False)])  # in one fold alone
def test_joints_are_told_whose_free_fit_is_worse_by_a_tenth_in_most_folds(
    monkeypatch: pytest.MonkeyPatch, nominal: list[float], told: bool
) -> None:
    data = known_errors(monkeypatch, nominal, [9.0] * 3, [1.0, 2.0, 3.0])
    found = worse_than_nominal(data)
    assert found == ({'one': (pytest.approx(np.sqrt(14.0 / 3.0)), pytest.approx(
        np.sqrt(np.mean(np.square(nominal)))))} if told else {})


def test_without_folds_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    data = known_errors(monkeypatch, [], [], [])
    assert worse_than_nominal(data) == {}
    assert best_held_out(data).shape == (0, 1)


def test_held_out_errors_are_those_of_fits_to_the_other_folds() -> None:
    data = experiment(300, 0.1)
    information, fits = by_fold(data.information), NearNominal.of(data)
    errors, parts = fits.held_out(information), folds(information)
    assert errors.shape == (len(PULLS), len(parts), 4) and len(parts) > 2
    for number, fold in enumerate(parts):
        fitted, (left,) = information.subset(fold.fitted), fold.test
        batch = information.batches[left]
        for pull, values in enumerate(fits.values(fitted)):
            assert errors[pull, number] == pytest.approx(
                information.residual_energy(values, RAW, batch) / batch.samples, rel=1e-9)
