"""Gears of elastic joints: their torque, kinematic error and hysteresis.

A gear between the motor at theta (motor position over gear ratio) and the link at q transmits

    K (theta - q) + D (theta_d - q_d) + s,

where s is the stiffness times the offset between the encoders. Source: Spong, ASME J. Dyn. Syst.
Meas. Control 1987, 109, 310-319; Lopez, Zollo, Guglielmelli, Appl. Bionics Biomech. 2014, 843186,
section 3.

With kinematic error and hysteresis it is, N being the gear ratio,

    T = K (d + e) + D (d' + e') + sum_k h_k z_k(d + e) + s,    d = theta - q,

where e = a sin(2 N theta) + b cos(2 N theta) is the kinematic error of a harmonic drive, whose
wave generator presses twice per motor turn, and z_k are states between -1 and 1, all of one kind
in a gear: stop operators, which grow by the deflection over their length and stop at the ends, or
Dahl's states, which approach them exponentially. For given lengths T is linear in K a, K b, D a,
D b and h_k; only the argument of the states needs e in advance. The motor bears (1 + de/dtheta) T,
by the balance of power, of which K de/dtheta (d - d_0) is modelled, linear in K a and K b, with
the deflection d_0 = -s / K of the unloaded gear known in advance.

Sources: Taghirad and Belanger, ASME J. Dyn. Syst. Meas. Control 1998, 120, 463; Al-Bender,
Lampaert, Swevers 2005 (operators); Dahl 1968.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import (
    HISTORY,
    ONE,
    POSITION,
    VELOCITY,
    Entry,
    RegressorColumns,
)
from robot_dynid.effects.effect import Effect, ParameterWords, axes_of, linear_entries
from robot_dynid.effects.joint_friction import filter_columns
from robot_dynid.friction import AxisMotion
from robot_dynid.friction.law import columns_of
from robot_dynid.friction.terms import DAHL, STOP, Parameter, Term
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: parameters of one gear: stiffness [N m/rad], damping [N m s/rad], offset [N m]
STIFFNESS, DAMPING, OFFSET = GEAR = ('K', 'D', 's')
#: description of a gear parameter, and its unit for revolute and prismatic joints
GEAR_WORDS = {STIFFNESS: ('stiffness of the gear', 'N m/rad', 'N/m'),
              DAMPING: ('damping of the gear', 'N m s/rad', 'N s/m'),
              OFFSET: ('torque of the gear at zero measured deflection', 'N m', 'N')}


@dataclass(frozen=True)
class Gear:
    """The gear of an elastic ``joint``; ``motor`` is the coordinate and equation of its motor.

    ``row`` is the equation that its torque enters.
    """

    joint: int
    motor: int
    row: int

    def parameter(self, symbol: str) -> str:
        """Return the name of a parameter of the joint, such as K2 for K."""
        return f'{symbol}{self.joint + 1}'


@dataclass(frozen=True, eq=False)
class Springs(Effect):
    """Torque of the gears of elastic joints."""

    robot: RobotModel

    @property
    def words(self) -> Iterator[ParameterWords]:
        """Stiffness, damping and offset of every gear."""
        for gear in self.gears:
            slides = self.robot.types[gear.joint] == PRISMATIC
            for symbol, (words, *units) in GEAR_WORDS.items():
                yield ParameterWords(gear.parameter(symbol), self.robot.joints[gear.joint], words,
                                     units[int(slides)])

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with these motors and gears.

        Gears are passive: a negative damping, possible if its deviation includes zero, becomes
        zero.
        """
        joints = self.robot.drive.elastic
        rows = np.array([[values.get(f'{p}{j + 1}', 0.0) for j in joints] for p in ('Ia', *GEAR)])
        place = 1 + GEAR.index(DAMPING)
        rows[place] = np.maximum(rows[place], 0.0)
        return replace(mechanism, gears=Gears(joints, *rows))

    @cached_property
    def gears(self) -> tuple[Gear, ...]:
        """The gears, in the order of their joints."""
        drive, n = self.robot.drive, self.robot.n
        sensors = n + len(drive.elastic)
        return tuple(
            Gear(joint, motor, sensors + drive.torque_sensors.index(joint)
                 if joint in drive.torque_sensors else motor)
            for motor, joint in enumerate(drive.elastic, start=n))

    @property
    def names(self) -> tuple[str, ...]:
        """``K1, D1, s1`` and so on, for elastic joints only."""
        return tuple(gear.parameter(p) for gear in self.gears for p in GEAR)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Stiffness and damping."""
        return tuple(name for name in self.names if not name.startswith(OFFSET))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: deflection, its rate, ones."""
        entries: list[Entry] = []
        for column, index in enumerate(chosen.tolist()):
            place, parameter = divmod(index, len(GEAR))
            gear = self.gears[place]
            if GEAR[parameter] == OFFSET:
                entries.append((gear.row, column, ONE, 0, 1.0))
                continue
            kind = POSITION if GEAR[parameter] == STIFFNESS else VELOCITY
            entries += [(gear.row, column, kind, gear.motor, 1.0),
                        (gear.row, column, kind, gear.joint, -1.0)]
        return RegressorColumns(len(chosen), entries=tuple(entries))


