"""Information files: NumPy arrays in a ZIP archive, a JSON header, one digest.

An information folder caches one file per recording.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DynIdError, ModelError
from robot_dynid.estimation.information import Batch, ByMotion, Information
from robot_dynid.files import atomic_write, open_regular
from robot_dynid.identification.by_recording import RecordedInformation
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Extent
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.signals.held_out_motion import DistinctMotion
from robot_dynid.signals.single_joint_motion import SingleJointMotion
from robot_dynid.signals.windows import file_of
from robot_dynid.types import CHANNELS, FloatArray, Part, RawLog, channels
from robot_dynid.version import VERSION

#: ending of their names
SUFFIX = '.info'
#: name of the first entry of the archive, found in the first bytes of every file
HEAD = 'robot_dynid_information_1'
MARK = HEAD.encode()
#: limits of file and unpacked size [bytes]
FILE_BYTES, CONTENT_BYTES = 1 << 30, 4 << 30
DIGEST = 'digest'
#: arrays of efforts with stamps of their own
MESSAGES = ('message_stamps', 'message_effort')
#: software that writes the file
SOFTWARE = f'robot_dynid {VERSION}'


def save_information(
    info: RecordedInformation, path: str | Path, mark: bytes | None = MARK
) -> str:
    """Write information to a file and return the SHA-256 of its bytes.

    Only files with the ``mark`` are overwritten; None: any file. Raises UsageError for an invalid
    target, DynIdError if it cannot be written.
    """
    arrays: dict[str, Any] = {'structure': info.information.structure}
    for joint in range(len(info.information.structure)):
        arrays[f'factors_{joint}'] = np.array([b.factors[joint] for b in info.information.batches])
    arrays['batches'] = np.array([[b.samples, b.recording] for b in info.information.batches])
    by_motion = info.information.by_motion
    assert by_motion is not None
    for joint in range(len(info.information.structure)):
        arrays[f'cells_{joint}'] = np.array([b.factors[joint] for b in by_motion.batches])
    arrays['rows'] = by_motion.rows
    arrays |= {f'motion_{f.name}': getattr(by_motion.motion, f.name)
               for f in fields(DistinctMotion)}
    if info.information.noise is not None:
        arrays['noise'] = info.information.noise
    if info.reversal_weights is not None:
        arrays['reversal_weights'] = info.reversal_weights
    for number, log in enumerate(info.excerpt):
        arrays |= {f'log_{number}_{name}': values for name, values in _channels(log).items()}
    head = json.dumps({
        'software': SOFTWARE, 'robot': robot_to_plain(info.robot),
        'names': info.information.names, 'choice': to_plain(info.choice),
        'extent': to_plain(info.extent), 'record': info.record.plain(), 'notes': info.notes,
        'excerpt': [_described(log) for log in info.excerpt],
        **({'motions': to_plain(info.motions)} if info.motions else {})})
    first = {HEAD: np.frombuffer(head.encode(), dtype=np.uint8)}
    content = {**first, **arrays}
    buffer = BytesIO()
    np.savez_compressed(buffer, **content, **{DIGEST: _digest(content)})
    return atomic_write(path, buffer.getvalue(), mark)


def load_information(path: str | Path) -> RecordedInformation:
    """Read a file of `save_information`.

    Raises UsageError if it does not exist, ModelError if it is damaged or of another kind.
    """
    content = _content(path)
    if not np.array_equal(content.pop(DIGEST, None), _digest(content)):
        raise ModelError(f'{path}: changed or damaged (its digest does not match its content); '
                         'copy or create it again')
    try:
        return _read(json.loads(bytes(content[HEAD])), content, str(path))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelError(f'{path}: damaged: {error.__class__.__name__} {error}; create it again '
                         'with robot-dynid information') from None
    except ModelError:
        raise
    except DynIdError as error:
        raise ModelError(f'{path}: {error}') from None


def _content(path: str | Path) -> dict[str, Any]:
    """Return the arrays of a file; raises ModelError for anything else."""
    with open_regular(path) as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES or MARK not in data[:len(MARK) + 100]:
        raise ModelError(f'{path}: not an information file of robot_dynid (format 1)')
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > CONTENT_BYTES:
                raise ModelError(f'{path}: unpacks to more than {CONTENT_BYTES} bytes')
        with np.load(BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, KeyError, NotImplementedError,
            zlib.error) as error:
        raise ModelError(f'{path}: damaged ({error}); copy or create it again') from None


def _digest(content: Mapping[str, Any]) -> Any:
    """Return the SHA-256 (32,) of names, dtypes, shapes and bytes of arrays."""
    digest = hashlib.sha256()
    for name in sorted(content):
        array = np.ascontiguousarray(content[name])
        digest.update(f'{name} {array.dtype.str} {array.shape}\0'.encode() + array.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _read(head: dict[str, Any], content: dict[str, Any], source: str) -> RecordedInformation:
    robot = robot_from_plain(head['robot'], source)
    choice = from_plain(Choice, head['choice'])
    structure = content['structure']
    batches = _batches('factors', content, content['batches'])
    model = choice.structure.torque_model(robot)
    names = tuple(head['names'])
    if names != model.reduction.names or not np.array_equal(structure, model.structure):
        raise ModelError(f'{source}: its parameters do not match its robot and friction laws in '
                         'this version; create it again from the recordings')
    return RecordedInformation(
        robot, choice, Information(names, structure, batches, content.get('noise'),
                                   _by_motion(content)),
        content.get('reversal_weights'), from_plain(Extent, head['extent']),
        FitRecord.from_plain(head['record'], ''), (*head['notes'], *_other(head, source)),
        tuple(_log(one, i, content) for i, one in enumerate(head['excerpt'])),
        tuple(from_plain(SingleJointMotion, one) for one in head.get('motions', ())))


def _batches(
    name: str, content: Mapping[str, Any], counts: NDArray[np.int64]
) -> tuple[Batch, ...]:
    """Return batches from arrays of their factors, one of every joint.

    ``counts`` (B, 2) are their samples and recordings.
    """
    factors = [content[f'{name}_{joint}'] for joint in range(len(content['structure']))]
    return tuple(Batch(tuple(factor[i] for factor in factors), int(samples), int(recording))
                 for i, (samples, recording) in enumerate(counts))


def _by_motion(content: Mapping[str, Any]) -> ByMotion:
    """Return the data by cells of distinct motions."""
    motion = DistinctMotion(*(content[f'motion_{f.name}'] for f in fields(DistinctMotion)))
    motion.guard = float(motion.guard)
    samples = np.bincount(content['rows'], minlength=len(motion.seconds))
    counts = np.stack([samples, np.zeros_like(samples)], axis=1)
    return ByMotion(motion, _batches('cells', content, counts), content['rows'])


def _other(head: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """Return a note if the file was created by another version."""
    if head['software'] == SOFTWARE:
        return ()
    return (f'{source}: created by {head["software"]}, this is {SOFTWARE}; if filters or friction '
            'laws changed in between, create it again from the recordings',)


def _channels(log: RawLog) -> dict[str, FloatArray]:
    return {'time': log.time, **channels(log), **dict(zip(MESSAGES, log.effort_messages or ()))}


def _described(log: RawLog) -> dict[str, Any]:
    return {
        'source': log.source, 'joints': log.joints, 'findings': log.findings,
        'accepted': log.accepted, 'epoch': log.epoch, 'began': log.began,
        'part': None if log.part is None else to_plain(log.part)}


def _log(described: dict[str, Any], number: int, content: dict[str, Any]) -> RawLog:
    arrays: dict[str, Any] = {name: content.get(f'log_{number}_{name}')
                              for name in ('time', *CHANNELS, *MESSAGES)}
    stamps, effort = (arrays.pop(name) for name in MESSAGES)
    names = {name: tuple(described[name]) for name in ('joints', 'findings', 'accepted')}
    part = None if described['part'] is None else from_plain(Part, described['part'])
    values: dict[str, Any] = {**arrays, **described, **names, 'part': part}
    return RawLog(**values, effort_messages=None if stamps is None else (stamps, effort))


@dataclass(frozen=True)
class InformationFolder:
    """Cache of information by the content of recordings, see `by_recording.Keeper`."""

    path: str

    def load(
        self, source: str, digest: str, key: str
    ) -> tuple[RecordedInformation | None, str]:
        """Return the information of a recording, or None and the reason."""
        place = self._place(source, digest)
        if not place.exists():
            return None, ''
        try:
            information = load_information(place)
        except DynIdError as error:
            return None, str(error)
        record = information.record
        if record.recipe_digest != key or digest not in record.recording_digests:
            return None, f'{place}: created with other choices, or by another version'
        return information, ''

    def save(self, made: RecordedInformation, source: str, digest: str) -> None:
        """Store the information of a recording atomically.

        An existing file of that name is unusable, or was created meanwhile by another process that
        may be reading it: it is replaced atomically.
        """
        save_information(made, self._place(source, digest), mark=None)

    def _place(self, source: str, digest: str) -> Path:
        file = file_of(source.partition(', ')[0])
        content = hashlib.sha256(f'{digest} {source.replace(file, "")}'.encode()).hexdigest()
        return Path(self.path) / f'{Path(file).name}-{content[:12]}{SUFFIX}'
