"""Slow changes of friction and ripple, found in recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robot_dynid.effects.slow_changes import Leftover
from robot_dynid.effects.slow_changes_search import (
    AdaptationFit,
    fit_warming,
    rescaled,
    with_drift,
)
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.beside_links import RowWeights, beside_links, with_change
from robot_dynid.identification.recipe import JOINT, NONE, Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import SlowChange
from robot_dynid.signals.prepare import Repaired, prepare
from robot_dynid.validation.slow_changes import Course, Remainder

#: samples of a recording with fewer show nothing slow
LEAST = 3


def with_slow_changes(
    fit: tuple[IdentifiedModel, Estimate], recordings: Sequence[Repaired], recipe: Recipe,
    estimator: Estimator, experiment: Experiment,
) -> tuple[IdentifiedModel, Estimate]:
    """Return model and estimate with the slow changes that the recordings show beyond chance.

    Where the fit is linear, friction that warms up and the base parameters are fitted together:
    these change, and so does what is known of them. Nothing is looked for where joints deflect,
    rest in turn, or were averaged over periods.
    """
    model, estimate = fit
    if recipe.adaptation == NONE or model.elastic_joints or estimator.single_joint_motions or any(
            one.averaging is not None for one in recordings):
        return fit
    used, remainders = _remainders(model, recordings)
    if not used:
        return fit
    before = _leftovers(model, remainders)
    warmings = [fit_warming(own) for own in before]
    weights = _weights(model, estimator, recipe, experiment)
    if weights is not None and any(one for one, _ in warmings):
        found = beside_links(model, (used, before), [one for one, _ in warmings], weights)
        model, estimate = with_change(model, estimate, [one for one in found if one])
        used, remainders = _remainders(model, used)
        warmings = [(None if one is None else rescaled(one.warming, old, new), gained)
                    for one, (_, gained), old, new in zip(
                        found, warmings, before, _leftovers(model, remainders), strict=True)]
    fits = [with_drift([one.of_joint(j) for one in remainders], *warming)
            for j, warming in enumerate(warmings)]
    kept = tuple(None if joint in model.record.refused else one.kept for joint, one in zip(
        model.joints, fits, strict=True))
    record = replace(model.record, slow_changes=tuple(
        _record(joint, one) for joint, one in zip(model.joints, fits, strict=True)))
    return replace(model, adaptations=kept if any(kept) else (), record=record), estimate


def _remainders(
    model: IdentifiedModel, recordings: Sequence[Repaired]
) -> tuple[list[Repaired], list[Remainder]]:
    """Return the recordings of use, and what the model leaves over in each."""
    used, remainders, course = list[Repaired](), list[Remainder](), Course(model)
    for recording in recordings:
        try:
            samples = prepare(model.robot, recording, model.preprocessing)
        except DataError:
            continue  # a part of a longer one that is at rest or too short
        one = course(recording, samples, model.without_ripple(samples))
        if len(one.rows) >= LEAST:
            used.append(recording)
            remainders.append(one)
    return used, remainders


def _leftovers(model: IdentifiedModel, remainders: Sequence[Remainder]) -> list[list[Leftover]]:
    """Return leftovers of every joint in every recording, without columns of ripple."""
    return [[one.without_waves(j) for one in remainders] for j in range(model.robot.n)]


def _weights(
    model: IdentifiedModel, estimator: Estimator, recipe: Recipe, experiment: Experiment
) -> RowWeights | None:
    """Return the weights of the rows in a fit of all at once; None where it is not linear."""
    if not estimator.linear or recipe.loops != JOINT or any(model.residual_models):
        return None
    return RowWeights(estimator.joint_weights(experiment), experiment.reversal_weights)


def _record(joint: str, fit: AdaptationFit) -> SlowChange:
    return SlowChange(joint, fit.warming.share, fit.warming.deviations, fit.slow.share,
                      fit.slow.deviations)
