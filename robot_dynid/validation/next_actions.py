"""Next actions: remedies for what a model lacks, the most valuable first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.document import number, percent
from robot_dynid.estimation.friction_selection.law_request import COULOMB
from robot_dynid.identified.by_parameters import effort_by_parameters
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import INDEFINITE
from robot_dynid.identified.suitability import (
    CONTACT,
    FEED_FORWARD,
    GRAVITY,
    JointVerdict,
    NextAction,
)
from robot_dynid.plausibility.finding import Finding
from robot_dynid.robot.implausible import described, without_inertials
from robot_dynid.robot.locate import known_robots
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import NEAR, Validation

#: friction of one joint explains this share of what is left of another one: one motor turns
#: both
COUPLED = 0.7
#: relative error of a joint up to which nobody looks for the motor of another in what is left
SLIGHT = 0.01
#: a joint is hardly moved below this share of its range, a turn at most, or of its speed limit
MOVED = 0.2
#: friction that differs by this share from one recording to the next shows in every prediction
DIFFERS = 0.1
#: near reversals a joint errs by this factor more than in all motion where its law is too simple
SIMPLE = 1.5
#: effort that is late by more [s] than this, and is not corrected, was stamped elsewhere
LATE = 2e-3
#: identified and nominal weight differ by this share of the nominal one where something is mounted
HEAVIER = 0.15
#: judged recordings show a joint in this share of its trained ranges at least; a motion whose
#: ranges differ from those of the fit by less than that share in no joint is that of the fit again
COVERED, AGAIN = 0.5, 0.02
#: poses in which weights are compared
POSES = 100


@dataclass(frozen=True)
class Names:
    """Names in commands: of the ``robot``, as it was given, and of the ``model`` file."""

    robot: str
    model: str = 'model.yaml'

    @classmethod
    def without_file(cls, robot: str, model: str = 'model.yaml') -> Names:
        """Return those for a ``robot`` whose file nobody named: known by name, or to be put in."""
        return cls(robot if robot in known_robots() else 'ROBOT.yaml', model)


def next_actions(
    model: IdentifiedModel, validation: Validation, joints: Sequence[JointVerdict],
    findings: Sequence[Finding], names: Names | None = None,
) -> tuple[NextAction, ...]:
    """Return the actions, the most valuable first; ``joints`` are the verdicts on them."""
    names = names or Names.without_file(model.robot.name)
    found = (
        *_about_data(model, validation, findings), *_not_shown(joints),
        *_about_motion(model, validation, joints, names),
        *_about_recordings(model, validation, names), *_about_friction(model, validation, names),
        *_about_load(model, findings), *_check(model, validation, joints, names),
        *_about_gears(model), *_about_contact(model, joints))
    return tuple(dict.fromkeys(found))


def _design(names: Names, kind: str, out: str, *options: str) -> str:
    """Return the command that plans a motion."""
    return shlex.join(['robot-dynid', 'design', names.robot, '--type', kind, *options,
                       '--out', out])


def judging_motion(names: Names, cause: str) -> NextAction:
    """Return the motion to judge a model by, where for a ``cause`` the recordings do not do."""
    return NextAction(
        f'{cause}: record a motion that the fit has not seen, and score the model on it with '
        'robot-dynid validate',
        _design(names, 'fourier', 'unseen.yaml', '--seed', '2'))


def averaged_motion(names: Names) -> NextAction:
    """Return the motion that shows what noise hides."""
    return NextAction('the noise of the effort hides what the model leaves: record many periods '
                      'and average over them (recipe period: auto)',
                      _design(names, 'fourier', 'periods.yaml', '--periods', '20'))


def static_poses(names: Names) -> NextAction:
    """Return the motion that shows weight."""
    return NextAction('the weight is not known well enough: record static poses',
                      _design(names, 'static-poses', 'poses.yaml'))


def stopping_motion(names: Names) -> NextAction:
    """Return the motion that shows what friction holds when joints stop."""
    return NextAction('joints hardly come to rest: record a motion that stops, as static poses, '
                      'and score the model on it with robot-dynid validate',
                      _design(names, 'static-poses', 'stops.yaml'))


def simulated_motion(names: Names) -> NextAction:
    """Return the recording along which motion is simulated."""
    return NextAction('no motion was simulated: score forward dynamics on a recording',
                      shlex.join(['robot-dynid', 'validate', names.model, 'RECORDING',
                                  '--forward']))


def identify_again(model: IdentifiedModel, names: Names) -> NextAction:
    """Return the command for a model file that lacks what later versions write."""
    return NextAction('the model file lacks what the verdict needs: identify again',
                      _identify(model, names))


def _not_shown(joints: Sequence[JointVerdict]) -> Iterator[NextAction]:
    """Yield the motions that would show the uses that are not shown."""
    yield from dict.fromkeys(use.shown_by for joint in joints for use in joint.uses
                             if use.shown_by is not None)


def uncovered(
    model: IdentifiedModel, validation: Validation | None, names: Names
) -> tuple[NextAction | None, ...]:
    """Return for every joint the motion over the range that recordings lack, None for none.

    Those of the fit, by the limits of the robot; and those of a ``validation`` by the fit.
    """
    still = _hardly_moved(model)
    ranges = [] if validation is None else list(_trained_and_judged(model, validation))
    part = judging_motion(names, 'the recordings cover less than half of the range of the fit')
    return tuple(_wider_motion(names, still) if joint in still else part if any(
        judged[j] < COVERED * trained[j] for trained, judged in ranges) else None
        for j, joint in enumerate(model.joints))


def _wider_motion(names: Names, still: Sequence[str]) -> NextAction:
    return NextAction(f'record a motion that uses range and speed of {", ".join(still)}: the '
                      'recordings hardly move it', _design(names, 'fourier', 'excitation.yaml'))


def repeats(model: IdentifiedModel, validation: Validation) -> bool:
    """Return True if recordings have the ranges of the fit in all joints, as its motion has."""
    ranges = list(_trained_and_judged(model, validation))
    return bool(ranges) and all(np.all(np.abs(judged - trained) <= AGAIN * np.maximum(
        trained, AGAIN)) for trained, judged in ranges)


def _trained_and_judged(
    model: IdentifiedModel, validation: Validation
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the widths (n,) of the ranges of the fit and of recordings: positions, velocities."""
    for name in ('position', 'velocity'):
        values = [getattr(trace, name) for trace in validation.traces]
        if name in model.trained.quantities and all(one is not None for one in values):
            yield (np.ptp(model.trained.quantities[name], axis=1),
                   np.ptp(np.concatenate(values), axis=0))


