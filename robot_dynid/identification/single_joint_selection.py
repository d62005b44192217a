"""Choices from recordings of single joints: each by its own effort while it alone moves.

Friction laws come first, joint by joint, with presliding, load and whatever else its own motion
shows; the links are then identified stage by stage with these laws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.law_request import LawRequest
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice, choose_laws
from robot_dynid.estimation.staged.least_squares import StagedLeastSquares
from robot_dynid.estimation.staged.own_effort import OwnFrictionData, own_errors, own_motions
from robot_dynid.identification.selection import WIDTHS, Excerpt, frictionless
from robot_dynid.identified.structure import Structure
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Samples


class SingleJointExcerpt(Excerpt):
    """Recordings in which one joint moves at a time."""

    def errors(self, model: TorqueModel, samples: Iterable[Samples]) -> FloatArray:
        """Return the logarithm (n,) of the held-out error of each joint while it moves."""
        return own_errors(model, samples)

    def ramp(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure`` with the best width of the Coulomb ramp."""
        candidates = [Structure.uniform(self.robot, structure.rotor_inertia, structure.friction[0],
                                        {'width': width}) for width in WIDTHS]
        return min(candidates,
                   key=lambda one: self.score(one.torque_model(self.robot), settings))

    def springs(self, structure: Structure, settings: Preprocessing) -> Structure:
        """Return ``structure``: a joint by itself does not tell springs from the weight."""
        return structure

    def laws(
        self, structure: Structure, settings: Preprocessing, requests: Sequence[LawRequest]
    ) -> tuple[Structure, tuple[AxisChoice, ...]]:
        """Return ``structure`` with the law of every joint, from its own motion.

        Motors that turn with several joints keep the law there is, and so do their joints.
        """
        robot, samples = self.robot, self.samples(settings)
        if robot.drive.coupling is not None:
            return structure, ()
        loading = self._loading(structure, samples) \
            if robot.drive.kind != 'gravity_compensated_torque' else None
        model = frictionless(robot, structure)
        laws = list(zip(structure.friction, structure.laws, strict=True))
        choices: list[AxisChoice] = []
        for motion in own_motions(robot, samples):
            j = motion.joint
            found, made, _ = choose_laws(
                OwnFrictionData.of(model, motion, loading), requests[j:j + 1],
                structure.laws[j:j + 1], loading is not None)
            laws[j] = found[0]
            choices += made
        return structure.with_laws(laws, loading), tuple(choices)

    def _loading(
        self, structure: Structure, samples: Sequence[Samples]
    ) -> FloatArray:
        """Return the links (n, 10) that load the joints, identified with ``structure``.

        Raises DataError naming a joint that never moves alone.
        """
        model = structure.torque_model(self.robot)
        values = StagedLeastSquares().fit(Experiment.of(model, list(samples))).values
        standard = model.reduction.standard_values(values)
        return standard[:10 * self.robot.n].reshape(-1, 10)
