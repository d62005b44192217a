"""Messages of the identifier: diagnostics, markers of external torque, models, payloads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point
from visualization_msgs.msg import Marker, MarkerArray

from robot_dynid.identification.payload import PayloadResult, set_load
from robot_dynid.identified.caution import after_caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor, Reading
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.messages import doubles
from robot_dynid.ros.recording.channel import TopicStatistics
from robot_dynid.ros.recording.session import Recording
from robot_dynid.types import FloatArray
from robot_dynid_interfaces.msg import DynamicModel, Payload

SILENT_TOPIC = 1.0  # s without joint states before the status is a warning
ARROW_LENGTH = 1.0  # m of an arrow for a torque as large as the effort limit of the joint
WITHOUT_LIMIT = 100.0  # N m (N) in place of a limit
SHAFT, ARROW_HEAD = 0.02, 0.04  # m
FREE, TOUCHED = (0.2, 0.8, 0.3), (0.9, 0.1, 0.1)
EVERY = 'all joints'


@dataclass
class MonitorStatus:
    """Status for the diagnostics.

    Since the last reading joints were ``touched``, or ``blind`` for the reason given (key EVERY
    for all joints); ``problem`` is that of the latest joint state, ``motor_problem`` that of the
    latest motor state.
    """

    problem: str = ''
    motor_problem: str = ''
    touched: set[str] = field(default_factory=set)
    blind: dict[str, str] = field(default_factory=dict)
    reading: Reading | None = None
    dropped: int = 0


def model_message(model: IdentifiedModel, text: str, stamp: Time) -> DynamicModel:
    """Return the latched description of a model; ``text`` is its file."""
    message = DynamicModel(
        robot=model.robot.name, robot_hash=model.robot.hash(), joint_names=list(model.joints),
        not_identified=list(model.not_identified), names=list(model.names),
        values=doubles(model.values), std=doubles(model.std), labels=list(model.labels),
        yaml=text,
    )
    message.header.stamp = stamp
    message.header.frame_id = model.robot.base_link
    return message


def payload_message(result: PayloadResult) -> Payload:
    """Describe an identified payload; undetermined values are NaN."""
    estimate, load = result.estimate, set_load(result.estimate)
    message = Payload(
        frame=result.link, determined=load is not None, mass=estimate.mass,
        centre_of_mass=estimate.centre_of_mass, not_excited=list(estimate.not_excited))
    message.mass_std = estimate.mass_std if np.isfinite(estimate.mass_std) else np.nan
    std = estimate.centre_of_mass_std
    message.centre_of_mass_std = np.where(np.isfinite(std), std, np.nan)
    message.inertia = np.full(9, np.nan) if load is None else np.array(load['load_inertia'])
    return message


def contact_markers(
    robot: RobotModel, external: FloatArray, contact: Collection[str], stamp: int
) -> MarkerArray:
    """Return an arrow per joint, in the frame of the link it moves, red if it is in contact.

    ``external`` (n,) is external torque [N m, N], NaN where it is unknown: no arrow there;
    ``contact`` names the joints in contact, ``stamp`` is in ns.
    """
    limits = np.where(np.isfinite(robot.limits.effort), robot.limits.effort, WITHOUT_LIMIT)
    markers = MarkerArray()
    time = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
    for j, (joint, link) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        marker = Marker(ns='external_torque', id=j, type=Marker.ARROW, action=Marker.ADD)
        marker.header.frame_id, marker.header.stamp = link, time
        if np.isnan(external[j]):
            marker.action = Marker.DELETE
        else:
            x, y, z = (ARROW_LENGTH * external[j] / limits[j] * robot.axes[j]).tolist()
            marker.pose.orientation.w = 1.0
            marker.points = [Point(), Point(x=x, y=y, z=z)]
            marker.scale.x, marker.scale.y = SHAFT, ARROW_HEAD
            marker.color.r, marker.color.g, marker.color.b = TOUCHED if joint in contact else FREE
            marker.color.a = 1.0
        markers.markers.append(marker)
    return markers


def blind_sentence(blind: Mapping[str, str]) -> str:
    """Return in one sentence which joints are blind, and why, grouped by reason."""
    joints: dict[str, list[str]] = {}
    for joint, reason in blind.items():
        joints.setdefault(reason, []).append(joint)
    return 'blind: ' + '; '.join(
        f'{", ".join(names)}: {reason}' for reason, names in joints.items())


def diagnosis(
    name: str, topics: tuple[TopicStatistics, ...], recording: Recording,
    model: IdentifiedModel | None, stage: str,
) -> DiagnosticStatus:
    """Return the status; ``topics`` begins with the joint states."""
    status = DiagnosticStatus(name=name, level=DiagnosticStatus.OK, message='ready')
    if stage:
        status.message = f'identifying: {stage}'
    if topics[0].age > SILENT_TOPIC:
        status.level = DiagnosticStatus.WARN
        status.message = f'no messages on {topics[0].topic}'
    lost = [topic for topic in topics if topic.lost]
    if lost:
        status.level = DiagnosticStatus.WARN
        status.message = (f'{lost[0].lost} messages of {lost[0].topic} were lost: reduce the load '
                          'of the computer or the network')
    recorder = recording.recorder
    if recording.findings:
        status.level = DiagnosticStatus.WARN if recording.intact else DiagnosticStatus.ERROR
        status.message = recording.findings[0]
    if model is not None and model.not_identified:
        status.level = max(status.level, DiagnosticStatus.WARN)
        status.message = after_caution(model, status.message)
    values = {
        'model': model.robot.name if model is not None else 'none',
        'not identified': ', '.join(model.not_identified) if model is not None else '',
        'recording': 'yes' if recording.running else 'no',
        'recorded messages': str(recorder.received if recorder is not None else 0),
        'recorded to': str(recorder.path) if recorder is not None else '',
        'identification': stage or 'none',
    }
    for topic in topics:
        values |= {
            f'{topic.topic} rate [Hz]': f'{topic.rate:.1f}',
            f'{topic.topic} largest gap [s]': f'{topic.largest_gap:.4f}',
            f'{topic.topic} age [s]': f'{topic.age:.3f}',
            f'{topic.topic} lost messages': str(topic.lost),
        }
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    return status


def contact_diagnosis(
    name: str, monitor: Monitor | None, latest: MonitorStatus
) -> DiagnosticStatus:
    """Return the status of the external torque.

    A warning if a joint was touched lately, an error if one could not be watched.
    """
    status = DiagnosticStatus(name=name, level=DiagnosticStatus.OK, message='no contact')
    if monitor is None:
        status.level, status.message = DiagnosticStatus.ERROR, blind_sentence(latest.blind)
        return status
    joints = monitor.model.joints
    touched = [joint for joint in joints if joint in latest.touched]
    blind = blind_sentence(latest.blind) if latest.blind else ''
    problems = [text for text in (latest.problem, latest.motor_problem, *monitor.advice())
                if text and text not in blind]
    messages = [*([f'contact: {", ".join(touched)}'] if touched else []),
                *([blind] if blind else []), *problems]
    if messages:
        status.level = DiagnosticStatus.ERROR if blind else DiagnosticStatus.WARN
        status.message = '; '.join(messages)
    every = latest.blind.get(EVERY)
    unknown = {joint: f'blind: {reason}' for joint in joints
               if (reason := every or latest.blind.get(joint))}
    values = {joint: 'contact' if joint in touched else unknown.get(joint, 'free')
              for joint in joints}
    if latest.reading is not None and not every:
        read = latest.reading
        external = np.where(read.unseen, np.nan, read.external)
        for joint, torque, claimed, size in zip(
                joints, external, read.claimed, read.threshold, strict=True):
            values[f'{joint} external torque [N m]'] = f'{torque:.3f}'
            values[f'{joint} thresholds [N m]'] = f'{claimed - size:.3f}, {claimed + size:.3f}'
    if latest.reading is not None and 'adaptation' in monitor.model.learnt:
        read = latest.reading
        for joint, viscous, dry in zip(joints, read.viscous_scale, read.dry_scale, strict=True):
            values[f'{joint} viscous friction [% of the model]'] = f'{100.0 * viscous:.1f}'
            values[f'{joint} dry friction [% of the model]'] = f'{100.0 * dry:.1f}'
    if latest.reading is not None and latest.reading.deflected is not None:
        values |= _deflection(monitor, latest.reading)
    values |= {
        'delay of the residual [s]': f'{monitor.delay:.4f}',
        'delay of the external torque [s]': f'{1.0 / monitor.settings.gain:.4f}',
        'skipped joint states': str(monitor.skipped), 'restarts': str(monitor.restarts),
        'joint states dropped since the last report': str(latest.dropped),
    }
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    return status


def _deflection(monitor: Monitor, read: Reading) -> dict[str, str]:
    """Return the values computed from motor states, joint by joint."""
    assert read.deflected is not None and read.spread is not None
    assert read.gear is not None and read.gear_spread is not None
    values = {}
    for joint, used, spread, gear, gear_spread in zip(
            monitor.model.joints, read.deflected, read.spread, read.gear, read.gear_spread,
            strict=True):
        values[f'{joint} predicted with deflection'] = 'yes' if used else 'no'
        if not np.isnan(spread):
            values[f'{joint} deviation of the learned effort [N m]'] = f'{spread:.3f}'
        if not np.isnan(gear):
            values[f'{joint} gear torque [N m]'] = f'{gear:.3f} +- {gear_spread:.3f}'
    return {**values, 'unusable motor states': str(monitor.unusable_motor_states)}
