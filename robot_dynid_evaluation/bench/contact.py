"""Contact detection on the simulated arm: how soon steps of torque are seen, and false alarms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.excitation.design import design
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import identify
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm, TorqueStep, measured, record
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import RawLog
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.timing import ROBOT

SIZE = 2.0  # N m
LASTS, PAUSE = 0.4, (0.4, 0.6)  # s
MOTION, HARMONICS = 20.0, 5  # s
WITH_CONTACT, WITHOUT_CONTACT = 6, 30  # motions
SOON = 0.05  # s
REVERSING = 1.2  # times the threshold in motion
WITHIN = Target(1.0, faster=False)


@dataclass(frozen=True)
class Found:
    """Detection of a step of external torque: seconds until contact, None where it was not seen.

    ``reversing``: within SOON of it the joint was slow enough for its friction to hide a part.
    """

    step: TorqueStep
    seconds: float | None
    reversing: bool


def measure(progress: Progress) -> list[Row]:
    """Return delays of detection and false alarms, with a model identified from one motion."""
    bench = Bench.prepared()
    found: list[Found] = []
    for i in range(WITH_CONTACT):
        progress('motions with contact', 0.2 * i / WITH_CONTACT)
        found += bench.with_contact(100 + i)
    alarms, nearest = 0, 0.0
    for i in range(WITHOUT_CONTACT):
        progress('motions without contact', 0.2 + 0.8 * i / WITHOUT_CONTACT)
        more, closest = bench.without_contact(1000 + i)
        alarms, nearest = alarms + more, max(nearest, closest)
    moving = [f for f in found if not f.reversing]
    rows = [_row(joint, [f for f in moving if f.step.joint == j])
            for j, joint in enumerate(bench.model.joints)]
    minutes = WITHOUT_CONTACT * MOTION / 60.0
    return [*rows, _row('all joints', moving),
            _row('slow or reversing', [f for f in found if f.reversing]),
            row(f'false alarms in {minutes:g} minutes / less than one', '', alarms, 1.0,
                Target(0.99, faster=False)),
            row(f'largest external torque in {minutes:g} minutes without contact / threshold',
                '', nearest, 1.0, WITHIN)]


def _row(name: str, found: list[Found]) -> Row:
    seen = [f.seconds for f in found if f.seconds is not None]
    soon = sum(s < SOON for s in seen)
    slowest = max(seen, default=0.0) if len(seen) == len(found) else np.inf
    middle = 1e3 * float(np.median(seen)) if seen else np.inf
    return row(f'{name}: {len(seen)} of {len(found)} steps of {SIZE:g} N m seen, {soon} soon, '
               f'median {middle:.0f} ms; slowest / {1e3 * SOON:g}', 'ms', 1e3 * slowest,
               1e3 * SOON, WITHIN)


@dataclass
class Bench:
    """The simulated arm, and a model identified from a motion of its own."""

    model: IdentifiedModel
    simulate: Callable[[int, tuple[TorqueStep, ...]], RawLog]

    @classmethod
    def prepared(cls) -> Bench:
        """Record one motion and identify."""
        robot = load_robot(ROBOT)
        truth = load_truth(robot)

        def simulate(seed: int, steps: tuple[TorqueStep, ...] = ()) -> RawLog:
            options: dict[str, Any] = {
                'duration': MOTION, 'harmonics': HARMONICS, 'starts': 1, 'seed': seed}
            motion = design(robot, parse_request('fourier', options)).trajectory
            log = record(Arm(robot, truth), motion, external=steps)
            return measured(log, robot, truth.noise, np.random.default_rng(seed))

        return cls(identify(robot, [simulate(0)]).model, simulate)

    def with_contact(self, seed: int) -> list[Found]:
        """Return the detections of torque steps on random joints during one motion."""
        rng = np.random.default_rng(seed)
        steps: list[TorqueStep] = []
        start = 1.0
        while start < MOTION - 1.5:
            steps.append(TorqueStep(int(rng.integers(self.model.robot.n)), start, LASTS,
                               float(rng.choice([-SIZE, SIZE]))))
            start += LASTS + float(rng.uniform(*PAUSE))
        log = self.simulate(seed, tuple(steps))
        contact, threshold = self._followed(log)
        moving = threshold.min(axis=0)
        return [
            _found(step, log, contact, threshold > REVERSING * moving) for step in steps
        ]

    def without_contact(self, seed: int) -> tuple[int, float]:
        """Return the false alarms in a motion, and |external torque| / threshold at most."""
        log = self.simulate(seed, ())
        contact, _ = self._followed(log)
        alarms = int(np.sum(contact[1:] & ~contact[:-1]))
        return alarms, self._closest

    def _followed(self, log: RawLog) -> tuple[Any, Any]:
        assert log.velocity is not None
        assert log.effort is not None
        monitor = Monitor(self.model)
        contact = np.zeros(log.position.shape, dtype=bool)
        threshold, self._closest = np.zeros(log.position.shape), 0.0
        for k in range(len(log.time)):
            reading = monitor(float(log.time[k]), log.position[k], log.velocity[k], log.effort[k])
            assert reading is not None
            contact[k] = reading.contact
            threshold[k] = reading.threshold
            self._closest = max(self._closest,
                                float(np.max(np.abs(reading.external - reading.claimed)
                                             / reading.threshold)))
        return contact, threshold


def _found(step: TorqueStep, log: RawLog, contact: Any, slow: Any) -> Found:
    """Return the time at which a step was first detected in its joint while it lasted."""
    first, soon, last = np.searchsorted(log.time, step.start - 1e-9 + np.array([0.0, SOON, LASTS]))
    rows = np.flatnonzero(contact[first:last, step.joint])
    seconds = float(log.time[first + rows[0]] - step.start) if len(rows) else None
    return Found(step, seconds, bool(slow[first:soon, step.joint].any()))