#: presses of the wave generator per motor turn
PRESSES = 2
#: sine and cosine of the kinematic error, times stiffness [N m] and times damping [N m s]
SINE, COSINE, *_ = WAVES = tuple(f'{symbol}{wave}' for symbol in (STIFFNESS, DAMPING)
                                for wave in 'sc')
#: rows of the history of one gear with waves
SIGNALS = len(WAVES) + 2
#: amplitude of a hysteresis state [N m], followed by the letter of its length
HYSTERESIS = 'h'
#: kinds of hysteresis states, by the friction law that has them
STATES = {'maxwell': STOP, 'dahl': DAHL}


@dataclass(frozen=True)
class GearEffects:
    """Effects of one gear: ``error`` (a, b) [rad], and the ``lengths`` [rad] of its ``states``.

    ``states`` is a key of STATES; raises ValueError for others. ``error`` is that in the argument
    of the states, None for a gear without waves; ``unbent`` [rad] is the measured deflection of
    the unloaded gear.
    """

    error: tuple[float, float] | None = None
    lengths: tuple[float, ...] = ()
    unbent: float = 0.0
    states: str = 'maxwell'

    def __post_init__(self) -> None:
        if self.states not in STATES:
            raise ValueError(f'states: {self.states!r}; use {" or ".join(STATES)}')

    @property
    def waves(self) -> tuple[str, ...]:
        """The parameters of the kinematic error, without the number of the joint."""
        return () if self.error is None else WAVES

    @property
    def stops(self) -> tuple[str, ...]:
        """The parameters of hysteresis, without the number of the joint."""
        return tuple(f'{HYSTERESIS}{letter}'
                     for letter, _ in zip(ascii_lowercase, self.lengths, strict=False))


def effect_blocks(
    robot: RobotModel, effects: Sequence[GearEffects]
) -> tuple[KinematicError | Hysteresis, ...]:
    """Return the non-empty blocks of ``effects``, one entry per elastic joint."""
    gears = Springs(robot).gears
    both = (KinematicError(robot, gears, tuple(effects)), Hysteresis(robot, gears, tuple(effects)))
    return tuple(block for block in both if block.names)


