"""Recipes: what is prescribed about an identification; the rest is chosen from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError, reported
from robot_dynid.estimation import (
    DEFAULT,
    Estimator,
    check_settings,
    estimator_from,
    owned_settings,
)
from robot_dynid.estimation.friction_selection.law_selection import AUTO
from robot_dynid.estimation.settings import (
    SETTING,
    Setting,
    number_setting,
    read_flag,
    read_settings,
    read_word,
    setting,
    settings_of,
)
from robot_dynid.files import read_text
from robot_dynid.friction import law_from
from robot_dynid.numbers import NumberRange, check_ranges, shown
from robot_dynid.plausibility.finding import checked_kinds
from robot_dynid.residual import RESIDUALS
from robot_dynid.signals.averaging import PERIOD as AVERAGED_PERIOD
from robot_dynid.signals.averaging import WARM_UP, Periodic
from robot_dynid.yaml_text import load_yaml

#: value of ``residual`` that leaves the deflection out
NONE = 'none'
#: values of ``loops``: friction and links at once, or one after the other
JOINT, THREE = 'joint', 'three'
CUTOFF = NumberRange(1e-2, 1e4, 'Hz')
RAMP_WIDTH = NumberRange(1e-9, 1e3, 'rad/s or m/s')
EFFORT_LAG = NumberRange(-10.0, 10.0, 's')
RATE = NumberRange(1.0, 1e5, 'Hz')
PERIOD = replace(AVERAGED_PERIOD, words=(AUTO,))
#: key that names the method among the settings of the estimator
NAME = 'name'


def _read_joints(value: Any, key: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise UsageError(f'{key} must be a list of joint names, is {shown(value)}')
    return tuple(value)


def _read_kinds(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple) or not all(isinstance(x, str) for x in value):
        raise UsageError(f'{key} must be a list of kinds of findings, is {value!r}')
    return checked_kinds([value] if isinstance(value, str) else value)


def _read_estimator(value: Any, key: str) -> Mapping[str, Any]:
    """Return the name of a method, or its name and settings, as a mapping."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {NAME: value}
    if not isinstance(value, Mapping):
        raise UsageError(f'{key} must be the name of a method, or a mapping such as '
                         f'{{name: irls, robust: tukey}}, is {shown(value)}')
    if not isinstance(value.get(NAME, ''), str):
        raise UsageError(f'{key}: {NAME} must be that of a method, is {shown(value[NAME])}')
    return dict(value)


