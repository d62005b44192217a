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
#: eigenvalues of V below this multiple of the least one count as active
AT_LEAST = 10.0
#: links with no more than this share of the nominal inertia in some direction are binding: the
#: entropic prior prevents zero by about its weight
BINDING = 1e-2
#: a parameter of which the prior determines more than this share comes from the prior
MOSTLY = 0.5


@dataclass(frozen=True)
class LinkMargin:
    """Least eigenvalue of the pseudo-inertia of a link, and least share of the nominal one."""

    smallest_eigenvalue: float
    share_of_nominal: float


@dataclass(frozen=True)
class Certificate:
    """Evidence that standard parameters are feasible and optimal, and of their origin.

    `links` by name; `active` constraints; `gap` between primal and dual objective relative to the
    objective; `rise_of_residual`, root mean square, over unconstrained least squares;
    `directions_from_prior` that the prior determines more than the data; `from_prior` the standard
    parameters that the prior determined; `prior_share` of the prior variance that the data leaves
    to each: 1 comes from the prior, 0 from the data.
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
    """Return the certificate of `answer`.

    `design` (r, p) in dimensionless parameters and `share`, the weight of the prior of one link,
    are those of the minimisation; `energy` the mean squared weighted residual, and that of
    unconstrained least squares.
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
    """Return labels of the active constraints at the dimensionless parameters v (p,).

    A link is active if its least eigenvalue is below `inertia`.
    """
    w = feasible.whitening
    active = [f'inertia of {name} at its minimum' for name, least in
             zip(w.links, w.least(v), strict=True) if least < inertia]
    active += [f'{name} at zero' for name, passive, value in
              zip(w.names, w.nonnegative, v, strict=True) if passive and value < ACTIVE]
    active += [label for label, equal, slack in
              zip(feasible.limits.labels, feasible.limits.equal, feasible.slack(v), strict=True)
              if not equal and slack < ACTIVE]
    return tuple(active)


def prior_share(w: Whitening, design: FloatArray, share: float) -> tuple[FloatArray, int]:
    """Return the share (p,) of the prior variance that data leaves to each standard parameter.

    Variance of the prior: ``weights^-1``; with the data: ``(2 / share D^T D + weights)^-1``. A
    `share` of zero is the limit: only directions without data count. Also returns the number of
    directions that the prior determines more than the data.
    """
    roots = 1.0 / np.sqrt(w.weights)
    _, s, vt = np.linalg.svd(design * roots, full_matrices=True)
    size = np.zeros(len(roots))
    size[:len(s)] = s
    informed = size > RANK_TOLERANCE * size.max(initial=0.0)
    left = np.where(informed, share / (share + 2.0 * size**2 + 1e-300), 1.0)
    spread = (w.transform * roots) @ vt.T
    variance = np.sum(spread**2, axis=1)
    remaining: FloatArray = np.sum(spread**2 * left, axis=1) / variance
    return remaining, int(np.count_nonzero(left > MOSTLY))
