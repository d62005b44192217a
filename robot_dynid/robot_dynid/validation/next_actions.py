"""Next actions: remedies for the shortcomings of a model, the most valuable first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from robot_dynid.document import BRIEF_NAMES, Action, listed, percent
from robot_dynid.estimation.estimate import Status
from robot_dynid.estimation.friction_selection.law_request import COULOMB
from robot_dynid.identified.caution import caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import INDEFINITE
from robot_dynid.identified.suitability import (
    CONTACT,
    FEED_FORWARD,
    GRAVITY,
    JointVerdict,
)
from robot_dynid.robot.implausible import described, without_inertials
from robot_dynid.robot.model import GAIN_UNITS, POSITION_ERROR
from robot_dynid.validation.evidence import Evidence, static_columns
from robot_dynid.validation.validate import NEAR

#: if friction of one joint explains this share of the residual of another, one motor turns
#: both
COUPLED = 0.7
#: relative error of a joint up to which its residual is not searched for another motor
SLIGHT = 0.01
#: difference of friction between two recordings, as a share, that shows in every prediction
DIFFERS = 0.1
#: error near reversals relative to that in all motion, above which the law is too simple
SIMPLE = 1.5
#: uncorrected delay of the effort [s] above which it was stamped elsewhere
LATE_EFFORT = 2e-3
#: difference of identified and nominal weight, as a share, that indicates a mounted load
HEAVIER = 0.15
#: method with physically feasible parameters
FEASIBLE = 'feasible'
#: number of poses in which weights are compared
WEIGHED_POSES = 100


def next_actions(evidence: Evidence, joints: Sequence[JointVerdict]) -> tuple[Action, ...]:
    """Return the actions, the most valuable first; ``joints`` are the verdicts on them.

    A command that remedies several causes is named once, with the first of them.
    """
    showing = dict.fromkeys(use.shown_by for joint in joints for use in joint.uses
                            if use.shown_by is not None)
    coupled = list(_coupled(evidence))
    seen = set(evidence.model.record.recordings)
    unjudged = not showing and all(t.source in seen for t in evidence.validation.traces)
    actions: dict[str, Action] = {}
    for action in (
        *_about_data(evidence, coupled), *showing, *_about_motion(evidence, joints, coupled),
        *_about_recordings(evidence), *_about_friction(evidence), *_about_load(evidence),
        *([evidence.names.judging_motion('the model was scored on its own training recordings')]
          if unjudged else []), *_about_sensors(evidence.model, joints)):
        actions.setdefault(action.command or action.words, action)
    return tuple(actions.values())


def _about_data(evidence: Evidence, coupled: Sequence[tuple[str, float]]) -> Iterator[Action]:
    """Yield faults of the data: until they are corrected, nothing else helps."""
    model = evidence.model
    for finding in evidence.findings:
        yield Action(f'in {finding.recording}{finding.of_joints}: {finding.looks_like}: '
                     f'{finding.remedy}')
    drive = model.robot.drive
    unit = GAIN_UNITS.get(drive.kind, '').removeprefix('N m/')
    if unit and drive.gains is not None and np.all(drive.gains == 1.0):
        yield Action(f'all drive_gains are 1.0, so results labelled N m are in {unit}: state the '
                     'gains of this arm in the robot YAML (docs/drivers.md)')
    for pair, share in coupled:
        yield Action(f'{pair} share a motor (friction of one explains {percent(share)} % of the '
                     'error of the other): state it in the robot YAML under coupling')
    if model.not_identified:
        yield Action(caution(model))
    for status in (Status.NOT_SETTLED, Status.NOT_SOLVED):
        if status.value in model.status:
            yield Action(status.value)


def _coupled(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """Yield pairs of joints that share a motor although the robot does not state it.

    Each with the larger share of residual that one explains of the other.
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
) -> Iterator[Action]:
    """Yield motions that the recordings lack."""
    model, names = evidence.model, evidence.names
    if any(INDEFINITE in warning for warning in model.warnings) and not model.not_identified:
        yield names.identify('the mass matrix is not positive definite everywhere: identify '
                             'physically feasible parameters', model, FEASIBLE)
    if evidence.still:
        yield evidence.wider_motion
    unknown = [name for name, std in zip(model.names, model.std, strict=True)
               if not np.isfinite(std)]
    if unknown:
        yield names.design(
            f'{listed(unknown, BRIEF_NAMES)} {"is" if len(unknown) == 1 else "are"} not excited: '
            'record a motion in which all joints use most of their range and speed',
            'fourier', 'excitation.yaml')
    pairs = ' '.join(pair for pair, _ in coupled).split()
    heavy, left = ([joint for joint in _not_for(joints, use, model) if joint not in pairs]
                   for use in (GRAVITY, FEED_FORWARD))
    fitted = model.record.residual
    much = f'the model misses too much of the effort of {listed(left, BRIEF_NAMES)}'
    if left and fitted is not None and fitted.loops == 'three':
        yield names.identify(f'{much}: fit friction and links at once (recipe without loops: '
                             'three)', model)
    elif left:
        yield names.design(f'{much}: record sweeps at constant velocity to measure friction',
                           'constant-velocity', 'sweeps.yaml')
    if heavy:
        yield names.static_poses


