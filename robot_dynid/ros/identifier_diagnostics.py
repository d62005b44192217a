"""What the identifier says of itself on /diagnostics."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.ros.recorder import Recorder
from robot_dynid.ros.recording import Heard

SILENCE = 1.0  # s without joint states before the status is a warning


def diagnosis(
    name: str, heard: tuple[Heard, ...], recorder: Recorder | None, recording: bool,
    model: IdentifiedModel | None, stage: str,
) -> DiagnosticStatus:
    """Return the status; ``heard`` begins with the joint states."""
    status = DiagnosticStatus(name=name, level=DiagnosticStatus.OK, message='ready')
    if stage:
        status.message = f'identifying: {stage}'
    if heard[0].age > SILENCE:
        status.level = DiagnosticStatus.WARN
        status.message = f'no messages on {heard[0].topic}'
    if recorder is not None and recorder.findings:
        status.level, status.message = DiagnosticStatus.ERROR, recorder.findings[0]
    values = {
        'model': model.robot.name if model is not None else 'none',
        'not identified': ', '.join(model.not_identified) if model is not None else '',
        'recording': 'yes' if recording else 'no',
        'recorded messages': str(recorder.received if recorder is not None else 0),
        'recorded to': str(recorder.path) if recorder is not None else '',
        'identification': stage or 'none',
    }
    for topic in heard:
        values |= {
            f'{topic.topic} rate [Hz]': f'{topic.rate:.1f}',
            f'{topic.topic} largest gap [s]': f'{topic.largest_gap:.4f}',
            f'{topic.topic} age [s]': f'{topic.age:.3f}',
        }
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    return status
