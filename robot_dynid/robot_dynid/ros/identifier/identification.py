"""Identifications from data to model file, as requested by ~/identify; without rclpy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from pathlib import Path

from robot_dynid.errors import (
    Cancelled,
    DataError,
    DynIdError,
    UnexpectedError,
    UsageError,
)
from robot_dynid.files import check_target, file_digest
from robot_dynid.identification.identify import (
    IdentificationResult,
    add_recording_digests,
    identify,
    validate_result,
)
from robot_dynid.identification.payload import PayloadResult, identify_payload
from robot_dynid.identification.recipe import Recipe, recipe_from_text
from robot_dynid.identified import model_file
from robot_dynid.identified.caution import require_any_joint
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.bag import Topics, read_batches
from robot_dynid.io.cdr import JOINT_STATE, WRENCH, Batch
from robot_dynid.io.log import RecordingFile, load_log, open_recordings, with_wrenches
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.files_directory import RequestedFiles
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.windows import file_of
from robot_dynid.types import DAMAGE, Progress, RawLog
from robot_dynid.validation.evidence import Names
from robot_dynid.validation.verdict import refused_recordings

READING = 0.2  # share of the progress that reading the files counts as


class Code(IntEnum):
    """Outcome codes of an identification; the numbers are those of Identify.action."""

    SUCCESS = 0
    INVALID = -1
    NO_DATA = -2
    NOT_IDENTIFIABLE = -3
    NOT_SAVED = -4
    CANCELLED = -5
    ABORTED = -6


@dataclass(frozen=True)
class Recorded:
    """A recording of the identifier, perhaps still growing, with its topics.

    ``losses`` are sentences about missing messages.
    """

    file: Path
    topics: Topics
    losses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One identification; ``sources`` are files or windows of them, a recording, or a log itself.

    ``method`` is empty for that of the recipe. ``out`` and ``report`` are written below ``root``.
    ``judges`` are validation recordings.

    With ``payload``, identify only what the last link carries: relative to ``unloaded`` recordings
    of the same motion, or if there are none relative to ``arm``, the text of a model file.
    """

    robot: RobotModel
    sources: tuple[str | Recorded | RawLog, ...]
    method: str = ''
    recipe: str = ''
    out: str = ''
    report: str = ''
    root: str = '.'
    judges: tuple[str, ...] = ()
    payload: bool = False
    unloaded: tuple[str, ...] = ()
    arm: str = ''


@dataclass(frozen=True)
class Outcome:
    """Outcome of an identification; ``text`` is the text of the model file.

    ``verdict`` is that of the result in sentences; ``model_file`` and ``report_file`` are the
    paths written, '' for none.
    """

    code: Code
    message: str
    model: IdentifiedModel | None = None
    text: str = ''
    verdict: tuple[str, ...] = ()
    model_file: str = ''
    report_file: str = ''
    warnings: tuple[str, ...] = ()
    payload: PayloadResult | None = None


class _Failure(Exception):
    """An error together with its code."""

    def __init__(self, code: Code, error: Exception) -> None:
        super().__init__(str(error))
        self.code = code
        findings = error.findings if isinstance(error, DataError) else ()
        self.verdict = refused_recordings(findings).sentences if findings else ()


@contextmanager
def _failing_as(code: Code) -> Iterator[None]:
    """Give the errors of the block a code, unless they have one."""
    try:
        yield
    except (Cancelled, UnexpectedError):
        raise
    except DynIdError as error:
        if code is Code.NOT_IDENTIFIABLE and isinstance(error, UsageError):
            raise
        raise _Failure(code, error) from None


def run(job: Job, progress: Progress) -> Outcome:
    """Read, identify, save and report; every error becomes part of the outcome."""
    def later(stage: str, fraction: float) -> None:
        progress(stage, READING + (1.0 - READING) * fraction)

    try:
        recipe = recipe_from_text(job.recipe)
        job = replace(job, robot=recipe.of_recordings(job.robot))
        check_outputs(job)
        logs = read_recordings(job, progress)
        if job.payload:
            return _payload(job, replace(logs, accepted=recipe.accept), later)
        result = _identified(job, logs, recipe, later)
        progress('writing', 1.0)
        return _delivered(job, result, logs)
    except Cancelled:
        return Outcome(Code.CANCELLED, 'cancelled; the served model is unchanged')
    except UsageError as error:
        return Outcome(Code.INVALID, str(error))
    except _Failure as failure:
        return Outcome(failure.code, str(failure), verdict=failure.verdict)
    except UnexpectedError as error:
        return Outcome(Code.ABORTED, str(error))
    except Exception as error:  # a fault of the program must reach the user, too
        return Outcome(Code.ABORTED, str(UnexpectedError.of(error)))


