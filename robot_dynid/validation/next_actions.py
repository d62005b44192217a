"""Next actions: remedies for what a model lacks, the most valuable first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from robot_dynid.document import number, percent
from robot_dynid.estimation.friction_selection.law_request import COULOMB
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import INDEFINITE
from robot_dynid.identified.suitability import (
    CONTACT,
    FEED_FORWARD,
    GRAVITY,
    JointVerdict,
    NextAction,
)
from robot_dynid.robot.implausible import described, without_inertials
from robot_dynid.validation.evidence import Evidence, static_columns
from robot_dynid.validation.validate import NEAR

#: friction of one joint explains this share of what is left of another one: one motor turns
#: both
COUPLED = 0.7
#: relative error of a joint up to which nobody looks for the motor of another in what is left
SLIGHT = 0.01
#: friction that differs by this share from one recording to the next shows in every prediction
DIFFERS = 0.1
#: near reversals a joint errs by this factor more than in all motion where its law is too simple
SIMPLE = 1.5
#: effort that is late by more [s] than this, and is not corrected, was stamped elsewhere
LATE_EFFORT = 2e-3
#: identified and nominal weight differ by this share of the nominal one where something is mounted
HEAVIER = 0.15
#: poses in which weights are compared
WEIGHED_POSES = 100


def next_actions(evidence: Evidence, joints: Sequence[JointVerdict]) -> tuple[NextAction, ...]:
    """Return the actions, the most valuable first; ``joints`` are the verdicts on them."""
    showing = tuple(dict.fromkeys(use.shown_by for joint in joints for use in joint.uses
                                  if use.shown_by is not None))
    coupled = list(_coupled(evidence))
    found = [*_about_data(evidence, coupled), *showing,
             *_about_motion(evidence, joints, coupled), *_about_recordings(evidence),
             *_about_friction(evidence), *_about_load(evidence)]
    seen = set(evidence.model.record.recordings)
    if all(trace.source in seen for trace in evidence.validation.traces) and not showing:
        found.append(evidence.names.judging_motion(
            'the model was judged on recordings of its fit'))
    return tuple(dict.fromkeys((*found, *_about_sensors(evidence.model, joints))))


def _about_data(
    evidence: Evidence, coupled: Sequence[tuple[str, float]]
) -> Iterator[NextAction]:
    """Yield faults of the data itself: until they are gone, nothing else helps."""
    model = evidence.model
    for finding in evidence.findings:
        of = f' of {", ".join(finding.joints)}' if finding.joints else ''
        yield NextAction(f'{finding.remedy} ({finding.recording}{of}: {finding.looks_like})')
    for pair, share in coupled:
        yield NextAction(
            f'state in the robot YAML under coupling which motor turns with {pair}: friction '
            f'of one explains {percent(share)} % of what the model leaves of the other')
    for joint in model.not_identified:
        reason = model.record.refused.get(joint, 'the data gives no model of its effort')
        yield NextAction(f'check the effort signal of {joint} (cable, column, driver) and record '
                         f'again: {reason}')


def _coupled(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """Yield pairs of joints that one motor turns, though the robot does not say so.

    With the larger of the shares that one explains of the other.
    """
    robot, parts = evidence.model.robot, evidence.validation.parts
    if parts is None:
        return
    for j, k in zip(*np.nonzero(parts.caused > COUPLED), strict=True):
        stated = robot.drive.coupling is not None and np.any(
            (robot.drive.coupling[:, j] != 0.0) & (robot.drive.coupling[:, k] != 0.0))
        if not stated and (evidence.error('all', robot.joints[j]) or 0.0) > SLIGHT:
            yield (f'{robot.joints[min(j, k)]} and {robot.joints[max(j, k)]}',
                   float(max(parts.caused[j, k], parts.caused[k, j])))


def _about_motion(
    evidence: Evidence, joints: Sequence[JointVerdict], coupled: Sequence[tuple[str, float]]
) -> Iterator[NextAction]:
    """Yield motions that show what the recordings do not."""
    model, names = evidence.model, evidence.names
    if any(INDEFINITE in warning for warning in model.warnings) and not model.not_identified:
        yield names.identify('identify what bodies can have: the mass matrix is not positive '
                             'definite everywhere', model, '--method', 'feasible')
    if evidence.still:
        yield evidence.wider_motion
    unknown = [name for name, std in zip(model.names, model.std, strict=True)
               if not np.isfinite(std)]
    if unknown:
        yield names.design(f'record a motion that excites {", ".join(unknown)}: what the model '
                           'has there is no measurement', 'fourier', 'excitation.yaml')
    pairs = ' '.join(pair for pair, _ in coupled).split()
    heavy, left = ([joint for joint in _not_for(joints, use, model) if joint not in pairs]
                   for use in (GRAVITY, FEED_FORWARD))
    fitted = model.record.residual
    if left and fitted is not None and fitted.loops == 'three':
        yield names.identify(
            f'fit friction and links at once, with a law from the data: much of the effort of '
            f'{", ".join(left)} is left by the friction of sweeps (recipe without loops: three)',
            model)
    elif left:
        yield names.design(
            f'record sweeps at constant velocity: much of the effort of {", ".join(left)} is '
            'left, and friction is the largest part of what models miss',
            'constant-velocity', 'sweeps.yaml')
    if heavy:
        yield names.static_poses


def _not_for(joints: Sequence[JointVerdict], use: str, model: IdentifiedModel) -> list[str]:
    """Return the joints, but refused ones, whose numbers are not good for a use."""
    return [one.joint for one in joints if one.joint not in model.not_identified
            and any(u.use == use and u.ok is False and u.words != one.words for u in one.uses)]


def _about_recordings(evidence: Evidence) -> Iterator[NextAction]:
    """Yield recordings that the fit lacks."""
    model, validation, names = evidence.model, evidence.validation, evidence.names
    if len(model.record.recordings) == 1:
        yield names.design(
            'record another motion on another day and identify from both: one recording does not '
            'show how friction changes from day to day, and its intervals are wide',
            'fourier', 'another.yaml', '--seed', '1')
    alarms = () if validation.contact is None or not validation.contact.alarms.any() else \
        tuple(dict.fromkeys(t.source for t in validation.traces
                            if t.source not in model.record.recordings))
    if alarms:
        yield names.identify('identify from these recordings, too: without contact the monitor '
                             'reports some', model, more=alarms)
    outside = {t.source: t.outside for t in validation.traces if t.outside}
    if outside:
        joints: dict[str, dict[str, None]] = {}
        for one in (one for found in outside.values() for one in found):
            joints.setdefault(one.quantity, {})[one.joint] = None
        what = '; '.join(f'{quantity} of {", ".join(of)}' for quantity, of in joints.items())
        yield names.identify('identify from these recordings, too: the test exceeds the training '
                             f'range in {what}', model, more=tuple(outside))


def _about_friction(evidence: Evidence) -> Iterator[NextAction]:
    """Yield recordings and choices by which friction is known better."""
    model, names = evidence.model, evidence.names
    differs = {kind: share for kind, share in (model.record.friction_spread or {}).items()
               if share > DIFFERS}
    if differs:
        words = ', '.join(f'{kind} {percent(share)} %' for kind, share in differs.items())
        yield names.design(
            f'record from the cold robot until it is warm, or warm it up before each recording: '
            f'friction differs from one recording to the next ({words})',
            'fourier', 'warm_up.yaml', '--periods', '30')
    chosen = any(len(choice.tried) > 1 for choice in model.record.friction)
    simple = [joint for j, joint in enumerate(model.joints)
              if not chosen and model.structure.friction[j] == COULOMB
              and (evidence.error(NEAR, joint) or 0.0) > SIMPLE * (
                  evidence.error('motion', joint) or 0.0)]
    if simple:
        yield names.identify(f'let the data choose the friction law of {", ".join(simple)}: near '
                             f'reversals it errs {SIMPLE:g} times as much as in all motion', model)
    lag = model.record.effort_lag
    if lag is not None and lag.significant and abs(lag.seconds) > LATE_EFFORT \
            and model.preprocessing.effort_lag == 0.0:
        yield NextAction(f'stamp effort and position together: effort comes '
                         f'{number(1e3 * lag.seconds, 3)} ms late')


def _about_load(evidence: Evidence) -> Iterator[NextAction]:
    """Yield a load that the description of the robot does not know."""
    model = evidence.model
    heavier = {} if evidence.findings else _heavier(model)
    if heavier:
        words = ', '.join(f'{joint} {percent(share)} % of it' if np.isfinite(share) else
                          f'{joint}, which has none' for joint, share in heavier.items())
        yield NextAction('put what was mounted into the URDF, or identify it as a payload '
                         '(robot-dynid payload): weight differs from that of the nominal links, '
                         f'{words}' + ''.join(f' ({one})' for one in without_inertials(
                             model.robot)))


def _heavier(model: IdentifiedModel) -> dict[str, float]:
    """Return the share by which weight differs from the nominal one, where beyond the interval."""
    if model.correlation_factor is None or \
            model.robot.drive.kind == 'gravity_compensated_torque':
        return {}
    columns = static_columns(model, WEIGHED_POSES)
    # over poses: offsets are no weight
    off, nominal = (np.std(columns @ values, axis=0)
                    for values in (model.values - model.control, model.control))
    sure = 3.0 * np.sqrt(np.mean(np.sum(
        (columns @ model.covariance_factor.T)**2, axis=2), axis=0))
    largest, known = float(nominal.max()), described(model.robot)
    return {joint: float(off[j] / nominal[j]) if nominal[j] > SLIGHT * largest else np.inf
            for j, joint in enumerate(model.joints)
            if joint not in model.not_identified and known[j] and off[j] > max(
                HEAVIER * nominal[j], float(sure[j]), HEAVIER * 0.2 * largest)}


def _about_sensors(
    model: IdentifiedModel, joints: Sequence[JointVerdict]
) -> Iterator[NextAction]:
    """Yield gear ratios that are not stated, and sensors for pushes that dry friction hides."""
    if model.robot.drive.gear_ratios is None and model.robot.drive.shows_motors:
        yield NextAction('state gear_ratios in the robot YAML: they are needed to identify gear '
                         'ripple and to use motor states')
    levels = model.noise_levels
    held = [joint for joint in _not_for(joints, CONTACT, model) if levels is not None
            and levels.holding[model.joints.index(joint)]
            > levels.moving[model.joints.index(joint)]]
    if held:
        yield NextAction(f'measure torque or position behind the gears of {", ".join(held)} where '
                         'light contact matters: dry friction hides pushes of its own size while '
                         'a joint is slow, from any model')
