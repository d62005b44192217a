"""Local search of the shapes of a friction law, all linear parameters eliminated exactly.

Variable projection: Golub, Pereyra 1973. The residual is that of the least-squares fit of links,
rotors and all friction, a function of the shapes of one axis alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import Regression
from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary, Factors
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.friction import AxisMotion, FrictionLaw
from robot_dynid.friction.law import Path
from robot_dynid.regressor import JointFriction
from robot_dynid.regressor.friction import Load, low_passed
from robot_dynid.types import FloatArray

#: evaluations per shape, and the change of its logarithm that ends the search
EVALUATIONS, SETTLED = 25, 1e-3


@dataclass(frozen=True, eq=False)
class Reduced:
    """The rows of the joints of one axis, clear of everything but its own friction.

    ``basis`` (N, b) are the rows that belong to these joints of an orthonormal basis of all other
    columns, in all equations; ``along`` (b,) the target along it; ``target`` (N,); ``energy`` of
    the whole target.
    """

    axis: int
    friction: JointFriction
    data: FrictionData
    motions: tuple[AxisMotion, ...]
    noise: FloatArray
    basis: FloatArray
    along: FloatArray
    target: FloatArray
    energy: float

    def residual(self, law: FrictionLaw) -> float:
        """Return the sum of squared residuals, in noises, of the best fit with ``law``."""
        columns = np.vstack([self._own(law, rows) for rows in range(len(self.data.recordings))])
        shadow = self.basis.T @ columns
        gram = columns.T @ columns - shadow.T @ shadow
        right = columns.T @ self.target - shadow.T @ self.along
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        values = np.linalg.lstsq(gram / np.outer(scale, scale), right / scale, rcond=1e-12)[0]
        return self.energy - float(self.along @ self.along) - float(values @ (right / scale))

    def _own(self, law: FrictionLaw, recording: int) -> FloatArray:
        """Return the columns of ``law`` on its joints in one recording, joint by joint."""
        row = self.friction.axes.effort[self.axis]
        samples = self.data.recordings[recording]
        history = low_passed(law.columns(self.motions[recording]), samples).T
        joints = np.flatnonzero(row)
        return np.vstack([row[j] / self.noise[j] * history for j in joints])


def reduce(
    data: FrictionData, factors: Factors, axis: int, laws: Sequence[FrictionLaw],
    noise: FloatArray, load: Load | None,
) -> Reduced:
    """Eliminate links, rotors and the friction of the other axes, as ``laws`` has them.

    ``noise`` (n,) N m (N) is the residual deviation of the joints, by which rows are divided.
    """
    friction = JointFriction(data.axes, tuple(laws), load)
    joints = np.flatnonzero(data.axes.effort[axis])
    tables = [_rest(data, friction, axis, i, joints, noise) for i in range(len(data.recordings))]
    own = np.vstack(tables)
    others = [j for j in range(len(noise)) if j not in joints]
    chosen = np.concatenate([np.arange(factors.links), *(
        factors.first[a] + _index(factors, a, law) for a, law in enumerate(laws) if a != axis)])
    more = [factors.whole[j][:, [*chosen, -2]] / noise[j] for j in others]
    tall = np.vstack([own, *more])
    rest, target = tall[:, :-1], tall[:, -1]
    scale = np.linalg.norm(rest, axis=0)
    scale[scale == 0.0] = 1.0
    u, s, _ = np.linalg.svd(rest / scale, full_matrices=False)
    basis = u[:, s > 1e-9 * s[0]]
    motions = tuple(list(friction.motions(s))[axis] for s in data.recordings)
    return Reduced(axis, friction, data, motions, noise, basis[:len(own)], basis.T @ target,
                   target[:len(own)], float(target @ target))


def _index(factors: Factors, axis: int, law: FrictionLaw) -> Any:
    dictionary = factors.friction.laws[axis]
    assert isinstance(dictionary, Dictionary)
    return dictionary.index(law)


def _rest(
    data: FrictionData, friction: JointFriction, axis: int, recording: int, joints: Any,
    noise: FloatArray,
) -> FloatArray:
    """Return (rows, b + 1): links, rotors, friction of the other axes, filtered effort."""
    samples = data.recordings[recording]
    assert samples.effort is not None
    columns = Regression(data.model, samples).columns(slice(0, len(samples)))
    owners = np.repeat(np.arange(len(friction.laws)), [len(x.parameters) for x in friction.laws])
    history = friction.history(samples)[owners != axis]
    acting = friction.axes.effort[owners[owners != axis]]
    return np.vstack([np.vstack([columns[j], acting[:, j][:, None] * history,
                                 samples.effort[None, :, j]]).T / noise[j] for j in joints])


def refined(
    data: FrictionData, factors: Factors, axis: int, laws: Sequence[Named], noise: FloatArray,
    load: Load | None,
) -> Named:
    """Return the law of ``axis`` with the nearby shapes of least residual.

    ``noise`` (n,) N m (N) is the residual deviation of the joints.
    """
    name, law = laws[axis]
    if not law.searched:
        return name, law
    paths, shapes = zip(*law.searched, strict=True)
    reduced = reduce(data, factors, axis, [law for _, law in laws], noise, load)
    low, high = (np.log([getattr(s, end) for s in shapes]) for end in ('low', 'high'))
    start = np.clip(np.log([_value(law, path) for path in paths]), low, high)

    def shaped(logs: FloatArray) -> FrictionLaw:
        values = (float(f'{value:.4g}') for value in np.exp(logs))
        return law.reshaped(dict(zip(paths, values, strict=True)))

    def cost(logs: FloatArray) -> float:
        try:
            return reduced.residual(shaped(logs))
        except UsageError:  # the two speeds of a law in the wrong order
            return np.inf

    found = minimize(cost, start, method='Nelder-Mead', bounds=list(zip(low, high, strict=True)),
                     options={'maxfev': EVALUATIONS * len(shapes), 'xatol': SETTLED,
                              'fatol': 1e-6 * cost(start)})
    return (name, shaped(found.x) if found.fun < cost(start) else law)


def _value(law: FrictionLaw, path: Path) -> float:
    settings: Any = law.settings()
    for key in path:
        settings = settings[key]
    return float(settings)
