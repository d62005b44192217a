"""Minimal set, sequential sinusoids and forward dynamics of a planar 3R arm.

Table 1 gives the minimal set, table 2 the condition numbers; then table 3 is taken for the truth,
recordings are simulated with the noise of figure 11, and the staged estimator has to find it back.
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
from scipy.stats import chi2

from robot_dynid.dynamics import rigid_body
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import FILTERED, Information
from robot_dynid.estimation.staged.least_squares import StagedEstimate, fit_stages
from robot_dynid.estimation.staged.procedure import LockedJointsMotion, Stage, names_from
from robot_dynid.estimation.uncertainty.held_out import OUTSIDE_RANK_TOLERANCE, consistency
from robot_dynid.reduction.numeric import full_rank, full_regressor, random_states
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray, Progress, Samples
from robot_dynid.validation.validate import joint_score
from robot_dynid_evaluation.papers import (
    RECOVERED,
    Entry,
    Remark,
    Row,
    claimed,
    compared,
    known,
    matched,
)
from robot_dynid_evaluation.papers.planar_3r_model import (
    AMPLITUDES,
    FREQUENCIES,
    NOISE,
    RATE,
    TABLE_3,
    as_in_table,
    effort,
    friction,
    load_planar,
    simulated,
    single_sine,
    torque_model,
    true_values,
)
from robot_dynid_evaluation.papers.recovery import SHARE, effort_shares, recovered

#: table 3: the combinations in our notation, with the misprint and the lost sign of REMARKS put
#: right
LABELS = {
    'Izz1': 'Izz1 + 0.1296*m2 + 0.1296*m3', 'mx1': 'mx1 + 0.36*m2 + 0.36*m3', 'my1': 'my1',
    'Izz2': 'Izz2 + 0.1296*m3', 'mx2': 'mx2 - 0.36*m3', 'my2': 'my2', 'Izz3': 'Izz3',
    'mx3': 'mx3', 'my3': 'my3',
}
REMARKS = (
    Remark('table 3, fourth row', 'it repeats the symbol m1 rcy1 of the third; the only pivot '
           'left for its value, 3.588, is Izz2 + 0.1296*m3, by which ours is judged'),
    Remark('table 3, fifth row', 'the extracted text has lost the sign in m2 rcx2 - 0.36*m3; p_3 '
           'at height 0 makes it minus'),
    Remark('table 3 and figure 11', 'the recordings are not published: table 3 is the truth of '
           'our simulation, and the noise put in has the RMSE of figure 11, so that both are '
           'recovered, never compared'),
    Remark('figure 11: quartiles, extremes, outliers', 'white noise is centred, the errors of the '
           'paper are not (joint 1: -18.73 to 11.17 N m): its model leaves something out'),
)
#: condition number of H as printed, by joint; ours at the printed w, and how far ours at w /
#: (2 pi) may be off, relative
CONDITIONS = {3: 47.73, 2: 52.95, 1: 54.34}
AT_PRINTED = {3: 868.9, 2: 1787.5, 1: 1524.9}
LIKE = 0.25
WHY_OTHER = (
    'known: at the unit that table 2 states, rad/s, the columns of acceleration, which grow with '
    'w^2, are far larger than those of Coulomb friction, which do not grow')
ASSUMED = 'our assumption: w is printed 2 pi times too large, as if it were rad per cycle'
#: factors of w / (2 pi) between which the condition number is looked at: a fifth, itself, 2 pi
SLOW, FAST = 0.2, 2.0 * np.pi
#: condition at the printed w over that at w / (2 pi), by joint
RISES = {3: 20.5, 2: 33.3, 1: 23.3}
WHY_RISES = ('known: it falls until the columns of acceleration are as large as the others, and '
             'rises from there on')
#: level of the interval of the mean square error
LEVEL = 0.999
#: share of the effort that one deviation may make after one cycle of noisy effort: beyond it the
#: staged estimator refuses a combination
SHARE_ONCE = 0.1
#: one cycle is what the paper uses, which leaves link 3 too uncertain for figure 14; efforts
#: averaged over this many cycles are enough
CYCLES = 100
#: random inputs of the reduction, as often as it is repeated
STATES, REPETITIONS = 12, 20
#: a column of H counts when more than this share of it is new
NEW = 1e-5


def rows(progress: Progress) -> Iterator[Entry]:
    """Yield the minimal set, condition numbers, table 3 and figures 11 to 14 beside ours."""
    robot = load_planar()
    progress('minimal set', 0.0)
    model = torque_model(robot)
    yield from REMARKS
    yield from _minimal_set(model)
    progress('sinusoids', 0.05)
    rng, slow = np.random.default_rng(0), FREQUENCIES / (2.0 * np.pi)
    yield from condition_rows(model, slow, rng)
    single = sinusoids(model, slow, NOISE, rng)
    averaged = sinusoids(model, slow, NOISE / np.sqrt(CYCLES), rng)
    progress('staged identification', 0.5)
    once, estimate = identified(model, single), identified(model, averaged)
    yield from table_3(model, once, single, '', SHARE_ONCE)
    yield from table_3(model, estimate, averaged, f', {CYCLES} cycles')
    yield from bound_rows(model, once, single)
    yield from rank_rows(model, slow, rng)
    progress('validation', 0.6)
    yield from validation_rows(model, estimate.values, rng)


def _minimal_set(model: TorqueModel) -> list[Row]:
    links = [n for n in model.reduction.names if not n.startswith('f')]
    labels = dict(zip(model.reduction.names, model.reduction.labels, strict=True))
    same = sum(_kept(model, seed) == links for seed in range(REPETITIONS))
    found = [
        claimed(compared('inertial parameters in the minimal set', 9.0, len(links), 0.0),
                'nine inertial parameters are the minimal set of the planar arm'),
        compared('friction parameters', 6.0, len(labels) - len(links), 0.0),
        claimed(compared(f'same pivots from {STATES} random inputs, of {REPETITIONS} draws',
                         REPETITIONS, same, 0.0),
                'whatever the input, 12 random samples give the same independent columns'),
    ]
    return found + [
        matched(f'combination of {name}', printed, labels.get(name, 'no base parameter'),
                labels.get(name) == printed) for name, printed in LABELS.items()]


def _kept(model: TorqueModel, seed: int) -> list[str]:
    """Return the pivots of H_1 from STATES random inputs (eq. 22)."""
    links = model.blocks[0]
    states = random_states(model.robot, STATES, np.random.default_rng(seed))
    columns = full_regressor(model.robot, (links,), states)
    kept, _ = full_rank(columns.transpose(2, 0, 1).reshape(-1, len(links.names)), NEW)
    return [links.names[i] for i in kept]


def sinusoids(
    model: TorqueModel, frequencies: FloatArray, noise: FloatArray, rng: np.random.Generator
) -> list[Information]:
    """Return the estimates from one cycle of every joint alone at ``frequencies`` (n,) [rad/s]."""
    return [Experiment.of(model, [simulated(
        model, single_sine(model.robot, joint, float(frequency)), noise, rng)]).information
        for joint, frequency in enumerate(frequencies)]


def condition_rows(
    model: TorqueModel, slow: FloatArray, rng: np.random.Generator
) -> Iterator[Row]:
    """Yield the condition numbers of table 2 by both readings of w, and how they go with w.

    ``slow`` (n,) [rad/s] are the frequencies w / (2 pi).
    """
    numbers = [_conditions(model, factor * slow, rng) for factor in (SLOW, 1.0, FAST)]
    for joint, paper in CONDITIONS.items():
        below, divided, printed = (float(one[joint - 1]) for one in numbers)
        w = float(slow[joint - 1])
        how = f'peak {AMPLITUDES[joint - 1] * w:.3g} rad/s; all rows, one cycle, others at 0'
        yield claimed(known(compared(
            f'condition of H, joint {joint}, w = {FAST * w:g} rad/s', paper, printed,
            LIKE * paper, f'peak {AMPLITUDES[joint - 1] * FAST * w:.3g} rad/s'), WHY_OTHER,
            AT_PRINTED[joint]), f'condition number of H, joint {joint}, at the printed w')
        yield claimed(compared(
            f'condition of H, joint {joint}, w / (2 pi) = {w:.3g} rad/s', paper, divided,
            LIKE * paper, f'{ASSUMED}; {how}; wanted: within {100.0 * LIKE:g} %'),
            f'condition number of H, joint {joint}, at w / (2 pi): our assumption')
        yield claimed(matched(
            f'condition of H, joint {joint}: at {w:.3g} rad/s over that at {SLOW * w:.3g}', '< 1',
            divided / below, divided < below, f'{divided:.4g} and {below:.4g}'),
            f'increasing frequency reduces the condition number, joint {joint}, slow')
        yield claimed(known(matched(
            f'condition of H, joint {joint}: at {FAST * w:g} rad/s over that at {w:.3g}', '< 1',
            printed / divided, printed < divided, f'{printed:.4g} and {divided:.4g}'), WHY_RISES,
            RISES[joint]),
            f'increasing frequency reduces the condition number, joint {joint}, up to table 2')


def _conditions(
    model: TorqueModel, frequencies: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the condition numbers (n,) of the independent columns of H, joint by joint."""
    found = []
    for data in sinusoids(model, frequencies, np.zeros(model.robot.n), rng):
        tall = columns_of(data)
        found.append(np.linalg.cond(tall[:, full_rank(tall, NEW)[0]]))
    return np.array(found)


