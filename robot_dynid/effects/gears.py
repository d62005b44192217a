"""Gears of elastic joints: their torque, kinematic error and hysteresis.

A gear between the motor at theta (motor position over gear ratio) and the link at q transmits

    K (theta - q) + D (theta_d - q_d) + s,

where s is the stiffness times what the encoders are off against each other. Source: Spong,
ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319; Lopez, Zollo, Guglielmelli, Appl. Bionics
Biomech. 2014, 843186, section 3.

With kinematic error and hysteresis it is, N being the gear ratio,

    T = K (d + e) + D (d' + e') + sum_k h_k z_k(d + e) + s,    d = theta - q,

e = a sin(2 N theta) + b cos(2 N theta) being the kinematic error of a harmonic drive, whose wave
generator presses twice per motor turn, and z_k states between -1 and 1, all of one kind in a gear:
stop operators, each of which grows by the deflection over its length and stops at the ends, or
Dahl's states, which get there exponentially. With the lengths given, T is linear in K a, K b,
D a, D b and h_k; only in the argument of the states e must be known. The motor bears
(1 + de/dtheta) T, by the balance of power, of which K de/dtheta (d - d_0) is modelled, linear in
K a and K b, with the deflection d_0 = -s / K where nothing bends the gear known beforehand.
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
from robot_dynid.effects.effect import Effect, ParameterWords, axes_of, linear
from robot_dynid.effects.joint_friction import passed
from robot_dynid.friction import AxisMotion
from robot_dynid.friction.law import columns_of
from robot_dynid.friction.terms import DAHL, STOP, Parameter, Term
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: parameters of one gear: stiffness [N m/rad], damping [N m s/rad], offset [N m]
STIFFNESS, DAMPING, OFFSET = GEAR = ('K', 'D', 's')
#: what a gear parameter is, and its unit where the joint turns and where it slides
GEAR_WORDS = {STIFFNESS: ('stiffness of the gear', 'N m/rad', 'N/m'),
              DAMPING: ('damping of the gear', 'N m s/rad', 'N s/m'),
              OFFSET: ('torque of the gear where the encoders see no deflection', 'N m', 'N')}


@dataclass(frozen=True)
class Gear:
    """The gear of an elastic ``joint``; ``motor`` is the coordinate and the equation of its motor.

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

        Gears are passive: a damping below zero, which the estimate may be where it is not far from
        zero beside its deviation, counts as none.
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
        """Return deflection, its rate and ones, as far as ``chosen`` (k,)."""
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
#: amplitude of a state of hysteresis [N m]; the letter of its length follows
HYSTERESIS = 'h'
#: kinds of states of hysteresis, by the friction law that has them
STATES = {'maxwell': STOP, 'dahl': DAHL}


