"""Three loops against weighted least squares: Liu et al., Actuators 2023, 12(12), 454, table 4.

Arms whose motors and gears follow no law of ours (`double_encoder_arm`), five of them, each once
with nothing on its links but their weight, once with cables and a wrench on them. Models are
identified from the motion of table 3, those of loops in turn also from sweeps, and judged on
another motion. Ours is the default recipe; beside it stands the paper's own sequence. Errors are
those of the effort as measured, and behind the low-pass of all, as in the paper. Figures are
medians over the arms; what they are known to be is from one run of all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.deflection import (
    GearModel,
    MixtureRegression,
    RadialBasis,
    ResidualFit,
    complete_joints,
    deflections,
    gear_load,
)
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.passive_friction import bound_friction
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import NONE, THREE, Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import FloatArray, Progress, RawLog, Samples
from robot_dynid_evaluation.papers import (
    RECOVERED,
    Entry,
    Remark,
    Row,
    claimed,
    known,
    matched,
    shown,
)
from robot_dynid_evaluation.papers.double_encoder_arm import Recorded, recorded
from robot_dynid_evaluation.papers.double_encoder_excitation import limits

#: table 4 [N m], joint by joint
PAPER_WLS = (2.3376, 2.1278, 1.5395, 0.3361, 0.7101, 0.2578)
PAPER_OURS = (1.9594, 1.7345, 1.1609, 0.3027, 0.5852, 0.2096)
#: what the loops take in the paper [s]; the second includes 30 s of motion
PAPER_SECONDS = {'friction': 1.0, 'links': 35.0, 'residual': 2.0}
#: arms that are drawn, and whether anything acts on their links, in words
SEEDS = (1, 2, 3, 4, 5)
PLANTS = {'weight alone': False, 'cables and a wrench': True}
#: Hz, the low-pass behind which errors are counted; the loops in turn are filtered as sharply
CUTOFF = 5.0
#: rad/s below which a joint stands
MOVES = 0.01
#: percent of the error by least squares that a gear shall take out where torque acts on links, and
#: may add or take out where none does; it may take out more where it shows the error of the links,
#: which then falls to this share at least
TELLS, SILENT, SHOWN_BY_GEAR = 10.0, 1.0, 0.7
#: why figures of the paper are not reached
WHY_LESS = ('known: the errors of our arms are others: hysteresis and waves of gears, friction '
            'that goes round with the joint, and links that 20 s leave open')
WHY_CURVE = ('known: sweeps are filtered, and the arms lose torque in proportion to the load')
WHY_MIXTURE = ('known: deflections are mostly torque on the links that the model knows; where '
               'it is not told apart from the rest, there is little to learn from it')

WLS, GLS, DEFAULT, PAPERS = 'wls', 'gls', 'default recipe', 'three loops in turn'
LINEAR = Recipe(friction='coulomb', residual=NONE, ripple=NONE, adaptation=NONE)
RECIPES = {
    WLS: LINEAR, GLS: LINEAR, DEFAULT: Recipe(),
    PAPERS: Recipe(cutoff=CUTOFF, friction='two-speed', residual='gmr', ripple=NONE,
                   adaptation=NONE, loops=THREE),
}
#: methods of recipes that are not fitted by weighted least squares: eqs. 24 and 25
METHODS = {GLS: 'gls'}
#: effects that are added to a model one after the other
PHYSICS, RIPPLE_TOO, GEAR, ALL = 'friction and links', 'ripple', 'gear', 'all'
#: what learns alone from deflection and rate, beside the physics: the mixture of the paper, and
#: its network (eqs. 27 to 30)
MIXTURE, NETWORK = 'mixture of deflection and rate', 'network of deflection and rate'
LEARNERS: Mapping[str, ResidualFit] = {MIXTURE: MixtureRegression(), NETWORK: RadialBasis()}
FILTERED, RAW = 'filtered', 'as measured'
#: in place of a filter: what is left of the error of the links' own effort, behind the filter; the
#: error of the friction curve of figure 6, relative to it
LINKS, CURVE = 'links', 'friction curve'
WHOLE, MOVING = 'whole motion', 'while it moves'
#: speeds of the curve, in parts of the limits of table 1: sweeps have the first and the last;
#: joints of figure 6; largest error of the curve that is wanted
SPEEDS, IN_FIGURE_6, WANTED_CURVE = np.geomspace(0.02, 0.9, 30), (1, 2), 0.1
#: percent of the error that GLS may add in a joint: as large as that of least squares
NO_LARGER = 1.0
WHY_WORSE = ('known: the default recipe takes half off the error of this joint along the motion '
             'it learned from, of 20 s, and what it learned does not hold on another one')
WHY_LOOPS = ('known: sweeps show no friction near reversals and at rest, a law of two speeds has '
             'no past, and links fitted to what it leaves take up its error')
#: medians [%] of falls that are known to be below the paper's, by joint, for a plant, a model, a
#: filter and a part of the motion, and how well the errors behind them are known, relative
KNOWN_FALLS: Mapping[tuple[str, str, str, str], Mapping[int, float]] = {
    ('weight alone', DEFAULT, FILTERED, WHOLE): {1: 15.2, 3: 13.5, 6: 6.5},
    ('weight alone', DEFAULT, FILTERED, MOVING): {1: 2.9, 3: -6.1, 6: 6.6},
    ('weight alone', DEFAULT, RAW, WHOLE): {3: 21.8},
    ('weight alone', DEFAULT, RAW, MOVING): {3: -1.6},
    ('weight alone', PAPERS, FILTERED, WHOLE): {
        1: -2.8, 2: -14.9, 3: -5.6, 4: -35.2, 5: -12.1, 6: 16.6},
}
KNOWN_TO = 0.05
#: least medians over the joints [% of wls] that a learner alone is known to take out
KNOWN_ALONE: Mapping[tuple[str, str], float] = {}
ALONE_TO = 0.25
#: mean falls over the joints [%] that are known to be less than the headline
KNOWN_HEADLINES: Mapping[tuple[str, str], float] = {}
#: relative errors of friction curves that are known, by plant and joint
KNOWN_CURVES: Mapping[tuple[str, int], float] = {}
#: what the headline of the paper claims of every joint [%]
HEADLINE = 20.0

#: root mean square errors (n,) [N m] by model, effects, filter and part of the motion
Errors = dict[tuple[str, str, str, str], FloatArray]


def rows(progress: Progress) -> Iterator[Entry]:
    """Yield the paper's figures beside ours."""
    yield from headline_remarks()
    for index, (plant, disturbed) in enumerate(PLANTS.items()):
        arms: list[Errors] = []
        taken: list[Mapping[str, float]] = []
        for number, seed in enumerate(SEEDS):
            progress(f'{plant}, arm {seed}',
                     (index + number / len(SEEDS)) / len(PLANTS))
            errors, seconds = errors_of(recorded(seed, disturbed))
            arms.append(errors)
            taken.append(seconds)
        table = {key: np.array([one[key] for one in arms]) for key in arms[0]}
        yield from plant_rows(plant, table, disturbed)
        if disturbed:  # where the third loop finds something
            yield from second_rows(max(taken, key=lambda loops: loops.get('residual', 0.0)))


