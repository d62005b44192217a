"""Minimal set, sequential sinusoids and forward dynamics of a planar 3R arm.

Table 1 gives the minimal set, table 2 the condition numbers; then table 3 is taken for the truth,
recordings are simulated with the noise of figure 11, and the staged estimator has to find it back.
All regressors are those of `screw_dynamics`.
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 5.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from robot_dynid.estimation.staged import StagedEstimate, fit_stages
from robot_dynid.experiment import Experiment, TorqueModel
from robot_dynid.information import Information
from robot_dynid.model.robot import RobotModel
from robot_dynid.procedure import SoloMotion, Stage, names_from
from robot_dynid.reduction.echelon import full_rank
from robot_dynid.reduction.numeric import full_regressor, random_states
from robot_dynid.reproduce import Progress, Row, compared
from robot_dynid.reproduce.planar_3r_model import (
    AMPLITUDES,
    FREQUENCIES,
    NOISE,
    TABLE_3,
    as_in_table,
    load_planar,
    simulated,
    single_sine,
    torque_model,
    true_values,
)
from robot_dynid.reproduce.planar_3r_validation import validation_rows
from robot_dynid.types import FloatArray

#: table 3: the combinations as printed, in our notation and with the signs the text has lost
LABELS = {
    'Izz1': 'Izz1 + 0.1296*m2 + 0.1296*m3', 'mx1': 'mx1 + 0.36*m2 + 0.36*m3', 'my1': 'my1',
    'Izz2': 'my1', 'mx2': 'mx2 - 0.36*m3', 'my2': 'my2', 'Izz3': 'Izz3', 'mx3': 'mx3',
    'my3': 'my3',
}
LABEL_NOTES = {
    'Izz2': 'the fourth row repeats the symbol of the third; the only pivot left for its value, '
            '3.588, is this one',
    'mx2': 'the extracted text has lost the sign; p_3 at height 0 makes it minus',
}
#: joint, condition number of H as printed
CONDITIONS = ((3, 47.73), (2, 52.95), (1, 54.34))
#: how far a condition number may be from the printed one where w is taken as w / (2 pi): the
#: configurations of the locked joints and the exact samples are not known
SIMILAR = 0.25
#: level of the confidence intervals; all 15 together hold the truth in 98.5 % of all cases
LEVEL = 0.999
#: one cycle is what the paper uses; its parameters of link 3 are too uncertain for figure 14
CYCLES = 10
#: random inputs of the reduction, as often as it is repeated
STATES, REPETITIONS = 12, 20


def rows(progress: Progress) -> list[Row]:
    """Return the minimal set, condition numbers, table 3 and figures 11 to 14 beside ours."""
    robot = load_planar()
    progress('minimal set', 0.0)
    model = torque_model(robot)
    table = _minimal_set(robot, model)
    progress('condition numbers', 0.05)
    table += [row for joint, paper in CONDITIONS for row in _conditions(model, joint, paper)]
    progress('staged identification', 0.3)
    rng = np.random.default_rng(0)
    table += _table_3(model, identified(model, rng, 1))
    averaged = identified(model, rng, CYCLES)
    table += _table_3(model, averaged, f', {CYCLES} cycles')
    progress('validation', 0.7)
    return table + validation_rows(model, averaged.values, rng)


def _minimal_set(robot: RobotModel, model: TorqueModel) -> list[Row]:
    links = [n for n in model.reduction.names if not n.startswith('f')]
    labels = dict(zip(model.reduction.names, model.reduction.labels, strict=True))
    same = sum(_kept(model, seed) == links for seed in range(REPETITIONS))
    found = [
        compared('inertial parameters in the minimal set', 9.0, len(links), 0.0),
        compared('friction parameters', 6.0, len(labels) - len(links), 0.0),
        compared(f'same pivots from {STATES} random inputs, of {REPETITIONS} draws',
                 REPETITIONS, same, 0.0),
    ]
    for name, printed in LABELS.items():
        ok = None if name == 'Izz2' else labels[name] == printed
        found.append(Row(f'combination of {name}', printed, labels[name], ok,
                         LABEL_NOTES.get(name, '')))
    return found


def _kept(model: TorqueModel, seed: int) -> list[str]:
    """Return the pivots of H_1 from STATES random inputs (eq. 22)."""
    links = model.blocks[0]
    states = random_states(model.robot, STATES, np.random.default_rng(seed))
    columns = full_regressor(model.robot, (links,), states)
    kept, _ = full_rank(columns.transpose(2, 0, 1).reshape(-1, len(links.names)))
    return [links.names[i] for i in kept]


def stage_matrix(model: TorqueModel, joint: int, frequency: float) -> FloatArray:
    """Return the independent columns of H while ``joint`` (from zero) swings, all rows."""
    columns = model.columns(single_sine(model.robot, joint, frequency))
    tall = columns.transpose(2, 0, 1).reshape(-1, columns.shape[1])
    kept, _ = full_rank(tall)
    return np.asarray(tall[:, kept])


def _conditions(model: TorqueModel, joint: int, paper: float) -> list[Row]:
    """Return the condition number of a stage with w as it stands, and with w / (2 pi)."""
    found = []
    for divisor, reading in ((1.0, 'w'), (2.0 * np.pi, 'w / (2 pi)')):
        frequency = FREQUENCIES[joint - 1] / divisor
        matrix = stage_matrix(model, joint - 1, frequency)
        condition = float(np.linalg.cond(matrix))
        note = (f'{frequency:.3g} rad/s, peak {AMPLITUDES[joint - 1] * frequency:.3g} rad/s; '
                f'{matrix.shape[1]} independent columns, all rows, one cycle, others at 0')
        ok = None if divisor == 1.0 else bool(abs(condition / paper - 1.0) <= SIMILAR)
        found.append(Row(f'condition of H, joint {joint}, {reading}', paper, condition, ok, note))
    return found


def identified(model: TorqueModel, rng: np.random.Generator, cycles: int) -> StagedEstimate:
    """Return the staged estimate from single-joint sinusoids, joint 3 first.

    Efforts are averaged over ``cycles`` equal cycles. The frequencies are w / (2 pi), the reading
    that gives condition numbers like the paper's.
    """
    stages, data, noise = [], [], NOISE / np.sqrt(cycles)
    for joint in reversed(range(model.robot.n)):
        motion = single_sine(model.robot, joint, FREQUENCIES[joint] / (2.0 * np.pi))
        solo = SoloMotion(joint, np.zeros(model.robot.n), float(AMPLITUDES[joint]))
        stages.append(Stage(model.robot.joints[joint], (solo,), tuple(range(model.robot.n)),
                            names_from(model, joint)))
        data.append(Experiment.of(model, [simulated(model, motion, noise, rng)]).information)
    experiment = Experiment(model, reduce(Information.merge, data))
    return fit_stages(experiment, stages, data)


def _table_3(model: TorqueModel, estimate: StagedEstimate, how: str = '') -> list[Row]:
    """Return table 3 beside the estimates, with its sign of friction."""
    lower, upper = estimate.interval(LEVEL)
    found = []
    for name in TABLE_3:
        i = estimate.names.index(name)
        truth = as_in_table(name, TABLE_3[name])
        note = f'+- {estimate.std[i]:.2g}'
        if name.startswith('f'):
            note += '; in the sign of the paper, a torque that drives'
        found.append(Row(f'table 3{how}: {name}', TABLE_3[name],
                         as_in_table(name, float(estimate.values[i])),
                         bool(lower[i] <= truth <= upper[i]), note))
    ratio = (estimate.values - true_values(model)) / estimate.std
    found.append(Row(f'table 3{how}: error / stated deviation, root mean square', None,
                     float(np.sqrt(np.mean(ratio**2))), None, 'near one where they are honest'))
    return found
