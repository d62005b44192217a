"""Parts of the elastic estimator (`estimation.elastic`), of estimates (`estimation.estimate`) and
bounds (`estimation.passive_friction`) in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import elastic_arms
import numpy as np
import pytest
from linear_data import NAMES, Data
from scipy import stats
from scipy.optimize import lsq_linear

from robot_dynid.document import Row, Section, Table
from robot_dynid.effects import JointFriction, RigidLinks
from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS, Estimate, Status
from robot_dynid.estimation.elastic import (
    Deflected,
    followed,
    least_squares_biased,
    mark_undetermined,
    stiffnesses,
    undetermined,
)
from robot_dynid.estimation.errors_in_variables.exogeneity import Bias
from robot_dynid.estimation.estimate import (
    Details,
    fisher_tail,
    interval_factor,
    student_quantile,
    student_tail,
)
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.passive_friction import bound_friction
from robot_dynid.identified.structure import Structure
from robot_dynid.signals.filters import derivative
from robot_dynid.types import Samples

JOINTS = {'K1': 'elbow', 'K3': 'wrist'}


def estimate(values, std, degrees=6, names=('K1', 'm2', 'K3'), **more):
    """Return an estimate of parameters with these deviations."""
    count = len(values)
    return Estimate(names, np.array(values, dtype=float), np.diag(np.square(std)), np.ones(1), 1.0,
                    1.0, count, degrees, 'own', **more)


@pytest.mark.parametrize('count', [1, 2, 3])
def test_a_stiffness_is_biased_beyond_chance_of_all_of_them(count):
    joints = {f'K{k}': 'a' for k in range(count)}
    bound = stats.t.ppf(1.0 - 0.05 / count, 9)
    for factor in (0.98, 1.02):
        rows = [Bias('m', 50.0, 0.1), *(Bias(f'K{k}', 0.0, 0.1) for k in range(count - 1)),
                Bias(f'K{count - 1}', -factor * bound * 0.4, 0.4)]
        assert least_squares_biased(rows, 9, joints) is (factor > 1.0)
    assert least_squares_biased([Bias('m', 50.0, 0.1)], 9, joints) is False


def test_a_stiffness_is_undetermined_if_its_deflection_may_be_zero():
    factor = stats.t.ppf(0.975, 6)
    found = estimate([1.02 * factor * 5.0, 0.0, 0.98 * factor * 7.0], [5.0, 1.0, 7.0])
    assert undetermined(found, JOINTS) == ('K3',)
    assert undetermined(found, JOINTS, ['K1', 'm2']) == ('K1', 'K3')
    assert undetermined(replace(found, not_excited=('K1',)), JOINTS) == ('K1', 'K3')
    assert undetermined(found, JOINTS, (), np.array([5.2, 9.0, 6.0])) == ('K1', 'K3')
    assert undetermined(found, {'K1': 'elbow'}, (), np.array([5.05, 0.0, 0.0])) == ()
    sure = estimate([20.0, 0.0, 30.0], [5.0, 1.0, 7.0], warnings=('before',))
    assert mark_undetermined(sure, JOINTS, (), np.zeros(3)) is sure
    marked = mark_undetermined(replace(found, not_excited=('m2',), warnings=('before',)), JOINTS,
                               (), np.zeros(3))
    assert marked.not_excited == ('m2', 'K3') and marked.status is Status.NOT_EXCITED
    assert marked.warnings == (
        'before', 'K3 of joint wrist is not distinguishable from infinity: make the joint rigid '
        '(omit it from elastic_joints), or load it more')


def test_a_share_is_the_squared_partial_correlation_of_a_column_with_the_effort():
    data = Data(300)
    information = data.accumulated(30)
    weights = joint_weights(information)
    tall, effort = data.stacked(weights)
    values = solve(information, weights).values
    residual = effort - tall @ values
    expected = []
    for k in range(5):
        rest = np.delete(tall, k, axis=1)
        alone = tall[:, k] - rest @ np.linalg.lstsq(rest, tall[:, k], rcond=None)[0]
        signal = residual + values[k] * alone
        expected.append((alone @ signal)**2 / (alone @ alone) / (signal @ signal))
    assert followed(information, values) == pytest.approx(expected, rel=1e-6)


def test_motors_bend_the_gears_by_the_torque_of_the_links():
    robot, _ = elastic_arms.elastic_arm()
    model = Structure.uniform(robot, True, 'coulomb', {'width': 0.01}).torque_model(robot)
    names = model.reduction.names
    assert stiffnesses(model) == {f'K{j + 1}': robot.joints[j] for j in range(3)}
    values = np.random.default_rng(0).uniform(0.2, 1.0, len(names))
    stiff = np.array([-300.0, 500.0, 0.0])
    for name, value in zip(('K1', 'K2', 'K3'), stiff, strict=True):
        values[names.index(name)] = value
    links = np.where(model.base_of(RigidLinks), values, 0.0)
    time, columns = 0.01 * np.arange(200), robot.n + len(robot.drive.elastic)
    phase = np.outer(3.0 * time, np.ones(columns)) + np.arange(columns)
    samples = Samples(robot.joints, time, np.sin(phase), 3.0 * np.cos(phase), -9.0 * np.sin(phase),
                      starts=(0, 120))
    found = Deflected(model, values)(samples)
    bend = model.effort(samples, links)[:, :3] / np.maximum(np.abs(stiff), 1e-12)
    for rows in (slice(0, 120), slice(120, 200)):
        part = bend[rows]
        for ours, before in ((found.position, samples.position),
                             (found.velocity, samples.velocity),
                             (found.acceleration, samples.acceleration)):
            assert ours[rows, :3].tolist() == before[rows, :3].tolist()
            assert ours[rows, 3:] == pytest.approx(before[rows, :3] + part, rel=1e-9)
            part = derivative(part, 0.01)


def test_quantiles_and_tails_are_those_of_scipy():
    assert student_quantile(0.93, 5.5) == pytest.approx(stats.t.ppf(0.93, 5.5))
    assert student_tail(-1.7, 6.0) == student_tail(1.7, 6.0)
    assert student_tail(1.7, 6.0) == pytest.approx(2.0 * stats.t.sf(1.7, 6.0))
    assert fisher_tail(2.3, (3, 11)) == pytest.approx(stats.f.sf(2.3, 3, 11))
    assert interval_factor(9) == pytest.approx(stats.t.ppf(0.975, 9))
    assert interval_factor(9, 0.8) == pytest.approx(stats.t.ppf(0.9, 9))


def test_intervals_of_an_estimate_are_infinite_where_nothing_is_excited():
    found = estimate([4.0, -2.0, 0.0], [0.5, 0.25, 0.1], not_excited=('m2',))
    assert found.std.tolist() == [0.5, np.inf, 0.1]
    assert found.relative_std.tolist() == [0.125, np.inf, np.inf]
    for level, arguments in ((0.95, ()), (0.8, (0.8,))):
        lower, upper = found.interval(*arguments)
        reach = stats.t.ppf(0.5 + level / 2.0, 6) * np.array([0.5, np.inf, 0.1])
        assert lower == pytest.approx(found.values - reach)
        assert upper == pytest.approx(found.values + reach)


@dataclass(frozen=True)
class Told(Details):
    """Details with a sentence and a table."""

    text: str = ''
    count: int = 0

    def sentence(self, rows):
        return self.text and f'{self.text} of {rows[0]}'

    def tables(self, rows):
        return (Table(('a',), (Row((rows[1],)),)),) * self.count


@pytest.mark.parametrize(('text', 'count', 'title'), [
    ('', 0, ''), ('noise', 0, 'Noise of x.'), ('', 2, ''), ('noise', 1, 'Noise of x.')])
def test_details_make_one_section_or_none(text, count, title):
    rows = ('x', 'y')
    found = Told(text, count).sections('own', rows)
    assert found == (() if not (text or count) else (
        Section('Method own', text=title, tables=Told(text, count).tables(rows)),))
    plain = Details()
    assert (plain.from_prior, plain.active_constraints, dict(plain.prior_share)) == ((), (), {})
    assert plain.sentence(rows) == '' and plain.tables(rows) == ()


def test_methods_that_solve_for_everything_at_once_say_so():
    for call in (lambda m: m.part_solver(None, ()), lambda m: m.joint_weights(None)):
        with pytest.raises(UsageError, match=r'^irls (solves for all|is not linear)'):
            call(ESTIMATORS['irls'])
    method = ESTIMATORS['irls']
    assert method.sequential is False and method.fit_to_batches(None, None) is None
    assert method.for_robot(None) is method and method.laws(None, 'chosen', ()) == 'chosen'
    assert not (method.single_joint_motions or method.estimates_motion or method.linear
                or method.seeks_elastic_joints or method.physically_feasible
                or method.fits_information) and method.open_parameters == ''
    assert ESTIMATORS['elastic'].seeks_elastic_joints


def bounded(values, std, matrix=None, standard=None, passive=('a', 'c', 'e'), present=1.0):
    """Return an estimate whose friction is bounded, and the data of five parameters."""
    data = Data(300)
    data.columns[:, 1] *= present
    friction = object.__new__(type('Friction', (JointFriction,), {'nonnegative': passive}))
    model = SimpleNamespace(blocks=(friction,), reduction=SimpleNamespace(
        names=NAMES, matrix=np.eye(5) if matrix is None else matrix))
    about = SimpleNamespace(model=model, information=data.accumulated(30))
    found = estimate(values, std, 6, NAMES, standard=standard, warnings=('before',))
    return found, bound_friction(found, about), data, about.information


def test_negative_friction_of_passive_axes_is_zero_and_the_rest_follows():
    values, std = [0.4, -2.0, -0.3, 30.0, -0.02], [0.1, 0.1, 0.124, 1.0, 0.0079]
    _, found, data, information = bounded(values, std)
    tall, _ = data.stacked(joint_weights(information))
    low = np.where([True, False, True, False, True], 0.0, -np.inf)
    best = lsq_linear(tall, tall @ values, (low, np.inf), method='bvls', tol=1e-14).x
    assert found.values == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert found.values[[2, 4]].tolist() == [0.0, 0.0] and found.values[1] != -2.0
    reach = stats.t.ppf(0.975, 6) * np.array(std)
    assert 0.3 < reach[2] < 0.304 and 0.0193 < reach[4] < 0.02
    assert found.warnings == (
        'before', f'negative friction is set to zero: e (-0.02 +- {reach[4]:.2g}); another effect '
        'looks like friction: try another friction law, or record slow motion')
    _, found, _, _ = bounded(values, [0.1, 0.1, 0.1, 1.0, 0.001])
    assert f'zero: c (-0.3 +- {reach[0]:.2g}), e (-0.02 +- ' in found.warnings[1]
    assert found.covariance.tolist() == np.diag(np.square([0.1, 0.1, 0.1, 1.0, 0.001])).tolist()
    _, found, _, _ = bounded([0.4, -2.0, -0.3, 30.0, 0.1], [0.1, 0.1, 9.0, 1.0, 0.1])
    assert found.warnings == ('before',) and found.values[2] == 0.0


def test_parameters_without_columns_stay_beside_bounded_friction():
    _, found, _, _ = bounded([0.4, -2.0, -0.3, 30.0, 0.1], np.full(5, 0.1), present=0.0)
    assert found.values[1] == -2.0 and np.isfinite(found.values).all() and found.values[2] == 0.0


@pytest.mark.parametrize('change', [
    {'values': [0.4, -2.0, 0.3, -30.0, 0.02]}, {'standard': np.zeros(5)},
    {'matrix': np.eye(5) + 0.1 * np.eye(5, k=-1) + 0.1 * np.eye(5, k=1)}, {'passive': ('b2',)}])
def test_estimates_without_negative_friction_of_its_own_stay(change):
    """Feasible ones, too, and parameters that friction shares with others."""
    before, found, _, _ = bounded(**{
        'values': [0.4, -2.0, -0.3, 30.0, -0.02], 'std': np.full(5, 0.1), **change})
    assert found is before
