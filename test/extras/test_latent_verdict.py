"""robot_dynid_extras/latent/latent.py: what becomes of a fit, with misfits that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from motions import lively, torque_model

from robot_dynid.errors import DataError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.estimate import Estimate, student_quantile
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.uncertainty.between_recordings import covariance
from robot_dynid.friction import law_from
from robot_dynid.signals.unfiltered import AsRecorded
from robot_dynid.types import FloatArray
from robot_dynid_extras.latent import latent
from robot_dynid_extras.latent.latent import Fitted, LatentDetails, finite, misfits_of
from robot_dynid_extras.latent.motion import Condensed, LatentFit, LatentProblem, LatentState
from robot_dynid_extras.latent.stretches import Cut

MODEL = torque_model('planar_3r')
NAMES = MODEL.reduction.names
EXPERIMENT = Experiment.of(MODEL, [lively(MODEL, 700, noise=0.02)])
START = ESTIMATORS['wls'].fit(EXPERIMENT)
NOTHING: Any = None
COUNT = 10  # stretches, in eight groups


def condensed(silent: int | None = None) -> tuple[Condensed, ...]:
    """Return equations of steps, to which one parameter may not matter."""
    found = []
    for k in range(COUNT):
        root = np.random.default_rng(k).normal(size=(30, len(NAMES))) * np.geomspace(
            0.1, 10.0, len(NAMES))
        if silent is not None:
            root[:, silent] = 0.0
        found.append(Condensed(root.T @ root, root.sum(axis=0), NOTHING, NOTHING, NOTHING,
                               NOTHING))
    return tuple(found)


def verdict(
    monkeypatch: pytest.MonkeyPatch, gains: Sequence[float], moved: dict[str, float],
    spread: FloatArray, instruments: tuple[FloatArray, FloatArray, float, bool],
    silent: int | None = None,
) -> Estimate:
    """Return what becomes of a fit whose values are ``moved`` from those of the start.

    ``spread`` (8, b) are the changes by groups of stretches; ``instruments`` values (b,) beside
    the start's with deviations (b,), their F, and whether they are noisy.
    """
    values = START.values.copy()
    for name, change in moved.items():
        values[NAMES.index(name)] += change
    state = LatentState((), values, np.zeros(0), np.array([0.4, 0.5, 0.6]), 0.01)
    before, asked = 10.0 + np.asarray(gains), list[Any]()

    def misfit(of: object, group: Sequence[int], rounds: int) -> float:
        asked.append((of, list(group), rounds))
        return float(before[(len(asked) - 1) % 8])

    problem: Any = SimpleNamespace(with_known_parameters=SimpleNamespace(misfit=misfit))
    fit = LatentFit(state, condensed(silent), 17, ())
    begun = LatentFit(replace(state, values=START.values), condensed(), 3, ())
    stretch: Any = SimpleNamespace(time=np.linspace(2.0, 2.75, 20), stamps=np.zeros(19),
                                   recording=0)
    cut = Cut((stretch,) * COUNT, np.array([1e-4, 2e-4, 3e-4]))
    monkeypatch.setattr(Fitted, 'of', lambda *_: Fitted(START, problem, begun, fit, cut))
    monkeypatch.setattr(latent, 'misfits_of', lambda *_: (np.full(8, 10.0), values + spread))
    other, std, first_stage, noisy = instruments
    known = replace(START, values=START.values + other, covariance=np.diag(std**2))
    monkeypatch.setattr(latent, 'InstrumentalVariables', lambda motors: SimpleNamespace(
        fit_and_compare=lambda experiment: (known, SimpleNamespace(
            noisy=noisy, first_stage_f=first_stage))))
    found = ESTIMATORS['latent'].fit(EXPERIMENT)
    assert asked == [(begun.state, group, 0) for group in (
        [0, 1], [2, 3], [4], [5], [6], [7], [8], [9])]
    return found


def spread_of(size: float) -> FloatArray:
    """Return changes (8, b) by groups of stretches."""
    return np.random.default_rng(5).normal(0.0, size, (8, len(NAMES)))


STD = np.full(len(NAMES), 0.02)
AGREE = (np.zeros(len(NAMES)), STD, 30.0, False)
MOVED = {'Izz1': 0.01, 'fc1': 0.02}


def test_a_fit_that_is_surely_better_is_kept_with_its_deviations(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    gains = np.linspace(0.1, 0.7, 8)
    found = verdict(monkeypatch, gains, MOVED, spread_of(0.01), AGREE)
    details = found.details
    assert isinstance(details, LatentDetails) and details.kept and details.sure
    assert (details.start, details.stretches, details.rounds) == ('wls', 10, 17)
    assert (details.seconds, details.gain) == (pytest.approx(0.75), pytest.approx(0.4))
    assert details.position_noise.tolist() == [1e-4, 2e-4, 3e-4]
    assert details.effort_error.tolist() == [0.4, 0.5, 0.6]
    assert details.refusal == '' and details.undetermined == details.contradicted == ()
    change = np.where(np.isin(NAMES, list(MOVED)), [MOVED.get(name, 0.0) for name in NAMES], 0.0)
    np.testing.assert_allclose(found.values, START.values + change)
    expected, degrees = covariance(spread_of(0.01))
    np.testing.assert_allclose(found.covariance, expected)
    assert (found.method, found.degrees_of_freedom, found.rank) == ('latent', degrees, len(NAMES))
    assert found.not_excited == () and found.warnings == ()
    total = np.sum([one.normal for one in condensed()], axis=0)
    size = np.sqrt(np.diag(total))
    assert found.condition_raw == pytest.approx(np.sqrt(np.linalg.cond(total)), rel=1e-4)
    assert found.condition == pytest.approx(np.sqrt(np.linalg.cond(
        total / np.outer(size, size))), rel=1e-4)


def test_a_parameter_without_equations_is_not_excited(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(monkeypatch, [0.5] * 8, MOVED, spread_of(0.01), AGREE, NAMES.index('my3'))
    assert found.not_excited == ('my3',) and found.rank == len(NAMES) - 1


def test_a_fit_that_is_not_surely_better_leaves_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(monkeypatch, [0.5, -0.4] * 4, MOVED, spread_of(0.01), AGREE)
    assert np.array_equal(found.values, START.values) and found.method == 'latent'
    assert not found.details.kept and not found.details.sure
    assert found.warnings == (
        'the misfit on stretches left out is not surely lower with the method latent than with '
        'wls: the parameters of the method wls are kept',)


@pytest.mark.parametrize(('change', 'more', 'named'), [
    ({'Izz1': 1.03}, {}, ('Izz1',)), ({'Izz1': -1.03}, {}, ('Izz1',)), ({'Izz1': 0.97}, {}, ()),
    ({'Izz1': 1.1, 'mx2': -1.4}, {}, ('mx2', 'Izz1')), ({'fc1': 9.0}, {}, ()),
    ({'Izz1': 1.4}, {'first': 9.9}, ()), ({'Izz1': 1.4}, {'first': 10.1}, ('Izz1',)),
    ({'Izz1': 1.4}, {'noisy': True}, ()), ({'Izz1': 1.4}, {'spread': 0.5}, ()),
    ({'Izz1': 1.4}, {'start': 1.45}, ()), ({'Izz1': 1.4}, {'start': 0.6}, ('Izz1',))])
def test_a_fit_is_contradicted_beyond_the_chance_of_instruments(
    change: dict[str, float], more: dict[str, Any], named: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In terms of Student's quantile for all links; the start may be further off."""
    judged = sum(name[0] != 'f' for name in NAMES)
    bound = student_quantile(1.0 - 0.5 * latent.BIASED / judged, START.degrees_of_freedom)
    spread = spread_of(1.0)
    spread = (spread - spread.mean(axis=0)) / np.sqrt(np.diag(covariance(spread)[0])) \
        * 0.02 * more.get('spread', 1.2)
    apart = np.zeros(len(NAMES))
    apart[NAMES.index('mx1')] = -bound * 0.02 * more.get('start', 0.0)
    moved = {name: bound * 0.02 * size for name, size in change.items()}
    if 'start' in more:
        moved['mx1'] = apart[NAMES.index('mx1')]
    found = verdict(monkeypatch, [0.5] * 8, moved, spread,
                    (apart, STD, more.get('first', 30.0), more.get('noisy', False)))
    details = found.details
    assert tuple(one.name for one in details.contradicted) == named
    assert details.sure and details.kept is not bool(named)
    for one in details.contradicted:
        assert (one.bias, one.std) == pytest.approx((moved[one.name], 0.02))


