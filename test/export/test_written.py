"""export/written.py: friction and effort as formats hold them, of laws known beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exported import ARM, BALL

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.written import (
    Form,
    Motion,
    SlidingFriction,
    Written,
    axis_friction,
    gear_name,
    joint_friction,
    rotor_name,
    sliding_from,
)
from robot_dynid.friction import AxisFriction
from robot_dynid.friction.terms import CONSTANT, POWER, RAMP, STOP, TANH, Term
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray

ROBOT = robot_from_urdf(ARM)
TRAINED = {'position': np.array([[-0.5, 0.9], [-1.0, 2.0]]),
           'velocity': np.array([[-2.0, 1.0], [-0.3, 0.5]]),
           'acceleration': np.array([[-3.0, 3.0], [-4.0, 4.0]])}
#: width below any speed of the states
AT_ONCE = 1e-9


def friction(
    *terms: tuple[int, Term], straight: object = ((0.0, 0.0), (0.0, 0.0)), axes: object = None,
    holds: bool = True,
) -> AxisFriction:
    """Return friction of terms by axis; ``straight`` are damping and offset of each axis."""
    rows = [term.row(axis, holds) for axis, term in terms]
    turns = np.eye(2) if axes is None else np.array(axes, dtype=np.float64)
    width = len(Term(RAMP).row(0, True))
    return AxisFriction(turns, np.array(straight, dtype=np.float64),
                        np.array(rows, dtype=np.float64).reshape(-1, width), np.zeros((0, 2)),
                        np.zeros((0, 10)))


def arm(own: AxisFriction, rotors: FloatArray | None = None, **more: object) -> IdentifiedArm:
    inertia = np.zeros((2, 2)) if rotors is None else rotors
    mechanism = Mechanism(ROBOT, np.array([BALL, 2.0 * BALL]), Rotors.of(inertia), own)
    return IdentifiedArm(mechanism, TRAINED, **more)  # type: ignore[arg-type]


def test_dry_friction_is_developed_above_the_least_width_that_holds() -> None:
    own = friction((0, Term(RAMP, 0.03)), (0, Term(TANH, 0.02)), (1, Term(STOP, 1e-4, width=0.05)),
                   (1, Term(RAMP, 0.07)), (1, Term(POWER, 2.0)))
    assert sliding_from(own).tolist() == [0.02, 0.05]
    assert sliding_from(friction((0, Term(RAMP, 0.03)), holds=False)).tolist() == [0.0, 0.0]


def test_simple_laws_are_written_as_they_are() -> None:
    found = axis_friction(arm(friction(
        (0, Term(RAMP, AT_ONCE, 0.7)), (0, Term(RAMP, AT_ONCE, 0.4)), (1, Term(STOP, 1e-3, 0.6)),
        straight=((1.5, -0.25), (2.5, 0.125)))))
    assert found.damping.tolist() == [1.5, 2.5]
    np.testing.assert_allclose(found.dry, [1.1, 0.6], rtol=1e-15)
    assert found.offset.tolist() == [-0.25, 0.125]
    np.testing.assert_allclose(found.fitted, [[1.5, 1.1], [2.5, 0.6]], rtol=1e-15)
    assert max(found.rms.max(), found.largest.max()) < 1e-12
    np.testing.assert_allclose(found.speed, [2.0, 0.5], rtol=1e-3)


def test_friction_by_direction_is_fitted_by_dry_friction_and_offset() -> None:
    """2 forward and 3 backward: 2.5 and -0.5; 4 forward alone: twice 2."""
    found = axis_friction(arm(friction(
        (0, Term(RAMP, AT_ONCE, 2.0, side=1.0)), (0, Term(RAMP, AT_ONCE, 3.0, side=-1.0)),
        (1, Term(RAMP, AT_ONCE, 4.0, side=1.0)), straight=((1.5, 0.0), (0.0, 0.0)))))
    np.testing.assert_allclose(found.damping, [1.5, 0.0], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.dry, [2.5, 2.0], rtol=1e-9)
    np.testing.assert_allclose(found.offset, [-0.5, 2.0], rtol=1e-9)
    assert found.largest.max() < 1e-9


@pytest.mark.parametrize('term', [
    Term(RAMP, AT_ONCE, above=0.9), Term(RAMP, AT_ONCE, fade=0.5), Term(POWER, 3.0)])
def test_laws_with_more_than_three_parts_are_fitted_with_an_error(term: Term) -> None:
    found = axis_friction(arm(friction((0, term))))
    assert 0.0 < found.rms[0] < found.largest[0] and found.rms[1] == 0.0
    speed = np.linspace(-2.0, 2.0, 4001)[np.r_[0:2000, 2001:4001]]
    law = friction((0, term)).torque(np.column_stack([speed, speed]))[:, 0]
    design = np.column_stack([speed, np.sign(speed)])
    best = np.linalg.lstsq(design, law, rcond=None)[0]
    if best.min() >= 0.0:
        assert [found.damping[0], found.dry[0]] == pytest.approx(best, rel=0.02, abs=1e-3)
        assert found.rms[0] == pytest.approx(np.sqrt(np.mean((law - design @ best)**2)), rel=0.02)


def test_an_axis_that_never_slides_fully_is_fitted_above_half_its_largest_speed() -> None:
    """A ramp up to 0.4 of speeds up to 0.5: at 0.25 it is 0.625, and 1 is written."""
    found = axis_friction(arm(friction((1, Term(RAMP, 0.4)))))
    assert found.dry[1] == 1.0 and found.largest[1] == pytest.approx(0.375, rel=1e-2)


def test_negative_damping_is_replaced_by_the_nearest_friction_without() -> None:
    """-v / 2 + sign(v) + 0.2 on |v| < 2: the mean of |v| is 1, so 0.5 sign(v) + 0.2 is left."""
    own = friction((0, Term(RAMP, AT_ONCE, 1.0)), (1, Term(RAMP, AT_ONCE, -0.75)),
                   straight=((-0.5, 0.2), (1.0, -0.3)))
    found = axis_friction(arm(own))
    np.testing.assert_allclose(found.fitted, [[-0.5, 1.0], [1.0, -0.75]], rtol=1e-12)
    assert (found.damping[0], found.dry[1]) == (0.0, 0.0)
    assert found.dry[0] == pytest.approx(0.5, rel=1e-3)
    np.testing.assert_allclose(found.offset, [0.2, -0.3], rtol=1e-3)
    assert found.rms[0] == pytest.approx(0.5 * 2.0 / np.sqrt(12.0), rel=1e-2)
    assert found.largest[0] == pytest.approx(0.5, rel=1e-2)
    # v - 0.75 sign(v) on |v| < 0.5: c v with c = 1 - 0.75 (mean |v|) / (mean v^2) < 0: nothing
    assert found.damping[1] == pytest.approx(0.0, abs=1e-6)
    first, second = (text for text in Written(arm(own), Form('F', damping=True)).warnings()
                     if 'negative' in text)
    assert first == 'joint shoulder: the identified damping -0.5 is negative; 0 is written'
    assert second == 'joint elbow: the identified friction -0.75 is negative; 0 is written'


def test_joints_get_the_shares_of_motors_that_turn_with_several() -> None:
    """A motor of both, damped by 2: its effort is 2 (v1 + v2) / 2 on the first, and as much."""
    own = friction((0, Term(RAMP, AT_ONCE, 0.7)),
                   straight=((1.0, 0.125), (0.5, 0.0), (2.0, 0.0)),
                   axes=((1.0, 0.0), (0.0, 1.0), (0.5, 1.0)))
    found = joint_friction(arm(own))
    assert found.damping == pytest.approx([1.0 + 2.0 * 0.25, 0.5 + 2.0], rel=0.05)
    # 2 * 0.5 times the other speed is left, of 0.5 and 2
    assert found.rms == pytest.approx([0.5 / np.sqrt(3.0), 2.0 / np.sqrt(3.0)], rel=0.05)
    assert found.speed == pytest.approx([2.0, 0.5], rel=1e-3)
    half = joint_friction(arm(friction(
        (0, Term(RAMP, AT_ONCE, 0.7)), straight=((1.0, 0.125), (0.5, 0.0), (2.0, 0.0)),
        axes=((1.0, 0.0), (0.0, 1.0), (0.0, 1.0)))))
    assert (half.damping[0], half.dry[0], half.offset[0]) == (1.0, 0.7, 0.125)


LAW = friction((0, Term(RAMP, AT_ONCE, 0.75)), straight=((1.5, 0.25), (0.0, -0.5)))
INERTIA = np.array([[0.5, 0.125], [0.125, 0.25]])


@pytest.mark.parametrize(('form', 'rms'), [
    # of the second joint, whose acceleration is below 4 in size
    (Form('F', rotors=True, coupled=True, offset=True), 0.0),
    (Form('F', rotors=True, coupled=True), 0.5),
    (Form('F', coupled=True, rotors=True, offset=True, damping=True, dry=True), 0.0)])
def test_the_effort_that_is_missing_is_that_of_what_a_form_lacks(form: Form, rms: float) -> None:
    written = Written(arm(LAW, INERTIA), form)
    np.testing.assert_allclose(written.missing[:, 1], rms, rtol=0.0, atol=1e-12)
    first = (0.0 if form.damping else 1.5, 0.0 if form.dry else 0.75,
             0.0 if form.offset else 0.25)
    # mean squares of c v, d sign(v) + c v, and of the offset
    mean = first[0]**2 * 4.0 / 3.0 + 2.0 * first[0] * first[1] + first[1]**2 + first[2]**2
    assert written.missing[0, 0] == pytest.approx(np.sqrt(mean), rel=5e-3, abs=1e-12)
    assert written.missing[1, 0] == pytest.approx(2.0 * first[0] + first[1] + first[2], rel=5e-3,
                                                  abs=1e-12)


def test_rotors_of_one_joint_or_of_several_are_missing_where_a_form_lacks_them() -> None:
    own = friction()
    none, alone = (Written(arm(own, INERTIA), Form('F', rotors=one)).missing[0]
                   for one in (False, True))
    size = np.array([3.0, 4.0]) / np.sqrt(3.0)  # rms of the accelerations
    assert none == pytest.approx([np.hypot(0.5 * size[0], 0.125 * size[1]),
                                  np.hypot(0.125 * size[0], 0.25 * size[1])], rel=0.05)
    assert alone == pytest.approx([0.125 * size[1], 0.125 * size[0]], rel=5e-3)
    whole = Written(arm(own, INERTIA), Form('F', rotors=True, coupled=True))
    assert not whole.missing.any()


def test_what_a_form_cannot_hold_is_said_with_its_size() -> None:
    one = arm(LAW, INERTIA, not_identified=('elbow',), changing=('shoulder',))
    left, missing, lost = Written(one, Form('F')).warnings()
    assert left == (
        'only in the model file, F cannot hold them: rotor inertia [kg m^2]: shoulder 0.5, elbow '
        '0.25; dry friction [N m]: shoulder 0.75; viscous friction [N m s/rad]: shoulder 1.5; '
        'offset of the effort [N m]: shoulder 0.25, elbow -0.5; friction that warms up or drifts: '
        'shoulder')
    (a, b), (c, d) = Written(one, Form('F')).missing
    assert missing == ('error of the effort of F relative to the model, rms (maximum) [N m]: '
                       f'shoulder {a:.3g} ({c:.3g}), elbow {b:.3g} ({d:.3g}); at random states of '
                       'the trained ranges')
    assert lost == 'not identified, do not use: elbow'
    shared, _ = Written(arm(LAW, INERTIA), Form(
        'G', rotors=True, damping=True, dry=True, offset=True)).warnings()
    assert shared == ('only in the model file, G cannot hold them: rotors that turn with several '
                      'joints: shoulder 0.125, elbow 0.125')
    past = arm(friction((1, Term(STOP, 1e-3, 0.5, width=1e-3))))
    (slow,) = Written(past, Form('H', rotors=True, damping=True, dry=True)).warnings()
    assert slow.endswith('cannot hold them: friction that builds up after a reversal: elbow')
    exact = Form('I', rotors=True, coupled=True, damping=True, dry=True, offset=True)
    assert list(Written(arm(LAW, INERTIA), exact).warnings()) == []


def test_springs_are_said_with_the_length_of_sine_and_cosine() -> None:
    one = arm(friction())
    rows = {1: (3.0, 4.0, 0.1, 0.2)}
    mechanism = one.mechanism.with_springs(rows)
    left, _ = Written(replace(one, mechanism=mechanism), Form('F', rotors=True, dry=True,
                                                              damping=True)).warnings()
    assert left.endswith('springs at joints, maximum [N m]: elbow 5')


def test_facts_are_the_friction_as_written_and_what_is_missing() -> None:
    one = Written(arm(LAW), Form('F', damping=True, dry=True))
    facts, (rms, peak) = one.facts(), one.missing
    assert facts['friction'][0] == {
        'axis': 'shoulder', 'damping': 1.5, 'friction': 0.75, 'offset': 0.25,
        'rms': pytest.approx(0.0, abs=1e-12), 'most': pytest.approx(0.0, abs=1e-12),
        'speed': pytest.approx(2.0, rel=1e-3)}
    assert facts['missing'] == [
        {'joint': joint, 'rms': rms[j], 'most': peak[j], 'ripple': 0.0}
        for j, joint in enumerate(('shoulder', 'elbow'))]
    assert rms == pytest.approx([0.25, 0.5])


def test_errors_of_accelerations_are_relative_to_the_largest_of_each_joint() -> None:
    expected = np.array([[1.0, -10.0], [-2.0, 20.0]])
    motion = Motion(expected, expected, expected, expected)
    off = np.array([[0.0, 0.5], [0.1, -1.0]])
    assert motion.error(expected + off) == pytest.approx(0.05, rel=1e-12)
    off[0, 0] = -0.3
    assert motion.error(expected + off) == pytest.approx(0.15, rel=1e-12)
    nothing = np.zeros((0, 2))
    assert Motion(nothing, nothing, nothing, nothing).error(nothing) is None
    assert (rotor_name('a'), gear_name('a')) == ('a_rotor', 'a_gear')


def test_compared_states_slide_by_the_law_and_by_the_step() -> None:
    exact = Form('F', rotors=True, coupled=True, damping=True, dry=True, offset=True)
    wide = friction((0, Term(RAMP, 0.5, 0.75)), (1, Term(CONSTANT, 1.0, 0.3, side=1.0)))
    motion = Motion.of(Written(arm(wide), exact))
    assert motion.x.shape == (1000, 2) and np.abs(motion.v[:, 0]).min() > 0.5
    written = Written(arm(LAW), exact)
    held = Motion.of(written, 0.1)
    assert np.all(np.abs(held.v[:, 0]) > 0.1 * np.abs(held.expected[:, 0]))
    assert np.any(np.abs(held.v[:, 1]) < 0.1 * np.abs(held.expected[:, 1])), 'without dry friction'
    assert np.abs(held.x[:, 1]).max() > 1.9 and isinstance(written.friction, SlidingFriction)
