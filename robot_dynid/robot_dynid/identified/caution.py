"""Uses of a model that lacks something there: what they get instead, and how they are warned.

Python warns of refused joints, once. Services, topics, commands and C code, whose users may read
numbers alone, have no number of a refused joint: its effort is NaN (`without_refused`). What moves
all joints at once (accelerations, motions, descriptions for simulators) needs every joint: it is
refused (`require_every_joint`), or NaN in tables; commands make an exception where
``--accept-partial`` is given.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import ExportWarning, ModelError, RefusedJointWarning
from robot_dynid.estimation.uncertainty.held_out import refusal_sentences
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: calls from the user's line to the warning: the model's method, its check of states, this module
STACK_LEVEL = 4


def caution(model: IdentifiedModel) -> str:
    """Return a caution about the refused joints; '' for none."""
    reasons = model.record.refused
    return '; '.join(refusal_sentences({
        joint: reasons.get(joint, 'the data gives no model of its effort')
        for joint in model.not_identified}))


def after_caution(model: IdentifiedModel, *texts: str) -> str:
    """Return ``texts`` in one, the caution about refused joints first."""
    return '; '.join(filter(None, (caution(model), *texts)))


def cautions(model: IdentifiedModel) -> tuple[str, ...]:
    """Return sentences about a model that go with it into other programs."""
    sentences = []
    if model.not_identified:
        sentences.append(f'Do not use: {caution(model)}')
    if model.robot.drive.kind == 'gravity_compensated_torque':
        sentences.append('Efforts are without weight, which the drives compensate by themselves.')
    sentences += [effect.left_out for effect in model.learnt_effects.values() if effect.left_out]
    return (*sentences, *stiff_leaves_out(model))


def stiff_leaves_out(model: IdentifiedModel) -> tuple[str, ...]:
    """Return sentences about the effects of gears that uses with stiff gears leave out."""
    gears = model.mechanism.gears
    if gears is None:
        return ()
    return (*_left_out(model, 'kinematic error', gears.wavy),
            *_left_out(model, 'hysteresis', gears.hysteretic))


def states_leave_out(model: IdentifiedModel) -> tuple[str, ...]:
    """Return sentences about the effects of gears that states by themselves leave out."""
    gears = model.mechanism.gears
    return () if gears is None else _left_out(
        model, 'hysteresis', gears.hysteretic, ': states by themselves have no past')


def _left_out(
    model: IdentifiedModel, effect: str, own: NDArray[np.bool_], why: str = ''
) -> tuple[str, ...]:
    joints = ', '.join(np.array(model.elastic_joints)[own])
    return (f'Left out: {effect} of the gears of {joints}{why}.',) if joints else ()


def usable(model: IdentifiedModel, partial: bool = False) -> bool:
    """Return whether a model has numbers for all joints; with ``partial`` for any of them."""
    refused = len(model.not_identified)
    return refused < len(model.joints) if partial else refused == 0


def without_refused(model: IdentifiedModel, effort: FloatArray) -> FloatArray:
    """Return ``effort`` (..., n), NaN in refused joints."""
    return np.where(np.isin(model.joints, model.not_identified), np.nan, effort)


def require_every_joint(
    model: IdentifiedModel, partial: bool = False, remedy: str = 'identify it again'
) -> None:
    """Raise ModelError for a model with refused joints; with ``partial`` only if all are."""
    if not usable(model, partial):
        raise ModelError(f'all joints move together, and {caution(model)}; {remedy}')


def require_any_joint(model: IdentifiedModel) -> None:
    """Raise ModelError for a model that no joint could use."""
    if not usable(model, partial=True):
        raise ModelError('every joint is refused, so there is no model to serve: '
                         f'{model.status or caution(model)}')


def warn(model: IdentifiedModel) -> None:
    """Give a Python warning of refused joints, once in the life of a model."""
    if model.not_identified and '_warned' not in vars(model):
        vars(model)['_warned'] = True
        warnings.warn(f'{model.robot.name}: {caution(model)}', RefusedJointWarning,
                      stacklevel=STACK_LEVEL)


def warn_of(texts: Iterable[str]) -> None:
    """Give Python warnings of what an object that was made of a model lacks."""
    for text in texts:
        warnings.warn(text, ExportWarning, stacklevel=STACK_LEVEL)
