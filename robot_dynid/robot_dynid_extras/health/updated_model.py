"""The served model brought up to date with parameters that were followed along everyday motion.

It takes the place of the model only where it has predicted recent motion better: each stretch
before it was learnt from (Dawid 1984), and all of them once it is physically consistent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import number
from robot_dynid.errors import DataError, ModelError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.information import triangle
from robot_dynid.export.samples import Posterior
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import impossible
from robot_dynid.types import FloatArray, frozen
from robot_dynid_extras.health.recursive_identification import RecursiveIdentification

#: share by which the error of a joint may grow by chance
CHANCE = 0.05
#: beginning of the record of an update among the warnings of a model
UPDATED = 'updated on line'


@one_blas_thread()
def updated_model(found: RecursiveIdentification) -> IdentifiedModel:
    """Return the model with the parameters that were found in everyday motion.

    Feasible parameters stay feasible. Raises DataError where nothing is known yet, a joint is
    predicted worse than by the served model, or all together are not predicted better; ModelError
    where no robot has such parameters.
    """
    served, recent = found.model, found.recent
    if recent is None:
        raise DataError('no everyday motion was of use yet: move the robot, and ask again')
    _require_better(found, *np.sqrt(recent.errors / np.maximum(recent.samples, 1.0)))
    known = np.isfinite(served.std)
    values = np.where(known, found.values, served.values)
    root = triangle(np.where(known, found.root, 0.0))
    std = np.linalg.norm(root, axis=0)
    correlation = root / np.where(std > 0.0, std, 1.0)
    note = f'{UPDATED} from {number(found.seconds, 3)} s of everyday motion'
    made = replace(
        served, values=frozen(values), std=frozen(np.where(known, std, served.std)),
        correlation_factor=frozen(correlation),
        warnings=(*(w for w in served.warnings if not w.startswith(UPDATED)), note))
    if served.feasible is not None:
        made = _feasible(made, root)
    elif more := [w for w in impossible(made) if w not in impossible(served)]:
        raise ModelError(f'the parameters found are no robot\'s: {"; ".join(more)}')
    _require_better(found, found.left_over(served.values), found.left_over(made.values))
    return made


def _feasible(model: IdentifiedModel, root: FloatArray) -> IdentifiedModel:
    """Return the model with the feasible parameters nearest to its values."""
    links = model.feasible_links
    assert links is not None
    torque: TorqueModel = replace(
        model.torque_model, robot=model.torque_model.robot.with_nominal(links))
    standard = Posterior(torque, model.values, root).nearest()
    return replace(model, values=frozen(model.reduction.base(standard)),
                   feasible=frozen(standard))


def _require_better(
    found: RecursiveIdentification, served: FloatArray, now: FloatArray
) -> None:
    """Raise DataError naming the rows whose errors (n,) [N m] are larger than ``served``."""
    tiny = np.finfo(float).tiny
    if float(np.sum(np.log(np.maximum(now, tiny) / np.maximum(served, tiny)))) >= 0.0:
        raise DataError('recent motion is predicted no better than by the served model; it stays')
    worse = now > (1.0 + CHANCE) * served
    if worse.any():
        names = found.model.torque_model.robot.row_names
        told = ', '.join(f'{names[j]} ({number(now[j], 3)} instead of {number(served[j], 3)} N m)'
                         for j in np.flatnonzero(worse))
        raise DataError(f'recent motion is predicted worse than by the served model: {told}; it '
                        'stays')
