"""Diagnostics of the identifier on /diagnostics: its state, and contact with the robot."""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from robot_dynid.identified.caution import after_caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor, Reading
from robot_dynid.ros.identifier.monitoring import EVERY, MonitorStatus, told
from robot_dynid.ros.identifier.recording import Recording, TopicStatistics

SILENCE = 1.0  # s without joint states before the status is a warning


def diagnosis(
    name: str, topics: tuple[TopicStatistics, ...], recording: Recording,
    model: IdentifiedModel | None, stage: str,
) -> DiagnosticStatus:
    """Return the status; ``topics`` begins with the joint states."""
    status = DiagnosticStatus(name=name, level=DiagnosticStatus.OK, message='ready')
    if stage:
        status.message = f'identifying: {stage}'
    if topics[0].age > SILENCE:
        status.level = DiagnosticStatus.WARN
        status.message = f'no messages on {topics[0].topic}'
    lost = [topic for topic in topics if topic.lost]
    if lost:
        status.level = DiagnosticStatus.WARN
        status.message = (f'{lost[0].lost} messages of {lost[0].topic} were sent and never came '
                          'in: the computer or the network is too busy')
    recorder = recording.recorder
    if recording.findings:
        status.level, status.message = DiagnosticStatus.ERROR, recording.findings[0]
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

    A warning when a joint was touched of late, an error when one could not be watched.
    """
    status = DiagnosticStatus(name=name, level=DiagnosticStatus.OK, message='no contact')
    if monitor is None:
        status.level, status.message = DiagnosticStatus.ERROR, told(latest.blind)
        return status
    joints = monitor.model.joints
    touched = [joint for joint in joints if joint in latest.touched]
    blind = told(latest.blind) if latest.blind else ''
    problems = [text for text in (latest.problem, latest.motor_problem, *monitor.advice())
                if text and text not in blind]
    found = [*([f'contact: {", ".join(touched)}'] if touched else []),
             *([blind] if blind else []), *problems]
    if found:
        status.level = DiagnosticStatus.ERROR if blind else DiagnosticStatus.WARN
        status.message = '; '.join(found)
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
    if latest.reading is not None and any(monitor.model.adaptations):
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
    """Return the values that motor states give, joint by joint."""
    assert read.deflected is not None
    assert read.spread is not None
    assert read.gear is not None
    assert read.gear_spread is not None
    found = {}
    for joint, used, spread, gear, gear_spread in zip(
            monitor.model.joints, read.deflected, read.spread, read.gear, read.gear_spread,
            strict=True):
        found[f'{joint} predicted with deflection'] = 'yes' if used else 'no'
        if not np.isnan(spread):
            found[f'{joint} deviation of the learned effort [N m]'] = f'{spread:.3f}'
        if not np.isnan(gear):
            found[f'{joint} gear torque [N m]'] = f'{gear:.3f} +- {gear_spread:.3f}'
    return {**found, 'unusable motor states': str(monitor.unusable_motor_states)}