def columns_of(data: Information) -> FloatArray:
    """Return a matrix (m, b) with the singular values of H."""
    return np.vstack([data.expanded(row)[:, :len(data.names)]
                      for row in range(len(data.structure))])


def bound_rows(
    model: TorqueModel, estimate: StagedEstimate, recordings: list[Information]
) -> Iterator[Row]:
    """Yield eq. 29: the relative error of the parameters is at most cond(H) times that of tau.

    Both sides are those of least squares on all recordings; ``estimate`` is the staged one.
    """
    data = reduce(Information.merge, recordings)
    tall, truth = columns_of(data), true_values(model)
    effort = np.concatenate([data.expanded(row)[:, len(data.names) + FILTERED]
                             for row in range(len(data.structure))])
    noise = effort - tall @ truth
    bound = float(np.linalg.cond(tall) * np.linalg.norm(noise) / np.linalg.norm(effort))
    once = np.linalg.lstsq(tall, effort, rcond=None)[0]
    for how, values in (('least squares', once), ('staged', estimate.values)):
        error = float(np.linalg.norm(values - truth) / np.linalg.norm(truth))
        yield claimed(matched(
            f'eq. 29, {how}: relative error over its bound', '<= 1', error / bound,
            error <= bound, f'error {error:.2g}, bound {bound:.2g}: it is loose, and says nothing '
            'of a single parameter; deviations do'),
            f'the error of the parameters is bounded by cond(H) times that of the torque, {how}')


