"""Non-minimal parameters by semidefinite programs, link by link and all at once.

The first three joints of a PUMA 560, then an arm of nine joints (108 parameters), each simulated
with Gaussian noise and A sin(100 t) on its efforts. The tables, figures and trajectories of the
paper are not legible in its text: true parameters of the PUMA are those of Armstrong, Khatib,
Burdick 1986, the nine-joint arm and all motions are our own. What can be compared is whether both
estimators are feasible and reproduce the efforts, and the time.
Source: a sequential optimization approach to identify non-minimal dynamic parameters of robot
manipulators, case examples 1 and 2.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.effects import RigidLinks
from robot_dynid.estimation.estimate import Estimate, Status
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.feasible.bounds import Bounds, LinkBounds
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible, FeasibleEstimate, Task
from robot_dynid.estimation.least_squares import LeastSquares
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import MEASURED, Origin, origins
from robot_dynid.robot import locate
from robot_dynid.robot.inertia import parameters_from_pseudo_inertia, pseudo_inertia
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray, Progress, Samples
from robot_dynid_evaluation.bench.arms import recorded as recorded_arm
from robot_dynid_evaluation.bench.arms import sines
from robot_dynid_evaluation.papers import (
    RECOVERED,
    Row,
    known,
    matched,
    published_arm,
    shown,
)
from robot_dynid_evaluation.papers.planar_3r_model import SignFriction
from robot_dynid_evaluation.papers.recovery import effort_shares, recovered

PUMA = 'config/reproduce/puma560_first_three.yaml'
NINE = 'config/reproduce/nine_joint_arm.yaml'
#: the paper states neither: Gaussian noise and A of A sin(100 t), as shares of the effort's root
#: mean square; samples
NOISE, DISTURBANCE, SAMPLES = 0.01, 0.02, 3000
#: how far the bodies of the prior are from the true ones: scatter of mass and of shape
DISTURBED = 0.1
ESTIMATORS: Mapping[str, Feasible] = {
    'sequential': SequentialFeasible(sweeps=0), 'polished': SequentialFeasible(),
    'simultaneous': Feasible(),
}
#: seconds that the paper reports for nine joints, as upper and lower bound, and their ratio
SEQUENTIAL, SIMULTANEOUS = 1200.0, 345600.0
RATIO = SIMULTANEOUS / SEQUENTIAL
WHY_NOT_SLOWER = (
    'known: compression removed the bottleneck; all samples enter once, as a triangle, so that '
    'the simultaneous problem is small as well. With 27 joints and more the sequence is faster')
#: joints and samples of the arms on which the time grows, with the least ratio of times that is
#: known there: above one the sequence is faster; and the weight of the prior
LONGER, WEIGHT = ((9, 800, 0.0), (27, 800, 1.0), (60, 1000, 1.0)), 1e-2
#: random configurations at which the mass matrix is checked
CONFIGURATIONS = 1000
ILLEGIBLE = 'not legible'
#: share of a joint's effort that the error of a base parameter makes at most
WORST = 3e-3
#: relative error of the efforts without noise: rounding times the condition of the equations
EXACT = 1e-7
#: error of the efforts, in deviations sqrt(parameters / equations) of the noise
EXPECTED = 3.0
#: weight of the prior with one link per problem, unbounded and bounded; bounds: share of the
#: nominal mass, distance from the nominal centre [m]
ONE_LINK, ONE_LINK_BOUNDED, MASS, CENTRE = 1e-2, 1e-1, 0.5, 0.1
#: largest error that is known of one link per problem, with bounds
GROWN = 0.1

Fits = dict[str, tuple[FeasibleEstimate, float]]


def rows(progress: Progress) -> list[Row]:
    """Return both examples: parameters, feasibility, efforts, times."""
    progress('PUMA 560', 0.0)
    puma = recorded(PUMA, np.random.default_rng(0))
    table = example('PUMA 560', puma, fits(puma))
    progress('nine joints', 0.2)
    nine = recorded(NINE, np.random.default_rng(1))
    found = fits(nine)
    table += [*example('9 joints', nine, found), *time_rows(found)]
    progress('more joints', 0.6)
    for joints, count, least in LONGER:
        table += longer_rows(joints, count, least)
    progress('nine joints without noise', 0.8)
    exact = recorded(NINE, np.random.default_rng(2), noisy=False)
    return [*table, *_exact(exact), *_one_link_per_problem(nine)]


@dataclass(frozen=True, eq=False)
class Recorded:
    """A motion of an arm: its model, true parameters (p,), exact and measured effort (N, n)."""

    model: TorqueModel
    truth: FloatArray
    samples: Samples
    exact: FloatArray

    @property
    def measured(self) -> FloatArray:
        """Return the noisy, disturbed effort (N, n) [N m]."""
        assert self.samples.effort is not None
        return self.samples.effort


def true_robot(path: str) -> tuple[RobotModel, FloatArray]:
    """Return an arm with its true links, and its friction (2 n,): viscous, Coulomb per joint.

    Raises UsageError when the file of the arm is not installed.
    """
    robot = published_arm(path)
    if path == PUMA:  # without the wrist, which the file has at rest
        robot = robot.with_nominal(load_robot('puma560').nominal[:robot.n])
    truth = load_truth(robot, locate.find(path))
    return robot, np.column_stack([truth.viscous, truth.coulomb]).ravel()


def recorded(path: str, rng: np.random.Generator, noisy: bool = True) -> Recorded:
    """Return a recording; the nominal links of its model are disturbed, the true ones made it."""
    robot, friction = true_robot(path)
    truth = np.concatenate([robot.nominal.ravel(), friction])
    guess = robot.with_nominal([_spoiled(body, rng) for body in robot.nominal])
    model = TorqueModel.of(guess, (RigidLinks(guess), SignFriction(robot.n)))
    samples = sines(robot, SAMPLES, rng)
    exact = model.effort(samples, model.reduction.base(truth))
    size = np.sqrt(np.mean(exact**2, axis=0))
    disturbance = DISTURBANCE * np.sin(100.0 * samples.time)[:, None]
    effort = exact + noisy * size * (NOISE * rng.standard_normal(exact.shape) + disturbance)
    return Recorded(model, truth, replace(samples, effort=effort, measured=effort), exact)


def _spoiled(body: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the parameters (10,) of another body, near by."""
    change = np.eye(4) + DISTURBED * rng.standard_normal((4, 4)) * np.array([1.0, 1.0, 1.0, 0.1])
    return parameters_from_pseudo_inertia(change @ pseudo_inertia(body) @ change.T)


