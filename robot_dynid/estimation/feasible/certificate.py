"""Certificate of a feasible fit: margins, active constraints, duality gap, share of the prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from robot_dynid.estimation.feasible.prior import Whitening
from robot_dynid.estimation.feasible.program import ASKED, Answer, FeasibleSet
from robot_dynid.estimation.least_squares import RANK_TOLERANCE
from robot_dynid.robot.inertia import pseudo_inertia
from robot_dynid.types import FloatArray

#: constraints closer than this, in the dimensionless parameters, are active
ACTIVE = 1e-4
#: eigenvalues of V below this multiple of the least one count as at it
AT_LEAST = 10.0
#: links of which no more than this share of the nominal inertia is left in some direction bind:
#: the entropic prior keeps them off zero by about its weight
BINDING = 1e-2
#: a parameter of which the prior decides more than this share comes from the prior
MOSTLY = 0.5


@dataclass(frozen=True)
class LinkMargin:
    """Least eigenvalue of the pseudo-inertia of a link, and the least share of its nominal one."""

    smallest_eigenvalue: float
    share_of_nominal: float


@dataclass(frozen=True)
class Certificate:
    """Evidence that standard parameters are feasible, optimal, and where they come from.

    ``links`` by name; ``active`` constraints that hold with equality; ``gap`` between primal and
    dual objective relative to the objective; ``rise_of_residual``, its root mean square, over
    unconstrained least squares; ``directions_from_prior`` in which the prior says more than the
    data; ``from_prior`` the standard parameters that the prior decided; ``prior_share`` of its
    prior variance that the data left to each: 1 came from the prior, 0 from the data.
    """

    links: Mapping[str, LinkMargin] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    gap: float = 0.0
    rise_of_residual: float = 0.0
    directions_from_prior: int = 0
    from_prior: tuple[str, ...] = ()
    prior_share: Mapping[str, float] = field(default_factory=dict)


def certificate(
    feasible: FeasibleSet, answer: Answer, design: FloatArray, share: float,
    energy: tuple[float, float],
) -> Certificate:
    """Return the certificate of ``answer``.

    ``design`` (r, p) in dimensionless parameters and ``share`` the weight of one link's prior, as
    they were minimised; ``energy`` the mean squared weighted residual, and that of unconstrained
    least squares.
    """
    w = feasible.whitening
    bodies = (w.transform @ answer.v)[w.bodies].reshape(-1, 10)
    links = {name: LinkMargin(float(np.linalg.eigvalsh(pseudo_inertia(body))[0]), float(margin))
             for name, body, margin in zip(w.links, bodies, w.least(answer.v), strict=True)}
    residual, least = energy
    left, directions = prior_share(w, design, share)
    shares = dict(zip(w.names, left.tolist(), strict=True))
    return Certificate(
        links, active_constraints(feasible, answer.v), float(answer.gap),
        float(np.sqrt(max(residual, 0.0) / least)) - 1.0 if least > 0.0 else 0.0, directions,
        tuple(name for name, one in shares.items() if one > MOSTLY),
        {name: round(one, 6) for name, one in shares.items()})


def active_constraints(
    feasible: FeasibleSet, v: FloatArray, inertia: float = AT_LEAST * ASKED
) -> tuple[str, ...]:
    """Return in words which constraints hold with equality at the scaled parameters v (p,).

    Those of links whose least eigenvalue is below ``inertia``.
    """
    w = feasible.whitening
    found = [f'inertia of {name} at its least' for name, least in
             zip(w.links, w.least(v), strict=True) if least < inertia]
    found += [f'{name} at zero' for name, passive, value in
              zip(w.names, w.nonnegative, v, strict=True) if passive and value < ACTIVE]
    found += [label for label, equal, slack in
              zip(feasible.limits.labels, feasible.limits.equal, feasible.slack(v), strict=True)
              if not equal and slack < ACTIVE]
    return tuple(found)


def prior_share(w: Whitening, design: FloatArray, share: float) -> tuple[FloatArray, int]:
    """Return the share (p,) of its prior variance that data leave to each standard parameter.

    Variance of the prior: ``weights^-1``; of both together: ``(2 / share D^T D + weights)^-1``.
    A ``share`` of zero is the limit: only directions the data says nothing about count. Returns
    also the number of directions in which the prior says more.
    """
    roots = 1.0 / np.sqrt(w.weights)
    _, s, vt = np.linalg.svd(design * roots, full_matrices=True)
    size = np.zeros(len(roots))
    size[:len(s)] = s
    known = size > RANK_TOLERANCE * size.max(initial=0.0)
    left = np.where(known, share / (share + 2.0 * size**2 + 1e-300), 1.0)
    spread = (w.transform * roots) @ vt.T
    variance = np.sum(spread**2, axis=1)
    remaining: FloatArray = np.sum(spread**2 * left, axis=1) / variance
    return remaining, int(np.count_nonzero(left > MOSTLY))
