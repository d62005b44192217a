"""Column mappings: which columns of a table hold time, positions, efforts and other channels.

A mapping is written by users (robot YAML, recipe, ``--columns``) or is a preset of columns.yaml.
`robot_dynid.io.tables` applies it to a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import pi
from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError, clipped
from robot_dynid.files import read_text
from robot_dynid.numbers import NumberRange, is_number, shown
from robot_dynid.types import CHANNELS
from robot_dynid.yaml_text import load_yaml

TIME = 'time'
#: units by lower-case names without blanks and dots: quantity, factor to SI, offset
UNITS: dict[str, tuple[str, float, float]] = {
    unit: (quantity, factor, offset) for quantity, factor, names, offset in (
        ('time', 1.0, 's sec secs second seconds', 0.0), ('time', 1e-3, 'ms msec millis', 0.0),
        ('time', 1e-6, 'us usec micros', 0.0), ('time', 1e-9, 'ns nsec nanos', 0.0),
        ('angle', 1.0, 'rad rads radian radians', 0.0), ('angle', 1e-3, 'mrad', 0.0),
        ('angle', pi / 180, 'deg degree degrees', 0.0), ('angle', 2 * pi, 'rev turn turns', 0.0),
        ('length', 1.0, 'm', 0.0), ('length', 1e-3, 'mm', 0.0),
        ('angular rate', 1.0, 'rad/s rads-1 rad/sec', 0.0),
        ('angular rate', pi / 180, 'deg/s degs-1 deg/sec', 0.0),
        ('angular rate', pi / 30, 'rpm rev/min', 0.0),
        ('linear rate', 1.0, 'm/s', 0.0), ('linear rate', 1e-3, 'mm/s', 0.0),
        ('torque', 1.0, 'nm n', 0.0), ('torque', 1e-3, 'mnm', 0.0), ('torque', 1e3, 'knm kn', 0.0),
        ('current', 1.0, 'a amp amps ampere', 0.0), ('current', 1e-3, 'ma', 0.0),
        ('temperature', 1.0, 'degc c celsius', 0.0), ('temperature', 1.0, 'k kelvin', -273.15))
    for unit in names.split()}
#: allowed quantities of a channel, that of revolute joints first
QUANTITIES: dict[str, tuple[str, ...]] = {
    TIME: ('time',), 'effort': ('torque', 'current'), 'temperature': ('temperature',),
    **dict.fromkeys(('position', 'motor_position', 'reference_position'), ('angle', 'length')),
    **dict.fromkeys(('velocity', 'motor_velocity'), ('angular rate', 'linear rate')),
    **dict.fromkeys(('joint_torque', 'external_torque'), ('torque',))}
FACTOR, OFFSET = NumberRange(-1e9, 1e9), NumberRange(-1e9, 1e9)
RATE = NumberRange(1e-2, 1e6, 'Hz')
#: number of a column, from 1; values per row; lines after the header
COLUMN, RESHAPE, SKIP = (NumberRange(low, high, whole=True)
                         for low, high in ((1, 5000), (1, 5000), (0, 1000)))
SEPARATORS = {'comma': ',', 'semicolon': ';', 'tab': '\t', 'space': ' ', 'bar': '|'}
DECIMALS = ('.', ',')
#: a range of columns by number
SPAN = re.compile(r'(\d+)\s*-\s*(\d+)')
#: parts of a pattern in braces
PLACE = re.compile(r'\{([^{}]*)\}')
INDEX, JOINT, ANY = 'i', 'joint', '*'
PARTS = ('column', 'unit', 'factor', 'offset')
#: keys of a mapping other than channels
FORMAT = ('names', 'rate', 'separator', 'decimal', 'header', 'skip', 'reshape', 'files')
#: keys of presets only: the logger, the source of the format, columns without a header, True if
#: several loggers write it
ABOUT = ('about', 'source', 'layout', 'general')
PRESETS = Path(__file__).with_name('columns.yaml')


#: display names of units
WRITTEN = {'nm': 'N m', 'n': 'N', 'mnm': 'mN m', 'knm': 'kN m', 'kn': 'kN', 'a': 'A', 'ma': 'mA',
           'degc': 'deg C', 'c': 'deg C', 'k': 'K'}


def unit_of(text: str) -> str:
    """Return the name of a unit in UNITS, '' if it is unknown."""
    name = text.strip().replace('µ', 'u').replace('μ', 'u').replace('°', 'deg').lower()
    name = re.sub(r'[\s·*.^_]|(?<=n)-(?=m$)', '', name)
    return name if name in UNITS else ''


@dataclass(frozen=True)
class Columns:
    """The columns of one channel: a ``column`` pattern, or one column for each joint.

    Value = unit (factor x number + offset). ``unit`` is one of UNITS, '' for SI or that of the
    file, one for all or one per column; ``factor`` and ``offset`` are numbers, or lists or
    mappings of them by joint. Several columns of time are added.
    """

    column: tuple[str | int, ...]
    unit: tuple[str, ...] = ('',)
    factor: Any = 1.0
    offset: Any = 0.0

    @property
    def pattern(self) -> str | None:
        """Pattern of a column for each joint, None for listed columns."""
        only = self.column[0]
        return only if len(self.column) == 1 and isinstance(only, str) \
            and {INDEX, JOINT} & set(PLACE.findall(only)) else None

    @classmethod
    def read(cls, value: Any, channel: str, where: str) -> Columns:
        """Parse columns from plain ``value``; raises UsageError that begins with ``where``."""
        parts = dict(value) if isinstance(value, Mapping) else {'column': value}
        unknown = [str(key) for key in parts if key not in PARTS]
        if unknown or 'column' not in parts:
            raise UsageError(f'{where} must have column, and may have {", ".join(PARTS[1:])}; is '
                             f'{shown(value)}')
        column = _columns(parts['column'], f'{where}: column')
        unit = parts.get('unit', '')
        units = tuple(_unit(one, channel, f'{where}: unit')
                      for one in (unit if isinstance(unit, list) else [unit]))
        if len(units) not in (1, len(column)):
            raise UsageError(f'{where}: unit must be one for all columns, or one for each of '
                             f'{len(column)}')
        for key, allowed in (('factor', FACTOR), ('offset', OFFSET)):
            _check_numbers(parts.get(key, 1.0), allowed, f'{where}: {key}')
        return cls(column, units, parts.get('factor', 1.0), parts.get('offset', 0.0))


def _columns(value: Any, where: str) -> tuple[str | int, ...]:
    """Return a pattern or name, or columns by name or number, from one or from a list."""
    if isinstance(value, list) and value:
        return tuple(column for one in value for column in _columns(one, where))
    if isinstance(value, str) and (span := SPAN.fullmatch(value.strip())):
        first, last = (COLUMN.read_whole(int(end), where) for end in span.groups())
        return tuple(range(first, last + 1)) or _no_column(value, where)
    if isinstance(value, str) and value:
        return (value,)
    if is_number(value):
        return (COLUMN.read_whole(value, where),)
    return _no_column(value, where)


def _no_column(value: Any, where: str) -> tuple[str | int, ...]:
    raise UsageError(f'{where} must be a pattern such as q_{{i}} or {{joint}}/position, a number '
                     f'from 1, numbers such as 2-7, or a list of columns, is {shown(value)}')


def _unit(value: Any, channel: str, where: str) -> str:
    if value == '':
        return ''
    unit = unit_of(value) if isinstance(value, str) else ''
    if not unit or UNITS[unit][0] not in QUANTITIES[channel]:
        able = [name for name, (quantity, _, _) in UNITS.items()
                if quantity in QUANTITIES[channel]]
        raise UsageError(f'{where}: {shown(value)} is not a unit of {channel}; choose one of '
                         f"{', '.join(able)}, or give a factor")
    return unit


def _check_numbers(value: Any, allowed: NumberRange, where: str) -> None:
    several = value.values() if isinstance(value, Mapping) else value \
        if isinstance(value, (list, tuple)) else [value]
    for one in several:
        allowed.read(one, where)


def by_joint(value: Any, joints: Sequence[str], default: float, where: str) -> list[float]:
    """Return a factor or offset of every joint from a number, a list, or a partial mapping.

    Raises UsageError for lists of another length and unknown joints.
    """
    if isinstance(value, Mapping):
        unknown = [str(name) for name in value if name not in joints]
        if unknown:
            raise UsageError(f"{where}: no joint {clipped(', '.join(unknown))}; valid: "
                             f"{', '.join(joints)}")
        return [float(value.get(joint, default)) for joint in joints]
    if isinstance(value, (list, tuple)):
        if len(value) != len(joints):
            raise UsageError(f'{where}: {len(value)} numbers for {len(joints)} columns')
        return [float(one) for one in value]
    return [float(value)] * len(joints)


@dataclass(frozen=True, eq=False)
class ColumnMapping:
    """Column assignment of a table: alternatives by channel (TIME and CHANNELS), and its format.

    ``names`` is the column, or pattern of columns, with the joint names; ``rate`` [Hz] is that of
    rows without time; ``separator`` and ``decimal`` None: detected; ``header`` False: columns are
    numbered; ``skip`` lines after the header are ignored; ``reshape`` values make a row; ``files``
    are further tables in the same folder, joined by time if both have it, else row by row;
    ``layout`` names the columns of a preset without a header. ``name`` is that of a preset.
    ``plain`` is the mapping as given, or the name of the preset.
    """

    channels: Mapping[str, tuple[Columns, ...]]
    name: str = ''
    names: Columns | None = None
    rate: float | None = None
    separator: str | None = None
    decimal: str | None = None
    header: bool = True
    skip: int = 0
    reshape: int = 0
    files: tuple[tuple[str, ColumnMapping], ...] = ()
    layout: tuple[str, ...] = ()
    about: str = ''
    general: bool = False
    source: str = ''
    plain: Any = field(default=None, repr=False)


def column_mapping(value: Any, where: str = 'columns') -> ColumnMapping:
    """Return the mapping of plain types, or the preset of that name.

    Raises UsageError that begins with ``where`` and names the key.
    """
    if isinstance(value, str):
        preset = presets().get(value)
        if preset is None:
            raise UsageError(f'{where}: {shown(value)} is not a preset; choose one of '
                             f"{', '.join(presets())}, or give a mapping such as {{time: t, "
                             'position: q{i}, effort: tau{i}}')
        return preset
    return _mapping(value, where, inner=False)


def _mapping(value: Any, where: str, inner: bool, name: str = '') -> ColumnMapping:
    if not isinstance(value, Mapping) or not value:
        raise UsageError(f'{where} must be the name of a preset ({", ".join(presets())}) or a '
                         f'mapping such as {{time: t, position: q{{i}}}}, is {shown(value)}')
    channels = (TIME, *CHANNELS)
    allowed = (*channels, *FORMAT, *(ABOUT if name else ()))
    unknown = [str(key) for key in value if key not in allowed]
    if unknown:
        raise UsageError(f"{where}: unknown key {clipped(', '.join(unknown))}; valid: "
                         f"{', '.join((*channels, *FORMAT))}")
    columns = {key: _alternatives(value[key], key, f'{where}: {key}')
               for key in channels if key in value}
    files = _files(value.get('files') or {}, f'{where}: files')
    everywhere = {*columns, *(key for _, other in files for key in other.channels)}
    if not inner and 'position' not in everywhere:
        raise UsageError(f'{where}: position is missing; name the columns of joint positions')
    rate = value.get('rate')
    if not inner and TIME not in everywhere and rate is None:
        raise UsageError(f'{where}: give time: the column of time, or rate: rows per second [Hz]')
    header = value.get('header', True)
    if not isinstance(header, bool):
        raise UsageError(f'{where}: header must be true or false, is {shown(header)}')
    return ColumnMapping(
        columns, name,
        Columns(_columns(value['names'], f'{where}: names')) if 'names' in value else None,
        None if rate is None else RATE.read(rate, f'{where}: rate'),
        _separator(value.get('separator'), f'{where}: separator'),
        _choice(value.get('decimal'), DECIMALS, f'{where}: decimal'), header,
        SKIP.read_whole(value.get('skip', 0), f'{where}: skip'),
        RESHAPE.read_whole(value['reshape'], f'{where}: reshape') if 'reshape' in value else 0,
        files, tuple(value.get('layout', ())), str(value.get('about', '')),
        bool(value.get('general')), str(value.get('source', '')), name or dict(value))


def _alternatives(value: Any, channel: str, where: str) -> tuple[Columns, ...]:
    several = isinstance(value, list) and value and all(
        isinstance(one, Mapping) for one in value)
    return tuple(Columns.read(one, channel, where) for one in (value if several else [value]))


def _separator(value: Any, where: str) -> str | None:
    if isinstance(value, str) and value in SEPARATORS.values():
        return value
    return None if value is None else SEPARATORS[str(_choice(value, tuple(SEPARATORS), where))]


def _choice(value: Any, choices: tuple[str, ...], where: str) -> str | None:
    if value is not None and value not in choices:
        raise UsageError(f'{where} {shown(value)}: choose one of {", ".join(map(repr, choices))}')
    return None if value is None else str(value)


def _files(value: Any, where: str) -> tuple[tuple[str, ColumnMapping], ...]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise UsageError(f'{where} must be a mapping of file names to their columns such as '
                         f'{{torques.txt: {{effort: 1-6}}}}, is {shown(value)}')
    return tuple((name, _mapping(one, f'{where}: {name}', inner=True))
                 for name, one in value.items())


@cache
def presets() -> dict[str, ColumnMapping]:
    """Return the mappings of well-known loggers, by name."""
    content = load_yaml(read_text(PRESETS), PRESETS.name, UsageError)
    return {name: _mapping(value, f'{PRESETS.name}: {name}', inner=False, name=name)
            for name, value in content.items()}


def read_mapping(text: str) -> ColumnMapping:
    """Return the preset of a name, the mapping of a YAML file, or that of one line of YAML.

    Raises UsageError naming the fault.
    """
    if Path(text).suffix in ('.yaml', '.yml'):
        content = load_yaml(read_text(text), text, UsageError)
        inside = content.get('columns', content) if isinstance(content, Mapping) else content
        return column_mapping(inside, text)
    return column_mapping(load_yaml(text, 'columns', UsageError), 'columns')
