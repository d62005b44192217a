"""Properties of the spatial algebra that hold for every input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from robot_dynid.robot import inertia
from robot_dynid.types import FloatArray

number = st.floats(-2.0, 2.0, allow_subnormal=False)
vectors = hnp.arrays(np.float64, 3, elements=number)
angles = hnp.arrays(np.float64, 3, elements=st.floats(-np.pi, np.pi))
parameters = hnp.arrays(np.float64, 10, elements=number)
masses = st.floats(0.01, 50.0)
quick = settings(max_examples=60)


@st.composite
def placements(draw: st.DrawFn) -> FloatArray:
    return inertia.homogeneous(inertia.rotation_from_rpy(draw(angles)), draw(vectors))


@st.composite
def bodies(draw: st.DrawFn) -> FloatArray:
    """Parameters of point masses: physical by construction."""
    points = draw(hnp.arrays(np.float64, (6, 4), elements=number))
    second = np.zeros((4, 4))
    for x, y, z, w in points:
        place = np.array([x, y, z, 1.0])
        second += (abs(w) + 0.1) * np.outer(place, place)
    return inertia.parameters_from_pseudo_inertia(second)


@quick
@given(angles)
def test_rotations_are_rotations(rpy: FloatArray) -> None:
    rotation = inertia.rotation_from_rpy(rpy)
    assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.isclose(np.linalg.det(rotation), 1.0)
    about_axes = [inertia.rotation_about(np.eye(3)[i], rpy[i]) for i in (2, 1, 0)]
    assert np.allclose(rotation, about_axes[0] @ about_axes[1] @ about_axes[2], atol=1e-12)


@quick
@given(vectors, vectors)
def test_skew_is_the_cross_product(a: FloatArray, b: FloatArray) -> None:
    assert np.allclose(inertia.skew(a) @ b, np.cross(a, b))


@quick
@given(masses, vectors, vectors, angles)
def test_com_round_trip(mass: float, com: FloatArray, sides: FloatArray, rpy: FloatArray) -> None:
    rotation = inertia.rotation_from_rpy(rpy)
    moments = rotation @ np.diag(sides ** 2 + 0.1) @ rotation.T
    found = inertia.com_from_parameters(inertia.parameters_from_com(mass, com, moments))
    assert np.isclose(found[0], mass)
    assert np.allclose(found[1], com, atol=1e-9)
    assert np.allclose(found[2], moments, atol=1e-9)


def test_a_body_without_mass_has_no_centre() -> None:
    with pytest.raises(ZeroDivisionError, match='no centre of mass'):
        inertia.com_from_parameters(np.zeros(10))


@quick
@given(parameters)
def test_pseudo_inertia_round_trip(p: FloatArray) -> None:
    matrix = inertia.pseudo_inertia(p)
    assert np.array_equal(matrix, matrix.T)
    assert np.allclose(inertia.parameters_from_pseudo_inertia(matrix), p, atol=1e-12)


@quick
@given(parameters, placements(), placements())
def test_moving_twice_is_moving_once(p: FloatArray, a: FloatArray, b: FloatArray) -> None:
    twice = inertia.move_parameters(inertia.move_parameters(p, b), a)
    assert np.allclose(twice, inertia.move_parameters(p, a @ b), atol=1e-9)
    assert np.allclose(inertia.move_parameters(inertia.move_parameters(p, a), np.linalg.inv(a)), p,
                       atol=1e-8)


@quick
@given(masses, vectors, vectors, placements())
def test_moving_keeps_mass_and_moves_the_centre(
    mass: float, com: FloatArray, sides: FloatArray, placement: FloatArray
) -> None:
    moments = np.diag(sides ** 2 + 0.1)
    moved = inertia.move_parameters(inertia.parameters_from_com(mass, com, moments), placement)
    found = inertia.com_from_parameters(moved)
    rotation = placement[:3, :3]
    assert np.isclose(found[0], mass)
    assert np.allclose(found[1], rotation @ com + placement[:3, 3], atol=1e-9)
    assert np.allclose(found[2], rotation @ moments @ rotation.T, atol=1e-6)


@quick
@given(bodies(), placements())
def test_point_masses_have_a_semidefinite_pseudo_inertia(p: FloatArray, at: FloatArray) -> None:
    assert np.linalg.eigvalsh(inertia.pseudo_inertia(p)).min() > -1e-9
    moved = inertia.pseudo_inertia(inertia.move_parameters(p, at))
    assert np.linalg.eigvalsh(moved).min() > -1e-8


@quick
@given(masses, vectors, hnp.arrays(np.float64, 3, elements=st.floats(0.05, 2.0)), angles)
def test_pseudo_inertia_is_definite_exactly_for_physical_bodies(
    mass: float, com: FloatArray, principal: FloatArray, rpy: FloatArray
) -> None:
    slack = principal.sum() - 2.0 * principal.max()
    if abs(slack) < 1e-3:
        return
    rotation = inertia.rotation_from_rpy(rpy)
    moments = rotation @ np.diag(principal) @ rotation.T
    matrix = inertia.pseudo_inertia(inertia.parameters_from_com(mass, com, moments))
    assert (np.linalg.eigvalsh(matrix).min() > 0.0) == (slack > 0.0)


@quick
@given(placements(), placements(), hnp.arrays(np.float64, 6, elements=number))
def test_adjoint_composes_and_moves_twists(
    a: FloatArray, b: FloatArray, twist: FloatArray
) -> None:
    assert np.allclose(inertia.adjoint(a @ b), inertia.adjoint(a) @ inertia.adjoint(b), atol=1e-9)
    bracket = np.zeros((4, 4))
    bracket[:3, :3], bracket[:3, 3] = inertia.skew(twist[:3]), twist[3:]
    conjugate = a @ bracket @ np.linalg.inv(a)
    moved = inertia.adjoint(a) @ twist
    assert np.allclose(conjugate[:3, :3], inertia.skew(moved[:3]), atol=1e-9)
    assert np.allclose(conjugate[:3, 3], moved[3:], atol=1e-9)