def rank_rows(model: TorqueModel, slow: FloatArray, rng: np.random.Generator) -> Iterator[Row]:
    """Yield the test of [H tau] (section 3.2) of every stage: its rank is that of H without noise.

    The equations of a stage are those of the joint that moves.
    """
    for how, noise, raised in (('exact torques', 0.0 * NOISE, False), ('noise', NOISE, True)):
        stages = [consistency(data).outside[joint]
                  for joint, data in enumerate(sinusoids(model, slow, noise, rng))]
        outside = min(stages) if raised else max(stages)
        yield claimed(matched(
            f'rank [H tau], {how}: share of the torque outside H, every stage',
            '> 0' if raised else '0', float(outside),
            (outside > OUTSIDE_RANK_TOLERANCE) == raised,
            f'zero is at most {OUTSIDE_RANK_TOLERANCE:g}, rounding'),
            f'rank [H tau] exceeds that of H with noise only: {how}')


def identified(model: TorqueModel, recordings: list[Information]) -> StagedEstimate:
    """Return the staged estimate from single-joint sinusoids, joint 3 first."""
    robot = model.robot
    stages = [
        Stage(robot.joints[j], (LockedJointsMotion(j, np.zeros(robot.n), float(AMPLITUDES[j])),),
              tuple(range(robot.n)), names_from(model, j)) for j in reversed(range(robot.n))]
    experiment = Experiment(model, reduce(Information.merge, recordings))
    return fit_stages(experiment, stages, recordings[::-1])


