"""estimation/feasible/bounds.py: bounds of links are kept, said to be active, and refused where
they contradict."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from feasible_recordings import assert_real, recorded
from tolerances import SAME_FORMULA, SOLVER

from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.feasible.bounds import (
    Bounds,
    Ellipsoid,
    LinkBounds,
    limits_of,
)
from robot_dynid.estimation.feasible.certificate import active_constraints, prior_share
from robot_dynid.estimation.feasible.prior import nominal_bodies
from robot_dynid.estimation.feasible.program import FeasibleSet
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.robot.inertia import com_from_parameters, parameters_from_com, pseudo_inertia
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

METHODS = ('feasible', 'sequential-feasible')
LINK = 'link_2'


@pytest.fixture(scope='module')
def data():
    """Return a noisy recording of the planar arm."""
    robot = load_robot('planar_3r')
    return recorded(robot, robot.nominal, np.random.default_rng(0), noise=0.05, count=800)


def fit(data, method, bounds):
    """Return the estimate under ``bounds``."""
    return type(ESTIMATORS[method])(prior_weight=1e-3, bounds=bounds).fit(data.experiment)


def of_link(estimate, i=1):
    """Return mass, centre of mass and parameters of a link."""
    link = estimate.standard[10 * i:10 * i + 10]
    return (*com_from_parameters(link)[:2], link)


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize(('link', 'label'), [
    (LinkBounds(mass=(3.5, 4.0)), 'least mass of link_2'),
    (LinkBounds(mass=(1.0, 2.5)), 'most mass of link_2'),
    (LinkBounds(com_lower=(-1.0, 0.02, -1.0), com_upper=(1.0, 0.05, 1.0)),
     'least y of the centre of mass of link_2'),
    (LinkBounds(ellipsoid=Ellipsoid((0.1, 0.0, 0.0), (0.15, 0.12, 0.1))),
     'bounding ellipsoid of link_2'),
])
def test_bounds_are_kept_and_named_when_active(data, method, link, label):
    estimate = fit(data, method, Bounds(((LINK, link),)))
    assert_real(data.model, estimate, np.random.default_rng(1))
    mass, com, parameters = of_link(estimate)
    if link.mass is not None:
        assert link.mass[0] - SOLVER <= mass <= link.mass[1] + SOLVER
    if link.com_lower is not None:
        assert np.all(com >= np.array(link.com_lower) - SOLVER)
        assert np.all(com <= np.array(link.com_upper) + SOLVER)
    if link.ellipsoid is not None:
        assert link.ellipsoid.row @ parameters >= -SOLVER
        # then the centre of mass is inside too
        inside = (com - link.ellipsoid.centre) / link.ellipsoid.radii
        assert inside @ inside <= 1.0 + SOLVER
    assert label in estimate.certificate.active


@pytest.mark.parametrize('method', METHODS)
def test_total_mass_and_symmetry(data, method):
    bounds = Bounds(((LINK, LinkBounds(symmetric=('y', 'z'))),), total_mass=(7.0, 7.5))
    estimate = fit(data, method, bounds)
    assert_real(data.model, estimate, np.random.default_rng(1))
    assert 7.0 - SOLVER <= estimate.standard[:30:10].sum() <= 7.5 + SOLVER
    link = of_link(estimate)[2]
    assert link[[2, 3, 5, 7, 8]] == pytest.approx(np.zeros(5), abs=SOLVER)
    assert 'maximum total mass' in estimate.certificate.active


def test_wide_bounds_change_nothing(data):
    wide = Bounds(tuple((name, LinkBounds(
        mass=(0.0, np.inf), ellipsoid=Ellipsoid((0.0, 0.0, 0.0), (9.0, 9.0, 9.0))))
        for name in data.model.robot.bodies), total_mass=(0.0, np.inf))
    free, bound = fit(data, 'feasible', Bounds()), fit(data, 'feasible', wide)
    assert bound.standard == pytest.approx(free.standard, rel=1e-3, abs=1e-4)


def test_ellipsoid_row_is_the_trace_of_its_matrix():
    shape = Ellipsoid((0.1, -0.2, 0.3), (0.5, 0.4, 0.3))
    centre, radii = np.array(shape.centre), np.array(shape.radii)
    q = np.zeros((4, 4))
    q[:3, :3] = -np.diag(radii**-2)
    q[:3, 3] = q[3, :3] = radii**-2 * centre
    q[3, 3] = 1.0 - centre @ (radii**-2 * centre)
    rng = np.random.default_rng(2)
    body = parameters_from_com(2.0, rng.normal(size=3), np.eye(3) + 0.1)
    assert shape.row @ body == pytest.approx(np.trace(q @ pseudo_inertia(body)),
                                             rel=SAME_FORMULA)
    # a point inside, on and outside the surface
    for share, sign in ((0.5, 1.0), (1.0, 0.0), (1.5, -1.0)):
        point = parameters_from_com(1.0, centre + share * radii * [1.0, 0.0, 0.0],
                                    np.zeros((3, 3)))
        assert np.sign(np.round(shape.row @ point, 12)) == sign


def test_nominal_link_outside_its_bounds_is_moved_and_named(data):
    estimate = fit(data, 'feasible', Bounds(((LINK, LinkBounds(mass=(5.0, 6.0))),)))
    [warning] = estimate.warnings
    assert f'nominal inertia of {LINK} is outside its bounds' in warning
    assert 'mass 5 kg' in warning


@pytest.mark.parametrize('link', [
    LinkBounds(mass=(1.0, 20.0)),
    LinkBounds(com_lower=(0.1, -0.1, -0.1), com_upper=(1.0, 0.1, 0.1)),
    LinkBounds(ellipsoid=Ellipsoid((0.3, 0.0, 0.0), (1.0, 0.8, 0.8))),
])
def test_nominal_link_inside_its_bounds_stays_as_it_is(link):
    robot = load_robot('planar_3r')
    total = robot.nominal[:, 0].sum()  # more than that of the link alone
    limits = limits_of(Bounds(((LINK, link),), (total, total)), robot, 10 * robot.n)
    bodies, warnings = nominal_bodies(robot, limits)
    np.testing.assert_array_equal(bodies, [pseudo_inertia(p) for p in robot.tree.nominal])
    assert warnings == []


@pytest.mark.parametrize(('make', 'message'), [
    (lambda: Bounds(((LINK, LinkBounds(mass=(-2.0, -1.0))),)), 'masses are above zero'),
    (lambda: Bounds(((LINK, LinkBounds(mass=(-1.0, 1.0))),)), 'masses are above zero'),
    (lambda: Bounds(((LINK, LinkBounds(mass=(3.0, 1.0))),)), 'mass of link_2 from 3.0 to 1.0 kg'),
    (lambda: Bounds(total_mass=(3.0, 1.0)), 'total mass from 3.0 to 1.0 kg is empty'),
    (lambda: Bounds(((LINK, LinkBounds(com_lower=(0.0, 1.0, 0.0),
                                       com_upper=(1.0, 0.0, 1.0))),)), 'along y: 1.0 to 0.0 m'),
    (lambda: Bounds(((LINK, LinkBounds(ellipsoid=Ellipsoid((0.0, 0.0, 0.0),
                                                           (1.0, 0.0, 1.0)))),)), 'radii must'),
    (lambda: Bounds(((LINK, LinkBounds(symmetric=('w',))),)), 'use x, y, z'),
])
def test_impossible_bounds_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize(('bounds', 'message'), [
    (Bounds((('hand', LinkBounds(mass=(1.0, 2.0))),)), 'moves no link hand; it moves link_1'),
    (Bounds(((LINK, LinkBounds(mass=(1.0, 2.0))),), total_mass=(100.0, np.inf)), None),
    (Bounds(tuple((name, LinkBounds(mass=(1.0, 2.0))) for name in ('link_1', 'link_2', 'link_3')),
            total_mass=(7.0, 9.0)), 'add up to 7.0 to 9.0 kg'),
    (Bounds(((LINK, LinkBounds(
        com_lower=(0.5, 0.5, 0.5), com_upper=(0.6, 0.6, 0.6),
        ellipsoid=Ellipsoid((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)))),)),
     'bounds of link_2 contradict each other'),
])
def test_contradictory_bounds_are_refused_before_anything_is_fitted(data, bounds, message):
    if message is None:
        limits_of(bounds, data.model.robot, 30)  # the other links may weigh anything
        return
    with pytest.raises(UsageError, match=message):
        Feasible(bounds=bounds).fit(data.experiment)


def test_recipes_hold_bounds():
    content = {'prior': 'euclidean', 'prior_weight': 1e-3, 'sweeps': 3, 'bounds': {
        'total_mass': [1, 1e7], 'links': {LINK: {
            'mass': [1, 2], 'com': [[0, 0, 0], [1, 1, 1]], 'symmetric': ['x'],
            'ellipsoid': {'centre': [0, 0, 0], 'radii': [1, 1, 1]}}}}}
    recipe = recipe_from_dict(content)
    assert recipe.estimator_for('sequential-feasible') == SequentialFeasible(
        'euclidean', 1e-3, sweeps=3, bounds=Bounds(
            ((LINK, LinkBounds((1.0, 2.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0),
                               Ellipsoid((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), ('x',))),),
            (1.0, 1e7)))
    assert recipe_from_dict({'bounds': None}).estimator_for('feasible') == Feasible()


@pytest.mark.parametrize(('content', 'message'), [
    ({'prior': 'flat'}, "prior 'flat': choose one of"),
    ({'prior_weight': -1}, 'prior_weight must be at least 0'),
    ({'sweeps': 1.5}, 'sweeps must be a whole number'),
    ({'bounds': {'mass': [1, 2]}}, 'bounds must be a mapping with keys of total_mass, links'),
    ({'bounds': {'links': [1]}}, 'links must be a mapping of names'),
    ({'bounds': {'links': {'a': {'mass': 3}}}}, 'bounds: a: mass must be 2 numbers, is 3'),
    ({'bounds': {'links': {'a': {'weight': 3}}}}, 'a must be a mapping with keys of mass, com'),
    ({'bounds': {'links': {'a': {'com': [0, 0, 0]}}}}, 'com must be two corners'),
    ({'bounds': {'links': {'a': {'ellipsoid': {'centre': [0, 0, 0]}}}}},
     'radii must be a list of 3'),
    ({'bounds': {'total_mass': ['a', 2]}}, 'total_mass must be 2 numbers'),
    ({'bounds': {'total_mass': [0, 1.01e7]}}, 'total_mass must be at most 1e.07'),
    ({'bounds': {'total_mass': [-1, 1]}}, 'total_mass must be at least 0'),
])
def test_broken_recipes_say_where(content, message):
    with pytest.raises(UsageError, match=message):
        recipe_from_dict(content)


def test_bounds_of_unknown_links_stop_an_identification_before_it_reads():
    robot = load_robot('planar_3r')
    log = RawLog('empty', robot.joints, np.zeros(0), np.zeros((0, 3)))
    recipe = Recipe(estimator={'bounds': {'links': {'hand': {'mass': [1, 2]}}}})
    with pytest.raises(UsageError, match='moves no link hand'):
        identify(robot, [log], 'feasible', recipe)


def test_limits_are_rows_for_the_standard_parameters():
    """A body is inside all of them where its mass, its centre and its symmetry are."""
    robot = load_robot('planar_3r')
    shape = Ellipsoid((0.1, 0.0, 0.2), (0.5, 0.4, 0.3))
    links = ((LINK, LinkBounds((2.0, 3.0), (0.1, -0.5, -np.inf), (0.1, np.inf, 0.4),
                               symmetric=('z',))),
             ('link_3', LinkBounds((1.0, np.inf), ellipsoid=shape)))
    found = limits_of(Bounds(links, (4.0, 9.0)), robot, 33)
    standard = np.arange(1.0, 34.0)
    m, mx, my, mz, _, _, _, ixz, iyz, _ = standard[10:20]
    expected = [
        ('least mass of link_2', m - 2.0, False), ('most mass of link_2', 3.0 - m, False),
        ('least x of the centre of mass of link_2', mx - 0.1 * m, False),
        ('least y of the centre of mass of link_2', my + 0.5 * m, False),
        ('most x of the centre of mass of link_2', 0.1 * m - mx, False),
        ('most z of the centre of mass of link_2', 0.4 * m - mz, False),
        ('symmetry (mz) of link_2', mz, True), ('symmetry (Ixz) of link_2', ixz, True),
        ('symmetry (Iyz) of link_2', iyz, True),
        ('least mass of link_3', standard[20] - 1.0, False),
        ('bounding ellipsoid of link_3', shape.row @ standard[20:30], False),
        ('minimum total mass', standard[:30:10].sum() - 4.0, False),
        ('maximum total mass', 9.0 - standard[:30:10].sum(), False)]
    assert list(found.labels) == [label for label, _, _ in expected]
    assert found.matrix @ standard - found.offset == pytest.approx([s for _, s, _ in expected])
    assert found.equal.tolist() == [equal for _, _, equal in expected]
    assert not found.largest[:-2].any()
    assert found.largest[-2:].tolist() == [[np.inf, 3.0, np.inf], [0.0, -2.0, -1.0]]


@pytest.mark.parametrize(('total', 'possible'), [
    ((0.0, 2.9), False), ((0.0, 3.0), True), ((6.0, 7.0), True), ((6.1, 7.0), False)])
def test_masses_within_their_bounds_must_add_up_to_the_total(total, possible):
    robot = load_robot('planar_3r')
    bounds = Bounds(tuple((name, LinkBounds((1.0, 2.0))) for name in robot.tree.bodies), total)
    if possible:
        assert limits_of(bounds, robot, 30).labels[-1] == 'maximum total mass'
    else:
        with pytest.raises(UsageError, match='no masses within the bounds of the links add up'):
            limits_of(bounds, robot, 30)


@pytest.mark.parametrize(('share', 'directions'), [(0.5, 2), (0.0, 1)])
def test_the_share_of_the_prior_is_that_of_the_variances(share, directions):
    """By the inverse of the information with data over that without; the last has no data."""
    weights, rng = np.array([1.0, 4.0, 0.25]), np.random.default_rng(0)
    transform = rng.normal(size=(4, 3))
    design = np.array([[3.0, 0.4, 0.0], [0.3, 0.2, 0.0]])
    left, count = prior_share(SimpleNamespace(weights=weights, transform=transform), design, share)
    precise = 2.0 / max(share, 1e-9) * design.T @ design + np.diag(weights)
    after, before = (np.diag(transform @ np.linalg.inv(one) @ transform.T)
                     for one in (precise, np.diag(weights)))
    assert left == pytest.approx(after / before, abs=1e-6)
    assert count == directions


def test_active_constraints_are_named():
    whitening = SimpleNamespace(
        links=('a', 'b'), least=lambda v: np.array([1.9e-5, 2.1e-5]), names=('fc1', 'fv1', 'm1'),
        nonnegative=(True, True, False))
    limits = SimpleNamespace(labels=('one', 'two', 'three'), equal=np.array([False, True, False]))
    feasible = SimpleNamespace(whitening=whitening, limits=limits,
                               slack=lambda v: np.array([0.9e-4, 0.0, 1.1e-4]))
    assert active_constraints(feasible, np.array([0.9e-4, 1.1e-4, 0.0])) == (
        'inertia of a at its minimum', 'fc1 at zero', 'one')


def test_slacks_are_distances_from_bounds_and_below_zero_for_equations_that_fail():
    matrix = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    limits = SimpleNamespace(matrix=matrix, offset=np.array([2.5, 1.0, 1.0, 3.0]),
                             equal=np.array([False, False, True, True]))
    feasible = FeasibleSet(SimpleNamespace(transform=2.0 * np.eye(2)), limits)
    # rows of length one for v: (3 x + 4 y) / 5 - 0.25, y - 0.5, then of y = 0.5 and of y = 1.5
    np.testing.assert_allclose(feasible.slack(np.array([1.0, 1.0])), [
        1.4 - 0.25, 0.5, -0.5, -0.5], rtol=1e-12)
