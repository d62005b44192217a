"""Errors in variables: the motion is estimated along with the parameters.

Sensors see the motion with white noise, and at every instant it obeys the equations of motion but
for noise of the efforts and what the model lacks. The most probable motion agrees with both. So
the deflection of a gear, which drowns in the noise of two encoders, is known from the torque of
the gear; regressors of the measured motion would be biased (attenuated). Recordings are cut into
stretches, and the motion of each is a fine spline of its own. Parameters and the coefficients of
all splines are found at once, by Gauss-Newton; those of a stretch are eliminated within it.
Source: Schoukens, Pintelon, Identification of Linear Systems, ch. 8 (maximum likelihood with noise
on inputs and outputs); collocation: Ramsay et al., J. R. Statist. Soc. B 69, 2007, 741-796.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import Effect, JointFriction
from robot_dynid.estimation.experiment import Regression, TorqueModel
from robot_dynid.friction.law import Path
from robot_dynid.types import FloatArray, Progress, Samples
from robot_dynid_extras.latent.coordinate_equations import CoordinateEquations
from robot_dynid_extras.latent.motion_spline import (
    DEGREE,
    ORDERS,
    MotionSpline,
)

#: s between knots of the motion sought, at least so many samples; and those of the first guess
SPACING, SAMPLES, COARSE = 4e-3, 4, 3e-2
#: equations with friction count where their axes turn faster than this [rad/s, m/s], round by
#: round: around a reversal dry friction is unknown, and the first guess does not know when that is
SPEEDS = (0.1, 0.05, 0.03, 0.02, 0.014, 0.01)
#: errors from which the weight of an equation falls (Cauchy's; 95 % efficient for normal errors)
CAUCHY = 2.385
#: least error of an equation in terms of its effort; a round lowers it to this share at most
EXACT, SLOWLY = 1e-3, 0.7
#: share while the logarithm of a shape moves by more than this in a round: as soon as motion and
#: equations hold each other tightly, the shape hardly moves
HELD, MOVING = 0.95, 0.02
#: by how much the error of a link behind a gear may be smaller than that of its motor
TIGHTER = 5.0
#: share of the errors of an equation that the motion may take up
ABSORBED = 0.9
#: rounds at most; they end where the errors and the logarithms of the shapes stay to this, and
#: the parameters to the root of it in their deviations
ROUNDS, SETTLED = 30, 3e-3
#: step of the logarithm of a shape for its derivative; largest change of it in a round; deviation
#: of such changes, for shapes that the data leaves open
STRETCH, LONGEST, LOOSE = 1e-4, 0.3, 1.0
#: rounds of a fit without some of the stretches, and by how much its steps are lengthened at most
REFIT, MIXED = 6, 8.0
#: no shapes
NOTHING = np.zeros(0)
#: random signs by which it is known what the motion takes up
PROBES = 2


@dataclass(frozen=True, eq=False)
class Channel:
    """Measured derivative of all coordinates: ``order``, ``values`` (N, m) and their noise.

    ``deviation`` (m,) is the standard deviation of the noise.
    """

    order: int
    values: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, eq=False)
class Stretch:
    """Channels at ``time`` (N,) [s], uniform, and ``effort`` (M, rows) [N m] at ``stamps`` (M,).

    ``temperature`` (M, m) where it is known. It ``goes_on`` where the stretch before it ends;
    ``recording`` is the number of the recording, which ``began`` [s] then.
    """

    time: FloatArray
    channels: tuple[Channel, ...]
    stamps: FloatArray
    effort: FloatArray
    temperature: FloatArray | None = None
    goes_on: bool = False
    recording: int = 0
    began: float | None = None

    @cached_property
    def splines(self) -> tuple[MotionSpline, MotionSpline]:
        """The motion at ``time`` and at ``stamps``."""
        step = float(self.time[1] - self.time[0])
        seen = MotionSpline(self.time, max(SPACING, SAMPLES * step))
        return seen, seen.at(self.stamps)

    @property
    def around(self) -> int:
        """Number of samples around a reversal that do not count either.

        Dry friction makes the acceleration jump there. A spline does that within as many intervals
        as a coefficient acts on; held to the equations there, it would ring far beside them.
        """
        step = float(np.median(np.diff(self.stamps)))
        length = (self.time[-1] - self.time[0]) / self.splines[0].intervals
        return DEGREE * int(np.ceil(length / step)) + 1


@dataclass(frozen=True, eq=False)
class Condensed:
    """Equations of the step of the parameters from one stretch: its motion is eliminated.

    ``normal`` (b, b) and ``right`` (b,); coefficients of the motion step by ``own - response @
    step``, (c,) and (c, b). The motion takes up ``absorbed`` (m,) of ``counted`` (m,) equations.
    """

    normal: FloatArray
    right: FloatArray
    own: FloatArray
    response: FloatArray
    absorbed: FloatArray
    counted: FloatArray


@dataclass(frozen=True, eq=False)
class LatentState:
    """Coefficients (c, m) of the splines, parameters ``values`` (b,), the ``shapes`` (s,).

    ``errors`` (m,) [N m] of the equations, and the ``speed`` [rad/s] above which they count; of
    every stretch (M, m), 1 where an equation ``counted`` in all rounds before, () for no such.
    """

    coefficients: tuple[FloatArray, ...]
    values: FloatArray
    shapes: FloatArray
    errors: FloatArray
    speed: float
    counted: tuple[FloatArray, ...] = ()

    def of(self, members: Sequence[int]) -> LatentState:
        """Return the state of some of the stretches."""
        return replace(self, coefficients=tuple(self.coefficients[i] for i in members),
                       counted=tuple(self.counted[i] for i in members) if self.counted else ())


@dataclass(frozen=True, eq=False)
class AlongStretch:
    """Equations along the ``motion`` of a ``stretch``: ``columns`` (m, b + s, M) and ``counts``.

    The last columns are those of the logarithms of shapes; ``counts`` (M, m) are 1 where an
    equation counts.
    """

    stretch: Stretch
    motion: list[FloatArray]
    equations: CoordinateEquations
    columns: FloatArray
    counts: FloatArray

    @property
    def effort(self) -> FloatArray:
        """Measured efforts (M, m) [N m] of the equations."""
        return self.stretch.effort @ self.equations.rows.T

    def misfit(self, values: FloatArray) -> FloatArray:
        """Return the effort (M, m) [N m] beyond that of the parameters ``values`` (b,)."""
        return self.effort - np.tensordot(values, self.columns[:, :len(values)], (0, 1)).T


@dataclass(frozen=True, eq=False)
class LatentFit:
    """State at the end, the equations there, and the ``rounds`` it took.

    ``motion`` is that of every stretch: position, velocity, acceleration (N, m) at its times.
    """

    state: LatentState
    condensed: tuple[Condensed, ...]
    rounds: int
    motion: tuple[list[FloatArray], ...]


@dataclass(frozen=True)
class Searched:
    """Setting that friction laws of ``axes`` share, sought, too; ``path`` says where it is.

    It is positive, from ``low`` to ``high``, such as the speed over which friction falls.
    """

    axes: tuple[int, ...]
    path: Path
    low: float
    high: float

    def applied(self, block: JointFriction, shape: float) -> JointFriction:
        """Return friction with this ``shape``."""
        return replace(block, laws=tuple(
            law.reshaped({self.path: shape}) if axis in self.axes else law
            for axis, law in enumerate(block.laws)))


@dataclass(frozen=True, eq=False)
class LatentProblem:
    """Stretches of recordings and the model that is fitted to them.

    Base parameters that are ``chosen`` (b,) are sought, all others are zero; and shapes of
    friction that are ``searched``. ``slowest`` (a,) [rad/s, m/s] are the speeds of the axes below
    which no equation with their friction counts; () for those of all.
    """

    model: TorqueModel
    stretches: tuple[Stretch, ...]
    chosen: NDArray[np.bool_]
    searched: tuple[Searched, ...] = ()
    slowest: FloatArray = field(default_factory=lambda: NOTHING)

    def with_shapes(self, shapes: FloatArray) -> TorqueModel:
        """Return the model with ``shapes`` (s,)."""
        if not self.searched:
            return self.model
        blocks: list[Effect] = []
        for block in self.model.blocks:
            if isinstance(block, JointFriction):
                for one, shape in zip(self.searched, shapes.tolist(), strict=True):
                    block = one.applied(block, shape)
            blocks.append(block)
        return replace(self.model, blocks=tuple(blocks))

    @property
    def with_known_parameters(self) -> LatentProblem:
        """The problem of the motion alone."""
        return replace(self, chosen=np.zeros_like(self.chosen), searched=())

    def guess(
        self, shapes: FloatArray = NOTHING, values: FloatArray | None = None
    ) -> LatentState:
        """Return a smooth motion with parameters (b,), by default by least squares along it."""
        smooth, speed = [self._smooth(one) for one in self.stretches], SPEEDS[0]
        coefficients = tuple(motion for motion, _ in smooth)
        errors = np.ones(self.model.robot.coordinates)
        found = np.zeros(len(self.chosen)) if values is None else values
        state = LatentState(coefficients, found, shapes, errors, speed)
        coarse = [motion for _, motion in smooth]
        if values is None:
            for _ in range(3):
                state = replace(state, values=self._by_least_squares(state, coarse))
                state = replace(state, errors=self._spread(state, None, coarse))
        return replace(state, errors=self._tied(self._spread(state, None, coarse)))

    def fit(self, state: LatentState, progress: Progress = lambda *_: None) -> LatentFit:
        """Go from ``state`` by Gauss and Newton until the errors of the equations stay."""
        condensed: tuple[Condensed, ...] = ()
        state = replace(state, counted=())
        for number in range(ROUNDS):
            progress('estimating motion and parameters at once', number / ROUNDS)
            before = state
            condensed = self.condensed(before)
            state = self.better(before, condensed, SPEEDS[min(number, len(SPEEDS) - 1)])
            if number >= len(SPEEDS):
                if self._settled(before, state, condensed):
                    break
                state = replace(state, counted=self._counting(state))
        motion = tuple(one.splines[0].motion(c) for one, c in zip(
            self.stretches, state.coefficients, strict=True))
        return LatentFit(state, self.condensed(state), number + 1, motion)

    def without(self, state: LatentState, group: Sequence[int]) -> LatentState:
        """Return the state of a fit without a ``group`` of stretches, which are left as they are.

        Errors stay. Steps are those of Gauss and Newton, extrapolated (Anderson's mixing): noise
        that is in the regressor, too, makes them too short, the more so the weaker a direction.
        """
        rest = [i for i in range(len(self.stretches)) if i not in group]
        own = replace(self, stretches=tuple(self.stretches[i] for i in rest))
        here = state.of(rest)
        before: tuple[FloatArray, FloatArray] | None = None
        for _ in range(REFIT):
            condensed = own.condensed(here)
            step = own.step(condensed)
            change = step
            if before is not None:
                off = step - before[1]
                normal = np.sum([one.normal for one in condensed], axis=0)
                size = float(off @ normal @ off)
                share = float(off @ normal @ step) / size if size > 0.0 else 0.0
                change = step - np.clip(share, -MIXED, 0.0) * (before[0] + off)
            before = change, step
            here = own.stepped(here, condensed, change)
        return replace(here, coefficients=state.coefficients, counted=state.counted)

    def stepped(
        self, state: LatentState, condensed: Sequence[Condensed], change: FloatArray
    ) -> LatentState:
        """Return the state after a ``change`` (k,) of what is sought, motions with it."""
        count = int(self.chosen.sum())
        values = state.values.copy()
        values[self.chosen] += change[:count]
        steps = np.clip(change[count:], -LONGEST, LONGEST)
        shapes = np.array([np.clip(shape * np.exp(own), one.low, one.high) for shape, own, one in
                           zip(state.shapes, steps, self.searched, strict=True)])
        made = change.copy()
        made[count:] = np.log(shapes / state.shapes)
        return replace(state, values=values, shapes=shapes, coefficients=tuple(
            c + (one.own - one.response @ made).reshape(c.shape)
            for c, one in zip(state.coefficients, condensed, strict=True)))

    def better(
        self, state: LatentState, condensed: Sequence[Condensed], speed: float
    ) -> LatentState:
        """Return the state after a step, its errors those above ``speed`` [rad/s]."""
        found = replace(self.stepped(state, condensed, self.step(condensed)), speed=speed)
        found = self.with_best_motion(found)
        moved = np.max(np.abs(np.log(found.shapes / state.shapes)), initial=0.0)
        share = HELD if moved > MOVING else SLOWLY
        errors = np.maximum(self._spread(found, condensed), share * state.errors)
        return replace(found, errors=self._tied(errors))

    def with_best_motion(self, state: LatentState) -> LatentState:
        """Return the state with the motion of its parameters, after one step of it alone.

        A step of both changes products of both, which is much beside small errors of equations.
        """
        return replace(state, coefficients=tuple(c + one.own.reshape(c.shape) for c, one in zip(
            state.coefficients, self.condensed(state), strict=True)))

    def condensed(self, state: LatentState) -> tuple[Condensed, ...]:
        """Linearise at ``state`` and eliminate the motion, stretch by stretch."""
        found = []
        for along, c in zip(
                self.along(state, self.motions_of(state)), state.coefficients, strict=True):
            found.append(self._eliminated(c, state, along))
        return tuple(found)

    def step(self, condensed: Sequence[Condensed]) -> FloatArray:
        """Return the step (k,) of parameters and logarithms of shapes that stretches want."""
        normal = np.sum([one.normal for one in condensed], axis=0)
        own = np.arange(len(normal) - len(self.searched), len(normal))
        normal[own, own] += LOOSE**-2
        return _solved(normal, np.sum([one.right for one in condensed], axis=0))

    def misfit(self, state: LatentState, members: Sequence[int], rounds: int) -> float:
        """Return the negative logarithm of the likelihood per sample of stretches ``members``.

        Their motion is the best one for the parameters of ``state``, from whose motion ``rounds``
        of Gauss-Newton go. Errors of equations count as Cauchy's: large ones by their logarithm.
        """
        own = replace(self, stretches=tuple(self.stretches[i] for i in members))
        here = state.of(members)
        for _ in range(rounds):
            here = own.with_best_motion(here)
        return own._unlikely(here)

    def _recordings(self) -> Iterator[tuple[int, int]]:
        """Yield the first stretch of every recording, and the one behind its last."""
        first = 0
        for i, one in enumerate(self.stretches):
            if one.recording != self.stretches[first].recording:
                yield first, i
                first = i
        yield first, len(self.stretches)

    @property
    def _sought(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.append(self.chosen, np.ones(len(self.searched), dtype=bool)))

    def _equations(self, shapes: FloatArray) -> CoordinateEquations:
        return CoordinateEquations(self.with_shapes(shapes))

    def motions_of(self, state: LatentState) -> list[list[FloatArray]]:
        """Return the motion of every stretch: position and its derivatives (N, m)."""
        return [one.splines[1].motion(c) for one, c in zip(
            self.stretches, state.coefficients, strict=True)]

    def along(
        self, state: LatentState, motions: Sequence[list[FloatArray]]
    ) -> Iterator[AlongStretch]:
        """Yield the equations along every stretch, at its motion: position and derivatives (M, m).

        Stretches that follow each other make one motion, for friction that depends on the past.
        """
        equations = self._equations(state.shapes)
        for first, stop in self._recordings():
            own, start = self.stretches[first:stop], 0
            samples = _joined(equations.model, own, motions[first:stop])
            regression = Regression(equations.model, samples)
            by_shapes = self._by_shapes(equations, samples, state)
            for i, one in enumerate(own, first):
                rows = slice(start, start + len(one.stamps))
                start = rows.stop
                columns = np.tensordot(equations.rows, regression.columns(rows), (1, 0))
                columns = np.concatenate([columns, by_shapes[:, :, rows]], axis=1)
                counts = self._counts(one, motions[i], state.speed)
                if state.counted:
                    counts = counts * state.counted[i]
                yield AlongStretch(one, motions[i], equations, columns, counts)

    def _counting(self, state: LatentState) -> tuple[FloatArray, ...]:
        """Return (M, m) of every stretch: where an equation counts, and has all along.

        One that counts in every other round, for the motion keeps off its reversal only where it
        does not, would shake the motion for ever.
        """
        return tuple(one.counts for one in self.along(state, self.motions_of(state)))

    def _by_shapes(
        self, equations: CoordinateEquations, samples: Samples, state: LatentState
    ) -> FloatArray:
        """Return the change (m, s, N) of the equations with the logarithms of shapes."""
        found = np.zeros((len(equations.rows), len(self.searched), len(samples)))
        first = 0
        model = equations.model
        for block, kept in zip(model.blocks, model.pivots_by_block, strict=True):
            values = state.values[first:first + len(kept)]
            first += len(kept)
            if not isinstance(block, JointFriction):
                continue
            into, owners = equations.rows @ block.axes.effort.T, np.array(block.owners)
            weights = np.zeros(len(owners))
            weights[kept] = values
            for k, (one, shape) in enumerate(zip(self.searched, state.shapes, strict=True)):
                other = one.applied(block, shape * float(np.exp(STRETCH)))
                for axis in one.axes:
                    change = other.history(samples, [axis]) - block.history(samples, [axis])
                    torque = weights[owners == axis] @ change / STRETCH
                    found[:, k] += into[:, axis, None] * torque
        return found

    def _counts(self, one: Stretch, motion: Sequence[FloatArray], speed: float) -> FloatArray:
        """Return (N, m) 1 where an equation counts: none of its axes is about to reverse."""
        slowest = np.maximum(self.slowest, speed) if len(self.slowest) else speed
        return CoordinateEquations(self.model).counts(motion[1], slowest, one.around)

    def _tied(self, errors: FloatArray) -> FloatArray:
        """Return errors (m,) [N m], those of links behind gears at most their motors'.

        No effort is in the equation of such a link: a model of nothing at all would fulfil it, and
        errors of its own, free to fall, would make that the most probable one.
        """
        found = errors.copy()
        for gear in self.model.gears:
            most = errors[gear.motor]
            found[gear.joint] = np.clip(errors[gear.joint], most / TIGHTER, most)
        return found

    def _eliminated(
        self, coefficients: FloatArray, state: LatentState, along: AlongStretch
    ) -> Condensed:
        from scipy.linalg import solveh_banded

        one, columns, counts = along.stretch, along.columns, along.counts
        misfit = along.misfit(state.values)
        weights = counts / state.errors / np.sqrt(1.0 + (misfit / (CAUCHY * state.errors)) ** 2)
        by_values = (columns[:, self._sought] * weights.T[:, None, :]).transpose(2, 0, 1)
        position, velocity, acceleration = along.motion
        slopes = along.equations.slopes((position, velocity, acceleration), state.values)
        seen, told = one.splines
        by_motion = np.sum([told.local(slope * weights[:, :, None], order)
                            for order, slope in enumerate(slopes)], axis=0)
        off = misfit * weights
        at_channels = seen.motion(coefficients)
        measured = _measured(seen, one.channels)
        rest = np.concatenate([(c.values - at_channels[c.order]) / c.deviation
                               for c in one.channels], axis=1)
        cross = told.gathered(by_motion, by_values)
        right = told.gathered(by_motion, off[:, :, None]) + seen.gathered(
            measured, rest[:, :, None])
        signs = _probes(off.shape)
        probes = told.gathered(by_motion, signs)
        solved = solveh_banded(seen.normal(measured) + told.normal(by_motion),
                               np.hstack([right, cross, probes]), lower=True)
        own, response = solved[:, 0], solved[:, 1:1 + cross.shape[1]]
        absorbed = np.sum(probes * solved[:, 1 + cross.shape[1]:], axis=0)
        return Condensed(
            np.einsum('nra,nrb->ab', by_values, by_values) - cross.T @ response,
            np.einsum('nra,nr->a', by_values, off) - cross.T @ own, own, response,
            absorbed.reshape(PROBES, -1).mean(axis=0), counts.sum(axis=0))

    def _spread(
        self, state: LatentState, condensed: Sequence[Condensed] | None,
        motions: Sequence[list[FloatArray]] | None = None,
    ) -> FloatArray:
        """Return the typical error (m,) of the equations that count, by their median."""
        sizes, scale = [], []
        for along in self.along(state, self.motions_of(state) if motions is None else motions):
            misfit = along.misfit(state.values)
            sizes.append(np.where(along.counts > 0.0, np.abs(misfit), np.nan))
            scale.append(along.stretch.effort[:, :misfit.shape[1]])
        every = np.concatenate(sizes)
        none = np.isnan(every).all(axis=0)
        every[:, none] = 0.0
        found = 1.4826 * np.nanmedian(every, axis=0)
        if condensed is not None:
            absorbed = sum((one.absorbed for one in condensed), np.zeros(len(found)))
            counted = sum((one.counted for one in condensed), np.zeros(len(found)))
            share = np.minimum(absorbed / np.maximum(counted, 1.0), ABSORBED)
            found = found / np.sqrt(1.0 - share)
        return np.asarray(np.maximum(found, EXACT * np.concatenate(scale).std(axis=0) + 1e-12))

    def _unlikely(self, state: LatentState) -> float:
        """Return the negative logarithm of the likelihood per sample, but for constants."""
        off, counted = np.zeros_like(state.errors), np.zeros_like(state.errors)
        seen, samples = [], 0
        for along, c in zip(
                self.along(state, self.motions_of(state)), state.coefficients, strict=True):
            one = along.stretch
            off += np.sum(along.counts * CAUCHY**2 * np.log1p(
                (along.misfit(state.values) / (CAUCHY * state.errors)) ** 2), axis=0)
            counted += along.counts.sum(axis=0)
            at = one.splines[0].motion(c)
            seen += [float(np.sum(((k.values - at[k.order]) / k.deviation) ** 2))
                     for k in one.channels]
            samples += len(one.time)
        told = np.log(state.errors) + 0.5 * off / np.maximum(counted, 1.0)
        return float(np.sum(told) + 0.5 * sum(seen) / samples)

    def _smooth(self, one: Stretch) -> tuple[FloatArray, list[FloatArray]]:
        """Return coefficients of a smooth motion, and it at the stamps."""
        from scipy.linalg import solveh_banded

        coarse = MotionSpline(one.time, max(COARSE, SAMPLES * float(one.time[1] - one.time[0])))
        measured = _measured(coarse, one.channels)
        right = np.concatenate([c.values / c.deviation for c in one.channels], axis=1)
        found = solveh_banded(coarse.normal(measured),
                              coarse.gathered(measured, right[:, :, None]), lower=True)
        smooth = np.asarray(found.reshape(-1, one.channels[0].values.shape[1]))
        return (one.splines[0].fitted(coarse.motion(smooth)[0]),
                coarse.at(one.stamps).motion(smooth))

    def _by_least_squares(
        self, state: LatentState, motions: Sequence[list[FloatArray]]
    ) -> FloatArray:
        """Return the parameters (b,) by least squares along motions."""
        count = int(self.chosen.sum())
        normal, right = np.zeros((count, count)), np.zeros(count)
        for along in self.along(state, motions):
            weights = (along.counts / state.errors).T
            own = along.columns[:, :len(self.chosen)][:, self.chosen] * weights[:, None, :]
            target = along.effort.T * weights
            normal += np.einsum('man,mbn->ab', own, own)
            right += np.einsum('man,mn->a', own, target)
        every: FloatArray = np.zeros(len(self.chosen))
        every[self.chosen] = _solved(normal, right)
        return every

    def _settled(
        self, before: LatentState, state: LatentState, condensed: Sequence[Condensed]
    ) -> bool:
        """Return whether a round has changed neither errors nor shapes nor parameters."""
        change = (state.values - before.values)[self.chosen]
        normal = np.sum([one.normal for one in condensed], axis=0)[:len(change), :len(change)]
        return bool(change @ normal @ change < SETTLED
                    and np.allclose(before.errors, state.errors, rtol=SETTLED)
                    and np.allclose(before.shapes, state.shapes, rtol=SETTLED))


def _solved(normal: FloatArray, right: FloatArray) -> FloatArray:
    if not len(right):
        return right
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-12, hermitian=True)
    return np.asarray(inverse @ (right / scale) / scale)


def _probes(shape: tuple[int, ...]) -> FloatArray:
    """Return random signs (N, m, PROBES m), each column on one equation only."""
    count, m = shape
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, (count, PROBES, m)) * 2.0 - 1.0
    found = np.zeros((count, m, PROBES, m))
    found[:, range(m), :, range(m)] = signs.transpose(2, 0, 1)
    return found.reshape(count, m, -1)


def _joined(
    model: TorqueModel, stretches: Sequence[Stretch], motions: Sequence[list[FloatArray]]
) -> Samples:
    """Return the motion of stretches of one recording at their stamps."""
    position, velocity, acceleration = (np.concatenate([motion[k] for motion in motions])
                                        for k in range(ORDERS))
    firsts = np.cumsum([0, *(len(one.stamps) for one in stretches[:-1])])
    starts = tuple(int(first) for first, one in zip(firsts, stretches, strict=True)
                   if first == 0 or not one.goes_on)
    warm = [one.temperature for one in stretches if one.temperature is not None]
    return Samples(
        model.robot.joints, np.concatenate([one.stamps for one in stretches]), position, velocity,
        acceleration, starts=starts, began=stretches[0].began,
        temperature=np.concatenate(warm) if len(warm) == len(stretches) else None)


def _measured(spline: MotionSpline, channels: Sequence[Channel]) -> FloatArray:
    """Return the local derivatives of what the channels see, over their deviations."""
    count = len(channels[0].values)
    return np.concatenate([spline.local(np.broadcast_to(
        np.diag(1.0 / c.deviation), (count, *2 * c.deviation.shape)), c.order)
        for c in channels], axis=1)
