"""Recipes: prescribed settings of an identification; everything else is chosen from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robot_dynid.effects import axes_of
from robot_dynid.effects.deflection import RESIDUALS
from robot_dynid.errors import UsageError, reported
from robot_dynid.estimation import (
    DEFAULT,
    Estimator,
    check_settings,
    estimator_from,
    owned_settings,
)
from robot_dynid.estimation.friction_selection.law_request import AUTO, COULOMB, LawRequest
from robot_dynid.estimation.friction_selection.law_request import NONE as NO_FRICTION
from robot_dynid.files import read_text
from robot_dynid.numbers import NumberRange, shown
from robot_dynid.plausibility.finding import check_kinds
from robot_dynid.robot.columns import ColumnMapping, column_mapping
from robot_dynid.robot.model import RobotModel, TopicFields
from robot_dynid.robot.topics import topics_from_plain, with_topics
from robot_dynid.settings import read_settings, require_allowed, setting, settings_of
from robot_dynid.signals.averaging import PERIOD as AVERAGED_PERIOD
from robot_dynid.signals.averaging import WARM_UP, Periodic
from robot_dynid.signals.prepare import CUTOFF, EFFORT_LAG, ENCODER_DELAY, RATE
from robot_dynid.signals.windows import Window
from robot_dynid.yaml_text import load_yaml

#: value of ``residual`` and ``ripple`` that omits them
NONE = 'none'
#: values of ``loops``: friction and links at once, or one after the other
JOINT, THREE = 'joint', 'three'
RAMP_WIDTH = NumberRange(1e-9, 1e3, 'rad/s or m/s')
PERIOD = replace(AVERAGED_PERIOD, words=(AUTO,))
#: key of the laws of all axes that a recipe does not name
OTHERS = 'others'
#: key that names the method among the settings of the estimator
NAME = 'name'


def _read_joints(value: Any, key: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise UsageError(f'{key} must be a list of joint names, is {shown(value)}')
    return tuple(value)


def _read_delays(value: Any, key: str) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise UsageError(f'{key} must be a mapping of joints to seconds such as '
                         f'{{joint_1: 0.003}}, is {shown(value)}')
    return {name: ENCODER_DELAY.read(late, f'{key}: {name}') for name, late in value.items()}


def _read_friction(value: Any, key: str) -> str | dict[str, str]:
    """Return the law of all axes, or the laws of some by the names of their joints."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or not all(
            isinstance(text, str) for pair in value.items() for text in pair):
        raise UsageError(f'{key} must be the name of a law, or a mapping of joints to laws such '
                         f'as {{joint_1: dahl, joint_7: none, others: auto}}, is {shown(value)}')
    return dict(value)


