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

import numpy as np

from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.estimation.estimate import Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible, FeasibleEstimate
from robot_dynid.types import Progress
from robot_dynid_evaluation.papers import Row
from robot_dynid_evaluation.papers.sequential_sdp_arms import NINE, PUMA, Recorded, recorded

ESTIMATORS: Mapping[str, Feasible] = {
    'sequential': SequentialFeasible(sweeps=0), 'polished': SequentialFeasible(),
    'simultaneous': Feasible(),
}
#: what the paper reports for nine joints, in words and in seconds; it names the sequential time
#: of three joints nowhere
TIMES = {'sequential': ('20 min', 1200.0), 'polished': ('', np.inf),
         'simultaneous': ('> 4 days', 345600.0)}
#: random configurations at which the mass matrix is checked
CONFIGURATIONS = 1000
ILLEGIBLE = 'not legible'
#: weight of the prior with one link per problem
ONE_LINK = 1e-2

Fits = dict[str, tuple[FeasibleEstimate, float]]


def rows(progress: Progress) -> list[Row]:
    """Return both examples: parameters, feasibility, efforts, times."""
    progress('PUMA 560', 0.0)
    puma = recorded(PUMA, np.random.default_rng(0))
    found = fits(puma)
    table = [*_parameters(puma, found), *_summary('PUMA 560, 3 joints', puma, found)]
    progress('nine joints', 0.3)
    nine = recorded(NINE, np.random.default_rng(1))
    found = fits(nine)
    table += _summary('9 joints', nine, found)
    table += _times(found)
    progress('nine joints without noise', 0.8)
    exact = recorded(NINE, np.random.default_rng(2), noisy=False)
    return [*table, *_exact(exact), _one_link_per_problem(nine)]


def fits(data: Recorded) -> Fits:
    """Return every estimate and its seconds; the weight of the prior is chosen by each itself."""
    experiment = Experiment.of(data.model, [data.samples])
    found: Fits = {}
    for name, estimator in ESTIMATORS.items():
        begin = time.perf_counter()
        estimate = estimator.fit(experiment)
        found[name] = estimate, time.perf_counter() - begin
    return found


def _parameters(data: Recorded, found: Fits) -> list[Row]:
    """Return the table of the paper: the truth and both estimators, parameter by parameter."""
    first, second = (found[name][0] for name in ('sequential', 'simultaneous'))
    guessed = first.certificate.from_prior
    return [
        Row(f'PUMA 560: {name}', ILLEGIBLE,
            f'{second.standard[i]:.4g} (sequential {first.standard[i]:.4g})', None,
            f'true {data.truth[i]:.4g}'
            + ('; no effort shows it by itself: from the prior' if name in guessed else ''))
        for i, name in enumerate(data.model.reduction.standard)]


def _summary(what: str, data: Recorded, found: Fits) -> list[Row]:
    """Return whether every estimate is a real robot's, and how it reproduces the efforts."""
    table = []
    for name, (estimate, _) in found.items():
        least = smallest_mass_matrix(data, estimate)
        certificate = estimate.certificate
        table.append(Row(
            f'{what}, {name}: feasible', 'feasible', f'M(q) >= {least:.3g} kg m^2',
            bool(estimate.status is Status.OK and certificate.smallest.min() > 0.0
                 and least > 0.0 and passive(estimate)),
            f'smallest eigenvalue of a link {certificate.smallest.min():.2g}; '
            f'{CONFIGURATIONS} random configurations'))
        predicted = data.model.effort(data.samples, estimate.values)
        error, noise = (np.linalg.norm(effort - data.exact) / np.linalg.norm(data.exact)
                        for effort in (predicted, data.measured))
        table.append(Row(
            f'{what}, {name}: error of the efforts', 'very close', float(error),
            bool(error < noise), f'relative; noise and disturbance are {noise:.3f}'))
    best = found['simultaneous'][0].certificate.objective
    for name in ('sequential', 'polished'):
        gap = found[name][0].certificate.objective / best - 1.0
        table.append(Row(f'{what}, {name}: objective above simultaneous', ILLEGIBLE, float(gap),
                         None, 'relative; weight of the prior '
                         f'{found[name][0].prior_weight:g}, simultaneous '
                         f'{found["simultaneous"][0].prior_weight:g}'))
    return table


def passive(estimate: FeasibleEstimate) -> bool:
    """Return whether no friction drives."""
    values = zip(estimate.certificate.names, estimate.standard, strict=True)
    return all(value >= 0.0 for name, value in values if name.startswith('f'))


def smallest_mass_matrix(data: Recorded, estimate: FeasibleEstimate) -> float:
    """Return the smallest eigenvalue [kg m^2] of the mass matrix at random configurations."""
    robot = data.model.robot
    q = np.random.default_rng(3).uniform(-np.pi, np.pi, (CONFIGURATIONS, robot.n))
    links = estimate.standard[:10 * robot.n].reshape(-1, 10)
    return float(np.linalg.eigvalsh(mass_matrix(robot, q, links)).min())


def _times(found: Fits) -> list[Row]:
    return [Row(f'9 joints, {name}: time', TIMES[name][0], f'{seconds:.2g} s',
                bool(seconds < TIMES[name][1]) if TIMES[name][0] else None,
                '108 parameters; choice of the weight of the prior and certificate included')
            for name, (_, seconds) in found.items()]


def _exact(data: Recorded) -> list[Row]:
    """Return the errors of the efforts where there is no noise."""
    table = []
    for name, (estimate, _) in fits(data).items():
        predicted = data.model.effort(data.samples, estimate.values)
        error = np.linalg.norm(predicted - data.exact) / np.linalg.norm(data.exact)
        table.append(Row(f'9 joints without noise, {name}: error of the efforts', ILLEGIBLE,
                         float(error), None,
                         f'weight of the prior {estimate.prior_weight:g}'))
    return table


def _one_link_per_problem(data: Recorded) -> Row:
    """Return the result of the paper's procedure, with one link per problem."""
    experiment = Experiment.of(data.model, [data.samples])
    estimate = SequentialFeasible(prior_weight=ONE_LINK, sweeps=0, generations=1).fit(experiment)
    predicted = data.model.effort(data.samples, estimate.values)
    error = np.linalg.norm(predicted - data.exact) / np.linalg.norm(data.exact)
    return Row('9 joints, sequential with one link per problem: error of the efforts',
               'very close', float(error), None,
               f'weight of the prior {ONE_LINK:g}; mass of a link is settled before the equations '
               'that show it, errors then grow from link to link; with the next link in every '
               'problem they do not')
