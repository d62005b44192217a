"""The causes of what contradicts a description: the explanations that are far better than it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.explanations import FEW, Explanation, explanations, zero
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.score import ENOUGH, ROUNDS, SAYS_NOTHING, Explained, Score
from robot_dynid.robot.model import RobotModel

#: nats by which an explanation is better than what is stated, and within which two are as good
CONVINCING, AS_GOOD = 12.0, 4.0
#: and one is before another in the table
SAME = 1.0
#: nominal links have this share of an effort at least whose unit they show
WEIGHTY = 0.2
#: evidence of so large a share of the largest is told
STRONG = 0.4
#: what is said by efforts must lower what is left of them, in sum of the logarithms of all joints
BY_EFFORTS = ('joint_order', 'position_offset', 'position_sign', 'position_unit', 'gravity',
              'description', 'counterbalance')
LOWER = 0.3
#: or inertials that do not have to be far from the description any more, by so many nats
SURE = 36.0
#: nats of each number that is fitted to the recording
FREE = 2.0
#: so many explanations are fitted in full, after a first look at all
FITTED = 12
#: so many rows are looked at
ROWS = 200
#: step [degrees] of the last search for a zero
FINE = 1.0


#: an excerpt of the recording with stamps times a factor
InUnit = Callable[[float], Excerpt]


def causes(
    robot: RobotModel, source: str, rows: Excerpt, in_unit: InUnit | None = None
) -> list[Finding]:
    """Return findings of the explanations that are far better than what is stated, best first.

    ``in_unit`` makes the excerpt anew, since the unit of time decides what of it is noise.
    After the first that is about some joints, others of its kind are looked for in what it leaves
    of the recording.
    """
    found: list[Finding] = []
    for _ in range(robot.n + 1):
        stated = Explained(robot, rows)
        score = stated.score()
        best = _best(stated, score, found[0].kind if found else '', in_unit)
        if not best:
            break
        one = best[0][0]
        if one.remedy:
            found.append(_finding(robot, source, best, score))
            if len(one.joints) in (0, robot.n):
                break
        robot, rows = one.change.robot(robot), one.change.rows(rows)
    return [_merged(list(same)) for _, same in groupby(
        found, lambda f: (f.kind, f.severity, f.remedy))]


def _best(
    stated: Explained, score: Score, kind: str, in_unit: InUnit | None
) -> list[tuple[Explanation, Score]]:
    """Return the explanation that is named, then others that are as good; none if none is.

    One without a remedy, where that is as good: then nothing is to be said.
    """
    look = stated.score(rounds=1)
    table = [one for one in explanations(stated.stated, stated.rows, stated)
             if kind in ('', one.kind)]
    gains = np.array([look.total - _scored(stated, look, one, 1).total for one in table])
    if not np.isfinite(look.total):
        return []
    chosen = sorted(i for i in np.argsort(-gains, kind='stable')[:FITTED].tolist() if gains[i] > 0)
    slow = score.parts[5].sum() > 0.5 * CONVINCING or (score.off > SAYS_NOTHING).any()
    units = [i for i, one in enumerate(table) if one.kind == 'time_unit' and i not in chosen]
    fits = [(table[i], _scored(stated, score, table[i], ROUNDS, in_unit))
            for i in sorted([*chosen, *(units if slow and in_unit else [])])]
    if not fits:
        return []
    one, best = min(fits, key=lambda fit: fit[1].total)
    if score.total - best.total < CONVINCING:
        return []
    if one.kind == 'position_offset':
        refined = _refined(stated, score, one)
        fits = [refined if fit[0].kind == one.kind and fit[0].joints == one.joints else fit
                for fit in fits]
        best = refined[1]
    least = dict[tuple[str, tuple[int, ...]], tuple[Explanation, Score]]()
    for fit in fits:
        about = fit[0].kind, fit[0].joints
        least[about] = min(least.get(about, fit), fit, key=lambda one: one[1].total)
    near = sorted((fit for fit in least.values() if fit[1].total < best.total + AS_GOOD),
                  key=lambda fit: fit[1].total > best.total + SAME)
    return [fit for fit in near if not fit[0].remedy][:1] or near


def _refined(
    stated: Explained, score: Score, one: Explanation
) -> tuple[Explanation, Score]:
    """Return the zero of a joint to FINE."""
    assert one.change.offset is not None
    (j,), angle = one.joints, -float(np.degrees(one.change.offset.sum()))
    step, best = 16.0 * FINE, (one, _scored(stated, score, one))
    while step >= FINE:
        for side in (-step, step):
            other = zero(stated.stated, j, angle + side)
            then = _scored(stated, score, other)
            if then.total < best[1].total:
                best, angle = (other, then), angle + side
                break
        else:
            step *= 0.5
    return best


def _scored(
    stated: Explained, score: Score, one: Explanation, rounds: int = ROUNDS,
    in_unit: InUnit | None = None,
) -> Score:
    """Return the score of an explanation; velocities that it leaves out count as nothing said."""
    change = one.change
    if change.of_efforts:
        then = stated.score(dict(change.order).get('effort'), change.effort, rounds)
    elif change.of_velocities:
        then = stated.moved_as(change.rows(stated.rows), score)
    else:
        order = dict(change.order).get('position', np.arange(stated.robot.n))
        rows = in_unit(change.time) if in_unit and one.kind == 'time_unit' else change.rows(
            stated.rows)
        then = Explained(change.robot(stated.stated), rows, change.sprung, (stated, order)).score(
            rounds=rounds)
        if len(rows) < len(stated.rows) / 2:
            return replace(then, total=float('inf'))
    if not _shown(stated, score, one, then):
        return replace(then, total=float('inf'))
    lost = max(int(np.isfinite(score.off).sum() - np.isfinite(then.off).sum()), 0)
    return replace(then, total=then.total + lost * ENOUGH * float(np.log(SAYS_NOTHING))
                   + one.free * FREE)


def _shown(stated: Explained, score: Score, one: Explanation, then: Score) -> bool:
    """Return whether efforts can show an explanation, where it rests on them.

    They must be explained better unless motion, friction or limits say so; by links with a mass.
    """
    falls = sum(float((score.parts[k] - then.parts[k]).sum()) for k in (1, 2, 5))
    by_motion = falls > 0.5 * CONVINCING
    lower = by_motion or np.sum(np.log(score.left / then.left)) > LOWER or (
        score.total - then.total > SURE and one.kind != 'description')
    if one.kind == 'time_unit' and not by_motion:
        return False
    if one.kind in BY_EFFORTS and not (lower and np.all(then.size[then.weight > WEIGHTY] > 0.0)):
        return False
    if one.kind == 'velocity' or not 0 < len(one.joints) < stated.robot.n:
        return True
    of_links = (one.change.of_efforts and one.kind != 'effort_sign') or (
        one.kind == 'position_unit' and one.change.velocity is not None)
    shown = then.weight > np.maximum(then.left, WEIGHTY)
    return bool(np.mean(stated.moves) >= FEW and (
        not of_links or shown[list(one.joints)].any()))


def _finding(
    robot: RobotModel, source: str, best: list[tuple[Explanation, Score]], score: Score
) -> Finding:
    (one, then), *others = best
    others = others[:1]
    looks = ' or '.join([one.looks, *(_of(robot, other.joints) + other.looks
                                      for other, _ in others)])
    remedy = ', or '.join([one.remedy, *(other.remedy for other, _ in others)])
    severity = Severity.WARN if any(
        fit.severity is Severity.WARN for fit, _ in best) else Severity.REFUSE
    joints = tuple(robot.joints[j] for j in one.joints) if len(one.joints) < robot.n else ()
    return Finding(one.kind, source, joints, severity,
                   f'{looks}: {", ".join(_evidence(score, then))}', remedy)


def _of(robot: RobotModel, joints: tuple[int, ...]) -> str:
    named = ', '.join(robot.joints[j] for j in joints) if len(joints) < robot.n else ''
    return f'of {named} ' if named else ''


def _evidence(before: Score, after: Score) -> Iterator[str]:
    """Yield in words by what an explanation is better than what is stated."""
    falls = [np.nan_to_num(a - b) for a, b in zip(before.parts, after.parts, strict=True)]
    sums = [float(fall.sum()) for fall in falls]
    worst = [int(np.argmax(fall)) for fall in falls]
    fell = falls[0] > 0.0 if np.any(falls[0] > 0.0) else np.isfinite(before.left)
    left, off = ([float(np.exp(np.mean(np.log(s.left[fell])))) for s in (before, after)],
                 [s.off[worst[1]] for s in (before, after)])
    words = (
        f'{left[0]:.0%} of the efforts are unexplained, then {left[1]:.0%}',
        f'velocity differs from the change of position by {off[0]:.0%}, then by {off[1]:.0%}',
        f'friction takes {before.taken[worst[2]]:.0%} of effort times speed, then '
        f'{after.taken[worst[2]]:.0%}',
        f'links have to be {before.size[worst[3]]:.2g} times as heavy as described, then '
        f'{after.size[worst[3]]:.2g} times',
        f'the inertials have to be far from those described, by {sums[4]:.0f} in the logarithm of '
        'their probability',
        'motion, efforts or stamps are beyond what a robot can do, by factors of '
        f'{np.exp(sums[5] / ENOUGH):.2g} in all')
    for fall, text in zip(sums, words, strict=True):
        if fall > STRONG * max(sums):
            yield f'as stated {text}'


def _merged(same: list[Finding]) -> Finding:
    """Return findings of the same kind and remedy as one."""
    joints = tuple(dict.fromkeys(joint for one in same for joint in one.joints))
    return replace(same[0], joints=joints)
