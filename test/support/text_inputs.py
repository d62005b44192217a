"""Texts of robots, models and motions as inputs for the fuzzer, and damage to their values."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from fuzzing import mutated
from identified_models import feasible_model, nominal_model, random_links

from robot_dynid.effects.deflection import RadialModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Trained
from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.trajectories.composite import Composite
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.single_joint import SineSwing, Sweep
from robot_dynid.trajectories.trajectory import QuinticMove, Trajectory

#: what stands for a value in a text of YAML: numbers nothing has, other types, bombs
NASTY = (
    '.nan', '-.inf', '.inf', '1e308', '-1e308', '1e-308', '1e400', '0', '-1', '1.5', '999999999',
    '1e4', '-1e4', '1e6', '-1e6', '1e-9', '1e-6', '1e10', '1e16', '1e17', '100', '200', '1e5',
    '1' + '0' * 299, '9' * 400, '0x10', '1_000', "'5'", 'true', 'null', '~', '2020-01-01',
    '2001-12-14t21:59:43.10-05:00', '!!bool q', '!!timestamp x', '!!int x', '!!binary x',
    '!!python/object/apply:os.system [ls]', '!!set {a}', '[]', '{}', '[[]]', '[1, [2]]',
    '[.nan, 1e308, x]', '{a: 1}', '{<<: {a: 1}}', '*a', '&a [*a]', '[' * 1000, '{a: ' * 1000,
    '"\\ud800"', '"\\0"', "''", 'x' * 5000, '\u2028', '/dev/zero', '../../../etc/passwd',
    '[1, 2, 3]', '[0, 0, 0]', '[1e308, 1e308, 1e308]', '[-1, 1]', '[1, -1]', '- 1', '? [a] : b',
    '&x [&y [&z [1, 1, 1, 1], *z, *z, *z], *y, *y, *y]', '|\n  text', '%TAG', '--- 1', '...',
)
#: names that mean something to the formats they are written into
NAMES = (
    'a,b', 'a, b', 'a"b', '""', '",,"', "it's", "'", 'a\nb', 'a\r\nb', 'a\tb', '\t', ' a', 'a ',
    '*/', '/*', 'x */ int y; /*', '*/ #include "/etc/passwd" /*', '#include <x>', '//x', 'a\\',
    'a\\n', '\\', '??/', '??/\n', '%s%n', '%d', '<script>alert(1)</script>', '</script>', '<!--',
    '-->', '--', ']]>', '<![CDATA[', '&amp;', '&#10;', '&lt;x>', '<x y="z">', '=cmd()|x!A0',
    '@SUM(A1)', '+1', '-1', 'ü∂é', '関節', '\u202eba', '\u2028', '\x85', '\ufeffa', '\u00a0',
    'int', 'while', 'double', 'NULL', 'main', 'x' * 300, 'x, ' * 60, 'a b ' * 60, 'a;b', 'a|b',
    '.', '..', 'a.b', 'a/b', '../x', '/dev/null', 'time', 'position', 'wrench.a.fx', 'a::b',
    '__a__', 'world', 'base_link', 'motor of a', 'a_rotor', '{}', '{{x}}', '{% x %}', '${x}',
    '$(ls)', '`ls`', 'null', 'true', '~', '1', '1.5', 'nan', 'inf', '- a', 'a: b', '# a', '%',
    '!x', '&a', '*a', '? a', '[a]', '{a: b}', '|', '>', 'a [deg]', 'a (rad)', 'a [N m]', 'Ixx1',
    'fc1', '\x00', '\x1b[2J', '\x7f', '\x01', '\ufffd', '\ufffe', '\U0001f916', 'joint_1',
    'digest: x',
)
_VALUE = re.compile(rb'(?<=[:,\[] )[^\n,\]}]+|(?<=\[)[^\n,\]}\[]+|(?<=")[^"\n]*(?=")')
_NUMBER = re.compile(rb'(?<![\w.+-])[-+]?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])')
#: what a number is multiplied by so that it may still be read
FACTORS = (0.0, -1.0, 0.5, 0.999, 1.001, 2.0, 1e-3, 1e3, 1e-6, 1e6, 1e-12, 1e12, 1e30, 1e-300)
_KEY = re.compile(rb'[A-Za-z_]\w*(?=:)')
_LINE = re.compile(rb'[^\n]+\n')
_ELEMENT = re.compile(rb'<[^>]*>')


def one_of(rng: np.random.Generator, pattern: re.Pattern[bytes], data: bytes
           ) -> tuple[int, int] | None:
    """Return where a match begins and ends, any of those in a text."""
    places = [found.span() for found in pattern.finditer(data)]
    return places[int(rng.integers(len(places)))] if places else None


def structured(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a text with one damage to its values, keys, lines or bytes."""
    kind = int(rng.integers(8))
    pattern = (_VALUE, _VALUE, _VALUE, _KEY, _LINE, _LINE, _ELEMENT)[kind] if kind < 7 else None
    place = None if pattern is None else one_of(rng, pattern, data)
    if place is None:
        return mutated(rng, data)
    begin, end = place
    word = NASTY[int(rng.integers(len(NASTY)))].encode()
    if pattern is _VALUE:
        return data[:begin] + word + data[end:]
    if pattern is _KEY:
        other = one_of(rng, _KEY, data)
        assert other is not None
        return data[:begin] + data[slice(*other)] + data[end:]
    count = int(rng.choice([0, 0, 2, 3]))  # left out, or written again
    return data[:begin] + data[begin:end] * count + data[end:]


