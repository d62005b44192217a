"""Diagnosis of a running system, and of a first recording: names, clocks, units, efforts.

Messages of a few seconds go through the checklist before a motion and, as a recording, through the
gate before every fit, like the first recording of a robot. Faults that only a motion shows are
unknown if the robot stood still.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dynid.document import listed, subject
from robot_dynid.errors import DataError, DynIdError
from robot_dynid.execution.checklist import Facts, Item, Requirements, StateMessage, all_items
from robot_dynid.io.log import load_log
from robot_dynid.plausibility.excerpt import excerpt
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.gate import examine, verdict
from robot_dynid.plausibility.score import Explained
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.model import EFFORT_KINDS, GAIN_UNITS, POSITION_ERROR, RobotModel
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis, of_finding, of_item
from robot_dynid.setting_up.drivers import MEASURED, shown_by
from robot_dynid.setting_up.middleware import domain
from robot_dynid.signals.alignment import fill_holes
from robot_dynid.signals.encoders import encoders_of
from robot_dynid.signals.plausible import drop_implausible
from robot_dynid.signals.prepare import check_usable
from robot_dynid.types import RawLog

#: items of the checklist about a future motion, not about the system
OF_A_MOTION = ('rest', 'emergency stop', 'temperature', 'recording')
#: travel [rad, m] from which a joint has moved
TRAVEL = 0.02
#: rate of another topic over that of the topic, above which it is faster: not by chance or jitter
FASTER = 1.5


@dataclass(frozen=True)
class Stream:
    """Another topic with joint states: its rate [Hz] and names, and whether it has efforts."""

    topic: str
    rate: float = 0.0
    names: tuple[str, ...] = ()
    efforts: bool = False
    reliable: bool = True


@dataclass(frozen=True, eq=False)
class Live:
    """Facts about a running system.

    ``facts`` and ``wanted`` are those of the checklist; ``topic`` is that of the joint states,
    with its ``publishers`` and those that are ``best_effort``; ``others`` are further topics with
    joint states, ``controllers`` the actions of other trajectory controllers; ``log`` is the
    recording, or ``unreadable`` the reason why there is none; ``sleeping`` nodes wait for /clock,
    which has no publisher.
    """

    topic: str
    controller: str
    facts: Facts
    wanted: Requirements
    publishers: tuple[str, ...] = ()
    best_effort: tuple[str, ...] = ()
    others: tuple[Stream, ...] = ()
    controllers: tuple[str, ...] = ()
    sleeping: tuple[str, ...] = ()
    log: RawLog | None = None
    unreadable: str = ''
    environment: Mapping[str, str] = field(default_factory=dict)


def live_diagnoses(robot: RobotModel, live: Live) -> list[Diagnosis]:
    """Return every diagnosis of a running system, without the effects of a named cause."""
    diagnoses = [*_silence(live), *_publishers(live)]
    if not live.facts.states:
        return [*diagnoses, *_controller(live, all_items(live.facts, live.wanted))]
    names = names_diagnosis(robot.joints, live.facts.states, live.topic)
    items = all_items(live.facts, live.wanted)
    if names.level is ERROR:
        return [*diagnoses, names, *_controller(
            live, [one for one in items if one.name != 'controller joints']), *(
            of_item(one, live.topic) for one in items
            if one.name in ('joint state rate', 'stamps', 'clock'))]
    gate, moved = _gate(robot, live)
    if any(item.name == 'rest' and item.level is not OK for item in items):
        items = all_items(replace(live.facts, gravity=None), live.wanted)
    better = _elsewhere(robot, live)
    return [*diagnoses, names, *better, *_controller(live, items),
            *_states(live, items, [*better, *gate]), *gate, *_description(robot),
            _unknown(live, moved)]


def _description(robot: RobotModel) -> Iterator[Diagnosis]:
    """Yield a warning for each link with impossible inertia."""
    for one in implausible_inertials(robot):
        what, _, remedy = one.text.partition('; ')
        yield Diagnosis('inertials', WARN, f'link {one.link} of {robot.source}', what, remedy)


def _silence(live: Live) -> list[Diagnosis]:
    """Return the reason for missing joint states."""
    if live.facts.states:
        return []
    if live.publishers:
        what = f'{subject(live.publishers, "publishes", "publish")} {live.topic}, but no ' \
            f'message was received for {live.facts.seconds:.1f} s'
        return [Diagnosis('joint states', ERROR, live.topic, what, 'activate the '
                          'joint_state_broadcaster (ros2 control list_controllers), start the '
                          'driver, and check that the simulation is not paused')]
    topics = [one.topic for one in sorted(live.others, key=_preference)]
    elsewhere = f'; joint states are on {", ".join(topics)}' if topics else ''
    remedy = f'give --topic {topics[0]}, or remap it' if topics else (
        'start the driver, in the same ROS_DOMAIN_ID; if it runs on another computer, set '
        'ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET on both')
    return [Diagnosis('joint states', ERROR, live.topic, f'nobody publishes {live.topic} in '
                      f'{domain(live.environment)}{elsewhere}', remedy)]


def _publishers(live: Live) -> Iterator[Diagnosis]:
    """Yield faults of the publishers of the joint states, and of /clock."""
    if len(live.publishers) > 1:
        twice = len(set(live.publishers)) < len(live.publishers)
        yield Diagnosis(
            'publishers', WARN, live.topic, f'{listed(live.publishers)} publish it'
            f'{", one of them more than once" * twice}',
            'stop all but one, or give one a separate topic (joint_state_publisher is for robots '
            'without a driver)')
    if live.best_effort:
        yield Diagnosis(
            'quality of service', WARN, live.topic,
            f'{subject(live.best_effort, "publishes", "publish")} it as best effort, so lost '
            'messages are not sent again, but counted',
            'set the publisher to reliable if possible; docs/drivers.md says how')
    if live.sleeping:
        yield Diagnosis('clock', ERROR, ', '.join(live.sleeping), 'use_sim_time is true, but '
                        'nobody publishes /clock: its time stands still at 0',
                        'start the simulation, or set use_sim_time to false there')


def _preference(stream: Stream) -> tuple[bool, bool, float]:
    """Return a key that sorts topics: first the reliable ones that the facts are from, then fast.
    """
    return not stream.reliable, shown_by(stream.topic) != MEASURED, -stream.rate


def _elsewhere(robot: RobotModel, live: Live) -> list[Diagnosis]:
    """Return a warning if another topic has the same joints more often, or alone has effort."""
    rate = len(live.facts.states) / live.facts.seconds
    efforts = any(np.any(np.nan_to_num(message.effort)) for message in live.facts.states)
    better = sorted((one for one in live.others if one.reliable
                     and set(robot.joints) <= set(one.names)
                     and shown_by(one.topic) in (MEASURED, '')
                     and (one.efforts or not efforts)
                     and (one.rate > FASTER * rate or one.efforts > efforts)), key=_preference)
    if not better:
        return []
    first, words = better[0], ('without efforts', 'with efforts')
    copies = any(name.endswith('joint_state_publisher') for name in live.publishers)
    also = f' (or {", ".join(one.topic for one in better[1:])})' if better[1:] else ''
    return [Diagnosis(
        'other joint states', WARN, live.topic, f'{rate:.0f} messages per second {words[efforts]}'
        f'{", copies by joint_state_publisher with stamps of their own" * copies}; {first.topic} '
        f'has the same joints, {first.rate:.0f} per second {words[first.efforts]}',
        f'give --topic {first.topic}{also}, and joint_states:={first.topic} to the launch files')]


def names_diagnosis(
    joints: tuple[str, ...], states: Sequence[StateMessage], where: str
) -> Diagnosis:
    """Return whether messages name the joints of the robot: missing, extra, prefix, order."""
    name = 'joint names'
    seen = tuple(dict.fromkeys(one for message in states for one in message.names))
    missing = [joint for joint in joints if joint not in seen]
    extra = [one for one in seen if one not in joints]
    if not missing:
        order = tuple(one for one in seen if one in joints)
        order_note = '' if order == joints else ', in another order (columns go by name)'
        more = f"; {', '.join(extra)} are left out" if extra else ''
        return Diagnosis(name, OK, where, f'all {len(joints)} joints{order_note}{more}')
    affix, theirs = renaming(joints, seen)
    if affix:
        pairs = ', '.join(f'{joint}: {one}' for joint, one in zip(joints[:2], theirs))
        return Diagnosis(name, ERROR, where, f'joints are named with {affix} ({pairs})',
                         f'give the URDF the same names (prefix or tf_prefix of its xacro), or '
                         f'start the driver without {affix}')
    return Diagnosis(name, ERROR, where, f'{subject(missing)} not there; it has '
                     f'{", ".join(seen) or "no names"}', 'give the robot YAML the URDF that the '
                     'driver publishes (robot_description), or omit joints with joints or '
                     'tip_link')


def renaming(joints: Sequence[str], seen: Sequence[str]) -> tuple[str, list[str]]:
    """Return the one prefix or suffix by which all names differ, in words, and those seen."""
    first = joints[0]
    for one in seen:
        if one.endswith(first):
            affix = one[:-len(first)]
            words, theirs = f'the prefix {affix!r}', [f'{affix}{joint}' for joint in joints]
        elif first.endswith(one):
            affix = first[:-len(one)]
            words = f'the prefix {affix!r} left out'
            theirs = [joint.removeprefix(affix) for joint in joints]
        elif one.startswith(first):
            affix = one[len(first):]
            words, theirs = f'the suffix {affix!r}', [f'{joint}{affix}' for joint in joints]
        else:
            continue
        if set(theirs) <= set(seen):
            return words, theirs
    return '', []


def _controller(live: Live, items: Sequence[Item]) -> Iterator[Diagnosis]:
    """Yield the items about the controller; with the names of other controllers."""
    for item in items:
        if not item.name.startswith(('controller', 'command')):
            continue
        one = of_item(item, live.controller)
        if item.name == 'controller' and not live.facts.controller_ready:
            one = replace(one, remedy=f'there {"is" if len(live.controllers) == 1 else "are"} '
                          f'{listed(live.controllers)}: give --controller '
                          f'{live.controllers[0]}, and the node the parameter controller'
                          if live.controllers else 'start one: ros2 run controller_manager '
                          f'spawner {live.controller}; docs/drivers.md names it by driver')
        yield one


#: items of the checklist that follow from what another diagnosis names
EFFECTS = {'limits': {'position_unit'}, 'joint state rate': {'other joint states'},
           'effort': {'effort_scale', 'effort_sign', 'gravity', 'position_unit',
                      'other joint states'}}


def _states(live: Live, items: Sequence[Item], causes: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the other items, without the effects of named causes."""
    named = {one.name for one in causes}
    return [of_item(item, live.topic) for item in items
            if item.name not in OF_A_MOTION and not item.name.startswith(('controller', 'command'))
            and not (item.name == 'clock' and live.sleeping)
            and (item.level is OK or not named & EFFECTS.get(item.name, set()))]