def _identify(
    model: IdentifiedModel, names: Names, *options: str, more: Sequence[str] = ()
) -> str:
    """Return the command that identifies anew, from ``more`` recordings, too; '' without any."""
    recordings = list(dict.fromkeys((*model.record.recordings, *more)))
    return shlex.join(['robot-dynid', 'identify', *recordings, '--robot', names.robot, *options,
                       '--out', names.model]) if recordings else ''


def _about_data(
    model: IdentifiedModel, validation: Validation, findings: Sequence[Finding]
) -> Iterator[NextAction]:
    """Yield faults of the data itself: until they are gone, nothing else helps."""
    for found in findings:
        of = f' of {", ".join(found.joints)}' if found.joints else ''
        yield NextAction(f'{found.remedy} ({found.recording}{of}: {found.looks_like})')
    for pair, share in _coupled(model.robot, validation):
        yield NextAction(
            f'state in the robot YAML under coupling which motor turns with {pair}: friction '
            f'of one explains {percent(share)} % of what the model leaves of the other')
    for joint in model.not_identified:
        reason = model.record.refused.get(joint, 'the data gives no model of its effort')
        yield NextAction(f'check the effort signal of {joint} (cable, column, driver) and record '
                         f'again: {reason}')


def _coupled(robot: RobotModel, validation: Validation) -> Iterator[tuple[str, float]]:
    """Yield pairs of joints that one motor turns, though the robot does not say so.

    With the larger of the shares that one explains of the other.
    """
    parts = validation.parts
    if parts is None:
        return
    for j, k in zip(*np.nonzero(parts.caused > COUPLED), strict=True):
        known = robot.drive.coupling is not None and np.any(
            (robot.drive.coupling[:, j] != 0.0) & (robot.drive.coupling[:, k] != 0.0))
        if not known and validation.model['all'][robot.joints[j]].relative_error > SLIGHT:
            yield (f'{robot.joints[min(j, k)]} and {robot.joints[max(j, k)]}',
                   float(max(parts.caused[j, k], parts.caused[k, j])))


