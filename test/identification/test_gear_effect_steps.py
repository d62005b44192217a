"""identification/gear_effects.py: the order of the search, and deviations in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import closed_form_gear
import numpy as np
import pytest

from robot_dynid.effects import GearEffects
from robot_dynid.errors import DataError
from robot_dynid.identification import gear_effects as module
from robot_dynid.identification.gear_effects import (
    allow_for_low_pass,
    allow_for_other_hysteresis,
    gear_effects,
    omitted_effects,
)
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Samples

ROBOT = closed_form_gear.arm()
STRUCTURE = Structure.uniform(ROBOT, True, 'coulomb', {})


def bent(*ranges: float) -> list[Samples]:
    """Return recordings in which the gear of joint 2 deflects over these ranges [rad]."""
    still = np.zeros((3, 3))
    return [Samples(ROBOT.joints, np.arange(3.0), np.array([
        [5.0, 2.0, 2.0 - 0.25 * one], [0.0, 1.0, 1.0 + 0.75 * one], [1.0, 0.0, 0.0]]),
        still, still) for one in ranges]


@dataclass
class Search:
    """Stands for the search: what it is given is noted, and answered from the class."""

    effects: Any
    tried: Any

    given: Any = None
    waves: Any = None
    errors: Any = None
    kept: Any = None

    def unbent(self) -> list[float]:
        return [0.25]

    def select_waves(self) -> Any:
        return tuple(replace(one, error=error) if error and one.waves else GearEffects()
                     for one, error in zip(self.effects, Search.waves, strict=True))

    def select_stops(self) -> Any:
        (one,) = self.effects
        kept = Search.kept[one.states]
        return Search.errors[one.states], (replace(one, lengths=one.lengths[:kept]),)


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that searches with answers: waves, errors and lengths of both kinds."""
    def make(waves: Any, errors: tuple[float, float], kept: tuple[int, int],
             ranges: tuple[float, ...], robot: RobotModel = ROBOT, previous: Any = ()) -> Any:
        given: list[Any] = []

        def of(robot: Any, structure: Any, samples: Any, effects: Any, tried: Any) -> Search:
            given.append((tuple(effects), tuple(tried)))
            return Search(tuple(effects), tuple(tried))

        Search.waves = (waves,)
        Search.errors = {kind: np.array([one]) for kind, one in zip(
            ('maxwell', 'dahl'), errors, strict=True)}
        Search.kept = dict(zip(('maxwell', 'dahl'), kept, strict=True))
        monkeypatch.setattr(module, 'Search', SimpleNamespace(of=of))
        fit = SimpleNamespace(names=('Ks2', 'x', 'Kc2', 'K2'), values=np.array(
            [0.5, 7.0, -0.25, 5e3]))
        monkeypatch.setattr(module, 'GeneralisedLeastSquares', lambda: SimpleNamespace(
            fit=lambda experiment: fit))
        monkeypatch.setattr(module, 'Experiment', SimpleNamespace(of=lambda model, samples: model))
        found = gear_effects(robot, STRUCTURE, bent(*ranges), previous)
        return found, given

    return make


WAVES = ('Ks', 'Kc', 'Ds', 'Dc')
FOUND, REFITTED = (3e-5, 4e-5), (1e-4, -5e-5)


@pytest.mark.parametrize(('ranges', 'lengths'), [
    ((7.9e-5,), ()), ((8.1e-5, 1e-5), (2e-5,)), ((1e-5, 2.39e-4), (2e-5,)),
    ((2.41e-4, 1e-4), (2e-5, 6e-5)), ((1e-4, 8.1e-4, 2e-4), (2e-5, 6e-5, 2e-4))])
def test_states_are_tried_that_slip_in_a_recording(search, ranges, lengths) -> None:
    _, given = search(None, (1.0, 2.0), (0, 0), ranges)
    assert [one for (one,), _ in given[2:4]] == [
        GearEffects(lengths=lengths, states=kind) for kind in ('maxwell', 'dahl')]
    letters = tuple(f'h{letter}' for letter in 'abc'[:len(lengths)])
    assert [tried for _, (tried,) in given[2:4]] == [letters, letters]


@pytest.mark.parametrize(('waves', 'errors', 'kept', 'previous', 'searches', 'found'), [
    (None, (1.0, 2.0), (0, 0), (), 4, None),
    (None, (1.0, 2.0), (1, 2), (), 4, GearEffects(None, (2e-5,))),
    (None, (2.0, 1.0), (1, 2), (), 4, GearEffects(None, (2e-5, 6e-5), states='dahl')),
    (FOUND, (1.0, 2.0), (0, 0), (), 4, GearEffects(FOUND, (), 0.25)),
    (FOUND, (1.0, 2.0), (1, 2), (), 7, GearEffects(REFITTED, (2e-5,), 0.25)),
    (FOUND, (2.0, 1.0), (1, 2), (GearEffects((7e-5, 0.0)),), 4,
     GearEffects(REFITTED, (2e-5, 6e-5), 0.25, 'dahl'))])
