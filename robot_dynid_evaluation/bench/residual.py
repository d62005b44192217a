"""Errors of a model on recordings left out, effect by effect, beside what the robot repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.effects import RigidLinks
from robot_dynid.errors import UsageError
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import NONE, Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.log import load_log
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid.validation.validate import Trace, validate
from robot_dynid_evaluation.bench import Row

#: what the prediction knows, one effect more from column to column
MODELS = ('wls coulomb', 'auto', '+ ripple', '+ ripple, warm-up', 'adaptive')
COLUMNS = ('joint', 'error', *MODELS, 'adaptive / auto', 'robot itself')
#: Hz, below which a motion and its torque are slow; grid [s] of the errors in that band
BAND, STEP = 8.0, 0.01
#: s at both ends of two runs of one motion that do not count: they did not start at once
ENDS = 0.05
#: mean squared difference of positions [rad^2, m^2] above which two runs are two motions
SAME_MOTION = 1e-5
#: rad/s, m/s, below which dry friction has no side
CREEP = 0.01
AT_STAMPS, IN_BAND = 'RMSE at own stamps [N m]', f'RMSE below {BAND:g} Hz [N m]'
TIMES = f'below {BAND:g} Hz, times the robot itself'


def measure(
    progress: Progress, data: str | None = None, robot: str = 'ur10e', again: str | None = None
) -> list[Row]:
    """Return the rows of all joints: models from ``data``/train, errors on ``data``/test.

    ``again`` names two recordings of one motion, with a comma between them, which tell what the
    robot itself repeats. Raises UsageError without recordings.
    """
    arm = load_robot(robot)
    train, test = (_recordings(arm, data, part) for part in ('train', 'test'))
    progress('identifying, coulomb', 0.1)
    plain = identify(arm, train, recipe=Recipe(friction='coulomb', ripple=NONE, adaptation=NONE))
    progress('identifying, everything', 0.3)
    full = identify(arm, train).model
    progress('predicting', 0.9)
    whole = validate(full, test).traces
    errors = [_errors(validate(plain.model, test).traces),
              _errors(validate(replace(full, learnt={
                  k: v for k, v in full.learnt.items() if k == 'residual'}), test).traces),
              _errors(whole), _errors(whole, 'warmed'), _errors(whole, 'adapted')]
    own = None if again is None else floor(full, _pair(arm, again))
    return rows(arm.row_names, errors, own)


def rows(
    joints: Sequence[str], errors: Sequence[Sequence[tuple[FloatArray, FloatArray]]],
    own: FloatArray | None,
) -> list[Row]:
    """Return the rows from the ``errors`` of each of MODELS: stamps (N,) and errors (N, n) [N m].

    ``own`` (n,) [N m] is what the robot itself repeats below BAND.
    """
    stamped = np.array([_rms([error for _, error in one]) for one in errors])
    slow = np.array([_rms([in_band(*error) for error in one]) for one in errors])
    found = []
    for j, joint in enumerate(joints):
        limit = None if own is None else float(own[j])
        found += [_row(joint, AT_STAMPS, stamped[:, j]),
                  _row(joint, IN_BAND, slow[:, j], limit)]
        if limit:
            found.append(_row(joint, TIMES, slow[:, j] / limit))
    return found


def _row(joint: str, error: str, values: FloatArray, own: float | None = None) -> Row:
    return {'what': f'{joint}, {error}', 'joint': joint, 'error': error,
            **dict(zip(MODELS, map(float, values), strict=True)),
            'adaptive / auto': float(values[-1] / values[1]), 'robot itself': own}


def _recordings(arm: RobotModel, data: str | None, part: str) -> list[RawLog]:
    """Return the recordings of a folder; raises UsageError without any."""
    if data is None:
        raise UsageError('benchmark residual needs --data FOLDER, with the recordings of the fit '
                         'in FOLDER/train and others in FOLDER/test')
    folder = Path(data) / part
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if not files:
        raise UsageError(f'{folder}: no recordings; residual wants those of the fit in train, '
                         'others in test')
    return [load_log(file, arm) for file in files]


def _pair(arm: RobotModel, again: str) -> tuple[RawLog, RawLog]:
    names = again.split(',')
    if len(names) != 2:
        raise UsageError('--again wants two recordings of one motion, with a comma between them')
    return load_log(names[0], arm), load_log(names[1], arm)


def _errors(
    traces: Sequence[Trace], which: str = 'predicted'
) -> list[tuple[FloatArray, FloatArray]]:
    """Return stamps and errors of every recording; without slow changes those of `predicted`."""
    found = []
    for trace in traces:
        effort: Any = getattr(trace, which)
        found.append((trace.time, trace.measured - (
            trace.predicted if effort is None else effort)))
    return found


def _rms(errors: Sequence[FloatArray]) -> FloatArray:
    """Return the root mean square (n,) over recordings."""
    return np.asarray(np.sqrt(np.mean(np.concatenate(errors)**2, axis=0)))


def in_band(time: FloatArray, error: FloatArray) -> FloatArray:
    """Return errors (N, n) at stamps ``time`` (N,) [s] below BAND, on a grid, without ENDS."""
    grid = np.arange(time[0], time[-1], STEP)
    even = np.stack([np.interp(grid, time, column) for column in error.T], axis=1)
    return _inner(zero_phase_low_pass(even, BAND, STEP), STEP)


def _inner(values: FloatArray, step: float) -> FloatArray:
    cut = max(1, round(ENDS / step))
    return values[cut:-cut]


def floor(model: IdentifiedModel, pair: tuple[RawLog, RawLog]) -> FloatArray:
    """Return the deviation (n,) [N m] of the robot from itself below BAND, from two runs.

    They are of one motion. One of them may carry a load: what a body at the last link, and dry
    friction that grows with the torque it takes to carry it, explain of their difference is taken
    off. The deviation of one run is 1 / sqrt(2) of that of the difference. Raises UsageError
    where the motions differ.
    """
    robot = model.robot
    settings = replace(model.preprocessing, cutoff=BAND, decimate=False)
    first, second = (prepare(robot, repair(robot, log, settings.rate), settings).gridded
                     for log in pair)
    count = min(len(first), len(second))
    same = float(np.mean((first.position[:count] - second.position[:count])**2))
    if same > SAME_MOTION:
        raise UsageError(f'{pair[0].source} and {pair[1].source} are two motions: their positions '
                         f'differ by {np.sqrt(same):.2g} (root mean square)')
    assert first.effort is not None and second.effort is not None
    motion = first.part(slice(0, count))
    difference = second.effort[:count] - first.effort[:count]
    body = _body(model, motion)
    load = _explained(body, difference)
    q, qd, qdd = motion.position, motion.velocity, motion.acceleration
    bare = model.frictionless_effort(q, qd, qdd)
    dry = np.clip(qd / CREEP, -1.0, 1.0) * (np.abs(bare + load) - np.abs(bare))
    joints = np.eye(robot.n)[:, :, None] * dry.T
    left = difference - _explained(np.concatenate([body, joints], axis=1), difference)
    step = float(motion.time[1] - motion.time[0])
    return np.asarray(np.sqrt(np.mean(_inner(left, step)**2, axis=0) / 2.0))


def _body(model: IdentifiedModel, motion: Samples) -> FloatArray:
    """Return the columns (n, 10, N) of a body at the last link."""
    links, n = RigidLinks(model.robot), model.robot.n
    columns = np.empty((n, 10, len(motion)))
    links.fill(motion, links.history(motion), np.arange(10 * (n - 1), 10 * n), columns)
    return columns


def _explained(columns: FloatArray, effort: FloatArray) -> FloatArray:
    """Return the part of ``effort`` (N, n) that ``columns`` (n, k, N) explain, joints alike."""
    weights = 1.0 / np.maximum(effort.std(axis=0), 1e-9)
    design = (columns * weights[:, None, None]).transpose(2, 0, 1).reshape(-1, columns.shape[1])
    scale = np.maximum(np.linalg.norm(design, axis=0), 1e-12)
    values = np.linalg.lstsq(design / scale, (effort * weights).ravel(), rcond=1e-9)[0]
    return np.asarray((design / scale @ values).reshape(effort.shape) / weights)