def plant_rows(plant: str, table: Errors, disturbed: bool) -> Iterator[Row]:
    """Yield the rows of a plant; ``table`` holds the errors (s, n) of its arms."""
    whole = ((FILTERED, WHOLE),)
    yield from fall_rows(plant, table, DEFAULT, (
        *whole, (RAW, WHOLE), (FILTERED, MOVING), (RAW, MOVING)))
    yield from share_rows(plant, table, disturbed)
    yield from fall_rows(plant, table, PAPERS, whole)
    yield from headline_rows(plant, table)
    yield from curve_rows(plant, table)
    yield gls_row(plant, table)


def errors_of(
    data: Recorded, models: Sequence[str] = tuple(RECIPES)
) -> tuple[Errors, Mapping[str, float]]:
    """Identify ``models`` and return their errors on the held-out motion, and what loops took."""
    found: Errors = {}
    seconds: Mapping[str, float] = {}
    for name in models:
        logs = [data.motion]
        if RECIPES[name].loops == THREE and data.sweeps is not None:
            logs.append(data.sweeps)
        result = identify(data.robot, logs, METHODS.get(name, 'wls'), RECIPES[name],
                          clock=time.perf_counter)
        model = free_fit(result) if name == WLS else result.model
        samples = prepared(model, data.held_out)
        assert samples.measured is not None
        told = dict(predictions(model, samples, data.motion))
        for effects, predicted in told.items():
            found |= {(name, effects, *key): error
                      for key, error in _counted(samples, samples.measured - predicted)}
        found[name, PHYSICS, CURVE, WHOLE] = curve_errors(data, model)
        for effects in (RIPPLE_TOO, GEAR):
            found[name, effects, LINKS, WHOLE] = links_left(
                data.arm.robot.nominal, model, samples, told[effects] - told[RIPPLE_TOO])
        if model.record.residual is not None and model.record.residual.seconds:
            seconds = model.record.residual.seconds
    return found, seconds


