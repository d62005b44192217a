"""plausibility/score.py: the fit of a score, against dense least squares of all columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from robot_dynid.dynamics.rigid_body import gravity_effort, inverse_dynamics, regressor
from robot_dynid.plausibility.excerpt import Excerpt, thin_excerpt
from robot_dynid.plausibility.score import Explained, Fits
from robot_dynid.robot.inertia import symmetric
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

ARM = load_robot('puma560')
PUMA = replace(ARM, limits=replace(
    ARM.limits, effort=np.array([90.0, 4e-3, 9.0, 2.0, 0.0, np.nan]),
    lower=np.append(np.nan, ARM.limits.lower[1:]),
    upper=np.array([*ARM.limits.upper[:1], np.inf, *ARM.limits.upper[2:]])))
RATES = np.array([0.7, 1.1, 1.9, 0.9, 1.3, 2.3])


def sines(still: tuple[int, ...] = (), robot: RobotModel = PUMA, links: float = 0.0, seed: int = 1,
          rows: int = 120) -> Excerpt:
    """Return sines of six joints with friction, an offset, noise and links off by a share."""
    rng = np.random.default_rng(seed)
    phase = np.outer(np.arange(rows) / 16.0, RATES) + np.arange(6.0)
    on = np.isin(np.arange(6), still, invert=True) * np.array([1.0, 0.8, 1.2, 1.5, 0.9, 0.6])
    q, qd, qdd = on * np.sin(phase), on * RATES * np.cos(phase), -on * RATES**2 * np.sin(phase)
    q = q + np.where(on > 0.0, 0.0, np.floor(np.arange(rows) / 30.0)[:, None] * 0.3 + 0.2)
    nominal = robot.nominal * (1.0 + links * rng.normal(size=(6, 1)))
    torque = inverse_dynamics(robot, q, qd, qdd, nominal) + rng.normal(size=q.shape) * [
        1.0, 2.0, 0.7, 0.05, 0.04, 0.03]
    torque += np.array([3.0, 2.0, 1.5, 0.3, 0.2, 0.1]) * (
        np.tanh(qd / 0.05) + 0.3 * qd + 0.2 * qdd + 0.4)
    still_blocks = np.zeros((20, 6))
    return Excerpt(q, qd, qdd, torque, still_blocks, still_blocks, np.full(20, 0.2), 4e-3)


def capacity(robot: RobotModel) -> FloatArray:
    """Return the RMS of gravity (n,) [N m] over 200 poses drawn within the limits, or a turn."""
    low, high = (np.where(np.isfinite(x), x, turn) for x, turn in (
        (robot.limits.lower, -np.pi), (robot.limits.upper, np.pi)))
    poses = np.random.default_rng(0).uniform(low, high, (200, robot.n))
    return np.sqrt((gravity_effort(robot.with_gravity([0.0, 0.0, -9.81]), poses)**2).mean(axis=0))


def deviations(robot: RobotModel, described: bool, links: tuple[float, float, float, bool]
               ) -> FloatArray:
    """Return the standard deviations (11 n) of the factors and parameters of links."""
    factor, each, carried, anywhere = links
    n, found = robot.n, [np.full(robot.n, factor)]
    masses = robot.nominal[:, 0] if described else np.full(n, 5.0)
    lengths = [max(float(np.linalg.norm(x)), 0.05) for x in robot.translations]
    for i in range(n):
        children = [k for k in range(n) if robot.parents[k] == i]
        size = max(lengths[i], *(lengths[k] for k in children), 0.0)
        if described:
            size = max(size, np.sqrt(np.trace(symmetric(robot.nominal[i, 4:])) / masses[i]))
            load = carried * masses.sum() if anywhere or not children else 0.0
            mass = np.hypot(each * (masses[i] + 0.02 * masses.mean()), load)
        else:
            mass = np.hypot(each * 0.02 * 5.0, 5.0)
        found.append(mass * size**np.repeat([0, 1, 2], [1, 3, 6]))
    return np.concatenate(found)


@dataclass
class Dense:
    """Columns and efforts of a recording, less the friction of each joint, and friction itself."""

    columns: FloatArray
    torque: FloatArray
    #: (n, N): times an effort, the power that its friction takes
    drive: FloatArray
    #: (n, N, k), (N, n): with friction
    whole: FloatArray
    raw: FloatArray


def dense(stated: Explained, order: Any, factors: FloatArray) -> Dense:
    """Return the columns of a recording whose efforts are in another order and unit."""
    robot, rows = stated.stated, stated.rows
    n, count = robot.n, len(rows)
    motion = rows.position, rows.velocity, rows.acceleration
    weightless = robot.drive.kind == 'gravity_compensated_torque'
    links = np.moveaxis(regressor(
        robot.with_gravity(np.zeros(3)) if weightless else robot, motion), 2, 1).reshape(
            n, count, n, 10)
    bodies = np.einsum('jrbp,bp->jrb', links, robot.nominal * stated.described)
    offsets = np.eye(n)[:, None] * np.ones((count, 1))
    waves = np.zeros((n, count, 4))
    for j in stated.sprung:
        angle = rows.position[:, j, None] * [1.0, 2.0]
        waves[j] = np.hstack([np.sin(angle), np.cos(angle)])
    whole = np.concatenate([bodies, links.reshape(n, count, -1), offsets, waves], axis=2)
    raw = rows.torque[:, order] * factors
    turns = np.eye(n) if robot.drive.coupling is None else robot.drive.coupling
    columns, torque, drive = whole.copy(), raw.copy(), np.zeros((n, count))
    for j in np.flatnonzero(stated.moves):
        drives = turns[:, j] != 0.0
        speed, rate = (table @ turns.T[:, drives] for table in motion[1:])
        friction = np.hstack([*(np.tanh(speed / ramp) for ramp in (0.005, 0.02, 0.08, 0.3, 1.2)),
                              speed, rate])
        friction /= np.linalg.norm(friction, axis=0)
        inverse = np.linalg.pinv(friction, rcond=1e-6)
        columns[j] -= friction @ (inverse @ columns[j])
        torque[:, j] -= friction @ (inverse @ torque[:, j])
        power = friction.T @ rows.velocity[:, j] / count
        power[-int(drives.sum()):] = 0.0  # rotors take none
        drive[j] = inverse.T @ power
    return Dense(columns, torque, drive, whole, raw)


def oracle(stated: Explained, order: Any, factors: FloatArray, rounds: int) -> dict[str, Any]:
    """Return the fields of the score and its parts by least squares over all rows."""
    robot, at = stated.stated, dense(stated, order, factors)
    n, count, moves, k = robot.n, len(stated.rows), stated.moves, at.columns.shape[2]
    weight = capacity(robot)
    dry = np.maximum(0.15 * weight, 0.06 * weight.max()) if stated.described else 1e6
    power, held = (at.raw**2).sum(axis=0), count * np.broadcast_to(dry, n)**2
    size, counts = np.sqrt(power / count), np.where(moves, stated.count, stated.poses)
    spring = np.full(4, size[list(stated.sprung)].sum())
    hypotheses = [(0.05, 0.03, 0.0, False), (0.05, 0.03, 0.1, False), (1.1, 0.3, 0.1, True)]
    stated_values = np.append(np.ones(n), np.zeros(k - n))

    def residual(values: FloatArray) -> FloatArray:
        return np.array([((at.torque[:, j] - at.columns[j] @ values)**2).sum() for j in range(n)])

    fits = []
    for links, start in product(
            hypotheses[2:] if not stated.described else hypotheses[::2 if rounds == 1 else 1],
            [stated_values] if rounds == 1 else [stated_values, 0.0 * stated_values]):
        prior = np.concatenate([deviations(robot, stated.described, links),
                                np.where(moves, 0.3, 0.0) * size, spring])
        left = residual(start)
        for _ in range(rounds):
            roots = np.sqrt(counts / np.where(moves, np.maximum(left, 0.04**2 * power), held))
            tall = np.vstack([root * table for root, table in zip(roots, at.columns, strict=True)])
            tall *= prior
            target = np.append(
                roots[:, None] * (at.torque.T - at.columns @ stated_values), np.zeros(k))
            # rounding of the system
            tall = np.vstack([tall, np.eye(k) * np.sqrt(1.0 + 1e-10 * (tall.T @ tall).max())])
            state = np.linalg.lstsq(tall, target, rcond=None)[0]
            values = stated_values + prior * state
            left = residual(values)
        volume = np.log(np.linalg.svd(tall, compute_uv=False)).sum()
        share = np.sqrt(np.maximum(left / power, 0.04**2))
        efforts = counts * (np.where(moves, np.log(share * size), 0.5 * (
            np.log(held / count) + left / held)) - np.log(np.abs(factors)))
        fits.append((efforts, share, 0.5 * state @ state + volume, values))
    efforts, share, inertials, values = min(fits, key=lambda fit: fit[0].sum() + fit[2])
    lost = np.array([at.drive[j] @ (at.raw[:, j] - at.whole[j] @ values) for j in range(n)])
    speed = np.sqrt((stated.rows.velocity**2).mean(axis=0))
    taken = np.divide(lost, size * speed, out=np.zeros(n), where=moves)
    spread = np.linalg.norm(at.drive, axis=1) * share * size * np.sqrt(8.0 * count / stated.length)
    friction = [0.5 * min(-lost[j] / spread[j], 6.0)**2 if taken[j] < -0.03 else 0.0
                for j in range(n)]
    nominal, fitted = at.columns @ stated_values, at.columns[:, :, :11 * n] @ values[:11 * n]
    square, shown = (nominal**2).sum(axis=1), moves & stated.described
    sizes = np.divide((nominal * fitted).sum(axis=1), square, out=np.ones(n), where=shown)
    cost = 0.5 * np.divide(
        square, square + share**2 * power + count * (0.3 * weight)**2, out=np.zeros(n),
        where=shown) * (np.log(np.clip(sizes, 0.01, 1.0)) / np.log(3.0))**2
    limit, peak = robot.limits.effort, np.abs(at.raw).max(axis=0)
    used = np.array([np.log(peak[j] / limit[j] / 0.2) if moves[j] and limit[j] > 0.0 else 0.0
                     for j in range(n)])
    common = np.median(used)
    beyond = (20.0 * np.maximum(used - np.log(50.0), 0.0).sum() + np.log1p((common / 1.5)**2)
              + np.log1p(((used - common) / 1.5)**2).sum())
    return {'left': share, 'size': sizes, 'taken': taken, 'parts': (
        efforts, np.zeros(n), friction, cost, [inertials], [beyond]),
        'weight': np.where(shown, np.sqrt(square / power), 0.0)}


TURNS = np.eye(6)
TURNS[4, 5], TURNS[5, 4], TURNS[1, 2] = 0.5, -0.7, 0.3
END = np.array([0.0] * 5 + [40.0])[:, None]
ROBOTS = {
    'coupled motors': replace(PUMA, drive=replace(PUMA.drive, coupling=TURNS)),
    'no inertials': PUMA.with_nominal(np.zeros((6, 10))),
    'compensated gravity': replace(
        PUMA, drive=replace(PUMA.drive, kind='gravity_compensated_torque'))}
RECORDED: dict[str, dict[str, Any]] = {
    'loads at the ends': {}, 'links far off': {'links': 0.8, 'seed': 4},
    'joints at rest': {'links': 0.1, 'still': (0, 4)},
    'heavy joints at rest': {'links': 0.1, 'still': (1, 2)},
    'compensated gravity': {'links': 0.1, 'robot': PUMA.with_gravity(np.zeros(3))}}


@cache
def case(name: str) -> Explained:
    """Return an excerpt."""
    robot, rows = ROBOTS.get(name, PUMA), sines(**RECORDED.get(name, {'links': 0.02}))
    motion = rows.position, rows.velocity, rows.acceleration
    changed = {
        'loads at the ends': lambda: rows.torque + inverse_dynamics(
            PUMA, *motion, PUMA.nominal * END),
        'pushed': lambda: rows.torque - 4.0 * rows.velocity * [1.0, 2.0, 0.1, 1.0, 0.0, 0.01],
        'lighter than described': lambda: rows.torque * [-1.0, 0.3, 0.003, 1.0, -0.4, 0.2],
        'springs': lambda: rows.torque + np.eye(6)[1] * (
            20.0 * np.sin(motion[0][:, 1:2]) - 7.0 * np.cos(2.0 * motion[0][:, 1:2]))}
    if name in changed:
        rows = replace(rows, torque=changed[name]())
    stated = Explained(robot, rows)
    if name == 'springs':
        return stated.changed(robot, rows, sprung=(1, 3))
    return stated.changed(robot, thin_excerpt(rows, 40)) if name == 'every third row' else stated


CASES = ('as described', 'units', 'loads at the ends', 'links far off', 'pushed',
         'lighter than described', 'joints at rest', 'heavy joints at rest', 'coupled motors',
         'no inertials', 'compensated gravity', 'springs', 'every third row')


@pytest.mark.parametrize('rounds', [1, 4])
@pytest.mark.parametrize('name', CASES)
def test_a_score_is_that_of_dense_least_squares(name: str, rounds: int) -> None:
    stated, order, factors = case(name), list(range(6)), np.ones(6)
    if name == 'units':
        order, factors = [0, 2, 1, 3, 5, 4], np.array([1.5, -0.7, 0.3, 2.0, -40.0, 9.0])
    (score,) = Fits([stated]).scores([0], np.array([order]), factors[None], rounds)
    expected = oracle(stated, order, factors, rounds)
    for field in ('left', 'size', 'taken', 'weight'):
        np.testing.assert_allclose(getattr(score, field), expected[field], rtol=1e-4, atol=1e-6,
                                   err_msg=field)
    for k, (part, nats) in enumerate(zip(score.parts, expected['parts'], strict=True)):
        np.testing.assert_allclose(part, nats, rtol=1e-4, atol=1e-4, err_msg=f'part {k}')