def _not_for(joints: Sequence[JointVerdict], use: str, model: IdentifiedModel) -> list[str]:
    """Return the joints, except refused ones, whose numbers are not good for a use."""
    return [one.joint for one in joints if one.joint not in model.not_identified
            and any(u.use == use and u.ok is False and u.words != one.words for u in one.uses)]


def _about_recordings(evidence: Evidence) -> Iterator[Action]:
    """Yield recordings that the fit lacks."""
    model, validation, names = evidence.model, evidence.validation, evidence.names
    if len(model.record.recordings) == 1:
        yield names.design(
            'one recording does not show how friction changes from day to day: record another '
            'motion on another day, and identify from both', 'fourier', 'another.yaml',
            '--seed', '1')
    if evidence.unseen and validation.contact is not None and validation.contact.alarms.any():
        yield names.design(
            'the monitor reports contacts where nothing touches the robot: record more motion to '
            'train on', 'fourier', 'another.yaml', '--seed', '1')
    outside: dict[str, dict[str, None]] = {}
    for one in (one for trace in validation.traces for one in trace.outside):
        outside.setdefault(one.quantity, {})[one.joint] = None
    if outside:
        what = '; '.join(f'{quantity} of {listed(of, BRIEF_NAMES)}'
                         for quantity, of in outside.items())
        yield names.design(
            f'the test exceeds the training range ({what}): train on a motion that covers it',
            'fourier', 'wider.yaml', '--scale', '1')


def _about_friction(evidence: Evidence) -> Iterator[Action]:
    """Yield recordings and choices that improve the friction model."""
    model, names = evidence.model, evidence.names
    differs = {kind: share for kind, share in (model.record.friction_spread or {}).items()
               if share > DIFFERS}
    if differs:
        words = listed(f'{kind} friction by {percent(share)} %' for kind, share in differs.items())
        yield names.design(
            f'friction differs between recordings ({words}): warm the robot up before each, or '
            'record it from cold to warm', 'fourier', 'warm_up.yaml', '--periods', '30')
    chosen = any(len(choice.tried) > 1 for choice in model.record.friction)
    simple = [joint for j, joint in enumerate(model.joints)
              if not chosen and model.structure.friction[j] == COULOMB
              and (evidence.error(NEAR, joint) or 0.0) > SIMPLE * (
                  evidence.error('motion', joint) or 0.0)]
    if simple:
        yield names.identify(
            f'near reversals the error of {listed(simple, BRIEF_NAMES)} is {SIMPLE:g} times as '
            'large as in all motion: let the data choose the friction law (recipe friction: '
            'auto)', model)
    lag = model.record.effort_lag
    if lag is not None and lag.significant and abs(lag.seconds) > LATE_EFFORT \
            and model.preprocessing.effort_lag == 0.0 and model.robot.drive.kind != POSITION_ERROR:
        yield Action(f'effort is {lag.words} than the motion: stamp both at the time of '
                     'their measurement')


def _about_load(evidence: Evidence) -> Iterator[Action]:
    """Yield a load that the robot description lacks."""
    model = evidence.model
    heavier = {} if evidence.findings else _heavier(model)
    if heavier:
        words = ', '.join(f'{joint} by {percent(share)} %' if np.isfinite(share) else
                          f'{joint}, which carries no weight in the URDF'
                          for joint, share in heavier.items())
        without = ''.join(f' ({one})' for one in without_inertials(model.robot))
        yield Action(f'weight differs from the URDF ({words}): add what is mounted to the URDF, '
                     f'or identify it with robot-dynid payload{without}')


def _heavier(model: IdentifiedModel) -> dict[str, float]:
    """Return the share by which weight exceeds the nominal one, if beyond the interval."""
    if model.correlation_factor is None or \
            model.robot.drive.kind == 'gravity_compensated_torque':
        return {}
    columns = static_columns(model, WEIGHED_POSES)
    # over poses: offsets are not weight
    off, nominal = (np.std(columns @ values, axis=0)
                    for values in (model.values - model.control, model.control))
    sure = 3.0 * np.sqrt(np.mean(np.sum(
        (columns @ model.covariance_factor.T)**2, axis=2), axis=0))
    largest, has_inertials = float(nominal.max()), described(model.robot)
    return {joint: float(off[j] / nominal[j]) if nominal[j] > SLIGHT * largest else np.inf
            for j, joint in enumerate(model.joints)
            if joint not in model.not_identified and has_inertials[j] and off[j] > max(
                HEAVIER * nominal[j], float(sure[j]), HEAVIER * 0.2 * largest)}


def _about_sensors(model: IdentifiedModel, joints: Sequence[JointVerdict]) -> Iterator[Action]:
    """Yield unstated gear ratios, and sensors for pushes that dry friction hides."""
    if model.robot.drive.gear_ratios is None and model.robot.drive.shows_motors:
        yield Action('the gear ratios are not stated, so gear ripple and motor states are not '
                     'used: state gear_ratios in the robot YAML')
    levels = model.noise_levels
    held = [joint for joint in _not_for(joints, CONTACT, model) if levels is not None
            and levels.holding[model.joints.index(joint)]
            > levels.moving[model.joints.index(joint)]]
    if held:
        yield Action(f'dry friction of {listed(held, BRIEF_NAMES)} hides pushes from any model: '
                     'measure torque or position behind the gears where light contact matters')
