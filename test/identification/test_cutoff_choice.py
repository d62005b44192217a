"""identification/selection.py: the cut-off of short and noisy recordings, and how far their
samples are thinned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import recording

from robot_dynid.errors import ModelError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.friction_selection.law_request import LawRequest
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice, LawScore
from robot_dynid.friction import ADDITIONS, LAWS, law_from
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import (
    AMPLE_SAMPLES,
    PASSBAND_GAIN,
    SAMPLES_PER_PARAMETER,
    Choice,
    Excerpt,
    best_cutoff,
    choose,
    choose_laws_by_estimator,
    choose_passbands,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import OVERSAMPLING, Preprocessing, repair
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
COULOMB = Structure.uniform(ROBOT, False, 'coulomb', {'width': 0.05}).torque_model(ROBOT)
SCARCE = 0.5 * AMPLE_SAMPLES
FOLDS = np.array([0.3, -0.1, 0.1, 0.0, -0.2])
#: of which the standard error is 0.035
SCATTER = 0.1 * np.array([1.0, -1.0, 0.5, -0.5, 0.0])


class Lower(Excerpt):
    """Recordings for which every lower cut-off has a better score, in all folds."""

    def log_errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the cut-off."""
        return np.full((5, model.robot.rows), next(iter(samples)).cutoff)


def test_a_lower_cutoff_wins_only_beyond_a_standard_error():
    lower, higher = (SCARCE, FOLDS), FOLDS + SCATTER
    assert best_cutoff({3.0: lower, 4.5: (SCARCE, higher + 0.03)}) == 4.5
    assert best_cutoff({3.0: lower, 4.5: (SCARCE, higher + 0.04)}) == 3.0
    assert best_cutoff({3.0: lower, 4.5: (SCARCE, FOLDS + 0.01)}) == 3.0, 'all folds agree'
    assert best_cutoff({3.0: (SCARCE, higher + 0.03), 4.5: (SCARCE, FOLDS)}) == 4.5
    ample = 2.0 * AMPLE_SAMPLES, FOLDS
    assert best_cutoff({3.0: ample, 4.5: (ample[0], higher + 0.03)}) == 3.0, 'by its score'


def test_scores_of_other_folds_have_no_standard_error():
    for lower, higher in ((FOLDS[:1], FOLDS[:1]), (FOLDS, FOLDS[:4] + 0.1),
                          (np.array([np.inf]), np.array([np.inf]))):
        assert best_cutoff({3.0: (SCARCE, lower), 4.5: (SCARCE, higher)}) == 3.0


def test_a_cutoff_that_leaves_too_few_samples_is_the_last_resort():
    few = 0.5 * SAMPLES_PER_PARAMETER
    assert best_cutoff({3.0: (few, FOLDS), 4.5: (1.5 * few, FOLDS + 1.0),
                        6.5: (2.0 * few, FOLDS + 0.5), 10.0: (3.0 * few, FOLDS + 1.0)}) == 6.5
    assert best_cutoff({3.0: (0.5 * few, FOLDS), 4.5: (few, FOLDS + 1.0)}) == 4.5


def test_a_short_recording_keeps_samples_for_its_parameters():
    """Six seconds: the score prefers 2 Hz, which leave four samples for each of 17 parameters."""
    log = recording(ROBOT, 1, 6.0)
    choice = choose(ROBOT, [repair(ROBOT, log)], Recipe(
        friction='coulomb', ramp_width=0.05, effort_lag=0.0), lambda *_: None, kind=Lower)
    (two, _), (three, _) = choice.cutoffs[:2]
    assert [two, three] == [2.0, 3.0]
    needed = SAMPLES_PER_PARAMETER * len(COULOMB.reduction.pivots) / OVERSAMPLING
    assert two * (6.0 - 4.0 / two) < needed < three * (6.0 - 4.0 / three)
    assert choice.preprocessing == Preprocessing(three)


def test_samples_are_thinned_as_far_as_the_fit_allows():
    short, long = (Excerpt(ROBOT, [repair(ROBOT, recording(ROBOT, 1, seconds))])
                   for seconds in (4.0, 40.0))
    for settings in (Preprocessing(2.0), Preprocessing(2.0, decimate=False)):
        assert long.prepare_enough(COULOMB, settings)[0] == settings
    assert sum(map(len, long.prepare_enough(COULOMB, Preprocessing(2.0))[1])) < 1000
    settings, samples = short.prepare_enough(COULOMB, Preprocessing(2.0))
    assert settings == Preprocessing(2.0, decimate=False)
    assert sum(map(len, samples)) == 400


def test_a_short_recording_is_fitted_with_a_low_cutoff():
    """Four seconds thinned to 2 Hz leave 34 samples, for 38 candidates of parameters."""
    result = identify(ROBOT, [recording(ROBOT, 1, 4.0)], recipe=Recipe(
        cutoff=2.0, effort_lag=0.0, ripple='none', adaptation='none'))
    assert result.model.record.samples == 400


#: squared errors of five folds of two joints
SQUARES = np.array([[1.0, 4.0], [1.2, 4.4], [0.9, 4.2], [1.1, 3.9], [1.0, 4.1]])


def lower(share: float) -> FloatArray:
    """Return squared errors of which those of the second joint are lower by a share (RMS)."""
    return SQUARES * [1.0, (1.0 - share)**2]


