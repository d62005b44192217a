"""An arm as representable in a file format, the missing effort, and states to check it.

Simulators model viscous, dry and constant friction. These parts of the identified laws are written
unchanged; the rest (Stribeck, direction, saturation, load dependence) is fitted in least squares
over the trained speeds, at loads of random states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.elastic import ElasticDynamics
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rigid_body import ForwardDynamics, InverseDynamics, inverse_dynamics
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.effects.ripple import RippleTorque
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.friction import AxisFriction
from robot_dynid.friction.terms import Term
from robot_dynid.kernels.friction import (
    ABOVE,
    FADE,
    HOLDS,
    KIND,
    LOAD,
    RAMP,
    ROW,
    SCALE,
    SIDE,
    STOP,
    TANH,
    WEIGHT,
    WIDTH,
)
from robot_dynid.kernels.newton_euler import SPRING
from robot_dynid.types import FloatArray

#: speed [rad/s, m/s] above which written dry friction is fully developed
DRY_FRICTION_SPEED = 1e-9
#: relative rounding tolerance
WRITTEN_ROUNDING = 1e-12
#: impedance of dry friction within one step of MuJoCo, below 1
FRICTION_IMPEDANCE = 0.9999
#: random states for the friction fit and the missing effort, each with its mirror image
WRITTEN_STATES = 1024
#: states for the comparison of accelerations
COMPARED_STATES = 1000
#: difference between gear and motor torque in these states, relative to the effort
UNBALANCED = 0.1


@dataclass(frozen=True, eq=False)
class SlidingFriction:
    """Friction ``damping`` v + ``dry`` sign(v) + ``offset`` of m axes.

    ``damping`` [N m s/rad, N s/m], ``dry`` and ``offset`` [N m, N], each (m,), the first two not
    negative; ``fitted`` (m, 2) are both before clipping. ``rms`` and ``largest`` (m,) [N m, N]:
    error against the laws at speeds up to ``speed`` (m,) [rad/s, m/s].
    """

    damping: FloatArray
    dry: FloatArray
    offset: FloatArray
    fitted: FloatArray
    rms: FloatArray
    largest: FloatArray
    speed: FloatArray


def axis_friction(arm: IdentifiedArm) -> SlidingFriction:
    """Return that of the axes: every joint, then every motor that turns with several."""
    return _fitted(*_sliding_states(arm), *_simple_parts(arm.mechanism.friction))


def joint_friction(arm: IdentifiedArm) -> SlidingFriction:
    """Return that of the joints (n,), including shares of motors that turn with several."""
    n, axes, (speed, torque) = arm.robot.n, arm.mechanism.friction.axes, _sliding_states(arm)
    parts, simple = _simple_parts(arm.mechanism.friction)
    alone = simple[:n] & ~np.any(axes[n:] != 0.0, axis=0)
    return _fitted(speed[:, :n], torque @ axes, parts[:n], alone)


def sliding_from(friction: AxisFriction) -> FloatArray:
    """Return the speeds (a,) [rad/s, m/s] above which the dry friction of axes is fully developed.
    """
    terms, kind = friction.terms, friction.terms[:, KIND]
    holds = (terms[:, HOLDS] != 0.0) & ((kind == RAMP) | (kind == TANH) | (kind >= STOP))
    width = np.where(kind >= STOP, terms[:, WIDTH], terms[:, SCALE])
    least = np.full(len(friction.axes), np.inf)
    np.minimum.at(least, terms[holds, ROW].astype(np.int64), width[holds])
    return np.where(np.isfinite(least), least, 0.0)


def _sliding_states(arm: IdentifiedArm) -> tuple[FloatArray, FloatArray]:
    """Return speed and torque (K, a) of the axes in random states, forward and backward.

    Speeds at which an axis does not slide yet are NaN.
    """
    friction, (q, qd, qdd) = arm.mechanism.friction, arm.states(WRITTEN_STATES)
    load = None
    if friction.needs_load:
        effort = inverse_dynamics(arm.robot, q, qd, qdd, friction.links)
        load = np.concatenate(2 * [effort @ friction.transmission.T])
    speed = np.concatenate([qd, -qd]) @ friction.axes.T
    torque = replace(friction, axes=np.eye(len(friction.axes))).torque(
        np.ascontiguousarray(speed), load)
    size = np.abs(speed)
    slides = size > np.minimum(sliding_from(friction), 0.5 * size.max(axis=0))
    return np.where(slides, speed, np.nan), torque


def _simple_parts(friction: AxisFriction) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return viscous, dry, constant friction (a, 3) of laws, and a mask of those without more."""
    terms, kind = friction.terms, friction.terms[:, KIND]
    plain = (terms[:, HOLDS] != 0.0) & ((kind == RAMP) | (kind >= STOP))
    plain &= np.all(terms[:, [SIDE, ABOVE, FADE, LOAD]] == 0.0, axis=1)
    count, rows = len(friction.axes), terms[:, ROW].astype(np.int64)
    parts, simple = np.zeros((count, 3)), np.ones(count, dtype=bool)
    parts[:, [0, 2]] = friction.straight
    np.add.at(parts[:, 1], rows[plain], terms[plain, WEIGHT])
    simple[rows[~plain]] = False
    return parts, simple


