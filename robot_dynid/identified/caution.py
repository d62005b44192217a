"""Warnings for every use of a model that has no numbers for some of its joints."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from robot_dynid.errors import RefusedJointWarning
from robot_dynid.estimation.estimate import Status
from robot_dynid.estimation.uncertainty.refusal import refusal_sentence

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: calls from the user's line to the warning: the model's method, its check of states, this module
LEVEL = 4


def caution(model: IdentifiedModel) -> str:
    """Return a caution about the refused joints; '' for none."""
    reasons = model.record.refused
    return '; '.join(refusal_sentence(joint, reasons[joint]) if joint in reasons else
                     f'joint {joint} is refused: {Status.NOT_IDENTIFIED.value}'
                     for joint in model.not_identified)


def warn(model: IdentifiedModel) -> None:
    """Give a Python warning of refused joints, once in the life of a model."""
    if model.not_identified and '_warned' not in vars(model):
        vars(model)['_warned'] = True
        warnings.warn(f'{model.robot.name}: {caution(model)}', RefusedJointWarning,
                      stacklevel=LEVEL)
