"""Parameters that no session of swings knows as accurately as asked for, and what locks them.

The effort of the joint that swings tells the more the longer it swings: no session can know more
of it than all candidates together, each for the whole time. Those of joints at rest do not: what
friction takes of them is always against the load. There the best mixture of configurations counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.excitation.precision import UNKNOWN, covariance_of
from robot_dynid.types import FloatArray
from robot_dynid_extras.session.swing_candidates import Candidate, Known

#: steps of the search for the best mixture
STEPS = 30
#: what stays above this share of UNKNOWN is not seen at all
UNSEEN = 0.1


@dataclass(frozen=True, eq=False)
class Reach:
    """Deviations (b,) that no session of ``longest`` s of swings falls below: ``best``, and
    ``frictionless`` if no friction held joints at rest; beside the ``accuracy`` asked for.
    """

    best: FloatArray
    frictionless: FloatArray
    accuracy: float
    longest: float

    @classmethod
    def of(
        cls, known: Known, candidates: Sequence[Candidate], accuracy: float, longest: float
    ) -> Reach:
        """Return the reach of ``candidates`` in ``longest`` s; ``accuracy`` is relative."""
        steady = np.array(known.own)
        for one in candidates:
            steady += one.own + longest / one.again * one.more

        def deviations(held: FloatArray) -> FloatArray:
            mixed = _mixed(replace(known, held=held), candidates, steady, accuracy, longest)
            return np.asarray(np.sqrt(np.diag(covariance_of(steady + mixed))))

        best = deviations(known.held)
        missed = bool(np.any(best > accuracy))
        return cls(best, deviations(np.zeros_like(known.held)) if missed else best, accuracy,
                   longest)

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Mask (b,) of the parameters that are out of reach."""
        return np.asarray(self.best > self.accuracy)

    def words(self, names: Sequence[str]) -> str:
        """Return a sentence on the parameters out of reach, and why they are; empty for none."""
        unseen = self.missed & (self.best > UNSEEN * UNKNOWN)
        held = self.missed & ~unseen & (self.frictionless <= self.accuracy)
        late = self.missed & ~unseen & ~held
        least = self.longest * float(np.max(self.best / self.accuracy, where=late, initial=1.0))**2
        found = []
        for mask, reason in (
            (late, f'the noise asks for more than {least:.0f} s of swings, {self.longest:g} s are '
             'allowed'),
            (unseen, 'no swing that limits, time and surroundings allow shows it'),
            (held, 'only the efforts of joints at rest show it well, of which friction takes a '
             'part; a motion of all joints (type fourier) does better'),
        ):
            if np.any(mask):
                some = ', '.join(n for n, there in zip(names, mask, strict=True) if there)
                found.append(f'{some}: {reason}')
        return '; '.join(found)


def _mixed(
    known: Known, candidates: Sequence[Candidate], steady: FloatArray, accuracy: float,
    longest: float,
) -> FloatArray:
    """Return the information (b, b) of joints at rest for the best mixture of configurations.

    Its shares of the time that each joint swings follow from the multiplicative algorithm for the
    sum of the logarithms of the deviations that miss the ``accuracy``; ``steady`` (b, b) is known
    beside. Source: Silvey, Titterington and Torsney, Communications in Statistics A7, 1978.
    """
    index = np.array([one.swing.index for one in candidates], dtype=int)
    swung = np.bincount(index, minlength=len(known.held))
    seconds = known.resting.seconds + np.where(swung > 0, longest, 0.0)
    weight = 1.0 / (known.density**2 + seconds[:, None] * known.held**2)
    before = np.asarray(np.einsum('ji,jibc->bc', weight, known.resting.grams))
    if not candidates:
        return before
    told = np.array([longest / one.swing.duration * np.tensordot(
        weight[one.swing.index], one.resting, 1) for one in candidates])
    shares = 1.0 / swung[index]
    for _ in range(STEPS):
        covariance = covariance_of(steady + before + np.tensordot(shares, told, 1))
        variance = np.diag(covariance)
        pull = np.where(np.sqrt(variance) > accuracy, 1.0 / variance, 0.0)
        slope = np.tensordot(told, (covariance * pull) @ covariance, 2)
        if not np.any(slope > 0.0):
            break
        shares = shares * np.sqrt(slope)
        total = np.bincount(index, shares)[index]
        shares = np.where(total > 0.0, shares / np.maximum(total, 1e-300), 1.0 / swung[index])
    return np.asarray(before + np.tensordot(shares, told, 1))