def _about_motion(
    model: IdentifiedModel, validation: Validation, joints: Sequence[JointVerdict], names: Names
) -> Iterator[NextAction]:
    """Yield motions that show what the recordings do not."""
    if any(INDEFINITE in warning for warning in model.warnings) and not model.not_identified:
        yield NextAction('identify what bodies can have: the mass matrix is not positive definite '
                         'everywhere', _identify(model, names, '--method', 'feasible'))
    still = _hardly_moved(model)
    if still:
        yield _wider_motion(names, still)
    unknown = [name for name, std in zip(model.names, model.std, strict=True)
               if not np.isfinite(std)]
    if unknown:
        yield NextAction(f'record a motion that excites {", ".join(unknown)}: what the model has '
                         'there is no measurement', _design(names, 'fourier', 'excitation.yaml'))
    coupled = ' '.join(pair for pair, _ in _coupled(model.robot, validation)).split()
    heavy, left = ([joint for joint in _not_for(joints, use, model) if joint not in coupled]
                   for use in (GRAVITY, FEED_FORWARD))
    fitted = model.record.residual
    if left and fitted is not None and fitted.loops == 'three':
        yield NextAction(f'fit friction and links at once, with a law from the data: much of the '
                         f'effort of {", ".join(left)} is left by the friction of sweeps (recipe '
                         'without loops: three)', _identify(model, names))
    elif left:
        yield NextAction(f'record sweeps at constant velocity: much of the effort of '
                         f'{", ".join(left)} is left, and friction is the largest part of what '
                         'models miss', _design(names, 'constant-velocity', 'sweeps.yaml'))
    if heavy:
        yield static_poses(names)


def _hardly_moved(model: IdentifiedModel) -> list[str]:
    """Return the joints that used little of their range, a turn at most, or of their speed."""
    known, limits = model.trained.quantities, model.robot.limits
    if not {'position', 'velocity'} <= set(known):
        return []
    room = np.fmin(limits.upper - limits.lower, 2.0 * np.pi)
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, 0.0)
    little = (np.ptp(known['position'], axis=1) < MOVED * room) | (
        np.abs(known['velocity']).max(axis=1) < MOVED * speed)
    return [joint for joint, moved in zip(model.joints, ~little, strict=True) if not moved]


def _not_for(joints: Sequence[JointVerdict], use: str, model: IdentifiedModel) -> list[str]:
    """Return the joints, but refused ones, whose numbers are not good for a use."""
    return [one.joint for one in joints if one.joint not in model.not_identified
            and any(u.use == use and u.ok is False and u.words != one.words for u in one.uses)]


def _about_recordings(
    model: IdentifiedModel, validation: Validation, names: Names
) -> Iterator[NextAction]:
    """Yield recordings that the fit lacks."""
    if len(model.record.recordings) == 1:
        yield NextAction(
            'record another motion on another day and identify from both: one recording does not '
            'show how friction changes from day to day, and its intervals are wide',
            _design(names, 'fourier', 'another.yaml', '--seed', '1'))
    outside = {t.source: t.outside for t in validation.traces if t.outside}
    alarms = validation.contact is not None and validation.contact.alarms.any() and {
        t.source: None for t in validation.traces if t.source not in model.record.recordings}
    if alarms:
        yield NextAction('identify from these recordings, too: without contact the monitor '
                         'reports some', _identify(model, names, more=tuple(alarms)))
    if outside:
        joints: dict[str, dict[str, None]] = {}
        for one in (one for found in outside.values() for one in found):
            joints.setdefault(one.quantity, {})[one.joint] = None
        what = '; '.join(f'{quantity} of {", ".join(of)}' for quantity, of in joints.items())
        yield NextAction('identify from these recordings, too: outside what the model was '
                         f'trained in are {what}',
                         _identify(model, names, more=tuple(outside)))


