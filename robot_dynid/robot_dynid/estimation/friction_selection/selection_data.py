"""The data from which friction laws are chosen, and the choices it allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.effects import Axes, JointFriction
from robot_dynid.effects.joint_friction import Load
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.candidate_columns import Dictionary, Factors
from robot_dynid.estimation.friction_selection.law_request import LawRequest
from robot_dynid.estimation.friction_selection.law_scores import noise_of, solution
from robot_dynid.estimation.least_squares import left_open
from robot_dynid.friction import FrictionLaw
from robot_dynid.types import FloatArray, Samples

#: travel [rad, m] below which an axis may remain in presliding
PRESLIDING_TRAVEL = 0.05
#: length of a recording [s] from which warming up is visible
LEAST_WARM_UP = 60.0
#: share of the highest speed by which an axis must move both ways
BOTH_WAYS = 0.05

Named = tuple[str, FrictionLaw]


@dataclass(frozen=True, eq=False)
class FrictionData:
    """Recordings with the same filter; `model` contains links and rotors only."""

    model: TorqueModel
    axes: Axes
    recordings: Sequence[Samples]

    def factors(self, candidates: Sequence[Sequence[Named]], load: Load | None) -> Factors:
        """Reduce the recordings to the columns of all candidates of every axis."""
        laws = tuple(Dictionary(tuple(law for _, law in named)) for named in candidates)
        return Factors.of(self.model, JointFriction(self.axes, laws, load), self.recordings)

    def alone(self) -> list[bool]:
        """Return, for each axis, True if no other axis acts on the same joints."""
        acts = self.axes.effort != 0.0
        return [bool(np.all(acts[:, joints].sum(axis=0) == 1)) for joints in acts]

    def reasons(self) -> list[str]:
        """Return, for each axis, the reason why its law cannot be chosen, or ''."""
        reasons = []
        for axis in self.axes.matrix:
            travel = max(float(np.ptp(s.position @ axis)) for s in self.recordings)
            velocity = np.concatenate([s.velocity @ axis for s in self.recordings])
            fast = BOTH_WAYS * np.abs(velocity).max(initial=0.0)
            reasons.append(
                f'travels over {travel:.2g} only, perhaps within presliding'
                if travel < PRESLIDING_TRAVEL else
                'moves in one direction only, so its friction equals an offset'
                if velocity.max() <= fast or velocity.min() >= -fast else '')
        return reasons

    def additions(self, requested: LawRequest, load: bool) -> dict[str, dict[str, Any]]:
        """Return the additions to try on an axis, with settings that are not searched.

        Those of the requested law, or those that the data can show.
        """
        warm = [s.temperature for s in self.recordings if s.temperature is not None]
        complete = len(warm) == len(self.recordings)
        longest = max(float(s.elapsed[-1]) for s in self.recordings)
        possible = {'levelling': True, 'breakaway': True, 'load': load,
                    'drift': longest >= LEAST_WARM_UP, 'temperature': complete}
        names = [n for n, yes in possible.items() if yes and n not in requested.without] \
            if requested.auto else requested.law.split('+')[1:]
        mean = float(np.mean(np.concatenate(warm))) if complete else 25.0
        return {n: {'reference': round(mean, 3)} if n == 'temperature' else {} for n in names}

    def links(self, factors: Factors, laws: Sequence[FrictionLaw]) -> FloatArray:
        """Return standard parameters (n, 10) of the links from a fit with `laws`."""
        noise = np.ones(len(factors.active))
        for _ in range(3):
            noise = noise_of(factors, laws, noise)
        _, values = solution(factors, laws, noise)
        standard = self.model.reduction.standard_values(values[:factors.links])
        return np.asarray(standard[:10 * self.model.robot.tree.n].reshape(-1, 10))

    def left_open(self, laws: Sequence[Named], links: FloatArray | None) -> set[str]:
        """Return the friction parameters that a fit with `laws` reports as not excited.

        `links` (n, 10) are standard parameters for laws that depend on the load, or None.
        """
        friction = JointFriction(self.axes, tuple(law for _, law in laws), self.load(links))
        experiment = Experiment.of(self.with_friction(friction), self.recordings)
        return set(left_open(experiment)) & set(friction.names)

    def with_friction(self, friction: JointFriction) -> TorqueModel:
        """Return the model extended by `friction`."""
        return TorqueModel.of(self.model.robot, (*self.model.blocks, friction))

    def names(self, axis: int, law: FrictionLaw) -> set[str]:
        """Return the names of the parameters of ``law`` on an axis."""
        return {f'{p}{self.axes.labels[axis]}' for p in law.parameters}

    def load(self, links: FloatArray | None) -> Load | None:
        """Return the load of the axes with the standard parameters `links` (n, 10), or None."""
        return None if links is None else Load(self.model.robot, self.axes, links)
