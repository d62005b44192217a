"""The verdict on a model: uses it is good for, joint by joint, from what was scored already.

The criteria, with their reasons, are those of `robot_dynid.identified.suitability`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    FEED_FORWARD,
    GRAVITY,
    SIMULATION,
    USES,
    WITHOUT_FRICTION,
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
from robot_dynid.validation.next_actions import Names, next_actions
from robot_dynid.validation.residual_parts import SLIDES
from robot_dynid.validation.rollout_scores import SECONDS
from robot_dynid.validation.validate import Validation

#: poses at which the static effort is compared with its interval
POSES = 200
#: a model leaves no more than nominal inertials with fitted friction do, up to this factor, and
#: what it leaves is that of the robot itself up to this factor
AS_GOOD, ITSELF = 1.1, 1.25
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
    known = Evidence(model, validation, held, forward)
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
        largest = np.abs(columns @ model.values).max(axis=0)
        if model.correlation_factor is None:
            return largest, np.full(n, np.nan)
        factor = interval_factor(model.record.degrees_of_freedom or np.inf)
        half = factor * np.linalg.norm(columns @ model.covariance_factor.T, axis=2).max(axis=0)
        unknown = np.abs(columns[:, :, ~np.isfinite(model.std)]).max(axis=(0, 2), initial=0.0)
        return largest, np.where(unknown > 0.0, np.inf, half)

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
            '' if self.held is None else ', on stretches left out of it in turn')


def _joint(known: Evidence, j: int) -> JointVerdict:
    """Return the verdict on joint ``j``."""
    joint = known.model.joints[j]
    reason = _spoilt(known, joint)
    if reason:
        uses = tuple(UseVerdict(use, False, None, CRITERIA[use].threshold, CRITERIA[use].unit,
                                reason) for use in USES)
        return JointVerdict(joint, uses, reason)
    uses = tuple(judge(known, j) for judge in (_gravity, _feed_forward, _contact, _simulation))
    return JointVerdict(joint, uses, _joint_words(uses))


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
    unit = known.unit(j)
    criterion = CRITERIA[GRAVITY]

    def verdict(ok: bool | None, value: float | None, words: str) -> UseVerdict:
        return UseVerdict(GRAVITY, ok, value, criterion.threshold, criterion.unit, words)

    if known.model.robot.drive.kind == 'gravity_compensated_torque':
        return verdict(None, None, 'the efforts are without weight, which the drives compensate')
    if np.isnan(half):
        return verdict(None, None, 'the model file has no covariance: identify again')
    if np.isinf(half):
        return verdict(False, None, 'a parameter of its weight is not excited by the motion')
    parts = known.validation.parts
    error = float(np.hypot(half, 0.0 if parts is None else parts.static[j]))
    held = float(known.holding[j])
    of_weight = f'static effort of up to {number(largest, 3)} {unit} known to ' \
        f'{number(error, 2)} {unit}'
    if held <= NO_FRICTION * largest or held == 0.0:
        criterion = WITHOUT_FRICTION
        value = error / largest if largest > 0.0 else np.inf
        return verdict(value <= criterion.threshold, value,
                       f'{of_weight} ({percent(value)} %), and no dry friction holds it')
    value, ok = error / held, error <= criterion.threshold * held
    return verdict(ok, value, f'{of_weight}, against dry friction of {number(held, 3)} {unit}: it '
                   f'{"stays where it is released" if ok else "may drift when it is released"}')


def _feed_forward(known: Evidence, j: int) -> UseVerdict:
    """Judge by what is left of the effort in motion, beside nominal inertials and the robot."""
    model, validation, criterion = known.model, known.validation, CRITERIA[FEED_FORWARD]
    joint, whole = model.joints[j], validation.model['all'][model.joints[j]]
    motion = validation.model.get('motion', {}).get(joint)
    if motion is None or not np.isfinite(motion.relative_error):
        return UseVerdict(FEED_FORWARD, None, None, criterion.threshold, criterion.unit,
                          'the recordings show no motion of it')
    if known.sliding[j] < SLIDING:
        return UseVerdict(
            FEED_FORWARD, None, None, criterion.threshold, criterion.unit,
            f'it is held in {percent(1.0 - known.sliding[j])} % of the motion, where friction '
            'takes what load it likes: validate on a motion of all joints')
    size = whole.rmse / whole.relative_error if whole.relative_error > 0.0 else np.inf
    value = motion.relative_error
    words = [f'{percent(value)} % of the effort in motion is left']
    if known.held is not None:
        value = max(value, float(np.sqrt(known.held.raw[j])) / size)
        words = [f'{percent(value)} % of the effort is left on stretches left out of the fit',
                 f'{percent(motion.relative_error)} % in all of it']
    control = validation.control.get('motion', {}).get(joint)
    worse = control is not None and known.held is None and \
        motion.relative_error > AS_GOOD * control.relative_error
    own = None if validation.repeatability is None else float(validation.repeatability[j]) / size
    ok = not worse and (value <= criterion.threshold or (
        own is not None and value <= ITSELF * own))
    if control is not None:
        words.append('where nominal inertials with fitted friction leave '
                     f'{percent(control.relative_error)} %')
    if own is not None:
        words.append(f'the robot itself repeats to {percent(own)} %')
    if worse:
        words.append('use those')
    return UseVerdict(FEED_FORWARD, ok, value, criterion.threshold, criterion.unit,
                      ', '.join(words))


def _contact(known: Evidence, j: int) -> UseVerdict:
    """Judge by the smallest external torque that is always seen."""
    model, levels, unit = known.model, known.model.noise_levels, known.unit(j)
    threshold = CRITERIA[CONTACT].threshold
    limit, of = model.robot.limits.effort[j], 'effort limit'
    if not (np.isfinite(limit) and limit > 0.0):
        efforts = model.trained.quantities.get('effort')
        limit = np.nan if efforts is None else np.abs(efforts[j]).max()
        of = 'largest effort recorded'
    if levels is None or not limit > 0.0:
        lacks = 'noise levels' if levels is None else 'an effort limit'
        return UseVerdict(CONTACT, None, None, threshold, f'of the {of}', f'there is no {lacks}')
    moving = float(levels.moving[j])
    parts = known.validation.parts
    if parts is not None and levels.deflected is None:
        moving = max(moving, float(parts.external[j]))
    slow = moving + float(levels.holding[j])
    value = slow / float(limit)
    words = (f'external torque is seen from {number(moving, 3)} {unit} in motion and '
             f'{number(slow, 3)} {unit} while it is slow, {percent(value)} % of its {of} of '
             f'{number(float(limit), 3)} {unit}')
    return UseVerdict(CONTACT, value <= threshold, value, threshold, f'of the {of}', words)


def _simulation(known: Evidence, j: int) -> UseVerdict:
    """Judge by simulated motions from measured states, and by whether there can be any."""
    model, criterion = known.model, CRITERIA[SIMULATION]

    def verdict(ok: bool | None, value: float | None, words: str) -> UseVerdict:
        return UseVerdict(SIMULATION, ok, value, criterion.threshold, criterion.unit, words)

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
        return verdict(None, None, 'no motion was simulated (validate --forward does)')
    found, steady, nominal, stopped = errors
    if stopped:
        return verdict(False, None, f'{stopped} simulated motions stopped')
    unit = 'mm' if model.robot.types[j] == PRISMATIC else 'mrad'
    value = float(found[j] / steady[j]) if steady[j] > 0.0 else np.inf
    worse = nominal is not None and found[j] > AS_GOOD * nominal[j]
    words = (f'{number(1e3 * found[j], 3)} {unit} off over {SECONDS:g} s, '
             f'{number(1e3 * steady[j], 3)} {unit} at constant velocity')
    if nominal is not None:
        words += f', {number(1e3 * nominal[j], 3)} {unit} with nominal inertials' + (
            ', use those' if worse else '')
    return verdict(value <= criterion.threshold and not worse, value, words)


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
        word: [use for use in uses if use.word == word] for word in ('good', 'not', 'not judged')}
    found = []
    if by_word['good']:
        found.append(f'good for {", ".join(use.use for use in by_word["good"])}')
    found += [f'not for {use.use} ({use.words})' for use in by_word['not']]
    found += [f'{use.use} not judged ({use.words})' for use in by_word['not judged']]
    return '; '.join(found)


def _summary(joints: Sequence[JointVerdict]) -> str:
    """Return the uses the model is good for; those that go together are in one phrase."""
    together: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for i, use in enumerate(USES):
        words = {one.joint: one.uses[i].word for one in joints}
        places = tuple(tuple(joint for joint, word in words.items() if word == wanted)
                       for wanted in ('not', 'not judged'))
        together.setdefault(places, []).append(use)
    found = []
    for (bad, open_), uses in sorted(together.items(), key=lambda item: sum(map(len, item[0]))):
        named = f'{", ".join(uses[:-1])} and {uses[-1]}' if len(uses) > 1 else uses[0]
        if len(open_) == len(joints):
            found.append(f'{named} not judged')
        elif len(bad) == len(joints):
            found.append(f'not good for {named}')
        else:
            good = [one.joint for one in joints if one.joint not in (*bad, *open_)]
            few = len(good) < len(bad)
            but = f' but {", ".join(bad)}' if bad else ''
            where = f'{", ".join(good) or "no joint"} only' if few else f'all joints{but}'
            open_words = f' (not judged in {", ".join(open_)})' if open_ else ''
            found.append(f'good for {named} in {where}{open_words}')
    text = '; '.join(found)
    return f'{text[:1].upper()}{text[1:]}'