def table_3(
    model: TorqueModel, estimate: StagedEstimate, recordings: list[Information], how: str,
    limit: float = SHARE,
) -> list[Row]:
    """Return the estimates beside the truth they were simulated from, table 3, with its signs.

    One deviation makes at most ``limit`` of the effort.
    """
    truth = true_values(model)
    effects = effort_shares(reduce(Information.merge, recordings), np.eye(len(truth)))
    found = []
    for name in TABLE_3:
        i = estimate.names.index(name)
        ours = float(estimate.values[i])
        found.append(recovered(
            f'table 3{how}: {name}', TABLE_3[name], as_in_table(name, ours),
            (ours - truth[i], estimate.std[i], effects[i]),
            'in the sign of the paper, a torque that drives' if name.startswith('f') else '',
            limit))
    return [*found, _calibration(estimate, truth, how)]


def _calibration(estimate: StagedEstimate, truth: FloatArray, how: str) -> Row:
    """Return whether errors and stated deviations belong together, all parameters at once."""
    error, count = estimate.values - truth, len(truth)
    square = float(error @ np.linalg.solve(estimate.covariance, error)) / count
    low, high = chi2.interval(LEVEL, count) / np.array(count)
    return claimed(
        Row(f'table 3{how}: mean square error in stated deviations', 1.0, square, RECOVERED,
            bool(low <= square <= high),
            f'{low:.2f} to {high:.2f} in {100.0 * LEVEL:g} % of all cases where the stated '
            'covariance is the true one'),
        f'sequential excitation identifies table 3{how or ", one cycle"}')


#: the Fourier motion, with harmonics up to 1 Hz; the zero-phase low-pass of accelerations [Hz]
#: (the paper does not state its own), and the samples dropped at either end, where it swings in
MOTION, CUTOFF, EDGE = FourierOptions(duration=5.0, harmonics=5), 2.0, 500
#: relative error of an RMSE from 5000 samples, three deviations, and room for the parameters
RMSE_ROOM = 0.05
#: accelerations follow the simulated ones in trend: least correlation. With table 3 itself it is
#: 0.93 at joint 3, whose inertia is least: the rest is effort noise
TREND = 0.8
#: states at which eq. 28 has to undo Newton-Euler, and how well, relative to the largest; every
#: how many states the mass matrix is looked at
CHECKED, SAME, EVERY = slice(2000, 2100), 1e-9, 10


def validation_rows(
    model: TorqueModel, values: FloatArray, rng: np.random.Generator
) -> list[Row]:
    """Return figures 11 to 14 for the parameters ``values`` (b,) beside the paper's."""
    motion = simulated(model, fourier_motion(model, rng), NOISE, rng)
    return _figure_11(model, values, motion) + _figures_12_to_14(model, values, motion)


def fourier_motion(model: TorqueModel, rng: np.random.Generator) -> Samples:
    """Return a random Fourier motion at 1 kHz within what the sinusoids reach (w / (2 pi))."""
    robot, w = model.robot, FREQUENCIES / (2.0 * np.pi)
    none = np.full(robot.n, np.nan)
    limits = MotionLimits(robot.joints, -AMPLITUDES, AMPLITUDES, AMPLITUDES * w,
                          AMPLITUDES * w**2, none, none)
    time = np.arange(0.0, MOTION.duration, 1.0 / RATE)
    motion = random_fourier(limits, MOTION, rng).sample(time)
    return Samples(robot.joints, time, motion.position, motion.velocity, motion.acceleration)


