"""Every parameter of a model in words, with its unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.effects import (
    Axes,
    Counterbalance,
    Hysteresis,
    JointFriction,
    KinematicError,
    RigidLinks,
    RotorInertia,
    Springs,
)
from robot_dynid.effects.gears import DAMPING, OFFSET, STIFFNESS
from robot_dynid.friction.terms import unit_of, words_of
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.model import PRISMATIC, RobotModel

if TYPE_CHECKING:
    from robot_dynid.effects import Block
    from robot_dynid.identified.model import IdentifiedModel

#: what a gear parameter is, and its unit where the joint turns and where it slides
GEAR = {STIFFNESS: ('stiffness of the gear', 'N m/rad', 'N/m'),
        DAMPING: ('damping of the gear', 'N m s/rad', 'N s/m'),
        OFFSET: ('torque of the gear where the encoders see no deflection', 'N m', 'N')}


@dataclass(frozen=True)
class ParameterWords:
    """A name in ``words`` and ``unit`` of the standard parameter ``name``.

    ``part`` is the link or the joint it belongs to.
    """

    name: str
    part: str
    words: str
    unit: str

    @property
    def sentence(self) -> str:
        """The part and what the parameter is of it."""
        return f'{self.part}: {self.words}' if self.part else self.words


def parameter_words(model: IdentifiedModel) -> dict[str, ParameterWords]:
    """Return names in words of all standard parameters of a model, by name, in its order.

    Base parameters bear the names of standard ones; what they hold besides is in their labels.
    """
    return words_of_blocks(model.torque_model.robot, model.torque_model.blocks)


def words_of_blocks(robot: RobotModel, blocks: Iterable[Block]) -> dict[str, ParameterWords]:
    """Return names in words of all standard parameters of ``blocks``, by name, in their order."""
    return {one.name: one for block in blocks for one in _block(robot, block)}


def _block(robot: RobotModel, block: Block) -> Iterator[ParameterWords]:
    """Yield the parameters of a block, those of unknown blocks by their names alone."""
    if isinstance(block, RigidLinks):
        yield from _links(robot, block)
    elif isinstance(block, RotorInertia):
        for axis, name in enumerate(block.names):
            part, slides = _axis(robot, block.axes, axis)
            yield ParameterWords(name, part, 'rotor inertia, on the joint side',
                                 'kg' if slides else 'kg m^2')
    elif isinstance(block, JointFriction):
        parameters = [p for law in block.laws for p in law.table]
        for name, owner, parameter in zip(block.names, block.owners, parameters, strict=True):
            part, slides = _axis(robot, block.axes, owner)
            yield ParameterWords(
                name, part, words_of(parameter, slides), unit_of(parameter, slides))
    elif isinstance(block, Counterbalance):
        for name, spring in zip(block.names, block.springs, strict=True):
            yield ParameterWords(name, robot.joints[spring.joint],
                                 'largest torque of the counterbalance', 'N m')
    elif isinstance(block, Springs):
        yield from _springs(robot, block)
    elif isinstance(block, KinematicError | Hysteresis):
        yield from _gear_effects(robot, block)
    else:
        yield from (ParameterWords(name, '', name, '') for name in block.names)


def _springs(robot: RobotModel, block: Springs) -> Iterator[ParameterWords]:
    """Yield stiffness, damping and offset of every gear."""
    for gear in block.gears:
        part, slides = robot.joints[gear.joint], robot.types[gear.joint] == PRISMATIC
        for symbol, (words, *units) in GEAR.items():
            yield ParameterWords(gear.parameter(symbol), part, words, units[int(slides)])


def _gear_effects(
    robot: RobotModel, block: KinematicError | Hysteresis
) -> Iterator[ParameterWords]:
    """Yield the waves, or the amplitudes of hysteresis, of every gear."""
    for gear, own in zip(block.gears, block.effects, strict=True):
        lengths = dict(zip(own.stops, own.lengths, strict=True))
        part, slides = robot.joints[gear.joint], robot.types[gear.joint] == PRISMATIC
        for symbol in block.symbols(own):
            force = 'N' if slides else 'N m'
            if symbol in lengths:
                words = f'hysteresis of the gear that turns over {lengths[symbol]:g} of deflection'
            else:
                known = symbol[:-1]
                words = f'{"sine" if symbol.endswith("s") else "cosine"} of the kinematic error ' \
                    f'times {"stiffness" if known == STIFFNESS else "damping"}'
                force = force if known == STIFFNESS else f'{force} s'
            yield ParameterWords(gear.parameter(symbol), part, words, force)


def _links(robot: RobotModel, block: RigidLinks) -> Iterator[ParameterWords]:
    """Yield the ten parameters of every link."""
    for i, name in enumerate(block.names):
        link, symbol = robot.bodies[i // len(PARAMETERS)], PARAMETERS[i % len(PARAMETERS)]
        if symbol == 'm':
            words, unit = 'mass', 'kg'
        elif symbol.startswith('m'):
            words, unit = f'mass times {symbol[1:]} of its centre of mass', 'kg m'
        else:
            first, second = symbol[1], symbol[2]
            words = (f'moment of inertia about the {first} axis' if first == second else
                     f'entry {first}{second} of the inertia matrix')
            words, unit = f'{words}, at the origin of its frame', 'kg m^2'
        yield ParameterWords(name, link, words, unit)


def _axis(robot: RobotModel, axes: Axes, axis: int) -> tuple[str, bool]:
    """Return the joint of an axis, or the motor that turns with several, and whether it slides."""
    label = axes.labels[axis]
    joint = int(label.removeprefix('m')) - 1
    slides = bool(robot.types[joint] == PRISMATIC)
    if not label.startswith('m'):
        return robot.joints[joint], slides
    turned = np.flatnonzero(axes.matrix[axis][:robot.n])
    return (f'motor of {robot.joints[joint]} (turns with '
            f'{" and ".join(robot.joints[j] for j in turned)})'), slides
