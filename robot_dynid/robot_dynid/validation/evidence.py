"""Evidence for the verdict on a model: its scores on recordings, and the motions they lack."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dynid.document import Action, counted, joints_named
from robot_dynid.estimation import DEFAULT
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.uncertainty.held_out import HeldOut
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import effort_by_parameters, holding_torque
from robot_dynid.plausibility.finding import Finding, read_sentences
from robot_dynid.robot.locate import known_robots
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray
from robot_dynid.validation.forward_scores import ForwardValidation
from robot_dynid.validation.residual_parts import JOINT_SLIDES
from robot_dynid.validation.validate import Validation

#: poses at which the static effort is compared with its interval
STATIC_POSES = 200
#: static effort by a parameter below this share of gravity is rounding, as about a vertical axis
GRAVITY_ROUNDING = 1e-9
#: a joint is hardly moved below this share of its range, a turn at most, or of its speed limit
MOVED_SHARE = 0.2
#: recordings test a joint if they cover this share of its trained ranges; a motion whose
#: ranges reach this share of those of the fit in all joints repeats the motion of the fit
COVERED_SHARE, AGAIN = 0.5, 0.02
#: findings that mean that the recordings contradict the robot description
CONTRADICTIONS = frozenset({
    'position_unit', 'velocity', 'position_offset', 'joint_order', 'effort_scale', 'effort_sign',
    'gravity', 'time_unit'})


@dataclass(frozen=True)
class Names:
    """Names in commands: the ``robot`` as the user gave it, and the ``model`` file.

    ``command`` is the command line that identified the model, if there was one, in words.
    """

    robot: str
    model: str = 'model.yaml'
    command: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, model: IdentifiedModel, path: str = 'model.yaml', robot: str | None = None
    ) -> Names:
        """Return the names for a ``model`` at ``path``; its ``robot`` as given to this command.

        Otherwise as given at the identification, or its name if that suffices; ROBOT.yaml stands
        for an unknown file.
        """
        command, name = model.record.command, model.robot.name
        given = robot or _option(command, '--robot') or (
            name if name in known_robots() else 'ROBOT.yaml')
        return cls(given, path, command)

    def design(self, words: str, kind: str, out: str, *options: str) -> Action:
        """Return the action to record a motion, with the command that plans it."""
        return Action(words, shlex.join([
            'robot-dynid', 'design', self.robot, '--type', kind, *options, '--out', out]))

    def identify(self, words: str, model: IdentifiedModel, method: str = '') -> Action:
        """Return the action to identify again, by another ``method`` if one is given.

        All other settings are those of the command that made the model.
        """
        if not model.record.recordings:
            return Action(words)
        command = list(self.command)
        if not command:
            command = ['robot-dynid', 'identify', *model.record.recordings, '--robot', self.robot,
                       '--out', self.model]
            method = method or (model.method if model.method != DEFAULT else '')
        if method:
            command = [*_without_option(command, '--method'), '--method', method]
        return Action(words, shlex.join(command))

    def judging_motion(self, cause: str) -> Action:
        """Return the validation motion to record if, by ``cause``, recordings do not suffice."""
        return self.design(
            f'{cause}: record a distinct motion, and validate the model on it',
            'fourier', 'unseen.yaml', '--seed', '2')

    @property
    def static_poses(self) -> Action:
        """The action to record static poses, which show weight."""
        return self.design('the weight is too uncertain: record static poses, and identify from '
                           'them, too', 'static-poses', 'poses.yaml')


def _option(command: Sequence[str], name: str) -> str:
    """Return the value of an option in the words of a command line, '' if absent."""
    for word, following in zip(command, (*command[1:], ''), strict=False):
        if word == name:
            return following
        if word.startswith(f'{name}='):
            return word.partition('=')[2]
    return ''


def _without_option(command: Sequence[str], name: str) -> list[str]:
    return [word for previous, word in zip(('', *command), command, strict=False)
            if name not in (word, previous) and not word.startswith(f'{name}=')]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A model and its scores, on which the verdict is based, see `verdict.judged`."""

    model: IdentifiedModel
    validation: Validation
    names: Names
    held: HeldOut | None = None
    forward: ForwardValidation | None = None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Contradictions among the warnings of the fit and of the scores."""
        return tuple(dict.fromkeys(
            f for f in read_sentences((*self.model.warnings, *self.validation.warnings))
            if f.kind in CONTRADICTIONS))

    def error(self, subset: str, joint: str, control: bool = False) -> float | None:
        """Return a relative error, of the ``control`` row if requested; None if there is none."""
        scores = self.validation.control if control else self.validation.model
        score = scores.get(subset, {}).get(joint)
        return None if score is None else score.relative_error

    @cached_property
    def sliding(self) -> FloatArray:
        """The share (n,) of the motion of any joint in which each joint slides."""
        moving = [np.abs(t.velocity[t.moving > 0.5]) > JOINT_SLIDES
                  for t in self.validation.traces if t.velocity is not None]
        rows = np.concatenate([*moving, np.ones((0, self.model.robot.n), dtype=bool)])
        return rows.mean(axis=0) if len(rows) else np.ones(self.model.robot.n)

    @cached_property
    def static(self) -> tuple[FloatArray, FloatArray]:
        """The largest static effort (n,) of joints, and its 95 % interval (n,) [N m].

        The half-width of the interval, the largest in poses within the ranges of the fit; infinite
        if a parameter that matters is undetermined, NaN for models without covariance.
        """
        model, n = self.model, self.model.robot.n
        columns = static_columns(model, STATIC_POSES)
        columns[np.abs(columns) <= GRAVITY_ROUNDING * np.linalg.norm(model.robot.gravity)] = 0.0
        largest = np.abs(columns @ model.values).max(axis=0)
        if model.correlation_factor is None:
            return largest, np.full(n, np.nan)
        factor = interval_factor(model.record.degrees_of_freedom or np.inf)
        half = factor * np.linalg.norm(columns @ model.covariance_factor.T, axis=2).max(axis=0)
        unknown = np.abs(columns[:, :, ~np.isfinite(model.std)]).max(axis=(0, 2), initial=0.0)
        return largest, np.where(unknown > 0.0, np.inf, half)

    @cached_property
    def holding(self) -> FloatArray:
        """Dry friction (rows,) [N m] that can hold joints at rest."""
        return holding_torque(self.model)

    @cached_property
    def beyond(self) -> FloatArray:
        """RMS error (n,) [N m] on a new motion beyond that in the scores."""
        rmse = np.array([one.rmse for one in self.validation.model['all'].values()])
        return 0.0 * rmse if self.held is None else np.sqrt(
            np.maximum(self.held.promise**2 - rmse**2, 0.0))

    @cached_property
    def gaps(self) -> tuple[Action | None, ...]:
        """The motion that each joint lacks in the recordings, None if it lacks none."""
        motions = None if self.held is None else self.held.motions
        if not self.unseen and motions is None:
            cause = 'the model was scored on its own training recordings'
        elif not self.unseen and motions == 0:
            cause = 'the recordings are too short to leave a motion out'
        elif not self.unseen and motions == 1:
            cause = 'the recordings contain only one motion'
        elif self.unseen and self.repeats:
            cause = 'the recordings repeat the motion of the fit'
        else:
            part = self.names.judging_motion(
                'the recordings cover less than half of the range of the fit')
            ranges = list(self._trained_and_judged()) if self.unseen else []
            return tuple(self.wider_motion if joint in self.still else part if any(
                judged[j] < COVERED_SHARE * trained[j] for trained, judged in ranges) else None
                for j, joint in enumerate(self.model.joints))
        return (self.names.judging_motion(cause),) * self.model.robot.n

    @cached_property
    def still(self) -> list[str]:
        """Joints that used little of their range (at most a turn) or of their speed."""
        trained, limits = self.model.trained.quantities, self.model.robot.limits
        if not {'position', 'velocity'} <= set(trained):
            return []
        travel = np.fmin(limits.upper - limits.lower, 2.0 * np.pi)
        speed = np.where(np.isfinite(limits.velocity), limits.velocity, 0.0)
        little = (np.ptp(trained['position'], axis=1) < MOVED_SHARE * travel) | (
            np.abs(trained['velocity']).max(axis=1) < MOVED_SHARE * speed)
        return [self.model.joints[j] for j in np.flatnonzero(little)]

    @property
    def wider_motion(self) -> Action:
        """The action to move the joints that hardly moved."""
        return self.names.design(
            f'{joints_named(self.still)} {"moves" if len(self.still) == 1 else "move"} little: '
            'record a motion that uses more of their range and speed', 'fourier',
            'excitation.yaml')

    @property
    def score_forward(self) -> str:
        """The command that simulates motion along the recordings."""
        return shlex.join(['robot-dynid', 'validate', self.names.model, *dict.fromkeys(
            trace.source for trace in self.validation.traces), '--forward'])

    @property
    def repeats(self) -> bool:
        """True if the recordings repeat the motion of the fit: equal ranges in all joints."""
        ranges = list(self._trained_and_judged())
        return bool(ranges) and all(np.all(np.abs(judged - trained) <= AGAIN * np.maximum(
            trained, AGAIN)) for trained, judged in ranges)

    def _trained_and_judged(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the widths (n,) of the ranges of the fit and of the recordings."""
        trained = self.model.trained.quantities
        for name in ('position', 'velocity'):
            values = [getattr(trace, name) for trace in self.validation.traces]
            if name in trained and all(one is not None for one in values):
                yield np.ptp(trained[name], axis=1), np.ptp(np.concatenate(values), axis=0)

    def unit(self, j: int) -> str:
        """Return the unit of the effort of a joint."""
        return 'N' if self.model.robot.types[j] == PRISMATIC else 'N m'

    @property
    def unseen(self) -> bool:
        """Whether the scores are of recordings not used for the fit."""
        seen = set(self.model.record.recordings)
        return not any(t.source in seen for t in self.validation.traces)

    @property
    def words(self) -> str:
        """The recordings that the verdict is based on, in words."""
        count = counted(len({t.source for t in self.validation.traces}))
        if self.unseen:
            return f'Judged on {count} not used for the fit.'
        if self.held is None:
            return f'Judged on {count} of the fit.'
        return f'Cross-validated on the training data ({count}).'


def static_columns(model: IdentifiedModel, count: int) -> FloatArray:
    """Return the static effort (K, n, b) by base parameters in poses within the trained ranges."""
    q = model.trained.poses(model.robot, count)
    return effort_by_parameters(model, q, np.zeros_like(q), np.zeros_like(q))
