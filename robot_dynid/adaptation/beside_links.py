"""Friction that warms up, fitted together with the links and the friction that stays.

A fit in which friction stays takes some of the change for inertia, and what is left over shows too
little of it. So the falls of friction enter the equations of their joint as columns, beside those
of all base parameters, which the equations of all other joints determine, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.adaptation.fit import (
    BATCH,
    BETWEEN,
    LARGEST,
    NEAR,
    between_recordings_left_out,
    noise_density,
)
from robot_dynid.adaptation.leftover import Leftover
from robot_dynid.adaptation.warming import Warming, warmth_along
from robot_dynid.types import FloatArray, frozen

#: rounds of the search for time constants, which begins next to them
ROUNDS = 5
#: share of the batches of noise that counts as free, at least
LEAST_FREE = 0.25
#: directions of the parameters with less than this share of the information are left alone
OPEN = 1e-12


@dataclass(frozen=True, eq=False)
class Staying:
    """Base parameters that stay, in the equations of a joint and in those of all others.

    ``columns`` (M, b) of every recording: the regressor of the joint; ``others`` (b + 1, b + 1)
    the products of regressor and leftover of all other joints, over the density of their noise.
    ``weights`` (M,) of every recording are those of the joint's rows in the estimate of the base
    parameters, squared, ``normal`` (b, b) the products of all joints' regressors so weighted.
    """

    columns: tuple[FloatArray, ...]
    others: FloatArray
    weights: tuple[FloatArray, ...]
    normal: FloatArray


@dataclass(frozen=True, eq=False)
class BesideLinks:
    """Friction that warms up, and what base parameters that were fitted without it lack.

    ``change`` (b,) is to be added to these, ``covariance`` (b, b) to theirs.
    """

    warming: Warming
    change: FloatArray
    covariance: FloatArray


def warming_beside_links(
    leftovers: Sequence[Leftover], warming: Warming, staying: Staying
) -> BesideLinks:
    """Return ``warming`` of one joint fitted anew, together with all base parameters.

    Its time constants are refined from those it has, by Gauss-Newton (variable projection would
    give the same: falls and base parameters are linear). The level of friction stays that of the
    base parameters: the rise is the mean fall. Friction that differs from recording to recording
    is fitted beside, as in `fit_warming`.
    Where a fall would be more than all of the friction, the data does not tell it from the rest:
    then ``warming`` stays as it is, and the parameters lack nothing.
    Source: Golub, Pereyra 1973 (separable least squares); Frisch, Waugh 1933 (what a regression
    without some columns lacks).
    """
    count = len(warming.seconds)
    linear = 2 * count
    state, reach = warming, (0.5 * warming.seconds, 2.0 * warming.seconds)
    noise = noise_density(leftovers)
    for rounds_left in reversed(range(ROUNDS)):
        tall = _equations(leftovers, state, staying)
        inverse, values = _solved(leftovers, tall, staying.others, noise)
        noise = _noise(leftovers, tall, values, noise)
        fall = values[:linear].reshape(count, 2).T
        if rounds_left:
            step = np.clip(values[linear:linear + count], -LARGEST, LARGEST)
            seconds = np.clip(state.seconds * np.exp(step), *reach)
            rises, _ = _taken(leftovers, state, staying)
            state = replace(state, seconds=seconds, fall=fall, rise=rises @ values[:linear])
    seconds = state.seconds
    if np.abs(fall).max() > 1.0:
        size = len(staying.normal)
        return BesideLinks(warming, np.zeros(size), np.zeros((size, size)))
    std = np.sqrt(np.diag(inverse)[:linear + count].clip(0.0))
    fall_std = std[:linear].reshape(count, 2).T
    rises, taken = _taken(leftovers, state, staying)
    known = inverse[:linear, :linear]
    rise_std = np.sqrt(np.diag(rises @ known @ rises.T))
    found = Warming(
        frozen(seconds), warming.power, frozen(rises @ values[:linear]), frozen(fall),
        frozen(rise_std), frozen(fall_std), frozen(seconds * std[linear:]))
    return BesideLinks(found, -taken @ values[:linear], taken @ known @ taken.T)


def rescaled(
    warming: Warming, before: Sequence[Leftover], after: Sequence[Leftover]
) -> Warming:
    """Return ``warming`` of the same torque where friction is ``after`` instead of ``before``."""
    old, new = (np.concatenate([one.friction for one in some]) for some in (before, after))
    squares = np.sum(new ** 2, axis=0)
    ratio = np.where(squares > 0.0, np.sum(old * new, axis=0) / np.where(
        squares > 0.0, squares, 1.0), 1.0)
    power = float(np.mean(np.concatenate([one.power for one in after])))
    return replace(
        warming, power=power, rise=frozen(ratio * warming.rise),
        fall=frozen(ratio[:, None] * warming.fall), rise_std=frozen(ratio * warming.rise_std),
        fall_std=frozen(ratio[:, None] * warming.fall_std))


def _step(one: Leftover) -> float:
    return float(np.median(np.diff(one.time)))


def _equations(
    leftovers: Sequence[Leftover], warming: Warming, staying: Staying
) -> list[FloatArray]:
    """Return friction, falls, log. of time constants, parameters and what is left, as columns.

    (M, 2 + p + 1) of every recording; derivatives are those at ``warming``.
    """
    count, found, state = len(warming.seconds), [], np.zeros(2 * len(warming.seconds))
    law = np.hstack([warming.law, np.zeros((2, count))])  # the power is that of the former
    tried = np.concatenate([warming.seconds, NEAR * warming.seconds])
    for one, columns in zip(leftovers, staying.columns, strict=True):
        both, friction = warmth_along(one, tried, warming.power, state, law), one.friction
        falls = [-w[:, None] * friction for w in both[:, :count].T]
        slopes = (both[:, :count] - both[:, count:]) / np.log(NEAR) * (friction @ warming.fall)
        found.append(np.hstack([friction, *falls, slopes, columns, one.left[:, None]]))
    return found


def _solved(
    leftovers: Sequence[Leftover], equations: Sequence[FloatArray], others: FloatArray,
    noise: float,
) -> tuple[FloatArray, FloatArray]:
    """Return covariance (p, p) and values (p,); ``others`` are equations of the parameters."""
    total = np.zeros((equations[0].shape[1] - 2,) * 2)
    for one, tall in zip(leftovers, equations, strict=True):
        gram = _step(one) / noise * (tall.T @ tall)
        between = np.linalg.solve(gram[:2, :2] + np.diag(1.0 / np.square(BETWEEN)), gram[:2, 2:])
        total += gram[2:, 2:] - gram[2:, :2] @ between
    total[-len(others):, -len(others):] += others
    covariance = _inverse(total[:-1, :-1])
    return covariance, covariance @ total[:-1, -1]


def _noise(
    leftovers: Sequence[Leftover], equations: Sequence[FloatArray], values: FloatArray,
    noise: float,
) -> float:
    """Return the density [(N m)^2 s] of errors without steady differences of recordings.

    Errors at low frequency, where the density is taken, are as much too small as there are values.
    """
    found = noise_density([replace(one, left=between_recordings_left_out(
        tall[:, :2], tall[:, -1] - tall[:, 2:-1] @ values, _step(one) / noise))
        for one, tall in zip(leftovers, equations, strict=True)])
    batches = sum(float(one.time[-1] - one.time[0]) / BATCH for one in leftovers)
    used = np.any([np.any(tall[:, 2:-1], axis=0) for tall in equations], axis=0)
    fitted = np.count_nonzero(used)
    return found * batches / max(batches - fitted, LEAST_FREE * batches)


def _inverse(normal: FloatArray) -> FloatArray:
    """Return the inverse (p, p) of normal equations; directions that are open get zero."""
    scale = np.sqrt(np.diag(normal)).clip(1e-150)
    return np.asarray(np.linalg.pinv(
        normal / np.outer(scale, scale), rcond=OPEN, hermitian=True) / np.outer(scale, scale))


def _taken(
    leftovers: Sequence[Leftover], warming: Warming, staying: Staying
) -> tuple[FloatArray, FloatArray]:
    """Return the rises (2, 2 k) and what the base parameters take (b, 2 k) of falls of one.

    The rise is that with which the change of friction has none of its level: it is orthogonal to
    viscous and dry friction.
    """
    state, falls = np.zeros(len(warming.seconds)), list[FloatArray]()
    whole, common = np.zeros((2, 2)), np.zeros((2, 2 * len(state)))
    for one, weights in zip(leftovers, staying.weights, strict=True):
        falls.append(np.hstack([w[:, None] * one.friction
                                for w in warming.warmth(one, state).T]))
        weighted = one.friction.T * weights
        whole, common = whole + weighted @ one.friction, common + weighted @ falls[-1]
    rises = _inverse(whole) @ common
    shared = np.zeros((len(staying.normal), rises.shape[1]))
    for one, fall, columns, weights in zip(
            leftovers, falls, staying.columns, staying.weights, strict=True):
        shared += columns.T @ (weights[:, None] * (one.friction @ rises - fall))
    return rises, _inverse(staying.normal) @ shared
