"""Questions about an arm that its URDF leaves open; robot YAML and recipe from the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.numbers import GRAVITY, LARGEST, shown
from robot_dynid.robot.description import MOVABLE, Description, JointDescription
from robot_dynid.robot.linkage import TOOL
from robot_dynid.robot.locate import located
from robot_dynid.robot.model import EFFORT_KINDS, GAIN_UNITS, LINK, MOTOR, POSITION_ERROR
from robot_dynid.robot.robot_file import ERROR_LIMIT, GAIN, RATIO
from robot_dynid.robot.tree import Selection, build_robot
from robot_dynid.robot.urdf import described, parse_urdf, urdf_text
from robot_dynid.setting_up.diagnosis import WARN, Diagnosis
from robot_dynid.setting_up.drivers import Driver, driver_named, drivers, suggested
from robot_dynid.types import FloatArray
from robot_dynid.yaml_text import one_line

#: header of written files, which may be overwritten
MARK = '# Written by robot-dynid init'
UNKNOWN, NONE, ALL = 'unknown', 'none', 'all'
#: what elastic joints need
BENDING = 'elastic_joints need the effort of motors (sensor: motor) including gravity'
#: gravity [m/s^2] in the base frame by how the base is mounted
MOUNTINGS = {'floor': (0.0, 0.0, -9.81), 'ceiling': (0.0, 0.0, 9.81)}
#: s to the speed limit of a joint with unknown acceleration limit
RAMP = 1.0
#: default speed [rad/s, m/s], and default range of continuous joints
SLOW, RANGE = 0.5, (-2.8, 2.8)
#: placeholder of unknown gains [N m/A], and its relative standard deviation
GAIN_UNKNOWN, GAIN_UNKNOWN_STD = 1.0, 0.5


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm from its URDF, with the suggested chain of joints from base to tip."""

    path: Path
    urdf: Element
    description: Description
    base: str
    tip: str
    joints: tuple[str, ...]

    def limits(self, joint: str) -> FloatArray:
        """Return lower, upper, velocity, effort (4,) of a joint, NaN where there is none."""
        return next(one.limits for one in self.description.joints if one.name == joint)

    def between(self, base: str, tip: str) -> tuple[str, ...]:
        """Return the joints of the robot between two links; raises as `build_robot`."""
        return build_robot(self.description, Selection(base, tip)).joints


def read_arm(path: str | Path, base_link: str = '') -> Arm:
    """Read the arm in a URDF or xacro file; base, unless given, and tip are suggestions.

    From the base on, the tip is where the chain branches into several that move, or a tool begins.
    Raises RobotError as `load_robot`.
    """
    text = urdf_text(path)
    description = described(text, str(path))
    base = description.base(base_link)
    chain = _chain(description, base, _of_arm) or _chain(description, base, _moves)
    tip = chain[-1].child if chain else ''
    joints = build_robot(description, Selection(base, tip)).joints
    tip = next((one.child for one in reversed(chain) if one.name in joints), tip)  # no tool
    return Arm(Path(path), parse_urdf(text, str(path)), description, base, tip, joints)


def _chain(
    description: Description, base: str, moves: Callable[[JointDescription], bool]
) -> list[JointDescription]:
    """Return the moving joints from the base on, up to a branch or a tool."""
    counts: dict[str, int] = {}  # of joints that move below a link
    for joint in reversed(description.below(base)):
        counts[joint.parent] = counts.get(joint.parent, 0) + moves(joint) + counts.get(
            joint.child, 0)
    chain: list[JointDescription] = []
    link = base
    while True:
        onward = [joint for joint in description.children.get(link, ())
                  if moves(joint) or counts.get(joint.child)]
        if not onward or (len(onward) > 1 and len(chain) > 2):
            return chain
        joint = max(onward, key=lambda one: moves(one) + counts.get(one.child, 0))
        link = joint.child
        if moves(joint):
            chain.append(joint)


def _moves(joint: JointDescription) -> bool:
    return joint.kind in MOVABLE and joint.mimic is None


