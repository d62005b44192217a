"""identification/selection.py: the order of the choices, and what each is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from motions import STEP, five_sines, lively, truth_of

from robot_dynid.effects import GearEffects
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice
from robot_dynid.estimation.least_squares import batch_scores, joint_weights, solve
from robot_dynid.estimation.uncertainty.between_recordings import scatter_covariance
from robot_dynid.friction import law_from
from robot_dynid.identification import selection
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import (
    Choice,
    Excerpt,
    SingleJointExcerpt,
    choose,
    choose_gear_effects,
    effort_lag,
    lag_of,
)
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.prepare import Preprocessing, Repaired
from robot_dynid.types import FloatArray, RawLog, Samples

ROBOT = load_robot('planar_3r')
ROWS = ROBOT.rows
#: rows of a recording of a thousand hours
MANY = 3_600_000


@dataclass
class Rows:
    """Stands for samples, of which the settings and the length are known."""

    settings: Preprocessing
    count: int = MANY
    time: FloatArray = field(default_factory=lambda: np.array([3.0, 4.0]))

    def __len__(self) -> int:
        return self.count


class Part:
    """Stands for an excerpt: what is asked of it is noted, and answered from a table."""

    def __init__(self, robot: Any, recordings: Any) -> None:
        self.robot, self.recordings, self.calls = robot, recordings, list[Any]()
        self.best, self.light, self.short = 10.0, 1.0, ()
        self.laws_of = list[float]()
        PARTS.append(self)
        for name, value in ANSWERS.items():
            setattr(self, name, value)

    def prepare_enough(self, model: Any, settings: Any) -> Any:
        if settings.cutoff in self.short:
            raise DataError(f'{settings.cutoff:g} Hz: too short')
        return settings, [Rows(settings), Rows(settings, 1, np.zeros(1))]

    def samples(self, settings: Any) -> list[Rows]:
        return [Rows(settings)]

    def log_errors(self, model: Any, samples: Any) -> FloatArray:
        """Return errors that are least at ``best``; those of joint 3 also at higher cut-offs."""
        cutoff = samples[0].settings.cutoff
        errors = np.full((5, ROWS), 0.0 if cutoff == self.best else 1.0 + 0.01 * cutoff)
        if cutoff > self.best:
            errors[:, 2] = np.log(self.light)
        return errors

    def score(self, model: Any, settings: Any) -> float:
        self.calls.append(('score', settings.effort_lag))
        return LAG_SCORES[settings.effort_lag != 0.0]

    def ramp(self, structure: Any, settings: Any) -> Any:
        self.calls.append(('ramp', structure.settings[0]['width'], settings))
        return replace(structure, settings=({'width': 0.07},) * 3)

    def effects(self, structure: Any, settings: Any) -> Any:
        self.calls.append(('effects', structure.settings[0]['width']))
        return structure

    def laws(self, structure: Any, settings: Any, requests: Any) -> Any:
        self.calls.append(('laws', settings.cutoff, len(requests)))
        if self.laws_of:
            self.best = self.laws_of.pop(0)
        return structure, (AxisChoice('1', 'coulomb'),)


PARTS: list[Part] = []
LAG_SCORES = [1.0, 0.9]
ANSWERS: dict[str, Any] = {}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Choice, Part, list[Any]]]:
    """Return a function that chooses; ``lag`` [s] with its deviation, scores without and with it.
    """
    def make(recipe: Recipe, lag: tuple[float, float] = (0.0, 1e-3),
             scores: tuple[float, float] = (1.0, 0.9), sweeps: Any = None,
             steps: tuple[float, ...] = (0.001,), **answers: Any) -> Any:
        monkeypatch.setitem(globals(), 'ANSWERS', answers)
        monkeypatch.setitem(globals(), 'LAG_SCORES', scores)
        monkeypatch.setattr(selection, 'effort_lag', lambda model, samples: Lag(
            lag[0] - samples[0].settings.effort_lag, lag[1]))
        told: list[Any] = []
        kind: Any = Part
        recordings: Any = [SimpleNamespace(step=step) for step in steps]
        found = choose(ROBOT, recordings, recipe, lambda *one: told.append(one), sweeps, kind)
        return found, PARTS[-1], told

    return make


KNOWN = {'cutoff': 12.0, 'ramp_width': 0.03, 'effort_lag': 0.002, 'friction': 'coulomb'}


def test_choices_that_the_recipe_makes_are_not_made_again(run) -> None:
    found, part, told = run(Recipe(**KNOWN, rate=250.0))
    assert found == Choice(Preprocessing(12.0, 250.0, 0.002), Structure.uniform(
        ROBOT, True, 'coulomb', {'width': 0.03}))
    assert part.calls == [('effects', 0.03)]
    assert told == [('looking for counterbalance', 0.35)]
    swept = SimpleNamespace()
    found, part, _ = run(Recipe(**{**KNOWN, 'friction': 'auto'}), sweeps=swept)
    assert found.structure is swept and part.calls == [('effects', 0.03)]
    found, part, told = run(Recipe(**{**KNOWN, 'friction': 'auto', 'ramp_width': None}))
    assert found.friction == (AxisChoice('1', 'coulomb'),)
    settings = Preprocessing(12.0, effort_lag=0.002)
    assert part.calls == [('ramp', 0.01, settings), ('effects', 0.07), ('laws', 12.0, 3)]
    assert told == [('choosing the Coulomb ramp', 0.25), ('looking for counterbalance', 0.35),
                    ('choosing friction laws', 0.4)]


def test_a_cutoff_is_chosen_below_the_rate_of_all_recordings(run) -> None:
    recipe = Recipe(**{**KNOWN, 'cutoff': None})
    found, _, told = run(recipe, steps=(0.001, 0.0136, 0.01), light=0.9, short=(2.0, 4.5))
    tried = (2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0)
    assert found.preprocessing.cutoff == 10.0
    light = np.log(0.9)
    assert dict(found.cutoffs) == pytest.approx({
        3.0: 1.03, 6.5: 1.065, 10.0: 0.0, 15.0: (2.3 + light) / 3.0, 22.0: (2.44 + light) / 3.0})
    assert found.passbands == (10.0, 10.0, 15.0)
    assert told[:-1] == [(f'tried a cut-off of {cutoff:g} Hz', pytest.approx(
        0.5 * (0.05 + 0.4 * k / 7.0))) for k, cutoff in enumerate(tried, start=1)]
    assert run(recipe, light=0.96)[0].passbands == ()
    only, _, told = run(recipe, best=0.3 / 0.2, steps=(0.2,))
    assert (only.preprocessing.cutoff, only.cutoffs) == (
        0.3 / 0.2, ((0.3 / 0.2, 0.0),))
    with pytest.raises(DataError, match=r'^22 Hz: too short'):
        run(recipe, steps=(0.0136,), short=tried)


@pytest.mark.parametrize(('cutoffs', 'laws'), [
    ([10.0], [10.0, 10.0]), ([15.0, 15.0], [10.0, 15.0]), ([15.0, 6.5, 6.5], [10.0, 15.0, 6.5]),
    ([15.0, 6.5, 22.0, 3.0], [10.0, 15.0, 6.5, 22.0])])
def test_cutoffs_are_chosen_again_with_the_friction_until_they_stay(run, cutoffs, laws) -> None:
    """At most three times; the same settings need no other choice."""
    recipe = Recipe(effort_lag=0.0)
    found, part, told = run(recipe, laws_of=[*cutoffs])
    made = list(dict.fromkeys(laws))
    assert [one for one in part.calls if one[0] == 'laws'] == [('laws', one, 3) for one in made]
    assert found.preprocessing.cutoff == made[-1]
    last = [share for stage, share in told if stage == 'tried a cut-off of 2 Hz']
    rounds = [0.5 * (0.05 + 0.4 / 11.0), *(
        0.5 + 0.1 * (k + 0.05 + 0.4 / 11.0) for k in range(min(len(cutoffs), 3)))]
    assert last == pytest.approx(rounds)
    fixed, part, _ = run(Recipe(cutoff=12.0, effort_lag=0.0), laws_of=[*cutoffs])
    assert fixed.preprocessing.cutoff == 12.0 and len(part.calls) == 3
    plain, part, _ = run(Recipe(**{**KNOWN, 'cutoff': None}))
    assert plain.preprocessing.cutoff == 10.0 and part.calls == [('effects', 0.03)]


@pytest.mark.parametrize(('lag', 'std', 'scores', 'used'), [
    (0.9e-3, 1e-3, (1.0, 0.5), False), (1.1e-3, 1e-3, (1.0, 0.99), True),
    (-1.1e-3, 1e-3, (1.0, 0.99), True), (1.1e-3, 1e-3, (1.0, 1.0), False),
    (4.9e-3, 1e-3, (1.0, 1.005), False), (5.1e-3, 1e-3, (1.0, 1.009), True),
    (5.1e-3, 1e-3, (1.0, 1.011), False)])
def test_a_lag_is_used_that_is_likely_and_lowers_the_error_or_is_sure(
    run, lag, std, scores, used
) -> None:
    recipe = Recipe(**{**KNOWN, 'effort_lag': None})
    found, part, told = run(recipe, lag=(lag, std), scores=scores)
    assert found.lag is not None and found.lag.seconds == pytest.approx(lag)
    assert found.preprocessing.effort_lag == pytest.approx(lag if used else 0.0)
    assert [one for one, *_ in part.calls] == [
        *['score'] * (2 if abs(lag) > std else 0), 'effects']
    assert told[0] == ('estimating the effort lag', 0.225)


def test_a_lag_is_compared_with_the_score_of_the_cutoff(run) -> None:
    """Which is zero at the best one."""
    recipe = Recipe(**{**KNOWN, 'effort_lag': None, 'cutoff': None})
    for with_lag, used in ((-0.01, True), (0.01, False)):
        found, part, _ = run(recipe, lag=(2e-3, 1e-3), scores=(99.0, with_lag))
        assert (found.preprocessing.effort_lag > 0.0) is used
        assert [one for one in part.calls if one[0] == 'score'] == [('score', pytest.approx(2e-3))]


@pytest.mark.parametrize('width', [0.002, 0.005, 0.02, 0.05])
def test_the_ramp_is_that_of_the_friction(width: float) -> None:
    truth = Structure.uniform(ROBOT, True, 'coulomb', {'width': width})
    clean = lively(truth.torque_model(ROBOT), 3000)
    part = Excerpt(ROBOT, [Repaired('run', (RawLog(
        'run', clean.joints, clean.time, clean.position, clean.velocity, clean.effort),), STEP,
        ())])
    given = Structure.uniform(ROBOT, True, 'coulomb', {'width': 0.3})
    assert part.ramp(given, Preprocessing(30.0)) == truth


@pytest.mark.parametrize(('cutoffs', 'effects', 'searches'), [
    ([8.0], [1e-5], 1), ([15.0, 15.0], [1e-5, 2e-5], 2), ([15.0], [1e-5, None], 2),
    ([15.0, 6.5, 22.0], [1e-5, 2e-5, 3e-5], 4), ([], [None], 1)])
def test_everything_is_chosen_again_with_effects_of_gears(
    monkeypatch: pytest.MonkeyPatch, cutoffs, effects, searches
) -> None:
    """Until the cut-off stays or the effects are gone, at most three times."""
    robot = load_robot('elastic_2r')
    asked: list[Any] = []

    def search(robot: Any, structure: Any, samples: Any, previous: Any = ()) -> Any:
        size = [*effects, 4e-5][len(asked)]
        asked.append((structure.gears, samples[0].settings.cutoff, samples[0].settings.decimate,
                      previous))
        return () if size is None else (GearEffects((size, 0.0)),) * 2

    def once(part: Any, recipe: Any, first: Any, previous: Any, progress: Any) -> Any:
        progress('once', 1.0)
        assert first.gears == previous.structure.gears
        step = len(asked) - 1
        cutoff = cutoffs[step] if step < len(cutoffs) else previous.preprocessing.cutoff
        return replace(previous, preprocessing=replace(previous.preprocessing, cutoff=cutoff))

    monkeypatch.setattr(selection, 'Excerpt', Part)
    monkeypatch.setattr(selection, 'gear_effects', search)
    monkeypatch.setattr(selection, 'choose_once', once)
    choice = Choice(Preprocessing(8.0), Structure.uniform(robot, True, 'coulomb', {'width': 0.3}))
    told: list[Any] = []
    found = choose_gear_effects(robot, [], Recipe(ramp_width=0.03), choice,
                                lambda *one: told.append(one))
    assert len(asked) == searches and told[0] == ('looking for effects of gears', 0.8)
    if effects == [None]:
        assert found is choice
        return
    assert [share for _, share in told[1:]] == pytest.approx(
        [0.8 + 0.2 * k / 3.0 for k in range(1, len(told))])
    assert [one[:3] for one in asked] == [((), one, False) for one in (8.0, *cutoffs)[:searches]]
    assert [one[3] for one in asked] == [(), *((GearEffects((one, 0.0)),) * 2 for one in (
        *effects, 4e-5)[:searches - 1])]
    assert not found.preprocessing.decimate
    size = (*effects, 4e-5)[searches - 1]
    assert found.structure.gears == (() if size is None else (GearEffects((size, 0.0)),) * 2)


@pytest.mark.parametrize('lag', [3e-3, -2e-3])
def test_a_lag_is_that_of_the_effort_behind_the_motion(lag: float) -> None:
    """Along sines in closed form: ``effort(t) = y(t - lag)``, in two recordings."""
    model = Structure.uniform(ROBOT, True, 'coulomb', {'width': 0.3}).torque_model(ROBOT)
    recordings = []
    for seed, count in ((1, 1500), (2, 2500)):
        time = STEP * np.arange(count)
        here, there = (Samples(ROBOT.joints, time, *five_sines(
            np.random.default_rng(seed), time - late, 3), cutoff=10.0) for late in (0.0, lag))
        effort = model.effort(there, truth_of(model))
        recordings.append(replace(here, effort=effort, measured=effort))
    found = effort_lag(model, recordings)
    assert found.seconds == pytest.approx(lag, rel=0.02)
    assert 0.0 < found.std < 0.05 * abs(lag)


def test_the_deviation_of_a_lag_is_that_of_the_last_parameter() -> None:
    model = Structure.uniform(ROBOT, True, 'coulomb', {'width': 0.3}).torque_model(ROBOT)
    information = Experiment.of(model, [lively(model, 1500, 0.1)]).information
    weights = joint_weights(information)
    solution = solve(information, weights)
    by_time, by_motion = (batch_scores(part, weights, solution)
                          for part in (information, information.distinct))
    spread, _ = scatter_covariance(information, by_time, by_motion=by_motion)
    lag = lag_of(information)
    assert lag.seconds == solution.values[-1]
    assert lag.std == pytest.approx(np.sqrt(spread[-1, -1]))


def test_scores_are_means_over_joints_and_folds() -> None:
    errors = np.array([[0.1, 0.5, 0.3], [0.9, 0.2, 0.4]])

    class Table(Excerpt):
        """Recordings whose errors are known."""

        def log_errors(self, model: Any, samples: Any) -> FloatArray:
            return errors

    part, none = Table(ROBOT, []), cast(Any, None)
    np.testing.assert_allclose(part.errors(none, []), [0.3, 0.5])
    assert part.score(none, Preprocessing(10.0)) == pytest.approx(0.4)


def single(monkeypatch: pytest.MonkeyPatch, **drive: Any) -> tuple[Any, Any, list[Any]]:
    """Return structure and choices from motions of joints 3 and 1, and what they came from."""
    asked: list[Any] = []

    def choose_laws(data: Any, requests: Any, laws: Any, loads: Any) -> Any:
        asked.append((data, requests, laws, loads))
        return [('dahl', law_from('dahl'))], [AxisChoice(data[0], 'dahl')], None

    class Motions(SingleJointExcerpt):
        """Recordings whose samples are not needed."""

        def samples(self, settings: Any) -> Any:
            return ['samples']

    names = Structure.uniform(ROBOT, True, 'coulomb+load', {}).torque_model(ROBOT).reduction.names
    monkeypatch.setattr(selection, 'joint_motions', lambda robot, samples: [
        SimpleNamespace(joint=2), SimpleNamespace(joint=0)])
    monkeypatch.setattr(selection, 'JointFrictionData', SimpleNamespace(
        of=lambda model, motion, loading: (f'joint {motion.joint}', loading)))
    monkeypatch.setattr(selection, 'choose_laws', choose_laws)
    monkeypatch.setattr(selection, 'StagedLeastSquares', lambda: SimpleNamespace(
        fit=lambda experiment: SimpleNamespace(values=np.arange(float(len(names))))))
    monkeypatch.setattr(selection, 'Experiment', SimpleNamespace(
        of=lambda model, samples: samples))
    robot = replace(ROBOT, drive=replace(ROBOT.drive, **drive))
    given = Structure.uniform(robot, True, 'coulomb+load', {})
    requests: Any = ['r1', 'r2', 'r3']
    found, choices = Motions(robot, []).laws(given, Preprocessing(10.0), requests)
    assert found is given or found.friction == ('dahl', 'coulomb+load', 'dahl')
    return found, choices, asked


def test_laws_of_single_joints_are_of_their_own_motion(monkeypatch) -> None:
    found, choices, asked = single(monkeypatch)
    assert choices == (AxisChoice('joint 2', 'dahl'), AxisChoice('joint 0', 'dahl'))
    assert [(data[0], requests, loads) for data, requests, _, loads in asked] == [
        ('joint 2', ['r3'], True), ('joint 0', ['r1'], True)]
    assert [len(laws) for _, _, laws, _ in asked] == [1, 1]
    model = found.torque_model(ROBOT)
    plain = Structure.uniform(ROBOT, True, 'coulomb+load', {}).torque_model(ROBOT)
    links = asked[0][0][1]
    assert links.shape == (3, 10) and asked[1][0][1] is links
    standard = plain.reduction.standard_values(np.arange(float(len(plain.reduction.names))))
    np.testing.assert_array_equal(links.ravel(), standard[:30])
    assert found.load is not None and model.robot.n == 3
    _, _, asked = single(monkeypatch, kind='gravity_compensated_torque')
    assert [(data[1], loads) for data, _, _, loads in asked] == [(None, False)] * 2
    found, choices, asked = single(monkeypatch, coupling=np.eye(3))
    assert (found.friction, choices, asked) == (('coulomb+load',) * 3, (), [])


def test_ramps_and_scores_of_single_joints_are_those_of_their_motion(monkeypatch) -> None:
    monkeypatch.setattr(selection, 'single_joint_errors', lambda model, samples: np.array(
        [0.1, 0.2, 0.6]))
    part = SingleJointExcerpt(ROBOT, [])
    np.testing.assert_array_equal(part.log_errors(cast(Any, None), []), [[0.1], [0.2], [0.6]])
    given = Structure.uniform(ROBOT, False, 'coulomb', {'width': 0.3})
    assert part.effects(given, Preprocessing(10.0)) is given

    class Known(SingleJointExcerpt):
        """Recordings whose scores are least at a width of ``best``."""

        def score(self, model: Any, settings: Any) -> float:
            return abs(np.log(model.blocks[-1].laws[0].width / best))

    for best in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1):
        assert Known(ROBOT, []).ramp(given, Preprocessing(10.0)) == Structure.uniform(
            ROBOT, False, 'coulomb', {'width': best})