def _fitted(speed: FloatArray, torque: FloatArray, parts: FloatArray, simple: NDArray[np.bool_]
            ) -> SlidingFriction:
    """Fit ``torque`` (K, m) at ``speed`` (K, m), starting from ``parts`` (m, 3)."""
    from scipy.optimize import nnls

    wanted, possible = parts.copy(), parts.copy()
    errors = np.zeros((2, len(parts)))
    for i in range(len(parts)):
        rows = np.isfinite(speed[:, i])
        v, effort = speed[rows, i], torque[rows, i]
        design = np.stack([v, np.sign(v), np.ones(len(v))], axis=1)
        if not simple[i]:
            wanted[i] += np.linalg.lstsq(design, effort - design @ parts[i], rcond=None)[0]
        possible[i] = wanted[i]
        if wanted[i, :2].min() < 0.0:
            x, _ = nnls(np.column_stack([design, -design[:, 2]]), effort)
            possible[i] = *x[:2], x[2] - x[3]
        off = effort - design @ possible[i]
        errors[:, i] = np.sqrt(np.mean(off**2)), np.abs(off).max()
    damping, dry, offset = possible.T
    return SlidingFriction(damping, dry, offset, wanted[:, :2], errors[0], errors[1],
                           np.nanmax(np.abs(speed), axis=0))


@dataclass(frozen=True)
class Form:
    """Effects other than links and limits that a format, called ``name``, holds.

    ``rotors``: inertia of rotors that turn with one joint; ``coupled``: rotors and friction of
    motors that turn with several; ``damping``, ``dry``, ``offset``: friction; ``gears``: springs.
    """

    name: str
    rotors: bool = False
    coupled: bool = False
    damping: bool = False
    dry: bool = False
    offset: bool = False
    gears: bool = False


