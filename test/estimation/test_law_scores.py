"""estimation/friction_selection: scores of laws against scipy, and the rules of the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from robot_dynid.effects import axes_of
from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary
from robot_dynid.estimation.friction_selection.law_request import LawRequest
from robot_dynid.estimation.friction_selection.law_scores import LawScores
from robot_dynid.estimation.friction_selection.law_selection import (
    AxisChoice,
    LawScore,
    ScoredLaw,
    bases,
    choose_simplest,
    excited_laws,
    extend_law,
    nearby,
)
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.estimation.information import triangle
from robot_dynid.friction import FrictionLaw, law_from
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples

SIMPLE = law_from('coulomb', {'width': 0.02})
MAXWELL = law_from('maxwell', {'lengths': [1e-4, 1e-3, 1e-2]})
LAWS = Dictionary((SIMPLE, MAXWELL))
#: of the distinct columns: fv, fc and f0 of the first law, then the amplitudes of presliding
TRUE = np.array([2.0, 0.0, 0.5, 1.0, -1.0, 0.02])
FOLDS, ROWS = 4, 30


class Known:
    """Equations of four folds, their filtered and raw effort, and the scores of them."""

    def __init__(self, true: FloatArray = TRUE, noise: float = 0.1, reach: float = 1.0) -> None:
        rng = np.random.default_rng(0)
        self.columns = rng.normal(size=(FOLDS, ROWS, len(true)))
        self.filtered = self.columns @ true + noise * rng.normal(size=(FOLDS, ROWS))
        self.raw = self.filtered + 0.1 * rng.normal(size=self.filtered.shape)
        both = [np.concatenate([self.columns, effort[..., None]], axis=2)
                for effort in (self.filtered, self.raw)]
        train = [np.concatenate(np.delete(both[0], k, axis=0)) for k in range(FOLDS)]
        self.scores = LawScores(
            LAWS, np.array([triangle(rows) for rows in (*train, np.concatenate(both[0]))]),
            np.array([triangle(rows) for rows in both[1]]), np.full(FOLDS, ROWS),
            np.linalg.norm(np.concatenate(self.columns), axis=0), np.full(len(true), reach))

    def fit(self, law: FrictionLaw, without: int | None = None, bounded: bool = True
            ) -> FloatArray:
        """Return the parameters of a law without a fold, by scipy."""
        rows = [k for k in range(FOLDS) if k != without]
        low = [0.0 if bounded and p.nonnegative else -np.inf for p in law.table]
        return np.asarray(lsq_linear(
            np.concatenate(self.columns[rows])[:, LAWS.place(law)],
            np.concatenate(self.filtered[rows]), (low, np.inf), tol=1e-14).x)


@pytest.mark.parametrize('signs', [(1, 1), (-1, -1)])
@pytest.mark.parametrize('law', [SIMPLE, MAXWELL])
def test_errors_of_a_law_are_those_of_fits_to_the_other_folds(
    law: FrictionLaw, signs: tuple[int, int]
) -> None:
    known, place = Known(np.array([2.0 * signs[0], 0.7 * signs[1], *TRUE[2:]])), LAWS.place(law)
    assert known.scores.values(law) == pytest.approx(known.fit(law), abs=1e-7)
    left = [known.raw[k] - known.columns[k][:, place] @ known.fit(law, k) for k in range(FOLDS)]
    errors = known.scores.errors([law])[0]
    assert errors == pytest.approx(np.sqrt(np.mean(np.square(left), axis=1)), rel=1e-6)
    assert known.scores.score(errors) == pytest.approx(np.sqrt(np.mean(np.square(left))))
    free = known.filtered - known.columns[..., place] @ known.fit(law, bounded=False)
    assert known.scores.residual(law) == pytest.approx(np.sum(free**2), rel=1e-9)


def test_folds_count_by_their_samples() -> None:
    scores = replace(Known().scores, samples=np.array([10, 10, 10, 90]))
    assert scores.score(np.array([1.0, 1.0, 1.0, 3.0])) == pytest.approx(np.sqrt(7.0))


def test_amplitudes_that_the_prediction_needs_remain() -> None:
    """Of 1, -1 and 0.02 N m, the last below the noise of 1 N m."""
    assert Known(noise=1.0).scores.settled(MAXWELL).parameters == ('fv', 'fca', 'f0')
    every = TRUE * [1, 1, 1, 1, -1, 50]
    assert Known(every).scores.settled(MAXWELL).parameters == MAXWELL.parameters
    assert Known().scores.settled(SIMPLE) is SIMPLE


@pytest.mark.parametrize('share', [0.99, 1.01])
def test_parameters_that_could_be_noise_are_left_open(share: float) -> None:
    """Their deviation, by leaving out folds, exceeds the measured effort at about 1 rad/s."""
    known = Known()
    fits = np.array([known.fit(SIMPLE, k, bounded=False) for k in range(FOLDS)])
    deviation = np.sqrt((FOLDS - 1) / FOLDS * np.sum((fits - fits.mean(axis=0))**2, axis=0))
    worst = int(np.argmax(deviation))
    scores = replace(known.scores, reach=np.full(len(TRUE), share / deviation[worst]))
    left = {SIMPLE.parameters[worst]} if share > 1.0 else set()
    assert scores.left_open([SIMPLE]) == [left]
    assert scores.excited([SIMPLE]) == [True]  # what the first law leaves open is unavoidable


def test_parameters_without_data_are_left_open() -> None:
    known, (_, _, offset) = Known(np.array([2.0, 0.7, *TRUE[2:]])), LAWS.place(SIMPLE)
    train, norms = known.scores.train.copy(), known.scores.norms.copy()
    train[:, :, LAWS.place(MAXWELL)[1]], norms[LAWS.place(MAXWELL)[1]] = 0.0, 0.0
    train[:, :, offset] = 2.0 * train[:, :, 0]
    scores = replace(known.scores, train=train, norms=norms, reach=np.full(len(TRUE), 1e-9))
    assert scores.left_open([SIMPLE, MAXWELL]) == [{'fv', 'f0'}, {'fv', 'fca', 'f0'}]
    assert scores.excited([SIMPLE, MAXWELL]) == [True, False]
    # equal shares, in columns of unit norm, of what both columns together explain
    columns = np.concatenate(known.columns)
    alone = np.linalg.lstsq(columns[:, [0, LAWS.place(SIMPLE)[1]]], known.filtered.ravel())[0]
    assert scores.values(SIMPLE) == pytest.approx(
        np.array([0.5 * alone[0], alone[1], 0.25 * alone[0]]), rel=1e-6)


def test_parameters_with_small_columns_are_not_left_open() -> None:
    scores = Known().scores
    size = np.where(np.arange(len(TRUE)) == LAWS.place(SIMPLE)[0], 1e-9, 1.0)
    small = replace(scores, train=scores.train * np.append(size, 1.0), norms=scores.norms * size,
                    reach=np.full(len(TRUE), 1e-12))
    assert small.left_open([SIMPLE, MAXWELL]) == [set(), set()]


def scored(name: str, *errors: float, excited: bool = True) -> ScoredLaw:
    folds = np.array(errors if len(errors) > 1 else 5 * errors)
    return ScoredLaw(name, law_from(name), folds, float(np.sqrt(np.mean(folds**2))), excited)


@pytest.mark.parametrize(('chosen', 'candidates'), [
    ('dahl', [scored('dahl', 0.97), scored('coulomb', 1.0)]),
    ('coulomb', [scored('dahl', 0.981), scored('coulomb', 1.0)]),
    ('coulomb', [scored('dahl', 0.5, excited=False), scored('coulomb', 1.0)]),
    ('coulomb', [scored('dahl', 0.2, 1.1, 1.1, 1.1), scored('coulomb', 1.0, 1.0, 1.0, 1.0)]),
    # squares fall by 0.41 on average, more than their standard error of 0.34; other powers do not
    ('dahl', [scored('dahl', 0.5, 0.5, 0.5, 0.5, 1.4), scored('coulomb', 1.0)]),
    ('dahl', [scored('dahl', 0.25, 0.25, 0.25, 0.25, 0.7), scored('coulomb', 0.5)]),
    ('none', [scored('coulomb', 0.99), scored('none', 1.0)]),
    ('coulomb', [scored('coulomb', 0.97), scored('none', 1.0)]),
    ('dahl', [scored('stribeck', 0.945), scored('dahl', 0.96), scored('coulomb', 1.0)]),
    ('stribeck', [scored('stribeck', 0.93), scored('dahl', 0.96), scored('coulomb', 1.0)]),
])
def test_a_longer_law_must_improve_on_the_simplest(
    chosen: str, candidates: list[ScoredLaw]
) -> None:
    assert choose_simplest(candidates, 0.02).name == chosen


def test_candidates_begin_with_coulomb_and_leave_out_what_is_asked() -> None:
    def names(request: LawRequest, alone: bool = True) -> list[str]:
        return list(dict.fromkeys(name for name, _ in bases(request, SIMPLE, alone)))

    every = names(LawRequest.of('auto'))
    assert every[:2] == ['coulomb', 'asymmetric'] and not {'none', 'exponential'} & set(every)
    without = names(LawRequest.of('auto without dahl maxwell'))
    assert without == [name for name in every if name not in ('dahl', 'maxwell')]
    assert names(LawRequest.of('auto'), alone=False) == [
        name for name in every if 'f0' in law_from(name).parameters]
    assert names(LawRequest.of('dahl+load')) == ['coulomb', 'dahl']
    assert names(LawRequest.of('coulomb')) == ['coulomb']
    free = LawRequest(simplest='none')
    assert names(free)[:3] == ['coulomb', 'none', 'asymmetric']
    assert [law for _, law in bases(LawRequest.of('dahl'), SIMPLE, True)[1:]] == \
        type(law_from('dahl')).candidates()


def test_additions_are_tried_in_every_shape_unless_they_are_set() -> None:
    found = extend_law(('dahl', law_from('dahl')), 'breakaway', {})
    assert {name for name, _ in found} == {'dahl+breakaway'} and len(found) == 4
    (_, law), = extend_law(('dahl', law_from('dahl')), 'breakaway', {'speed': 0.07})
    assert law.settings()['breakaway']['speed'] == 0.07


def test_the_error_of_a_choice_is_that_of_its_law_and_shapes_are_ranked_excited_first() -> None:
    tried = (LawScore('coulomb', 1.0), LawScore('dahl', 0.8))
    assert AxisChoice('1', 'dahl', '', tried).error_over_coulomb == 0.8
    laws = [scored('dahl', 0.5, excited=False), scored('dahl', 0.9), scored('dahl', 0.8)]
    assert sorted(laws, key=lambda law: law.rank) == [laws[2], laws[1], laws[0]]
    assert [scored(name, 1.0).size for name in ('coulomb', 'dahl', 'stribeck')] == [3, 4, 6]


@pytest.mark.parametrize(('length', 'near'), [
    # the grid has 10 lengths from 2e-5 to 2e-2 m, a factor of 10^(1/3); at the ends it stops
    (1e-3, [1e-3, 1e-3 * 10**(-0.12), 1e-3 * 10**0.12]), (2e-2, [2e-2, 2e-2 * 10**(-0.12)]),
    (2e-5, [2e-5, 2e-5 * 10**0.12])])
def test_shapes_nearby_are_a_share_of_the_grid_step_away(length: float, near: list[float]) -> None:
    found = [law.length for law in nearby(law_from('dahl', {'length': length}), 0.36)]  # type: ignore[attr-defined]
    assert found == pytest.approx(near, rel=1e-3)
    assert nearby(SIMPLE, 0.36) == [SIMPLE]


class Reported:
    """Data whose fits report parameters of some laws as not excited, on every axis they are on."""

    def __init__(self, **open_of_law: set[str]) -> None:
        self.open_of_law = open_of_law

    def left_open(self, laws, links):  # type: ignore[no-untyped-def]
        return {f'{p}{axis}' for axis, (name, _) in enumerate(laws)
                for p in self.open_of_law.get(name, ())}

    def names(self, axis, law):  # type: ignore[no-untyped-def]
        return {f'{p}{axis}' for p in law.parameters}


def test_laws_with_open_parameters_give_way_to_the_next() -> None:
    dahl, stribeck, simple = ((name, law_from(name)) for name in ('dahl', 'stribeck', 'coulomb'))
    asked = [(stribeck, dahl, simple), (dahl, simple), (stribeck,)]

    def chosen(**open_of_law: set[str]) -> list[str]:
        return [name for name, _ in excited_laws(Reported(**open_of_law), asked, None)]  # type: ignore[arg-type]

    assert chosen() == ['stribeck', 'dahl', 'stribeck']
    assert chosen(stribeck={'fs'}) == ['dahl', 'dahl', 'stribeck']
    assert chosen(stribeck={'fs'}, dahl={'fc'}) == ['coulomb', 'coulomb', 'stribeck']
    # what the last laws leave open, too, is no reason
    assert chosen(stribeck={'fv'}, dahl={'fv'}, coulomb={'fv'}) == ['stribeck', 'dahl', 'stribeck']


@pytest.mark.parametrize(('travel', 'slowest', 'fastest', 'reason'), [
    (0.051, -0.06, 1.0, ''), (0.049, -0.06, 1.0, 'travels over 0.049 only, perhaps within '
                              'presliding'),
    (1.0, -0.04, 1.0, 'moves in one direction only, so its friction equals an offset'),
    (1.0, -1.0, 0.04, 'moves in one direction only, so its friction equals an offset'),
    (1.0, -1.0, 0.06, '')])
def test_laws_need_travel_both_ways(
    travel: float, slowest: float, fastest: float, reason: str
) -> None:
    robot = load_robot('planar_3r')

    def samples(size: float) -> Samples:
        q, qd = (np.tile(np.array(ends)[:, None], robot.n)
                 for ends in ((3.0, 3.0 + size), (slowest, fastest)))
        return Samples(robot.joints, np.arange(2.0), q, qd, 0.0 * qd)

    data = FrictionData(None, axes_of(robot), [samples(travel), samples(0.0)])  # type: ignore[arg-type]
    assert data.reasons() == 3 * [reason] and data.alone() == 3 * [True]


def test_axes_that_share_a_joint_are_not_alone() -> None:
    robot = load_robot('tx40')  # friction of motor 6 also acts on joint 5
    assert FrictionData(None, axes_of(robot), []).alone() == [True] * 4 + [False] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize(('seconds', 'drifts'), [(59.0, False), (60.0, True), (70.0, True)])
def test_warming_up_shows_in_recordings_of_a_minute(seconds: float, drifts: bool) -> None:
    still = np.zeros((3, 3))
    samples = Samples(('a', 'b', 'c'), 5.0 + np.array([0.0, 1.0, seconds]), still, still, still)
    data = FrictionData(None, None, [replace(samples, time=samples.time / 9.0), samples])  # type: ignore[arg-type]
    assert ('drift' in data.additions(LawRequest.of('auto'), False)) is drifts


def test_temperature_is_relative_to_its_mean_or_to_25_degrees() -> None:
    still = np.zeros((3, 3))
    cold, warm = (Samples(('a', 'b', 'c'), np.arange(3.0), still, still, still,
                          temperature=still + degrees) for degrees in (20.0, 31.00037))
    request = LawRequest.of('coulomb+temperature')
    for recordings, reference in (([cold, warm, warm], 27.334), ([cold, replace(
            warm, temperature=None)], 25.0)):
        data = FrictionData(None, None, recordings)  # type: ignore[arg-type]
        assert data.additions(request, False) == {'temperature': {'reference': reference}}
