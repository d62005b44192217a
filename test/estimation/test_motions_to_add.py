"""estimation/staged/procedure.py: advice on locked joints: the motions named really close what is
open, and no others are."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from motions import torque_model

from robot_dynid.estimation.staged.procedure import (
    STAGE_STATES,
    LockedJointsMotion,
    Stage,
    advice,
    motions_to_add,
    stage_regressor,
)
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.robot_file import load_robot


def unseen(model, motions):
    """Return the directions (b, f) without effect on the joints that move, in terms of effort."""
    reach = model.moderate_effort.max(axis=0)
    rows = [stage_regressor(model, Stage('', (motion,), (motion.moving,), ()))[motion.moving].T
            for motion in motions]
    _, sizes, turned = np.linalg.svd(
        np.vstack(rows) / reach / np.sqrt(STAGE_STATES * len(motions)))
    return turned[np.count_nonzero(sizes > 1e-3):].T, reach


def named(model, directions):
    """Return the parameters with a share in ``directions``."""
    share = np.linalg.norm(directions, axis=1)
    return {n for n, own in zip(model.reduction.names, share) if own > 1e-6}


@pytest.mark.parametrize('name', ['ur10e', 'stanford_arm'])
def test_the_motions_named_close_what_is_open(name):
    model = torque_model(load_robot(name))
    recorded = [LockedJointsMotion(j, np.full(6, 0.1), 0.8) for j in range(6)]
    before, reach = unseen(model, recorded)
    added, left = motions_to_add(model, recorded, before / reach[:, None])
    assert len(named(model, before)) > 15
    after, _ = unseen(model, [*recorded, *(one.motion for one in added)])
    assert named(model, after) <= set(left)
    found = [name for one in added for name in one.finds]
    assert len(set(found)) == len(found) > 5
    assert set(found) | set(left) == named(model, before)
    assert not set(found) & set(left)
    limits = model.robot.limits
    for one in added:
        assert one.turned and len(one.turned) <= 2
        for j, angle in one.turned:
            assert j != one.motion.moving
            assert limits.lower[j] <= angle <= limits.upper[j]
            assert one.motion.position[j] == angle
            steps = np.array([-0.2, 0.2]) if model.robot.types[j] == PRISMATIC else \
                np.pi / 4 * np.array([-2, -1, 1, 2])
            assert np.min(np.abs(steps - (angle - 0.1))) < 1e-9


def test_motions_to_add_and_advice_are_empty_when_no_direction_is_open():
    model = torque_model(load_robot('planar_3r'))
    recorded = [LockedJointsMotion(2, np.zeros(3))]
    assert motions_to_add(model, recorded, np.zeros((len(model.reduction.names), 0))) == ((), ())
    assert advice(model, recorded, np.zeros((len(model.reduction.names), 0))) == ''


def test_the_advice_names_joint_and_angle():
    model = torque_model(load_robot('ur10e'))
    recorded = [LockedJointsMotion(j, np.zeros(6), 0.8) for j in range(6)]
    before, reach = unseen(model, recorded)
    text = advice(model, recorded, before / reach[:, None])
    assert text.startswith('record in addition, all other joints locked as before: ')
    assert re.search(r'shoulder_pan_joint swinging with \w+ locked at -?\d\.\d\d rad', text)
    assert 'record a motion of several joints' in text


def test_advice_asks_for_a_faster_swing_when_a_recorded_one_shows_little():
    model = torque_model(load_robot('planar_3r'))
    recorded = [LockedJointsMotion(2, np.zeros(3))]
    direction = np.zeros((len(model.reduction.names), 1))
    direction[model.reduction.names.index('mx3')] = 1.0
    assert advice(model, recorded, direction) == (
        'record in addition, all other joints locked as before: joint_3 swinging faster or '
        'longer (for mx3)')


def shown_size(model, motion, direction, reach):
    """Return the effort of the moving joint along a direction (b,) of unit effort."""
    columns = stage_regressor(model, Stage('', (motion,), (motion.moving,), ()))[motion.moving]
    return float(np.sqrt(np.mean((direction @ (columns / reach[:, None])) ** 2)))


@pytest.mark.parametrize('size', [0.104, 0.096])
def test_a_recorded_swing_shows_what_makes_a_tenth_of_the_effort(size):
    """A mixture of what joint 3 shows and of what it does not."""
    model = torque_model(load_robot('planar_3r'))
    motion, reach = LockedJointsMotion(2, np.zeros(3)), model.moderate_effort.max(axis=0)
    seen, unseen_one = (np.array([name == n for n in model.reduction.names], dtype=float)
                        for name in ('mx3', 'mx1'))
    share = size / shown_size(model, motion, seen, reach)
    direction = share * seen + np.sqrt(1.0 - share**2) * unseen_one
    added, _ = motions_to_add(model, [motion], (direction / reach)[:, None])
    assert any(one.turned == () for one in added) == (size > 0.1)


def test_the_locked_joint_is_turned_to_where_the_effort_is_largest():
    """By a quarter or an eighth of a turn, or by 0.2 m, within the limits."""
    model = torque_model(load_robot('stanford_arm'))
    limits, types = model.robot.limits, model.robot.types
    recorded = [LockedJointsMotion(j, np.full(6, 0.1), 0.8) for j in range(6)]
    before, reach = unseen(model, recorded)
    ways, rows = [], []
    for motion in recorded:
        some = []
        for joint in np.delete(np.arange(6), motion.moving).tolist():
            steps = (-0.2, 0.2) if types[joint] == PRISMATIC else \
                np.pi / 4 * np.array([-2, -1, 1, 2])
            for angle in 0.1 + np.array(steps):
                if limits.lower[joint] <= angle <= limits.upper[joint]:
                    position = motion.position.copy()
                    position[joint] = angle
                    some.append((replace(motion, position=position), joint, angle))
        stage = Stage('', tuple(there for there, _, _ in some), (motion.moving,), ())
        columns = stage_regressor(model, stage)[motion.moving] / reach[:, None]
        rows += [*columns.reshape(len(reach), len(some), -1).transpose(1, 0, 2)]
        ways += some
    for direction in before.T[::5]:
        sizes = [np.sqrt(np.mean((direction @ columns) ** 2)) for columns in rows]
        first = motions_to_add(model, recorded, (direction / reach)[:, None])[0][0]
        motion, joint, angle = ways[int(np.argmax(sizes))]
        assert max(sizes) > 0.1 and first.turned == ((joint, pytest.approx(angle)),)
        assert first.motion.moving == motion.moving
        assert first.motion.position == pytest.approx(motion.position)