def fits(data: Recorded) -> Fits:
    """Return every estimate and its seconds; the weight of the prior is chosen by each itself."""
    experiment = Experiment.of(data.model, [data.samples])
    found: Fits = {}
    for name, estimator in ESTIMATORS.items():
        begin = time.perf_counter()
        estimate = estimator.fit(experiment)
        found[name] = estimate, time.perf_counter() - begin
    return found


def example(what: str, data: Recorded, found: Fits) -> list[Row]:
    """Return the table of the paper, feasibility and efforts of every estimate."""
    return [*_parameters(what, data, found), *_summary(what, data, found)]


def _parameters(what: str, data: Recorded, found: Fits) -> list[Row]:
    """Return the truth and both estimators, parameter by parameter, and the worst base parameter.

    A parameter is judged where it is a base parameter by itself and no prior pulled at it: by the
    deviation of least squares, to which the disturbance belongs.
    """
    experiment = Experiment.of(data.model, [data.samples])
    reduction, truth = data.model.reduction, data.model.reduction.base(data.truth)
    deviations = LeastSquares().fit(experiment).std
    effects = effort_shares(experiment.information, np.eye(len(truth)))
    sequential, best = (found[name][0] for name in ('sequential', 'simultaneous'))
    table = []
    for i, origin in enumerate(origins(reduction)):
        ours, beside = float(best.standard[i]), f'sequential {sequential.standard[i]:.4g}'
        if origin.kind == MEASURED and not best.prior_weight:
            k = origin.base[0]
            table.append(recovered(f'{what}: {origin.name}', f'{truth[k]:.4g}', ours,
                                   (ours - truth[k], deviations[k], effects[k]), beside))
        else:
            table.append(shown(f'{what}: {origin.name}', ILLEGIBLE, ours, (
                f'{_why_not_judged(reduction, origin, data.truth[i])}; {beside}')))
    for name, (estimate, _) in found.items():
        off = effort_shares(experiment.information, np.diag(estimate.values - truth))
        k = int(np.argmax(off))
        table.append(Row(
            f'{what}, {name}: worst base parameter, share of the effort', 0.0, float(off[k]),
            RECOVERED, bool(off[k] <= WORST), f'{reduction.names[k]}, of {len(off)}'))
    return table


