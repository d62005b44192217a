"""identification/sequential_fit.py: motions of single joints, and loops of friction and links."""

from __future__ import annotations

import importlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.sequential_fit import (
    FrictionStep,
    SequentialFit,
    Stopwatch,
    friction_curves,
    friction_parameters,
    friction_step,
    has_sweeps,
    held_notes,
    moves_one_at_a_time,
    moving_seconds_of,
    single_joint_motions_of,
    sweep_motions,
)
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Averaging, Preprocessing, Repaired
from robot_dynid.types import Part, RawLog

MODULE: Any = importlib.import_module('robot_dynid.identification.sequential_fit')
ROBOT = load_robot('planar_3r')


def motion(seconds: float, steady: bool = False) -> Any:
    return SimpleNamespace(seconds=seconds, steady=steady)


@pytest.mark.parametrize(('moving', 'alone'), [(5.9, True), (6.0, False), (6.1, False)])
def test_joints_move_one_at_a_time_in_more_than_half_of_the_motion(monkeypatch, moving, alone
                                                                   ) -> None:
    """Which is a sweep if a speed is constant, and biases a fit of all efforts."""
    motions = [motion(1.0), motion(2.0)]
    steady = [motion(1.0), motion(2.0, True)]
    assert moves_one_at_a_time(motions, moving) is alone
    assert has_sweeps(steady, moving) is alone and not has_sweeps(motions, moving)
    monkeypatch.setattr(MODULE, 'moving_seconds_of', lambda robot, repaired: moving)
    repaired = Repaired('run.csv', (), 0.01, ())
    for found, use in ((motions, '--method staged'), (steady, 'loops: three')):
        assert held_notes(ROBOT, repaired, found) == ((
            'run.csv: one joint moves at a time, and the static friction of the others biases '
            f'this fit: omit the recording, or use {use}',) if alone else ())
    sensors = replace(ROBOT, drive=replace(ROBOT.drive, sensor='link'))
    assert held_notes(sensors, repaired, motions) == ()
    single: Any = SimpleNamespace(n=1, drive=ROBOT.drive)
    assert held_notes(single, repaired, motions) == ()


def log_of(first: float, rows: int) -> RawLog:
    time = first + 0.01 * np.arange(rows)
    position = np.arange(rows)[:, None] * np.array([1.0, 2.0, 3.0])
    return RawLog('x', ROBOT.joints, time, position, None, 10.0 * position)


def test_single_motions_are_sought_with_the_torque_of_motors_without_the_lag(monkeypatch) -> None:
    """In the own rows of a part; averages have none."""
    asked: list[Any] = []

    def motions(time: Any, position: Any, torque: Any, least: Any) -> list[Any]:
        asked.append((time, position, torque, least))
        return [f'motion {len(time)}']

    def seconds(time: Any, position: Any, least: Any) -> float:
        assert least == 'least' and len(time) == len(position)
        return float(len(time))

    robot: Any = SimpleNamespace(drive=ROBOT.drive, motor_torque=lambda torque: -torque)
    monkeypatch.setattr(MODULE, 'single_joint_motions', motions)
    monkeypatch.setattr(MODULE, 'moving_seconds', seconds)
    monkeypatch.setattr(MODULE, 'least_travel', lambda robot: 'least')
    monkeypatch.setattr(MODULE, 'delayed', lambda robot, part, time, effort, lag: (
        part, effort, lag))
    monkeypatch.setattr(MODULE, 'net_torque', lambda robot, part: part.effort + 1.0)
    monkeypatch.setattr(MODULE, 'shift', lambda effort, lag, step: effort + 1e3 * lag / step)
    settings = Preprocessing(1.0, effort_lag=2e-3)
    parts = (log_of(0.0, 4), log_of(1.0, 6))
    whole = Repaired('x', parts, 0.01, ())
    assert single_joint_motions_of(robot, whole, settings) == ['motion 4', 'motion 6']
    assert moving_seconds_of(robot, whole) == 10.0
    time, position, torque, least = asked[1]
    np.testing.assert_array_equal(time, parts[1].time)
    np.testing.assert_array_equal(position, parts[1].position)
    np.testing.assert_allclose(torque, -(10.0 * parts[1].position + 200.0 + 1.0))
    assert least == 'least'
    own = replace(whole, place=Part(0.015, 1.025, 0.0, 'x'))
    assert single_joint_motions_of(robot, own, settings) == ['motion 2', 'motion 3']
    assert moving_seconds_of(robot, own) == 5.0
    np.testing.assert_array_equal(asked[2][1], parts[0].position[2:])
    assert asked[2][2].shape == (2, 3)
    mean = replace(whole, averaging=Averaging('x', 1.0, 0.0, 2, (0.0,), (0.0,)))
    assert single_joint_motions_of(robot, mean, settings) == []
    monkeypatch.setattr(MODULE, 'repair', lambda robot, log, rate: {50.0: whole}[rate])
    for lag, shifted in ((2e-3, 200.0), (None, 0.0)):
        asked.clear()
        recipe = Recipe(rate=50.0, effort_lag=lag)
        assert sweep_motions(robot, parts[0], recipe) == (['motion 4', 'motion 6'], 10.0)
        assert asked[0][2][0, 0] == pytest.approx(-1.0 - shifted)


