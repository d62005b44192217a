"""The strange plant identified with default settings, and judged on motions it has never seen."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from strange_arms import Arm, load_arm
from strange_least_squares import PlainFit
from strange_motions import TRAINING, judging
from strange_plant import Plant, Recorded

from robot_dynid import identify
from robot_dynid.identified.suitability import FEED_FORWARD, GRAVITY
from robot_dynid.identified.uncertainty import effort_intervals, half_intervals
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import Trace, validate

#: seeds of the two motions to judge on, and when they begin [s]
JUDGED = ((901, 150.0), (902, 300.0))
#: a joint moves above this share of its speed
MOVES = 0.05
#: a wave is that of the gear where their orders differ by less than this share, or by less than
#: half a wave over the way of the joint
SAME_ORDER = 0.02
#: names of parameters of links and rotors
RIGID = re.compile(r'(m[xyz]?|I[xyz][xyz]|Ia)\d+')


@dataclass(frozen=True, eq=False)
class Case:
    """One arm identified from one motion, judged on two others; arrays are (n,).

    ``product``, ``plain`` and ``nominal`` are errors over the effort on the new motions, of the
    package, of plain least squares and of nominal links with fitted friction, ``moving`` those of
    the package in motion; ``got`` and ``promised`` root mean square errors [N m].
    ``feed_forward`` is the verdict. ``static`` is the promised error of the static effort [N m],
    ``static_error`` and ``weight_error`` the true 99th percentile with and without cables and
    offset. ``covered`` is the share of new motion within its 95 % interval; ``waves`` counts the
    ripple that is named, that of these which is there, and all that is there; ``contacts`` are
    those in ``watched`` seconds without any; ``definite`` is the share of poses with a positive
    definite mass matrix.
    """

    arm: str
    motion: str
    seed: int
    joints: tuple[str, ...]
    rate: float
    product: FloatArray
    plain: FloatArray
    nominal: FloatArray
    moving: FloatArray
    got: FloatArray
    promised: FloatArray
    feed_forward: tuple[str, ...]
    static: FloatArray
    static_error: FloatArray
    weight_error: FloatArray
    covered: FloatArray
    waves: tuple[int, int, int]
    contacts: int
    watched: float
    refused: tuple[str, ...]
    definite: float
    laws: tuple[str, ...]
    seconds: float


def training_of(plant: Plant, motion: str, seed: int) -> Recorded:
    """Return a recording of a plant to train on: motion and noise are drawn from the ``seed``."""
    return plant.record(TRAINING[motion](plant.arm, np.random.default_rng((seed, 11))), seed)


def run_case(name: str, motion: str, seed: int) -> Case:
    """Identify an arm from a motion with default settings, and judge it on two others.

    Raises DynIdError where the package makes no model of it.
    """
    arm = load_arm(name)
    plant = Plant(arm, seed)
    training = training_of(plant, motion, seed)
    tests = [plant.record(one, *when) for one, when in zip(judging(arm, seed), JUDGED)]
    plain, nominal = PlainFit(arm, training).errors(tests)
    started = time.perf_counter()
    result = identify(arm.robot, [training.log])
    seconds = time.perf_counter() - started
    model = result.model
    validation = validate(model, [one.log for one in tests])
    scores = [validation.model['all'][joint] for joint in model.joints]
    moving = [validation.model['motion'][joint].relative_error for joint in model.joints]
    contacts, watched = _contacts(model, tests)
    return Case(
        name, motion, seed, model.joints, plant.rate,
        np.array([one.relative_error for one in scores]), plain, nominal, np.array(moving),
        np.array([one.rmse for one in scores]), result.held_out.promise[:arm.n],
        tuple(one.word for one in _uses(result, FEED_FORWARD)),
        *_static(result, plant, training), _covered(model, validation.traces, tests),
        _waves(model, plant, training), contacts, watched, tuple(model.not_identified),
        _definite(model, arm, seed), model.structure.described, seconds)


def _uses(result: Any, use: str) -> list[Any]:
    return [one for joint in result.verdict.joints for one in joint.uses if one.use == use]


def _static(
    result: Any, plant: Plant, training: Recorded
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the promised error (n,) of the static effort, and two true 99th percentiles.

    In poses within the ranges of the training: of weight, cables and offset, and of weight alone.
    """
    arm, q = plant.arm, training.states[0]
    poses = np.random.default_rng(3).uniform(q.min(axis=0), q.max(axis=0), (400, arm.n))
    rest = np.zeros_like(poses)
    errors = [result.model.inverse(poses, rest, rest) - plant.gravity(poses),
              result.model.gravity(poses) - plant.weight(poses)]
    promised = [re.search(r'error of ([\d.e+-]+) N', one.words) for one in _uses(result, GRAVITY)]
    return (np.array([float(match.group(1)) if match else np.nan for match in promised]),
            *(np.percentile(np.abs(one), 99, axis=0) for one in errors))


