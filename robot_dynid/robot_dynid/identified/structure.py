"""Structure of a torque model, its blocks by name, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from robot_dynid.effects import (
    CHOSEN,
    Effect,
    GearEffects,
    JointFriction,
    axes_of,
    effect_blocks,
    frictionless_blocks,
)
from robot_dynid.effects.joint_friction import Load
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.friction import FrictionLaw, law_from
from robot_dynid.identified.trained import Extent
from robot_dynid.plain import from_plain
from robot_dynid.reduction.base import Reduction
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Structure:
    """Blocks of a torque model: ``rotor_inertia``, ``friction`` laws and ``settings`` by axis.

    ``load`` (n, 10) are the standard parameters of the links for the transmitted torque, if a law
    depends on it. ``gears`` are the effects of the gears of elastic joints, one entry each, or
    empty. ``chosen`` are the parts of effects, by their key in `CHOSEN`.
    """

    rotor_inertia: bool
    friction: tuple[str, ...]
    settings: tuple[Mapping[str, Any], ...]
    load: tuple[tuple[float, ...], ...] | None = None
    gears: tuple[GearEffects, ...] = ()
    chosen: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Convert parts from plain types; raises ValueError if that fails."""
        object.__setattr__(self, 'chosen', {key: tuple(
            part if isinstance(part, CHOSEN[key].part)
            else from_plain(CHOSEN[key].part, part, f'blocks.{key}') for part in parts)
            for key, parts in self.chosen.items()})

    @classmethod
    def uniform(cls, robot: RobotModel, rotor_inertia: bool, friction: str,
                settings: Mapping[str, Any]) -> Structure:
        """Return the structure with one law and settings for every axis."""
        count = len(axes_of(robot).labels)
        return cls(rotor_inertia, (friction,) * count,
                   tuple(dict(settings) for _ in range(count)))

    @classmethod
    def of(cls, rotor_inertia: bool, laws: Sequence[tuple[str, FrictionLaw]],
           load: FloatArray | None) -> Structure:
        """Return the structure with named ``laws``; ``load`` (n, 10) only if one of them needs it.
        """
        needed = load is not None and any('load' in name.split('+') for name, _ in laws)
        stored_load = tuple(tuple(float(v) for v in row) for row in load) \
            if needed and load is not None else None
        return cls(rotor_inertia, tuple(name for name, _ in laws),
                   tuple(dict(law.settings()) for _, law in laws), stored_load)

    def with_laws(
        self, laws: Sequence[tuple[str, FrictionLaw]], load: FloatArray | None
    ) -> Structure:
        """Return it with other friction ``laws``; ``load`` (n, 10) as of `of`."""
        return replace(Structure.of(self.rotor_inertia, laws, load), gears=self.gears,
                       chosen=self.chosen)

    def within(self, extent: Extent) -> Structure:
        """Return it for recordings of ``extent``, beyond which no law is curved."""
        laws = [law.within(extent.of_axis(i)) for i, law in enumerate(self.laws)]
        return replace(self, settings=tuple(dict(law.settings()) for law in laws))

    @cached_property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """Friction law of every axis."""
        return tuple(law_from(name, s) for name, s in zip(self.friction, self.settings,
                                                          strict=True))

    @property
    def friction_name(self) -> str:
        """Law names: one name, or one per axis."""
        return self.friction[0] if len(set(self.friction)) == 1 else ', '.join(self.friction)

    @property
    def described(self) -> tuple[str, ...]:
        """Law and settings by axis; one entry if all are the same."""
        by_axis = tuple(f'{name}: {_words(settings)}'
                        for name, settings in zip(self.friction, self.settings, strict=True))
        return by_axis[:1] if len(set(by_axis)) == 1 else by_axis

    def load_of(self, robot: RobotModel) -> Load | None:
        """Return the load of the axes, if a law depends on it."""
        return None if self.load is None else Load(robot, axes_of(robot), np.array(self.load))

    def friction_of(self, robot: RobotModel) -> JointFriction:
        """Build the friction block."""
        return JointFriction(axes_of(robot), self.laws, self.load_of(robot))

    def blocks(self, robot: RobotModel) -> tuple[Effect, ...]:
        """Build the blocks: links, rotors, gears and their effects, chosen ones, friction."""
        effects_first = frictionless_blocks(robot, self.rotor_inertia)
        effects = effect_blocks(robot, self.gears) if robot.drive.elastic and self.gears else ()
        chosen = (CHOSEN[key](robot, parts) for key, parts in self.chosen.items())
        return (*effects_first, *effects, *chosen, self.friction_of(robot))

    def torque_model(self, robot: RobotModel, reduction: Reduction | None = None) -> TorqueModel:
        """Build the torque model, with a given ``reduction`` or a computed one.

        An effort from which the driver has removed gravity is modelled without gravity.
        """
        if robot.drive.kind == 'gravity_compensated_torque':
            robot = robot.with_gravity(np.zeros(3))
        blocks = self.blocks(robot)
        if reduction is None:
            return TorqueModel.of(robot, blocks)
        return TorqueModel(robot, blocks, reduction)


def _words(settings: Mapping[str, Any]) -> str:
    parts = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            parts += [f'{name} {_words(value)}'] if value else []
        elif isinstance(value, (list, tuple)):
            parts.append(f'{name} {" ".join(f"{v:.4g}" for v in value)}')
        else:
            parts.append(f'{name} {value:.4g}')
    return ', '.join(parts)
