"""Column mappings applied to files: as stated by the user, or by a matching preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.tables.finder import Finder
from robot_dynid.io.tables.patterns import Ambiguous, Unfit, WrongNumber
from robot_dynid.io.tables.plan import OWN, Plan
from robot_dynid.io.tables.proposal import proposal
from robot_dynid.io.tables.table import Layout
from robot_dynid.robot.columns import INDEX, PLACE, TIME, ColumnMapping, presets
from robot_dynid.robot.model import RobotModel
from robot_dynid.yaml_text import one_line


class NoPreset(DataError):
    """No preset matches a table; ``proposal`` is a mapping to be corrected."""

    def __init__(self, words: str, proposal: Mapping[str, Any]) -> None:
        super().__init__(words)
        self.proposal = dict(proposal)


def plan_of(
    layout: Layout, mapping: ColumnMapping | None, joints: tuple[str, ...] | None,
    robot: RobotModel | None,
) -> Plan:
    """Return the column plan of a table: by a ``mapping``, or by the preset that matches it.

    ``joints`` are the required ones, None for those the file names. Raises DataError if the
    mapping or no preset matches, or the kind of effort differs from the robot's.
    """
    if mapping is not None and mapping.reshape:
        width = mapping.reshape
        layout = replace(layout, columns=tuple(str(k) for k in range(1, width + 1)),
                         units=('',) * width, text=(None,) * width, numbered=True)
    if mapping is not None and mapping.name != OWN:
        laid = _laid_out(layout, mapping)
        if laid is None:
            raise DataError(f'{layout.source}: columns: it is not a {mapping.about}: '
                            f'{described(layout)}')
        try:
            return Finder(laid, joints, robot, mapping).plan()
        except Unfit as error:
            if joints and {TIME, *(f'position.{joint}' for joint in joints)} <= set(
                    layout.columns):  # a table of this package, of a robot with other logs
                plan = Finder(layout, joints, robot, presets()[OWN]).own_plan()
                return replace(plan, summary='columns by the names of this package, not by the '
                                          f'mapping: {error}')
            of = f'preset {mapping.name}' if mapping.name else 'columns'
            raise DataError(f'{layout.source}: {of}: {error}; the file has '
                            f'{described(layout)}') from None
    standard = presets()[OWN]
    if mapping is not None or any(name.startswith('position.') for name in layout.columns):
        return Finder(layout, joints, robot, standard).own_plan()
    return _by_preset(layout, joints, robot)


def _by_preset(
    layout: Layout, joints: tuple[str, ...] | None, robot: RobotModel | None
) -> Plan:
    plans, wrong = list[Plan](), list[tuple[ColumnMapping, Unfit]]()
    for preset in sorted(presets().values(), key=lambda preset: preset.general):
        laid = _laid_out(layout, preset)
        if laid is None or preset.name == OWN or (preset.general and (
                any(not plan.mapping.general for plan in plans)
                or any(not one.general for one, _ in wrong))):
            continue
        try:
            plans.append(Finder(laid, joints, robot, preset).plan())
        except (WrongNumber, Ambiguous) as near:
            wrong.append((preset, near))
        except Unfit:
            continue  # another preset may match
    if len(plans) == 1:
        return plans[0]
    example = proposal(layout, joints or ())
    if plans:
        raise DataError(f'{layout.source}: the columns fit several presets, '
                        f'{", ".join(plan.mapping.name for plan in plans)}: choose one with '
                        f'--columns {plans[0].mapping.name}')
    if wrong:
        preset, reason = wrong[0]
        example = dict(reason.example or example)
        remedy = f': say which with --columns, such as "{one_line(example)}"' \
            if isinstance(reason, Ambiguous) else ''
        raise NoPreset(f'{layout.source}: preset {preset.name} matches except: {reason}'
                       f'{remedy}', example)
    raise NoPreset(
        f'{layout.source}: the columns match no preset: the file has {described(layout)}. Assign '
        f'them with --columns, or columns in the robot YAML, such as "{one_line(example)}"; state '
        'units other than s, rad and N m or A: {column: NAME, unit: deg}', example)


def described(layout: Layout) -> str:
    """Describe the columns of a table and its format."""
    count = len(layout.columns)
    form = f', {layout.form}' if layout.form else ''
    if layout.numbered:
        first = f', the first row is {clipped(" ".join(layout.sample), 100)}' \
            if layout.sample else ''
        return f'no header with names, {count} column{"s" * (count > 1)}{form}{first}'
    return f'the columns {clipped(", ".join(layout.columns), 400)}{form}'


def _laid_out(layout: Layout, mapping: ColumnMapping) -> Layout | None:
    """Return a table without header with the names of a preset's layout, None if it differs."""
    if not mapping.layout:
        return layout
    if not layout.numbered or not layout.sample:
        return None
    scalars = [name for name in mapping.layout if INDEX not in PLACE.findall(name)]
    start = len(scalars)
    count = next((k for k, text in enumerate(layout.text[start:]) if text is None), 0)
    names, at = list(scalars), start
    for name in mapping.layout[start:]:
        empty = at < len(layout.sample) and not layout.sample[at]
        names += [f'{name.replace("{i}", "")} (empty)'] if empty else [
            name.replace('{i}', str(k)) for k in range(count)]
        at = len(names)
    if not count or len(names) != len(layout.columns):
        return None
    return replace(layout, columns=tuple(names), numbered=False)