@dataclass(frozen=True, eq=False)
class KinematicError(Effect):
    """Torque by the kinematic error of ``gears``: ``Ks, Kc, Ds, Dc``; ``effects`` of each."""

    robot: RobotModel
    gears: tuple[Gear, ...]
    effects: tuple[GearEffects, ...]

    def symbols(self, effects: GearEffects) -> tuple[str, ...]:
        """Return the parameters of one gear, without the number of the joint."""
        return effects.waves

    @property
    def words(self) -> Iterator[ParameterWords]:
        """The waves of every gear."""
        for gear, effects in self._with_waves:
            force = 'N' if self.robot.types[gear.joint] == PRISMATIC else 'N m'
            for symbol in self.symbols(effects):
                stiff = symbol[:-1] == STIFFNESS
                wave = 'sine' if symbol.endswith('s') else 'cosine'
                yield ParameterWords(
                    gear.parameter(symbol), self.robot.joints[gear.joint],
                    f'{wave} of the kinematic error times {"stiffness" if stiff else "damping"}',
                    force if stiff else f'{force} s')

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with the kinematic error of its gears.

        It is that of the stiffness; the parameters of damping times error define no other error.
        """
        gears = mechanism.gears
        assert gears is not None
        waves = np.zeros((len(gears.joints), 3))
        for i, (gear, effects) in enumerate(zip(self.gears, self.effects, strict=True)):
            if effects.waves:
                sizes = [values[gear.parameter(wave)] for wave in (SINE, COSINE)]
                waves[i] = presses_per_radian(self.robot, gear), *(
                    np.array(sizes) / gears.stiffness[i])
        return replace(mechanism, gears=replace(gears, waves=waves))

    @property
    def names(self) -> tuple[str, ...]:
        """``Ks1, Kc1, Ds1, Dc1`` and so on, for gears with waves only."""
        return tuple(gear.parameter(symbol) for gear, effects in self._with_waves
                     for symbol in self.symbols(effects))

    @property
    def _with_waves(self) -> list[tuple[Gear, GearEffects]]:
        return [(gear, effects)
                for gear, effects in zip(self.gears, self.effects, strict=True)
                if effects.waves]

    def history(self, samples: Samples) -> FloatArray:
        """Return columns (h, N), filtered like the effort because they are faster than the motion.

        For every gear the four of its torque, then two of the additional motor torque.
        """
        return filter_columns(samples, lambda whole: (
            np.concatenate([
                presses(self.robot, gear, whole), self._reaction(gear, effects, whole)])
            for gear, effects in self._with_waves), SIGNALS * len(self._with_waves))

    def _reaction(self, gear: Gear, effects: GearEffects, samples: Samples) -> FloatArray:
        """Return de/dtheta times the deflection (2, N), of sine and cosine."""
        rate = presses_per_radian(self.robot, gear)
        sine, cosine = presses(self.robot, gear, samples)[:2]
        loaded = rate * (deflection(gear, samples) - effects.unbent)
        return np.array([loaded * cosine, -loaded * sine])

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: rows of the history."""
        entries: list[Entry] = []
        axes = axes_of(self.robot)
        for column, index in enumerate(chosen.tolist()):
            place, wave = divmod(index, len(WAVES))
            gear, first = self._with_waves[place][0], SIGNALS * place
            entries.append((gear.row, column, HISTORY, first + wave, 1.0))
            if WAVES[wave].startswith(STIFFNESS):
                entries += linear_entries(column, axes.effort[gear.joint], HISTORY,
                                  {first + len(WAVES) + wave: 1.0})
        return RegressorColumns(len(chosen), entries=tuple(entries),
                                past=SIGNALS * len(self._with_waves))


