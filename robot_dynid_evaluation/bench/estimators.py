"""Estimators beside weighted least squares, where its assumptions do not hold.

A simulated arm of known truth, by our own inverse dynamics; every row is over SEEDS noises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.cli.terminal import Progress
from robot_dynid.estimation import ESTIMATORS, Estimate, Estimator, RobustLeastSquares
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.irls import NORMS
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.truth import load_truth, true_base
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import RAMP, effort

ROBOT, SECONDS, RATE, SEEDS = 'planar_3r', 40.0, 500.0, 20
#: effort noise relative to its deviation; position noise [rad], a cut-off [Hz] too wide for it
EFFORT, POSITION, WIDE, NARROW = 0.02, 1e-4, 50.0, 10.0
#: share of efforts grossly wrong, and by how many deviations; correlation of all joints' noise
WRONG, GROSS, SHARED = 0.1, 5.0, 0.9
FRICTION = ('fv', 'fc', 'f0')


def measure(progress: Progress) -> list[Row]:
    """Return the rows: noisy encoders, gross outliers, noise in common."""
    from threadpoolctl import threadpool_limits


    with threadpool_limits(limits=1):
        arm = Arm()
        found: list[Row] = []
        progress('iv and trajectory beside wls', 0.0)
        found += _rows(arm, f'encoder noise {POSITION:g} rad, cut-off {WIDE:g} Hz',
                       (arm.noisy_encoders, WIDE),
                       {name: ESTIMATORS[name] for name in ('iv', 'trajectory')})
        progress('irls beside wls', 0.4)
        found += _rows(arm, f'{WRONG:.0%} of the efforts grossly wrong', (arm.outliers, NARROW),
                       {f'irls {robust}': RobustLeastSquares(robust) for robust in NORMS})
        progress('gls beside wls', 0.8)
        return found + _rows(arm, f'noise of the joints correlated by {SHARED:g}',
                             (arm.noise_in_common, NARROW), {'gls': ESTIMATORS['gls']})


class Arm:
    """The arm, its motion and the efforts of its truth."""

    def __init__(self) -> None:
        robot = load_robot(ROBOT)
        truth = load_truth(robot)
        structure = Structure.uniform(robot, True, 'coulomb', {'width': RAMP})
        self.model: TorqueModel = structure.torque_model(robot)
        self.truth = true_base(robot, truth, self.model.reduction)
        limits = motion_limits(robot).scaled(0.9)
        trajectory = random_fourier(limits, FourierOptions(SECONDS, 10),
                                    np.random.default_rng(0))
        self.time = np.arange(round(SECONDS * RATE)) / RATE
        motion = trajectory.sample(self.time)
        self.position = motion.position
        self.effort = effort(robot, truth, motion)
        self.size = self.effort.std(axis=0)

    def _log(self, position: FloatArray, effort: FloatArray) -> RawLog:
        return RawLog('simulated', self.model.robot.joints, self.time, position, effort=effort)

    def noisy_encoders(self, rng: np.random.Generator) -> RawLog:
        """Return a recording with white noise on position and effort."""
        position, effort = rng.standard_normal((2, *self.position.shape))
        return self._log(self.position + POSITION * position,
                         self.effort + EFFORT * self.size * effort)

    def outliers(self, rng: np.random.Generator) -> RawLog:
        """Return a recording in which stretches of 0.1 s of single efforts are too large."""
        stretch = round(0.1 * RATE)
        wrong = rng.uniform(size=(len(self.time) // stretch + 1, len(self.size))) < WRONG
        gross = GROSS * np.repeat(wrong, stretch, axis=0)[:len(self.time)]
        noise = EFFORT * rng.standard_normal(self.effort.shape)
        return self._log(self.position, self.effort + self.size * (gross + noise))

    def noise_in_common(self, rng: np.random.Generator) -> RawLog:
        """Return a recording in which the noise of all joints is correlated."""
        n = len(self.size)
        common = np.sqrt(SHARED) * rng.standard_normal((len(self.time), 1))
        own = np.sqrt(1.0 - SHARED) * rng.standard_normal((len(self.time), n))
        return self._log(self.position, self.effort + EFFORT * self.size * (common + own))

    def experiments(
        self, recorded: Callable[[np.random.Generator], RawLog], cutoff: float
    ) -> Iterator[Experiment]:
        """Yield one experiment per seed."""
        for seed in range(SEEDS):
            log = repair(self.model.robot, recorded(np.random.default_rng(seed)))
            samples = prepare(self.model.robot, log, Preprocessing(cutoff))
            yield Experiment.of(self.model, [samples])


def _rows(
    arm: Arm, what: str, settings: tuple[Any, float], estimators: dict[str, Estimator]
) -> list[Row]:
    """Return error, its mean and intervals that hold of every estimator beside wls."""
    fits: dict[str, list[Estimate]] = {name: [] for name in ('wls', *estimators)}
    for experiment in arm.experiments(*settings):
        for name, estimator in {'wls': ESTIMATORS['wls'], **estimators}.items():
            fits[name].append(estimator.fit(experiment))
    friction = np.array([name[:2] in FRICTION for name in arm.model.reduction.names])
    rows = []
    for name in estimators:
        for part, of in (('links and rotors', ~friction), ('friction', friction)):
            ours, peer = (_figures(arm.truth, fits[m], of) for m in (name, 'wls'))
            rows += [row(f'{what}, {name}, {part}: {figure}', '%', ours[figure], peer[figure],
                         Target(0.0)) for figure in ours]
    return rows


def _figures(truth: FloatArray, fits: Sequence[Estimate], of: NDArray[np.bool_]
             ) -> dict[str, float]:
    """Return the errors of some parameters against the truth [%]."""
    off = np.array([fit.values - truth for fit in fits])[:, of]
    length = float(np.linalg.norm(truth[of]))
    held = [(low < truth) & (truth < high) for low, high in (fit.interval() for fit in fits)]
    return {
        'error': 100.0 * float(np.sqrt(np.mean(np.sum(off**2, axis=1)))) / length,
        'mean error': 100.0 * float(np.linalg.norm(off.mean(axis=0))) / length,
        '95 % intervals that hold': 100.0 * float(np.mean(np.array(held)[:, of]))}
