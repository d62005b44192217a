"""Every number that users give has a range; every setting is tried beyond its own."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np
import pytest
from sources import ranges_of

import robot_dynid
from robot_dynid import numbers
from robot_dynid.errors import MissingDependency, RobotError, UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.drive_gains import KnownLoad
from robot_dynid.excitation.families import FAMILIES
from robot_dynid.excitation.request import DesignOptions
from robot_dynid.friction import ADDITIONS, LAWS
from robot_dynid.identification.recipe import Recipe
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import require_allowed, settings_of
from robot_dynid.signals.averaging import Periodic

NUMERIC = (int, float, int | None, float | None, float | str | None, tuple[float, ...],
           tuple[float, float, float] | None)
#: settings without a range, and why
WITHOUT = {
    ('KnownLoad', 'mass'): 'has no default; read by MASS',
    **{(method, name): 'of the solver, not a setting of users'
       for method in ('RobustLeastSquares', 'GeneralisedLeastSquares')
       for name in ('tolerance', 'rounds')},
}


def described(owner: type) -> bool:
    """Return whether a dataclass has fields that are settings or parameters of a node."""
    return bool(settings_of(owner))


def modules() -> Iterator[Any]:
    """Yield the modules of the package, but for programs and what only `ros2 launch` imports.

    Those of libraries that are not installed are left out; they write exports.
    """
    for found in pkgutil.walk_packages(robot_dynid.__path__, 'robot_dynid.'):
        if not found.name.endswith(('__main__', 'ros.launching', 'ros.bringup')):
            with suppress(MissingDependency):
                yield import_module(found.name)


def owners() -> list[type]:
    """Return every dataclass that users fill: those with settings, and those known as such."""
    found = {one for module in modules() for one in vars(module).values()
             if isinstance(one, type) and is_dataclass(one) and described(one)}
    known = {DesignOptions, Recipe, Periodic, KnownLoad, *LAWS.values(), *ADDITIONS.values(),
             *(type(one) for one in ESTIMATORS.values()), *(f.options for f in FAMILIES.values())}
    return sorted({one for one in found | known if one.__module__.startswith('robot_dynid.')},
                  key=lambda one: one.__name__)


OWNERS = owners()


def test_settings_of_every_kind_are_found() -> None:
    names = {owner.__name__ for owner in OWNERS}
    assert {'Recipe', 'DesignOptions', 'FourierOptions', 'GuardSettings', 'ContactSettings',
            'IdentifierParameters', 'ExcitationSettings', 'SimulatedRobotParameters', 'Coulomb',
            'Maxwell', 'Drift', 'PlanOptions', 'MonitorSettings', 'InstrumentalVariables',
            'SequentialFeasible', 'KnownLoad', 'Periodic'} <= names


@pytest.mark.parametrize('owner', OWNERS, ids=lambda owner: owner.__name__)
def test_every_number_has_a_range(owner: type) -> None:
    hints = get_type_hints(owner)
    missing = [f.name for f in fields(owner) if hints[f.name] in NUMERIC
               and f.name not in ranges_of(owner) and (owner.__name__, f.name) not in WITHOUT]
    assert not missing, f'{owner.__name__}: give a range to {", ".join(missing)}'


def beyond(allowed: NumberRange) -> list[Any]:
    """Return what no number of a range can be."""
    step = 1 if allowed.whole else 0.01 * max(abs(allowed.low), abs(allowed.high), 1.0)
    wrong = [allowed.low - step, allowed.high + step, allowed.high * 10 + 1, 1e308, math.nan,
             math.inf, -math.inf, '1', 'x', True, [1.0], {}, 10**400]
    return wrong + ([allowed.low + 0.5] if allowed.whole else [])


def given(owner: type, name: str, value: Any) -> None:
    """Give a value to a setting as users do."""
    if isinstance(settings_of(owner)[name].default, tuple):
        value = (value,)
    if owner is KnownLoad:
        replace(KnownLoad(1.0), **{name: (value, 0.0, 0.0)})
    elif owner.__module__.startswith('robot_dynid.ros.'):
        settings_of(owner)[name].read(value, name)  # objects are made of what was read
    else:
        with pytest.raises(UsageError):
            settings_of(owner)[name].read(value, name)
        owner(**{name: value})


CASES = [(owner, name) for owner in OWNERS for name in ranges_of(owner)]


@pytest.mark.parametrize(('owner', 'name'), CASES, ids=lambda one: getattr(one, '__name__', one))
def test_settings_refuse_values_beyond_their_range(owner: type, name: str) -> None:
    default = {f.name: f.default for f in fields(owner)}[name]
    for value in beyond(ranges_of(owner)[name]):
        if type(value) is type(default) and value == default:
            continue  # an infinite default stands for no limit
        with pytest.raises(UsageError, match=r'range|finite|whole|must be'):
            given(owner, name, value)


@pytest.mark.parametrize(('owner', 'name'), CASES, ids=lambda one: getattr(one, '__name__', one))
def test_defaults_lie_in_their_ranges(owner: type, name: str) -> None:
    default = {f.name: f.default for f in fields(owner)}[name]
    assert default is not MISSING
    allowed = ranges_of(owner)[name]
    for one in default if isinstance(default, tuple) else (default,):
        if one is not None and one != math.inf:
            assert allowed.low <= one <= allowed.high


LENGTHS = NumberRange(0.5, 2.0, 'm', note='as told')
COUNT = NumberRange(2, 5, whole=True)


@pytest.mark.parametrize(('allowed', 'value', 'words'), [
    (LENGTHS, 3.0, 'x must be at most 2, is 3: as told (range 0.5 to 2 m)'),
    (LENGTHS, 0.1, 'x must be at least 0.5, is 0.1'), (LENGTHS, 0, 'x must be positive, is 0'),
    (LENGTHS, 0.1 + 0.2, 'x must be at least 0.5, is 0.30000000000000004'),
    (LENGTHS, '1', "x must be a finite number, is '1'"), (LENGTHS, True, 'finite number, is True'),
    (LENGTHS, math.nan, 'finite number, is nan'), (LENGTHS, None, 'finite number, is None'),
    (numbers.AMOUNT, -1, 'x must be at least 0, is -1 (range 0 to 1e+12)'),
    (COUNT, 2.5, 'x must be a whole number, is 2.5'), (COUNT, 6, 'x must be at most 5, is 6'),
    pytest.param(COUNT, 10**5000, 'a very long int', id='long'),
])
def test_messages_say_what_is_allowed(allowed: NumberRange, value: Any, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        allowed.read(value, 'x')
    assert words in str(refused.value)


@pytest.mark.parametrize(('name', 'low', 'high', 'unit'), [
    ('LENGTH', -1e4, 1e4, 'm'), ('SIZE', 1e-6, 1e4, 'm'), ('MASS', 1e-9, 1e7, 'kg'),
    ('MOMENT_OF_INERTIA', -1e10, 1e10, 'kg m^2'), ('ANGLE', -1e4, 1e4, 'rad'),
    ('DIRECTION', -1e6, 1e6, ''), ('GRAVITY', -1e3, 1e3, 'm/s^2'),
    ('POSITION_LIMIT', -1e17, 1e17, 'rad or m'), ('POSITION', -1e6, 1e6, 'rad or m'),
    ('SPEED', 1e-9, 1e5, 'rad/s or m/s'), ('SECONDS', 1e-3, 1e5, 's'),
    ('FREQUENCY', 1e-6, 1e5, 'Hz'), ('LARGEST', 1e-9, 1e17, ''), ('AMOUNT', 0.0, 1e12, ''),
    ('TRAVEL', 1e-9, 1e3, 'rad or m'), ('TEMPERATURE', -273.15, 1e4, 'deg C')])
def test_ranges_of_physical_quantities_hold_their_ends_and_nothing_beyond(
    name: str, low: float, high: float, unit: str
) -> None:
    allowed: NumberRange = getattr(numbers, name)
    assert allowed.array([low, high], (2,), 'x').tolist() == [low, high]
    assert [allowed.read(end, 'x') for end in (low, high)] == [low, high]
    assert str(allowed) == f'{low:g} to {high:g} {unit}'.rstrip()
    for beyond_it in (np.nextafter(low, -np.inf), np.nextafter(high, np.inf)):
        for read in (lambda x: allowed.read(x, 'x'), lambda x: allowed.array([x], (1,), 'x')):
            with pytest.raises(UsageError, match='range'):
                read(beyond_it)


def test_numbers_are_read() -> None:
    assert LENGTHS.read(1, 'x') == 1.0 and type(LENGTHS.read(1, 'x')) is float
    assert COUNT.read_whole(3.0, 'x') == 3 and type(COUNT.read(3.0, 'x')) is int
    assert LENGTHS.read(np.float32(1.0), 'x') == 1.0
    assert LENGTHS.array([[1, 2.0]], (1, 2), 'x').tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize('value', [
    [[1.0, 2.0], [1.0]], [[1.0, True]], [['1', 2.0]], [[1.0, 3.0]], [[1.0, math.nan]], 1.0, 'ab',
    [[1.0, 10**400]], None, {}, [[1.0, None]], [[[1.0], [1.0]]], np.array([['a', 'b']])])
def test_number_range_array_refuses_what_is_no_array(value: Any) -> None:
    with pytest.raises(RobotError, match='x must be'):
        LENGTHS.array(value, (1, 2), 'x', RobotError)


@pytest.mark.parametrize(('shape', 'words'), [
    ((3,), 'a list of 3'), ((2, 3), '2 lists of 3'), ((4, 2, 3), '4 lists of 2 lists of 3')])
def test_number_range_array_says_which_lists_it_takes(shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(UsageError, match=f'^x must be {words} finite numbers, is None$'):
        LENGTHS.array(None, shape, 'x')


def test_words_may_stand_for_a_number() -> None:
    assert Recipe(period='auto').period == 'auto'
    with pytest.raises(UsageError, match="period must be a finite number, is 'often'"):
        Recipe(period='often')
    require_allowed(Recipe(cutoff=5), '{}')
