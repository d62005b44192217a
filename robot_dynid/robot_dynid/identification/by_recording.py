"""Work on recordings one by one: examine them, reduce them to information, merge that.

A recording is reduced with choices made before, by the same code in any process, and information
merges in the order of the recordings, so the sum does not depend on the order of completion. The
information is all that a fit needs of the recordings, without their samples. Information reduced
with the same choices adds up, so a recording joins a model without reading the earlier ones again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.experiment import TorqueModel, add_recording, by_recording
from robot_dynid.estimation.information import Information
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import (
    Prepared,
    Recordings,
    Unusable,
    accepted_kinds,
)
from robot_dynid.identification.selection import Choice, between
from robot_dynid.identification.sequential_fit import friction_curves
from robot_dynid.identified.record import FitRecord, digest_of
from robot_dynid.identified.trained import Extent
from robot_dynid.plausibility.gate import (
    Examination,
    examine_recording,
    plausible_recordings,
)
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.serialization import robot_to_plain
from robot_dynid.signals.parts import Parts, in_memory
from robot_dynid.signals.single_joint_motion import SingleJointMotion
from robot_dynid.signals.windows import file_of
from robot_dynid.types import (
    FloatArray,
    Progress,
    RawLog,
    StoredRecording,
)
from robot_dynid.version import VERSION
from robot_dynid.workers import Workers

Item = TypeVar('Item')

#: most rows of recordings stored with the merged information: 50 MB for seven joints
MERGED_ROWS = 200_000
#: the purpose for which recordings are read in one piece
AVERAGING = 'averaging over periods'


@dataclass(frozen=True, eq=False)
class ReductionChoices:
    """Choices that recordings are reduced with; equal choices make their information mergeable.

    ``reversal_weights`` (n,) of the equations near reversals; None counts them in full.
    """

    choice: Choice
    reversal_weights: FloatArray | None


@dataclass(frozen=True, eq=False)
class RecordedInformation:
    """Information of recordings about the parameters of one model of a robot.

    ``choice`` of the model and the filters, and ``reversal_weights`` (n,); ``extent`` of the
    motion; ``record`` and ``notes`` of the reduction; ``excerpt``: some of the recordings, or
    stretches of them, as read; ``motions`` of single joints, if the recordings sweep.
    """

    robot: RobotModel
    choice: Choice
    information: Information
    reversal_weights: FloatArray | None
    extent: Extent
    record: FitRecord
    notes: tuple[str, ...]
    excerpt: tuple[RawLog, ...]
    motions: tuple[SingleJointMotion, ...] = ()

    @property
    def like(self) -> ReductionChoices:
        """The choices that other recordings must be reduced with to merge."""
        return ReductionChoices(self.choice, self.reversal_weights)

    def merge(self, other: RecordedInformation) -> RecordedInformation:
        """Return the information of both; raises UsageError if they do not belong together."""
        return merge_information((self, other))


@one_blas_thread()
def merge_information(parts: Iterable[RecordedInformation]) -> RecordedInformation:
    """Return the information of all, in order; one of ``parts`` is in memory at a time.

    Raises UsageError if they do not belong together.
    """
    total = _Sum()
    for part in check_parts(parts):
        total.add(part)
    return total.whole()


class _Excerpt:
    """A bounded number of rows of recordings, evenly spread over all that are added in order."""

    def __init__(self) -> None:
        self.logs: list[RawLog] = []
        self._count, self._every = 0, 1

    def add(self, logs: Iterable[RawLog]) -> None:
        """Add recordings; every second one is dropped whenever they become too many."""
        for log in logs:
            if self._count % self._every == 0:
                self.logs.append(log)
            self._count += 1
            while len(self.logs) > 1 and sum(len(one.time) for one in self.logs) > MERGED_ROWS:
                self.logs = self.logs[::2]
                self._every *= 2


class _Sum:
    """Sum of information; little is stored of each part."""

    def __init__(self) -> None:
        self._first: RecordedInformation | None = None
        self._information: Information | None = None
        self._extent: Extent | None = None
        self._excerpt = _Excerpt()
        self._parts: list[RecordedInformation] = []

    def add(self, part: RecordedInformation) -> None:
        """Add a part."""
        first = self._first = self._first or part
        self._information = add_recording(self._information, part.information)
        self._extent = part.extent if self._extent is None else Extent.merged(
            (self._extent, part.extent))
        self._excerpt.add(part.excerpt)
        self._parts.append(replace(
            part, robot=first.robot, choice=first.choice, extent=first.extent, excerpt=(),
            information=first.information.subset([])))

    def whole(self) -> RecordedInformation:
        """Return the sum; raises UsageError if it is empty."""
        if self._first is None or self._information is None or self._extent is None:
            raise UsageError('no information to identify from')
        parts, records = self._parts, [part.record for part in self._parts]
        record = replace(
            records[0],
            recordings=tuple(name for r in records for name in r.recordings),
            accepted=tuple(dict.fromkeys(kind for r in records for kind in r.accepted)),
            recording_digests=tuple(one for r in records for one in r.recording_digests),
            averaging=tuple(one for r in records for one in r.averaging),
            friction_curves=tuple(one for r in records for one in r.friction_curves))
        return replace(
            self._first, information=self._information, extent=self._extent, record=record,
            notes=tuple(note for p in parts for note in p.notes),
            excerpt=tuple(self._excerpt.logs),
            motions=tuple(one for p in parts for one in p.motions))


def check_parts(parts: Iterable[RecordedInformation]) -> Iterator[RecordedInformation]:
    """Yield the parts; raises UsageError for one that does not belong to the previous ones."""
    first: tuple[RecordedInformation, tuple[str, str]] | None = None
    seen: dict[str, str] = {}
    for part in parts:
        choices, names = _choices(part), part.record.recordings
        first = first or (part, choices)
        _compare(*first, part, choices)
        for digest, name in zip(part.record.recording_digests, names, strict=False):
            if digest and digest in seen:
                raise UsageError(f'{name} counts twice: it is also in the information of '
                                 f'{seen[digest]}: omit one of them')
        seen |= dict(zip(part.record.recording_digests, names, strict=False))
        part_contents = contents(part.information)
        for content in part_contents:
            if content in seen:
                raise UsageError(f'{", ".join(names)}: a recording counts twice: under another '
                                 f'name or in another file it is also in the information of '
                                 f'{seen[content]}: omit one of them')
        seen |= dict.fromkeys(part_contents, ', '.join(names))
        yield part


def contents(information: Information) -> tuple[str, ...]:
    """Return a digest of the equations of every recording; copies have the same digest."""
    digests: dict[int, Any] = {}
    for batch in information.batches:
        digest = digests.setdefault(batch.recording, hashlib.sha256())
        for factor in batch.factors:
            digest.update(np.ascontiguousarray(factor).tobytes())
    return tuple(one.hexdigest() for one in digests.values())


def check_alike(first: RecordedInformation, part: RecordedInformation) -> None:
    """Raise UsageError unless two parts are of one robot and reduced with the same choices."""
    _compare(first, _choices(first), part, _choices(part))


def _choices(part: RecordedInformation) -> tuple[str, str]:
    """Return digests of the robot, and of the filters and laws of information."""
    return (digest_of(robot_to_plain(part.robot)),
            digest_of((part.choice.structure, part.choice.preprocessing)))


def _compare(
    first: RecordedInformation, alike: tuple[str, str], part: RecordedInformation,
    choices: tuple[str, str],
) -> None:
    names = ', '.join(part.record.recordings)
    if choices[0] != alike[0]:
        raise UsageError(f'the information of {names} belongs to another robot '
                         f'({part.robot.name}, not {first.robot.name}, or one with other '
                         'parameters)')
    if choices[1] != alike[1] or not _same(first.reversal_weights, part.reversal_weights):
        raise UsageError(
            f'the information of {names} was created with other filters or friction laws: create '
            'it again with --like and the other information')


def _same(a: FloatArray | None, b: FloatArray | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))


class Keeper(Protocol):
    """A store of the information of recordings for later runs."""

    def load(self, source: str, digest: str, key: str) -> tuple[RecordedInformation | None, str]:
        """Return the information of a recording or None, and the reason why it is unusable or ''.

        ``digest`` is that of its file, ``key`` that of the choices it is reduced with.
        """

    def save(self, made: RecordedInformation, source: str, digest: str) -> None:
        """Store the information of a recording."""


@dataclass
class Recorded:
    """Workers on recordings, and the store of their information, if any.

    ``taken`` and ``redone`` count recordings whose stored information was used, or was unusable;
    ``wrong`` is the reason for the first unusable one; ``opened`` are the recordings as readable
    from here.
    """

    workers: Workers
    keeper: Keeper | None = None
    taken: int = 0
    redone: int = 0
    wrong: str = ''
    opened: Parts = field(default_factory=lambda: Parts(()))

    def survey(
        self, robot: RobotModel, logs: Parts, recipe: Recipe, progress: Progress
    ) -> list[Survey]:
        """Open and examine recordings; raises what the first unusable one raises."""
        task = _Examine(robot, replace(logs, recordings=()), recipe.periodic is not None)
        surveys: list[Survey] = []
        for survey in self.workers.results(task, logs.recordings):
            surveys.append(survey)
            progress(_progress_text('reading and examining', len(surveys), logs.recordings),
                     0.2 * len(surveys) / len(logs.recordings))
        self.opened = replace(logs, recordings=tuple(one.recording for one in surveys))
        return surveys

    def reduce(
        self, robot: RobotModel, surveys: Sequence[Survey],
        choices: tuple[ReductionChoices, Recipe],
        progress: Progress,
    ) -> RecordedInformation:
        """Return the information of all recordings; raises DataError if none is usable."""
        groups = [_Group(tuple(s.recording for s in run), run[0].digest) for run in (
            list(same) for _, same in groupby(surveys, lambda s: file_of(s.recording.source)))]
        recipe, task = choices[1], self._reduction_task(robot, choices, self.opened)
        total, unusable = _Sum(), list[Exception]()
        notes: list[str] = []
        for result in self._run(task, groups, between(progress, 0.5, 0.9)):
            if result.information is None:
                unusable += [result.error] if result.error else []
            else:
                total.add(replace(result.information, notes=()))
            notes += result.notes
        if unusable and len(unusable) == len(groups):
            raise unusable[0]
        whole = total.whole()
        curves, more = friction_curves(robot, whole.motions, recipe)
        record = replace(whole.record, recipe_digest='', friction_curves=tuple(
            curve.summary for curve in curves))
        return replace(whole, record=record, notes=(*notes, *more), motions=())

    def each(
        self, robot: RobotModel, logs: Parts, choices: tuple[ReductionChoices, Recipe],
        progress: Progress,
    ) -> Iterator[Reduced]:
        """Yield the information of each recording separately, without comparing it with others.

        An unusable one carries the DataError that explains it.
        """
        task = _ReduceAlone(
            _Examine(robot, replace(logs, recordings=()), choices[1].periodic is not None),
            self._reduction_task(robot, choices, logs))
        yield from self._run(task, logs.recordings, progress)

    def _reduction_task(
        self, robot: RobotModel, choices: tuple[ReductionChoices, Recipe], logs: Parts
    ) -> _Reduce:
        like, recipe = choices
        key = digest_of((VERSION, like.choice.structure, like.choice.preprocessing, *(
            () if like.reversal_weights is None else like.reversal_weights),
            robot_to_plain(robot), recipe.rate, recipe.periodic))
        return _Reduce(robot, recipe, like, replace(logs, recordings=()), key, self.keeper)

    def _run(
        self, task: Callable[[Item], Reduced], items: Sequence[Item], progress: Progress,
    ) -> Iterator[Reduced]:
        """Yield the results of the workers and count the reused ones."""
        self.taken = self.redone = 0
        self.wrong = ''
        for done, result in enumerate(self.workers.results(task, items), start=1):
            self.taken += result.taken
            self.redone += bool(result.wrong)
            self.wrong = self.wrong or result.wrong
            progress(_progress_text('reducing', done, items), done / len(items))
            yield result


def _progress_text(doing: str, done: int, every: Sequence[object]) -> str:
    return f'{doing}: {done} of {len(every)} recordings'


@dataclass(frozen=True, eq=False)
class Survey:
    """An opened recording, its examination, and the SHA-256 of its file, or ''."""

    recording: RawLog | StoredRecording
    examination: Examination
    digest: str


@dataclass(frozen=True, eq=False)
class _Examine:
    """Task: open a recording and examine it; ``cut`` defines how long ones are cut."""

    robot: RobotModel
    cut: Parts
    whole: bool

    @one_blas_thread()
    def __call__(self, recording: RawLog | StoredRecording) -> Survey:
        opened, digest = (recording, '') if isinstance(recording, RawLog) else recording.opened()
        parts = replace(self.cut, recordings=(opened,))
        logs = parts.uncut(AVERAGING) if self.whole else parts
        return Survey(opened, examine_recording(self.robot, opened.source, logs), digest)


@dataclass(frozen=True, eq=False)
class _Group:
    """Adjacent windows of one file, or one recording: parts may continue from one to the next."""

    recordings: tuple[RawLog | StoredRecording, ...]
    digest: str

    @property
    def source(self) -> str:
        """The recordings."""
        return ', '.join(recording.source for recording in self.recordings)


@dataclass(frozen=True, eq=False)
class Reduced:
    """Information of a recording; None if unusable, with the ``error`` that explains it.

    ``taken``: it was stored before; ``wrong`` is the reason why stored information was not used.
    ``began`` [s since 1970] for single recordings whose stamps are times of day.
    """

    information: RecordedInformation | None
    notes: tuple[str, ...]
    error: Exception | None = None
    taken: bool = False
    wrong: str = ''
    began: float | None = None


@dataclass(frozen=True, eq=False)
class _Reduce:
    """Task: reduce a recording to information, or load its stored information."""

    robot: RobotModel
    recipe: Recipe
    like: ReductionChoices
    cut: Parts
    key: str
    keeper: Keeper | None

    @one_blas_thread()
    def __call__(self, group: _Group) -> Reduced:
        wrong = ''
        if self.keeper is not None and group.digest:
            stored, wrong = self.keeper.load(group.source, group.digest, self.key)
            if stored is not None:
                record = replace(stored.record, recordings=tuple(
                    one.source for one in group.recordings))
                return Reduced(replace(stored, record=record), stored.notes, taken=True)
        result = self._reduce(group)
        if self.keeper is not None and group.digest and result.information is not None:
            self.keeper.save(result.information, group.source, group.digest)
        return replace(result, wrong=wrong)

    def _reduce(self, group: _Group) -> Reduced:
        parts: Sequence[RawLog] = replace(self.cut, recordings=group.recordings)
        if self.recipe.periodic is not None and isinstance(parts, Parts):
            parts = parts.uncut(AVERAGING)
        model = _model(self.like.choice, self.robot, self.key)
        recordings = Recordings(self.robot, parts, self.recipe)
        prepared = Prepared(model.robot, recordings, self.like.choice.preprocessing,
                            lambda *_: None)
        try:
            information: Information | None = None
            for one in by_recording(model, prepared, self.like.reversal_weights):
                information = add_recording(information, one)
        except Unusable as error:
            return Reduced(None, prepared.all_notes, error)
        assert information is not None
        record = FitRecord(
            recordings=tuple(one.source for one in group.recordings), averaging=tuple(
                prepared.averaged.values()), recipe_digest=self.key,
            accepted=accepted_kinds(self.recipe, parts),
            recording_digests=(group.digest,) * len(group.recordings))
        notes = prepared.all_notes
        return Reduced(RecordedInformation(
            self.robot, self.like.choice, information, self.like.reversal_weights,
            Extent.merged(tuple(prepared.extents.values())), record, notes, (),
            prepared.all_motions), notes)


@dataclass(frozen=True, eq=False)
class _ReduceAlone:
    """Task: examine and reduce one recording; an error it raises is part of the result."""

    examine: _Examine
    reduce: _Reduce

    @one_blas_thread()
    def __call__(self, recording: RawLog | StoredRecording) -> Reduced:
        try:
            survey = self.examine(recording)
            logs, findings = plausible_recordings(
                self.reduce.robot, replace(self.reduce.cut, recordings=(survey.recording,)),
                self.reduce.recipe.accept, [survey.examination])
            assert isinstance(logs, Parts)
            result = self.reduce(_Group(logs.recordings, survey.digest))
        except DataError as error:
            return Reduced(None, (), error)
        return replace(result, notes=(*findings, *result.notes), began=_began(survey.recording))


def _began(recording: RawLog | StoredRecording) -> float | None:
    """Return the time of day of the first row [s since 1970]."""
    log = in_memory(recording)
    return None if log.epoch is None else log.epoch + float(log.time[0])


_latest_model: dict[str, TorqueModel] = {}


def _model(choice: Choice, robot: RobotModel, key: str) -> TorqueModel:
    """Return the model of a choice, cached from the previous task."""
    if key not in _latest_model:
        _latest_model.clear()
        _latest_model[key] = choice.structure.torque_model(robot)
    return _latest_model[key]