def trajectories(joints: tuple[str, ...] = ('a', 'b')) -> list[Trajectory]:
    """Return one of every type."""
    n, first, last = len(joints), joints[0], joints[-1]
    low, high = np.zeros(n), np.linspace(0.5, -0.4, n)
    there, back = QuinticMove(joints, low, high, 2.0), QuinticMove(joints, high, low, 2.0)
    points = np.resize([[0.0, 0.1, 0.3], [0.2, 0.1, 0.0]], (n, 3))
    return [
        FourierTrajectory(joints, 0.1, low, np.full((n, 3), 0.1), np.full((n, 3), 0.2), 2),
        BSplineTrajectory(joints, 5.0, points), SineSwing(joints, first, low, 0.3, 0.5),
        Sweep(joints, last, low, 0.4, 0.3, 1.0), there, Composite((there, back)),
    ]


SCREWS = b"""effort_kind: torque
gravity: [0.0, 0.0, -9.81]
screws:
  - {name: a, axis: [0, 1, 0], origin: [0, 0, 0.4], mass: 3, com: [0, 0, 0.1],
     inertia: {ixx: 0.1, iyy: 0.1, izz: 0.1}}
  - {name: b, axis: [0, 1, 0], origin: [0.3, 0, 0.4], type: prismatic, parent: a, link: tool}
gear_ratios: {a: 100, b: -50}
rotor_axes: {a: [0, 0, 1]}
elastic_joints: [a]
joint_torque_sensors: [a]
drive_gains: {a: 2.0, b: 1.0}
drive_gains_std: 0.02
coupling: {b: {a: 0.0, b: 1.0}}
limits:
  a: {position: [-2.0, 2.0], velocity: 2.0, acceleration: 8.0, effort: 60.0}
  b: {position: [-2.5, 2.5], velocity: 3.0, acceleration: 12.0, effort: 25.0}
"""


RECORD: dict[str, Any] = {
    'recordings': ['a.csv', 'b.csv'], 'samples': 40, 'weights_near_reversals': [0.5, 1.0, 0.25],
    'std_over_textbook': 5.5, 'degrees_of_freedom': 7.0, 'refused': {'joint_2': 'constant'},
    'cutoffs_tried': [{'cutoff': 2.0, 'held_out_score': 0.1}],
    'friction': [{'axis': '1', 'law': 'coulomb', 'note': '', 'tried': [
        {'law': 'coulomb', 'error_over_coulomb': 1.0}]}],
    'effort_lag': {'seconds': -0.003, 'std': 0.0002},
    'residual': {'kind': 'gmr', 'rounds': 2, 'rounds_tried': [[1.0, 2.0, 3.0]], 'loops': 'three',
                 'seconds': {'friction': 1.0}}}


def model_texts(unprotected: bool) -> tuple[bytes, ...]:
    """Return model files, of several robots and with all that may be in them.

    ``unprotected`` ones have no digest, as those of older software.
    """
    planar = nominal_model('planar_3r')
    rng = np.random.default_rng(0)
    ends = np.array([[-1.0, 1.0]] * 3)
    rich = replace(
        planar, record=FitRecord.from_plain(RECORD, 'wls'),
        trained=Trained({'position': ends, 'velocity': 2.0 * ends}),
        noise_levels=NoiseLevels(np.ones(3), np.ones(3), np.full(3, 0.01)),
        learnt={'residual': (
            RadialModel(np.zeros(1), np.ones(1), 4, np.ones(4), np.ones(4), 0.1), None, None)})
    models = (planar, rich, nominal_model('elastic_2r'), nominal_model('tx40'),
              feasible_model(planar.robot, random_links(rng, 3), rng))
    texts = [model.to_yaml() for model in models]
    return tuple((text.rpartition('\ndigest:')[0] + '\n' if unprotected else text).encode()
                 for text in texts)


def gently(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a text with another number, which may be read, or as `structured` does."""
    place = one_of(rng, _NUMBER, data) if rng.random() < 0.9 else None
    if place is None:
        return structured(rng, data)
    begin, end = place
    number = float(data[begin:end]) * FACTORS[int(rng.integers(len(FACTORS)))]
    return data[:begin] + repr(number).encode() + data[end:]
