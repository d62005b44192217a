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
class CertificateSummary:
    """Summary of a Certificate for files and reports: margins by link, constraints, prior.

    ``prior_share`` of its prior variance that the data left to each standard parameter.
    """

    links: Mapping[str, LinkMargin] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    gap: float = 0.0
    rise_of_residual: float = 0.0
    directions_from_prior: int = 0
    from_prior: tuple[str, ...] = ()
    prior_share: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Evidence that standard parameters are feasible, optimal, and where they come from.

    ``links`` (n,) names; ``smallest`` (n,) eigenvalue of each pseudo-inertia [kg, kg m^2];
    ``margin`` (n,) the share of its nominal pseudo-inertia that a link has at least; ``active``
    constraints that hold with equality; ``gap`` between primal and dual objective relative to the
    objective, ``objective`` the mean squared weighted residual plus prior, ``rise`` that of the
    residual's root mean square over unconstrained least squares; ``share`` (p,) of its prior
    variance that the data left to each standard parameter: 1 came from the prior, 0 from the data;
    ``directions`` in which the prior says more than the data.
    """

    links: tuple[str, ...]
    smallest: FloatArray
    margin: FloatArray
    active: tuple[str, ...]
    gap: float
    objective: float
    rise: float
    names: tuple[str, ...]
    share: FloatArray
    directions: int

    @property
    def from_prior(self) -> tuple[str, ...]:
        """Standard parameters which the prior decided rather than the data."""
        return tuple(n for n, s in zip(self.names, self.share, strict=True) if s > MOSTLY)

    @property
    def summary(self) -> CertificateSummary:
        """The certificate for files and reports."""
        links = {name: LinkMargin(float(s), float(m))
                 for name, s, m in zip(self.links, self.smallest, self.margin, strict=True)}
        shares = {name: round(float(share), 6)
                  for name, share in zip(self.names, self.share, strict=True)}
        return CertificateSummary(links, self.active, float(self.gap), float(self.rise),
                                  int(self.directions), self.from_prior, shares)


def certificate(
    feasible: FeasibleSet, answer: Answer, design: FloatArray, share: float,
    energy: tuple[float, float, float],
) -> Certificate:
    """Return the certificate of ``answer``.

    ``design`` (r, p) in dimensionless parameters and ``share`` the weight of one link's prior, as
    they were minimised; ``energy`` the objective, the mean squared weighted residual in it, and
    that of unconstrained least squares.
    """
    w = feasible.whitening
    bodies = (w.transform @ answer.v)[w.bodies].reshape(-1, 10)
    smallest = np.array([np.linalg.eigvalsh(pseudo_inertia(body))[0] for body in bodies])
    objective, residual, least = energy
    left, directions = prior_share(w, design, share)
    rise = float(np.sqrt(max(residual, 0.0) / least)) - 1.0 if least > 0.0 else 0.0
    return Certificate(
        w.links, smallest, w.least(answer.v), active_constraints(feasible, answer.v), answer.gap,
        objective, rise, w.names, left, directions)


def binding_constraints(feasible: FeasibleSet, v: FloatArray) -> tuple[str, ...]:
    """Return in words which constraints stop a fit with a weak prior at v (p,)."""
    return active_constraints(feasible, v, BINDING)


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