def _gate(robot: RobotModel, live: Live) -> tuple[list[Diagnosis], bool | None]:
    """Return the findings of the gate before every fit, and whether the robot moved."""
    log = live.log
    if log is None:
        return [Diagnosis('recording', ERROR, live.topic, live.unreadable,
                          'correct what the driver publishes')], None
    travel = np.ptp(np.nan_to_num(drop_implausible(robot, log)[0].position), axis=0)
    moved = bool(travel.max(initial=0.0) > TRAVEL)
    try:
        return [of_finding(one, live.topic) for one in gate_findings(robot, log)], moved
    except DataError as error:
        if log.effort is None or not np.any(np.nan_to_num(log.effort)):
            return [], moved  # the checklist says so
        return [_unusable(error, log.source, live.topic)], moved


def _unusable(error: DataError, source: str, where: str) -> Diagnosis:
    what, _, remedy = str(error).removeprefix(f'{source}: ').partition('; ')
    return Diagnosis('recording', ERROR, where, what, remedy or 'correct the recording, or use '
                     'another one')


def gate_findings(robot: RobotModel, log: RawLog) -> tuple[Finding, ...]:
    """Return the findings of the gate about one recording. Raises DataError as it does."""
    check_usable(robot, log)
    return verdict(robot, [examine(robot, log)])[0]