def _why_not_judged(reduction: Reduction, origin: Origin, truth: float) -> str:
    told = f'true {truth:.4g}; {origin.kind}'
    if origin.kind == MEASURED:
        return f'{told}, but the prior pulls at it'
    if origin.base:
        told += f' ({", ".join(reduction.names[i] for i in origin.base)})'
    return f'{told}; {origin.separated_by} measured by itself would give it'


def _summary(what: str, data: Recorded, found: Fits) -> list[Row]:
    """Return whether every estimate is a real robot's, and how it reproduces the efforts."""
    table = []
    for name, (estimate, _) in found.items():
        least = smallest_mass_matrix(data, estimate)
        smallest = min(link.smallest_eigenvalue
                       for link in estimate.certificate.links.values())
        table.append(matched(
            f'{what}, {name}: feasible', 'feasible', f'M(q) >= {least:.3g} kg m^2',
            bool(estimate.status is Status.OK and smallest > 0.0
                 and least > 0.0 and passive(estimate)),
            f'smallest eigenvalue of a link {smallest:.2g}; '
            f'{CONFIGURATIONS} random configurations'))
        table.append(effort_row(what, name, data, estimate))
    best = found['simultaneous'][0].objective
    for name in ('sequential', 'polished'):
        gap = found[name][0].objective / best - 1.0
        table.append(shown(f'{what}, {name}: objective above simultaneous', ILLEGIBLE, float(gap),
                           'the paper has no figure; relative, weight of the prior '
                           f'{found[name][0].prior_weight:g}, simultaneous '
                           f'{found["simultaneous"][0].prior_weight:g}'))
    return table


def effort_row(what: str, name: str, data: Recorded, estimate: Estimate) -> Row:
    """Return the error of the efforts beside what noise leaves of as many parameters."""
    noise = float(np.linalg.norm(data.measured - data.exact) / np.linalg.norm(data.exact))
    expected = noise * float(np.sqrt(len(estimate.values) / data.exact.size))
    error = _error(data, estimate)
    return Row(f'{what}, {name}: error of the efforts', 'very close', error, RECOVERED,
               error <= EXPECTED * expected,
               f'relative; noise and disturbance are {noise:.3f}, of which '
               f'{len(estimate.values)} base parameters take {expected:.2g}')


def _error(data: Recorded, estimate: Estimate) -> float:
    """Return the error of the efforts, relative to them."""
    predicted = data.model.effort(data.samples, estimate.values)
    return float(np.linalg.norm(predicted - data.exact) / np.linalg.norm(data.exact))


def passive(estimate: FeasibleEstimate) -> bool:
    """Return whether no friction drives."""
    values = zip(estimate.certificate.prior_share, estimate.standard, strict=True)
    return all(value >= 0.0 for name, value in values if name.startswith('f'))


def smallest_mass_matrix(data: Recorded, estimate: FeasibleEstimate) -> float:
    """Return the smallest eigenvalue [kg m^2] of the mass matrix at random configurations."""
    robot = data.model.robot
    q = np.random.default_rng(3).uniform(-np.pi, np.pi, (CONFIGURATIONS, robot.n))
    links = estimate.standard[:10 * robot.n].reshape(-1, 10)
    return float(np.linalg.eigvalsh(mass_matrix(robot, q, links)).min())