def read_recordings(job: Job, progress: Progress = lambda stage, fraction: None) -> Parts:
    """Return the recordings, then those without payload."""
    def each() -> Iterator[tuple[RawLog, RecordingFile | None]]:
        sources = (*job.sources, *job.unloaded)
        for i, source in enumerate(sources):
            progress('read', READING * i / len(sources))
            file = RecordingFile(source, job.robot) if isinstance(source, str) else None
            with _failing_as(Code.NO_DATA):
                log = read_recording(source, job.robot)
            yield log, file

    return open_recordings(each())


def read_recording(source: str | Recorded | RawLog, robot: RobotModel) -> RawLog:
    """Return one recording; raises DataError if it is unusable."""
    if isinstance(source, RawLog):
        return source
    if isinstance(source, str):
        return load_log(source, robot)
    return read_batches(str(source.file), partial(_growing, source), robot.joints,
                        with_wrenches(source.topics, robot))


def _growing(source: Recorded, contents: Contents) -> Iterator[tuple[str, Batch]]:
    """Yield the messages of a recording; a missing end is not reported while it grows."""
    yield from mcap_batches(source.file, (JOINT_STATE, WRENCH), contents)
    damage = [finding for finding in contents.findings if finding.startswith(DAMAGE)]
    contents.findings[:] = [*source.losses, *damage]


def _payload(job: Job, recordings: Parts, progress: Progress) -> Outcome:
    count = len(job.sources)
    with _failing_as(Code.NOT_IDENTIFIABLE):
        logs = recordings.uncut('payload identification')
        arm = IdentifiedModel.from_yaml(job.arm) if job.arm else None
        result = identify_payload(job.robot, logs[:count], logs[count:], arm, progress=progress)
    return Outcome(Code.SUCCESS, f'payload of {result.estimate.mass:.4g} kg on {result.link}: '
                   f'{result.estimate.status.value}', warnings=result.warnings, payload=result)


def _identified(
    job: Job, logs: Parts, recipe: Recipe, progress: Progress
) -> IdentificationResult:
    with _failing_as(Code.NOT_IDENTIFIABLE):
        result = identify(job.robot, logs, job.method or None, recipe, progress)
        require_any_joint(result.model)
        files = {file_of(source) for source in job.sources if isinstance(source, str)}
        result = add_recording_digests(result, {file: file_digest(file) for file in files})
        if not job.judges:
            return result
        progress('scoring', 1.0)
        return validate_result(result, read_recordings(replace(job, sources=job.judges)))


def _delivered(job: Job, result: IdentificationResult, logs: Parts) -> Outcome:
    """Save and report, as far as requested."""
    model = result.model
    code, sentences = Code.SUCCESS, [
        model.status, f"identified {model.robot.name} except {', '.join(model.not_identified)}"
    ] if model.not_identified else [f'identified {model.robot.name}: {model.status}']
    written = {job.out: '', job.report: ''}
    for path, write in ((job.out, model.save), (job.report, partial(_write_report, result, logs))):
        if path:
            try:
                written[path] = str(write_below(job.root, path, write))
            except Exception as error:  # the model exists nevertheless
                code = Code.NOT_SAVED
                sentences.append(f'not written: {error}')
    names = Names.of(model, *([job.out] if job.out else ()))
    return Outcome(code, '; '.join(sentences), model, model.to_yaml(),
                   result.verdict_with(names).sentences,  # commands name the file that is written
                   written[job.out], written[job.report], tuple(result.warnings))


def _write_report(
    result: IdentificationResult, logs: Parts, path: Path, inside: Path
) -> None:
    from robot_dynid.report.html import write_report
    from robot_dynid.report.identification import identification_report

    write_report(identification_report(result, logs), path, inside)


def check_outputs(job: Job) -> None:
    """Raise UsageError for files that could not be written, before the work for them.

    Missing folders are created with the files.
    """
    wanted = [(job.out, model_file.MARK)] if job.out else []
    if job.report:
        from robot_dynid.report.html import MARK

        wanted.append((job.report, MARK))
    taken = {Path(file_of(source)).resolve() for source in job.sources
             if isinstance(source, str)}
    files = RequestedFiles(str, job.root)
    root = files.root
    for path, mark in wanted:
        target = files.target(path)
        if target.resolve() in taken:
            raise UsageError(f'{path}: the goal names it twice; give every output its own name')
        taken.add(target.resolve())
        folder = next(one for one in target.parents if os.path.lexists(one))
        if folder == target.parent:
            check_target(target, mark, root)
        else:  # where the first folder that is missing will be made
            check_target(folder / target.relative_to(folder).parts[0])


def write_below(root: str, path: str, write: Callable[[Path, Path], object]) -> Path:
    """Write a file where a request names it, below ``root``, and return its absolute path.

    Missing folders are created. ``write`` takes the path and the root. Raises UsageError for a
    path that is empty, outside, or taken by something else, DynIdError if it cannot be written.
    """
    files = RequestedFiles(str, root)
    target = files.target(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynIdError(f'{path}: cannot be written ({error.strerror or error})') from None
    write(target, files.root)
    return target
