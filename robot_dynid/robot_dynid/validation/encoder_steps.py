"""Presliding friction within one encoder step, which positions do not resolve."""

from __future__ import annotations

import numpy as np

from robot_dynid.effects import axes_of
from robot_dynid.friction import AxisMotion, FrictionLaw
from robot_dynid.friction.law import columns_of
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.kernels.friction import SLIDING, STOP
from robot_dynid.signals.encoders import resolution
from robot_dynid.types import FloatArray, RawLog

#: reported if friction changes by this share of its full reversal within one step
STEP_SHARE = 0.25


def change_over(law: FrictionLaw, values: FloatArray, travel: float) -> float:
    """Return the change of friction [N m, N] over a ``travel`` [rad, m] after a reversal.

    ``values`` (k,) of the parameters of ``law``; slow motion, without load dependence. Zero for a
    law without presliding.
    """
    chosen = [i for i, p in enumerate(law.table) if any(t.kind >= STOP for t in p.terms)]
    if not chosen:
        return 0.0
    motion = AxisMotion(np.arange(3.0), np.array([0.0, 0.0, -travel]),
                        np.array([SLIDING, 0.0, 0.0]))
    torque = values[chosen] @ columns_of([law.table[i] for i in chosen], motion)
    return float(torque[1] - torque[2])


def step_warning(model: IdentifiedModel, log: RawLog) -> str | None:
    """Return a sentence naming joints whose friction changes much within one step, or None.

    Friction at rest and at reversals cannot be resolved better than one step.
    """
    changes = []
    for j, (joint, label) in enumerate(zip(
            model.robot.joints, axes_of(model.robot).labels, strict=False)):
        law, step = model.structure.laws[j], resolution(log.position[:, j])
        values = np.array([model.standard[f'{p}{label}'] for p in law.parameters])
        within, whole = change_over(law, values, step), change_over(law, values, np.inf)
        if within > STEP_SHARE * whole > 0.0:
            changes.append(f'{joint} {within:.2g} of {whole:.2g} within {step:.1e}')
    if not changes:
        return None
    return ('friction after a reversal changes within one step of the encoder, by [N m or N, rad '
            f'or m]: {", ".join(changes)}; predictions at rest and near reversals are uncertain '
            'by that much; record positions with more digits')