def time_rows(found: Fits) -> list[Row]:
    """Return the times beside the paper's, and their ratio."""
    first, polished, second = (found[name][1] for name in ESTIMATORS)
    note = '108 parameters; choice of the weight of the prior and certificate included'
    ratio = matched('9 joints: time, simultaneous over sequential', f'>= {RATIO:g}',
                    second / first, second >= RATIO * first,
                    f'ours {second:.2g} and {first:.2g} s')
    return [
        matched('9 joints, sequential: time', '20 min', f'{first:.2g} s', first < SEQUENTIAL,
                note),
        shown('9 joints, polished: time', None, f'{polished:.2g} s', 'the paper has no polishing'),
        matched('9 joints, simultaneous: time', '> 4 days', f'{second:.2g} s',
                second < SIMULTANEOUS, note),
        known(ratio, WHY_NOT_SLOWER) if second < SEQUENTIAL else ratio,
    ]


def longer_rows(joints: int, count: int, least: float) -> list[Row]:
    """Return the processor times of one solution at a given weight on another arm, as a ratio.

    A ratio below the paper's is known where it is above ``least``.
    """
    data = recorded_arm(joints, count)
    experiment = data.experiment()
    task, seconds = Task.of(experiment, 'entropic', Bounds()), []
    for name in ('sequential', 'simultaneous'):
        fit = ESTIMATORS[name].fitter(task, experiment.information)
        begin = time.process_time()
        answer = fit(WEIGHT)
        seconds.append(time.process_time() - begin)
        if answer.trouble:
            return [matched(f'{joints} joints, {name}: solved', 'solved', answer.trouble, False)]
    ratio = seconds[1] / seconds[0]
    row = matched(f'{joints} joints, one solution: processor time, simultaneous over sequential',
                  f'>= {RATIO:g} with 9', ratio, ratio >= RATIO,
                  f'ours {seconds[1]:.2f} and {seconds[0]:.2f} s, samples compressed before; '
                  f'weight of the prior {WEIGHT:g}')
    return [known(row, WHY_NOT_SLOWER) if ratio > least else row]


def _exact(data: Recorded) -> list[Row]:
    """Return the errors of the efforts where there is no noise."""
    return [Row(f'9 joints without noise, {name}: error of the efforts', 0.0,
                _error(data, estimate), RECOVERED, _error(data, estimate) <= EXACT,
                f'weight of the prior {estimate.prior_weight:g}')
            for name, (estimate, _) in fits(data).items()]


def _one_link_per_problem(data: Recorded) -> list[Row]:
    """Return the results of the paper's procedure, one link per problem, without and with bounds.
    """
    experiment = Experiment.of(data.model, [data.samples])
    plain = SequentialFeasible(prior_weight=ONE_LINK, sweeps=0, generations=1).fit(experiment)
    what = '9 joints, sequential with one link per problem'
    rows = [shown(
        f'{what}: error of the efforts', 'very close', _error(data, plain),
        f'{plain.status.name}: {"; ".join(plain.warnings)}. No result: mass of a link is settled '
        'before the equations that show it, and the next link cannot make up for it')]
    bounded = SequentialFeasible(prior_weight=ONE_LINK_BOUNDED, sweeps=0, generations=1,
                                 bounds=near_nominal(data.model.robot)).fit(experiment)
    row = effort_row(what, 'masses and centres bounded', data, bounded)
    if row.ok or bounded.status is not Status.OK or _error(data, bounded) > GROWN:
        return [*rows, row]
    return [*rows, known(row, f'known: masses within {100.0 * MASS:g} %, centres within '
                         f'{CENTRE:g} m of the nominal ones keep errors from growing without end; '
                         'with the next link in every problem they need no bounds')]


def near_nominal(robot: RobotModel) -> Bounds:
    """Return bounds of every mass and centre about those of ``robot``."""
    links = []
    for name, body in zip(robot.bodies, robot.nominal, strict=True):
        (x, y, z), mass = (body[1:4] / body[0]).tolist(), float(body[0])
        links.append((name, LinkBounds(
            ((1.0 - MASS) * mass, (1.0 + MASS) * mass),
            (x - CENTRE, y - CENTRE, z - CENTRE), (x + CENTRE, y + CENTRE, z + CENTRE))))
    return Bounds(tuple(links))