@pytest.mark.parametrize('gain', [0.5, -0.5])
def test_laws_are_those_of_a_fit_that_is_kept(gain: float, monkeypatch: pytest.MonkeyPatch
                                              ) -> None:
    """Where others are chosen, and where nothing runs away."""
    verdict(monkeypatch, [gain] * 8, MOVED, spread_of(0.01), AGREE)
    experiment = replace(EXPERIMENT, as_recorded=AsRecorded(NOTHING, print))
    chosen, other = ([('coulomb', law_from('coulomb', {'width': width}))] * 3
                     for width in (0.05, 0.02))
    better: list[Any] = [tuple(other), tuple(chosen)]
    monkeypatch.setattr(latent, 'better_laws', lambda fit, own, without, progress: better[
        0] if own is chosen and without == [(), (), ()] and progress is print else None)
    laws = ESTIMATORS['latent'].laws
    found = laws(experiment, chosen, [(), (), ()])
    assert list(found) == (other if gain > 0.0 else chosen)
    better.pop(0)
    monkeypatch.setattr(latent, 'with_laws', lambda *_: pytest.fail('nothing to compare'))
    assert laws(experiment, chosen, [(), (), ()]) is chosen

    def run_away(*_: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(Fitted, 'of', run_away)
    assert laws(experiment, chosen, [(), (), ()]) is chosen


def test_misfits_are_of_groups_with_parameters_of_all_others() -> None:
    """Whose motion has five rounds to follow."""
    states = [LatentState((), np.array([k, 2.0 * k]), np.zeros(0), np.ones(1), 0.1)
              for k in range(9)]
    asked: list[Any] = []

    def without(state: LatentState, group: Sequence[int]) -> LatentState:
        assert state is states[8]
        asked.append(list(group))
        return states[len(asked) - 1]

    def misfit(state: LatentState, group: Sequence[int], rounds: int) -> float:
        assert state is states[len(asked) - 1] and asked[-1] == list(group) and rounds == 5
        return 0.5 * len(asked)

    problem: Any = SimpleNamespace(without=without, misfit=misfit)
    misfits, values = misfits_of(problem, LatentFit(states[8], condensed(), 1, ()))
    assert asked == [[0, 1], [2, 3], [4], [5], [6], [7], [8], [9]]
    np.testing.assert_array_equal(misfits, 0.5 * np.arange(1.0, 9.0))
    np.testing.assert_array_equal(values, [[k, 2.0 * k] for k in range(8)])
    for bad in (np.nan, np.inf):
        with pytest.raises(np.linalg.LinAlgError):
            finite(np.array([1.0, bad]))


def test_a_fit_begins_with_the_motion_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """All parameters are sought then; one that is not finite has run away."""
    cut = Cut((NOTHING,), np.ones(3))
    monkeypatch.setattr(latent, 'stretches_of', lambda recorded: cut)
    monkeypatch.setattr(Cut, 'slowest', lambda self, axes: 2.0 * np.diag(axes))
    state = LatentState((), START.values, np.zeros(0), np.ones(3), 0.1)
    monkeypatch.setattr(LatentProblem, 'guess', lambda self, values: replace(
        state, values=values, speed=0.7))
    runs: list[Any] = []

    def fit(self: LatentProblem, state: LatentState, progress: Any = None) -> LatentFit:
        runs.append((int(self.chosen.sum()), state.values, state.speed, progress))
        assert self.slowest.tolist() == [2.0, 2.0, 2.0]
        return LatentFit(replace(state, values=ends[len(runs) - 1], speed=0.6), (), 1, ())

    monkeypatch.setattr(LatentProblem, 'fit', fit)
    recorded = AsRecorded(NOTHING, print)
    experiment = replace(EXPERIMENT, as_recorded=recorded)
    ends = [START.values, 1.1 * START.values]
    found = Fitted.of(experiment)
    np.testing.assert_allclose(found.start.values, START.values)
    assert found.cut is cut and found.fit.state.values is ends[1]
    assert [(run[0], run[2], run[3]) for run in runs] == [(0, 0.7, None), (
        len(NAMES), 0.6, print)]
    runs.clear()
    ends[1] = np.where(np.arange(len(NAMES)) == 4, np.inf, 1.0)
    with pytest.raises(np.linalg.LinAlgError):
        Fitted.of(experiment, START)
    with pytest.raises(DataError, match='samples that passed a filter do not do'):
        Fitted.of(EXPERIMENT)


def test_the_method_latent_alone_estimates_the_motion() -> None:
    assert [name for name, one in ESTIMATORS.items() if one.estimates_motion] == ['latent']
