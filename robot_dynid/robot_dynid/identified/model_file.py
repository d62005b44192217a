"""Text of a model file: names and plain numbers, with an end mark and a digest.

Its last line is the SHA-256 of all lines before, so that changes are detected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_dynid.effects import CHOSEN, LEARNT, GearEffects, LearntEffect, axes_of
from robot_dynid.errors import DynIdError, ModelError, clipped
from robot_dynid.files import read_text
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import FitRecord, record_from_provenance
from robot_dynid.identified.structure import Structure
from robot_dynid.identified.trained import Trained
from robot_dynid.identified.uncertainty import CORRELATION_FIGURES
from robot_dynid.numbers import AMOUNT, BOUNDS, NumberRange, shown
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import kind_of
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.signals.prepare import CUTOFF, Preprocessing
from robot_dynid.types import FloatArray, frozen
from robot_dynid.version import VERSION
from robot_dynid.yaml_text import YamlError, parsed, yaml_text

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: header of model files; other files are not overwritten
MARK = b'\nformat: robot_dynid model '
#: the written format, and earlier ones that are read: the fifth lacks gears in models of the
#: deflection, the fourth ripple and slow changes, the third correlations, the others a digest
FORMAT, *EARLIER = (f'robot_dynid model {number}' for number in (6, 5, 4, 3, 2, 1))
FIFTH, FOURTH, THIRD, _, FIRST = EARLIER
#: prefix of the last line with the digest
DIGEST = 'digest: sha256 '
#: warning about a model file without digest
UNPROTECTED = ('its file has no digest, so changes are not detected; save the model again to add '
               'one')
#: last key of a complete file, missing in truncated ones
END = 'end_of_model'
#: of parameters, and of factors of the reduction
ENTRY = NumberRange(-1e12, 1e12)
#: tolerance of unit self-correlations, by the digits of the file
SELF_CORRELATION = 1e-4
#: tolerance between base and feasible parameters, relative to their terms
CONSISTENT = 1e-9


@dataclass(frozen=True)
class _Parameter:
    name: str
    label: str
    std: float
    value: float = field(metadata={BOUNDS: ENTRY})
    nominal: float = field(metadata={BOUNDS: ENTRY})


@dataclass(frozen=True)
class _Friction:
    settings: tuple[Mapping[str, Any], ...]
    laws: tuple[str, ...] | None = None
    law: str = ''
    load: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class _Blocks:
    rotor_inertia: bool
    friction: _Friction
    gears: tuple[GearEffects, ...] = ()


@dataclass(frozen=True)
class _Reduction:
    standard: tuple[str, ...]
    gap: float
    combinations: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class _Content:
    """Content of a file; Any for parts with their own readers."""

    format: str
    method: str
    status: str
    not_identified: tuple[str, ...]
    warnings: tuple[str, ...]
    parameters: tuple[_Parameter, ...]
    preprocessing: Preprocessing
    blocks: Mapping[str, Any]
    robot: Any
    reduction: _Reduction
    record: Mapping[str, Any]
    software: str = ''
    correlation_factor: tuple[str, ...] | None = None
    feasible: Mapping[str, float] | None = None
    trained: Mapping[str, Mapping[str, FloatArray]] | None = None
    noise_levels: Any = None
    end_of_model: bool = False
    digest: str = ''


KEYS = {f.name for f in fields(_Content)} | set(LEARNT)


def dump(model: IdentifiedModel) -> str:
    """Return the text of a model."""
    reduction = model.reduction
    parameters = [
        {'name': name, 'label': label, 'value': float(value), 'std': float(std),
         'nominal': float(nominal)}
        for name, label, value, std, nominal in zip(
            reduction.names, reduction.labels, model.values, model.std, model.control, strict=True)
    ]
    combinations = {
        name: {reduction.standard[i]: float(row[i]) for i in np.flatnonzero(row)}
        for name, row in zip(reduction.names, reduction.matrix, strict=True)
    }
    content = {
        'format': FORMAT, 'software': f'robot_dynid {VERSION}', 'method': model.method,
        'status': model.status, 'not_identified': list(model.not_identified),
        'warnings': [text for text in model.warnings if text != UNPROTECTED],
        'parameters': parameters, **_correlation(model), **_feasible(model),
        'preprocessing': asdict(model.preprocessing), 'blocks': {
            'rotor_inertia': model.structure.rotor_inertia,
            'friction': _friction(model.structure), **_effects(model.structure),
        },
        **{key: {joint: one.plain() for joint, one in zip(model.joints, parts, strict=True)
                 if one is not None}
           for key in LEARNT if (parts := model.learnt.get(key))},
        **({'trained': model.trained.plain(model.joints)} if model.trained.quantities else {}),
        **_noise_levels(model), 'record': model.record.plain(),
        'robot': robot_to_plain(model.robot),
        'reduction': {'standard': list(reduction.standard), 'gap': float(reduction.gap),
                      'combinations': combinations},
        END: True,
    }
    text = yaml_text(content)
    return f'{text}{DIGEST}{_digest(text)}\n'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()


def _is_protected(text: str, source: str) -> bool:
    """Return True if a text ends with its digest; raises ModelError for another digest."""
    body, mark, stated = text.rpartition(DIGEST)
    if not mark or not body.endswith('\n'):
        return False
    if stated != f'{_digest(body)}\n':
        raise ModelError(f'{source}: changed after it was written (its digest does not match); '
                         'copy or identify it again, or remove its last line, which begins with '
                         'digest, if it was edited on purpose')
    return True


def _friction(structure: Structure) -> dict[str, Any]:
    load = {} if structure.load is None else {'load': [list(row) for row in structure.load]}
    return {'laws': list(structure.friction), 'settings': [dict(s) for s in structure.settings],
            **load}


def _effects(structure: Structure) -> dict[str, Any]:
    effects = {'gears': structure.gears, **structure.chosen}
    return {name: to_plain(parts) for name, parts in effects.items() if parts}


def _read_structure(given: Mapping[str, Any], joints: int) -> Structure:
    """Return the structure; early files have ``law``, one name for all axes."""
    chosen = {key: parts for key, parts in given.items() if key in CHOSEN}
    for key, parts in chosen.items():
        if not isinstance(parts, list):
            raise ValueError(f'blocks.{key} must be a list, is {shown(parts)}')
    blocks = from_plain(_Blocks, {k: v for k, v in given.items() if k not in CHOSEN}, 'blocks')
    friction = blocks.friction
    names = friction.laws
    if names is None:
        names = (friction.law,) * len(friction.settings)
    if len(names) != len(friction.settings):
        raise ValueError(f'blocks.friction: {len(names)} laws with {len(friction.settings)} '
                         'settings')
    structure = Structure(blocks.rotor_inertia, names, friction.settings, friction.load,
                          blocks.gears, chosen)
    for key, parts in structure.chosen.items():
        if any(part.joint >= joints for part in parts):
            raise ValueError(f'blocks.{key}: a joint is none of the {joints}')
    return structure


def _noise_levels(model: IdentifiedModel) -> dict[str, Any]:
    levels = model.noise_levels
    return {} if levels is None else {'noise_levels': levels.plain(model.joints)}


def _correlation(model: IdentifiedModel) -> dict[str, Any]:
    """Return the rows of the triangle from its diagonal on, each as one text of numbers."""
    if model.correlation_factor is None:
        return {}
    return {'correlation_factor': [' '.join(f'{x:.{CORRELATION_FIGURES}g}' for x in row[i:])
                                   for i, row in enumerate(model.correlation_factor)]}


def _read_correlation(given: tuple[str, ...] | None, count: int, source: str) -> FloatArray | None:
    """Return the triangle U (b, b) of ``count`` parameters with unit self-correlations."""
    if given is None:
        return None
    rows = [[float(word) for word in row.split()] for row in given]
    if [len(row) for row in rows] != list(range(count, 0, -1)):
        raise ModelError(f'{source}: its correlation_factor is not a triangle of {count} rows; '
                         'identify again')
    factor = np.zeros((count, count))
    for i, row in enumerate(rows):
        factor[i, i:] = row
    sizes = np.sum(factor**2, axis=0)
    if not np.all((sizes == 0.0) | (np.abs(sizes - 1.0) < SELF_CORRELATION)):
        raise ModelError(f'{source}: its correlation_factor holds no correlations; identify again')
    return frozen(factor)


def _feasible(model: IdentifiedModel) -> dict[str, Any]:
    if model.feasible is None:
        return {}
    values = (float(value) for value in model.feasible)
    return {'feasible': dict(zip(model.reduction.standard, values, strict=True))}


def read(path: str | Path) -> str:
    """Return the text of a file; raises UsageError without it, ModelError if it is no text."""
    return read_text(path, ModelError)


def parse(text: str, source: str) -> dict[str, Any]:
    """Return the fields of an IdentifiedModel; raises ModelError naming the fault."""
    protected = _is_protected(text, source)
    content = _content(text, source, protected)
    try:
        fields = _fields(content, source)
    except ValueError as error:
        raise ModelError(f'{source}: damaged: {error}; identify again: {_command(content)}'
                         ) from None
    except ModelError:
        raise
    except DynIdError as error:
        raise ModelError(f'{source}: {error}') from None
    if not protected:
        fields['warnings'] = (*fields['warnings'], UNPROTECTED)
    return fields


def _content(text: str, source: str, protected: bool) -> dict[str, Any]:
    """Return the content of a model file; raises ModelError for anything else."""
    try:
        content = parsed(text)
    except YamlError as error:
        raise ModelError(f'{source}: damaged or cut off ({error}); copy or identify it again'
                         ) from None
    if not isinstance(content, dict) or 'format' not in content:
        raise ModelError(f'{source}: is not a robot_dynid model file')
    if content['format'] not in (FORMAT, *EARLIER):
        raise ModelError(f'{source}: format {shown(content["format"])}; this software reads '
                         f'{FORMAT!r}, {", ".join(map(repr, EARLIER[:-1]))} and {FIRST!r}')
    if not protected and 'digest' in content:
        raise ModelError(f'{source}: its digest is damaged; copy or identify it again')
    if content['format'] in (FORMAT, FIFTH, FOURTH, THIRD) and set(content) - KEYS:
        unknown = ', '.join(sorted(str(key) for key in set(content) - KEYS))
        raise ModelError(f'{source}: damaged: unknown key {clipped(unknown)}; copy or identify it '
                         'again')
    if content.get(END) is not True:
        raise ModelError(f'{source}: is cut off (no {END} at its end); copy or identify it again')
    return content


def _command(content: dict[str, Any]) -> str:
    """Return the command that recreates such a file, as far as the file states it."""
    record = content.get('record', content.get('provenance'))
    recordings = record.get('recordings') if isinstance(record, dict) else None
    data = ' '.join(map(str, recordings)) if isinstance(recordings, list) and recordings \
        else 'RECORDINGS'
    robot = content.get('robot')
    name = robot.get('name', 'ROBOT') if isinstance(robot, dict) else 'ROBOT'
    return (f'robot-dynid identify {data} --robot {name} --method '
            f'{content.get("method", "METHOD")} --out MODEL.yaml')


def _fields(content: dict[str, Any], source: str) -> dict[str, Any]:
    provenance = content.get('provenance')
    if content['format'] == FIRST:  # record and noise levels were in its ``provenance``
        if not isinstance(provenance, Mapping):
            raise ValueError('provenance must be a mapping')
        content = {'record': {}, 'noise_levels': provenance.get('quiet'), **content}
    given = from_plain(_Content, {
        k: v for k, v in content.items() if k in KEYS and k not in LEARNT})
    robot = robot_from_plain(given.robot, source)
    values, std, control = (np.array([getattr(p, name) for p in given.parameters])
                            for name in ('value', 'std', 'nominal'))
    if np.any(std < 0.0):
        raise ValueError('parameters: a std is negative')
    structure = _read_structure(given.blocks, robot.n)
    if structure.load is not None:
        ENTRY.array(structure.load, (robot.tree.n, 10), 'blocks.friction.load')
    reduction = _reduction(given.reduction, [p.name for p in given.parameters])
    names = tuple(n for block in structure.blocks(robot) for n in block.names)
    if names != reduction.standard:
        raise ModelError(f'{source}: damaged: its parameters are not those of its blocks')
    if not set(given.not_identified) <= set(robot.joints):
        raise ValueError(f'not_identified: {shown(given.not_identified)} are no joints of it')
    record = record_from_provenance(content['provenance'], given.method) \
        if content['format'] == FIRST else FitRecord.from_plain(given.record, given.method)
    _require_record(record, robot)
    return {
        'robot': robot, 'structure': structure, 'reduction': reduction,
        'values': frozen(values), 'std': frozen(std), 'control': frozen(control),
        'preprocessing': given.preprocessing, 'method': given.method, 'status': given.status,
        'not_identified': given.not_identified, 'warnings': given.warnings, 'record': record,
        'correlation_factor': _read_correlation(given.correlation_factor, len(values), source),
        'feasible': _read_feasible(given.feasible, reduction, values, source),
        'learnt': {key: _by_joint(content[key], robot.joints, kind, key)
                   for key, kind in LEARNT.items() if content.get(key)},
        'trained': Trained.of(given.trained, robot.joints),
        'noise_levels': None if given.noise_levels is None else
        NoiseLevels.from_plain(given.noise_levels, robot.joints),
    }


def _require_record(record: FitRecord, robot: RobotModel) -> None:
    """Raise ValueError for joints or axes of a record that the robot lacks."""
    for mean in record.averaging:
        if not len(mean.position_noise) == len(mean.effort_noise) == robot.n:
            raise ValueError(f'record.averaging: its noise is not that of {robot.n} joints')
    if record.passbands:
        CUTOFF.array(record.passbands, (robot.rows,), 'record.passbands')
    for name in ('rest', 'share', 'slow') if record.error_law else ():
        AMOUNT.array(getattr(record.error_law, name), (robot.n,), f'record.error_law.{name}')
    for curve in record.friction_curves:
        if not set(curve.shapes) <= set(curve.settings):
            raise ValueError('record.friction_curves: its shapes are not among its settings')
    lists = (getattr(record, f.name) for f in fields(record))
    named = {entry.joint for entries in lists if isinstance(entries, tuple) for entry in entries
             if hasattr(entry, 'joint')}
    if not named <= set(robot.joints):
        raise ValueError(f'record: no joints: {", ".join(sorted(named - set(robot.joints)))}')
    axes, labels = {choice.axis for choice in record.friction}, axes_of(robot).labels
    if not axes <= set(labels):
        raise ValueError(f'record.friction: an axis must be one of {", ".join(labels)}')


def _by_joint(
    given: Any, joints: tuple[str, ...], effect: type[LearntEffect], key: str
) -> tuple[Any | None, ...]:
    """Return the parts of an effect, None for joints without it."""
    if not isinstance(given, Mapping):
        raise ValueError(f'{key} must be a mapping, is {shown(given)}')
    if not set(given) <= set(joints):
        raise ValueError(f'{key}: no joints: {", ".join(sorted(set(given) - set(joints)))}')
    return tuple(effect.read(given[joint], f'{key}.{joint}') if joint in given else None
                 for joint in joints)


def _read_feasible(
    given: Mapping[str, float] | None, reduction: Reduction, values: FloatArray, source: str
) -> FloatArray | None:
    """Return the feasible parameters (p,), which must belong to the base parameters ``values``."""
    if given is None:
        return None
    if set(given) != set(reduction.standard):
        raise ModelError(f'{source}: its feasible parameters are not those of its blocks; '
                         'identify again')
    feasible = np.array([ENTRY.read(given[name], f'feasible.{name}')
                         for name in reduction.standard])
    for name, value in zip(reduction.standard, feasible, strict=True):
        if kind_of(name) == 'm' and not value > 0.0:
            raise ModelError(f'{source}: feasible.{name} must be positive, is {value:g}; '
                             'identify again')
    scale = np.abs(reduction.matrix) @ np.abs(feasible)
    if np.any(np.abs(reduction.base(feasible) - values) > CONSISTENT * scale):
        raise ModelError(f'{source}: its feasible parameters do not give its base parameters; '
                         'one of them was changed; identify again')
    return frozen(feasible)


def _reduction(content: _Reduction, names: list[str]) -> Reduction:
    index = {name: i for i, name in enumerate(content.standard)}
    matrix = np.zeros((len(names), len(index)))
    if sorted(content.combinations) != sorted(names) or not set(names) <= set(index):
        raise ValueError('reduction: its combinations are not those of the parameters')
    for row, name in zip(matrix, names, strict=True):
        for other, factor in content.combinations[name].items():
            where = f'reduction.combinations.{name}.{other}'
            if other not in index:
                raise ValueError(f'{where}: unknown key')
            row[index[other]] = ENTRY.read(factor, where)
        if row[index[name]] == 0.0:
            raise ValueError(f'reduction.combinations.{name} lacks {name}')
    return Reduction(content.standard, np.array([index[n] for n in names]), frozen(matrix),
                     content.gap)