def sweeps_of(points: Any, *notes: str) -> Any:
    return SimpleNamespace(points=points, notes=notes)


def test_friction_curves_are_of_joints_that_sweep_with_the_law_of_the_recipe(monkeypatch) -> None:
    monkeypatch.setattr(MODULE, 'friction_by_joint', lambda joints, motions: {
        'joint_1': sweeps_of('p1', 'slow'), 'joint_2': sweeps_of(()), 'joint_3': sweeps_of('p3')})
    monkeypatch.setattr(MODULE, 'friction_curve', lambda name, points, law: (
        (name, points, law), [f'{name} odd']))
    for friction, laws in (('auto', (None, None)), ('stribeck', ('stribeck',) * 2),
                           ({'joint_3': 'none', 'others': 'stribeck+load'}, ('stribeck', None))):
        curves, notes = friction_curves(ROBOT, iter([]), Recipe(friction=friction))
        assert curves == [('joint_1', 'p1', laws[0]), ('joint_3', 'p3', laws[1])]
        assert notes == ['friction curve: slow', 'friction curve: joint_1 odd',
                         'friction curve: joint_3 odd']


def curve(joint: str, fitted: bool = True) -> Any:
    law = SimpleNamespace(parameters=('fv', 'fc'))
    number = float(joint[-1])
    return SimpleNamespace(joint=joint, name='coulomb', fit=SimpleNamespace(
        law=law, values=np.array([number, 10.0 * number])) if fitted else None)


def test_the_first_loop_needs_a_curve_of_every_joint(monkeypatch) -> None:
    curves = [curve(joint) for joint in ROBOT.joints]
    notes: list[str] = []
    monkeypatch.setattr(MODULE, 'friction_curves', lambda robot, motions, recipe: (curves, notes))
    monkeypatch.setattr(MODULE, 'Structure', SimpleNamespace(
        of=lambda rotors, laws, load: (rotors, [name for name, _ in laws], load)))
    step = friction_step(ROBOT, [], Recipe())
    assert step.structure == (True, ['coulomb'] * 3, None)
    assert step.values == {'fv1': 1.0, 'fc1': 10.0, 'fv2': 2.0, 'fc2': 20.0, 'fv3': 3.0,
                           'fc3': 30.0}
    curves[1:] = [curve('joint_2', False)]
    text = 'loops: three needs sweeps of every joint, there and back at constant speeds, at ' \
        'three speeds or more; none of joint_2, joint_3{}. Design them with --type ' \
        "constant-velocity, --options '{{speeds: 8}}' for the laws with more parameters, or use " \
        'loops: joint'
    for more, words in (([], ''), (['one', 'two'], ' (one; two)')):
        notes[:] = more
        with pytest.raises(DataError) as refused:
            friction_step(ROBOT, [], Recipe())
        assert str(refused.value) == text.format(words)
    coupled = replace(ROBOT, drive=replace(ROBOT.drive, coupling=np.eye(3)))
    with pytest.raises(DataError, match=r'^planar_3r: sweeps of single joints do not excite the'):
        friction_step(coupled, [], Recipe())


def test_friction_is_fitted_with_the_links_before_and_links_with_that_friction() -> None:
    """Friction to what residual models leave, links to the whole effort."""
    model = Structure.uniform(ROBOT, True, 'coulomb', {}).torque_model(ROBOT)
    mask = friction_parameters(model)
    names = model.reduction.names
    of = [block for block in model.blocks if isinstance(block, JointFriction)]
    assert [name for name, yes in zip(names, mask, strict=True) if yes] == [
        name for block in of for name in block.names if name in names]
    asked: list[Any] = []

    def solver(experiment: Any, batches: Any) -> Any:
        def solve(free: Any, values: Any) -> Any:
            asked.append((experiment, batches, free.tolist(), np.array(values)))
            return np.where(free, len(asked), values)
        return solve

    structure: Any = None
    estimator: Any = SimpleNamespace(part_solver=solver)
    ticks = iter([0.0, 2.0, 2.0, 5.0, 5.0, 9.0])
    watch = Stopwatch(ticks.__next__)
    step = FrictionStep(structure, {'fv2': 3.0, 'fc3': 4.0, 'Ia1': 9.0})
    fit = SequentialFit.of(model, step, watch, estimator)
    first = [{'fv2': 3.0, 'fc3': 4.0}.get(name, 0.0) for name in names]
    assert fit.first.tolist() == first
    whole: Any = 'whole'
    left: Any = 'left'
    found = fit(whole, left, [4], None)
    assert [(one[0], one[1], one[2]) for one in asked] == [('whole', [4], (~mask).tolist())]
    np.testing.assert_array_equal(asked[0][3], first)
    assert watch.seconds == {'links': 2.0}
    fit(whole, left, [5], found)
    assert [(one[0], one[2]) for one in asked[1:]] == [
        ('left', mask.tolist()), ('whole', (~mask).tolist())]
    np.testing.assert_array_equal(asked[1][3], found)
    np.testing.assert_array_equal(asked[2][3], np.where(mask, 2.0, found))
    assert watch.seconds == {'links': 6.0, 'friction': 3.0}
