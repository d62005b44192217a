"""A friction law with additions to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.friction.additions import Addition
from robot_dynid.friction.law import AxisMotion, FrictionLaw, Shape
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Compound:
    """The torque of ``base`` and of every addition; ``additions`` (name, addition)."""

    base: FrictionLaw
    additions: tuple[tuple[str, Addition], ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those of the base, then those of the additions."""
        return (*self.base.parameters, *(p for _, a in self.additions for p in a.parameters))

    @property
    def holding(self) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.holding

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Those of all."""
        return (*self.base.nonnegative, *(p for _, a in self.additions for p in a.nonnegative))

    @property
    def odd(self) -> tuple[str, ...]:
        """Those of the base, and all additions."""
        return (*self.base.odd, *(p for _, a in self.additions for p in a.parameters))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """None: base and additions are searched one after the other."""
        return ()

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (k, N)."""
        dry = self.base.dry(motion)
        return np.concatenate([self.base.columns(motion),
                               *(a.columns(motion, dry) for _, a in self.additions)])

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return that of the base (N,)."""
        return self.base.dry(motion)

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return the rows of all; None when one has none."""
        first = len(self.base.parameters)
        base = self.base.sliding(values[:first])
        if base is None:
            return None
        rows: list[FloatArray | None] = [base]
        for _, addition in self.additions:
            own = values[first:first + len(addition.parameters)]
            rows.append(addition.sliding(own, float(base[0, -1])))
            first += len(own)
        found = [r for r in rows if r is not None]
        return np.concatenate(found) if len(found) == len(rows) else None

    def settings(self) -> dict[str, Any]:
        """Return those of the base, and by name those of the additions."""
        return {**self.base.settings(), **{name: a.settings() for name, a in self.additions}}