def _read_windows(value: Any, key: str) -> dict[str, tuple[Window, ...]]:
    """Return the windows of recordings by file name: one each, or a list."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise UsageError(f'{key} must be a mapping of files to windows such as '
                         f'{{run.csv.gz: [12.0, 40.5]}}, is {shown(value)}')
    windows = {}
    for name, given in value.items():
        several = isinstance(given, list) and given and all(isinstance(w, list) for w in given)
        windows[name] = tuple(Window.read(one, f'{key}: {name}')
                            for one in (given if several else [given]))
    return windows


def _read_columns(value: Any, key: str) -> ColumnMapping | None:
    return None if value is None else column_mapping(value, key)


def _read_kinds(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple) or not all(isinstance(x, str) for x in value):
        raise UsageError(f'{key} must be a list of kinds of findings, is {value!r}')
    return check_kinds([value] if isinstance(value, str) else value)


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
    """Settings of `identify`.

    The help of each field says what it takes; docs/files.md has the table of them.

    Raises UsageError naming the key.
    """

    cutoff: float | None = setting(
        None, CUTOFF, 'cut-off of the zero-phase low-pass of motion and effort [Hz]; chosen from '
        'the data unless given')
    ramp_width: float | None = setting(
        None, RAMP_WIDTH, 'speed over which Coulomb friction of all joints changes its sign '
        '[rad/s, m/s]; chosen from the data unless given; with it the law of joints left to auto '
        'is coulomb')
    effort_lag: float | None = setting(
        None, EFFORT_LAG, 'delay of the effort after the position [s]; chosen from the data '
        'unless given')
    encoder_delays: Mapping[str, float] | None = setting(
        None, _read_delays, 'delays of the link encoders of elastic joints behind those of their '
        'motors, by joint [s]; from the data unless given')
    rate: float | None = setting(
        None, RATE, 'rate of the uniform time grid [Hz]; that of the recording unless given')
    rotor_inertia: bool | None = setting(
        None, text='whether to identify rotor inertia; unless given, if the sensors of the '
        'robot show rotors', kind=bool)
    friction: str | Mapping[str, str] = setting(
        AUTO, _read_friction, 'friction law of all joints such as maxwell+load, none, auto, or '
        'auto without dahl load; or a mapping of joints to laws, the rest as others')
    period: float | str | None = setting(
        None, PERIOD, 'period of a repeated motion, to average over [s], or auto; no averaging '
        'unless given')
    warm_up: int = setting(
        Periodic.warm_up, WARM_UP, 'first periods to leave out of the average')
    residual: str = setting(
        AUTO, (AUTO, NONE, *RESIDUALS), 'model of the effort that the deflection between two '
        'encoders shows; auto takes gear or gmr where it reduces the held-out error significantly')
    ripple: str = setting(
        AUTO, (AUTO, NONE), 'torque ripple locked to position; auto: where the recordings show it')
    adaptation: str = setting(
        AUTO, (AUTO, NONE), 'friction that warms up and coefficients that drift; auto: where the '
        'recordings show them')
    loops: str = setting(
        JOINT, (JOINT, THREE), 'fit friction and links at once (joint), or friction first, from '
        'sweeps, and in turn (three)')
    elastic_joints: tuple[str, ...] | None = setting(
        None, _read_joints, 'list of joints whose gears deflect, [] for none; those of the robot '
        'unless given')
    windows: Mapping[str, tuple[Window, ...]] = setting(
        dict, _read_windows, 'parts of recordings to use, in seconds from their start: '
        '{run.csv: [12.0, 40.5]}; on a command line run.csv[12:40.5]')
    columns: ColumnMapping | None = setting(
        None, _read_columns, 'columns of recordings in tables, or a preset; replaces that of the '
        'robot YAML; on a command line --columns')
    topics: Mapping[str, TopicFields] = setting(
        dict, topics_from_plain, 'topics of bags by role, {joint_states: '
        '/left/joint_states}; replace those of the robot YAML; on a command line --topic')
    accept: tuple[str, ...] = setting(
        (), _read_kinds, 'list of kinds of findings about the recordings to accept as intended; '
        'on a command line --accept')
    estimator: Mapping[str, Any] = setting(
        dict, _read_estimator, 'name of the method, or a mapping of its name and settings')

    @property
    def periodic(self) -> Periodic | None:
        """Settings of the averaging, None without averaging."""
        if self.period is None:
            return None
        return Periodic(None if self.period == AUTO else float(self.period), self.warm_up)

    @property
    def _laws(self) -> Mapping[str, str]:
        """Requests for friction laws, by joint and for the others."""
        return {OTHERS: self.friction} if isinstance(self.friction, str) else self.friction

    def law_requests(self, robot: RobotModel) -> tuple[LawRequest, ...]:
        """Return the request for the law of every axis: joints, then motors such as ``m6``.

        Raises UsageError for a name that is neither.
        """
        axes = (*robot.joints, *axes_of(robot).labels[robot.n:])
        unknown = [name for name in self._laws if name not in (*axes, OTHERS)]
        if unknown:
            raise UsageError(f'recipe: friction: {robot.name} has no joint '
                             f'{", ".join(unknown)}; choose one of {", ".join(axes)}, {OTHERS}')
        simplest = COULOMB if robot.drive.shows_motors else NO_FRICTION
        requests = [replace(LawRequest.of(self._laws.get(axis, self._laws.get(OTHERS, AUTO))),
                         simplest=simplest) for axis in axes]
        if self.ramp_width is not None:
            requests = [LawRequest(COULOMB) if one.auto else one for one in requests]
        return tuple(requests)

    def encoder_delays_of(self, robot: RobotModel) -> tuple[float, ...]:
        """Return the delay [s] of every link encoder, () for none. Raises UsageError."""
        delays = self.encoder_delays or {}
        for name in delays:
            robot.index(name)
        return tuple(delays.get(joint, 0.0) for joint in robot.joints) if delays else ()

    def chooses_friction(self, robot: RobotModel) -> bool:
        """Return True if laws of friction are chosen from the data."""
        return any(request.law != COULOMB for request in self.law_requests(robot))

    def with_simple_laws(self, robot: RobotModel) -> Recipe:
        """Return a recipe with the simplest law wherever the data would choose one."""
        simplest = COULOMB if robot.drive.shows_motors else NO_FRICTION
        laws = {OTHERS: AUTO, **self._laws}
        return replace(self, friction={
            name: simplest if LawRequest.of(text).auto else text for name, text in laws.items()})

    def rotors_of(self, robot: RobotModel) -> bool:
        """Return True if the effort of a robot is fitted with rotors.

        Raises UsageError for rotors that its sensors cannot see.
        """
        if self.rotor_inertia and not robot.drive.shows_motors:
            raise UsageError(f'recipe: rotor_inertia is true, but the efforts of {robot.name} are '
                             'measured behind the gears (sensor: link), where rotors do not show: '
                             'omit one of them')
        return robot.drive.shows_motors if self.rotor_inertia is None else self.rotor_inertia

    def of_recordings(self, robot: RobotModel) -> RobotModel:
        """Return the robot with the columns and topics of its recordings stated in the recipe."""
        columns = robot.columns if self.columns is None else self.columns
        return with_topics(replace(robot, columns=columns), self.topics)

    def check_robot(self, robot: RobotModel) -> None:
        """Raise UsageError if the recipe contradicts a robot: other joints, invisible rotors."""
        self.law_requests(robot)
        self.rotors_of(robot)

    def estimator_for(self, method: str | None) -> Estimator:
        """Return the estimator of ``method``, or the one the recipe names, or the default one.

        Raises UsageError if both name one and differ, and for settings of another method.
        """
        settings = dict(self.estimator)
        named = settings.pop(NAME, None)
        if method and named and method != named:
            raise UsageError(f'recipe: the estimator is {named}, but method {method} is asked '
                             'for: omit one of them')
        return estimator_from(method or named or DEFAULT, settings)

    def with_estimator_settings(self, settings: Mapping[str, Any]) -> Recipe:
        """Return a recipe with more settings of the method; raises UsageError for repeats."""
        twice = [key for key in settings if key in self.estimator]
        if twice:
            raise UsageError(f'{twice[0]} is in the recipe and given as an option: omit one')
        return replace(self, estimator={**self.estimator, **settings})

    def __post_init__(self) -> None:
        settings = {key: value for key, value in self.estimator.items() if key != NAME}
        if NAME in self.estimator:
            estimator_from(self.estimator[NAME], settings)
        else:
            check_settings(settings)
        require_allowed(self, 'recipe: {}')
        check_kinds(self.accept)
        for text in self._laws.values():
            request = LawRequest.of(text)  # refuses an unknown one
            if self.ramp_width is not None and not request.auto \
                    and request.law not in (COULOMB, NO_FRICTION):
                raise UsageError('recipe: ramp_width belongs to the law coulomb, not to '
                                 f'{request.law}: omit one of them')


def recipe_from_dict(content: Mapping[str, Any], source: str = 'recipe') -> Recipe:
    """Return the recipe with the keys of a mapping.

    Settings of a method may also be top-level keys (the form before ``estimator`` existed). Raises
    UsageError on an unknown key or value.
    """
    keys, owned = settings_of(Recipe), owned_settings()
    unknown = sorted(str(key) for key in content if key not in keys and key not in owned)
    if unknown:
        raise UsageError(f'{source}: unknown key {", ".join(unknown)}; choose from '
                         f'{", ".join(sorted((*keys, *owned)))}')
    values = read_settings(Recipe, {k: v for k, v in content.items() if k in keys}, source)
    nested = dict(values.pop('estimator', {}))
    top_level = {key: value for key, value in content.items() if key in owned}
    twice = [key for key in top_level if key in nested]
    if twice:
        raise UsageError(f'{source}: {twice[0]} is both in estimator and top level: omit one')
    return Recipe(**values, estimator={**nested, **top_level})


@reported
def read_recipe(path: str | Path) -> Recipe:
    """Return the recipe of a YAML file; raises UsageError naming file, key and remedy."""
    return recipe_from_text(read_text(path), str(path))


@reported
def recipe_from_text(text: str, source: str = 'recipe') -> Recipe:
    """Return the recipe of a YAML text, the default recipe if empty; raises UsageError."""
    content = load_yaml(text, source, UsageError)
    if content is None:
        return Recipe()
    if not isinstance(content, dict):
        raise UsageError(f'{source}: must be a mapping of keys to values')
    return recipe_from_dict(content, source)
