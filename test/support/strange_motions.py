"""Motions of the strange plant: those to train on, and two others to judge on.

A motion is a function of time [s], (T,), that returns position, velocity and acceleration (T, n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from strange_arms import Arm

from robot_dynid.types import FloatArray

States = tuple[FloatArray, FloatArray, FloatArray]
#: pause [s] before and after every motion
REST = 0.5
#: candidates of which a design takes the one that excites the links most
CANDIDATES = 12


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of ``duration`` [s], rest at both ends included."""

    duration: float
    states: Callable[[FloatArray], States]


def fourier(
    arm: Arm, generator: np.random.Generator, period: float, periods: int, harmonics: int,
    share: float = 0.8,
) -> Motion:
    """Return a Fourier series from rest to rest, up to a ``share`` of speed and way."""
    k, w = np.arange(1.0, harmonics + 1.0), 2.0 * np.pi / period

    def series(time: FloatArray, a: FloatArray, b: FloatArray) -> States:
        s, c = np.sin(np.outer(time, k * w)), np.cos(np.outer(time, k * w))
        return s @ a + c @ b, (c * k * w) @ a - (s * k * w) @ b, \
            -(s * (k * w)**2) @ a - (c * (k * w)**2) @ b

    a, b = (generator.normal(size=(harmonics, arm.n)) / k[:, None] for _ in range(2))
    a -= np.outer(k, k @ a) / (k @ k)
    b -= np.outer(k**2, k**2 @ b) / (k**2 @ k**2)
    grid = np.linspace(0.0, period, 400)
    q, v, acceleration = series(grid, a, b)
    middle = (q.max(axis=0) + q.min(axis=0)) / 2.0
    scale = share * np.min([
        arm.half / np.abs(q - middle).max(axis=0), arm.speed / np.abs(v).max(axis=0),
        arm.acceleration / np.abs(acceleration).max(axis=0)], axis=0)

    def states(time: FloatArray) -> States:
        inside = np.clip(time - REST, 0.0, period * periods)
        q, v, acceleration = series(inside, a * scale, b * scale)
        moves = (inside == time - REST)[:, None]
        return arm.middle + q - middle * scale, v * moves, acceleration * moves

    return Motion(period * periods + 2.0 * REST, states)


def moves(arm: Arm, goals: Sequence[FloatArray], pauses: Sequence[float], share: float) -> Motion:
    """Return moves (quintic) from goal to goal (n,), with a pause [s] at each of them."""
    segments, begin = [], REST
    for start, goal, pause in zip(goals, goals[1:], pauses, strict=False):
        way = np.abs(goal - start)
        seconds = max(0.3, np.max(1.875 * way / (share * arm.speed)),
                      np.max(np.sqrt(5.774 * way / (share * arm.acceleration))))
        segments.append((begin, seconds, start, goal - start))
        begin += seconds + pause

    def states(time: FloatArray) -> States:
        q = np.tile(goals[0], (len(time), 1))
        v, acceleration = np.zeros_like(q), np.zeros_like(q)
        for first, seconds, start, step in segments:
            s = np.clip((time - first) / seconds, 0.0, 1.0)[:, None]
            on = time >= first
            q[on] = (start + step * (s**3 * (10.0 - 15.0 * s + 6.0 * s**2)))[on]
            v += step / seconds * 30.0 * s**2 * (1.0 - s)**2
            acceleration += step / seconds**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
        return q, v, acceleration

    return Motion(begin + REST, states)


def pick(arm: Arm, generator: np.random.Generator, places: int, loops: int) -> Motion:
    """Return a program that goes through places, down to each and up again, and loops."""
    program, pauses = [], []
    for _ in range(places):
        place = arm.middle + 0.9 * generator.uniform(-1.0, 1.0, arm.n) * arm.half
        above = place + 0.12 * generator.uniform(-1.0, 1.0, arm.n) * arm.half
        program += [above, place, above]
        pauses += [0.0, generator.uniform(0.3, 0.8), 0.0]
    return moves(arm, [*program * loops, program[0]], pauses * loops, 0.85)


def jog(arm: Arm, generator: np.random.Generator) -> Motion:
    """Return one joint at a time, to and fro, fast and slowly."""
    goals, speeds = [arm.middle], []
    for joint in range(arm.n):
        for size in (0.8, 0.35):
            for side in (1.0, -1.0, 0.0):
                goal = arm.middle.copy()
                goal[joint] += side * size * arm.half[joint] * generator.uniform(0.8, 1.0)
                goals.append(goal)
                speeds.append(generator.uniform(0.3, 0.6))
    return moves(arm, goals, speeds, 0.6)


def wander(arm: Arm, generator: np.random.Generator, duration: float) -> Motion:
    """Return a smooth motion through random poses at random times."""
    knots = [REST]
    while knots[-1] < duration - 2.5:
        knots.append(knots[-1] + generator.uniform(0.6, 1.6))
    poses = arm.middle + generator.uniform(-1.0, 1.0, (len(knots), arm.n)) * arm.half
    spline = CubicSpline(knots, poses, bc_type='clamped')
    grid = np.linspace(knots[0], knots[-1], 2000)
    scale = np.min([np.ones(arm.n), 0.85 * arm.speed / np.abs(spline(grid, 1)).max(axis=0),
                    0.85 * arm.acceleration / np.abs(spline(grid, 2)).max(axis=0),
                    arm.half / np.abs(spline(grid) - arm.middle).max(axis=0)], axis=0)

    def states(time: FloatArray) -> States:
        inside = np.clip(time, knots[0], knots[-1])
        on = (inside == time)[:, None]
        return arm.middle + scale * (spline(inside) - arm.middle), \
            scale * spline(inside, 1) * on, scale * spline(inside, 2) * on

    return Motion(knots[-1] + REST, states)


#: motions to train on
TRAINING: dict[str, Callable[[Arm, np.random.Generator], Motion]] = {
    'repeated': lambda arm, generator: fourier(arm, generator, 8.0, 3, 4),
    'long': lambda arm, generator: fourier(arm, generator, 40.0, 1, 14),
    'pick': lambda arm, generator: pick(arm, generator, 4, 3),
    'jog': jog,
    'slow': lambda arm, generator: fourier(arm, generator, 40.0, 1, 3, 0.25),
    'random': lambda arm, generator: wander(arm, generator, 30.0),
}


def judging(arm: Arm, seed: int) -> tuple[Motion, Motion]:
    """Return two motions that no model is trained on: one is varied, one a program."""
    generator = np.random.default_rng((seed, 77))
    return wander(arm, generator, 20.0), pick(arm, generator, 6, 1)
