"""The verdict on a model: uses it is good for, joint by joint, from what was scored already.

The criteria, with their reasons, are those of `robot_dynid.identified.suitability`. A use is good
where the number surely meets its criterion, not good where it surely does not, and not shown where
the recordings leave it open. Sure is what is so on distinct motion that was not fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import number, percent
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.uncertainty.held_out import HeldOut
from robot_dynid.identified.by_parameters import effort_by_parameters
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import INDEFINITE
from robot_dynid.identified.suitability import (
    ACTIONS,
    CONTACT,
    CRITERIA,
    FALSE_ALARMS,
    FEED_FORWARD,
    GRAVITY,
    SIMULATION,
    USES,
    WITHOUT_FRICTION,
    Criterion,
    JointVerdict,
    NextAction,
    UseVerdict,
    Verdict,
)
from robot_dynid.monitoring.noise_levels import holding_torque
from robot_dynid.plausibility.finding import Finding, read_sentences
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray
from robot_dynid.validation.forward_scores import CONTROL, ForwardValidation
from robot_dynid.validation.next_actions import (
    Names,
    averaged_motion,
    identify_again,
    judging_motion,
    next_actions,
    repeats,
    simulated_motion,
    static_poses,
    stopping_motion,
    uncovered,
)
from robot_dynid.validation.residual_parts import SLIDES
from robot_dynid.validation.rollout_scores import SECONDS
from robot_dynid.validation.validate import Validation

#: why an error that is small on average may be large
DIFFER = 'what the model leaves differs too much between motions'
#: poses at which the static effort is compared with its interval
POSES = 200
#: a model leaves no more than nominal inertials with fitted friction do, up to this factor
AS_GOOD = 1.1
#: static effort by a parameter below this share of gravity is rounding, as about a vertical axis
ROUNDING = 1e-9
#: the static error that is exceeded in few poses, over the root mean square along a motion
EXTREME = 1.5
#: share of dry friction by which it commonly differs between the directions of a joint: while the
#: joint slides that looks like an offset of the effort, at rest it is none
UNEVEN = 0.1
#: with more than this share of noise in the power of an effort, the effort is noise
NOISY = 0.5
#: a tip that is nearer to an axis [m] is touched at this distance; push [N] at the tip
LEAST_LEVER, TIP_PUSH = 0.1, 140.0
#: a joint that comes to rest less often does not show what friction holds when it stops
LEAST_STOPS = 5
#: level at which more false alarms than allowed are sure
LEVEL = 0.95
#: dry friction below this share of the largest static effort holds nothing
NO_FRICTION = 1e-3
#: a joint that slides (SLIDES) in less of the motion than this is mostly held while others move
SLIDING = 0.5
#: lack of a fit from a single recording lacks
THIN = 'the fit is from one recording, and what friction does on another day is in no interval'
#: findings after which recordings hold something else than the robot says
CONTRADICTIONS = frozenset({
    'position_unit', 'velocity', 'position_offset', 'joint_order', 'effort_scale', 'effort_sign',
    'gravity', 'time_unit'})


@one_blas_thread()
def judged(
    model: IdentifiedModel, validation: Validation, held: HeldOut | None = None,
    forward: ForwardValidation | None = None, names: Names | None = None,
) -> Verdict:
    """Return the verdict on ``model`` by its scores on recordings.

    ``held`` are the errors on stretches of the recordings of the fit that were left out of it,
    where these were scored; ``forward`` the scores of forward dynamics, where there are any;
    ``names`` those that commands need.
    """
    names = names or Names.without_file(model.robot.name)
    known = Evidence(model, validation, names, held, forward)
    joints = tuple(_joint(known, j) for j in range(model.robot.n))
    actions = next_actions(model, validation, joints, known.findings, names)
    thin = f'Thin evidence: {THIN}. ' if known.recordings == 1 else ''
    summary = f'{thin}{_summary(joints)}. {already_good(model, validation)}{known.words}.'
    return Verdict(summary, joints, actions[:ACTIONS])


def already_good(model: IdentifiedModel, validation: Validation) -> str:
    """Return a sentence on the joints whose URDF leaves no more in motion; '' for none."""
    ours, nominal = (scores.get('motion', {}) for scores in (validation.model, validation.control))
    found = [joint for joint in model.joints
             if joint in ours and joint in nominal and joint not in model.not_identified
             and nominal[joint].relative_error <= AS_GOOD * ours[joint].relative_error]
    where = '' if len(found) == len(model.joints) else f' in {", ".join(found)}'
    return f'Your URDF was already this good{where}: nominal inertials with fitted friction ' \
        f'leave at most {100.0 * (AS_GOOD - 1.0):.0f} % more. ' if found else ''


def refused_recordings(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on recordings that were refused before any fit, for ``findings``."""
    told = '; '.join(dict.fromkeys(
        f'{f.kind.replace("_", " ")}{_of(f)}: {f.looks_like}' for f in findings))
    actions = dict.fromkeys(f'{f.recording}{_of(f)}: {f.remedy}' for f in findings)
    return Verdict(f'No model: the recordings contradict the robot. {told}.',
                   actions=tuple(NextAction(words) for words in actions)[:ACTIONS])