def test_a_joint_is_predicted_with_a_higher_cutoff_that_lowers_its_error():
    more, less = PASSBAND_GAIN + 0.01, PASSBAND_GAIN - 0.01

    def chosen(errors: dict[float, FloatArray]) -> tuple[float, ...]:
        return choose_passbands({10.0: SQUARES, **errors}, 10.0)

    assert chosen({22.0: lower(more), 33.0: lower(0.2)}) == (10.0, 33.0)
    assert chosen({22.0: lower(0.2), 33.0: lower(more)}) == (10.0, 22.0)
    assert chosen({22.0: lower(less)}) == ()
    assert chosen({4.5: lower(0.5)}) == (), 'a lower one does not count'
    one_fold = SQUARES * np.array([1.0, 1.0, 1.0, 1.0, 0.3])[:, None]
    assert chosen({22.0: one_fold}) == (), 'a single fold is chance'
    assert chosen({22.0: lower(0.5)[:4]}) == (), 'other folds'


#: rotor [kg m^2] of the last joint, its vibration [rad, Hz], noise of the other encoders [rad]
ROTOR, VIBRATION, VIBRATION_RATE, COARSE = 2.0, 2e-4, 20.0, 3e-4


def vibrating(seed: int) -> RawLog:
    """Return a recording of an arm whose last joint vibrates, and whose other encoders are coarse.
"""
    rng = np.random.default_rng(seed)
    time = np.arange(5000) / 500.0
    motion = np.zeros((3, len(time), 3))
    for k in range(1, 6):
        w = 0.2 * k * 2.0 * np.pi
        angle, size = w * time[:, None] + rng.uniform(0.0, 6.0, 3), rng.uniform(0.2, 0.5, 3) / k
        motion += size * np.stack([np.sin(angle), w * np.cos(angle), -w**2 * np.sin(angle)])
    w = VIBRATION_RATE * 2.0 * np.pi
    sine, cosine = np.sin(w * time), np.cos(w * time)
    motion[:, :, 2] += VIBRATION * np.stack([sine, w * cosine, -w**2 * sine])
    torque = replace(nominal_model('planar_3r'), not_identified=()).inverse(*motion)
    torque[:, 2] += ROTOR * motion[2, :, 2]
    position = motion[0] + [COARSE, COARSE, 0.0] * rng.standard_normal(torque.shape)
    return RawLog(f'seed {seed}', ROBOT.joints, time, position, None,
                  torque + 0.05 * rng.standard_normal(torque.shape))


@pytest.mark.always
def test_a_vibrating_wrist_is_predicted_with_a_higher_cutoff_than_the_arm():
    model = identify(ROBOT, [vibrating(1)], recipe=Recipe(
        friction='coulomb', ramp_width=0.05, effort_lag=0.0, rotor_inertia=True, ripple='none',
        adaptation='none')).model
    common, own = model.preprocessing.cutoff, model.record.passbands
    assert own[:2] == (common, common) and own[2] >= VIBRATION_RATE > common
    plain = replace(model, record=replace(model.record, passbands=()))
    error, without = (np.array([one.rmse for one in validate(m, [vibrating(2)]).model[
        'all'].values()]) for m in (model, plain))
    assert error[2] < 0.5 * without[2]
    assert error[:2] == pytest.approx(without[:2], rel=1e-12)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.record.passbands == own
    short = replace(model, record=replace(model.record, passbands=own[:2]))
    with pytest.raises(ModelError, match=r'record\.passbands'):
        IdentifiedModel.from_yaml(short.to_yaml())


def replaced(
    choice: Choice, requests: Sequence[LawRequest], *laws: str
) -> tuple[Choice, list[Any]]:
    """Return the choice with what an estimator makes of its laws, and what it must leave out."""
    asked: list[Any] = []

    def other(experiment: object, *chosen: Sequence[Any]) -> list[Any]:
        asked.extend(map(list, chosen))
        return [(name, law_from(name)) for name in laws]

    estimator: Any = SimpleNamespace(laws=other)
    experiment: Any = None
    found = choose_laws_by_estimator(estimator, experiment, choice, requests)
    assert [name for name, _ in asked[0]] == list(choice.structure.friction)
    return found, asked[1]


def test_an_estimator_replaces_the_laws_that_it_may() -> None:
    robot = load_robot('planar_3r')
    load = [tuple(row) for row in robot.nominal.tolist()]
    structure = replace(Structure.uniform(robot, True, 'coulomb+load', {}), load=load)
    tried = (LawScore('coulomb+load', 0.8), LawScore('maxwell', 0.9))
    friction = (AxisChoice('1', 'coulomb+load', tried=tried),
                AxisChoice('2', 'coulomb+load', 'too little'),
                AxisChoice('3', 'coulomb+load', tried=tried))
    choice = Choice(Preprocessing(10.0), structure, friction=friction)
    auto = LawRequest.of('auto without dahl')
    every = (*LAWS, *ADDITIONS)
    requests = [auto, auto, LawRequest.of('coulomb')]
    found, without = replaced(choice, requests, 'stribeck', 'coulomb+load', 'coulomb+load')
    assert without == [('dahl',), every, every]
    assert found.structure.friction == ('stribeck', 'coulomb+load', 'coulomb+load')
    assert found.structure.load is not None
    np.testing.assert_array_equal(found.structure.load, load)
    assert found.friction == (
        AxisChoice('1', 'stribeck', tried=(*tried, LawScore('stribeck', 0.8))), *friction[1:])
    assert replaced(choice, requests, *['coulomb+load'] * 3)[0] is choice
    bare = Choice(Preprocessing(10.0), Structure.uniform(robot, True, 'coulomb', {}))
    assert replaced(bare, [auto] * 3, *['coulomb'] * 3) == (bare, [every] * 3)
