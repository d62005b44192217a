"""Causes of contradictions between a recording and the description: the best explanations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from robot_dynid.document import percent
from robot_dynid.plausibility.excerpt import Excerpt, thin_excerpt
from robot_dynid.plausibility.explanations import (
    MOVING_JOINTS_SHARE,
    Change,
    Explanation,
    explanations,
    zero,
)
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.score import (
    ENOUGH_ROWS,
    SIZE,
    WEIGHT_FIT_ROUNDS,
    Explained,
    Fits,
    Score,
)
from robot_dynid.robot.model import RobotModel

#: nats by which an explanation must beat the stated description; within which an explanation that
#: is no fault also counts; within which two are equally good; within which table order decides
CONVINCING, NO_FAULT, AS_GOOD_NATS, SAME_NATS = 12.0, 6.0, 4.0, 1.0
#: least share of an effort due to nominal links for which they show its unit; least share of the
#: largest evidence that is reported; share of the travel that uninformative velocities leave
WEIGHTY, STRONG_EVIDENCE, SAYS_NOTHING = 0.2, 0.4, 0.5
#: explanations that rest on efforts must lower their residual by this much, as the sum of all
#: joints' logarithms, or make the inertials more probable by this many nats
BY_EFFORTS = ('joint_order', 'position_offset', 'position_sign', 'position_unit', 'gravity',
              'description', 'counterbalance')
LOWER, SURE_NATS = 0.3, 36.0
#: kinds that are of a size, of efforts or of the arm
SIZES = ('effort_scale', 'description')
#: factors of the mass of all links that an arm of another size has to beat
HEAVIER = np.geomspace(0.1, 10.0, 14)
#: nats per number fitted to the recording
NATS_PER_NUMBER = 2.0
#: number of explanations fitted in full, of these at most so many of the same kind and joints, and
#: their rows; rows of the first pass over all explanations; motions evaluated at once
FITTED, MAX_ALIKE, FITTED_ROWS, FIRST_ROWS, MOTIONS_AT_ONCE = 14, 3, 200, 70, 8
#: first and last step [degrees] of the search for a zero
FIRST_ZERO_STEP, LAST_ZERO_STEP = 16.0, 1.0

#: returns an excerpt of the recording with stamps scaled by a factor
InUnit = Callable[[float], Excerpt]
Fit = tuple[Explanation, Score]


def causes(
    robot: RobotModel, source: str, rows: Excerpt, in_unit: InUnit | None = None
) -> list[Finding]:
    """Return findings for the explanations that clearly beat the stated description, best first.

    ``in_unit`` extracts the excerpt again, because the unit of time decides what of it is noise.
    After a finding about some joints, further ones of its kind are searched with that change
    applied. Where efforts of another size are no fault, as of heavier links, all but sizes are
    searched with that size.
    """
    findings, kind, named, sized = list[Finding](), '', set[tuple[int, ...]](), False
    for _ in range(robot.n + 2):
        stated = Explained(robot, rows)
        score = stated.score()
        table = [one for one in explanations(stated)
                 if kind in ('', one.kind) and one.joints not in named
                 and not (sized and one.kind in SIZES and (one.remedy or not one.joints))]
        fits = _best(stated, score, table, in_unit)
        if not fits:
            break
        best = fits[0][0]
        sized = not best.remedy
        if best.remedy:
            kind = best.kind
            findings.append(_build_finding(robot, source, fits, score))
            if len(best.joints) in (0, robot.n):
                break
            named.add(best.joints)
        robot, rows = best.change.robot(robot), best.change.rows(rows)
    merged = (list(group) for _, group in groupby(
        findings, lambda finding: (finding.kind, finding.severity, finding.remedy)))
    return [replace(group[0], joints=tuple(dict.fromkeys(
        joint for one in group for joint in one.joints))) for group in merged]


def _best(
    stated: Explained, score: Score, table: Sequence[Explanation], in_unit: InUnit | None
) -> list[Fit]:
    """Return the best explanation, then equally good ones; empty if none is convincing.

    If one without a remedy is equally good: none, or the size of all efforts.
    """
    few = stated.changed(stated.stated, thin_excerpt(stated.rows, FIRST_ROWS))
    look = few.score(1)
    gains = look.total - np.array([fit[1].total for fit in _fits(few, look, table, 1)])
    chosen, about = set[int](), defaultdict[tuple[str, tuple[int, ...]], int](int)
    for i in (i for i in np.argsort(-gains, kind='stable').tolist() if gains[i] > SAME_NATS):
        about[table[i].kind, table[i].joints] += 1
        if len(chosen) < FITTED and about[table[i].kind, table[i].joints] <= MAX_ALIKE:
            chosen.add(i)
    # the first pass may pass over what is no fault of all joints, and protects from false findings
    chosen |= {i for i, one in enumerate(table) if not one.remedy and not one.joints}
    if in_unit and (score.parts[5].sum() > 0.5 * CONVINCING or (score.off > SAYS_NOTHING).any()):
        chosen |= {i for i, one in enumerate(table) if one.kind == 'time_unit'}
    fits = _other_size(stated, score, _fits(
        stated, score, [table[i] for i in sorted(chosen)], WEIGHT_FIT_ROUNDS, in_unit))
    best = min(fits, key=_total, default=None)
    if best is None or not score.total - best[1].total >= CONVINCING:
        return []
    if best[0].kind == 'position_offset':
        best = _with_finer_zero(stated, score, best)
        fits = [best if fit[0].joints == best[0].joints and fit[0].kind == best[0].kind else fit
                for fit in fits]
    near = dict[tuple[object, ...], Fit]()
    as_good = (one for one in fits if _total(one) < _total(best) + AS_GOOD_NATS)
    for fit in sorted(as_good, key=_total):
        near.setdefault((fit[0].kind, fit[0].joints, fit[0].remedy if (
            fit[0].kind == 'effort_scale') else fit[0].change.kind), fit)
    order = sorted(dict.fromkeys(fit for fit in fits if fit in near.values()),
                   key=lambda fit: _total(fit) > _total(best) + SAME_NATS)
    no_fault = [fit for fit in fits if not fit[0].remedy and _total(fit) < _total(best) + NO_FAULT]
    return [fit for fit in no_fault if (fit[0].kind, fit[0].joints) == ('effort_scale', ())
            ] if no_fault else order


def _total(fit: Fit) -> float:
    return fit[1].total


def _other_size(stated: Explained, score: Score, fits: Sequence[Fit]) -> list[Fit]:
    """Return fits, with an arm of another size only if its lengths explain the efforts.

    Links that are all heavier by the same factor must not explain them equally well.
    """
    sizes = [fit for fit in fits if fit[0].kind == 'description'
             and score.total - _total(fit) >= CONVINCING]
    heavier = min((then for _, then in _fits(stated, score, [
        Explanation('', (), '', '', Change(mass=float(factor)), free=1) for factor in HEAVIER
    ] if sizes else [], WEIGHT_FIT_ROUNDS)), key=lambda then: then.total, default=score)
    return [fit for fit in fits if fit[0].kind != 'description' or (
        heavier.total - _total(fit) > NO_FAULT
        and heavier.parts[0].sum() - fit[1].parts[0].sum() > NO_FAULT)]


def _with_finer_zero(stated: Explained, score: Score, best: Fit) -> Fit:
    """Return the explanation with the zero of its joint refined to LAST_ZERO_STEP."""
    assert best[0].change.offset is not None
    (j,), step, angle = best[0].joints, FIRST_ZERO_STEP, -np.degrees(best[0].change.offset.sum())
    while step >= LAST_ZERO_STEP:
        for side in (-step, step):
            (fit,) = _fits(
                stated, score, [zero(stated.stated.n, j, angle + side)], WEIGHT_FIT_ROUNDS)
            if _total(fit) < _total(best):
                best, angle = fit, angle + side
                break
        else:
            step *= 0.5
    return best


def _fits(
    stated: Explained, score: Score, table: Sequence[Explanation], rounds: int,
    in_unit: InUnit | None = None,
) -> list[Fit]:
    """Return explanations with their scores; omitted velocities count as uninformative ones."""
    n, rows = stated.stated.n, stated.rows
    motions = defaultdict[Hashable, list[int]](list)
    for i, one in enumerate(table):
        motions[one.change.motion].append(i)
    same_length = defaultdict[int, list[tuple[Explained, list[int]]]](list)
    for group in motions.values():
        one, own, change = table[group[0]], rows, table[group[0]].change
        if in_unit and one.kind == 'time_unit':
            own, change = in_unit(change.time), replace(change, time=1.0)
        changed = change.of_motion(own)
        same_length[len(changed)].append((stated.changed(
            change.robot(stated.stated), changed, change.order('position', n), change.sprung),
            group))
    fits = dict[int, Fit]()
    for batch in (every[i:i + MOTIONS_AT_ONCE] for every in same_length.values()
                  for i in range(0, len(every), MOTIONS_AT_ONCE)):
        of = [k for k, (_, group) in enumerate(batch) for _ in group]
        entries = [i for _, group in batch for i in group]
        efforts = [table[i].change.effort for i in entries]
        results = Fits([explained for explained, _ in batch]).scores(
            of, np.stack([table[i].change.order('effort', n) for i in entries]),
            np.stack([np.ones(n) if factor is None else factor for factor in efforts]), rounds)
        for i, k, then in zip(entries, of, results, strict=True):
            one, explained = table[i], batch[k][0]
            if one.change.velocity is not None or 'velocity' in one.change.channels:
                timed = replace(one.change, time=1.0)  # rows are in the new unit
                off, travel = explained.travel(timed.integrated(explained.rows))
                then = replace(then, off=off, parts=(then.parts[0], travel, *then.parts[2:]))
            lost = max(int(np.isfinite(score.off).sum() - np.isfinite(then.off).sum()), 0)
            better, shown = _shown(stated, score, one, then) if rounds > 1 else (
                one.kind not in BY_EFFORTS or _heavy(score, then), True)
            fits[i] = replace(one, remedy=one.remedy * shown), replace(then, penalty=(
                lost * ENOUGH_ROWS * float(np.log(SAYS_NOTHING)) + one.free * NATS_PER_NUMBER
                if better and len(explained.rows) >= len(rows) / 2 else float('inf')))
    return [fits[i] for i in range(len(table))]


def _shown(stated: Explained, score: Score, one: Explanation, then: Score) -> tuple[bool, bool]:
    """Return whether an explanation is better where it should be, and whether that is evidence.

    Explanations that rest on efforts must explain them better, unless motion, friction or limits
    support them. Links show the size of an effort or angle by their share of the effort, or if
    they need far more of it than was measured; otherwise they may simply be lighter than
    described.
    """
    fall = float(np.sum(np.log(score.left / then.left)))
    # the sign of friction neither shows the size of an effort nor supports an explanation that
    # leaves a larger residual: links that differ from their description may flip it, too
    of_efforts = one.kind in ('effort_scale', 'description') or (
        one.kind in BY_EFFORTS and then.parts[0].sum() - score.parts[0].sum() > SAME_NATS)
    by_motion = sum(float((score.parts[k] - then.parts[k]).sum()) for k in (
        (1, 5) if of_efforts else (1, 2, 5))) > 0.5 * CONVINCING
    sure = score.total - then.total > SURE_NATS
    # lengths must beat masses, which _other_size compares
    lower = fall > LOWER or sure or one.kind == 'description'
    if by_motion or one.kind == 'time_unit':
        return by_motion and (one.kind not in BY_EFFORTS or _heavy(score, then)), True
    if (one.kind in BY_EFFORTS and not (lower and _heavy(score, then))) or (
            one.kind == 'effort_scale' and max(fall, (score.parts[4] - then.parts[4])[0]) <= 0.0):
        return False, False
    if one.kind == 'velocity' or not 0 < len(one.joints) < stated.stated.n:
        return True, True
    by_links = bool(np.any(((then.weight > np.maximum(then.left, WEIGHTY)) | (
        score.weight > SIZE))[list(one.joints)]))
    swapped = one.change.channels == ('effort',)
    angle = one.kind == 'position_unit' and one.change.velocity is not None
    falls = np.all(np.log(score.left / then.left)[list(one.joints)] > LOWER)
    is_shown = by_links or falls or not (angle or swapped)
    return bool(np.mean(stated.moves) >= MOVING_JOINTS_SHARE and is_shown), (
        by_links or one.kind != 'effort_scale')


def _heavy(score: Score, then: Score) -> bool:
    """Return True if links have weight, or impossible values count for more."""
    return bool(np.all(then.size[then.weight > WEIGHTY] > 0.0)
                or (score.parts[5] - then.parts[5]).sum() > CONVINCING)


def _build_finding(robot: RobotModel, source: str, fits: Sequence[Fit], score: Score) -> Finding:
    """Return the finding of the first explanation, with the second as an alternative."""
    (one, then), *others = fits[:2]
    looks = ' or '.join([one.looks, *(
        f'of {", ".join(robot.joints[j] for j in other.joints)} ' * (
            other.joints != one.joints and 0 < len(other.joints) < robot.n) + other.looks
        for other, _ in others)])
    warn = any(fit.severity is Severity.WARN for fit, _ in fits)
    return Finding(
        one.kind, source,
        tuple(robot.joints[j] for j in one.joints) if len(one.joints) < robot.n else (),
        Severity.WARN if warn else Severity.REFUSE,
        f'{looks}: {", ".join(_evidence(score, then))}',
        ', or '.join(dict.fromkeys([one.remedy, *(other.remedy for other, _ in others)])))


def _evidence(stated: Score, changed: Score) -> Iterator[str]:
    """Yield in words the evidence for an explanation."""
    falls = [np.nan_to_num(a - b) for a, b in zip(stated.parts, changed.parts, strict=True)]
    sums = [float(fall.sum()) for fall in falls]
    worst = [int(np.argmax(fall)) for fall in falls]
    fell = falls[0] > 0.0  # of no joint where no effort counts, of which nothing is said then
    left = [float(np.exp(np.log(s.left[fell]).sum() / max(fell.sum(), 1)))
            for s in (stated, changed)]
    words = (
        f'{percent(left[0])} % of the efforts are unexplained, with the change {percent(left[1])} '
        '%',
        f'velocity differs from the change of position by {percent(stated.off[worst[1]])} %, with '
        f'the change by {percent(changed.off[worst[1]])} %',
        f'friction takes {percent(stated.taken[worst[2]])} % of effort times speed, with the '
        f'change {percent(changed.taken[worst[2]])} %',
        f'links would have to be {stated.size[worst[3]]:.2g} times as heavy as described, with '
        f'the change {changed.size[worst[3]]:.2g} times',
        f'the inertials would have to be far from those described, by {sums[4]:.0f} in the '
        'logarithm of their probability',
        'motion, efforts or stamps are beyond what a robot can do, by factors of '
        f'{np.exp(sums[5] / ENOUGH_ROWS):.2g} in all')
    for fall, text in zip(sums, words, strict=True):
        if fall > STRONG_EVIDENCE * max(sums):
            yield f'as stated {text}'
