"""Noise levels of the external torque: its size without contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.types import FloatArray, frozen

#: gain [1/s] of the observer the levels are taken with
NOMINAL_GAIN = 30.0
COLUMNS = ('moving', 'holding', 'speed')


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Bounds of the external torque without contact, each (n,).

    While joint j is faster than ``speed`` [rad/s], the external torque r hardly exceeds
    ``moving`` [N m]. Slower, dry friction is whatever holds the joint, or has just let go, and
    not what its law says: r contains what the law claims less what there is, and that is at most
    ``holding`` [N m]. The observer forgets this like everything else, so |r - c| hardly exceeds
    ``moving + holding s``, where s is "slower than ``speed``" and c the dry friction of the law
    while it is, both passed through the same first-order low-pass. ``gain`` [1/s] is that of the
    observer the levels were taken with. ``deflected`` are those with the deflection of gears, None
    for models that have no use for it; ``variance`` (n,) [(N m)^2] of residual models,
    or of the torque of elastic gears, is usual there.
    """

    moving: FloatArray
    holding: FloatArray
    speed: FloatArray
    gain: float = NOMINAL_GAIN
    deflected: NoiseLevels | None = None
    variance: FloatArray | None = None

    def at_gain(self, gain: float) -> FloatArray:
        """Return ``moving`` (n,) [N m] for another gain: white noise grows with its root."""
        return np.asarray(self.moving * np.sqrt(max(gain / self.gain, 1.0)))

    def plain(self, joints: tuple[str, ...]) -> dict[str, Any]:
        """Return everything as names and numbers."""
        columns = {name: getattr(self, name) for name in (*COLUMNS, 'variance')
                   if getattr(self, name) is not None}
        found: dict[str, Any] = {'gain': self.gain, 'joints': {
            joint: {name: float(column[j]) for name, column in columns.items()}
            for j, joint in enumerate(joints)}}
        return found if self.deflected is None else {
            **found, 'deflected': self.deflected.plain(joints)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], joints: tuple[str, ...]) -> NoiseLevels:
        """Read what ``plain`` returned. Raises ValueError when something is missing."""
        try:
            known = [content['joints'][joint] for joint in joints]
            names = COLUMNS if 'variance' not in known[0] else (*COLUMNS, 'variance')
            rows = np.array([[float(one[key]) for key in names] for one in known])
            gain = float(content['gain'])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f'noise levels are damaged: {error!r}') from None
        if not np.all(np.isfinite(rows)) or not gain > 0.0:
            raise ValueError('noise levels are not finite')
        deflected = content.get('deflected')
        return cls(**{key: frozen(column) for key, column in zip(names, rows.T, strict=True)},
                   gain=gain, deflected=None if deflected is None else
                   cls.from_plain(deflected, joints))
