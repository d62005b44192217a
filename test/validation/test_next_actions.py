"""validation/next_actions.py, validation/evidence.py: each remedy where its cause is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.document import Action
from robot_dynid.estimation.estimate import Status
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice, LawScore
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import DeflectionRecord
from robot_dynid.identified.suitability import (
    CONTACT,
    FEED_FORWARD,
    GRAVITY,
    JointVerdict,
    UseVerdict,
)
from robot_dynid.identified.trained import Trained
from robot_dynid.robot.model import Drive
from robot_dynid.signals.alignment import Lag
from robot_dynid.validation.evidence import Evidence, Names, static_columns
from robot_dynid.validation.next_actions import next_actions
from robot_dynid.validation.residual_parts import ResidualParts
from robot_dynid.validation.validate import Trace, Validation, joint_score

EFFORT = np.where(np.arange(40) % 2, 2.0, -2.0)
NAMES = Names('arm.yaml', 'm.yaml')
NOMINAL = nominal_model('planar_3r')
RECORD = replace(NOMINAL.record, recordings=('x.csv', 'y.csv'))
DRIVE = Drive('torque', gear_ratios=np.ones(3))
MODEL = replace(NOMINAL, not_identified=(), warnings=(), record=RECORD,
                robot=replace(NOMINAL.robot, drive=DRIVE))


def scored(*errors: float) -> dict[str, Any]:
    return {joint: joint_score(EFFORT, (1.0 - error) * EFFORT)
            for joint, error in zip(MODEL.joints, errors)}


def validated(source: str = 'new.csv', **more: Any) -> Validation:
    one = Trace(source, np.arange(4.0), *3 * (np.zeros((4, 3)),), np.ones(4), None, **more)
    scores = {'all': scored(0.1, 0.1, 0.1), 'motion': scored(0.1, 0.1, 0.1),
              'near reversals': scored(0.1, 0.1, 0.1)}
    return Validation(scores, {}, (one,), ())


def told(model: Any = MODEL, validation: Validation | None = None) -> tuple[Action, ...]:
    return next_actions(Evidence(model, validation or validated(), NAMES), ())


def recorded(**fields: Any) -> Any:
    return replace(MODEL, record=replace(RECORD, **fields))


def driven(**fields: Any) -> Any:
    return replace(MODEL, robot=replace(MODEL.robot, drive=replace(DRIVE, **fields)))


def infinite(count: int) -> Any:
    return replace(MODEL, std=np.where(np.arange(len(MODEL.std)) < count, np.inf, MODEL.std))


def moved(range_: float, speed: float) -> Any:
    """Return the model of a motion over this share of the range and of the speed of joint 2."""
    limits = replace(MODEL.robot.limits, lower=-np.ones(3), upper=np.ones(3), velocity=np.ones(3))
    trained = {'position': np.array([[-1.0, 1.0], [0.0, 2.0 * range_], [-1.0, 1.0]]),
               'velocity': np.array([[-1.0, 1.0], [-speed, 0.0], [0.0, 1.0]])}
    return replace(MODEL, robot=replace(MODEL.robot, limits=limits), trained=Trained(trained))


LATE = Lag(0.0021, 1e-4)
CAUSES: dict[str, tuple[Any, Any, str]] = {  # with the fault, without it, words
    'gains': (driven(kind='current', gains=np.ones(3)),
              driven(kind='current', gains=np.array([1.0, 1.0, 2.0])),
              'all drive_gains are 1.0, so results labelled N m are in A'),
    'refused': (replace(MODEL, not_identified=('joint_2',)), MODEL, 'joint_2'),
    'unsettled': (replace(MODEL, status=Status.NOT_SETTLED.value), MODEL,
                  Status.NOT_SETTLED.value),
    'unsolved': (replace(MODEL, status=f'x; {Status.NOT_SOLVED.value}'), MODEL,
                 Status.NOT_SOLVED.value),
    'one': (recorded(recordings=('x.csv',)), recorded(recordings=('x.csv', 'z.csv')),
            'one recording does not show how friction changes'),
    'open': (infinite(1), MODEL, f'{MODEL.names[0]} is not excited'),
    'still range': (moved(0.19, 0.5), moved(0.21, 0.21), 'joint_2 moves little'),
    'still speed': (moved(0.5, 0.19), moved(0.21, 0.21), 'joint_2 moves little'),
    'spread': (recorded(friction_spread={'dry': 0.101, 'viscous': 0.05}),
               recorded(friction_spread={'dry': 0.099}),
               'friction differs between recordings (dry friction by 10.1 %)'),
    'late': (replace(recorded(effort_lag=LATE), preprocessing=replace(
        MODEL.preprocessing, effort_lag=0.0)), replace(recorded(
            effort_lag=Lag(0.0019, 1e-4)), preprocessing=replace(
                MODEL.preprocessing, effort_lag=0.0)), 'stamp both at the time'),
    'late, removed': (replace(recorded(effort_lag=LATE), preprocessing=replace(
        MODEL.preprocessing, effort_lag=0.0)), recorded(effort_lag=LATE), 'stamp both'),
    'late, unsure': (replace(recorded(effort_lag=LATE), preprocessing=replace(
        MODEL.preprocessing, effort_lag=0.0)), replace(recorded(
            effort_lag=Lag(0.0021, 8e-4)), preprocessing=replace(
                MODEL.preprocessing, effort_lag=0.0)), 'stamp both'),
    'ratios': (driven(gear_ratios=None), driven(gear_ratios=None, sensor='link'),
               'the gear ratios are not stated'),
}


def test_a_good_model_on_another_recording_needs_nothing() -> None:
    assert told() == ()
    (action,) = told(validation=validated('x.csv'))
    assert action.words.startswith('the model was scored on its own training recordings')
    assert action.command == ('robot-dynid design arm.yaml --type fourier --seed 2 '
                              '--out unseen.yaml')


@pytest.mark.parametrize('cause', CAUSES)
def test_each_cause_has_its_remedy(cause: str) -> None:
    fault, right, words = CAUSES[cause]
    (action,) = told(fault)
    assert words in action.words
    assert not any(words in one.words for one in told(right))


def test_parameters_that_are_not_excited_are_listed() -> None:
    (action,) = told(infinite(3))
    assert ' are not excited: ' in action.words and action.command.endswith('excitation.yaml')


@pytest.mark.parametrize(('share', 'error', 'named'), [
    (0.71, 0.011, True), (0.69, 0.011, False), (0.71, 0.009, False)])
def test_joints_that_share_a_motor_are_named(share: float, error: float, named: bool) -> None:
    caused = np.zeros((3, 3))
    caused[2, 0], caused[0, 2] = share, 0.5
    parts = ResidualParts(np.zeros(3), caused, 100)
    validation = validated(parts=parts)
    validation = replace(validation, model={**validation.model, 'all': scored(0.1, 0.1, error)})
    actions = told(validation=validation)
    assert len(actions) == named
    if named:
        assert actions[0].words.startswith('joint_1 and joint_3 share a motor (friction of one '
                                           'explains 71.0 % of the error of the other)')
        coupled = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
        assert told(driven(coupling=coupled), validation) == ()
        other = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
        assert len(told(driven(coupling=other), validation)) == 1


@pytest.mark.parametrize(('near', 'named'), [(0.151, True), (0.149, False)])
def test_a_law_that_fails_near_reversals_is_to_be_chosen(near: float, named: bool) -> None:
    validation = validated()
    validation = replace(validation, model={
        **validation.model, 'near reversals': scored(0.1, near, 0.1)})
    actions = told(validation=validation)
    assert len(actions) == named
    if named:
        assert 'near reversals the error of joint_2 is 1.5 times' in actions[0].words
        assert actions[0].command == ('robot-dynid identify x.csv y.csv --robot arm.yaml '
                                      '--out m.yaml')


def test_commands_keep_what_the_fit_was_given_and_change_its_method() -> None:
    command = ('robot-dynid', 'identify', 'a b.csv', '--method', 'ols', '--robot=my.yaml',
               '--method=iv', '--out', 'm.yaml')
    model = recorded(command=command)
    names = Names.of(model, 'm.yaml')
    assert names.robot == 'my.yaml' and Names.of(model, robot='other').robot == 'other'
    assert Names.of(recorded(command=(*command[:5], '--robot', 'x'))).robot == 'x'
    assert Names.of(MODEL).robot == 'planar_3r'
    unknown = replace(MODEL, robot=replace(MODEL.robot, name='mine'))
    assert Names.of(unknown).robot == 'ROBOT.yaml'
    assert names.identify('w', model).command.split(' --', 1)[1].startswith('method ols')
    assert names.identify('w', model, 'feasible').command == (
        "robot-dynid identify 'a b.csv' --robot=my.yaml --out m.yaml --method feasible")
    assert names.identify('w', recorded(recordings=())) == Action('w')
    plain = NAMES.identify('w', replace(MODEL, method='iv'))
    assert plain.command.endswith('--out m.yaml --method iv')


def test_the_share_of_motion_in_which_joints_slide() -> None:
    speed = np.array([[0.021, 0.019, 1.0], [-0.021, 0.0, 1.0], [0.0, 0.0, 1.0], [9.0, 9.0, 9.0]])
    one = validated(velocity=speed).traces[0]
    still = replace(one, moving=np.array([1.0, 0.6, 0.51, 0.5]))
    known = Evidence(MODEL, replace(validated(), traces=(still,)), NAMES).sliding
    np.testing.assert_allclose(known, [2.0 / 3.0, 0.0, 1.0])
    assert Evidence(MODEL, validated(), NAMES).sliding.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(('source', 'words'), [
    ('new.csv', 'Judged on 1 recording not used for the fit.'),
    ('x.csv', 'Judged on 1 recording of the fit.')])
def test_evidence_says_what_it_is_judged_on(source: str, words: str) -> None:
    found = Evidence(MODEL, validated(source), NAMES)
    assert found.words == words and found.unseen is (source == 'new.csv')
    assert found.score_forward == f'robot-dynid validate m.yaml {source} --forward'


@pytest.mark.parametrize(('width', 'gap'), [
    (1.0, 'repeat the motion of the fit'), (1.019, 'repeat'), (1.021, None), (0.51, None),
    (0.49, 'less than half')])
def test_motion_of_the_fit_again_or_a_part_of_it_is_a_gap(width: float, gap: str | None) -> None:
    trained = {name: np.array([[-1.0, 1.0]] * 3) for name in ('position', 'velocity')}
    ends = np.array([[-1.0] * 3, [1.0] * 3]) * width
    values = np.vstack([ends, np.zeros((2, 3))])
    # nothing moves beyond a fifth of no limits
    limits = replace(MODEL.robot.limits, lower=-np.ones(3), upper=np.ones(3), velocity=np.ones(3))
    model = replace(MODEL, trained=Trained(trained), robot=replace(MODEL.robot, limits=limits))
    gaps = Evidence(model, validated(position=values, velocity=values), NAMES).gaps
    assert len(set(gaps)) == 1
    assert (gaps[0] is None) if gap is None else (gap in gaps[0].words)


def weighed(share: float, deviation: float = 1e-9) -> Any:
    """Return a model whose weight is this share of the nominal one, with a certain deviation."""
    count = len(MODEL.values)
    return replace(MODEL, values=share * MODEL.values, control=MODEL.values,
                   std=np.full(count, deviation), correlation_factor=np.eye(count))


@pytest.mark.parametrize(('share', 'named'), [
    (1.16, True), (1.14, False), (0.84, True), (0.86, False)])
def test_weight_that_differs_from_the_description_is_a_load(share: float, named: bool) -> None:
    actions = told(weighed(share))
    assert len(actions) == named
    if named:
        assert 'weight differs from the URDF (joint_1 by 16.0 %, joint_2 by 16.0 %' in \
            actions[0].words
    compensated = weighed(share)
    drive = replace(DRIVE, kind='gravity_compensated_torque')
    assert told(replace(compensated, robot=replace(compensated.robot, drive=drive))) == ()
    refused = replace(weighed(share), not_identified=MODEL.joints)
    assert not any('weight' in one.words for one in told(refused))


def test_a_difference_of_weight_within_three_deviations_is_no_load() -> None:
    columns = static_columns(weighed(1.0), 100)
    off = 0.2 * np.std(columns @ MODEL.values, axis=0)[0]
    limit = off / np.sqrt(np.mean(np.sum(columns**2, axis=2), axis=0))[0] / 3.0
    for share, named in ((0.95, True), (1.05, False)):
        words = ' '.join(one.words for one in told(weighed(1.2, share * limit)))
        assert ('joint_1 by 20.0 %' in words) is named


def test_a_joint_that_should_carry_nothing_and_does_is_named() -> None:
    model = weighed(1.0)
    none = np.array([name in ('mx3', 'my3') for name in MODEL.names])
    found = told(replace(model, control=np.where(none, 0.0, MODEL.values)))
    assert 'joint_3, which carries no weight in the URDF' in found[0].words


def judged(use: str, ok: bool | None, words: str = 'w', shown_by: Any = None) -> Any:
    return JointVerdict('joint_2', (UseVerdict(use, ok, 1.0, 1.0, 'N m', words, shown_by),), 'all')


def test_uses_that_are_not_shown_have_the_motion_that_shows_them_first() -> None:
    def next_of(joints: Any, model: Any = MODEL) -> Any:
        return next_actions(Evidence(model, validated(), NAMES), joints)

    shown = Action('show it', 'robot-dynid x')
    again, other = Action('other words', 'robot-dynid x'), Action('by hand')
    found = next_of([judged(GRAVITY, None, shown_by=one) for one in (shown, again, other)])
    assert found == (shown, other)  # a command once
    (sweeps,) = next_of([judged(FEED_FORWARD, False)])
    assert 'the effort of joint_2: record sweeps' in sweeps.words
    three = recorded(residual=DeflectionRecord(loops='three'))
    (at_once,) = next_of([judged(FEED_FORWARD, False)], three)
    assert 'without loops: three' in at_once.words
    (poses,) = next_of([judged(GRAVITY, False)])
    assert poses == NAMES.static_poses
    for joint in (judged(FEED_FORWARD, True), judged(FEED_FORWARD, None),
                  judged(GRAVITY, False, 'all')):  # the reason is of the joint as a whole
        assert next_of([joint]) == ()
    levels = NoiseLevels(*np.array([[1.0] * 3, [2.0, 2.0, 3.0], [1.0] * 3]))
    for name, hidden in (('holding', True), ('moving', False)):
        held = replace(MODEL, noise_levels=replace(levels, **{
            'holding': np.ones(3), 'moving': np.ones(3), name: np.array([1.0, 2.0, 1.0])}))
        words = [one.words for one in next_of([judged(CONTACT, False)], held)]
        assert words == (['dry friction of joint_2 hides pushes from any model: measure torque or '
                          'position behind the gears where light contact matters']
                         if hidden else [])
    assert next_of([judged(CONTACT, False)]) == ()


@pytest.mark.parametrize(('motions', 'gap'), [
    (None, 'its own training recordings'), (0, 'too short to leave a motion out'),
    (1, 'only one motion'), (2, None)])
def test_recordings_of_the_fit_show_as_much_as_they_leave_out(
    motions: int | None, gap: str | None
) -> None:
    held: Any = None if motions is None else SimpleNamespace(
        motions=motions, promise=np.array([0.5, 0.2, 0.1]))
    for source in ('x.csv', 'new.csv'):
        found = Evidence(MODEL, validated(source), NAMES, held)
        (action,) = set(found.gaps)
        if gap is None or source == 'new.csv':
            assert action is None
        else:
            assert gap in action.words
        # an RMSE of 0.2 in the scores
        np.testing.assert_allclose(found.beyond, 0.0 if held is None else [
            np.sqrt(0.21), 0.0, 0.0], rtol=0.0, atol=1e-6)


def test_the_static_effort_has_the_largest_interval_of_all_poses() -> None:
    model = replace(weighed(1.0, 0.3), record=replace(RECORD, degrees_of_freedom=7.0))
    columns = static_columns(model, 200)
    largest, half = Evidence(model, validated(), NAMES).static
    np.testing.assert_allclose(largest, np.abs(columns @ model.values).max(axis=0), rtol=1e-9)
    student = 2.3646  # of seven degrees of freedom
    np.testing.assert_allclose(half, student * 0.3 * np.sqrt((columns**2).sum(axis=2)).max(axis=0),
                               rtol=1e-4)
    without = Evidence(replace(model, record=RECORD), validated(), NAMES).static[1]
    np.testing.assert_allclose(without, half * 1.95996 / student, rtol=1e-4)
    open_ = replace(model, std=np.where([name == 'mx3' for name in model.names], np.inf, 0.3))
    assert np.isinf(Evidence(open_, validated(), NAMES).static[1]).all()
    dry = replace(model, std=np.where([name == 'fv3' for name in model.names], np.inf, 0.3))
    assert np.isfinite(Evidence(dry, validated(), NAMES).static[1]).all()
    assert np.isnan(Evidence(MODEL, validated(), NAMES).static[1]).all()


@pytest.mark.parametrize(('turns', 'speed', 'still'), [
    (0.21, 0.41, False), (0.19, 0.41, True), (0.21, 0.39, True)])
def test_a_joint_of_many_turns_is_to_move_a_fifth_of_one(
    turns: float, speed: float, still: bool
) -> None:
    limits = replace(MODEL.robot.limits, lower=np.full(3, -50.0), upper=np.full(3, 50.0),
                     velocity=np.array([2.0, np.inf, np.nan]))
    trained = Trained({'position': np.array([[0.0, 2.0 * np.pi * turns]] * 3),
                       'velocity': np.array([[-speed, 0.1], *[[-0.1, 0.1]] * 2])})
    model = replace(MODEL, trained=trained, robot=replace(MODEL.robot, limits=limits))
    found = Evidence(model, validated(), NAMES).still
    assert found == ([] if not still else ['joint_1'] if turns > 0.2 else list(MODEL.joints))
    assert Evidence(MODEL, validated(), NAMES).still == []


def test_efforts_have_the_unit_of_their_joint() -> None:
    slides = replace(MODEL, robot=replace(MODEL.robot, types=np.array([0, 1, 0])))
    found = Evidence(slides, validated(), NAMES)
    assert [found.unit(j) for j in range(3)] == ['N m', 'N', 'N m']


def test_actions_weigh_what_is_chosen_alarms_and_missing_scores() -> None:
    """A law that was chosen among several is not to be chosen again."""
    def near(model: Any = MODEL, motion: bool = True, error: float | None = 0.2) -> list[str]:
        validation = validated()
        scores = dict(validation.model)
        scores['near reversals'] = {} if error is None else scored(error, error, error)
        if not motion:
            del scores['motion']
        return [one.words for one in told(model, replace(validation, model=scores))
                if 'let the data choose' in one.words]

    tried = (LawScore('coulomb', 1.0), LawScore('dahl', 0.9))
    assert len(near()) == 1 and near(error=None) == [] and len(near(motion=False)) == 1
    assert near(motion=False, error=None) == []
    for count, named in ((1, True), (2, False)):
        choice = AxisChoice('1', 'coulomb', tried=tried[:count])
        assert bool(near(recorded(friction=(choice,)))) is named
    for alarms, source, named in ((1.0, 'new.csv', True), (0.0, 'new.csv', False),
                                  (1.0, 'x.csv', False)):
        contact: Any = SimpleNamespace(alarms=np.array([0.0, 0.0, alarms]))
        words = [one.words for one in told(validation=replace(
            validated(source), contact=contact))]
        assert any('reports contacts where nothing touches' in one for one in words) is named


def test_a_load_weighs_more_than_a_share_of_the_largest_weight() -> None:
    """A joint with hardly any weight must change by 3 % of that of the heaviest."""
    columns = static_columns(weighed(1.0), 100)
    sizes = np.std(columns @ MODEL.values, axis=0)
    last = np.array([name.endswith('3') and name[0] == 'm' for name in MODEL.names])
    only = np.std(columns @ np.where(last, MODEL.values, 0.0), axis=0)[2]
    for share, named in ((0.031, True), (0.029, False)):
        change = share * sizes.max() / only
        model = replace(weighed(1.0), control=np.where(last, 1e-6, 1.0) * MODEL.values,
                        values=np.where(last, change, 1.0) * MODEL.values)
        words = ' '.join(one.words for one in told(model))
        assert ('joint_3, which carries no weight in the URDF' in words) is named


def test_findings_that_contradict_the_robot_are_evidence() -> None:
    """Of the fit and of the scores, each once; others are none."""
    one, two = 'a.csv: gravity: looks; set it', 'b.csv: effort_scale of joint_1: looks; divide'
    other = 'c.csv: duplicate: twice; omit it'
    validation = replace(validated(), warnings=(two, one, 'anything'))
    found = Evidence(replace(MODEL, warnings=(one, other)), validation, NAMES).findings
    assert [(f.kind, f.recording, f.joints) for f in found] == [
        ('gravity', 'a.csv', ()), ('effort_scale', 'b.csv', ('joint_1',))]


def test_errors_beyond_the_scores_are_root_differences_of_squares() -> None:
    held: Any = SimpleNamespace(motions=2, promise=np.array([0.5, 0.29, 0.1]))
    found = Evidence(MODEL, validated(), NAMES, held).beyond
    np.testing.assert_allclose(found, [np.sqrt(0.25 - 0.04), np.sqrt(0.0841 - 0.04), 0.0])


@pytest.mark.parametrize(('share', 'covered'), [(0.51, True), (0.49, False)])
@pytest.mark.parametrize('joint', [0, 2])
def test_each_joint_is_tested_over_half_of_its_own_range(
    share: float, covered: bool, joint: int
) -> None:
    trained = {name: np.array([[-1.0, 3.0], [-2.0, 0.0], [0.0, 8.0]])
               for name in ('position', 'velocity')}
    values = np.vstack([trained['position'].T, np.ones((2, 3))])
    values[:, joint] *= share
    limits = replace(MODEL.robot.limits, lower=-np.ones(3), upper=np.ones(3),
                     velocity=np.array([np.inf, 1.0, np.nan]))
    model = replace(MODEL, trained=Trained(trained), robot=replace(MODEL.robot, limits=limits))
    evidence = Evidence(model, validated(position=values, velocity=1.1 * values), NAMES)
    assert evidence.still == []
    assert [gap is None for gap in evidence.gaps] == [covered or j != joint for j in range(3)]
