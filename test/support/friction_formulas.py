"""Friction laws and additions written out in NumPy, one state at a time: what tables must give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.exponential import FADES, exponential_shares
from robot_dynid.types import FloatArray

#: laws of single tests: dry friction, and the torque of each parameter, from settings and velocity
OTHERS: dict[str, Callable[[Mapping[str, Any], FloatArray],
                           tuple[FloatArray, dict[str, FloatArray]]]] = {}


def ramp(v: FloatArray, width: float) -> FloatArray:
    """Return clip(v / width, -1, 1)."""
    return np.asarray(np.clip(v / width, -1.0, 1.0))


def dry_of(name: str, s: Mapping[str, Any], v: FloatArray) -> FloatArray:
    """Return the dry friction of the law ``name`` in steady sliding."""
    if name in OTHERS:
        return OTHERS[name](s, v)[0]
    if name in ('stribeck', 'exponential'):
        return np.tanh(v / s['width'])
    if name == 'none':
        return ramp(v, 0.01)
    if name == 'two-speed':
        return np.tanh(v / s['steepness'])
    return ramp(v, s['width'])


def law_columns(name: str, s: Mapping[str, Any], v: FloatArray) -> dict[str, FloatArray]:
    """Return the torque of each parameter of the law ``name`` in steady sliding."""
    if name in OTHERS:
        return OTHERS[name](s, v)[1]
    dry, one = dry_of(name, s, v), np.ones_like(v)
    if name == 'none':
        return {'f0': one}
    if name == 'asymmetric':
        return {'fvp': np.maximum(v, 0.0), 'fvn': np.minimum(v, 0.0),
                'fcp': np.maximum(dry, 0.0), 'fcn': np.minimum(dry, 0.0)}
    if name == 'two-speed':
        found = {}
        fast = np.abs(v) >= s['threshold']
        for way, side in (('p', v >= 0.0), ('n', v < 0.0)):
            opened = 0.5 * (1.0 + np.abs(dry)) * side
            found |= {f'fc{way}': dry * opened, f'fv{way}': fast * v * opened,
                      f'fq{way}': fast * side * v * np.abs(v), f'fk{way}': fast * side * v**3}
        return found
    if name == 'stribeck':
        return {'fv': v, 'fc': dry, 'fs': dry - np.tanh(v / s['speed']), 'f0': one}
    if name == 'exponential':
        fall = sum(share * (1.0 - np.tanh(np.abs(v) / (fade * s['speed'])))
                   for share, fade in zip(exponential_shares(s['exponent']), FADES, strict=True))
        return {'fv': v, 'fc': dry, 'fs': dry * fall, 'f0': one}
    if name == 'maxwell':
        return {'fv': v, **{f'fc{"abcdefg"[i]}': dry for i in range(len(s['lengths']))},
                'f0': one}
    return {'fv': v, 'fc': dry, 'f0': one}


def addition_columns(
    name: str, s: Mapping[str, Any], v: FloatArray, dry: FloatArray, load: FloatArray
) -> dict[str, FloatArray]:
    """Return the torque of each parameter of the addition ``name`` in steady sliding."""
    if name == 'breakaway':
        return {'fb': (1.0 - np.tanh(np.abs(v) / s['speed'])) * dry}
    if name == 'levelling':
        return {'fl': ramp(v, s['speed'])}
    if name == 'load':
        return {'fw': np.abs(load) * dry}
    if name == 'drift':
        left = np.exp(-s['longest'] / s['seconds']) if 'longest' in s else 0.0
        return {'fd': left * dry}
    return {'ft': 0.0 * v, 'fu': 0.0 * v}


def sliding_columns(
    name: str, law: FrictionLaw, v: FloatArray, load: FloatArray | None = None
) -> FloatArray:
    """Return (k, N) for states at ``v`` (N,) within the speeds of the fit, joints warm.

    ``name`` is that of `law_from`, which the settings of ``law`` belong to.
    """
    base, *added = name.split('+')
    settings = law.settings()
    dry = dry_of(base, settings, v)
    found = law_columns(base, settings, v)
    for addition in added:
        found |= addition_columns(addition, settings[addition], v, dry,
                                  np.zeros_like(v) if load is None else load)
    return np.stack([found[p] for p in law.parameters])
