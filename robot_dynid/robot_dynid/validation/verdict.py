"""The verdict on a model: the uses it is good for, joint by joint, from existing scores.

The criteria, with their reasons, are those of `robot_dynid.identified.suitability`. A use is good
if the number certainly meets its criterion, not good if it certainly does not, and not shown if
the recordings leave it open. Certain means: on distinct motion that was not fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import Action, Card, listed, number, percent, share_of, subject
from robot_dynid.estimation.uncertainty.held_out import HeldOut
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import INDEFINITE
from robot_dynid.identified.suitability import (
    CONTACT,
    CRITERIA,
    FALSE_ALARMS,
    FEED_FORWARD,
    GRAVITY,
    MOST_ACTIONS,
    SIMULATION,
    USES,
    WITHOUT_FRICTION,
    Criterion,
    JointVerdict,
    UseVerdict,
    Verdict,
)
from robot_dynid.plausibility.finding import Finding
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray
from robot_dynid.validation.evidence import Evidence, Names
from robot_dynid.validation.forward_scores import ForwardValidation
from robot_dynid.validation.next_actions import next_actions
from robot_dynid.validation.rollout_scores import CONTROL, ROLLOUT_SECONDS
from robot_dynid.validation.validate import JointScore, Validation

#: why the verdict is open although the average error is small
DIFFER = 'the error differs too much between motions'
#: ratio of errors up to which nominal inertials with fitted friction are as good as a model
AS_GOOD_RATIO = 1.1
#: static error exceeded in few poses only, relative to the root mean square along a motion
EXTREME = 1.5
#: share of dry friction by which it commonly differs between the directions of a joint: while the
#: joint slides this looks like an offset of the effort, but at rest there is none
UNEVEN = 0.1
#: share of noise in the power of an effort above which the effort is noise
NOISE_POWER_SHARE = 0.5
#: smallest distance of the tip from an axis [m] that counts; push [N] at the tip
LEAST_LEVER, TIP_PUSH = 0.1, 140.0
#: number of stops that show the load which friction takes up at rest
LEAST_STOPS = 5
#: significance level of more false alarms than allowed
ALARM_LEVEL = 0.95
#: share of the largest static effort below which dry friction does not hold a joint
NO_FRICTION = 1e-3
#: a joint that slides (JOINT_SLIDES) in less of the motion than this is mostly held while others
#: move
SLIDING_SHARE = 0.5
#: lack of a fit from a single recording
THIN = 'Weak evidence: the model was fitted to one recording.'


@one_blas_thread()
def judged(
    model: IdentifiedModel, validation: Validation, held: HeldOut | None = None,
    forward: ForwardValidation | None = None, names: Names | None = None,
) -> Verdict:
    """Return the verdict on ``model`` from its scores on recordings.

    ``held`` are the errors on held-out stretches of the training recordings, if they were scored;
    ``forward`` the scores of forward dynamics, if there are any; ``names`` those that commands
    need.
    """
    names = names or Names.of(model)
    evidence = Evidence(model, validation, names, held, forward)
    joints = tuple(_joint(evidence, j) for j in range(model.robot.n))
    thin = THIN if len(model.record.recordings) == 1 else ''
    notes = (evidence.words, thin, already_good(model, validation))
    return Verdict(tuple(filter(None, notes)), joints,
                   next_actions(evidence, joints)[:MOST_ACTIONS], _errors(validation, held))


def relative_errors(scores: Mapping[str, JointScore], held: HeldOut | None) -> dict[str, float]:
    """Return the relative error of every joint: on ``held``-out motion where that was scored."""
    errors = {joint: one.relative_error for joint, one in scores.items()}
    if held is None:
        return errors
    return {joint: max(share, share / scores[joint].rmse * float(np.sqrt(raw)))
            if scores[joint].rmse > 0.0 else share
            for (joint, share), raw in zip(errors.items(), held.raw)}


def _errors(validation: Validation, held: HeldOut | None) -> tuple[Card, Card]:
    """Return the median and the largest of the errors of the joints."""
    errors = relative_errors(validation.model['all'], held)
    joint = max(errors, key=errors.__getitem__)
    return (Card('median error', share_of(float(np.median(list(errors.values()))), 'the effort')),
            Card(f'largest error, {joint}', share_of(errors[joint], 'the effort')))


def already_good(model: IdentifiedModel, validation: Validation) -> str:
    """Return a sentence on the joints whose URDF has no larger error in motion, or ''."""
    ours, nominal = (scores.get('motion', {}) for scores in (validation.model, validation.control))
    equal = [joint for joint in model.joints
             if joint in ours and joint in nominal and joint not in model.not_identified
             and nominal[joint].relative_error <= AS_GOOD_RATIO * ours[joint].relative_error]
    where = 'all joints' if len(equal) == len(model.joints) else listed(equal)
    return 'The inertials of the URDF with fitted friction are as good in ' \
        f'{where} (within {100.0 * (AS_GOOD_RATIO - 1.0):.0f} %).' if equal else ''


def refused_recordings(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on recordings refused before any fit, for ``findings``."""
    causes = '; '.join(dict.fromkeys(map(_contradiction, findings)))
    actions = dict.fromkeys(f'in {f.recording}{f.of_joints}: {f.remedy}' for f in findings)
    return Verdict((f'No model: the recordings contradict the robot. {causes}.',),
                   actions=tuple(map(Action, actions))[:MOST_ACTIONS])


