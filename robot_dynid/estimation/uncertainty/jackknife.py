"""Leaving out one stretch of time after the other: deviations that hold for coloured residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.estimation.information import Batch, merged
from robot_dynid.types import FloatArray

Groups = Sequence[Sequence[int]]
#: share of the information in a direction that counts as left when a group of batches is removed
LEAST_REST = 1e-3


@dataclass(frozen=True, eq=False)
class BatchScores:
    """Curvature and gradient of B batches at an estimate of b parameters, in whitened directions.

    ``root`` (b, r): parameters = root @ direction, in which the information of all batches is the
    identity. ``curvature`` (B, r, r) is the share of each batch in it, ``score`` (B, r) its
    gradient at the estimate. What batches have is added up, so a group of them is removed by one
    small linear solve.
    """

    root: FloatArray
    curvature: FloatArray
    score: FloatArray

    def changes(self, groups: Groups) -> tuple[FloatArray, FloatArray]:
        """Return changes of the estimate as groups of batches are left out, (groups, b).

        Beside each, how many times larger the variance of the parameter is without the group.
        """
        found, growth = np.empty((2, len(groups), len(self.root)))
        before = np.sum(self.root**2, axis=1)
        before = np.where(before > 0.0, before, 1.0)
        whole = np.eye(self.root.shape[1])
        for i, group in enumerate(groups):
            own = list(group)
            along = self.root @ _inverse(whole - self.curvature[own].sum(axis=0))
            found[i] = along @ self.score[own].sum(axis=0)
            growth[i] = np.sum(along * self.root, axis=1) / before
        return found, growth

    def moved(self, shifts: FloatArray) -> BatchScores:
        """Return the scores where the parameters of each batch are ``shifts`` (B, r) off."""
        return replace(self, score=self.score - np.einsum('bij,bj->bi', self.curvature, shifts))


def _inverse(rest: FloatArray) -> FloatArray:
    """Return the inverse of what is ``rest`` (r, r), its eigenvalues at least LEAST_REST.

    Only where a group decides a direction alone they are less.
    """
    with suppress(np.linalg.LinAlgError):
        found = np.linalg.inv(rest)
        if np.linalg.norm(found) < 1.0 / LEAST_REST:  # no less than its largest eigenvalue
            return np.asarray(found)
    values, directions = np.linalg.eigh(rest)
    return np.asarray(directions / np.maximum(values, LEAST_REST) @ directions.T)


def leave_one_out(batches: Sequence[Batch]) -> Iterator[tuple[FloatArray, ...]]:
    """Yield, for every batch, the factors (m, k) (one per joint) of all the others.

    Factors from the front and from the back are merged once, so n batches cost 3 n merges.
    """
    joints = range(len(batches[0].factors))
    behind = [batches[-1].factors]
    for batch in batches[-2:0:-1]:
        behind.append(tuple(merged([batch.factors[j], behind[-1][j]]) for j in joints))
    ahead: tuple[FloatArray, ...] | None = None
    for batch in batches:
        rest = behind.pop() if behind else None
        sides = [side for side in (ahead, rest) if side is not None]
        yield tuple(merged([side[j] for side in sides]) for j in joints)
        ahead = batch.factors if ahead is None else tuple(
            merged([ahead[j], batch.factors[j]]) for j in joints)


def deviations(changed: Sequence[FloatArray]) -> FloatArray:
    """Return the standard deviations (k,) from the estimates that each leave one batch out.

    Source: MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    found = np.asarray(changed)
    count = len(found)
    centred = found - found.mean(axis=0)
    return np.asarray(np.sqrt((count - 1) / count * np.sum(centred**2, axis=0)))


def covariance(changes: FloatArray) -> tuple[FloatArray, int]:
    """Return the covariance (k, k) of an estimate, and its degrees of freedom.

    ``changes`` (batches, k) is what each batch has changed in the estimate. Not a number where
    there is a single batch. Source: MacKinnon, Nielsen, Webb 2023 (CR3).
    """
    count, k = changes.shape
    if count < 2:
        return np.full((k, k), np.nan), 1
    centred = changes - changes.mean(axis=0)
    return centred.T @ centred * (count - 1) / count, count - 1