def free_fit(result: IdentificationResult) -> IdentifiedModel:
    """Return the model of weighted least squares alone, the baseline of the paper.

    Where links near the nominal ones predict distinct motion better, `identify` replaces least
    squares by these, which the paper does not.
    """
    estimate = bound_friction(ESTIMATORS[WLS].fit(result.experiment), result.experiment)
    return replace(result.model, values=estimate.values, std=estimate.std, method=estimate.method)


def prepared(model: IdentifiedModel, log: RawLog) -> Samples:
    """Return a recording as the model was identified from one, with all of its stamps."""
    settings = replace(model.preprocessing, decimate=False)
    return prepare(model.robot, repair(model.robot, log), settings)


def predictions(
    model: IdentifiedModel, samples: Samples, trained: RawLog
) -> Iterator[tuple[str, FloatArray]]:
    """Yield effects and the effort (N, n) [N m] predicted with them and those before them."""
    bare = replace(model, learnt={})
    yield PHYSICS, bare.predicted(samples)
    there = prepared(bare, trained)
    for name, learner in LEARNERS.items():
        yield name, bare.predicted(samples) + learned(bare, samples, there, learner)
    yield RIPPLE_TOO, model.with_learnt('residual', ()).predicted(samples)
    gears = [one if isinstance(one, GearModel) else None for one in model.parts_of('residual')]
    yield GEAR, model.with_learnt('residual', gears).predicted(samples)
    yield ALL, model.predicted(samples)


def links_left(
    nominal: FloatArray, model: IdentifiedModel, samples: Samples, added: FloatArray
) -> FloatArray:
    """Return the deviations (n,) [N m] that ``added`` (N, n) leaves of the error of the links.

    That is the effort of links with standard parameters ``nominal`` (n, 10), less that of the
    links of the model.
    """
    physics = model.torque_model
    standard = np.zeros(len(physics.reduction.standard))
    standard[:nominal.size] = nominal.ravel()
    off = physics.reduction.base(standard) - gear_load(physics, model.values)
    left = physics.effort(samples, off)[:, :added.shape[1]] - added
    step = float(samples.time[1] - samples.time[0])
    return np.asarray(zero_phase_low_pass(left, CUTOFF, step).std(axis=0))


def learned(
    model: IdentifiedModel, samples: Samples, trained: Samples, learner: ResidualFit
) -> FloatArray:
    """Return the effort (N, n) [N m] that a ``learner`` of deflection and rate expects.

    It is fitted to what the model leaves of ``trained``.
    """
    assert trained.effort is not None
    left = trained.effort - model.predicted(trained)
    here, there = (deflections(model.robot, s) for s in (samples, trained))
    found = np.zeros_like(samples.position)
    if here is not None and there is not None:
        for j in set(complete_joints(here)) & set(complete_joints(there)):
            found[:, j] = learner.fit(there[:, j, :2], left[:, j]).mean(here[:, j, :2])
    return found


def curve_errors(data: Recorded, model: IdentifiedModel) -> FloatArray:
    """Return the errors (n,) of the friction at SPEEDS in both directions, in its size."""
    limit = limits(data.robot.joints).velocity
    speed = np.concatenate([-SPEEDS, SPEEDS])[:, None] * limit
    true = data.arm.steady_friction(speed)
    error = model.friction(np.zeros_like(speed), speed) - true
    return np.asarray(np.linalg.norm(error, axis=0) / np.linalg.norm(true, axis=0))


def _counted(
    samples: Samples, error: FloatArray
) -> Iterator[tuple[tuple[str, str], FloatArray]]:
    """Yield filter and part of the motion, and the root mean square error (n,) there."""
    step = float(samples.time[1] - samples.time[0])
    moves = np.abs(samples.velocity) > MOVES
    for kind, own in ((RAW, error), (FILTERED, zero_phase_low_pass(error, CUTOFF, step))):
        yield (kind, WHOLE), _rms(own)
        yield (kind, MOVING), _rms(own, moves)