@dataclass(frozen=True, eq=False)
class Written:
    """An ``arm`` as representable in a ``form``."""

    arm: IdentifiedArm
    form: Form

    @cached_property
    def friction(self) -> SlidingFriction:
        """Friction of the axes of the form, zero for terms it cannot hold."""
        return (axis_friction if self.form.coupled else joint_friction)(self.arm)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of friction: the joints, then ``motor of ...``."""
        robot = self.arm.robot
        motors = robot.drive.coupled if self.form.coupled else ()
        return (*robot.joints, *(f'motor of {robot.joints[i]}' for i in motors))

    @cached_property
    def mechanism(self) -> Mechanism:
        """Arm with only the effects that the form holds."""
        whole = self.arm.mechanism
        gears = whole.gears.linear if self.form.gears and whole.gears is not None else None
        return replace(whole, links=whole.bodies, rotors=Rotors.of(self._inertia),
                       friction=self._friction, gears=gears)

    @property
    def _inertia(self) -> FloatArray:
        inertia = self.arm.mechanism.rotors.inertia
        if self.form.coupled:
            return inertia
        return np.diag(np.diag(inertia)) if self.form.rotors else np.zeros_like(inertia)

    @property
    def _friction(self) -> AxisFriction:
        friction, form, n = self.friction, self.form, self.arm.robot.n
        axes = self.arm.mechanism.friction.axes if form.coupled else np.eye(n)
        straight = np.stack(
            [form.damping * friction.damping, form.offset * friction.offset], axis=1)
        rows = [Term(RAMP, DRY_FRICTION_SPEED, float(dry)).row(i, True)
                for i, dry in enumerate(friction.dry) if form.dry]
        none = AxisFriction.none(n)
        return replace(none, axes=np.ascontiguousarray(axes), straight=straight,
                       terms=np.array(rows).reshape(-1, none.terms.shape[1]))

    @cached_property
    @one_blas_thread()
    def missing(self) -> FloatArray:
        """Missing effort (2, n) [N m, N] against the arm: root mean square, and maximum.

        At random states of the training range in which all axes slide, both ways, with rigid
        gears.
        """
        whole = self.arm.mechanism
        q, qd, qdd = self.arm.states(WRITTEN_STATES)
        rows = np.all(np.abs(qd @ whole.friction.axes.T) > sliding_from(whole.friction), axis=1)
        rows = rows if rows.any() else ~rows
        q, qd, qdd = q[rows], qd[rows], qdd[rows]
        states = (np.concatenate([q, q]), np.concatenate([qd, -qd]), np.concatenate([qdd, qdd]))
        off = effort(whole, *states) - effort(self.mechanism, *states)
        return np.stack([np.sqrt(np.mean(off**2, axis=0)), np.abs(off).max(axis=0)])

    @cached_property
    def ripple(self) -> FloatArray:
        """Omitted torque ripple (n,) [N m, N]: root mean square at random states."""
        q, qd, qdd = self.arm.states(WRITTEN_STATES)
        left_out = RippleTorque(self.arm.ripples)(q, qd, effort(self.arm.mechanism, q, qd, qdd))
        return np.asarray(np.sqrt(np.mean(left_out**2, axis=0)))

    def warnings(self) -> Iterator[str]:
        """Yield sentences about properties that are not written exactly."""
        for name, values in zip(self.axes, self.friction.fitted, strict=True):
            yield from (f'joint {name}: the identified {tag} {value:.3g} is negative; 0 is written'
                        for tag, value in zip(('damping', 'friction'), values, strict=True)
                        if value < 0.0)
        left = [f'{kind}: {what}' for kind, what in self._left_out() if what]
        if left:
            yield f'only in the model file, {self.form.name} cannot hold them: {"; ".join(left)}'
        rms, peak = self.missing
        names = self.arm.robot.joints
        worse = [f'{name} {a:.3g} ({b:.3g})' for name, a, b in zip(names, rms, peak, strict=True)
                 if b > WRITTEN_ROUNDING * max(1.0, float(peak.max()))]
        if worse:
            yield (f'error of the effort of {self.form.name} relative to the model, rms (maximum) '
                   f"[N m]: {', '.join(worse)}; at random states of the trained ranges")
        if self.arm.not_identified:
            yield f'not identified, do not use: {", ".join(self.arm.not_identified)}'

    def facts(self) -> dict[str, Any]:
        """Return the written friction by axis, and by joint the effort that is missing."""
        friction, (rms, peak) = self.friction, self.missing
        columns = {'damping': friction.damping, 'friction': friction.dry,
                   'offset': friction.offset, 'rms': friction.rms,
                   'most': friction.largest, 'speed': friction.speed}
        return {
            'friction': [{'axis': axis, **{key: float(column[i])
                                           for key, column in columns.items()}}
                         for i, axis in enumerate(self.axes)],
            'missing': [{'joint': joint, 'rms': float(a), 'most': float(b), 'ripple': float(c)}
                        for joint, a, b, c in zip(self.arm.robot.joints, rms, peak, self.ripple,
                                                  strict=True)],
        }

    def _left_out(self) -> Iterator[tuple[str, str]]:
        whole, form, joints = self.arm.mechanism, self.form, self.arm.robot.joints
        if not form.rotors:
            yield 'rotor inertia [kg m^2]', _listed(joints, np.diag(whole.rotors.inertia))
        elif not form.coupled:
            shared = whole.rotors.inertia - np.diag(np.diag(whole.rotors.inertia))
            yield 'rotors that turn with several joints', _listed(joints, np.abs(shared).max(1))
        turning = np.abs(whole.rotors.motions).sum(axis=0) if whole.rotors.coupled else ()
        yield 'rotors that spin on moving links', ', '.join(
            joint for joint, spin in zip(joints, turning) if spin)
        if not form.dry:
            yield 'dry friction [N m]', _listed(self.axes, self.friction.dry)
        if not form.damping:
            yield 'viscous friction [N m s/rad]', _listed(self.axes, self.friction.damping)
        yield 'other friction, rms [N m]', _listed(self.axes, self.friction.rms)
        if not form.offset:
            yield 'offset of the effort [N m]', _listed(self.axes, self.friction.offset)
        if whole.gears is not None and not form.gears:
            yield 'elastic gears', ', '.join(joints[j] for j in whole.gears.joints)
        if whole.gears is not None:
            elastic = np.array([joints[j] for j in whole.gears.joints])
            yield 'kinematic error of gears', ', '.join(elastic[whole.gears.wavy])
            yield 'hysteresis of gears', ', '.join(elastic[whole.gears.hysteretic])
        past = whole.friction.terms[whole.friction.terms[:, KIND] >= STOP, ROW].astype(int)
        yield 'friction that builds up after a reversal', ', '.join(
            name for i, name in enumerate(self.axes) if i in past)
        yield 'springs at joints, maximum [N m]', _listed(
            joints, np.linalg.norm(whole.links[:, SPRING:SPRING + 2], axis=1))
        yield 'torque ripple, rms [N m]', _listed(joints, self.ripple)
        yield 'friction that warms up or drifts', ', '.join(self.arm.changing)


def rotor_name(joint: str) -> str:
    """Return the name of the rotor joint of an elastic ``joint``."""
    return f'{joint}_rotor'


def gear_name(joint: str) -> str:
    """Return the name of the twist of the gear of an elastic ``joint``."""
    return f'{joint}_gear'


def _listed(names: Sequence[str], values: Iterable[float]) -> str:
    return ', '.join(f'{name} {value:.3g}' for name, value in zip(names, values, strict=True)
                     if abs(value) > WRITTEN_ROUNDING)


def effort(mechanism: Mechanism, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return the effort (K, n) [N m, N] of states (K, n) with rigid gears, in steady sliding."""
    return InverseDynamics(
        mechanism.robot, mechanism.links, mechanism.rotors, mechanism.friction)(q, qd, qdd)