def _contradiction(finding: Finding) -> str:
    return f'{finding.kind.replace("_", " ")}{finding.of_joints}: {finding.looks_like}'


def _joint(evidence: Evidence, j: int) -> JointVerdict:
    """Return the verdict on joint ``j``: good only if the evidence has no gap."""
    joint, gap = evidence.model.joints[j], evidence.gaps[j]
    reason = _spoilt(evidence, joint)
    if reason:
        return JointVerdict(joint, tuple(_use(use, False, None, reason) for use in USES), reason)
    uses = (judge(evidence, j) for judge in (_gravity, _feed_forward, _contact, _simulation))
    shown = tuple(replace(use, ok=None, shown_by=gap) if gap is not None and use.ok else use
                  for use in uses)
    return JointVerdict(joint, shown, _joint_words(shown))


def _spoilt(evidence: Evidence, joint: str) -> str:
    """Return the reason why a joint is unusable, '' if its numbers decide.

    A fault in several joints counts for all: it shows in joints with large weight.
    """
    model = evidence.model
    if joint in model.not_identified:
        reason = model.record.refused.get(joint, 'the data gives no model of its effort')
        return f'refused: {reason}'
    fault = next((f for f in evidence.findings if len(f.joints) != 1 or joint in f.joints), None)
    return _contradiction(fault) if fault else ''


def _use(
    use: str, ok: bool | None, value: float | None, words: str,
    shown_by: Action | None = None, criterion: Criterion | None = None,
) -> UseVerdict:
    """Return a verdict by the criterion of its use, or by another one."""
    criterion = criterion or CRITERIA[use]
    return UseVerdict(use, ok, value, criterion.threshold, criterion.unit, words, shown_by)