def _of_arm(joint: JointDescription) -> bool:
    return _moves(joint) and not TOOL.search(joint.name)


@dataclass(frozen=True)
class Question:
    """A question: ``key`` of its answer, ``text``, ``choices`` (none: free), ``suggestion``.

    ``required``: it must be answered and the suggestion confirmed; ``why`` is the reason for the
    suggestion.
    """

    key: str
    text: str
    choices: tuple[str, ...] = ()
    suggestion: Any = None
    why: str = ''
    required: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the question in types of JSON."""
        return {**vars(self), 'choices': list(self.choices)}


ELASTIC = Question(
    'elastic_joints', 'Joints with two encoders, on motor and link: none, all, or [names]', (),
    NONE, 'needs topic motor_states; stiffness and damping of gears are identified')
RATIOS_OF_TWO_ENCODERS = ('needed for motor states that are not divided by them, kinematic error '
                          'and rotor axes')


def questions(arm: Arm, answers: Mapping[str, Any]) -> list[Question]:
    """Return all questions about an arm; suggestions follow from the ``answers`` so far."""
    likely, because = suggested(arm.urdf)
    driver = driver_named(str(answers.get('driver', likely.name)))
    kind = answers.get('effort_kind')
    stated = driver.facts['efforts']
    by_urdf = next((one.kind for one in stated if one.parameter.items() & {
        (param.get('name'), (param.text or '').strip().lower())
        for param in arm.urdf.iterfind('ros2_control/hardware/param')}), None)
    meanings = '; '.join(
        f'{one.kind or "none"}: {one.fact}, {one.conditions} ({driver.link(one)})'
        for one in stated) or 'see its manual'
    sensors = {one.sensor for one in stated if one.kind and kind in (None, one.kind)} or {MOTOR}
    sensor = (min(sensors) or None) if len(sensors) == 1 else None
    asked = [
        Question('driver', 'Which driver publishes the joint states?',
                 tuple(one.name for one in drivers()), likely.name,
                 ', '.join(because) or 'no evidence in the URDF', required=True),
        Question('effort_kind', 'What is the effort of the joint states? '
                 'torque [N m] including gravity, current [A], torque without gravity, or the '
                 'position error of servos'
                 f'{". " * bool(driver.ask)}{driver.ask}', EFFORT_KINDS, by_urdf,
                 f'{"by <ros2_control> of the URDF; " * bool(by_urdf)}{driver.name}: {meanings}',
                 required=True),
        Question('sensor', 'Where is it measured: at the motor, or by torque sensors behind the '
                 'gears (link)?', (MOTOR, LINK), sensor,
                 driver.name if sensor else driver.ask, not sensor),
    ]
    if kind in GAIN_UNITS:
        asked.append(Question(
            'drive_gains', f'Torque of the joint over {_recorded(str(kind))}, joint: gain for '
            'each, or unknown', (), UNKNOWN, 'calibrate unknown ones with a weighed payload'))
    if kind == POSITION_ERROR:
        asked.append(Question(
            'error_limit', 'Position error at which the output of a servo reaches its limit '
            '[rad], one number, or joint: number for each', (), None, 'forcerange / kp in MuJoCo',
            required=True))
    bending = answers.get('sensor', sensor) == MOTOR and kind != 'gravity_compensated_torque'
    elastic = bending and answers.get('elastic_joints', NONE) not in (NONE, [])
    return [*asked, *([ELASTIC] if bending else []), *_questions_of_the_arm(arm, driver, elastic)]


def _recorded(kind: str) -> str:
    """Return the quantity that drive gains of a kind of effort refer to, with their unit."""
    return f'{kind.replace("_", " ")} [{GAIN_UNITS[kind]}]'


def _questions_of_the_arm(arm: Arm, driver: Driver, elastic: bool) -> list[Question]:
    """Return the questions that are not about effort."""
    return [
        Question('base_link', 'Fixed link', (), arm.base, 'the root of the URDF'),
        Question('tip_link', 'Last link of the arm, including everything attached to it', (),
                 arm.tip, f'behind {len(arm.joints)} joints: {", ".join(arm.joints)}'),
        Question('mounting', 'How is the base mounted: floor, ceiling, or gravity in the base '
                 'frame such as [9.81, 0, 0] for a wall', (), 'floor', 'default'),
        Question('acceleration', 'Acceleration limits [rad/s^2, m/s^2]: one number, joint: number '
                 'for each, or unknown', (), UNKNOWN, f'unknown: speed limit in {RAMP:g} s'),
        Question('gear_ratios', 'Gear ratio, motor turns per joint turn, joint: ratio for each, '
                 'or unknown', (), UNKNOWN, RATIOS_OF_TWO_ENCODERS if elastic else
                 'needed to identify gear ripple, and for rotor axes'),
        Question('rotor_axes', 'Axes of the rotors in the frames of the links before the joints, '
                 'joint: [x, y, z], or unknown', (), UNKNOWN,
                 'unknown: only rotor inertia about the joint is modelled'),
        Question('payload', 'Mass at the flange that is not in the URDF [kg]', (), 0.0,
                 'a permanent tool becomes part of the last link'),
        *(Question(key, text, (), suggestion, '; '.join(
            f'{one.fact}: {one.conditions}' for one in driver.facts[f'{key}s']) or 'not stated')
          for key, text, suggestion in (
              ('topic', 'Topic of the joint states', driver.facts['topics'][0].fact),
              ('controller', 'Controller that moves the arm', driver.controller))),
    ]


def completed(arm: Arm, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return all answers, with suggestions for missing ones.

    Raises UsageError for an invalid answer, an unknown question, and a missing required answer.
    """
    complete: dict[str, Any] = {}
    for _ in range(2):  # answers add questions
        for question in questions(arm, {**answers, **complete}):
            default = None if question.required else question.suggestion
            given = answers.get(question.key, default)
            if given is None:
                choices = f'; choose {", ".join(question.choices)}' if question.choices else ''
                raise UsageError(f'no answer to {question.key}: {question.text}{choices} '
                                 f'({question.why}); `--questions` lists all')
            if question.choices and given not in question.choices:
                raise UsageError(f'{question.key}: {shown(given)} is none of '
                                 f'{", ".join(question.choices)}')
            complete[question.key] = given
    left = {one.key: one.suggestion for one in questions(arm, {})}  # as --questions lists them
    unknown = sorted(key for key in set(answers) - set(complete) if answers[key] != left.get(key))
    if unknown:
        bending = f'; {BENDING}' if ELASTIC.key in unknown else ''
        raise UsageError(f'unknown answers {", ".join(unknown)}; questions are '
                         f'{", ".join(complete)}{bending}')
    _checked(arm, complete)
    return complete


