"""validation/verdict.py: value, boundary and words of every criterion, from numbers given by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.document import Action, Card
from robot_dynid.identified.physical import INDEFINITE
from robot_dynid.identified.suitability import (
    CONTACT,
    CRITERIA,
    FALSE_ALARMS,
    FEED_FORWARD,
    GRAVITY,
    SIMULATION,
    USES,
    WITHOUT_FRICTION,
    UseVerdict,
    Verdict,
)
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.robot.model import PRISMATIC, REVOLUTE
from robot_dynid.types import FloatArray
from robot_dynid.validation import verdict as verdicts
from robot_dynid.validation.evidence import Evidence, Names
from robot_dynid.validation.verdict import (
    already_good,
    judged,
    refused_recordings,
    relative_errors,
)

NAMES = Names('arm.yaml', 'arm.model.yaml')
DIFFER = NAMES.judging_motion('the error differs too much between motions')
#: numbers of the second joint, a slide; the first, which turns, has others
GIVEN: dict[str, Any] = {
    'largest': 40.0, 'half': 3.0, 'static': 1.0, 'beyond': 2.0, 'holding': 20.0, 'sliding': 0.8,
    'motion': 0.12, 'control': 0.3, 'rmse': 3.0, 'raw': None, 'promise': None,
    'repeatability': None, 'noise': None, 'parts': True, 'gap': None, 'findings': (),
    'kind': 'torque', 'linkage': None, 'refused': (), 'reasons': {}, 'levels': 'levels',
    'warnings': (), 'horizon': None, 'ran': None, 'contact': True, 'alarms': 0.0,
    'seconds': 1800.0, 'push': 50.0, 'effort': 400.0, 'lever': 0.5, 'excess': 0.0, 'stops': 5.0,
    'rate': 0.3, 'recordings': ('a.csv', 'b.csv')}


def pair(first: float, second: float | None) -> FloatArray | None:
    return None if second is None else np.array([first, second])


def scores_of(first: float, second: float | None, rmse: float = 3.0) -> dict[str, Any]:
    """Return the scores of both joints, whose efforts have a root mean square of 20."""
    rows = {'turn': SimpleNamespace(relative_error=first, rmse=20.0 * first)}
    if second is not None:
        rows['slide'] = SimpleNamespace(relative_error=second, rmse=rmse)
    return rows


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Verdict]:
    """Return the function that judges by GIVEN with some numbers changed."""
    monkeypatch.setattr(verdicts, 'next_actions', lambda evidence, joints: ())

    def make(**changes: Any) -> Verdict:
        g = SimpleNamespace(**{**GIVEN, **changes})
        model: Any = SimpleNamespace(
            joints=('turn', 'slide'), not_identified=g.refused, warnings=g.warnings, method='wls',
            robot=SimpleNamespace(n=2, types=(REVOLUTE, PRISMATIC), linkage=g.linkage,
                                  drive=SimpleNamespace(kind=g.kind)),
            noise_levels=g.levels,
            record=SimpleNamespace(recordings=g.recordings, refused=g.reasons))
        contact = SimpleNamespace(
            alarms=pair(7.0, g.alarms), seconds=pair(11.0, g.seconds), push=pair(13.0, g.push),
            effort=pair(17.0, g.effort), lever=pair(0.7, g.lever), excess=pair(0.2, g.excess),
            stops=pair(1.0, g.stops), rate=lambda j: (99.0, g.rate)[j])
        validation: Any = SimpleNamespace(
            model={'all': scores_of(0.05, g.rmse / 20.0, g.rmse),
                   'motion': scores_of(0.06, g.motion)},
            control={'motion': scores_of(0.5, g.control)}, warnings=(),
            traces=(SimpleNamespace(source='new.csv'),),
            parts=SimpleNamespace(static=pair(0.3, g.static)) if g.parts else None,
            repeatability=pair(0.1, g.repeatability), noise=pair(0.2, g.noise),
            contact=contact if g.contact else None,
            rollout=g.ran and g.ran[0], steady=g.ran and g.ran[1])
        held: Any = None if g.raw is None else SimpleNamespace(
            raw=np.array([1.0, g.raw]), promise=np.array([1.2, g.promise]), motions=3)
        forward: Any = None if g.horizon is None else SimpleNamespace(horizons=g.horizon)

        def evidence(*arguments: Any) -> Evidence:
            one = Evidence(*arguments)
            one.__dict__.update(
                static=(np.array([9.0, g.largest]), np.array([0.5, g.half])),
                beyond=np.array([0.1, g.beyond]), holding=np.array([4.0, g.holding]),
                sliding=np.array([0.9, g.sliding]), gaps=(None, g.gap), findings=g.findings)
            return one

        monkeypatch.setattr(verdicts, 'Evidence', evidence)
        return judged(model, validation, held, forward, NAMES)

    return make


def of(verdict: Verdict, use: str, joint: int = 1) -> UseVerdict:
    return verdict.joints[joint].uses[USES.index(use)]


def expected(use: str, ok: bool | None, value: float | None, words: str,
             shown_by: Action | None = None, criterion: Any = None) -> UseVerdict:
    criterion = criterion or CRITERIA[use]
    return UseVerdict(use, ok, None if value is None else pytest.approx(value, rel=1e-12),
                      criterion.threshold, criterion.unit, words, shown_by)


@pytest.mark.parametrize(('changes', 'error', 'ok'), [
    ({}, np.sqrt(9.0 + 2.25 + 9.0 + 4.0), True),
    ({'parts': False}, np.sqrt(9.0 + 9.0 + 4.0), True),
    ({'half': 9.9, 'static': 0.0, 'beyond': 0.0, 'holding': 20.5},
     np.sqrt(98.01 + 4.2025), True),
    ({'half': 10.1, 'static': 0.0, 'beyond': 0.0}, np.sqrt(102.01 + 4.0), None),
    ({'static': 6.6}, np.sqrt(9.0 + 98.01 + 9.0 + 4.0), None),
    ({'static': 6.7}, np.sqrt(9.0 + 101.0025 + 9.0 + 4.0), False),
    ({'holding': 0.041, 'static': 0.02}, np.sqrt(9.0 + 0.0009 + 9.0 + 0.0041**2), False)])
def test_verdict_on_gravity_divides_the_error_by_dry_friction(verdict, changes, error, ok) -> None:
    held = changes.get('holding', 20.0)
    stays = 'stays where it is released' if ok else 'may drift when it is released'
    words = f'static effort up to 40 N with an error of {error:.2g} N; dry friction {held:.3g} ' \
        f'N: the joint {stays}'
    assert of(verdict(**changes), GRAVITY) == expected(
        GRAVITY, ok, error / held, words, NAMES.static_poses if ok is None else None)


@pytest.mark.parametrize(('changes', 'error', 'ok', 'share'), [
    ({'half': 1.9, 'static': 0.1, 'beyond': 0.2}, np.sqrt(3.61 + 0.0225 + 0.09), True, '4.8'),
    ({'half': 1.9, 'static': 0.5, 'beyond': 0.2}, np.sqrt(3.61 + 0.5625 + 0.09), None, '5.2'),
    ({'half': 1.9, 'static': 1.4, 'beyond': 0.2}, np.sqrt(3.61 + 4.41 + 0.09), False, '7.1')])
@pytest.mark.parametrize('friction', [0.0, 0.039])
def test_verdict_on_gravity_divides_by_the_weight_where_no_friction_holds_it(
    verdict, changes, error, ok, share, friction
) -> None:
    error = np.hypot(error, 0.1 * friction)
    found = of(verdict(holding=friction, **changes), GRAVITY)
    assert found == expected(
        GRAVITY, ok, error / 40.0, f'static effort up to 40 N with an error of {error:.2g} N '
        f'({share} %), and the joint has no dry friction to hold it',
        NAMES.static_poses if ok is None else None, WITHOUT_FRICTION)


@pytest.mark.parametrize(('changes', 'ok', 'words', 'shown'), [
    ({'kind': 'gravity_compensated_torque', 'half': np.nan}, None,
     'the efforts do not contain gravity, because the drives compensate it: record efforts before '
     'the compensation', None),
    ({'half': np.nan, 'largest': 0.0}, None, 'the model file has no covariance', Action(
        'the model file lacks what the verdict needs: identify again', 'robot-dynid identify '
        'a.csv b.csv --robot arm.yaml --out arm.model.yaml')),
    ({'half': np.inf, 'largest': 0.0}, None,
     'a parameter of its weight is not excited by the motion', NAMES.static_poses),
    ({'largest': 0.0}, True, 'gravity does not load it', None)])
def test_verdict_on_gravity_says_why_there_is_no_number(
    verdict, changes, ok, words, shown
) -> None:
    found = of(verdict(**changes), GRAVITY)
    assert found == expected(GRAVITY, ok, 0.0 if ok else None, words, shown)


MOVED = '12.0 % of the effort in motion is unpredicted'
NEW = '15.0 % of the effort is unpredicted on held-out motion, up to {} % on a new motion, {} % ' \
    'in all motion'
URDF = '; URDF inertials with fitted friction leave 30.0 %'
NOISE = ', the robot repeats its effort within 4.0 %, and the noise of the effort is {} %'
PERIODS = NAMES.design(
    'noise of the effort hides the error of the model: record many periods and average them '
    '(recipe period: auto)', 'fourier', 'periods.yaml', '--periods', '20')


@pytest.mark.parametrize(('changes', 'ok', 'value', 'words', 'shown'), [
    ({'motion': None}, None, None, 'the recordings show no motion of it',
     NAMES.judging_motion('the recordings show no motion')),
    ({'motion': np.inf}, None, None, 'the recordings show no motion of it',
     NAMES.judging_motion('the recordings show no motion')),
    ({'sliding': 0.488}, None, None, 'static friction holds it in 51.2 % of the motion, and takes '
     'up part of its load',
     NAMES.judging_motion('static friction holds joints in most of the motion')),
    ({'sliding': 0.5}, True, 0.12, MOVED + URDF, None),
    ({'control': None}, True, 0.12, MOVED, None),
    ({'motion': 1.1 * 0.1, 'control': 0.1}, True, 0.11, '11.0 % of the effort in motion is '
     'unpredicted; URDF inertials with fitted friction leave 10.0 %', None),
    ({'control': 0.108}, False, 0.12,
     MOVED + '; URDF inertials with fitted friction leave 10.8 %: use those inertials', None),
    ({'repeatability': 0.8}, True, 0.12, MOVED + URDF, None),
    ({'repeatability': 0.8, 'noise': 14.0}, True, 0.12, MOVED + URDF + NOISE.format('70.0'), None),
    ({'repeatability': 0.8, 'noise': 14.2}, False, None,
     MOVED + URDF + NOISE.format('71.0') + ': its effort is mostly noise', None),
    ({'repeatability': 0.8, 'noise': 14.2, 'rmse': 0.0}, True, 0.12, MOVED + URDF, None),
    ({'motion': 0.2}, True, 0.2, '20.0 % of the effort in motion is unpredicted' + URDF, None),
    ({'motion': 0.201}, False, 0.201, '20.1 % of the effort in motion is unpredicted' + URDF,
     None),
    ({'motion': 0.25, 'repeatability': 0.8, 'noise': 2.98}, False, 0.25,
     '25.0 % of the effort in motion is unpredicted' + URDF + NOISE.format('14.9'), None),
    ({'motion': 0.25, 'repeatability': 0.8, 'noise': 3.02}, None, 0.25,
     '25.0 % of the effort in motion is unpredicted' + URDF + NOISE.format('15.1')
     + ', which hides the error', PERIODS),
    ({'raw': 9.0, 'promise': 3.6}, True, 0.18, NEW.format('18.0', '12.0') + URDF, None),
    ({'raw': 9.0, 'promise': 0.6}, True, 0.15, NEW.format('15.0', '12.0') + URDF, None),
    ({'raw': 1.0, 'promise': 3.6}, True, 0.18,
     NEW.format('18.0', '12.0').replace('15.0', '12.0') + URDF, None),
    ({'raw': 9.0, 'promise': 3.6, 'control': 0.1}, True, 0.18, NEW.format('18.0', '12.0')
     + '; URDF inertials with fitted friction leave 10.0 %', None),
    ({'raw': 9.0, 'promise': 4.2}, None, 0.21, NEW.format('21.0', '12.0') + URDF, DIFFER),
    ({'raw': 9.0, 'promise': 4.2, 'motion': 0.2}, None, 0.21,
     NEW.format('21.0', '20.0').replace('15.0', '20.0') + URDF, DIFFER),
    ({'raw': 9.0, 'promise': 4.2, 'rmse': 0.0}, True, 0.12, MOVED + URDF, None)])
def test_verdict_on_feed_forward_follows_the_share_that_is_unpredicted(
    verdict, changes, ok, value, words, shown
) -> None:
    assert of(verdict(**changes), FEED_FORWARD) == expected(FEED_FORWARD, ok, value, words, shown)


def push_words(push: float = 50.0, tip: float = 100.0, effort: float = 400.0, alarms: str = 'no',
               seconds: str = '1800') -> str:
    return f'a push of {push:g} N at the joint, {tip:g} N at the tip, is detected in 95 % of ' \
        f'the motion; the joint exerts up to {effort:g} N; {alarms} false ' \
        f'alarm{"" if alarms == "1" else "s"} in {seconds} s'


NO_CONTACT = 'the recordings show no motion in which contacts would be detected'
STOPS = NAMES.design(
    'the joints hardly come to rest: record static poses and validate the model on them',
    'static-poses', 'stops.yaml')


@pytest.mark.parametrize(('changes', 'ok', 'value', 'words', 'shown'), [
    ({}, True, 50.0 / 70.0, push_words(), None),
    ({'push': 70.0}, True, 1.0, push_words(70.0, 140.0), None),
    ({'push': 71.0}, False, 71.0 / 70.0, push_words(71.0, 142.0), None),
    ({'push': 71.0, 'excess': 2.0}, None, 71.0 / 70.0, push_words(71.0, 142.0), DIFFER),
    ({'push': 71.0, 'excess': 1.0}, None, 71.0 / 70.0, push_words(71.0, 142.0), DIFFER),
    ({'push': 30.0, 'effort': 40.0}, True, 0.75, push_words(30.0, 60.0, 40.0), None),
    ({'push': 7.0, 'lever': 0.04}, True, 0.5, push_words(7.0, 70.0), None),
    ({'push': 7.0, 'lever': 0.125}, True, 0.4, push_words(7.0, 56.0), None),
    ({'alarms': 1.0}, True, 50.0 / 70.0, push_words(alarms='1'), None),
    ({'stops': 4.0}, None, 50.0 / 70.0, push_words() + '; it came to rest 4 times, and static '
     'friction carries part of the load at rest', STOPS),
    ({'contact': False}, None, None, NO_CONTACT, NAMES.judging_motion(NO_CONTACT)),
    ({'push': np.nan}, None, None, NO_CONTACT, NAMES.judging_motion(NO_CONTACT)),
    ({'contact': False, 'linkage': 'linkage'}, None, None,
     'contact detection does not support coupled joints', None),
    ({'contact': False, 'levels': None}, None, None, 'the model file has no noise levels',
     NAMES.identify('the model file lacks what the verdict needs: identify again',
                    SimpleNamespace(record=SimpleNamespace(recordings=['a.csv', 'b.csv']),
                                    method='wls')))])
def test_verdict_on_contact_follows_the_push_that_is_detected(
    verdict, changes, ok, value, words, shown
) -> None:
    assert of(verdict(**changes), CONTACT) == expected(CONTACT, ok, value, words, shown)


@pytest.mark.parametrize(('alarms', 'limit'), [
    (1.0, -np.log(0.95)), (2.0, 0.35536)])  # mean counts that reach them in 5 %: Poisson
@pytest.mark.parametrize(('share', 'ok'), [(0.999, False), (1.001, True)])
def test_verdict_on_contact_refuses_more_alarms_than_chance_gives(
    verdict, alarms, limit, share, ok
) -> None:
    seconds = 3600.0 * limit * share
    found = of(verdict(alarms=alarms, seconds=seconds), CONTACT)
    words = push_words(alarms=f'{alarms:.0f}', seconds=f'{seconds:.0f}')
    assert found == (
        expected(CONTACT, True, 50.0 / 70.0, words) if ok else
        expected(CONTACT, False, alarms / (limit * share), words, criterion=FALSE_ALARMS))


@pytest.mark.parametrize(('rate', 'ok'), [(1.0, True), (1.04, None)])
def test_verdict_on_contact_is_open_where_false_alarms_are_expected(verdict, rate, ok) -> None:
    found = of(verdict(rate=rate), CONTACT)
    assert found == (expected(CONTACT, True, 50.0 / 70.0, push_words()) if ok else expected(
        CONTACT, None, 1.04, f'{push_words()}, up to 1 per hour expected', NAMES.judging_motion(
            'external torque without contact comes near the contact threshold'), FALSE_ALARMS))


def simulated(model: float, steady: float, nominal: float | None = None, stopped: int = 0,
              ended: int = 0, seconds: float = 0.5) -> Any:
    """Return the scores of forward dynamics: errors [m] of the slide."""
    def score(error: float, first: float, count: int = 0) -> Any:
        return SimpleNamespace(position=np.array([first, error]), stopped=count)

    scores = {'model': score(model, 0.003, stopped), 'constant_velocity': score(steady, 0.029)}
    if nominal is not None:
        scores['control'] = score(nominal, 0.004, ended)
    other = {name: score(7.7, 8.8, 9) for name in scores}
    return [SimpleNamespace(seconds=s, scores=scores if s == seconds else other)
            for s in (0.1, 0.5, 1.0)]


def shown(model: float, steady: float, nominal: float | None = None) -> str:
    words = f'RMS error {model:g} mm over 0.5 s, {steady:g} mm at constant velocity'
    return words if nominal is None else f'{words}, {nominal:g} mm with URDF inertials'


@pytest.mark.parametrize(('changes', 'ok', 'value', 'words', 'more'), [
    ({'horizon': simulated(0.002, 0.005)}, True, 0.4, shown(2, 5), None),
    ({'horizon': simulated(0.002, 0.004)}, True, 0.5, shown(2, 4), None),
    ({'horizon': simulated(0.0021, 0.004)}, False, 0.525, shown(2.1, 4), None),
    ({'horizon': simulated(0.002, 0.0)}, False, np.inf, shown(2, 0), None),
    ({'horizon': simulated(0.002, 0.005, 0.0018)}, False, 0.4,
     shown(2, 5, 1.8) + ': use those inertials', None),
    ({'horizon': simulated(0.0011, 0.005, 0.001)}, True, 0.22, shown(1.1, 5, 1), None),
    ({'horizon': simulated(0.002, 0.005, 0.003)}, True, 0.4, shown(2, 5, 3), None),
    ({'horizon': simulated(0.002, 0.005, 0.001, ended=1)}, True, 0.4, shown(2, 5), None),
    ({'horizon': simulated(0.002, 0.005, stopped=3)}, False, None, '3 simulations ended early',
     None),
    ({'horizon': simulated(0.002, 0.005), 'raw': 12.96, 'promise': 1.0}, True, 0.48, shown(2, 5),
     None),
    ({'horizon': simulated(0.002, 0.005), 'raw': 0.1296, 'promise': 0.1, 'rmse': 0.3}, True, 0.48,
     shown(2, 5), None),
    ({'horizon': simulated(0.002, 0.005), 'raw': 1.0, 'promise': 1.0}, True, 0.4, shown(2, 5),
     None),
    ({'horizon': simulated(0.002, 0.005), 'raw': 16.0, 'promise': 1.0}, None, 0.4 * 4 / 3,
     shown(2, 5) + ', and more on a new motion', DIFFER),
    ({'horizon': simulated(0.002, 0.005), 'raw': 16.0, 'promise': 1.0, 'rmse': 0.0}, True, 0.4,
     shown(2, 5), None),
    ({'horizon': simulated(0.0021, 0.004), 'raw': 16.0, 'promise': 1.0}, False, 0.525 * 4 / 3,
     shown(2.1, 4), None),
    ({'horizon': simulated(0.002, 0.005), 'ran': simulated(0.003, 0.005)}, True, 0.4, shown(2, 5),
     None),
    ({'horizon': simulated(0.002, 0.005)[::2]}, None, None, 'no motion was simulated', Action(
        'no motion was simulated: validate with --forward',
        'robot-dynid validate arm.model.yaml new.csv --forward')),
    ({'ran': list(simulated(0.002, 0.005)[1].scores.values())}, True, 0.4, shown(2, 5), None),
    ({'ran': [simulated(0.002, 0.005)[1].scores['model'], None]}, None, None,
     'no motion was simulated', Action(
         'no motion was simulated: validate with --forward',
         'robot-dynid validate arm.model.yaml new.csv --forward')),
    ({'linkage': 'linkage', 'warnings': (f'{INDEFINITE} here',)}, None, None,
     'simulation does not support coupled joints', None),
    ({'refused': ('turn',)}, False, None, 'turn is refused, and a simulation moves all joints',
     None),
    ({'warnings': ('fine', f'{INDEFINITE} here')}, False, None,
     'the mass matrix is not positive definite everywhere', None)])
def test_verdict_on_simulation_follows_the_error_of_positions(
    verdict, changes, ok, value, words, more
) -> None:
    assert of(verdict(**changes), SIMULATION) == expected(SIMULATION, ok, value, words, more)


def test_verdict_on_simulation_of_a_joint_that_turns_is_in_milliradians(verdict) -> None:
    assert of(verdict(horizon=simulated(0.002, 0.005, 0.003)), SIMULATION, 0) == expected(
        SIMULATION, True, 3.0 / 29.0, 'RMS error 3 mrad over 0.5 s, 29 mrad at constant '
        'velocity, 4 mrad with URDF inertials')


def finding(*joints: str) -> Finding:
    return Finding('effort_scale', 'a.csv', joints, Severity.WARN, 'look like mA', 'divide them')


@pytest.mark.parametrize(('changes', 'joint', 'reason'), [
    ({'refused': ('slide',), 'reasons': {'slide': 'noise'}, 'findings': (finding('slide'),)}, 1,
     'refused: noise'),
    ({'refused': ('slide',)}, 1, 'refused: the data gives no model of its effort'),
    ({'findings': (finding('turn'), finding('slide'))}, 1,
     'effort scale of slide: look like mA'),
    ({'findings': (finding('turn', 'other'),)}, 1, 'effort scale of turn, other: look like mA'),
    ({'findings': (finding(),)}, 0, 'effort scale: look like mA')])
def test_verdict_refuses_all_uses_of_a_joint_with_a_fault(
    verdict, changes, joint, reason
) -> None:
    found = verdict(**changes).joints[joint]
    assert found.uses == tuple(expected(use, False, None, reason) for use in USES)
    assert found.words == reason


def test_verdict_on_simulation_fails_by_a_fault_of_another_joint(verdict) -> None:
    found = verdict(findings=(finding('turn'),))
    assert of(found, SIMULATION) == expected(
        SIMULATION, False, None, 'the recordings contradict the robot, and a simulation moves all '
        'joints')
    assert of(found, FEED_FORWARD).ok is True


def test_verdict_takes_back_only_what_is_good_where_motion_is_missing(verdict) -> None:
    gap = Action('record more')
    changes = {'push': 71.0, 'horizon': simulated(0.002, 0.005), 'stops': 2.0, 'half': 13.0}
    before, after = verdict(**changes).joints[1], verdict(gap=gap, **changes).joints[1]
    assert [use.ok for use in before.uses] == [None, True, False, True]
    assert [use.ok for use in after.uses] == [None, None, False, None]
    assert [use.shown_by for use in after.uses] == [NAMES.static_poses, gap, None, gap]
    assert before.words == 'good for feed-forward, simulation; not good for contact detection ' \
        f'({push_words(71.0, 142.0)}); gravity compensation not shown ({before.uses[0].words})'
    assert after.words.startswith('not good for contact detection (')


@pytest.mark.parametrize(('recordings', 'thin'), [
    (('a.csv',), ['Weak evidence: the model was fitted to one recording.']),
    (('a.csv', 'b.csv'), [])])
def test_verdict_notes_what_it_is_based_on(verdict, recordings, thin) -> None:
    found = verdict(recordings=recordings, control=0.13)
    assert found.notes == (
        'Judged on 1 recording not used for the fit.', *thin,
        'The inertials of the URDF with fitted friction are as good in slide (within 10 %).')
    assert found.errors == (Card('median error', '10 % of the effort'),
                            Card('largest error, slide', '15 % of the effort'))


ROWS = {'one': 0.1, 'two': 0.2, 'three': 0.3}


@pytest.mark.parametrize(('nominal', 'refused', 'words'), [
    ({'one': 0.2, 'two': 0.21, 'three': 0.4}, (), 'two'),
    ({'one': 0.11, 'two': 0.3, 'three': 0.3}, (), 'one and three'),
    ({'one': 0.2, 'two': 0.1, 'three': 0.1}, ('two',), 'three'),
    ({'one': 0.2, 'three': 0.1}, (), 'three'),
    ({'one': 0.1, 'two': 0.1, 'three': 0.1}, (), 'all joints'),
    ({'one': 0.2, 'two': 0.3, 'three': 0.4}, (), '')])
def test_inertials_of_the_urdf_are_as_good_up_to_a_tenth_more(nominal, refused, words) -> None:
    model: Any = SimpleNamespace(joints=tuple(ROWS), not_identified=refused)
    validation: Any = SimpleNamespace(**{row: {'motion': {
        joint: SimpleNamespace(relative_error=1.0000001 * share if row == 'model' else share)
        for joint, share in errors.items()}} for row, errors in (
            ('model', ROWS), ('control', nominal))})
    assert already_good(model, validation) == (
        f'The inertials of the URDF with fitted friction are as good in {words} (within 10 %).'
        if words else '')
    validation.control = {}
    assert already_good(model, validation) == ''


def test_relative_errors_are_those_of_held_out_motion_where_they_are_larger() -> None:
    scores: Any = {'one': SimpleNamespace(relative_error=0.1, rmse=0.2),
                   'two': SimpleNamespace(relative_error=0.2, rmse=0.3),
                   'three': SimpleNamespace(relative_error=0.4, rmse=0.0)}
    held: Any = SimpleNamespace(raw=np.array([0.36, 0.04, 25.0]))
    assert relative_errors(scores, None) == {'one': 0.1, 'two': 0.2, 'three': 0.4}
    assert relative_errors(scores, held) == pytest.approx({'one': 0.3, 'two': 0.2, 'three': 0.4})


def test_refused_recordings_are_named_with_each_cause_and_remedy_once() -> None:
    one, two = finding('turn', 'slide'), finding()
    found = refused_recordings([one, two, one])
    assert found.notes == (
        'No model: the recordings contradict the robot. effort scale of turn, slide: look like '
        'mA; effort scale: look like mA.',)
    assert found.joints == ()
    assert found.actions == (Action('in a.csv of turn, slide: divide them'),
                             Action('in a.csv: divide them'))
