"""Match the columns of one table with one mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from robot_dynid.errors import DataError, UsageError, clipped
from robot_dynid.io.messages.naming import SeveralNamings, naming_of
from robot_dynid.io.tables.patterns import Ambiguous, Unfit, WrongNumber, matching, written_unit
from robot_dynid.io.tables.plan import OWN, Plan, Taken
from robot_dynid.io.tables.rows import CONSTANT, DATE, IGNORED
from robot_dynid.io.tables.table import Layout
from robot_dynid.robot.columns import (
    JOINT,
    PLACE,
    QUANTITIES,
    TIME,
    UNITS,
    ColumnMapping,
    Columns,
    by_joint,
    unit_of,
)
from robot_dynid.robot.model import POSITION_ERROR, PRISMATIC, RobotModel
from robot_dynid.yaml_text import one_line

#: names of channels in tables of this package, as other programs call them
COMMAND = {'command': 'reference_position'}
#: name of a column with its unit in brackets
_WITH_UNIT = re.compile(r'(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]+)[\])]')


class Finder:
    """Match the columns of one mapping with one table."""

    def __init__(
        self, layout: Layout, joints: tuple[str, ...] | None, robot: RobotModel | None,
        mapping: ColumnMapping,
    ) -> None:
        self._layout, self._robot, self._mapping = layout, robot, mapping
        self._joints, self._written = joints, dict[str, Any]()
        self._names, self._units = list(layout.columns), list(layout.units)
        for k, name in enumerate(self._names):
            match = _WITH_UNIT.fullmatch(name)
            unit = unit_of(match['unit']) if match else ''
            if match and unit and match['name'] not in layout.columns \
                    and name.partition('.')[2] not in (joints or ()):
                self._names[k], self._units[k] = match['name'], unit
        self._where = f'{layout.source}: columns'

    def plan(self) -> Plan:
        """Return the plan; raises Unfit if a required column is missing, DataError."""
        mapping, sentences, taken = self._mapping, list[str](), list[Taken]()
        for channel, alternatives in mapping.channels.items():
            optional = bool(mapping.name) and channel not in (TIME, 'position')
            try:
                columns, words = self._channel(channel, alternatives)
            except Unfit as error:
                if not optional or (channel == 'effort' and isinstance(error, WrongNumber)):
                    raise
                continue
            taken += columns
            sentences.append(words)
            self._written[channel] = self._written_as(channel, columns)
        if mapping.rate is not None:
            sentences.insert(0, f'time by the rows at {mapping.rate:g} Hz')
        used = {index for one in taken for index in one.indices}
        unused = tuple(name for k, name in enumerate(self._layout.columns)
                       if k not in used and k not in self._name_columns)
        form = f' ({self._layout.form})' if self._layout.form else ''
        order = f', {self._note}' if self._note else ', joints by the names in the file' \
            if self._by_name else f', joints in the order {", ".join(self._joints or ())}' \
            if self._by_number else ''
        return Plan(mapping, tuple(taken), self._texts(used, taken),
                    f'columns by {self._by}{form}: {"; ".join(sentences)}{order}', unused,
                    self._written)

    def own_plan(self) -> Plan:
        """Return the plan of a table with standard names; raises DataError without any."""
        names = self._names
        if TIME not in names:
            try:
                index, _, _ = self._one(self._mapping.channels[TIME][0])
                names[index] = TIME
            except Unfit:
                raise DataError(
                    f'{self._layout.source}: no column time; columns are '
                    f'{", ".join(self._layout.columns)}. The header must be time, '
                    'position.<joint>, and optionally velocity.<joint>, effort.<joint>, ...'
                ) from None
        taken, converted = [], list[str]()
        joints = self._renamed([name.partition('.')[2] for name in names
                                if name.startswith('position.')])
        for k, name in enumerate(names):
            channel, dot, joint = name.partition('.')
            channel = COMMAND.get(channel, channel)
            name = f'{channel}{dot}{joints.get(joint, joint)}'
            unit = self._units[k] if channel in QUANTITIES else ''
            if unit:
                self._require_quantity(channel, unit, name.partition('.')[2], name)
            _, factor, offset = UNITS.get(unit, ('', 1.0, 0.0))
            converted += [f'{name} [{written_unit(unit)}]'] if (factor, offset) != (1.0, 0.0) \
                else []
            taken.append(Taken(name, (k,), (factor,), offset))
        clock = [old for old, one in zip(self._layout.columns, taken, strict=True)
                 if one.name == TIME != old]
        details = [text for text in (
            self._layout.form, *(f'time is {name}' for name in clock), self._note,
            f'converted from {clipped(", ".join(converted), 200)}' if converted else '') if text]
        summary = f'columns: {"; ".join(details)}' if details else ''
        used = {k for k, name in enumerate(names)
                if name == TIME or name.partition('.')[0] in QUANTITIES}
        return Plan(self._mapping, tuple(taken), self._texts(used, taken), summary)

    def _written_as(self, channel: str, taken: Sequence[Taken]) -> Any:
        """Return matched columns in mapping notation: as a pattern, or each."""
        names = [self._layout.columns[index] for one in taken for index in one.indices]
        patterns = {re.sub(r'\d+(?=\D*$)', '{i}', name) for name in names}
        by_joint = {name.replace(one.name.partition('.')[2], '{joint}', 1) for name, one in zip(
            names, taken, strict=False)} if channel != TIME else set()
        if len(names) == 1:
            column: Any = names[0]
        elif len(by_joint) == 1 and '{joint}' in min(by_joint):
            column = by_joint.pop()
        else:
            column = patterns.pop() if len(patterns) == 1 and not self._by_name else names
        of = self._units[taken[0].indices[0]] or self._mapping.channels[channel][0].unit[0]
        return {'column': column, 'unit': written_unit(of)} if of else column

    def _texts(self, used: set[int], taken: Sequence[Taken]) -> dict[int, str]:
        """Return the readers of columns with text, by their number."""
        time = {index for one in taken if one.name == TIME for index in one.indices}
        texts = {k: IGNORED for k, text in enumerate(self._layout.text)
                 if text is not None and k not in used - time}
        return {**texts, **{k: DATE for k in time if k in texts},
                **dict.fromkeys(self._name_columns, CONSTANT)}

    def _channel(
        self, channel: str, alternatives: Sequence[Columns]
    ) -> tuple[list[Taken], str]:
        """Return the columns of a channel and a sentence about them; raises Unfit."""
        if channel == TIME:
            return self._time(alternatives)
        matches, reasons = list[tuple[Columns, dict[str, int]]](), list[Unfit]()
        for one in alternatives:
            try:
                matches.append((one, self._per_joint(channel, one)))
            except Unfit as error:
                reasons.append(error)
        if not matches:
            raise next((one for one in reasons if isinstance(one, WrongNumber | Ambiguous)),
                       reasons[0])
        if channel == 'effort':
            matches = [pair for pair in matches if self._fits_kind(*pair)] or matches
        elif self._mapping.name and len(matches) > 1:
            raise Ambiguous(f'{channel} may be '
                            f'{" or ".join(self._listed(c) for _, c in matches)}')
        columns, by_name = matches[0]
        return self._taken(channel, columns, by_name)

    def _fits_kind(self, columns: Columns, by_name: Mapping[str, int]) -> bool:
        units = self._units_of(columns, by_name)
        kind = self._robot.drive.kind if self._robot else ''
        return not kind or not units[0] or (UNITS[units[0]][0] == 'current') == (kind == 'current')

    def _units_of(self, columns: Columns, by_name: Mapping[str, int]) -> list[str]:
        stated = columns.unit * len(by_name) if len(columns.unit) == 1 else columns.unit
        units = []
        for stated_unit, (joint, index) in zip(stated, by_name.items(), strict=True):
            file_unit = self._units[index]
            if stated_unit and file_unit and stated_unit != file_unit and not self._mapping.name:
                raise DataError(f'{self._where}: {self._layout.columns[index]} of {joint} is in '
                                f'{file_unit} by the file, in {stated_unit} by the mapping; '
                                'correct one')
            units.append(file_unit or stated_unit)
        return units

    def _taken(
        self, channel: str, columns: Columns, by_name: Mapping[str, int]
    ) -> tuple[list[Taken], str]:
        joints, units = tuple(by_name), self._units_of(columns, by_name)
        try:
            factors = by_joint(columns.factor, joints, 1.0, f'{self._where}: {channel}: factor')
            offsets = by_joint(columns.offset, joints, 0.0, f'{self._where}: {channel}: offset')
        except UsageError as error:
            raise DataError(str(error)) from None
        taken = []
        for (joint, index), unit, factor, offset in zip(
                by_name.items(), units, factors, offsets, strict=True):
            if unit:
                self._require_quantity(channel, unit, joint, self._layout.columns[index])
            _, scale, zero = UNITS.get(unit, ('', 1.0, 0.0))
            taken.append(Taken(f'{channel}.{joint}', (index,), (scale * factor,),
                               scale * offset + zero))
        unit = f' [{written_unit(units[0])}]' if units[0] else ''
        negative = ' with their sign changed' if set(factors) == {-1.0} else ''
        return taken, f'{channel} is {self._listed(by_name)}{unit}{negative}'

    def _listed(self, by_name: Mapping[str, int]) -> str:
        names = [self._layout.columns[index] for index in by_name.values()]
        return names[0] if len(names) == 1 else f'{names[0]} .. {names[-1]}'

    def _require_quantity(self, channel: str, unit: str, joint: str, column: str) -> None:
        """Raise DataError if a unit is invalid for the channel, joint type, or kind of effort."""
        quantity, robot = UNITS[unit][0], self._robot
        if quantity not in QUANTITIES[channel]:
            raise DataError(f'{self._where}: {column} is in {written_unit(unit)}, which is not a '
                            f'unit of {channel}')
        if robot is None:
            return
        kind = robot.drive.kind
        if channel == 'effort' and (quantity == 'current') != (kind == 'current') and (
                kind or quantity == 'current') and kind != POSITION_ERROR:
            raise self._other_kind(column, unit, kind)
        turns = robot.types[robot.joints.index(joint)] != PRISMATIC if joint in robot.joints \
            else None
        if turns is not None and len(QUANTITIES[channel]) > 1 and channel != 'effort' and (
                quantity == QUANTITIES[channel][0]) != turns:
            raise DataError(f'{self._where}: {column} is in {unit}, and joint {joint} '
                            f'{"turns" if turns else "slides"}; give a unit for each joint')

    def _other_kind(self, column: str, unit: str, kind: str) -> DataError:
        """Return the error for an effort whose unit contradicts the robot's effort kind."""
        assert self._robot is not None
        current = UNITS[unit][0] == 'current'
        entry = {'column': re.sub(r'\d+(?=\D*$)', '{i}', column),
                 'unit': 'N m' if current else 'A'}
        gains = f'drive_gains: {{{", ".join(f"{one}: GAIN" for one in self._robot.joints)}}}'
        form = f' ({self._layout.form})' if self._layout.form else ''
        mapping = one_line({**self._written, 'effort': entry}).replace('"', "'")
        return DataError(
            f'{self._layout.source}: columns by {self._by}{form}: the effort is {column} '
            f'[{written_unit(unit)}], a {UNITS[unit][0]}, and the robot has '
            f'{f"effort_kind: {kind}" if kind else "no effort_kind"}: write into the robot YAML '
            f'{f"effort_kind: current and {gains} [N m/A]" if current else "effort_kind: torque"}'
            f'; where the numbers are {entry["unit"]} all the same, give --columns "{mapping}"')

    @property
    def _by(self) -> str:
        return f'preset {self._mapping.name}' if self._mapping.name else 'the mapping'

    def _time(self, alternatives: Sequence[Columns]) -> tuple[list[Taken], str]:
        reasons = list[Unfit]()
        for columns in alternatives:
            parts = [replace(columns, column=(one,)) for one in columns.column]
            try:
                singles = [self._one(part) for part in parts]
            except Unfit as error:
                reasons.append(error)
                continue
            units = columns.unit * len(parts) if len(columns.unit) == 1 else columns.unit
            given = [stated or unit for unit, (_, _, stated) in zip(units, singles, strict=True)]
            factor = float(columns.factor) if not isinstance(columns.factor, (list, dict)) else 1.0
            factors = tuple(factor * UNITS[unit or 's'][1] for unit in given)
            words = ' + '.join(f'{name}{f" [{written_unit(unit)}]" if unit else ""}'
                               for (_, name, _), unit in zip(singles, given, strict=True))
            return [Taken(TIME, tuple(index for index, _, _ in singles), factors)], \
                f'time is {words}'
        raise next((one for one in reasons if isinstance(one, Ambiguous)), reasons[0])

    def _one(self, columns: Columns) -> tuple[int, str, str]:
        """Return index, name and unit of a single column; raises Unfit."""
        column = columns.column[0]
        if isinstance(column, int):
            index = self._numbered(column)
            return index, self._layout.columns[index], self._units[index]
        indices = [index for group in self._matching(column).values() for index in group.values()]
        if not indices:
            raise Unfit(f'there is no column {column}')
        if len(indices) > 1:
            raise Ambiguous(f'several columns fit {"it" if self._mapping.name else column}: '
                            f'{", ".join(self._layout.columns[k] for k in indices)}')
        return indices[0], self._layout.columns[indices[0]], self._units[indices[0]]

    def _numbered(self, column: int) -> int:
        if column > len(self._layout.columns):
            raise Unfit(f'there is no column {column}')
        return column - 1

    def _per_joint(self, channel: str, columns: Columns) -> dict[str, int]:
        """Return the column of every joint; raises Unfit if one is missing."""
        pattern, joints = columns.pattern, self._joints
        if pattern is None:
            if joints is None or len(columns.column) != len(joints):
                raise WrongNumber(
                    f'{channel}: {len(columns.column)} columns for the '
                    f'{len(joints or ())} joints {", ".join(joints or ())}; list one for each')
            self._by_number = True
            return {joint: self._one(Columns((one,)))[0]
                    for joint, one in zip(joints, columns.column, strict=True)}
        groups = self._matching(pattern)
        if JOINT in PLACE.findall(pattern):
            return self._by_joint(channel, pattern, groups)
        self._by_number = True
        return self._by_index(channel, pattern, groups)

    def _by_joint(
        self, channel: str, pattern: str, groups: Mapping[tuple[str, ...], Mapping[str, int]]
    ) -> dict[str, int]:
        whole = [group for group in groups.values()
                 if self._joints is None or set(self._joints) <= set(group)]
        if len(whole) == 1:
            return {joint: whole[0][joint] for joint in self._joints or whole[0]}
        if whole:
            raise Ambiguous(f'{channel}: several groups of columns fit: '
                            f'{", ".join(self._listed(one) for one in whole)}')
        joints = self._joints or ()
        some = max(groups.values(), key=len, default={})
        missing = [joint for joint in joints if joint not in some]
        raise (WrongNumber if some else Unfit)(
            f'{channel}: no column {pattern} of {clipped(", ".join(missing), 200)}')

    def _by_index(
        self, channel: str, pattern: str, groups: Mapping[tuple[str, ...], Mapping[str, int]]
    ) -> dict[str, int]:
        joints = self._joints
        names = self._names_in_file()
        if joints is None:
            joints = tuple(names.values())
        if not joints:
            raise Unfit(f'{channel}: {pattern} needs a robot, whose joints it counts')
        whole, others = list[dict[str, int]](), list[list[int]]()
        for group in groups.values():
            numbers = sorted(map(int, group))
            by_number = {int(key): index for key, index in group.items()}
            if names:
                place = {name: key for key, name in names.items()}
                missing = [joint for joint in joints if place.get(joint) not in by_number]
                if missing:
                    raise WrongNumber(f'{channel}: the file has the joints '
                                      f'{", ".join(names.values())}, not {", ".join(missing)}')
                whole.append({joint: by_number[place[joint]] for joint in joints})
                continue
            follows = all(b - a == 1 for a, b in pairwise(numbers)) and numbers[0] in (0, 1)
            if follows and len(numbers) == len(joints):
                whole.append({joint: by_number[k] for joint, k in
                              zip(joints, numbers, strict=True)})
            else:
                others.append([by_number[k] for k in numbers])
        if len(whole) == 1:
            return whole[0]
        if whole:
            raise Ambiguous(f'{channel}: several groups of columns fit: '
                            f'{", ".join(self._listed(one) for one in whole)}')
        if others:
            columns = [self._layout.columns[k] for k in max(others, key=len)]
            example = self._example(columns, len(joints))
            raise WrongNumber(
                f'{channel}: {columns[0]} .. {columns[-1]} are {len(columns)} columns, the robot '
                f'has the {len(joints)} joints {", ".join(joints)}: list the columns of these, in '
                f'order, such as --columns "{one_line(example)}"', example)
        raise Unfit(f'{channel}: there is no column {pattern}')

    def _example(self, columns: Sequence[str], count: int) -> dict[str, Any]:
        """Return an example mapping with a list of columns for ``count`` joints."""
        example: dict[str, Any] = {}
        for channel, alternatives in self._mapping.channels.items():
            for one in alternatives:
                groups = self._matching(one.pattern) if one.pattern else {}
                group = max(groups.values(), key=len, default={})
                if channel == TIME:
                    try:
                        _, name, _ = self._one(one)
                    except Unfit:
                        continue
                    entry: Any = name
                elif len(group) >= min(count, len(columns)):
                    names = [self._layout.columns[k] for _, k in sorted(
                        group.items(), key=lambda pair: int(pair[0]))]
                    entry = (names * count)[:count]
                else:
                    continue
                unit = written_unit(one.unit[0])
                example[channel] = {'column': entry, 'unit': unit} if unit else entry
                break
        return example

    _by_name, _by_number, _note = False, False, ''
    _name_columns: tuple[int, ...] = ()

    def _names_in_file(self) -> dict[int, str]:
        """Return the joint names in the file by their index."""
        if self._mapping.names is None:
            return {}
        names: dict[int, str] = {}
        columns: list[int] = []
        for pattern in map(str, self._mapping.names.column):
            for key, index in (pair for group in self._matching(pattern).values()
                               for pair in group.items()):
                text = self._layout.text[index] or ''
                columns.append(index)
                listed = re.findall(r"""['"]([^'"]+)['"]""", text)
                names |= {int(key): text} if key else dict(enumerate(listed))
        if not names or not all(names.values()):
            raise Unfit('there are no columns with the names of the joints, '
                        f'{", ".join(map(str, self._mapping.names.column))}')
        self._by_name, self._name_columns = True, tuple(columns)
        renamed = self._renamed(tuple(names.values()))
        return {key: renamed.get(name, name) for key, name in names.items()}

    def _renamed(self, names: Sequence[str]) -> dict[str, str]:
        """Return the joints of the robot by the names in the file, if these have a prefix."""
        if self._joints is None or set(names) & set(self._joints):
            return {}
        try:
            naming = naming_of(names, self._joints)
        except SeveralNamings as error:
            raise DataError(f'{self._layout.source}: {error}; rename the joints there') from None
        self._note = '' if naming is None else naming.note
        return {} if naming is None else naming.joints

    def _matching(self, pattern: str) -> dict[tuple[str, ...], dict[str, int]]:
        """Return the columns that match a pattern; presets ignore case."""
        return matching(pattern, self._names, self._joints, self._mapping.name not in ('', OWN))
