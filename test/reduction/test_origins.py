"""reduction/numeric.py: where standard parameters come from: against the null space, by rank, on
several robots."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.effects import RigidLinks
from robot_dynid.reduction import reduce_numeric
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import COMBINED, MEASURED, PRIOR, origins
from robot_dynid.robot.robot_file import load_robot


@pytest.fixture(scope='module', params=['planar_3r', 'puma560', 'ur10e'])
def reduction(request: pytest.FixtureRequest) -> Reduction:
    robot = load_robot(request.param)
    return reduce_numeric(robot, (RigidLinks(robot),))


def rank(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> int:
    return int(np.linalg.matrix_rank(rows, tol=1e-8))


def test_kinds_are_those_of_ranks(reduction: Reduction) -> None:
    """Measured: its unit vector adds no rank. Prior: no combination of base parameters has it."""
    matrix, unit = reduction.matrix, np.eye(len(reduction.standard))
    for i, origin in enumerate(origins(reduction)):
        measured = rank(np.vstack([matrix, unit[i]])) == len(matrix)
        kind = MEASURED if measured else PRIOR if not matrix[:, i].any() else COMBINED
        assert (origin.name, origin.kind) == (reduction.standard[i], kind)
        assert origin.base == tuple(np.flatnonzero(matrix[:, i]))


def test_the_named_measurement_gives_the_parameter(reduction: Reduction) -> None:
    matrix, unit = reduction.matrix, np.eye(len(reduction.standard))
    for i, origin in enumerate(origins(reduction)):
        if origin.kind == MEASURED:
            assert origin.separated_by == ''
            continue
        one = np.vstack([matrix, unit[reduction.standard.index(origin.separated_by)]])
        assert rank(one) == len(matrix) + 1
        assert rank(np.vstack([one, unit[i]])) == len(matrix) + 1


def test_a_mass_is_weighed_rather_than_an_inertia_swung() -> None:
    """mx2 + 0.36*m3 and Izz2 + 0.1296*m3 of the planar arm: all from the mass of link 3."""
    robot = load_robot('planar_3r')
    found = {o.name: o for o in origins(reduce_numeric(robot, (RigidLinks(robot),)))}
    assert {found[name].separated_by for name in ('mx2', 'Izz2', 'm3')} == {'m3'}
    assert found['mx3'].kind == MEASURED
    assert found['Ixx1'].kind == PRIOR


def test_origins_of_parameters_left_open_are_the_prior(reduction: Reduction) -> None:
    first = next(o.name for o in origins(reduction) if o.kind == MEASURED)
    found = {o.name: o for o in origins(reduction, {first})}
    assert (found[first].kind, found[first].separated_by) == (PRIOR, '')