def _of(finding: Finding) -> str:
    return f' of {", ".join(finding.joints)}' if finding.joints else ''


@dataclass(frozen=True, eq=False)
class Evidence:
    """A model and the scores it is judged by, see `judged`."""

    model: IdentifiedModel
    validation: Validation
    names: Names
    held: HeldOut | None = None
    forward: ForwardValidation | None = None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Contradictions among the warnings of the fit and of the scores."""
        return tuple(dict.fromkeys(
            f for f in read_sentences((*self.model.warnings, *self.validation.warnings))
            if f.kind in CONTRADICTIONS))

    @cached_property
    def sliding(self) -> FloatArray:
        """The share (n,) of the motion of any joint in which a joint slides itself."""
        moving = [np.abs(t.velocity[t.moving > 0.5]) > SLIDES
                  for t in self.validation.traces if t.velocity is not None]
        rows = np.concatenate([*moving, np.ones((0, self.model.robot.n), dtype=bool)])
        return rows.mean(axis=0) if len(rows) else np.ones(self.model.robot.n)

    @cached_property
    def static(self) -> tuple[FloatArray, FloatArray]:
        """The largest static effort (n,) of joints, and its 95 % interval (n,) [N m].

        Half of it, the largest in poses within the ranges of the fit; infinite where a parameter
        that matters is open, NaN of models without covariance.
        """
        model, n = self.model, self.model.robot.n
        q = model.trained.poses(model.robot, POSES)
        columns = effort_by_parameters(model, q, np.zeros_like(q), np.zeros_like(q))
        columns[np.abs(columns) <= ROUNDING * np.linalg.norm(model.robot.gravity)] = 0.0
        largest = np.abs(columns @ model.values).max(axis=0)
        if model.correlation_factor is None:
            return largest, np.full(n, np.nan)
        factor = interval_factor(model.record.degrees_of_freedom or np.inf)
        half = factor * np.linalg.norm(columns @ model.covariance_factor.T, axis=2).max(axis=0)
        unknown = np.abs(columns[:, :, ~np.isfinite(model.std)]).max(axis=(0, 2), initial=0.0)
        return largest, np.where(unknown > 0.0, np.inf, half)

    @cached_property
    def gaps(self) -> tuple[NextAction | None, ...]:
        """The motion that would show, joint by joint, what the recordings cannot, None of none."""
        motions = None if self.held is None else self.held.motions
        if not self.unseen and motions is None:
            cause = 'the model was judged on recordings of its fit'
        elif not self.unseen and motions == 0:
            cause = 'the recordings are too short to leave a motion out'
        elif not self.unseen and motions == 1:
            cause = 'the recordings hold one motion only'
        elif self.unseen and repeats(self.model, self.validation):
            cause = 'the recordings pass the motion of the fit again'
        else:
            return uncovered(
                self.model, self.validation if self.unseen else None, self.names)
        return (judging_motion(self.names, cause),) * self.model.robot.n

    @cached_property
    def holding(self) -> FloatArray:
        """Dry friction (rows,) [N m] that may hold joints at rest."""
        return holding_torque(self.model)

    def unit(self, j: int) -> str:
        """Return the unit of the effort of a joint."""
        return 'N' if self.model.robot.types[j] == PRISMATIC else 'N m'

    @property
    def recordings(self) -> int:
        """Number of recordings of the fit."""
        return len(self.model.record.recordings)

    @property
    def unseen(self) -> bool:
        """Whether the scores are of recordings that are not those of the fit."""
        seen = set(self.model.record.recordings)
        return not any(t.source in seen for t in self.validation.traces)

    @property
    def words(self) -> str:
        """The recordings the verdict is from, in words."""
        count = len({t.source for t in self.validation.traces})
        of = 'one recording' if count == 1 else f'{count} recordings'
        if self.unseen:
            return f'Judged on {of} that the fit has not seen'
        return f'Judged on {of} of the fit' + (
            '' if self.held is None else ', on motion left out of it in turn')


def beyond(held: HeldOut | None, validation: Validation) -> FloatArray:
    """Return the error (n,) [N m] on a new motion beyond that in the scores, root mean square."""
    rmse = np.array([one.rmse for one in validation.model['all'].values()])
    return 0.0 * rmse if held is None else np.sqrt(np.maximum(held.promise**2 - rmse**2, 0.0))


def _joint(known: Evidence, j: int) -> JointVerdict:
    """Return the verdict on joint ``j``."""
    joint = known.model.joints[j]
    reason = _spoilt(known, joint)
    if reason:
        uses = tuple(UseVerdict(use, False, None, CRITERIA[use].threshold, CRITERIA[use].unit,
                                reason) for use in USES)
        return JointVerdict(joint, uses, reason)
    uses = tuple(_as_shown(judge(known, j), known.gaps[j])
                 for judge in (_gravity, _feed_forward, _contact, _simulation))
    return JointVerdict(joint, uses, _joint_words(uses))


def _as_shown(use: UseVerdict, gap: NextAction | None) -> UseVerdict:
    """Return a verdict that is good only where no ``gap`` is in the evidence."""
    return use if gap is None or not use.ok else replace(use, ok=None, shown_by=gap)


def _spoilt(known: Evidence, joint: str) -> str:
    """Return the reason for which a joint is good for nothing, '' where its numbers decide.

    What is wrong in several joints is so in all: it shows where weight is large.
    """
    if joint in known.model.not_identified:
        reason = known.model.record.refused.get(joint, 'the data gives no model of its effort')
        return f'refused: {reason}'
    found = next((f for f in known.findings if len(f.joints) != 1 or joint in f.joints), None)
    return f'{found.kind.replace("_", " ")}{_of(found)}: {found.looks_like}' if found else ''


def _gravity(known: Evidence, j: int) -> UseVerdict:
    """Judge by the error of the static effort against the dry friction that holds the joint."""
    largest, half = (float(part[j]) for part in known.static)
    unit, names = known.unit(j), known.names
    parts, held = known.validation.parts, float(known.holding[j])
    free = held <= NO_FRICTION * largest or held == 0.0
    criterion = WITHOUT_FRICTION if free else CRITERIA[GRAVITY]

    def verdict(ok: bool | None, value: float | None, words: str,
                shown_by: NextAction | None = None) -> UseVerdict:
        return UseVerdict(GRAVITY, ok, value, criterion.threshold, criterion.unit, words, shown_by)

    if known.model.robot.drive.kind == 'gravity_compensated_torque':
        return verdict(None, None, 'the efforts are without weight, which the drives compensate: '
                       'record efforts before the compensation')
    if np.isnan(half):
        return verdict(None, None, 'the model file has no covariance',
                       identify_again(known.model, names))
    if np.isinf(half):
        return verdict(None, None, 'a parameter of its weight is not excited by the motion',
                       static_poses(names))
    if largest == 0.0:
        return verdict(True, 0.0, 'weight does not load it')
    seen = EXTREME * (0.0 if parts is None else float(parts.static[j]))
    new = EXTREME * beyond(known.held, known.validation)[j]
    error = float(np.linalg.norm([half, seen, new, UNEVEN * held]))
    value, sure = (one / (largest if free else held) for one in (error, seen))
    ok = True if value <= criterion.threshold else False if sure > criterion.threshold else None
    words = f'static effort of up to {number(largest, 3)} {unit} known to ' \
        f'{number(error, 2)} {unit}'
    if free:
        words += f' ({percent(value)} %), and no dry friction holds it'
    else:
        words += f', against dry friction of {number(held, 3)} {unit}: it ' + (
            'stays where it is released' if ok else 'may drift when it is released')
    return verdict(ok, value, words,
                   static_poses(names) if ok is None else None)


def _feed_forward(known: Evidence, j: int) -> UseVerdict:
    """Judge by what is left of the effort in motion, compared with nominal inertials."""
    model, validation, criterion = known.model, known.validation, CRITERIA[FEED_FORWARD]
    joint = model.joints[j]

    def verdict(ok: bool | None, value: float | None, words: str,
                shown_by: NextAction | None = None) -> UseVerdict:
        return UseVerdict(FEED_FORWARD, ok, value, criterion.threshold, criterion.unit, words,
                          shown_by)

    motion = validation.model.get('motion', {}).get(joint)
    if motion is None or not np.isfinite(motion.relative_error):
        return verdict(None, None, 'the recordings show no motion of it',
                       judging_motion(known.names, 'the recordings show no motion'))
    if known.sliding[j] < SLIDING:
        return verdict(None, None, f'it is held in {percent(1.0 - known.sliding[j])} % of the '
                       'motion, where friction takes what load it likes', judging_motion(
                           known.names, 'joints are held in most of the motion'))
    mean, value, words = _left(known, j)
    noise, beside = _beside(known, j)
    words += beside
    control = validation.control.get('motion', {}).get(joint)
    if control is not None and known.held is None and \
            motion.relative_error > AS_GOOD * control.relative_error:
        return verdict(False, value, f'{words}, use those')
    if noise**2 > NOISY:
        return verdict(False, value, f'{words}: its effort is noise')
    if value <= criterion.threshold:
        return verdict(True, value, words)
    if mean**2 - noise**2 > criterion.threshold**2:
        return verdict(False, value, words)
    if mean > criterion.threshold:
        return verdict(None, value, f'{words}, which hides it', averaged_motion(known.names))
    return verdict(None, value, words, judging_motion(known.names, DIFFER))


def _left(known: Evidence, j: int) -> tuple[float, float, str]:
    """Return the share of the effort that is left on average, on a new motion, and in words."""
    joint, held = known.model.joints[j], known.held
    whole, motion = (known.validation.model[part][joint] for part in ('all', 'motion'))
    value = motion.relative_error
    if held is None or not whole.relative_error > 0.0:
        return value, value, f'{percent(value)} % of the effort in motion is left'
    size = whole.rmse / whole.relative_error
    mean = max(value, float(np.sqrt(held.raw[j])) / size)
    new = max(mean, float(held.promise[j]) / size)
    return mean, new, (f'{percent(mean)} % of the effort is left on motion left out of the fit, '
                       f'up to {percent(new)} % on a new one, {percent(value)} % in all of it')


def _beside(known: Evidence, j: int) -> tuple[float, str]:
    """Return the share of noise in the effort, 0 if unknown, and what others leave, in words."""
    validation, joint, words = known.validation, known.model.joints[j], ''
    control = validation.control.get('motion', {}).get(joint)
    if control is not None:
        words = ', where nominal inertials with fitted friction leave ' \
            f'{percent(control.relative_error)} %'
    whole = validation.model['all'][joint]
    robot, noise = validation.repeatability, validation.noise
    if robot is None or noise is None or not whole.relative_error > 0.0:
        return 0.0, words
    own, noisy = (float(one[j]) * whole.relative_error / whole.rmse for one in (robot, noise))
    return noisy, f'{words}, the robot itself repeats to {percent(own)} %, and the noise of the ' \
        f'effort is {percent(noisy)} %'


def _contact(known: Evidence, j: int) -> UseVerdict:
    """Judge by false alarms, and by the push that is detected."""
    score, unit = known.validation.contact, known.unit(j)

    def verdict(ok: bool | None, value: float | None, words: str,
                criterion: Criterion = CRITERIA[CONTACT], shown_by: NextAction | None = None
                ) -> UseVerdict:
        return UseVerdict(CONTACT, ok, value, criterion.threshold, criterion.unit, words, shown_by)

    if score is None or not np.isfinite(score.push[j]):
        lacks = 'noise levels' if known.model.noise_levels is None else 'motion that was watched'
        return verdict(None, None, f'there is no {lacks}', shown_by=identify_again(
            known.model, known.names))
    alarms, hours = int(score.alarms[j]), float(score.seconds[j]) / 3600.0
    expected, push = score.rate(j), float(score.push[j])
    lever = max(float(score.lever[j]), LEAST_LEVER)
    most = min(TIP_PUSH * lever, float(score.effort[j]))
    value, sure = push / most, (push - float(score.excess[j])) / most
    words = f'a push of {number(push, 3)} {unit} at the joint, {number(push / lever, 3)} N at ' \
        f'the tip, is detected in 95 % of the motion; the joint exerts up to ' \
        f'{number(float(score.effort[j]), 3)} {unit}; {alarms or "no"} false alarm' \
        f'{"" if alarms == 1 else "s"} in {number(3600.0 * hours, 3)} s'
    if alarms and _fewest(alarms) / hours > FALSE_ALARMS.threshold:
        return verdict(False, alarms / hours, words, FALSE_ALARMS)
    if value > CRITERIA[CONTACT].threshold:
        shown = sure > CRITERIA[CONTACT].threshold
        return verdict(False if shown else None, value, words, shown_by=None if shown else (
            judging_motion(known.names, DIFFER)))
    if expected > FALSE_ALARMS.threshold:
        cause = 'the external torque without contact comes near its threshold'
        return verdict(None, expected, f'{words}, up to {number(expected, 2)} an hour to be '
                       'expected', FALSE_ALARMS, judging_motion(known.names, cause))
    if score.stops[j] < LEAST_STOPS:
        return verdict(None, value, f'{words}; it came to rest {score.stops[j]:.0f} times, where '
                       'friction is taken up', shown_by=stopping_motion(known.names))
    return verdict(True, value, words)


def _fewest(count: int) -> float:
    """Return the least mean of a Poisson variable with which ``count`` is no surprise."""
    from scipy.special import gammaincinv

    return float(gammaincinv(count, 1.0 - LEVEL))


def _simulation(known: Evidence, j: int) -> UseVerdict:
    """Judge by simulated motions from measured states, and by whether there can be any."""
    model, criterion = known.model, CRITERIA[SIMULATION]

    def verdict(ok: bool | None, value: float | None, words: str,
                shown_by: NextAction | None = None) -> UseVerdict:
        return UseVerdict(SIMULATION, ok, value, criterion.threshold, criterion.unit, words,
                          shown_by)

    if model.not_identified:
        return verdict(False, None, f'{", ".join(model.not_identified)} is refused, and a '
                       'simulation moves all joints at once')
    if known.findings:
        return verdict(False, None, 'the recordings contradict the robot, and a simulation moves '
                       'all joints at once')
    if any(INDEFINITE in warning for warning in model.warnings):
        return verdict(False, None, 'the mass matrix is not positive definite everywhere')
    errors = _rollout_errors(known)
    if errors is None:
        return verdict(None, None, 'no motion was simulated', simulated_motion(known.names))
    found, steady, nominal, stopped = errors
    if stopped:
        return verdict(False, None, f'{stopped} simulated motions stopped')
    unit = 'mm' if model.robot.types[j] == PRISMATIC else 'mrad'
    mean = float(found[j] / steady[j]) if steady[j] > 0.0 else np.inf
    value = mean * _growth(known, j)
    worse = nominal is not None and found[j] > AS_GOOD * nominal[j]
    words = (f'{number(1e3 * found[j], 3)} {unit} off over {SECONDS:g} s, '
             f'{number(1e3 * steady[j], 3)} {unit} at constant velocity')
    if nominal is not None:
        words += f', {number(1e3 * nominal[j], 3)} {unit} with nominal inertials' + (
            ', use those' if worse else '')
    if value <= criterion.threshold and not worse:
        return verdict(True, value, words)
    if worse or mean > criterion.threshold:
        return verdict(False, value, words)
    return verdict(None, value, f'{words}, and more on a new motion', judging_motion(
        known.names, DIFFER))


def _growth(known: Evidence, j: int) -> float:
    """Return the error of a joint on motion left out of the fit over that in the scores."""
    rmse = known.validation.model['all'][known.model.joints[j]].rmse
    return 1.0 if known.held is None or not rmse > 0.0 else max(
        float(np.sqrt(known.held.raw[j])) / rmse, 1.0)


def _rollout_errors(
    known: Evidence
) -> tuple[FloatArray, FloatArray, FloatArray | None, int] | None:
    """Return errors (n,) [rad, m] of the model, at constant velocity, of nominal inertials.

    And how many motions stopped; None where none was simulated.
    """
    horizon = None if known.forward is None else next(
        (h for h in known.forward.horizons if h.seconds == SECONDS), None)
    if horizon is not None:
        found, steady = horizon.scores['model'], horizon.scores['constant_velocity']
        beside = horizon.scores.get(CONTROL)
        nominal = None if beside is None or beside.stopped else beside.position
        return found.position, steady.position, nominal, found.stopped
    ran, still = known.validation.rollout, known.validation.steady
    return None if ran is None or still is None else (
        ran.position, still.position, None, ran.stopped)


def _joint_words(uses: Sequence[UseVerdict]) -> str:
    """Return the uses by verdict, and what speaks against."""
    by_word: Mapping[str, list[UseVerdict]] = {
        word: [use for use in uses if use.word == word]
        for word in ('good', 'not good', 'not shown')}
    found = []
    if by_word['good']:
        found.append(f'good for {", ".join(use.use for use in by_word["good"])}')
    found += [f'not good for {use.use} ({use.words})' for use in by_word['not good']]
    found += [f'{use.use} not shown ({use.words})' for use in by_word['not shown']]
    return '; '.join(found)


def _summary(joints: Sequence[JointVerdict]) -> str:
    """Return the uses the model is good for; those that go together are in one phrase."""
    together: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for i, use in enumerate(USES):
        words = {one.joint: one.uses[i].word for one in joints}
        places = tuple(tuple(joint for joint, word in words.items() if word == wanted)
                       for wanted in ('not good', 'not shown'))
        together.setdefault(places, []).append(use)
    found = []
    for (bad, open_), uses in sorted(together.items(), key=lambda item: sum(map(len, item[0]))):
        named = f'{", ".join(uses[:-1])} and {uses[-1]}' if len(uses) > 1 else uses[0]
        if len(open_) == len(joints):
            found.append(f'{named} not shown')
        elif len(bad) == len(joints):
            found.append(f'not good for {named}')
        else:
            good = [one.joint for one in joints if one.joint not in (*bad, *open_)]
            few = len(good) < len(bad)
            but = f' but {", ".join(bad)}' if bad else ''
            where = f'{", ".join(good)} only' if few else f'all joints{but}'
            open_words = f' (not shown in {", ".join(open_)})' if open_ else ''
            found.append(f'good for {named} in {where}{open_words}' if good else
                         f'not good for {named} in {", ".join(bad)}{open_words}')
    text = '; '.join(found)
    return f'{text[:1].upper()}{text[1:]}'
