"""Local search of the shapes of a friction law, all linear parameters eliminated exactly.

Variable projection: Golub, Pereyra 1973. The residual is that of the least-squares fit of links,
rotors and all friction, a function of the shapes of one axis alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_dynid.effects import JointFriction
from robot_dynid.effects.joint_friction import Load, low_passed
from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import Regression, chunks
from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary, Factors
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.friction import AxisMotion, FrictionLaw
from robot_dynid.friction.law import Path, columns_of
from robot_dynid.friction.terms import Term
from robot_dynid.types import FloatArray, Samples

#: evaluations per shape, and the change of its logarithm that ends the search
EVALUATIONS, SETTLED = 25, 1e-3


@dataclass(frozen=True, eq=False)
class Reduced:
    """The rows of the joints of one axis, clear of everything but its own friction.

    ``frames`` (N, k) are, joint by joint, an orthonormal basis of the other columns of its rows,
    and of the target; ``scales`` what a torque of the axis is in the rows of each of these joints.
    In the coordinates of all frames together, ``basis`` (K, b) are the rows that belong to them
    of an orthonormal basis of all other columns, in all equations, and ``target`` (K,); ``along``
    (b,) the target along the basis; ``energy`` of the whole target.
    """

    recordings: Sequence[Samples]
    motions: tuple[AxisMotion, ...]
    frames: tuple[FloatArray, ...]
    scales: FloatArray
    basis: FloatArray
    along: FloatArray
    target: FloatArray
    energy: float
    _last: dict[tuple[Term, ...], tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    def residual(self, law: FrictionLaw) -> float:
        """Return the sum of squared residuals, in noises, of the best fit with ``law``."""
        history, inside = (np.array(part) for part in zip(*self._columns(law), strict=True))
        shadow = inside @ self.basis
        gram = np.sum(self.scales**2) * (history @ history.T) - shadow @ shadow.T
        right = inside @ self.target - shadow @ self.along
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        values = np.linalg.lstsq(gram / np.outer(scale, scale), right / scale, rcond=1e-12)[0]
        return self.energy - float(self.along @ self.along) - float(values @ (right / scale))

    def _columns(self, law: FrictionLaw) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the filtered torque (N,) of each parameter, and what it is in the frames (K,).

        Columns of the law before are known.
        """
        new = [p for p in law.table if p.terms not in self._last]
        found = np.hstack([low_passed(columns_of(new, motion), samples) for motion, samples in zip(
            self.motions, self.recordings, strict=True)])
        inside = np.hstack([scale * (found @ frame)
                            for scale, frame in zip(self.scales, self.frames, strict=True)])
        known = self._last | dict(zip((p.terms for p in new), zip(found, inside, strict=True),
                                      strict=True))
        self._last.clear()
        for parameter in law.table:
            self._last[parameter.terms] = known[parameter.terms]
            yield known[parameter.terms]


def reduce(
    data: FrictionData, factors: Factors, axis: int, laws: Sequence[FrictionLaw],
    noise: FloatArray, load: Load | None,
) -> Reduced:
    """Eliminate links, rotors and the friction of the other axes, as ``laws`` has them.

    ``noise`` (n,) N m (N) is the residual deviation of the joints, by which rows are divided.
    """
    friction = JointFriction(data.axes, tuple(laws), load)
    joints = np.flatnonzero(data.axes.effort[axis])
    frames, triangles = zip(*(_frame(data, friction, axis, int(j), noise[j]) for j in joints),
                            strict=True)
    others = [j for j in range(len(noise)) if j not in joints]
    chosen = np.concatenate([np.arange(factors.links), *(
        factors.first[a] + _index(factors, a, law) for a, law in enumerate(laws) if a != axis)])
    more = [factors.whole[j].columns([*chosen, -2]) / noise[j] for j in others]
    tall = np.vstack([*triangles, *more])
    rest, target = tall[:, :-1], tall[:, -1]
    scale = np.linalg.norm(rest, axis=0)
    scale[scale == 0.0] = 1.0
    u, s, _ = np.linalg.svd(rest / scale, full_matrices=False)
    basis = u[:, s > 1e-9 * s[0]]
    own = sum(len(one) for one in triangles)
    return Reduced(
        data.recordings, tuple(next(friction.motions(s, [axis])) for s in data.recordings),
        frames, data.axes.effort[axis, joints] / noise[joints], basis[:own], basis.T @ target,
        target[:own], float(target @ target))


def _index(factors: Factors, axis: int, law: FrictionLaw) -> Any:
    dictionary = factors.friction.laws[axis]
    assert isinstance(dictionary, Dictionary)
    return dictionary.place(law)


def _frame(
    data: FrictionData, friction: JointFriction, axis: int, joint: int, noise: float
) -> tuple[FloatArray, FloatArray]:
    """Return the rows of a joint as a frame (N, k) times a triangle (k, b + 1).

    Their columns are links, rotors, the friction of the other axes, and the filtered effort, all
    divided by ``noise`` [N m].
    """
    counts = [len(law.parameters) for law in friction.laws]
    owners = np.repeat(np.arange(len(counts)), counts)
    owners = owners[owners != axis]
    links = np.flatnonzero(data.model.structure[joint])
    acting = friction.axes.effort[owners, joint]
    beside = len(data.model.reduction.kept)
    columns = np.concatenate([links, beside + np.flatnonzero(acting), [beside + len(owners)]])
    rows = np.empty((sum(map(len, data.recordings)), len(columns)))
    first = 0
    for samples in data.recordings:
        assert samples.effort is not None
        own = rows[first:first + len(samples)]
        first += len(samples)
        regression = Regression(data.model, samples)
        for part in chunks(samples):
            own[part, :len(links)] = regression.columns(part)[joint, links].T
        own[:, len(links):-1] = friction.history(
            samples, np.unique(owners[acting != 0.0]).tolist()).T * acting[acting != 0.0]
        own[:, -1] = samples.effort[:, joint]
    rows /= noise
    frame, r = np.linalg.qr(rows)  # this one releases the interpreter's lock
    triangle = np.zeros((len(r), beside + len(owners) + 1))
    triangle[:, columns] = r
    return np.asarray(frame), triangle


def refined(
    data: FrictionData, factors: Factors, axis: int, laws: Sequence[Named], noise: FloatArray,
    load: Load | None,
) -> Named:
    """Return the law of ``axis`` with the nearby shapes of least residual.

    ``noise`` (n,) N m (N) is the residual deviation of the joints.
    """
    from scipy.optimize import minimize

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

    first = cost(start)
    found = minimize(cost, start, method='Nelder-Mead', bounds=list(zip(low, high, strict=True)),
                     options={'maxfev': EVALUATIONS * len(shapes), 'xatol': SETTLED,
                              'fatol': 1e-6 * first})
    return (name, shaped(found.x) if found.fun < first else law)


def _value(law: FrictionLaw, path: Path) -> float:
    settings: Any = law.settings()
    for key in path:
        settings = settings[key]
    return float(settings)