def _gravity(evidence: Evidence, j: int) -> UseVerdict:
    """Judge by the error of the static effort against the dry friction that holds the joint."""
    largest, half = (float(part[j]) for part in evidence.static)
    unit, names, model = evidence.unit(j), evidence.names, evidence.model
    parts, held = evidence.validation.parts, float(evidence.holding[j])
    free = held <= NO_FRICTION * largest
    criterion = WITHOUT_FRICTION if free else CRITERIA[GRAVITY]

    def verdict(ok: bool | None, value: float | None, words: str,
                shown_by: Action | None = None) -> UseVerdict:
        return _use(GRAVITY, ok, value, words, shown_by, criterion)

    if model.robot.drive.kind == 'gravity_compensated_torque':
        return verdict(None, None, 'the efforts do not contain gravity, because the drives '
                       'compensate it: record efforts before the compensation')
    if np.isnan(half):
        return verdict(None, None, 'the model file has no covariance', _again(evidence))
    if np.isinf(half):
        return verdict(None, None, 'a parameter of its weight is not excited by the motion',
                       names.static_poses)
    if largest == 0.0:
        return verdict(True, 0.0, 'gravity does not load it')
    seen = EXTREME * (0.0 if parts is None else float(parts.static[j]))
    error = float(np.linalg.norm([half, seen, EXTREME * evidence.beyond[j], UNEVEN * held]))
    value, sure = (one / (largest if free else held) for one in (error, seen))
    ok = True if value <= criterion.threshold else False if sure > criterion.threshold else None
    words = f'static effort up to {number(largest, 3)} {unit} with an error of ' \
        f'{number(error, 2)} {unit}'
    words += f' ({percent(value)} %), and the joint has no dry friction to hold it' if free else (
        f'; dry friction {number(held, 3)} {unit}: the joint ' + (
            'stays where it is released' if ok else 'may drift when it is released'))
    return verdict(ok, value, words, names.static_poses if ok is None else None)


def _again(evidence: Evidence) -> Action:
    """Return the command for a model file without the fields of later versions."""
    return evidence.names.identify('the model file lacks what the verdict needs: identify again',
                                   evidence.model)


def _feed_forward(evidence: Evidence, j: int) -> UseVerdict:
    """Judge by the unpredicted effort in motion, compared with nominal inertials."""
    names, joint = evidence.names, evidence.model.joints[j]
    threshold, sliding = CRITERIA[FEED_FORWARD].threshold, float(evidence.sliding[j])
    motion = evidence.error('motion', joint)
    if motion is None or not np.isfinite(motion):
        return _use(FEED_FORWARD, None, None, 'the recordings show no motion of it',
                    names.judging_motion('the recordings show no motion'))
    if sliding < SLIDING_SHARE:
        return _use(FEED_FORWARD, None, None, 'static friction holds it in '
                    f'{percent(1.0 - sliding)} % of the motion, and takes up part of its load',
                    names.judging_motion('static friction holds joints in most of the motion'))
    mean, value, words = _left(evidence, j)
    noise, compared = _compared(evidence, j)
    words += compared
    control = evidence.error('motion', joint, control=True)
    if control is not None and evidence.held is None and motion > AS_GOOD_RATIO * control:
        return _use(FEED_FORWARD, False, value, f'{words}: use those inertials')
    if noise**2 > NOISE_POWER_SHARE:
        return _use(FEED_FORWARD, False, None, f'{words}: its effort is mostly noise')
    if value <= threshold:
        return _use(FEED_FORWARD, True, value, words)
    if mean**2 - noise**2 > threshold**2:
        return _use(FEED_FORWARD, False, value, words)
    if mean > threshold:
        return _use(FEED_FORWARD, None, value, f'{words}, which hides the error', names.design(
            'noise of the effort hides the error of the model: record many periods and average '
            'them (recipe period: auto)', 'fourier', 'periods.yaml', '--periods', '20'))
    return _use(FEED_FORWARD, None, value, words, names.judging_motion(DIFFER))


def _left(evidence: Evidence, j: int) -> tuple[float, float, str]:
    """Return the unpredicted share of the effort on average, on a new motion, and in words."""
    joint, held = evidence.model.joints[j], evidence.held
    whole, motion = (evidence.validation.model[part][joint] for part in ('all', 'motion'))
    value = motion.relative_error
    if held is None or not whole.relative_error > 0.0:
        return value, value, f'{percent(value)} % of the effort in motion is unpredicted'
    size = whole.rmse / whole.relative_error
    mean = max(value, float(np.sqrt(held.raw[j])) / size)
    new = max(mean, float(held.promise[j]) / size)
    return mean, new, (f'{percent(mean)} % of the effort is unpredicted on held-out motion, up to '
                       f'{percent(new)} % on a new motion, {percent(value)} % in all motion')