def _about_friction(
    model: IdentifiedModel, validation: Validation, names: Names
) -> Iterator[NextAction]:
    """Yield recordings and choices by which friction is known better."""
    spread = model.record.friction_spread or {}
    differs = {kind: share for kind, share in spread.items() if share > DIFFERS}
    if differs:
        words = ', '.join(f'{kind} {percent(share)} %' for kind, share in differs.items())
        yield NextAction(
            f'record from the cold robot until it is warm, or warm it up before each recording: '
            f'friction differs from one recording to the next ({words})',
            _design(names, 'fourier', 'warm_up.yaml', '--periods', '30'))
    chosen = any(len(choice.tried) > 1 for choice in model.record.friction)
    simple = [joint for j, joint in enumerate(model.joints)
              if not chosen and model.structure.friction[j] == COULOMB
              and _error(validation, NEAR, joint) > SIMPLE * _error(validation, 'motion', joint)]
    if simple:
        yield NextAction(f'let the data choose the friction law of {", ".join(simple)}: near '
                         f'reversals it errs {SIMPLE:g} times as much as in all motion',
                         _identify(model, names))
    lag = model.record.effort_lag
    if lag is not None and lag.significant and abs(lag.seconds) > LATE \
            and model.preprocessing.effort_lag == 0.0:
        yield NextAction(f'stamp effort and position together: effort comes '
                         f'{number(1e3 * lag.seconds, 3)} ms late')


def _error(validation: Validation, subset: str, joint: str) -> float:
    """Return a relative error, zero where there are no such samples."""
    score = validation.model.get(subset, {}).get(joint)
    return 0.0 if score is None else score.relative_error


def _about_load(model: IdentifiedModel, findings: Sequence[Finding]) -> Iterator[NextAction]:
    """Yield a load that the description of the robot does not know."""
    heavier = {} if findings else _heavier(model)
    if heavier:
        words = ', '.join(f'{joint} {percent(share)} % of it' if np.isfinite(share) else
                          f'{joint}, which has none' for joint, share in heavier.items())
        yield NextAction('put what was mounted into the URDF, or identify it as a payload '
                         '(robot-dynid payload): weight differs from that of the nominal links, '
                         f'{words}' + ''.join(f' ({one})' for one in without_inertials(
                             model.robot)))


def _about_gears(model: IdentifiedModel) -> Iterator[NextAction]:
    """Yield gear ratios that are not known."""
    drive = model.robot.drive
    if drive.gear_ratios is None and drive.shows_motors:
        yield NextAction('state gear_ratios in the robot YAML: with them ripple of the gears and '
                         'states of the motors are told')


def _heavier(model: IdentifiedModel) -> dict[str, float]:
    """Return the share by which weight differs from the nominal one, where beyond the interval."""
    known = described(model.robot)
    if model.correlation_factor is None or \
            model.robot.drive.kind == 'gravity_compensated_torque':
        return {}
    q = model.trained.poses(model.robot, POSES)
    columns = effort_by_parameters(model, q, np.zeros_like(q), np.zeros_like(q))
    off = _varying(columns @ (model.values - model.control))
    nominal = _varying(columns @ model.control)
    sure = 3.0 * np.sqrt(np.mean(np.sum(
        (columns @ model.covariance_factor.T)**2, axis=2), axis=0))
    some = nominal > SLIGHT * float(nominal.max())
    return {joint: float(off[j] / nominal[j]) if some[j] else np.inf
            for j, joint in enumerate(model.joints)
            if joint not in model.not_identified and known[j] and off[j] > max(
                HEAVIER * nominal[j], float(sure[j]), HEAVIER * 0.2 * float(nominal.max()))}


def _varying(effort: FloatArray) -> FloatArray:
    """Return the standard deviation (n,) over poses (K, n): offsets are no weight."""
    return np.asarray(np.std(effort, axis=0))


def _check(
    model: IdentifiedModel, validation: Validation, joints: Sequence[JointVerdict], names: Names
) -> Iterator[NextAction]:
    """Yield the check on a recording that the fit has not seen, where there was none."""
    seen = set(model.record.recordings)
    if all(trace.source in seen for trace in validation.traces) and not list(_not_shown(joints)):
        yield judging_motion(names, 'the model was judged on recordings of its fit')


def _about_contact(model: IdentifiedModel, joints: Sequence[JointVerdict]) -> Iterator[NextAction]:
    """Yield sensors for pushes that dry friction hides."""
    levels, hidden = model.noise_levels, _not_for(joints, CONTACT, model)
    held = [joint for joint in hidden if levels is not None and levels.holding[
        model.joints.index(joint)] > levels.moving[model.joints.index(joint)]]
    if held:
        yield NextAction(f'measure torque or position behind the gears of {", ".join(held)} where '
                         'light contact matters: dry friction hides pushes of its own size while '
                         'a joint is slow, from any model')