@dataclass(frozen=True)
class Recipe:
    """Settings of ``identify``.

    ``cutoff`` [Hz] of the low-pass, ``ramp_width`` [rad/s, m/s] of the Coulomb ramp of all joints,
    ``effort_lag`` [s], ``rate`` [Hz] of the uniform grid: None means chosen from the data.
    ``friction`` is a law such as ``maxwell+load``, of which only the shapes are chosen, or
    'auto': the law too, axis by axis, which is Coulomb's where ``ramp_width`` is given.
    ``rotor_inertia`` False for torque sensors on the link side, which do not see rotors.
    ``period`` [s], or 'auto' for the one of the recorded motion, asks for averaging over the
    periods of every recording, the first ``warm_up`` of them left out. ``residual`` is what learns
    from the deflection: 'none', 'gmr', 'rbf', or 'auto', which is gmr where there are motor
    states. ``loops`` 'joint' fits friction and links at once, 'three' in turn, friction first,
    from sweeps. ``elastic_joints`` are those whose gears deflect, () none; None: those of the
    robot. ``accept`` are kinds of findings (plausibility.finding.KINDS) that do not refuse the
    recordings. ``estimator`` holds the ``name`` of a method and its settings, in plain types;
    without a name they are those of the method that is asked for.

    Raises UsageError naming the key.
    """

    cutoff: float | None = number_setting(None, CUTOFF, 'cut-off of the low-pass [Hz]')
    ramp_width: float | None = number_setting(
        None, RAMP_WIDTH, 'width of the Coulomb ramp [rad/s, m/s]')
    effort_lag: float | None = number_setting(None, EFFORT_LAG, 'lag of the effort [s]')
    rate: float | None = number_setting(None, RATE, 'rate of the uniform grid [Hz]')
    rotor_inertia: bool = setting(True, read_flag, 'whether the effort shows rotors')
    friction: str = setting(AUTO, read_word, 'friction law of all axes, or auto')
    period: float | str | None = number_setting(
        None, PERIOD, 'period to average over [s], or auto')
    warm_up: int = number_setting(
        Periodic.warm_up, WARM_UP, 'first periods to leave out')
    residual: str = setting(AUTO, read_word, 'residual model of the deflection')
    loops: str = setting(JOINT, read_word, 'friction and links at once, or in turn (three)')
    elastic_joints: tuple[str, ...] | None = setting(None, _read_joints, 'joints that deflect')
    accept: tuple[str, ...] = setting((), _read_kinds, 'findings that are meant to be so')
    estimator: Mapping[str, Any] = field(
        default_factory=dict, metadata={SETTING: Setting(_read_estimator, 'method and settings')})

    @property
    def periodic(self) -> Periodic | None:
        """Settings of the averaging, None for recordings taken as they are."""
        if self.period is None:
            return None
        return Periodic(None if self.period == AUTO else float(self.period), self.warm_up)

    def estimator_for(self, method: str | None) -> Estimator:
        """Return the estimator of ``method``, or the one the recipe names, or the default one.

        Raises UsageError where both name one and differ, and for settings of another method.
        """
        settings = dict(self.estimator)
        named = settings.pop(NAME, None)
        if method and named and method != named:
            raise UsageError(f'recipe: the estimator is {named}, but method {method} is asked '
                             'for: leave one of them out')
        return estimator_from(method or named or DEFAULT, settings)

    def with_estimator_settings(self, settings: Mapping[str, Any]) -> Recipe:
        """Return it with more settings of the method; raises UsageError for one given twice."""
        twice = [key for key in settings if key in self.estimator]
        if twice:
            raise UsageError(f'{twice[0]} is in the recipe and given as an option: leave one out')
        return replace(self, estimator={**self.estimator, **settings})

    def __post_init__(self) -> None:
        settings = {key: value for key, value in self.estimator.items() if key != NAME}
        if NAME in self.estimator:
            estimator_from(self.estimator[NAME], settings)
        else:
            check_settings(settings)
        check_ranges(self, 'recipe: {}')
        checked_kinds(self.accept)
        if self.residual not in (AUTO, NONE, *RESIDUALS):
            raise UsageError(f'recipe: residual {self.residual!r}: choose one of {AUTO}, {NONE}, '
                             f'{", ".join(RESIDUALS)}')
        if self.loops not in (JOINT, THREE):
            raise UsageError(f'recipe: loops {self.loops!r}: choose one of {JOINT}, {THREE}')
        if self.friction != AUTO:
            law_from(self.friction)  # refuses an unknown one
        if self.ramp_width is not None and self.friction not in (AUTO, 'coulomb'):
            raise UsageError(f'recipe: ramp_width is that of the law coulomb, not of '
                             f'{self.friction}; leave one of them out')


def recipe_from_dict(content: Mapping[str, Any], source: str = 'recipe') -> Recipe:
    """Return the recipe with the keys of a mapping.

    Settings of a method may stand beside the key ``estimator``, as before there was one: they
    belong to the method that owns them. Raises UsageError on an unknown key or value.
    """
    known, owned = settings_of(Recipe), owned_settings()
    unknown = sorted(str(key) for key in content if key not in known and key not in owned)
    if unknown:
        raise UsageError(f'{source}: unknown key {", ".join(unknown)}; known are '
                         f'{", ".join(sorted((*known, *owned)))}')
    values = read_settings(Recipe, {k: v for k, v in content.items() if k in known}, source)
    own = dict(values.pop('estimator', {}))
    beside = {key: value for key, value in content.items() if key in owned}
    twice = [key for key in beside if key in own]
    if twice:
        raise UsageError(f'{source}: {twice[0]} stands in estimator and beside it: leave one out')
    return Recipe(**values, estimator={**own, **beside})


@reported
def read_recipe(path: str | Path) -> Recipe:
    """Return the recipe of a YAML file. Raises UsageError naming file, key and remedy."""
    return recipe_from_text(read_text(path), str(path))


@reported
def recipe_from_text(text: str, source: str = 'recipe') -> Recipe:
    """Return the recipe of a YAML text; an empty one is the default recipe. Raises UsageError."""
    content = load_yaml(text, source, UsageError)
    if content is None:
        return Recipe()
    if not isinstance(content, dict):
        raise UsageError(f'{source}: must be a mapping of keys to values')
    return recipe_from_dict(content, source)