def _rms(error: FloatArray, chosen: NDArray[np.bool_] | bool = True) -> FloatArray:
    """Return the root mean square (n,) of errors (N, n) where they are ``chosen``."""
    used = np.broadcast_to(chosen, error.shape)
    return np.asarray(np.sqrt(np.sum(error**2 * used, axis=0) / np.maximum(used.sum(axis=0), 1)))


def fall(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return by how many percent errors fall."""
    return 100.0 * (1.0 - after / before)


def shares(table: Errors, before: str, after: str, kind: str, model: str = DEFAULT) -> FloatArray:
    """Return the errors (s, n) that effects take out, in percent of those by least squares."""
    lower = table[model, before, kind, WHOLE] - table[model, after, kind, WHOLE]
    return 100.0 * lower / table[WLS, ALL, kind, WHOLE]


def fall_rows(
    plant: str, table: Errors, model: str, keys: Sequence[tuple[str, str]]
) -> Iterator[Row]:
    """Yield by how much the errors of a model fall in every joint against least squares.

    ``keys`` are filters and parts of the motion. A fall that is less than the paper's is known
    where the error is what it is known to be.
    """
    paper = fall(np.array(PAPER_WLS), np.array(PAPER_OURS))
    for kind, part in keys:
        percent, errors = _falls(table, model, (kind, part))
        pinned = KNOWN_FALLS.get((plant, model, kind, part), {})
        for j, middle in enumerate(np.median(percent, axis=0)):
            row = matched(
                f'{plant}: {model}: joint {j + 1}, {part}, {kind}: RMSE falls by [%]',
                float(paper[j]), float(middle), middle >= paper[j],
                f'arms {_range(percent[:, j])}; {errors[j]}')
            yield _known_fall(row, model, pinned.get(j + 1))


def _known_fall(row: Row, model: str, figure: float | None) -> Row:
    """Return a row, known if the error that is left is within KNOWN_TO of that of ``figure``."""
    if figure is None:
        return row
    why = WHY_LOOPS if model == PAPERS else WHY_LESS if figure > 0.0 else WHY_WORSE
    return known(row, why, figure, KNOWN_TO * (100.0 - figure) / abs(figure))


def headline_remarks() -> Iterator[Remark]:
    """Yield the remarks on the headline of the paper, by its own table 4."""
    paper = fall(np.array(PAPER_WLS), np.array(PAPER_OURS))
    yield Remark('RMSE reduced by more than 20 %', 'table 4 itself: '
                 f'{_numbers(paper)} %, more than {HEADLINE:g} in '
                 f'{np.sum(paper > HEADLINE)} of {len(paper)} joints; mean {paper.mean():.3g}')
    yield Remark('loop 1 takes 1 s, loop 2 takes 35 s, loop 3 takes 2 s',
                 'in MATLAB on another machine, with 30 s of motion: our seconds are shown only')


def headline_rows(plant: str, table: Errors) -> Iterator[Row]:
    """Yield the least and the mean fall over the joints, by the paper's sequence and by ours."""
    for model in (PAPERS, DEFAULT):
        middle = np.median(_falls(table, model, (FILTERED, WHOLE))[0], axis=0)
        row = matched(f'{plant}: {model}: mean over the joints: RMSE falls by [%]', HEADLINE,
                      float(middle.mean()), middle.mean() > HEADLINE,
                      f'joints 1 to 6: {_numbers(middle)}')
        why = WHY_LOOPS if model == PAPERS else WHY_LESS
        figure = KNOWN_HEADLINES.get((plant, model))
        yield claimed(row if figure is None else known(
            row, why, figure, KNOWN_TO * (100.0 - figure) / abs(figure)),
            f'residual RMSE is reduced by more than 20 % ({plant}; '
            f'{"sequence of the paper" if model == PAPERS else model})')


def curve_rows(plant: str, table: Errors) -> Iterator[Row]:
    """Yield the rows on the friction curves of figure 6, by the law of two speeds."""
    for j in IN_FIGURE_6:
        ours, linear = (float(np.median(table[model, PHYSICS, CURVE, WHOLE][:, j - 1]))
                        for model in (PAPERS, WLS))
        row = Row(f'{plant}: figure 6, joint {j}: friction curve, relative error',
                  'highly effective', ours, RECOVERED, ours <= WANTED_CURVE,
                  f'wanted: at most {WANTED_CURVE:g}; Coulomb and viscous friction {linear:.2g}')
        figure = KNOWN_CURVES.get((plant, j))
        yield claimed(row if figure is None else known(row, WHY_CURVE, figure),
                      f'two directions and two speeds show friction, joint {j} ({plant})')


def gls_row(plant: str, table: Errors) -> Row:
    """Return the row on eqs. 24 and 25, the weights of correlated joints."""
    percent, _ = _falls(table, GLS, (FILTERED, WHOLE))
    middle = np.median(percent, axis=0)
    row = matched(f'{plant}: {GLS} (eqs. 24, 25): least fall of RMSE over the joints [%]',
                  'better weights', float(middle.min()), middle.min() >= -NO_LARGER,
                  f'joints 1 to 6: {_numbers(middle)}; wanted: at least {-NO_LARGER:g}')
    return claimed(row, f'joint noise is correlated: covariance of all joints as weight ({plant})')


def _falls(table: Errors, model: str, key: tuple[str, str]) -> tuple[FloatArray, list[str]]:
    """Return by how many percent the errors (s, n) of a model are below least squares."""
    errors = [table[(name, ALL, *key)] for name in (WLS, model)]
    return fall(*errors), [f'RMSE {before:.3g} -> {after:.3g} N m' for before, after in zip(
        *(np.median(one, axis=0) for one in errors), strict=True)]


def share_rows(plant: str, table: Errors, disturbed: bool) -> list[Row]:
    """Return the errors that ripple, gears and learners take out, each by itself."""
    ripple, gear, more = (shares(table, *effects) for effects in (
        (PHYSICS, RIPPLE_TOO, RAW), (RIPPLE_TOO, GEAR, FILTERED), (GEAR, ALL, FILTERED)))
    left, of = (table[DEFAULT, effects, LINKS, WHOLE] for effects in (GEAR, RIPPLE_TOO))
    shows = (gear > 0.0) & (left <= SHOWN_BY_GEAR * of)
    tells = np.median(gear, axis=0).min() >= TELLS if disturbed else \
        np.all((np.abs(gear) <= SILENT) | shows)
    what = f'at least {TELLS:g} in every joint' if disturbed else \
        f'within {SILENT:g} in every joint of every arm, or more where it shows the error of links'
    found = [
        _share(f'{plant}: ripple, {RAW}', ripple, np.median(ripple, axis=0).min() >= -SILENT,
               f'at least -{SILENT:g} in every joint'),
        _share(f'{plant}: gears', gear, bool(tells), what),
        _share(f'{plant}: mixture where it is better', more, bool(more.min() >= -SILENT),
               f'at least -{SILENT:g} in every joint of every arm'),
    ]
    return [*found, *(_alone_row(plant, table, learner) for learner in LEARNERS)]


def _alone_row(plant: str, table: Errors, learner: str) -> Row:
    """Return the row on a learner of the paper by itself, in the joint where it explains least."""
    percent = shares(table, PHYSICS, learner, FILTERED)
    middle = np.median(percent, axis=0)
    row = matched(f'{plant}: {learner} alone: takes out at least [% of {WLS}]', '> 0',
                  float(middle.min()), middle.min() > 0.0,
                  f'joints 1 to 6: {_numbers(middle)}; arms {_range(percent)}')
    figure = KNOWN_ALONE.get((plant, learner))
    return claimed(row if figure is None else known(row, WHY_MIXTURE, figure, ALONE_TO),
                   f'{learner.replace("of deflection and rate", "")}of the deflection takes out '
                   f'the remaining error ({plant})')


def _share(what: str, percent: FloatArray, ok: bool, wanted: str) -> Row:
    """Return the row of what an effect takes out of the errors of every arm (s, n) [%]."""
    middle = np.median(percent, axis=0)
    return matched(f'{what}: takes out [% of {WLS}]', None, _numbers(middle), ok,
                   f'joints 1 to 6; arms {_range(percent)}; wanted: {wanted}')


def second_rows(seconds: Mapping[str, float]) -> list[Row]:
    """Return the time of each loop."""
    notes = {'links': "; samples compressed before; the paper's includes 30 s of motion",
             'residual': '; the last fit; judging it on data left out comes on top'}
    return [shown(f'loop {stage} [s]', PAPER_SECONDS[stage], float(taken),
                  f'other data on another machine{notes.get(stage, "")}')
            for stage, taken in seconds.items()]


def _range(values: FloatArray) -> str:
    return f'{values.min():.3g} to {values.max():.3g}'


def _numbers(values: FloatArray) -> str:
    return ' '.join(f'{value:.3g}' for value in values)
