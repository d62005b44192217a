"""Drive gains and payloads from recordings with and without a payload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import subject
from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import JointFriction
from robot_dynid.effects.links import AttachedBody
from robot_dynid.errors import DataError, UsageError, reported
from robot_dynid.estimation.drive_gains import DriveGains, KnownLoad, fit_drive_gains
from robot_dynid.estimation.experiment import MODERATE_SPEED, TorqueModel, batch_samples
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.payload import PayloadEstimate, fit_payload
from robot_dynid.identification.selection import DEFAULT_WIDTH
from robot_dynid.identified.caution import caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.identified.uses import recordings_for, rigid_equivalent
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.inertia import PARAMETERS, com_from_parameters
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import Pair, align
from robot_dynid.signals.prepare import CUTOFF_RATE_SHARE, Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, Progress, RawLog, Samples


@dataclass(frozen=True, eq=False)
class GainsResult:
    """Gains of the drives identified with the payload on ``link``."""

    gains: DriveGains
    robot: RobotModel
    link: str
    samples: int
    warnings: tuple[str, ...]


@reported
@one_blas_thread()
def identify_drive_gains(
    robot: RobotModel, loaded: Sequence[RawLog], unloaded: Sequence[RawLog], load: KnownLoad,
    model: IdentifiedModel | None = None, equal: Sequence[Sequence[str]] = (),
) -> GainsResult:
    """Identify the drive gains from motions with and without a payload of known mass.

    Arm, friction, payload and gains are fitted together; ``unloaded`` may be any motions.
    ``equal`` groups joints with drives of one size; ``model`` only determines friction and
    preprocessing. The gains stated for the robot are not used. Raises UsageError (wrong use),
    ModelError (model of another robot), DataError (the data does not allow it).
    """
    require_recordings(robot, loaded)
    if not unloaded:
        raise UsageError('drive gains need recordings with and without the payload: give '
                         'recordings without it, too')
    if any(log.external_torque is not None for log in (*loaded, *unloaded)):
        raise UsageError('drive gains are identified from the payload only: omit '
                         'recordings with an external wrench')
    if model is not None:
        model.require(robot)
        model = rigid_equivalent(model)
        robot = model.robot
    robot = robot.rigid
    # gains and efforts have the same scale
    loaded, findings = recordings_for(model, robot, loaded, ['effort_scale'])
    unloaded, more = recordings_for(model, robot, unloaded, ['effort_scale'])
    groups = _groups(robot, equal)
    body = AttachedBody.on(robot, load.link)
    torque = _torque_model(robot, model)
    parts: list[Equations] = []
    for logs, share in ((loaded, 1.0), (unloaded, 0.0)):
        parts += [_equations(torque, body, model, log, share) for log in logs]
    information = reduce_equations((*torque.reduction.names, *PARAMETERS), parts)
    gains = fit_drive_gains(information, load, groups)
    return GainsResult(gains, robot, body.link, information.samples,
                       (*findings, *more, *warnings_of(parts)))


def _torque_model(robot: RobotModel, model: IdentifiedModel | None) -> TorqueModel:
    if model is not None:
        return model.torque_model
    return Structure.uniform(robot, True, 'coulomb', {'width': DEFAULT_WIDTH}).torque_model(robot)


def _groups(robot: RobotModel, equal: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Number the gains: joints of one of the ``equal`` groups share theirs."""
    owner = list(range(robot.n))
    for names in equal:
        joints = [robot.index(name) for name in names]
        taken = [robot.joints[j] for j in joints if owner[j] != j]
        if taken:
            raise UsageError(f'equal gains: {subject(taken)} in two groups: list each joint '
                             'once')
        for j in joints:
            owner[j] = min(joints)
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)


def _equations(
    torque: TorqueModel, body: AttachedBody, model: IdentifiedModel | None, log: RawLog,
    share: float,
) -> Equations:
    """Return a recording in the unit it was measured in, with a ``share`` of the payload."""
    robot, settings = torque.robot, settings_for(model, log)
    repaired = repair(robot, log, settings.rate)
    samples = prepare(robot, repaired, settings)
    columns = np.concatenate([torque.columns(samples), share * body.columns(samples.moved)],
                             axis=1)
    assert samples.effort is not None and samples.measured is not None
    unit = robot.torque_factors
    return Equations(samples, columns, samples.effort / unit, samples.measured / unit,
                     Match(log.source), repaired.notes)


