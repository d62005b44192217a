"""Columns of several blocks in one array: in their order, from their own pasts, in any rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tolerances import REDUCED, SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics import regressor_columns
from robot_dynid.dynamics.regressor_columns import (
    CACHE,
    HISTORY,
    ONE,
    RegressorColumns,
    Signals,
    chunk_length,
)
from robot_dynid.effects import (
    JointFriction,
    RigidLinks,
    RotorInertia,
    SpinningRotors,
    Springs,
    axes_of,
)
from robot_dynid.effects.effect import Assembly, Effect
from robot_dynid.friction import Coulomb, law_from
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.reduction.numeric import full_regressor, random_states
from robot_dynid.robot.model import RobotModel
from robot_dynid.threads import shared_out, thread_count, threads_at_most
from robot_dynid.types import FloatArray, Samples

COUNT = 3 * LANES - 5


@dataclass(frozen=True, eq=False)
class Squares(Effect):
    """A block that fills its own columns: the square of each velocity, and its running sum."""

    n: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f'{kind}{j + 1}' for j in range(self.n) for kind in ('sq', 'sum'))

    @property
    def nonnegative(self) -> tuple[str, ...]:
        return ()

    def history(self, samples: Samples) -> FloatArray:
        return np.cumsum(samples.velocity[:, :self.n]**2, axis=0).T

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        for column, index in enumerate(chosen):
            j, summed = divmod(int(index), 2)
            out[j, column] = history[j] if summed else samples.velocity[:, j]**2


@dataclass(frozen=True, eq=False)
class Doubled(RigidLinks):
    """Links of twice the weight: what a subclass fills is not left to the kernel."""

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        super().fill(samples, history, chosen, out)
        out *= 2.0


def elastic_robot() -> RobotModel:
    """Return a robot with a coupled motor, elastic joints and a torque sensor."""
    robot = load_robot('tx40')
    return replace(robot, drive=replace(robot.drive, elastic=(0, 1), torque_sensors=(1,)))


def blocks_of(robot: RobotModel) -> tuple[object, ...]:
    """Return blocks of every kind, two with a history for the kernel, one with its own."""
    axes = axes_of(robot)
    laws = tuple(law_from('stribeck') for _ in axes.labels)
    return (JointFriction(axes, laws), Squares(robot.n), RigidLinks(robot), Springs(robot),
            RotorInertia(axes), Doubled(robot),
            JointFriction(axes, tuple(Coulomb(0.05) for _ in axes.labels)))


def own_columns(block: object, samples: Samples, rows: int) -> FloatArray:
    """Return the columns (rows, k, N) of one block, by its own ``fill``."""
    out = np.zeros((rows, len(block.names), len(samples)))  # type: ignore[attr-defined]
    block.fill(samples, block.history(samples), np.arange(out.shape[1]), out)  # type: ignore[attr-defined]
    return out


def test_columns_of_all_blocks_stand_side_by_side() -> None:
    robot = elastic_robot()
    blocks, samples = blocks_of(robot), random_states(robot, COUNT, np.random.default_rng(0))
    expected = np.concatenate([own_columns(b, samples, robot.rows) for b in blocks], axis=1)
    assembly = Assembly.of(blocks)
    assert set(assembly.apart) == {1, 5}, 'squares, and the links that are doubled'
    np.testing.assert_array_equal(full_regressor(robot, blocks, samples), expected)
    rng = np.random.default_rng(1)
    chosen = [np.sort(rng.permutation(len(b.names))[:7]) for b in blocks]
    first = np.cumsum([0, *(len(b.names) for b in blocks)])
    kept = np.concatenate([f + own for f, own in zip(first, chosen, strict=False)])
    columns = Assembly.of(blocks, chosen).columns_of(samples)
    wide = np.zeros((robot.rows, len(kept) + 3, 50))
    for rows in (slice(0, 50), slice(LANES + 1, LANES + 51), slice(COUNT - 1, COUNT)):
        out = wide[:, 2:-1, :rows.stop - rows.start]
        columns.fill(rows, out)
        np.testing.assert_array_equal(out, expected[:, kept, rows])
    assert not wide[:, :2].any() and not wide[:, -1].any()


@pytest.mark.parametrize('seed', range(6))
def test_links_and_rotors_of_random_trees_move_like_bodies(seed: int) -> None:
    """Chains and trees, prismatic joints, motors that turn with two joints: Pinocchio's effort."""
    pytest.importorskip('pinocchio')
    from geared_robots import random_geared

    geared = random_geared(seed)
    robot = geared.robot
    blocks = (RigidLinks(robot), RotorInertia(axes_of(robot), SpinningRotors(robot)))
    samples = random_states(robot, COUNT, np.random.default_rng(seed))
    found = np.einsum('ikn,k->ni', full_regressor(robot, blocks, samples),
                      np.concatenate([robot.nominal.ravel(), geared.inertia]))
    expected = geared.effort(samples.position, samples.velocity, samples.acceleration)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=REDUCED * np.abs(expected).max())


