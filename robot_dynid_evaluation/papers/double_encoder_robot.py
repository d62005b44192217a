"""Two encoders on a real robot: a KUKA KR300 of public recordings, one run against the other.

Recordings: github.com/JonasWeigand/Robot_Identification (MIT licence), link-side encoders on axes
1 to 3, motor encoders on all, two runs of ten seconds. They are not part of this package: the
folder kr300 in $ROBOT_DYNID_DATA holds A.csv.gz, B.csv.gz and kr300.urdf. The paper (Liu et al.
2023) does not publish its own. Every model is identified from one run and judged on the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.estimation.deflection_fit import DeflectionFit, Determined
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import NONE, Recipe
from robot_dynid.io.log import load_log
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray, Progress, RawLog
from robot_dynid.validation.validate import validate
from robot_dynid_evaluation.papers import Row, matched, shown
from robot_dynid_evaluation.papers.double_encoder import free_fit
from robot_dynid_extras.resonance.two_masses import motor_resonance

#: the folder of public recordings
DATA = 'ROBOT_DYNID_DATA'
RUNS = ('A', 'B')
GEAR_RATIOS = (256.857, 267.429, 252.333, 221.0, 239.619, 154.323)
#: the joints with link encoders
ENCODED = ('joint_1', 'joint_2', 'joint_3')
#: percent of the error that the default may be worse than a model it was chosen over
WORSE = 10.0
WHY = "a public robot, not the paper's"

PLAIN, DEFAULT, ELASTIC = 'plain wls', 'default', 'method elastic'
NO_DEFLECTION, MIXTURE, NETWORK = 'without deflection', 'residual gmr', 'residual rbf'
CONTROL = 'nominal and friction'
RECIPES: Mapping[str, tuple[str | None, Recipe]] = {
    PLAIN: ('wls', Recipe(friction='coulomb', residual=NONE, ripple=NONE, adaptation=NONE)),
    DEFAULT: (None, Recipe()),
    ELASTIC: ('elastic', Recipe()),
    NO_DEFLECTION: (None, Recipe(residual=NONE)),
    MIXTURE: (None, Recipe(residual='gmr')),
    NETWORK: (None, Recipe(residual='rbf')),
}


def rows(progress: Progress) -> Sequence[Row]:
    """Identify from each run and judge on the other; raises DataError without recordings."""
    robot, logs = recordings()
    fits: dict[str, IdentificationResult] = {}
    found: list[Row] = []
    for number, (fitted, other) in enumerate(permutations(RUNS, 2)):
        errors: dict[str, FloatArray] = {}
        for k, (name, (method, recipe)) in enumerate(RECIPES.items()):
            progress(f'run {fitted}: {name}', (number + k / len(RECIPES)) / len(RUNS))
            result = identify(robot, [logs[fitted]], method, recipe)
            model = free_fit(result) if name == PLAIN else result.model
            scores = validate(model, [logs[other]])
            errors[name] = np.array([100.0 * one.relative_error
                                     for one in scores.model['all'].values()])
            if name == ELASTIC:
                found.append(shown(f'run {fitted}: joints that stay elastic', None,
                                   ', '.join(model.elastic_joints) or 'none', WHY))
            if name == DEFAULT:
                fits[fitted] = result
                errors[CONTROL] = np.array([100.0 * one.relative_error
                                            for one in scores.control['all'].values()])
        found += effort_rows(f'{fitted} to {other}', errors)
    progress('both runs', 0.95)
    together = identify(robot, [logs[run] for run in RUNS]).model.record.encoders
    return (*encoder_rows([fits[run].model.record.encoders for run in RUNS]),
            *together_rows(together), *resonance_rows(robot, logs), *found)


def recordings() -> tuple[RobotModel, dict[str, RawLog]]:
    """Return the robot and its runs; raises DataError if they are not there."""
    folder = Path(os.environ.get(DATA, '')) / 'kr300'
    if DATA not in os.environ or not folder.is_dir():
        raise DataError(f'no folder kr300 in {DATA}: set {DATA} to the folder of the public '
                        'recordings')
    robot = robot_from_urdf((folder / 'kr300.urdf').read_text('utf-8'))
    robot = replace(robot, drive=replace(robot.drive, kind='torque',
                                         gear_ratios=np.array(GEAR_RATIOS)))
    return robot, {run: load_log(folder / f'{run}.csv.gz', robot) for run in RUNS}


def encoder_rows(fits: Sequence[Sequence[DeflectionFit]]) -> Iterator[Row]:
    """Yield the causes of deflection of each joint in each run, and whether the runs agree."""
    for both in zip(*fits, strict=True):
        joint = both[0].joint
        for name, unit, scale in (('stiffness', 'MN m/rad', 1e-6), ('delay', 'ms', 1e3)):
            parts = [getattr(one, name) for one in both]
            for run, part in zip(RUNS, parts, strict=True):
                yield shown(f'{joint}, run {run}: {name} [{unit}]', None,
                            interval(part, scale), WHY)
            agree = max(p.lower for p in parts) <= min(p.upper for p in parts)
            yield matched(f'{joint}: {name} of both runs', 'one gear',
                          'intervals overlap' if agree else 'intervals are apart', agree)
        for run, one in zip(RUNS, both, strict=True):
            yield shown(f'{joint}, run {run}: deflection and the rest [urad]', None,
                        f'{1e6 * one.rms:.0f}, {1e6 * one.residual:.0f}; determined: '
                        f'{", ".join(one.determined)}', WHY)


def together_rows(fits: Sequence[DeflectionFit]) -> Iterator[Row]:
    """Yield stiffness and delay of each joint in both runs together."""
    for one in fits:
        yield shown(f'{one.joint}, both runs: stiffness [MN m/rad]', None,
                    interval(one.stiffness, 1e-6), WHY)
        yield shown(f'{one.joint}, both runs: delay [ms]', None, interval(one.delay, 1e3), WHY)


def resonance_rows(robot: RobotModel, logs: Mapping[str, RawLog]) -> Iterator[Row]:
    """Yield the antiresonance of each joint with two encoders, or why it is not shown."""
    for joint in ENCODED:
        found = []
        for log in logs.values():
            try:
                found.append(f'{motor_resonance(robot, log, joint)[0].antiresonance:.3g}')
            except DataError as error:
                found.append(f'not shown ({str(error).partition(":")[0]})')
        yield shown(f'{joint}: antiresonance [Hz]', None, ', '.join(dict.fromkeys(found)), WHY)


def interval(one: Determined, scale: float) -> str:
    """Return a value, if it is determined, with its interval."""
    value = f'{scale * one.value:.3g} ' if one.determined else 'open '
    return f'{value}[{scale * one.lower:.3g}, {scale * one.upper:.3g}]'


def effort_rows(pair: str, errors: Mapping[str, FloatArray]) -> Iterator[Row]:
    """Yield errors of the effort in percent, joint by joint, and the verdict on the default."""
    for name, error in errors.items():
        yield shown(f'{pair}: {name} [%]', None, ' '.join(f'{one:.1f}' for one in error), WHY)
    share = errors[NO_DEFLECTION] - errors[MIXTURE]
    yield shown(f'{pair}: taken off by the mixture [%]', 'more than 20',
                ' '.join(f'{one:.1f}' for one in 100.0 * share / errors[NO_DEFLECTION]), WHY)
    best = np.minimum(errors[ELASTIC], errors[DEFAULT])
    worse = float(np.max(100.0 * (errors[DEFAULT] / best - 1.0)))
    yield matched(f'{pair}: default over the better of default and elastic [%]', 0.0, worse,
                  worse <= WORSE)