def _unknown(live: Live, moved: bool | None) -> Diagnosis:
    """Return whether the robot moved; without motion much is unknown."""
    return Diagnosis('motion', OK, live.topic, 'the robot stood still: units and gravity were '
                     'checked; move it to check signs, velocities and the order of efforts'
                     if moved is False else 'the robot moved: signs, velocities and the order of '
                     'efforts were checked, too')


def recording_diagnoses(robot: RobotModel, paths: Sequence[str]) -> Iterator[Diagnosis]:
    """Yield diagnoses of the description of a robot from recordings."""
    for path in paths:
        try:
            log = load_log(path, robot)
            findings = gate_findings(robot, log)
        except DataError as error:
            yield _unusable(error, path, path)
            continue
        yield from (of_finding(one, path) for one in findings)
        yield kind_diagnosis(robot, log)
        yield from encoder_diagnoses(robot, log)


def encoder_diagnoses(robot: RobotModel, log: RawLog) -> list[Diagnosis]:
    """Return whether motor and link encoders of elastic joints fit: there, ratio, sign, slip.

    Of a robot without elastic joints: whether others have such encoders in the recording.
    """
    name, elastic = 'motor encoders', [robot.joints[j] for j in robot.drive.elastic]
    if log.motor_position is None:
        return [] if not elastic else [Diagnosis(
            name, ERROR, log.source, f'no motor positions of {", ".join(elastic)}', 'record the '
            'topic motor_states (columns motor_position.<joint>), or omit elastic_joints')]
    encoders = dict(zip(robot.joints, encoders_of(
        robot, fill_holes(drop_implausible(robot, log)[0])[0]), strict=True))
    fitting = [joint for joint, one in encoders.items() if not one.refused]
    items = [Diagnosis(name, ERROR, f'{log.source} of {joint}', encoders[joint].refused, 'correct '
                       'it, or remove the joint from elastic_joints')
             for joint in elastic if joint not in fitting]
    notes = [f'{joint}: {encoders[joint].note}' for joint in elastic if encoders[joint].note]
    if any(encoders[joint].factor == 1.0 for joint in elastic):
        notes.append('motor states on the joint side do not show whether gear_ratios are right')
    if elastic and not items:
        items.append(Diagnosis(name, OK, log.source, '; '.join(
            [f'those of {", ".join(elastic)} follow their joints in size and sign', *notes])))
    rigid = [joint for joint in fitting if joint not in elastic]
    if rigid:
        items.append(Diagnosis(name, WARN, log.source, f'{subject(rigid, "has", "have")} motor '
                               'positions, too', 'name them in elastic_joints if their gears '
                                                 'deflect'))
    return items