def test_waves_are_sought_first_and_again_beside_states(
    search, waves, errors, kept, previous, searches, found
) -> None:
    """And fitted once more where states are moved by them."""
    effects, given = search(waves, errors, kept, (3e-4,), previous=previous)
    assert effects == (() if found is None else (found,))
    assert len(given) == searches
    assert given[0] == ((GearEffects(),), ((),))
    begin = previous[0].error if previous else (0.0, 0.0)
    assert given[1] == ((GearEffects(begin, unbent=0.25),), (WAVES,))
    if searches == 7:
        assert given[4] == ((GearEffects(FOUND, (2e-5,), 0.25),), (WAVES,))


def test_no_waves_are_sought_without_a_gear_ratio(search) -> None:
    unknown = replace(ROBOT, drive=replace(ROBOT.drive, gear_ratios=None))
    effects, given = search(FOUND, (1.0, 2.0), (1, 2), (3e-4,), unknown)
    assert given[1] == ((GearEffects(),), ((),))
    assert effects == (GearEffects(None, (2e-5,)),)


def test_effects_that_a_method_omits_are_named_with_their_joints(monkeypatch) -> None:
    robot = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0, 1)))
    one = GearEffects((1e-5, 0.0))
    for found, joints in (((one, GearEffects()), 'joint_1'), ((GearEffects(), one), 'joint_2'),
                          ((one, one), 'joint_1, joint_2'), ((), None)):
        monkeypatch.setattr(module, 'gear_effects', lambda *_, found=found: found)
        assert omitted_effects(robot, STRUCTURE, [], 'latent') == ([] if joints is None else [
            f'{joints}: the method latent omits kinematic error and hysteresis of gears, which '
            'this data shows, and treats them as damping: use method elastic'])


@dataclass(frozen=True)
class Estimate:
    """Stands for an estimate."""

    covariance: FloatArray
    values: FloatArray | None = None
    names: tuple[str, ...] = ()
    standard: Any = None


@pytest.mark.parametrize('least', [0.0, 7.0])
def test_changes_under_other_cutoffs_are_in_the_covariance(monkeypatch, least: float) -> None:
    """Values are cut-off and its square; below ``least`` the recording is too short."""
    def prepared(robot: Any, one: float, settings: Any) -> float:
        if settings.cutoff < least:
            raise DataError('too short')
        return one * settings.cutoff

    monkeypatch.setattr(module, 'prepare', prepared)
    monkeypatch.setattr(module, 'Experiment', SimpleNamespace(
        of=lambda model, samples, weights: np.array(samples) * weights))
    monkeypatch.setattr(module, 'GeneralisedLeastSquares', lambda: SimpleNamespace(
        fit=lambda experiment: SimpleNamespace(values=experiment**2)))
    experiment: Any = SimpleNamespace(
        model=SimpleNamespace(robot=ROBOT), reversal_weights=np.array([1.0, 2.0]))
    estimate: Any = Estimate(np.array([[4.0, 1.0], [1.0, 3.0]]))
    recordings: Any = [1.0, 0.5]
    found = allow_for_low_pass(estimate, experiment, recordings, STRUCTURE, Preprocessing(9.0))
    change = np.array([81.0, 81.0])  # of 9 Hz; 36 of 6 Hz, 182.25 of 13.5 Hz
    lower, higher = change * (4.0 / 9.0 - 1.0), change * (2.25 - 1.0)
    added = np.outer(higher, higher) + (0.0 if least else np.outer(lower, lower))
    np.testing.assert_allclose(found.covariance, estimate.covariance + added / 2.0)


@pytest.mark.parametrize('bounded', [False, True])
def test_other_hysteresis_moves_what_depends_on_stiffness_and_damping(
    monkeypatch, bounded: bool
) -> None:
    """The rest follows them by its regression on them; both are uncertain by the random states."""
    rng = np.random.default_rng(2)
    names = ('m', 'K2', 'fc2', 'D2')
    own, shape, wide = (one @ one.T for one in rng.normal(size=(3, 4, 6)))
    random = SimpleNamespace(change=rng.normal(size=4), covariance=wide, shape=shape)
    monkeypatch.setattr(module, 'random_hysteresis', lambda *given: random)
    monkeypatch.setattr(module, 'prepare', lambda *given: None)
    monkeypatch.setattr(module, 'Experiment', SimpleNamespace(of=lambda *given: None))
    experiment: Any = SimpleNamespace(reversal_weights=None, model=SimpleNamespace(
        robot=ROBOT, gears=closed_form_gear.model_of(ROBOT).torque_model.gears))
    values = rng.normal(size=4)
    estimate: Any = Estimate(own, values, names, values if bounded else None)
    found = allow_for_other_hysteresis(estimate, experiment, [], STRUCTURE, Preprocessing(9.0))
    order = [1, 3, 0, 2]  # stiffness and damping first
    own, shape, wide = (one[np.ix_(order, order)] for one in (own, shape, wide))
    slope = shape[2:, :2] @ np.linalg.inv(shape[:2, :2])
    step = np.concatenate([random.change[order[:2]], slope @ random.change[order[:2]]])
    left = np.hstack([-slope, np.eye(2)]) @ own @ np.hstack([-slope, np.eye(2)]).T
    gears = np.vstack([np.eye(2), slope])
    covariance = gears @ wide[:2, :2] @ gears.T
    covariance[2:, 2:] += left
    if bounded:
        covariance += np.outer(step, step)
    np.testing.assert_allclose(found.covariance[np.ix_(order, order)], covariance, atol=1e-9,
                               rtol=1e-9)
    np.testing.assert_allclose(found.values[order], values[order] + (0.0 if bounded else step))