#: low-pass [Hz] without a model, as far as the recording allows; the mass of the measured pair
#: changes by 0.1 % from 2 to 15 Hz
PAYLOAD_CUTOFF = 6.5
#: efforts that differ by less than this share are the same recording
SAME_EFFORT = 1e-9
#: random states for the magnitude of a parameter's effort
PAYLOAD_STATES = 50
#: recordings shorter than this [s] have too few independent stretches for reliable deviations
LEAST_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class Match:
    """A recording with the payload, and the unloaded one that repeats its motion, if any.

    ``lag`` [s], ``drift`` and ``difference`` (n,) [rad, m] as in `Pair`.
    """

    loaded: str
    unloaded: str = ''
    lag: float = 0.0
    drift: float = 0.0
    difference: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class PayloadResult:
    """A payload in the frame of ``link``, from so many ``samples``.

    ``matches`` are the loaded recordings, each with the unloaded one that repeats its motion.
    """

    estimate: PayloadEstimate
    robot: RobotModel
    link: str
    samples: int
    matches: tuple[Match, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Equations:
    """A recording with its regressor (n, k, N), and the efforts (N, n) to explain."""

    samples: Samples
    columns: FloatArray
    effort: FloatArray
    measured: FloatArray
    match: Match
    notes: tuple[str, ...] = ()


@reported
@one_blas_thread()
def identify_payload(
    robot: RobotModel, loaded: Sequence[RawLog], unloaded: Sequence[RawLog] = (),
    model: IdentifiedModel | None = None, link: str = '', progress: Progress | None = None,
) -> PayloadResult:
    """Identify a payload on ``link`` (default: the last one), and nothing else.

    With ``unloaded`` recordings of the same motions, from the difference of the efforts: arm,
    friction and offsets cancel, and ``model`` or the nominal inertials account for the difference
    of the motions. Without them, from the effort that ``model`` does not predict; friction and
    offsets of the joints are fitted again, because they change from day to day. Raises UsageError
    (wrong use), ModelError (model of another robot), DataError (the data does not allow it).
    """
    if model is None and not unloaded:
        raise UsageError('a payload needs a model of the arm without it, or recordings of the '
                         'same motion without it: give one of them')
    if model is not None:
        model.require(robot)
        model = rigid_equivalent(model)  # gears transmit the whole effort
        robot = model.robot  # with the drive gains its parameters belong to
    robot = robot.rigid
    require_recordings(robot, loaded)
    loaded, findings = recordings_for(model, robot, loaded)
    unloaded, more = recordings_for(model, robot, unloaded)
    body, report = AttachedBody.on(robot, link), progress or (lambda *_: None)
    if unloaded:
        source = _differences(body, model, loaded, unloaded)
    else:
        assert model is not None
        source = _residuals(body, model, loaded)
    parts = []
    for i, part in enumerate(source):
        parts.append(part)
        report(f'prepared {part.match.loaded}', 0.8 * (i + 1) / len(loaded))
    names = (*(friction_of(model).names if model and not unloaded else ()), *PARAMETERS)
    information = reduce_equations(names, parts)
    report('fitting', 0.8)
    refused = [caution(model)] if model is not None and model.not_identified else []
    estimate = fit_payload(information, moderate_effort(body), robot.drive.gain_uncertainty)
    return PayloadResult(estimate, robot, body.link, information.samples,
                         tuple(part.match for part in parts),
                         (*refused, *findings, *more, *warnings_of(parts)))


def require_recordings(robot: RobotModel, loaded: Sequence[RawLog]) -> None:
    """Raise UsageError without a recording, or without a stated kind of effort."""
    if not loaded:
        raise UsageError('no recording with the payload')
    if not robot.drive.kind:
        raise UsageError(f'{robot.name}: the kind of its effort is not stated: put effort_kind: '
                         'torque, current or gravity_compensated_torque into a robot YAML')


def friction_of(model: IdentifiedModel) -> JointFriction:
    """Return the friction of the joints in ``model``."""
    return model.structure.friction_of(model.robot)


def settings_for(model: IdentifiedModel | None, log: RawLog) -> Preprocessing:
    """Return the preprocessing of ``model``, or one suitable for ``log``."""
    if model is not None:
        return model.preprocessing
    typical = float(np.median(np.diff(log.time))) if len(log.time) > 1 else 1.0
    step = typical if typical > 0.0 else 1.0
    return Preprocessing(min(PAYLOAD_CUTOFF, CUTOFF_RATE_SHARE / step))


def _residuals(
    body: AttachedBody, model: IdentifiedModel, loaded: Sequence[RawLog]
) -> Iterator[Equations]:
    """Yield the error of the model's prediction, to be explained by friction and payload."""
    friction = friction_of(model)
    chosen = np.arange(len(friction.names))
    for log in loaded:
        repaired = repair(body.robot, log, model.preprocessing.rate)
        samples = prepare(body.robot, repaired, model.preprocessing.limited_to(repaired))
        columns = np.zeros((body.robot.n, len(chosen), len(samples)))
        friction.fill(samples, friction.history(samples), chosen, columns)
        predicted = model.predicted(samples)
        assert samples.effort is not None and samples.measured is not None
        yield Equations(samples, np.concatenate([columns, body.columns(samples.moved)], axis=1),
                        samples.effort - predicted, samples.measured - predicted,
                        Match(log.source), repaired.notes)


def _differences(
    body: AttachedBody, model: IdentifiedModel | None, loaded: Sequence[RawLog],
    unloaded: Sequence[RawLog],
) -> Iterator[Equations]:
    """Yield the change of effort by the payload, to be explained by it only."""
    notes: list[str] = []
    others = []
    for log in unloaded:
        settings = replace(settings_for(model, log), decimate=False)
        repaired = repair(body.robot, log, settings.rate)
        others.append((log.source, prepare(body.robot, repaired, settings).gridded))
        notes += repaired.notes
    for log in loaded:
        settings = settings_for(model, log)
        repaired = repair(body.robot, log, settings.rate)
        samples = prepare(body.robot, repaired, settings).gridded
        name, pair = _best_match(log.source, samples, others)
        first, second = pair.first, pair.second
        arm = arm_effort(body.robot, model, first) - arm_effort(body.robot, model, second)
        assert first.effort is not None and first.measured is not None
        assert second.effort is not None and second.measured is not None
        change = first.effort - second.effort
        if np.abs(change).max() <= SAME_EFFORT * np.abs(first.effort).max():
            raise DataError(f'{log.source} and {name}: the efforts are the same: give two '
                            'different recordings')
        yield Equations(first, body.columns(first), change - arm,
                        first.measured - second.measured - arm,
                        Match(log.source, name, pair.lag, pair.drift, pair.difference),
                        (*notes, *repaired.notes))
        notes = []


def _best_match(
    source: str, samples: Samples, others: Sequence[tuple[str, Samples]]
) -> tuple[str, Pair]:
    """Return the recording with the nearest motion; raises DataError if none repeats it."""
    pairs, problems = [], []
    for name, other in others:
        try:
            pairs.append((name, align(samples, other)))
        except DataError as error:
            problems.append(f'{source} and {name}: {error}')
    if not pairs:
        raise DataError(problems[0])
    return min(pairs, key=lambda pair: float(np.sum(pair[1].difference)))


def arm_effort(
    robot: RobotModel, model: IdentifiedModel | None, samples: Samples
) -> FloatArray:
    """Return the effort (N, n) of the arm without payload, by its model or nominal inertials."""
    if model is not None:
        return model.predicted(samples)
    if robot.drive.kind == 'gravity_compensated_torque':
        robot = robot.with_gravity(np.zeros(3))
    return rigid_body.inverse_dynamics(
        robot, samples.position, samples.velocity, samples.acceleration)


def reduce_equations(names: tuple[str, ...], parts: Sequence[Equations]) -> Information:
    """Reduce equations to information; a column counts in the rows where it is nonzero."""
    present = np.any([np.any(part.columns != 0.0, axis=2) for part in parts], axis=0)
    structure: NDArray[np.bool_] = np.asarray(present)
    accumulator = Accumulator(names, structure, batch_samples(parts[0].samples))
    for part in parts:
        accumulator.add(part.columns, part.effort, part.measured)
    return accumulator.information()


def moderate_effort(body: AttachedBody) -> FloatArray:
    """Return the effort (n, 10) of each parameter at one, RMS at about 1 rad/s."""
    states = random_states(body.robot, PAYLOAD_STATES, np.random.default_rng(0))
    share = MODERATE_SPEED / float(np.sqrt(np.mean(states.velocity**2)))
    slower = replace(states, velocity=share * states.velocity,
                     acceleration=share * states.acceleration)
    return np.asarray(np.sqrt(np.mean(body.columns(slower) ** 2, axis=2)))


def warnings_of(parts: Sequence[Equations]) -> tuple[str, ...]:
    """Return warnings about repairs and short recordings."""
    warnings = [note for part in parts for note in part.notes]
    seconds = sum(len(p.samples) * float(np.median(np.diff(p.samples.time))) for p in parts
                  if len(p.samples) > 1)
    if seconds < LEAST_SECONDS:
        warnings.append(f'{seconds:.2g} s of motion give few independent stretches, so the '
                        f'standard deviations may be too small: record {LEAST_SECONDS:g} s')
    return tuple(warnings)


def set_payload(estimate: PayloadEstimate) -> dict[str, Any] | None:
    """Return the request of ur_msgs/srv/SetPayload, all its fields: kg, m.

    The frame is that of the estimate and must be the flange (tool0). None if mass or centre of
    mass are undetermined.
    """
    if not _usable(estimate):
        return None
    mass, com, _ = com_from_parameters(estimate.parameters)
    return {'mass': mass, 'center_of_gravity': dict(zip('xyz', com.tolist(), strict=True))}


def set_load(estimate: PayloadEstimate) -> dict[str, Any] | None:
    """Return the request of franka_msgs/srv/SetLoad, inertia column by column.

    ROS 1 calls ``center_of_mass`` ``F_x_center_load``. Frame and None as in `set_payload`;
    undetermined moments [kg m^2] about the centre of mass are those of the smallest body.
    """
    if not _usable(estimate):
        return None
    mass, com, inertia = com_from_parameters(estimate.parameters)
    return {'mass': mass, 'center_of_mass': com.tolist(),
            'load_inertia': inertia.ravel(order='F').tolist()}


def _usable(estimate: PayloadEstimate) -> bool:
    return bool(np.isfinite(estimate.mass_std) and np.isfinite(estimate.centre_of_mass_std).all())