def _covered(model: Any, traces: Sequence[Trace], tests: Sequence[Recorded]) -> FloatArray:
    """Return the share (n,) of samples in motion whose effort is in its 95 % interval."""
    hits, count = np.zeros(model.robot.n), np.zeros(model.robot.n)
    for trace, recorded in zip(traces, tests, strict=True):
        shown = np.arange(0, len(trace.time), max(1, len(trace.time) // 400))
        rows = np.searchsorted(recorded.log.time, trace.time[shown] - 1e-6)
        q, v, a = (one[rows] for one in recorded.states)
        away = np.abs(recorded.effort[rows] - trace.predicted[shown])
        inside = away <= effort_intervals(model, q, v, a)
        moves = np.abs(v) > MOVES * np.abs(v).max(axis=0)
        hits += (inside & moves).sum(axis=0)
        count += moves.sum(axis=0)
    return hits / np.maximum(count, 1.0)


def _waves(model: Any, plant: Plant, training: Recorded) -> tuple[int, int, int]:
    resolved = np.maximum(SAME_ORDER * plant.orders, np.pi / np.ptp(training.states[0], axis=0))
    away = [(abs(plant.orders[j] - wave.order), plant.orders[j], resolved[j])
            for ripple in model.record.ripple for wave in ripple.waves
            for j in [model.joints.index(ripple.joint)]]
    right = sum(order > 0.0 and distance < reach for distance, order, reach in away)
    return len(away), int(right), int(np.count_nonzero(plant.orders))


def _contacts(model: Any, tests: Sequence[Recorded]) -> tuple[int, float]:
    if model.noise_levels is None:
        return 0, 0.0
    events = contact_events(model, [one.log for one in tests])
    return sum(len(one.contacts) for one in events), \
        sum(float(one.time[-1] - one.time[0]) for one in events)


def _definite(model: Any, arm: Arm, seed: int) -> float:
    draw = np.random.default_rng(seed)
    poses = arm.middle + draw.uniform(-1.0, 1.0, (300, arm.n)) * arm.half
    return float(np.mean(np.linalg.eigvalsh(model.mass_matrix(poses)).min(axis=1) > 0.0))


def covered_parameters(name: str, motion: str, seed: int, repetitions: int) -> FloatArray:
    """Return the share of repetitions (b,) in which the interval of a parameter holds its truth.

    One plant, again and again with another motion of its kind and other noise; the base parameters
    of links and rotors that are in the model every time.
    """
    plant = Plant(load_arm(name), seed)
    truth, hits = plant.standard(), dict[str, list[bool]]()
    for repetition in range(repetitions):
        training = training_of(plant, motion, 1000 * seed + repetition)
        model = identify(plant.arm.robot, [training.log]).model
        values = model.reduction.base([truth.get(name, 0.0) for name in model.reduction.standard])
        inside = np.abs(model.values - values) <= half_intervals(model)
        for parameter, hit in zip(model.names, inside.tolist(), strict=True):
            if RIGID.fullmatch(parameter):
                hits.setdefault(parameter, []).append(hit)
    return np.array([np.mean(one) for one in hits.values() if len(one) == repetitions])