@dataclass(frozen=True)
class GearEffects:
    """Effects of one gear: ``error`` (a, b) [rad], and the ``lengths`` [rad] of its ``states``.

    These are a key of STATES; raises ValueError for others. ``error`` is that by which they move,
    None for a gear without waves; ``unbent`` [rad] is the deflection that the encoders show where
    nothing bends the gear.
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
        """The parameters of kinematic error, without the number of the joint."""
        return () if self.error is None else WAVES

    @property
    def stops(self) -> tuple[str, ...]:
        """The parameters of hysteresis, without the number of the joint."""
        return tuple(f'{HYSTERESIS}{letter}'
                     for letter, _ in zip(ascii_lowercase, self.lengths, strict=False))


def effect_blocks(
    robot: RobotModel, effects: Sequence[GearEffects]
) -> tuple[KinematicError | Hysteresis, ...]:
    """Return the blocks of ``effects``, one entry per elastic joint, as far as there are any."""
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

        It is that of the stiffness: what the data says beside it of damping times error is no
        other error.
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
        return tuple(gear.parameter(symbol) for gear, own in self._with_waves
                     for symbol in self.symbols(own))

    @property
    def _with_waves(self) -> list[tuple[Gear, GearEffects]]:
        return [(gear, own) for gear, own in zip(self.gears, self.effects, strict=True)
                if own.waves]

    def history(self, samples: Samples) -> FloatArray:
        """Return columns (h, N) that are filtered as the effort: they are faster than the motion.

        Of every gear the four of its torque, then two of what the motor bears beside that.
        """
        return passed(samples, lambda known: (
            np.concatenate([presses(self.robot, gear, known), self._reaction(gear, own, known)])
            for gear, own in self._with_waves), SIGNALS * len(self._with_waves))

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
                entries += linear(column, axes.effort[gear.joint], HISTORY,
                                  {first + len(WAVES) + wave: 1.0})
        return RegressorColumns(len(chosen), entries=tuple(entries),
                                past=SIGNALS * len(self._with_waves))


@dataclass(frozen=True, eq=False)
class Hysteresis(Effect):
    """Hysteresis of ``gears``: amplitudes ``ha, hb, ...`` of states driven by the deflection.

    A recording begins relaxed, z = 0, and a state without a past is.
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
                     for gear, own in zip(self.gears, self.effects, strict=True)
                     for symbol in self.symbols(own))

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """All: a spring that slips takes energy."""
        return self.names

    def history(self, samples: Samples) -> FloatArray:
        """Return the operators (h, N), filtered as the effort."""
        return passed(samples, lambda known: (
            self._operators(gear, own, known)
            for gear, own in zip(self.gears, self.effects, strict=True) if own.lengths),
            len(self.names))

    def _operators(self, gear: Gear, effects: GearEffects, samples: Samples) -> FloatArray:
        """Return the operators (k, N) over the deflection of one gear."""
        bent = deflection(gear, samples)
        if effects.error is not None:
            bent = bent + np.array(effects.error) @ presses(self.robot, gear, samples)[:2]
        still = np.zeros(len(samples))  # begins relaxed
        kind = STATES[effects.states]
        return columns_of([Parameter(symbol, (Term(kind, length),)) for symbol, length in zip(
            effects.stops, effects.lengths, strict=True)],
            AxisMotion(samples.time, bent, still, samples.starts))

    def generic(self, samples: Samples) -> FloatArray:
        """Return a history (h, N) in which operators are independent, as a motion has them."""
        rng = np.random.default_rng(0)
        return rng.uniform(-1.0, 1.0, (len(self.names), len(samples)))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) parameters: each is a row of the history."""
        rows = [gear.row for gear, own in zip(self.gears, self.effects, strict=True)
                for _ in self.symbols(own)]
        return RegressorColumns(len(chosen), entries=tuple(
            (rows[index], column, HISTORY, index, 1.0)
            for column, index in enumerate(chosen.tolist())), past=len(rows))


@dataclass(frozen=True, eq=False)
class LoadedHysteresis(Hysteresis):
    """States of all kinds, as wide everywhere, ``b``, with the load, ``c``, by its side, ``d``.

    Of every kind and length, ``bma, bda, cma, ...``. The load is the deflection from where nothing
    bends the gear, over half of the largest length; its size widens the loop, and the load itself
    makes it wider on one side than on the other. For what hysteresis of no law of the model leaves
    over.
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
        """Return a history (h, N) that is independent of that of `Hysteresis`, too."""
        rng = np.random.default_rng(1)
        return rng.uniform(-1.0, 1.0, (len(self.names), len(samples)))


def presses_per_radian(robot: RobotModel, gear: Gear) -> float:
    """Return 2 N [1/rad] of a gear, zero where its ratio is not known."""
    ratios = robot.drive.gear_ratios
    known = 0.0 if ratios is None else PRESSES * float(ratios[gear.joint])
    return known if np.isfinite(known) else 0.0


def presses(robot: RobotModel, gear: Gear, samples: Samples) -> FloatArray:
    """Return sine and cosine of the presses, and their derivatives [1/s], (4, N)."""
    rate = presses_per_radian(robot, gear)
    phase = rate * samples.position[:, gear.motor]
    speed = rate * samples.velocity[:, gear.motor]
    sine, cosine = np.sin(phase), np.cos(phase)
    return np.array([sine, cosine, speed * cosine, -speed * sine])


def deflection(gear: Gear, samples: Samples) -> FloatArray:
    """Return the deflection (N,) [rad, m] that the encoders of a gear show."""
    return np.asarray(samples.position[:, gear.motor] - samples.position[:, gear.joint])