def _checked(arm: Arm, answers: Mapping[str, Any]) -> None:
    """Raise UsageError for invalid numbers and unknown joints."""
    joints = arm.between(str(answers['base_link']), str(answers['tip_link']))
    for key, allowed in (('drive_gains', GAIN), ('gear_ratios', RATIO),
                         ('acceleration', LARGEST), ('error_limit', ERROR_LIMIT)):
        given = answers.get(key, UNKNOWN)
        if isinstance(given, Mapping):
            if set(given) != set(joints):
                raise UsageError(f'{key}: give one number for each of {", ".join(joints)}')
            for joint, value in given.items():
                allowed.read(value, f'{key}: {joint}')
        elif given != UNKNOWN:
            if key not in ('acceleration', 'error_limit'):
                raise UsageError(f'{key}: give joint: number for each of {", ".join(joints)}, or '
                                 f'{UNKNOWN}; is {shown(given)}')
            allowed.read(given, key)
    elastic_joints(joints, answers)
    gravity(answers['mounting'])


def elastic_joints(joints: Sequence[str], answers: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ``joints`` with two encoders, in order.

    Raises UsageError for unknown joints.
    """
    given = answers.get(ELASTIC.key, NONE)
    if given in (NONE, ALL):
        return tuple(joints) if given == ALL else ()
    if not isinstance(given, list) or not set(map(str, given)) <= set(joints):
        raise UsageError(f'{ELASTIC.key}: give {NONE}, {ALL}, or a list of {", ".join(joints)}; '
                         f'is {shown(given)}')
    return tuple(joint for joint in joints if joint in given)


def gravity(mounting: Any) -> tuple[float, ...]:
    """Return gravity (3,) [m/s^2] in the base frame, from a word or three numbers."""
    if isinstance(mounting, str):
        if mounting not in MOUNTINGS:
            raise UsageError(f'mounting: {shown(mounting)} is none of {", ".join(MOUNTINGS)}; '
                             'for a wall give gravity in the base frame, such as [9.81, 0, 0]')
        return MOUNTINGS[mounting]
    return tuple(GRAVITY.array(mounting, (3,), 'mounting: gravity [m/s^2]').tolist())


def mesh_diagnoses(arm: Arm) -> list[Diagnosis]:
    """Return a warning of missing collision meshes of a URDF, if any."""
    missing: dict[str, str] = {}  # file: link
    for element in arm.urdf.findall('link'):
        for mesh in element.iterfind('collision/geometry/mesh'):
            name = mesh.get('filename', '')
            if located(name, arm.path.parent) is None:
                missing.setdefault(name, element.get('name', ''))
    if not missing:
        return []
    name, link = next(iter(missing.items()))
    count = 'one file is' if len(missing) == 1 else f'{len(missing)} files are'
    return [Diagnosis(
        'collision meshes', WARN, str(arm.path),
        f'{count} missing, the first {shown(name)} of {link}: `design` and the node `excitation` '
        'refuse such links of the arm, and do not check others',
        'put the files there, or source the workspace that has their package (AMENT_PREFIX_PATH, '
        'ROS_PACKAGE_PATH and the folders above the URDF are searched). To plan without checking '
        f'a link: scene: {{ignore_links: [{link}]}} in the robot YAML',
        tuple(missing.items()))]


def robot_yaml(arm: Arm, answers: Mapping[str, Any], urdf: str,
               gains: Mapping[str, float] | None = None) -> str:
    """Return the text of a robot YAML with comments, from `completed` answers.

    ``urdf`` is the path to write; ``gains`` [N m/A] by joint replace unknown ones.
    """
    joints = arm.between(str(answers['base_link']), str(answers['tip_link']))
    driver = driver_named(str(answers['driver']))
    lines = [f'{MARK}: what the URDF does not state. All keys: docs/files.md.',
             f'urdf: {_yaml(urdf)}', f'base_link: {_yaml(answers["base_link"])}',
             f'tip_link: {_yaml(answers["tip_link"])}    # links after it move with it',
             f'gravity: {list(gravity(answers["mounting"]))}    # in the base frame: '
             f'{answers["mounting"] if isinstance(answers["mounting"], str) else "as given"}']
    lines += _effort_lines(answers, driver, joints, gains)
    ratios, axes = answers['gear_ratios'], answers['rotor_axes']
    elastic = elastic_joints(joints, answers)
    lines.append(f'gear_ratios: {_yaml(ratios)}' if isinstance(ratios, Mapping) else
                 f'# gear_ratios: {{{joints[0]}: 101.0, ...}}    # unknown; ' + (
                     'motor states must be divided by them' if elastic else
                     'they determine the frequencies of torque ripple'))
    if elastic:
        lines += ['# encoders on motor (topic motor_states) and link: docs/two_encoders.md',
                  f'elastic_joints: {_yaml(list(elastic))}']
    if isinstance(axes, Mapping):
        lines.append(f'rotor_axes: {_yaml(axes)}')
    if float(answers['payload']) > 0.0:
        lines.append(f'# {float(answers["payload"]):g} kg at the flange are not in the URDF: they '
                     'become part of the last link')
    return '\n'.join([*lines, *_limit_lines(arm, answers, joints), ''])


def _effort_lines(answers: Mapping[str, Any], driver: Driver, joints: Sequence[str],
                  gains: Mapping[str, float] | None) -> list[str]:
    kind = str(answers['effort_kind'])
    lines = [f'# driver: {driver.name}', *(
        f'# effort: {one.fact}, {one.conditions}\n#   {driver.link(one)}'
        for one in driver.facts['efforts'] if one.kind == kind),
        f'effort_kind: {kind}', f'sensor: {answers["sensor"]}']
    if kind not in GAIN_UNITS:
        return lines
    unit = GAIN_UNITS[kind]
    if kind == POSITION_ERROR:
        lines += ['# position error at which the output reaches its limit [rad]',
                  f'error_limit: {_yaml(answers["error_limit"])}']
    given = answers['drive_gains']
    if isinstance(given, Mapping):
        return [*lines, f'# joint torque over {_recorded(kind)}', f'drive_gains: {_yaml(given)}']
    if gains is not None:
        return [*lines, f'# [{unit}], provisional: scaled to the nominal links by a recording. '
                'Calibrate with a weighed payload: robot-dynid payload --known-mass',
                f'drive_gains: {_yaml(gains)}', 'drive_gains_std: 0.2']
    return [*lines, f'# [{unit}], UNKNOWN: parameters are in units of {unit[4:]}. Sources of '
            'gains: docs/drivers.md', f'drive_gains: {_yaml(dict.fromkeys(joints, GAIN_UNKNOWN))}',
            f'drive_gains_std: {GAIN_UNKNOWN_STD}']


def _limit_lines(arm: Arm, answers: Mapping[str, Any], joints: Sequence[str]) -> list[str]:
    """Return the limits that the URDF lacks, and accelerations."""
    given = answers['acceleration']
    stated = given != UNKNOWN
    lines = ['# acceleration limits, not part of a URDF: ' + (
        'as given' if stated else f'conservative, speed limit within {RAMP:g} s'), 'limits:']
    for joint in joints:
        lower, upper, speed, _ = arm.limits(joint)
        entries, notes = [], []
        if not np.isfinite([lower, upper]).all():
            entries.append(f'position: {list(RANGE)}')
            notes.append('range')
        if not (np.isfinite(speed) and speed > 0.0):
            speed = SLOW
            entries.append(f'velocity: {SLOW}')
            notes.append('speed')
        value = given[joint] if isinstance(given, Mapping) else given
        entries.append(f'acceleration: {float(value) if stated else round(speed / RAMP, 3)}')
        note = f'    # the URDF states no {" and no ".join(notes)}' if notes else ''
        lines.append(f'  {_yaml(joint)}: {{{", ".join(entries)}}}{note}')
    return lines


def recipe_yaml(answers: Mapping[str, Any]) -> str:
    """Return the text of a recipe with comments: safe settings, and the rest from the data."""
    rigid = answers.get(ELASTIC.key, NONE) in (NONE, [])
    lines = [f'{MARK}: settings of identify. All keys: docs/files.md; others are '
             'chosen from the data.',
             'friction: auto    # law of every joint by held-out error; or coulomb, maxwell+load, '
             'none ...',
             f'estimator: {{name: {"wls" if rigid else "elastic"}}}    # feasible: physical '
             'parameters, for a URDF']
    if answers['sensor'] == LINK:
        lines.append('# sensors behind the gears measure neither rotors nor motor friction: both '
                     'are left out')
    lines += ['# cutoff: 12.0    # Hz; from the data', '# effort_lag: 0.0    # s; from the data',
              '# accept: []    # findings to accept', '']
    return '\n'.join(lines)


def _yaml(value: Any) -> str:
    """Return a value as one line of YAML that preserves types: names as text, numbers as floats.
    """
    return one_line(_with_floats(value))


def _with_floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_floats(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_floats(one) for one in value]
    return value if isinstance(value, str) else float(value)