@pytest.mark.parametrize('mounted', [False, True])
def test_long_arrays_are_those_of_their_parts(mounted: bool) -> None:
    """They are filled by chunks and copied; nothing is left out, and nothing else is written."""
    robot = elastic_robot()
    blocks = blocks_of(robot)
    if mounted:
        drive = replace(robot.drive, rotor_axes=np.eye(3)[[2] * robot.n], elastic=(),
                        torque_sensors=())
        robot = replace(robot, drive=drive)
        blocks = (RigidLinks(robot), RotorInertia(axes_of(robot), SpinningRotors(robot)))
    columns = Assembly.of(blocks)
    length = chunk_length(robot.rows, columns.columns.count)
    samples = random_states(robot, 2 * length + 9, np.random.default_rng(4))
    found = columns.columns_of(samples)
    expected = np.zeros((robot.rows, columns.columns.count, len(samples)))
    for first in range(0, len(samples), 500):
        rows = slice(first, min(first + 500, len(samples)))
        found.fill(rows, expected[:, :, rows])
    assert length < 500 or mounted
    for threads in (1, 2):
        with threads_at_most(threads):
            np.testing.assert_array_equal(found.array(robot.rows), expected)


def test_a_long_array_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[slice] = []

    def noted(work, count, tile, least):
        shared_out(lambda part: (shares.append(part), work(part)), count, tile, least)

    monkeypatch.setattr(regressor_columns, 'shared_out', noted)
    robot = load_robot('planar_3r')
    length = chunk_length(robot.n, 30)
    states = random_states(robot, 2 * length, np.random.default_rng(0))
    with threads_at_most(2):
        full_regressor(robot, (RigidLinks(robot),), states)
    assert {(s.start, s.stop) for s in shares} == {(0, length), (length, 2 * length)} \
        or thread_count() == 1


def test_entries_of_one_place_add_up_and_unwanted_places_stay() -> None:
    history = np.random.default_rng(2).normal(size=(2, COUNT))
    columns = RegressorColumns(
        2, entries=((0, 1, HISTORY, 1, -2.0), (1, 1, ONE, 0, 3.0), (1, 0, ONE, 0, 5.0),
                    (0, 1, HISTORY, 0, 0.5)), past=2)
    signals = Signals.of(np.zeros((3, COUNT, 1)), [history])
    out = np.full(4 * COUNT, 7.0)
    columns.fill(signals, slice(1, COUNT), np.array([[COUNT, 2 * COUNT], [-1, 0]]), out)
    summed = 0.5 * history[0] - 2.0 * history[1]
    expected = np.full((4, COUNT), 7.0)
    expected[0, :-1], expected[2, :-1] = 3.0, summed[1:]
    np.testing.assert_allclose(out.reshape(4, COUNT), expected, rtol=0.0, atol=SAME_FORMULA)


def test_chunks_are_whole_tiles_that_stay_in_the_cache() -> None:
    lengths = [chunk_length(n, 14 * n) for n in (1, 7, 14, 30, 50)]
    assert lengths == sorted(lengths, reverse=True) and all(c % LANES == 0 for c in lengths)
    assert lengths[0] == 1024 and lengths[-1] == LANES
    for n, length in zip((7, 14), lengths[1:3], strict=True):
        assert CACHE / 2 < 8 * n * 14 * n * length <= CACHE
