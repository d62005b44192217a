"""Residual models by name: what the physics left over, learned from the deflection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_dynid.numbers import shown
from robot_dynid.residual.gear import GearModel, GearRegression
from robot_dynid.residual.gmr import MixtureModel, MixtureRegression
from robot_dynid.residual.model import ResidualFit, ResidualModel
from robot_dynid.residual.rbf import RadialBasis, RadialModel
from robot_dynid.residual.ripple import RippleModel, Rippling

RESIDUALS: dict[str, ResidualFit] = {
    'gear': GearRegression(), 'gmr': Rippling(MixtureRegression()), 'rbf': Rippling(RadialBasis())}
MODELS: dict[str, Any] = {'gear': GearModel, 'gmr': MixtureModel, 'rbf': RadialModel}

#: kinds that are tried where the data chooses, each where it improves on those before it
CHOICES = ('gear', 'gmr')


def residual_from_plain(content: Mapping[str, Any]) -> ResidualModel:
    """Return a stored residual model. Raises ValueError when it is damaged."""
    kind = content.get('kind') if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or kind not in MODELS:
        raise ValueError(f'residual: model {shown(kind)} is not known')
    model: ResidualModel = MODELS[kind].from_plain(
        {key: value for key, value in content.items() if key not in ('kind', 'ripple')})
    return RippleModel.of(content, model) if 'ripple' in content else model


__all__ = ['CHOICES', 'RESIDUALS', 'GearModel', 'GearRegression', 'MixtureModel',
           'MixtureRegression', 'RadialBasis', 'RadialModel', 'ResidualFit', 'ResidualModel',
           'RippleModel', 'residual_from_plain']
