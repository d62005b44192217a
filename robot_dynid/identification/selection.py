"""Choices made from the data: cut-off, lag of the effort, friction; by held-out error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import (
    CHUNK,
    Experiment,
    Regression,
    TorqueModel,
    batch_samples,
    chunks,
    swift,
)
from robot_dynid.estimation.friction_selection.law_selection import AUTO, AxisChoice, choose_laws
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.estimation.information import Accumulator
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.effort_lag import lag_of, likely, settled
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.regressor import axes_of
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.derivatives import derivative
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.types import FloatArray, Progress, Samples

CUTOFFS = (2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0, 33.0, 50.0, 75.0, 110.0)
WIDTHS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
DEFAULT_WIDTH = 0.01
#: highest candidate cut-off as a share of the sampling frequency
HIGHEST = 0.3
#: choices of the cut-off after the first, with the friction found; two have always been enough
CUTOFF_ROUNDS = 3



@dataclass(frozen=True)
class Choice:
    """Choices of the pipeline, with the candidates tried: (value, held-out score).

    ``friction`` says so for the law of every axis; it is empty where the law was prescribed.
    """

    preprocessing: Preprocessing
    structure: Structure
    cutoffs: tuple[tuple[float, float], ...] = ()
    lag: Lag | None = None
    friction: tuple[AxisChoice, ...] = ()


def choose(robot: RobotModel, recordings: Sequence[Repaired], recipe: Recipe,
           progress: Progress, sweeps: Structure | None = None) -> Choice:
    """Choose everything the recipe leaves open; the same data always gives the same choice.

    The friction laws are those of ``sweeps`` where these were identified before.

    As long as the law of friction is wrong it is best smoothed away, and what is smoothed away
    determines no law; most of all at the motor of an elastic joint, whose own equation is mostly
    friction. So the cut-off is chosen again with the law that was found, and the law anew, until
    the cut-off stays.
    """
    if sweeps is not None:
        recipe = replace(recipe, friction='coulomb')
    part = list(recordings)
    width = recipe.ramp_width or DEFAULT_WIDTH
    first = Structure.uniform(robot, recipe.rotor_inertia, 'coulomb', {'width': width})
    choice = _chosen(robot, part, recipe, (first, first), _between(progress, 0.0, 0.5))
    again = recipe.cutoff is None and (choice.friction or robot.coordinates > robot.n)
    for i in range(CUTOFF_ROUNDS if again else 0):
        before = choice
        begin, end = (0.5 + 0.3 * (i + k) / CUTOFF_ROUNDS for k in (0, 1))
        choice = _chosen(robot, part, recipe, (first, before.structure),
                         _between(progress, begin, end))
        if choice.preprocessing.cutoff == before.preprocessing.cutoff:
            break
    return choice if sweeps is None else replace(choice, structure=sweeps)


def _between(progress: Progress, begin: float, end: float) -> Progress:
    """Return a progress whose whole is the part from ``begin`` to ``end`` of ``progress``."""
    return lambda stage, share: progress(stage, begin + (end - begin) * share)


def _chosen(robot: RobotModel, part: Sequence[Repaired], recipe: Recipe,
            known: tuple[Structure, Structure], progress: Progress) -> Choice:
    """Choose once; ``known`` is the friction to begin with, and the best so far.

    Cut-off and lag are chosen with the best friction so far.
    """
    structure, best = known
    scores: tuple[tuple[float, float], ...] = ()
    cutoff = recipe.cutoff
    if cutoff is None:
        cutoff, scores = _choose_cutoff(robot, part, best, progress)
    settings = Preprocessing(cutoff, recipe.rate, recipe.effort_lag or 0.0)
    lag = None
    if recipe.effort_lag is None:
        progress('estimating the lag of the effort', 0.45)
        settings, lag = _choose_lag(robot, part, best, settings)
    if recipe.ramp_width is None:
        structure = _choose_width(robot, part, structure, settings, progress)
    choices: tuple[AxisChoice, ...] = ()
    if recipe.friction != 'coulomb' and not (recipe.friction == AUTO and recipe.ramp_width):
        progress('choosing friction laws', 0.8)
        structure, choices = _choose_laws(robot, part, structure, settings, recipe.friction)
    return Choice(settings, structure, scores, lag, choices)


def _prepared(
    robot: RobotModel, part: Sequence[Repaired], settings: Preprocessing
) -> Iterator[Samples]:
    return (prepare(robot, recording, settings) for recording in part)


def _choose_cutoff(
    robot: RobotModel, part: Sequence[Repaired], structure: Structure, progress: Progress
) -> tuple[float, tuple[tuple[float, float], ...]]:
    model = structure.torque_model(robot)
    highest = HIGHEST / max(r.step for r in part)
    candidates = [c for c in CUTOFFS if c <= highest] or [highest]
    scores = []
    problem: DataError | None = None
    for i, cutoff in enumerate(candidates):
        progress(f'trying a cut-off of {cutoff:g} Hz', 0.05 + 0.4 * i / len(candidates))
        try:
            experiment = Experiment.of(model, _prepared(model.robot, part, Preprocessing(cutoff)))
            scores.append((cutoff, held_out(experiment.information).score))
        except DataError as error:
            problem = error
    if not scores:
        raise problem or DataError('no cut-off frequency can be tried on this data')
    return min(scores, key=lambda s: s[1])[0], tuple(scores)


def _choose_lag(
    robot: RobotModel, part: Sequence[Repaired], structure: Structure, settings: Preprocessing
) -> tuple[Preprocessing, Lag]:
    model = structure.torque_model(robot)
    lag = settled(lambda late: effort_lag(model, part, replace(settings, effort_lag=late)))
    if not likely(lag):
        return settings, lag
    shifted = replace(settings, effort_lag=lag.seconds)
    before, after = (
        held_out(Experiment.of(model, _prepared(model.robot, part, one)).information).score
        for one in (settings, shifted))
    return (shifted if after < before else settings), lag


def effort_lag(
    model: TorqueModel, part: Sequence[Repaired], settings: Preprocessing
) -> Lag:
    """Estimate by how much the effort is later than the motion.

    A late effort is ``y(t - lag) = y - lag dy/dt`` to first order, so the lag is one more linear
    parameter, shared by all joints, with its own standard deviation. Rows of a joint near its own
    reversals are left out: while a joint sticks, its friction changes ahead of the velocity, which
    looks like a lag.
    """
    names = (*model.reduction.names, 'effort_lag')
    structure = np.hstack([model.structure, np.ones((model.robot.rows, 1), dtype=bool)])
    accumulator: Accumulator | None = None
    for recording in part:
        samples = prepare(model.robot, recording, settings)
        assert samples.effort is not None and samples.measured is not None
        accumulator = accumulator or Accumulator(names, structure, batch_samples(samples))
        accumulator.begin()
        rate = samples.at_stamps(_rate(samples.gridded))
        regression = Regression(model, samples)
        far = swift(model.robot, samples)
        for rows in chunks(samples, min(CHUNK, accumulator.batch_samples)):
            used = far[rows]
            late = np.concatenate([regression.columns(rows), -rate[rows].T[:, None, :]], axis=1)
            accumulator.add(late * used.T[:, None, :], samples.effort[rows] * used,
                            samples.measured[rows] * used)
    assert accumulator is not None
    return lag_of(accumulator.information())


def _rate(samples: Samples) -> FloatArray:
    """Return the derivative (N, rows) [N m/s] of the filtered effort of uniform samples."""
    assert samples.effort is not None
    rate = np.zeros_like(samples.effort)
    for segment in samples.segments:
        if segment.stop - segment.start > 1:
            step = float(samples.time[segment.start + 1] - samples.time[segment.start])
            rate[segment] = derivative(samples.effort[segment], step)
    return rate


def _choose_width(
    robot: RobotModel, part: Sequence[Repaired], structure: Structure, settings: Preprocessing,
    progress: Progress,
) -> Structure:
    """Choose one ramp for all axes; per axis the choice follows the noise of single reversals."""
    tried = []
    for i, width in enumerate(WIDTHS):
        progress(f'trying a Coulomb ramp of {width:g} rad/s', 0.5 + 0.3 * i / len(WIDTHS))
        candidate = Structure.uniform(robot, structure.rotor_inertia, structure.friction[0],
                                      {'width': width})
        model = candidate.torque_model(robot)
        experiment = Experiment.of(model, _prepared(model.robot, part, settings))
        tried.append((held_out(experiment.information).score, i, candidate))
    return min(tried)[2]


def _choose_laws(
    robot: RobotModel, part: Sequence[Repaired], structure: Structure, settings: Preprocessing,
    requested: str,
) -> tuple[Structure, tuple[AxisChoice, ...]]:
    """Choose the law of every axis, beginning with those of ``structure``."""
    model = structure.torque_model(robot)
    links = TorqueModel.of(model.robot, structure.blocks(model.robot)[:-1])
    data = FrictionData(links, axes_of(robot), [prepare(robot, r, settings) for r in part])
    loads = robot.drive.kind != 'gravity_compensated_torque'
    laws, choices, load = choose_laws(data, requested, structure.laws, loads)
    return Structure.of(structure.rotor_inertia, laws, load), choices