def _compared(evidence: Evidence, j: int) -> tuple[float, str]:
    """Return the share of noise in the effort, 0 if unknown, and the errors of others in words."""
    validation, joint, words = evidence.validation, evidence.model.joints[j], ''
    control = evidence.error('motion', joint, control=True)
    if control is not None:
        words = f'; URDF inertials with fitted friction leave {percent(control)} %'
    whole = validation.model['all'][joint]
    robot, noise = validation.repeatability, validation.noise
    if robot is None or noise is None or not whole.relative_error > 0.0:
        return 0.0, words
    repeats, noisy = (float(one[j]) * whole.relative_error / whole.rmse for one in (robot, noise))
    return noisy, f'{words}, the robot repeats its effort within {percent(repeats)} %, ' \
        f'and the noise of the effort is {percent(noisy)} %'


def _contact(evidence: Evidence, j: int) -> UseVerdict:
    """Judge by false alarms, and by the detectable push."""
    score, unit, names = evidence.validation.contact, evidence.unit(j), evidence.names
    threshold = CRITERIA[CONTACT].threshold
    if score is None or not np.isfinite(score.push[j]):
        if evidence.model.robot.linkage is not None:
            return _use(CONTACT, None, None, 'contact detection does not support coupled joints')
        if evidence.model.noise_levels is None:
            return _use(CONTACT, None, None, 'the model file has no noise levels',
                        _again(evidence))
        words = 'the recordings show no motion in which contacts would be detected'
        return _use(CONTACT, None, None, words, names.judging_motion(words))
    alarms, hours = int(score.alarms[j]), float(score.seconds[j]) / 3600.0
    expected, push, effort = score.rate(j), float(score.push[j]), float(score.effort[j])
    lever = max(float(score.lever[j]), LEAST_LEVER)
    largest = min(TIP_PUSH * lever, effort)
    value, sure = push / largest, (push - float(score.excess[j])) / largest
    words = f'a push of {number(push, 3)} {unit} at the joint, {number(push / lever, 3)} N at ' \
        f'the tip, is detected in 95 % of the motion; the joint exerts up to ' \
        f'{number(effort, 3)} {unit}; {alarms or "no"} false alarm' \
        f'{"" if alarms == 1 else "s"} in {number(3600.0 * hours, 3)} s'
    if alarms and _fewest(alarms) / hours > FALSE_ALARMS.threshold:
        return _use(CONTACT, False, alarms / hours, words, criterion=FALSE_ALARMS)
    if sure > threshold:
        return _use(CONTACT, False, value, words)
    if value > threshold:
        return _use(CONTACT, None, value, words, names.judging_motion(DIFFER))
    if expected > FALSE_ALARMS.threshold:
        return _use(CONTACT, None, expected,
                    f'{words}, up to {number(expected, 2)} per hour expected',
                    names.judging_motion(
                        'external torque without contact comes near the contact threshold'),
                    FALSE_ALARMS)
    if score.stops[j] < LEAST_STOPS:
        return _use(CONTACT, None, value, f'{words}; it came to rest {score.stops[j]:.0f} times, '
                    'and static friction carries part of the load at rest', names.design(
                        'the joints hardly come to rest: record static poses and validate the '
                        'model on them',
                        'static-poses', 'stops.yaml'))
    return _use(CONTACT, True, value, words)


def _fewest(count: int) -> float:
    """Return the smallest mean of a Poisson variable for which ``count`` is not significant."""
    from scipy.special import gammaincinv

    return float(gammaincinv(count, 1.0 - ALARM_LEVEL))


