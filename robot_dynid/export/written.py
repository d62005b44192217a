"""An arm as a form of file can hold it, and the effort that is missing there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.elastic import ElasticDynamics
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rigid_body import ForwardDynamics, InverseDynamics
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.effects.ripple import RippleTorque
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.sliding_friction import SlidingFriction, sliding_from
from robot_dynid.friction import AxisFriction
from robot_dynid.friction.terms import RAMP, Term
from robot_dynid.kernels.friction import KIND, ROW, STOP
from robot_dynid.kernels.newton_euler import SPRING
from robot_dynid.types import FloatArray

#: speed [rad/s, m/s] from which written dry friction has its size
STEEP = 1e-9
#: parts of numbers that are rounding only
ROUNDING = 1e-12
#: random states by which the effort of what is left out is measured
STATES = 1024


@dataclass(frozen=True)
class Form:
    """Effects that a form of file or object, called ``name``, holds beside links and limits.

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
    """An ``arm`` as a ``form`` holds it."""

    arm: IdentifiedArm
    form: Form

    @cached_property
    def friction(self) -> SlidingFriction:
        """Friction of the axes that the form knows, with zero for what it cannot hold."""
        of = SlidingFriction.of_axes if self.form.coupled else SlidingFriction.of_joints
        return of(self.arm)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of friction: the joints, then ``motor of ...``."""
        robot = self.arm.robot
        motors = robot.drive.coupled if self.form.coupled else ()
        return (*robot.joints, *(f'motor of {robot.joints[i]}' for i in motors))

    @cached_property
    def mechanism(self) -> Mechanism:
        """The arm with what the form holds, and nothing else."""
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
        found, form, n = self.friction, self.form, self.arm.robot.n
        axes = self.arm.mechanism.friction.axes if form.coupled else np.eye(n)
        straight = np.stack([form.damping * found.damping, form.offset * found.offset], axis=1)
        rows = [Term(RAMP, STEEP, float(dry)).row(i, True)
                for i, dry in enumerate(found.dry) if form.dry and dry != 0.0]
        none = np.zeros((0, 0))
        whole = self.arm.mechanism.friction
        return replace(whole, axes=np.ascontiguousarray(axes), straight=straight,
                       terms=np.array(rows).reshape(-1, whole.terms.shape[1]),
                       transmission=none.reshape(0, n), links=none.reshape(0, 10))

    @cached_property
    @one_blas_thread()
    def missing(self) -> FloatArray:
        """Effort (2, n) [N m, N] by which it is off the arm: root mean square, and at most.

        At random states of the training in which all axes slide, both ways; gears are stiff.
        """
        whole = self.arm.mechanism
        q, qd, qdd = self.arm.states(STATES)
        rows = np.all(np.abs(qd @ whole.friction.axes.T) > sliding_from(whole.friction), axis=1)
        rows = rows if rows.any() else ~rows
        q, qd, qdd = q[rows], qd[rows], qdd[rows]
        states = (np.tile(q, (2, 1)), np.concatenate([qd, -qd]), np.tile(qdd, (2, 1)))
        off = effort(whole, *states) - effort(self.mechanism, *states)
        return np.stack([np.sqrt(np.mean(off**2, axis=0)), np.abs(off).max(axis=0)])

    @cached_property
    def ripple(self) -> FloatArray:
        """Torque ripple (n,) [N m, N] that is left out: root mean square at random states."""
        states = self.arm.states(STATES)
        left_out = RippleTorque(self.arm.ripples)(*states[:2], effort(self.arm.mechanism, *states))
        return np.asarray(np.sqrt(np.mean(left_out**2, axis=0)))

    def warnings(self) -> Iterator[str]:
        """Yield sentences about the properties that are not, or not exactly, written."""
        yield from self._negative()
        left = [f'{kind}: {what}' for kind, what in self._left_out() if what]
        if left:
            yield f'only in the model file, {self.form.name} cannot hold them: {"; ".join(left)}'
        rms, most = self.missing
        names = self.arm.robot.joints
        worse = [f'{name} {a:.3g} ({b:.3g})' for name, a, b in zip(names, rms, most, strict=True)
                 if b > ROUNDING * max(1.0, float(most.max()))]
        if worse:
            yield (f'the effort of {self.form.name} is off that of the model by, rms (at most) '
                   f'[N m]: {", ".join(worse)}; at random states of the trained ranges')
        if self.arm.not_identified:
            yield f'not identified, do not rely on them: {", ".join(self.arm.not_identified)}'

    def facts(self) -> dict[str, Any]:
        """Return the written friction by axis, and by joint the effort that is missing."""
        found, (rms, most) = self.friction, self.missing
        columns = {'damping': found.damping, 'friction': found.dry, 'offset': found.offset,
                   'rms': found.rms, 'most': found.most, 'speed': found.speed}
        return {
            'friction': [{'axis': axis, **{key: float(column[i])
                                           for key, column in columns.items()}}
                         for i, axis in enumerate(self.axes)],
            'missing': [{'joint': joint, 'rms': float(a), 'most': float(b), 'ripple': float(c)}
                        for joint, a, b, c in zip(self.arm.robot.joints, rms, most, self.ripple,
                                                  strict=True)],
        }

    def _negative(self) -> Iterator[str]:
        for name, values in zip(self.axes, self.friction.fitted, strict=True):
            for tag, value in zip(('damping', 'friction'), values, strict=True):
                if value < 0.0:
                    yield (f'joint {name}: the identified {tag} {value:.3g} is negative; 0 is '
                           'written')

    def _left_out(self) -> Iterator[tuple[str, str]]:
        whole, form, joints = self.arm.mechanism, self.form, self.arm.robot.joints
        if not form.rotors:
            yield 'rotor inertia [kg m^2]', _listed(joints, np.diag(whole.rotors.inertia))
        elif not form.coupled:
            shared = whole.rotors.inertia - np.diag(np.diag(whole.rotors.inertia))
            yield 'rotors that turn with several joints', _listed(joints, np.abs(shared).max(1))
        turning = np.abs(whole.rotors.motions).sum(axis=0) if whole.rotors.coupled else ()
        yield 'rotors that spin on moving links', ', '.join(
            joint for joint, own in zip(joints, turning) if own > 0.0)
        if not form.dry:
            yield 'dry friction [N m]', _listed(self.axes, self.friction.dry)
        if not form.damping:
            yield 'viscous friction [N m s/rad]', _listed(self.axes, self.friction.damping)
        yield 'other friction, rms [N m]', _listed(self.axes, self.friction.rms)
        if not form.offset:
            yield 'offset of the effort [N m]', _listed(self.axes, self.friction.offset)
        if whole.gears is not None and not form.gears:
            yield 'gears that give', ', '.join(joints[j] for j in whole.gears.joints)
        if whole.gears is not None:
            elastic = np.array([joints[j] for j in whole.gears.joints])
            yield 'kinematic error of gears', ', '.join(elastic[whole.gears.wavy])
            yield 'hysteresis of gears', ', '.join(elastic[whole.gears.hysteretic])
        past = whole.friction.terms[whole.friction.terms[:, KIND] >= STOP, ROW].astype(int)
        yield 'friction that builds up after a reversal', ', '.join(
            name for i, name in enumerate(self.axes) if i in past)
        yield 'counterbalance, at most [N m]', _listed(
            joints, np.linalg.norm(whole.links[:, SPRING:SPRING + 2], axis=1))
        yield 'torque ripple, rms [N m]', _listed(joints, self.ripple)
        yield 'friction that warms up or drifts', ', '.join(self.arm.changing)


def _listed(names: Sequence[str], values: Iterable[float]) -> str:
    return ', '.join(f'{name} {value:.3g}' for name, value in zip(names, values, strict=True)
                     if abs(value) > ROUNDING)


def effort(mechanism: Mechanism, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return the effort (K, n) [N m, N] of states (K, n) with stiff gears, in steady sliding."""
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