def kind_diagnosis(robot: RobotModel, log: RawLog) -> Diagnosis:
    """Return whether the effort is of the stated kind, or which other kind fits."""
    stated, refused, where = robot.drive.kind, _refused(robot, log), log.source
    if not refused:
        return Diagnosis('effort kind', OK, where,
                         f'{stated}: nothing in the efforts contradicts it')
    fitting = [] if stated == POSITION_ERROR else [
        kind for kind in EFFORT_KINDS if kind not in (stated, POSITION_ERROR) and (
            kind not in GAIN_UNITS or robot.drive.gains is not None) and not _refused(
                replace(robot, drive=replace(robot.drive, kind=kind)), log)]
    if not fitting:
        return Diagnosis('effort kind', ERROR, where, f'neither {stated} nor another kind fits: '
                         f'{", ".join(refused)}', 'correct what is named above first')
    return Diagnosis('effort kind', ERROR, where, f'{stated} is contradicted, '
                     f'{" or ".join(fitting)} is not', f'state effort_kind: {fitting[0]} in the '
                     'robot YAML')


def _refused(robot: RobotModel, log: RawLog) -> list[str]:
    return [one.kind for one in gate_findings(robot, log) if one.severity is Severity.REFUSE]


def gains_of_size(robot: RobotModel, paths: Sequence[str]) -> dict[str, float] | None:
    """Return drive gains [N m/A] that give currents the size of the nominal links' torque.

    Joints that the links do not explain get the median of the others. None if no joint can be
    used, or no recording can be read.
    """
    scales = []
    for path in paths:
        try:
            rows = excerpt(robot.rigid, load_log(path, robot))
        except DynIdError:
            continue
        if len(rows) > 40:
            scales.append(robot.torque_factors / Explained(robot.rigid, rows).free_sizes)
    if not scales or not np.isfinite(scales).any():
        return None
    table = np.array(scales)  # of recordings, of joints
    table[:, ~np.isfinite(table).any(axis=0)] = np.nanmedian(table)
    gains = np.nanmedian(table, axis=0)
    return {joint: float(f'{gain:.3g}') for joint, gain in zip(robot.joints, gains)}