def _never_simulated(evidence: Evidence) -> UseVerdict | None:
    """Return the verdict on simulation if no simulation can be good or none is supported."""
    model, spoilt = evidence.model, ''
    if model.robot.linkage is not None:
        return _use(SIMULATION, None, None, 'simulation does not support coupled joints')
    if model.not_identified:
        spoilt = f'{subject(model.not_identified)} refused, and a simulation moves all joints'
    elif evidence.findings:
        spoilt = 'the recordings contradict the robot, and a simulation moves all joints'
    elif any(INDEFINITE in warning for warning in model.warnings):
        spoilt = 'the mass matrix is not positive definite everywhere'
    return _use(SIMULATION, False, None, spoilt) if spoilt else None


def _simulation(evidence: Evidence, j: int) -> UseVerdict:
    """Judge by simulated motions from measured states, if simulation is possible."""
    model, threshold = evidence.model, CRITERIA[SIMULATION].threshold
    spoilt = _never_simulated(evidence)
    if spoilt is not None:
        return spoilt
    errors = _rollout_errors(evidence)
    if errors is None:
        return _use(SIMULATION, None, None, 'no motion was simulated', Action(
            'no motion was simulated: validate with --forward', evidence.score_forward))
    model_errors, steady, nominal, stopped = errors
    if stopped:
        return _use(SIMULATION, False, None, f'{stopped} simulations ended early')
    unit = 'mm' if model.robot.types[j] == PRISMATIC else 'mrad'
    mean = float(model_errors[j] / steady[j]) if steady[j] > 0.0 else np.inf
    rmse = evidence.validation.model['all'][model.joints[j]].rmse
    growth = 1.0 if evidence.held is None or not rmse > 0.0 else max(
        float(np.sqrt(evidence.held.raw[j])) / rmse, 1.0)  # on motion left out of the fit
    value = mean * growth
    worse = nominal is not None and model_errors[j] > AS_GOOD_RATIO * nominal[j]
    words = (f'RMS error {number(1e3 * model_errors[j], 3)} {unit} over {ROLLOUT_SECONDS:g} s, '
             f'{number(1e3 * steady[j], 3)} {unit} at constant velocity')
    if nominal is not None:
        words += f', {number(1e3 * nominal[j], 3)} {unit} with URDF inertials' + (
            ': use those inertials' if worse else '')
    if worse or mean > threshold:
        return _use(SIMULATION, False, value, words)
    if value <= threshold:
        return _use(SIMULATION, True, value, words)
    return _use(SIMULATION, None, value, f'{words}, and more on a new motion',
                evidence.names.judging_motion(DIFFER))


def _rollout_errors(
    evidence: Evidence
) -> tuple[FloatArray, FloatArray, FloatArray | None, int] | None:
    """Return errors (n,) [rad, m] of the model, at constant velocity, of nominal inertials.

    And the number of stopped motions; None if none was simulated.
    """
    horizon = None if evidence.forward is None else next(
        (h for h in evidence.forward.horizons if h.seconds == ROLLOUT_SECONDS), None)
    if horizon is not None:
        score, steady = horizon.scores['model'], horizon.scores['constant_velocity']
        control = horizon.scores.get(CONTROL)
        nominal = None if control is None or control.stopped else control.position
        return score.position, steady.position, nominal, score.stopped
    ran, still = evidence.validation.rollout, evidence.validation.steady
    return None if ran is None or still is None else (
        ran.position, still.position, None, ran.stopped)


def _joint_words(uses: Sequence[UseVerdict]) -> str:
    """Return the uses by verdict, and the reasons against them."""
    good = [use.use for use in uses if use.word == 'good']
    return '; '.join([
        *([f'good for {", ".join(good)}'] if good else []),
        *(f'not good for {use.use} ({use.words})' for use in uses if use.word == 'not good'),
        *(f'{use.use} not shown ({use.words})' for use in uses if use.word == 'not shown')])