def accelerations(
    mechanism: Mechanism, x: FloatArray, v: FloatArray, drives: FloatArray
) -> FloatArray:
    """Return the accelerations (K, N) of states (K, N) under efforts ``drives`` (K, n) [N m, N].

    The N coordinates are those of the joints, then those of motors of elastic joints. Friction
    must not depend on the load.
    """
    gears = mechanism.gears
    if gears is None:
        friction = mechanism.friction.torque(np.ascontiguousarray(v))
        return ForwardDynamics(mechanism.robot, mechanism.links, mechanism.rotors)(
            x, v, drives - friction)[0]
    motors = list(gears.motors(mechanism.robot.n))
    friction = mechanism.friction.torque(np.ascontiguousarray(v[:, motors]))
    dynamics = ElasticDynamics(mechanism.robot, mechanism.links, mechanism.rotors, gears)
    return dynamics(x, v, drives - friction)[0]


@dataclass(frozen=True, eq=False)
class Motion:
    """States with position ``x`` and velocity ``v`` (K, N), joints before motors of elastic ones.

    ``effort`` (K, n) [N m, N] of the drives gives ``expected`` (K, N) accelerations.
    """

    x: FloatArray
    v: FloatArray
    effort: FloatArray
    expected: FloatArray

    @classmethod
    def of(cls, written: Written, slides: float = 0.0) -> Motion:
        """Return at most COMPARED_STATES random states in the training range of an arm.

        In all of them every axis of dry friction slides, by its law and with a speed above
        ``slides`` [s] times its acceleration.
        """
        mechanism, rng = written.mechanism, np.random.default_rng(1)
        q, qd, qdd = written.arm.states(4 * COMPARED_STATES, seed=1)
        drives = effort(mechanism, q, qd, qdd)
        x, v, columns = q, qd, list(range(q.shape[1]))
        if mechanism.gears is not None:
            elastic = list(mechanism.gears.joints)
            columns = list(mechanism.gears.motors(q.shape[1]))
            part = rng.uniform(1.0 - UNBALANCED, 1.0 + UNBALANCED, (len(q), len(elastic)))
            twist = drives[:, elastic] * part / mechanism.gears.stiffness
            x, v = np.hstack([q, q[:, elastic] + twist]), np.hstack([qd, qd[:, elastic]])
        expected = accelerations(mechanism, x, v, drives)
        law = written.arm.mechanism.friction
        axes, free = mechanism.friction.axes, written.friction.dry == 0.0
        rows = np.all(free | (np.abs(v[:, columns] @ axes.T)
                              > slides * np.abs(expected[:, columns] @ axes.T)), axis=1)
        rows &= np.all(np.abs(v[:, columns] @ law.axes.T) > sliding_from(law), axis=1)
        return cls(*(part[rows][:COMPARED_STATES] for part in (x, v, drives, expected)))

    def error(self, accelerations: FloatArray) -> float | None:
        """Return the largest error of accelerations (K, N) relative to those of the joint.

        None without states, as where the training range is slower than friction develops.
        """
        if not len(self.expected):
            return None
        size = np.abs(self.expected).max(axis=0)
        return float(np.max(np.abs(accelerations - self.expected).max(axis=0) / size))
