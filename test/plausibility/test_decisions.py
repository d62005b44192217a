"""plausibility/causes.py: which of the explanations with given scores is a finding, in what words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robot_dynid.plausibility import causes as module
from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.explanations import Change, Explanation
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.score import Explained, Score
from robot_dynid.robot.robot_file import load_robot

ROBOT = load_robot('planar_3r')
PHASE = np.outer(np.arange(40) / 4.0, [0.7, 1.1, 1.9])
NONE = np.zeros((40, 3))
ROWS = Excerpt(np.sin(PHASE), NONE, NONE, NONE, np.zeros((20, 3)), np.zeros((20, 3)),
               np.full(20, 0.2), 4e-3)
#: gain [nats] by one part: efforts, travel, friction, size, links, limits
Gains = tuple[float, ...]


def score_of(gains: Gains = (0.0,) * 6, left: float = 0.5, **more: Any) -> Score:
    """Return a score that is better by these nats, those of joints at the second one."""
    parts = [np.array([0.0, -gain, 0.0]) for gain in gains[:4]] + [
        np.array([-gain]) for gain in gains[4:]]
    return replace(Score(np.full(3, left), np.full(3, np.nan), np.ones(3), tuple(parts),
                         np.full(3, 0.6), np.zeros(3)), **more)


STATED = score_of()


def told(kind: str = 'velocity', joints: tuple[int, ...] = (), looks: str = 'it looks so',
         remedy: str = 'do it', **more: Any) -> Explanation:
    """Return an explanation whose change is filled in later."""
    return Explanation(kind, joints, looks, remedy, Change(), **more)


def decide(patch: pytest.MonkeyPatch, options: Sequence[tuple[Explanation, Score]],
           stated: Score = STATED, first: Sequence[Score] | None = None,
           heavier: Score = STATED, in_unit: Any = None) -> list[Finding]:
    """Return findings of explanations with these scores, and those of the ``first`` pass."""
    table = [replace(one, change=replace(one.change, effort=np.full(3, i + 2.0)))
             for i, (one, _) in enumerate(options)]

    class Fits:
        last: Sequence[Explained] = ()

        def __init__(self, excerpts: Sequence[Explained]) -> None:
            Fits.last = excerpts

        def scores(self, of: Any, orders: Any, factors: Any, rounds: int) -> list[Score]:
            full = [score for _, score in options]
            of_pass = first if rounds == 1 and first is not None else full
            return [heavier if factor[0] == 1.0 else of_pass[round(factor[0]) - 2]
                    for factor in factors]

    patch.setattr(module, 'Fits', Fits)
    patch.setattr(module, 'explanations', lambda _: iter(table))
    patch.setattr(Explained, 'score', lambda self, rounds=4: stated)
    return module.causes(ROBOT, 'run', ROWS, in_unit)


def by(nats: float, part: int = 0) -> Gains:
    """Return a gain by one part."""
    return tuple(nats * (k == part) for k in range(6))


@pytest.mark.parametrize(('nats', 'free', 'found'), [
    (12.1, 0, True), (11.9, 0, False), (14.1, 1, True), (13.9, 1, False), (18.1, 3, True),
    (17.9, 3, False)])
def test_a_finding_beats_what_is_stated_by_twelve_nats_and_two_per_number(
    monkeypatch: pytest.MonkeyPatch, nats: float, free: int, found: bool
) -> None:
    options = [(told(free=free), score_of(by(nats)))]
    assert len(decide(monkeypatch, options)) == found


@pytest.mark.parametrize(('others', 'looks'), [
    ((16.1,), 'A or B'), ((15.9,), 'A'), ((20.9,), 'A or B'), ((21.1,), 'B or A'),
    ((19.0, 19.5), 'A or B'), ((19.0, 21.5), 'C or A')])
def test_equally_good_explanations_are_named_by_table_order_within_a_nat(
    monkeypatch: pytest.MonkeyPatch, others: tuple[float, ...], looks: str
) -> None:
    """Within four nats of the best; two of them."""
    options = [(told('gravity', looks='A', remedy='do A'), score_of(by(20.0), 0.3)), *(
        (told(kind, looks=name, remedy=f'do {name}'), score_of(by(nats), 0.3))
        for kind, name, nats in zip(('velocity', 'clock'), 'BC', others, strict=False))]
    (finding,) = decide(monkeypatch, options)
    assert finding.looks_like.partition(':')[0] == looks
    assert finding.remedy == ', or '.join(f'do {one}' for one in looks.split(' or '))


@pytest.mark.parametrize(('nats', 'found'), [(14.1, 0), (13.9, 1)])
def test_nothing_is_found_if_what_is_no_fault_is_as_good_within_six_nats(
    monkeypatch: pytest.MonkeyPatch, nats: float, found: int
) -> None:
    """It is fitted whatever the first pass says of it, if it concerns all joints."""
    options = [(told(), score_of(by(20.0))), (told('clock', remedy=''), score_of(by(nats)))]
    assert len(decide(monkeypatch, options, first=[options[0][1], STATED])) == found
    single = [options[0], (told('clock', (1,), remedy=''), score_of(by(nats)))]
    assert len(decide(monkeypatch, single, first=[options[0][1], STATED])) == 1


@pytest.mark.parametrize(('kind', 'looks'), [('velocity', 'A'), ('effort_scale', 'A or B')])
def test_remedies_of_the_same_kind_are_named_once_but_for_sizes_of_efforts(
    monkeypatch: pytest.MonkeyPatch, kind: str, looks: str
) -> None:
    options = [(told(kind, looks=name, remedy=f'do {name}'), score_of(by(nats), 0.3))
               for name, nats in (('A', 20.0), ('B', 19.5))]
    (finding,) = decide(monkeypatch, options)
    assert finding.looks_like.partition(':')[0] == looks


def test_efforts_of_another_size_that_is_no_fault_hide_no_other_finding(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [(told(), score_of(by(20.0), 0.3)),
               (told('effort_scale', remedy=''), score_of(by(19.0), 0.3))]
    assert [one.kind for one in decide(monkeypatch, options)] == ['velocity']


@pytest.mark.parametrize(('nats', 'found'), [(1.1, 1), (0.9, 0)])
def test_explanations_that_gain_a_nat_in_the_first_pass_are_fitted(
    monkeypatch: pytest.MonkeyPatch, nats: float, found: int
) -> None:
    options = [(told(), score_of(by(20.0)))]
    assert len(decide(monkeypatch, options, first=[score_of(by(nats))])) == found


@pytest.mark.parametrize(('kinds', 'found'), [
    (['velocity'] * 3, True), (['velocity'] * 4, False), ([f'k{i}' for i in range(14)], True),
    ([f'k{i}' for i in range(15)], False)])
def test_the_fourteen_best_are_fitted_three_of_a_kind(
    monkeypatch: pytest.MonkeyPatch, kinds: list[str], found: bool
) -> None:
    """The last of the first pass is the best of the fit."""
    last = len(kinds) - 1
    options = [(told(kind, looks=f'{i}'), score_of(by(13.0 + 30.0 * (i == last))))
               for i, kind in enumerate(kinds)]
    first = [score_of(by(50.0 - i)) for i in range(len(kinds))]
    (finding,) = decide(monkeypatch, options, first=first)
    assert finding.looks_like.startswith(f'{last}:') == found


@pytest.mark.parametrize(('left', 'nats', 'size', 'found'), [
    (0.5 * np.exp(-0.11), 20.0, 1.0, True), (0.5 * np.exp(-0.09), 20.0, 1.0, False),
    (0.5, 36.1, 1.0, True), (0.5, 35.9, 1.0, False), (0.3, 20.0, -0.1, False)])
def test_what_rests_on_efforts_lowers_their_residual_or_is_far_more_probable(
    monkeypatch: pytest.MonkeyPatch, left: float, nats: float, size: float, found: bool
) -> None:
    """By 0.3 as the sum of logarithms, or 36 nats; of links that have weight."""
    option = score_of(by(nats), left, size=np.array([1.0, 1.0, size]))
    assert len(decide(monkeypatch, [(told('gravity'), option)])) == found
    light = replace(option, weight=np.array([0.6, 0.6, 0.19]))
    heavy = replace(option, weight=np.array([0.6, 0.6, 0.21]))
    assert [len(decide(monkeypatch, [(told('gravity'), one)])) for one in (light, heavy)] == [
        found or size < 0.0, found]


@pytest.mark.parametrize(('part', 'nats', 'worse', 'found'), [
    (1, 6.1, 0.0, True), (1, 5.9, 0.0, False), (2, 6.1, 0.9, True), (2, 6.1, 1.1, False),
    (5, 6.1, 1.1, True)])
def test_motion_friction_and_limits_support_what_rests_on_efforts(
    monkeypatch: pytest.MonkeyPatch, part: int, nats: float, worse: float, found: bool
) -> None:
    """By six nats; friction only if the residual is no worse by more than a nat."""
    gains = [-worse, 0.0, 0.0, 13.0, 0.0, 0.0]
    gains[part] = nats
    assert len(decide(monkeypatch, [(told('gravity'), score_of(tuple(gains)))])) == found


@pytest.mark.parametrize(('weight', 'before', 'left', 'found'), [
    (0.21, 0.6, 0.1, 1), (0.19, 0.6, 0.1, 0), (0.31, 0.6, 0.3, 1), (0.29, 0.6, 0.3, 0),
    (0.1, 3.1, 0.3, 1), (0.1, 2.9, 0.3, 0)])
def test_links_show_the_size_of_a_single_effort_by_their_share_of_it(
    monkeypatch: pytest.MonkeyPatch, weight: float, before: float, left: float, found: int
) -> None:
    """Above a fifth, and above what is left; or three times more of it than was measured."""
    stated = replace(STATED, weight=np.array([9.0, before, 9.0]))
    then = score_of(by(20.0), left, weight=np.array([0.9, weight, 0.9]))
    options = [(told('effort_scale', (1,)), then)]
    assert len(decide(monkeypatch, options, stated)) == found


@pytest.mark.parametrize(('kind', 'change', 'fall', 'found'), [
    ('joint_order', Change(channels=('effort',)), 0.31, 1),
    ('joint_order', Change(channels=('effort',)), 0.29, 0), ('joint_order', Change(), 0.29, 1),
    ('position_unit', Change(velocity=np.ones(3)), 0.31, 1),
    ('position_unit', Change(velocity=np.ones(3)), 0.29, 0), ('position_unit', Change(), 0.29, 1),
    ('position_sign', Change(velocity=np.ones(3)), 0.29, 1)])
def test_swapped_efforts_and_angles_of_another_unit_lower_the_residual_of_both_joints(
    monkeypatch: pytest.MonkeyPatch, kind: str, change: Change, fall: float, found: int
) -> None:
    then = score_of(by(20.0), 0.5 * np.exp(-fall), weight=np.full(3, 0.1))
    option = replace(told(kind, (0, 1)), change=change)
    assert len(decide(monkeypatch, [(option, then)])) == found


@pytest.mark.parametrize(('total', 'efforts', 'found'), [
    (13.9, 13.9, 1), (14.1, 13.9, 0), (13.9, 14.1, 0)])
def test_lengths_explain_efforts_six_nats_better_than_masses(
    monkeypatch: pytest.MonkeyPatch, total: float, efforts: float, found: int
) -> None:
    """In all, and in the efforts; the factor of masses is a fitted number."""
    heavier = score_of((efforts, total + 2.0 - efforts, 0.0, 0.0, 0.0, 0.0))
    options = [(told('description'), score_of(by(20.0)))]
    assert len(decide(monkeypatch, options, heavier=heavier)) == found


@pytest.mark.parametrize(('limits', 'off', 'tried'), [
    (6.1, np.nan, True), (5.9, np.nan, False), (0.0, 0.51, True), (0.0, 0.49, False)])
def test_units_of_time_are_tried_where_motion_says_so(
    monkeypatch: pytest.MonkeyPatch, limits: float, off: float, tried: bool
) -> None:
    asked = []

    def in_unit(factor: float) -> Excerpt:
        asked.append(factor)
        return ROWS

    stated = replace(score_of(by(-limits, 5)), off=np.array([np.nan, off, np.nan]))
    option = replace(told('time_unit'), change=Change(time=1e-3))
    found = decide(monkeypatch, [(option, replace(stated, parts=score_of(by(13.0)).parts))],
                   stated, [stated], in_unit=in_unit)
    assert (set(asked), len(found)) == ({1e-3} if tried else set(), int(limits > 6.0))


@pytest.mark.parametrize(('rows', 'found'), [(20, 1), (19, 0)])
def test_rows_in_another_unit_of_time_are_used_as_they_are_and_half_as_many_at_least(
    monkeypatch: pytest.MonkeyPatch, rows: int, found: int
) -> None:
    few = replace(ROWS, **{name: getattr(ROWS, name)[:rows] for name in (
        'position', 'velocity', 'acceleration', 'torque')})
    option = replace(told('time_unit'), change=Change(time=1e-3))
    stated = score_of(by(-6.1, 5))
    assert len(decide(monkeypatch, [(option, score_of(by(13.0)))], stated,
                      in_unit=lambda factor: few)) == found
    assert [(len(one.rows), one.rows.step) for one in module.Fits.last] == [  # type: ignore
        (rows, 4e-3)]


@pytest.mark.parametrize(('part', 'found'), [(0, 1), (1, 0), (2, 1), (3, 1), (4, 1), (5, 1)])
def test_travel_is_compared_again_where_velocities_change(
    monkeypatch: pytest.MonkeyPatch, part: int, found: int
) -> None:
    """Here no joint travels, so that it counts for nothing."""
    option = replace(told(), change=Change(velocity=np.full(3, 2.0)))
    assert len(decide(monkeypatch, [(option, score_of(by(20.0, part)))])) == found


@pytest.mark.parametrize(('links', 'limits', 'left', 'found'), [
    (0.1, -0.2, 0.5, 1), (-0.1, 0.2, 0.5, 0), (-0.1, -0.2, 0.49, 1), (-0.1, -0.2, 0.51, 0)])
def test_another_size_of_efforts_explains_them_or_makes_links_more_probable(
    monkeypatch: pytest.MonkeyPatch, links: float, limits: float, left: float, found: int
) -> None:
    stated = score_of((0.0, 0.0, 0.0, 0.0, 5.0, 7.0))
    then = score_of((0.0, 0.0, 0.0, 20.0, 5.0 + links, 7.0 + limits), left)
    assert len(decide(monkeypatch, [(told('effort_scale'), then)], stated)) == found


@pytest.mark.parametrize(('worse', 'found'), [(1.8, 1), (1.9, 0)])
def test_omitted_velocities_count_as_ones_that_leave_half(
    monkeypatch: pytest.MonkeyPatch, worse: float, found: int
) -> None:
    """Twenty times the logarithm of two is 13.86 nats."""
    stated = replace(STATED, off=np.array([np.nan, 0.4, 0.3]))
    then = replace(score_of(by(-worse)), off=np.array([np.nan, np.nan, 0.3]))
    assert len(decide(monkeypatch, [(told(), then)], stated, [score_of(by(2.0))])) == found


@pytest.mark.parametrize('strong', [True, False])
def test_a_finding_states_the_evidence_that_counts(
    monkeypatch: pytest.MonkeyPatch, strong: bool
) -> None:
    """From two fifths of the largest on; of the joint for which it is the largest."""
    share = 4.1 if strong else 3.9
    stated = replace(STATED, left=np.array([0.2, 0.5, 0.4]), off=np.array([np.nan, 0.25, 0.3]),
                     taken=np.array([0.1, -0.42, 0.2]), size=np.array([2.0, 3.5, 5.0]))
    then = score_of((10.0, *[share] * 5), 0.125, off=np.array([np.nan, 0.07, 0.1]),
                    taken=np.array([0.3, 0.17, 0.4]), size=np.array([0.8, 1.25, 0.6]))
    (finding,) = decide(monkeypatch, [(told(severity=Severity.WARN), then)], stated)
    first = 'as stated 50.0 % of the efforts are unexplained, with the change 12.5 %'
    others = (
        'as stated velocity differs from the change of position by 25.0 %, with the change by '
        '7.0 %',
        'as stated friction takes -42.0 % of effort times speed, with the change 17.0 %',
        'as stated links would have to be 3.5 times as heavy as described, with the change 1.2 '
        'times',
        'as stated the inertials would have to be far from those described, by 4 in the '
        'logarithm of their probability',
        'as stated motion, efforts or stamps are beyond what a robot can do, by factors of 1.2 in '
        'all')
    assert finding.looks_like == f'it looks so: {", ".join([first, *others * strong])}'
    assert (finding.kind, finding.recording, finding.joints, finding.severity, finding.remedy) == (
        'velocity', 'run', (), Severity.WARN, 'do it')


def test_joints_are_named_each_with_its_own_and_in_a_sentence_of_another(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [(told('effort_sign', (1,), 'A', 'turn'), score_of(by(20.0), 0.3)),
               (told('velocity', (2,), 'B', 'put'), score_of(by(19.5), 0.3))]
    first, second = decide(monkeypatch, [*options, (
        told('effort_sign', (0,), 'C', 'turn'), score_of(by(14.0), 0.3))])
    assert first.looks_like.startswith('A or of joint_3 B: as stated 50.0 % of the efforts')
    assert (first.joints, first.remedy) == (('joint_2',), 'turn, or put')
    assert second.looks_like.startswith('C: as') and second.joints == ('joint_1',)
    alike = [(told('effort_sign', (j,), 'A', 'turn'), score_of(by(30.0 - 6.0 * j), 0.3))
             for j in range(3)]
    (finding,) = decide(monkeypatch, alike)
    assert finding.joints == ROBOT.joints and finding.severity is Severity.REFUSE


def test_an_arm_of_another_size_beats_each_of_fourteen_masses(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a tenth to ten times that described, evenly in the logarithm."""
    options, masses = [(told('description'), score_of(by(20.0)))], list[float]()
    decide(monkeypatch, options)
    plain, better = module.Fits, [-1.0]

    class Weighed(plain):  # type: ignore[misc, valid-type]
        def __init__(self, excerpts: Sequence[Explained]) -> None:
            self.masses = [float(one.stated.nominal[1, 0] / ROBOT.nominal[1, 0])
                           for one in excerpts]

        def scores(self, of: Any, orders: Any, factors: Any, rounds: int) -> list[Score]:
            if factors[0][0] != 1.0:
                return super().scores(of, orders, factors, rounds)
            masses.extend(self.masses)
            return [score_of(by(19.0 * np.isclose(self.masses[k], better[0]))) for k in of]

    monkeypatch.setattr(module, 'Fits', Weighed)
    assert len(module.causes(ROBOT, 'run', ROWS)) == 1
    np.testing.assert_allclose(masses, np.exp(np.linspace(np.log(0.1), np.log(10.0), 14)))
    for mass in (masses[3], masses[-1]):
        better[0] = mass
        assert not module.causes(ROBOT, 'run', ROWS)


@pytest.mark.parametrize(('true', 'told'), [
    (37.0, '+37'), (59.4, '+59'), (-12.7, '-13'), (30.1, '+30')])
def test_the_zero_of_a_joint_is_refined_to_a_degree(
    monkeypatch: pytest.MonkeyPatch, true: float, told: str
) -> None:
    """From one of 30 degrees in halved steps of 16."""

    class Fits:
        def __init__(self, excerpts: Sequence[Explained]) -> None:
            self.angles = [float(np.degrees((ROWS.position - one.rows.position)[0, 1]))
                           for one in excerpts]

        def scores(self, of: Any, orders: Any, factors: Any, rounds: int) -> list[Score]:
            return [score_of(by(400.0 - abs(self.angles[k] - true)), 0.3) for k in of]

    monkeypatch.setattr(module, 'Fits', Fits)
    monkeypatch.setattr(module, 'explanations', lambda _: iter([module.zero(3, 1, 30.0)]))
    monkeypatch.setattr(Explained, 'score', lambda self, rounds=4: STATED)
    (finding,) = module.causes(ROBOT, 'run', ROWS)
    assert finding.looks_like.startswith(f'the zero looks {told} degrees off: ')
    assert finding.joints == ('joint_2',)
