"""Between messages and arrays: the numbers of requests without copies, what is wrong in words."""

from __future__ import annotations

import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.identification.payload import PayloadResult
from robot_dynid.identification.payload_services import set_load
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray
from robot_dynid_interfaces.msg import DynamicModel, Payload


@dataclass(frozen=True, eq=False)
class Order:
    """A permutation of joints: ``model = request[:, to_model]``, ``request = model[:, back]``."""

    to_model: NDArray[np.intp]
    back: NDArray[np.intp]


def joint_order(names: Sequence[str], joints: tuple[str, ...]) -> Order | None:
    """Return the order of joints ``names`` in a request; None when it is that of the model.

    Raises UsageError naming a joint that is unknown, missing or given twice.
    """
    given = tuple(names)
    if not given or given == joints:
        return None
    known = ', '.join(joints)
    for name in given:
        if name not in joints:
            raise UsageError(f'joint_names: no joint {name!r}; the model has {known}')
        if given.count(name) > 1:
            raise UsageError(f'joint_names: joint {name!r} is named {given.count(name)} times')
    missing = [name for name in joints if name not in given]
    if missing:
        raise UsageError(f'joint_names: joint {", ".join(missing)} is missing; name all of '
                         f'{known}, or none for this order')
    return Order(np.array([given.index(name) for name in joints]),
                 np.array([joints.index(name) for name in given]))


def matrix(name: str, numbers: array.array[float], joints: int) -> FloatArray:
    """Return a view (K, joints) of the first field of a request, which decides K.

    Raises UsageError when it is empty or K would not be a whole number.
    """
    if not numbers:
        raise UsageError(f'{name} is empty, expected K*{joints} numbers: K states of '
                         f'{joints} joints')
    if len(numbers) % joints:
        raise UsageError(f'{name} has {len(numbers)} numbers, expected a multiple of {joints}: '
                         f'K states of {joints} joints')
    return np.frombuffer(numbers).reshape(-1, joints)


def like(name: str, numbers: array.array[float], first: FloatArray) -> FloatArray:
    """Return a view of another field, which must be as long as ``first`` (K, n).

    Raises UsageError with both lengths when it is not.
    """
    if len(numbers) != first.size:
        raise UsageError(f'{name} has {len(numbers)} numbers, expected {first.size} as position: '
                         f'{first.shape[0]} states of {first.shape[1]} joints')
    return np.frombuffer(numbers).reshape(first.shape)


def require_finite(fields: Mapping[str, FloatArray], names: Sequence[str]) -> None:
    """Raise UsageError naming field, joint and place of the first number that is not finite.

    The arrays are (..., n), their last axis in the order of ``names``.
    """
    for field, values in fields.items():
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            row, column = divmod(int(bad[0]), values.shape[-1])
            raise UsageError(f'{field}[{bad[0]}] is {values.flat[bad[0]]}: joint '
                             f'{names[column]!r} of state {row}; every number must be finite')


def numbers(values: FloatArray) -> array.array[float]:
    """Return ``values`` (...,) as the field of a message, row-major; lists would cost tenfold."""
    field = array.array('d')
    field.frombytes(np.ascontiguousarray(values, dtype=np.float64).data.cast('B'))
    return field


def model_message(model: IdentifiedModel, text: str, stamp: Time) -> DynamicModel:
    """Return the latched description of a model; ``text`` is its file."""
    message = DynamicModel(
        robot=model.robot.name, robot_hash=model.robot.hash(), joint_names=list(model.joints),
        not_identified=list(model.not_identified), names=list(model.names),
        values=numbers(model.values), std=numbers(model.std), labels=list(model.labels),
        yaml=text,
    )
    message.header.stamp = stamp
    message.header.frame_id = model.robot.base_link
    return message


def payload_message(result: PayloadResult) -> Payload:
    """Describe an identified payload; what is not determined is NaN."""
    found, load = result.estimate, set_load(result.estimate)
    message = Payload(
        frame=result.link, determined=load is not None, mass=found.mass,
        centre_of_mass=found.centre_of_mass, not_excited=list(found.not_excited))
    message.mass_std = found.mass_std if np.isfinite(found.mass_std) else np.nan
    std = found.centre_of_mass_std
    message.centre_of_mass_std = np.where(np.isfinite(std), std, np.nan)
    message.inertia = np.full(9, np.nan) if load is None else np.array(load['load_inertia'])
    return message