def _figure_11(model: TorqueModel, values: FloatArray, motion: Samples) -> list[Row]:
    assert motion.effort is not None
    measured, modelled = motion.effort, model.effort(motion, values)
    found = []
    for j, noise in enumerate(NOISE.tolist()):
        rmse = joint_score(measured[:, j], modelled[:, j]).rmse
        found.append(claimed(
            Row(f'figure 11, joint {j + 1}: RMSE [N m], that of the noise put in', noise, rmse,
                RECOVERED, bool(abs(rmse - noise) <= RMSE_ROOM * noise),
                'the parameters add nothing to the noise'),
            f'RMSE of the torque, joint {j + 1}'))
    return found


def _figures_12_to_14(model: TorqueModel, values: FloatArray, motion: Samples) -> list[Row]:
    """Return the errors of forward dynamics (eq. 28) against simulated accelerations."""
    assert motion.effort is not None
    true, few = true_values(model), motion.part(CHECKED)
    error = accelerations(model, true, few, effort(model, few, true)) - few.acceleration
    found = [
        claimed(compared(
            'eq. 28 undoes Newton-Euler: relative error', 0.0,
            float(np.abs(error).max() / np.abs(few.acceleration).max()), SAME,
            'table 3 and exact efforts'), 'forward dynamics follow from the minimal set (eq. 28)'),
        _least_eigenvalue(model, values, motion),
    ]
    expected = _filtered(motion.acceleration)
    computed = _filtered(accelerations(model, values, motion, motion.effort))
    for j in range(model.robot.n):
        correlation = float(np.corrcoef(computed[:, j], expected[:, j])[0, 1])
        rmse = float(np.sqrt(np.mean((computed[:, j] - expected[:, j]) ** 2)))
        found.append(claimed(Row(
            f'figure {12 + j}, joint {j + 1}: correlation of accelerations', 'good agreement',
            correlation, RECOVERED, bool(correlation >= TREND),
            f'RMSE {rmse:.3g} rad/s^2 of {np.std(expected[:, j]):.3g}; efforts with noise, below '
            f'{CUTOFF:g} Hz; the paper shows curves only; wanted: at least {TREND:g}'),
            f'accelerations agree in trend, joint {j + 1}'))
    return found


def _least_eigenvalue(model: TorqueModel, values: FloatArray, motion: Samples) -> Row:
    """Return whether the identified M(q) is positive definite in the whole range of motion."""
    matrices = rigid_body.mass_matrix(model.robot, motion.position[::EVERY],
                                      minimal_links(model, values))
    least = float(np.linalg.eigvalsh(matrices).min())
    return matched('least eigenvalue of M(q) along the motion [kg m^2]', '> 0', least,
                   least > 0.0)


def minimal_links(model: TorqueModel, values: FloatArray) -> FloatArray:
    """Return the links (n, 10) of the parameters ``values`` (b,), the dependent ones zero."""
    return model.reduction.standard_values(values)[:10 * model.robot.n].reshape(-1, 10)


def accelerations(
    model: TorqueModel, values: FloatArray, motion: Samples, torque: FloatArray
) -> FloatArray:
    """Return qdd (N, n) of eq. 28 at the states of ``motion`` under ``torque`` (N, n)."""
    driving = torque - friction(model, motion, values)
    found, _ = rigid_body.forward_dynamics(
        model.robot, (motion.position, motion.velocity, driving), minimal_links(model, values))
    return found


def _filtered(signal: FloatArray) -> FloatArray:
    return zero_phase_low_pass(signal, CUTOFF, 1.0 / RATE)[EDGE:-EDGE]