@dataclass(frozen=True, eq=False)
class Hysteresis(Effect):
    """Hysteresis of ``gears``: amplitudes ``ha, hb, ...`` of states driven by the deflection.

    A recording begins relaxed, z = 0; so does a state without a past.
    """

    robot: RobotModel
    gears: tuple[Gear, ...]
    effects: tuple[GearEffects, ...]

    def symbols(self, effects: GearEffects) -> tuple[str, ...]:
        """Return the parameters of one gear, without the number of the joint."""
        return effects.stops

    @property
    def words(self) -> Iterator[ParameterWords]:
        """The amplitudes of hysteresis of every gear."""
        for gear, effects in zip(self.gears, self.effects, strict=True):
            for symbol, length in zip(effects.stops, effects.lengths, strict=True):
                yield ParameterWords(
                    gear.parameter(symbol), self.robot.joints[gear.joint],
                    f'hysteresis of the gear that turns over {length:g} of deflection',
                    'N' if self.robot.types[gear.joint] == PRISMATIC else 'N m')

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with the hysteresis of its gears."""
        gears = mechanism.gears
        assert gears is not None
        states = [(i, STATES[effects.states], length, values[gear.parameter(stop)])
                  for i, (gear, effects) in enumerate(zip(self.gears, self.effects, strict=True))
                  for stop, length in zip(effects.stops, effects.lengths, strict=True)]
        return replace(mechanism, gears=replace(gears, states=np.array(states).reshape(-1, 4)))

    @property
    def names(self) -> tuple[str, ...]:
        """``ha1, hb1`` and so on, for gears with operators only."""
        return tuple(gear.parameter(symbol)
                     for gear, effects in zip(self.gears, self.effects, strict=True)
                     for symbol in self.symbols(effects))

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """All: a slipping spring dissipates energy."""
        return self.names

    def history(self, samples: Samples) -> FloatArray:
        """Return the operators (h, N), filtered like the effort."""
        return filter_columns(samples, lambda whole: (
            self._operators(gear, effects, whole)
            for gear, effects in zip(self.gears, self.effects, strict=True)
            if effects.lengths),
            len(self.names))

    def _operators(self, gear: Gear, effects: GearEffects, samples: Samples) -> FloatArray:
        """Return the operators (k, N) driven by the deflection of one gear."""
        bent = deflection(gear, samples)
        if effects.error is not None:
            bent = bent + np.array(effects.error) @ presses(self.robot, gear, samples)[:2]
        still = np.zeros(len(samples))  # begins relaxed
        kind = STATES[effects.states]
        return columns_of([Parameter(symbol, (Term(kind, length),)) for symbol, length in zip(
            effects.stops, effects.lengths, strict=True)],
            AxisMotion(samples.time, bent, still, samples.starts))

    def generic(self, samples: Samples) -> FloatArray:
        """Return a history (h, N) with independent operators, as in a motion."""
        rng = np.random.default_rng(0)
        return rng.uniform(-1.0, 1.0, (len(self.names), len(samples)))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: each is a row of the history."""
        rows = [gear.row for gear, effects in zip(self.gears, self.effects, strict=True)
                for _ in self.symbols(effects)]
        return RegressorColumns(len(chosen), entries=tuple(
            (rows[index], column, HISTORY, index, 1.0)
            for column, index in enumerate(chosen.tolist())), past=len(rows))


@dataclass(frozen=True, eq=False)
class LoadedHysteresis(Hysteresis):
    """Hysteresis states of all kinds: constant ``b``, load-dependent ``c``, one-sided ``d``.

    For every kind and length: ``bma, bda, cma, ...``. The load is the deflection from the unloaded
    gear over half of the largest length; its magnitude widens the loop, and the load itself makes
    it wider on one side. Represents hysteresis that no law of the model covers.
    """

    def symbols(self, effects: GearEffects) -> tuple[str, ...]:
        """Return the parameters of one gear, without the number of the joint."""
        return tuple(f'{width}{kind[0]}{stop[1:]}' for width in 'bcd' for kind in STATES
                     for stop in effects.stops)

    def _operators(self, gear: Gear, effects: GearEffects, samples: Samples) -> FloatArray:
        states = np.concatenate([super(LoadedHysteresis, self)._operators(
            gear, replace(effects, states=kind), samples) for kind in STATES])
        load = 2.0 * (deflection(gear, samples) - effects.unbent) / effects.lengths[-1]
        return np.concatenate([states, np.abs(load) * states, load * states])

    def generic(self, samples: Samples) -> FloatArray:
        """Return a history (h, N) that is also independent of that of `Hysteresis`."""
        rng = np.random.default_rng(1)
        return rng.uniform(-1.0, 1.0, (len(self.names), len(samples)))


def presses_per_radian(robot: RobotModel, gear: Gear) -> float:
    """Return the ripple order 2 N [1/rad], twice the gear ratio; zero if that is unknown."""
    ratios = robot.drive.gear_ratios
    order = 0.0 if ratios is None else PRESSES * float(ratios[gear.joint])
    return order if np.isfinite(order) else 0.0


def presses(robot: RobotModel, gear: Gear, samples: Samples) -> FloatArray:
    """Return sine and cosine of the press angle, and their derivatives [1/s], (4, N)."""
    rate = presses_per_radian(robot, gear)
    phase = rate * samples.position[:, gear.motor]
    speed = rate * samples.velocity[:, gear.motor]
    sine, cosine = np.sin(phase), np.cos(phase)
    return np.array([sine, cosine, speed * cosine, -speed * sine])


def deflection(gear: Gear, samples: Samples) -> FloatArray:
    """Return the measured deflection (N,) [rad, m] of a gear."""
    return np.asarray(samples.position[:, gear.motor] - samples.position[:, gear.joint])
