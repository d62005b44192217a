"""The excitation of Liu et al., Actuators 2023, 12(12), 454: tables 1 to 3.

The arm of the paper is not published. So its limits and its trajectory are taken to arms that are,
and its two objectives are compared there within the same limits: the condition number alone, and
that of the regressor and its parts (eq. 14). Our default objective stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from robot_dynid.excitation.design import Design, DesignCriteria, design_within
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.score import Score
from robot_dynid.excitation.search.objective import Objective, WeightedBlocks
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import MotionLimits, fractions_used
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, Progress, frozen
from robot_dynid_evaluation.papers import Entry, Remark, Row, claimed, known, matched, shown

#: table 1, joint by joint: position, velocity, acceleration [deg, deg/s, deg/s^2], symmetric
LIMITS = ((120.0, 100.0, 120.0), (90.0, 60.0, 120.0), (60.0, 60.0, 120.0),
          (120.0, 80.0, 120.0), (120.0, 80.0, 120.0), (120.0, 80.0, 120.0))
#: table 2: condition numbers by two objectives
CONDITION_WLS, CONDITION_BLOCKS = 189.4012, 162.2440
#: table 3, five harmonics of one joint per row: eq. 15, velocity sum a cos(w l t) + b sin(w l t)
A = ((0.0046, -0.0074, 0.4845, -0.5103, 0.0286), (-0.0406, 0.0597, 0.2492, 0.0678, -0.3361),
     (-0.1772, 0.0661, 0.1019, 0.0189, -0.0097), (-0.1704, 0.1161, -0.1703, 0.1426, 0.0820),
     (-0.0210, -0.1317, 0.3614, -0.1994, -0.0094), (0.0673, 0.2685, 0.1682, -0.4241, -0.0763))
B = ((-0.0053, -0.0182, 0.6963, -0.3354, -0.1411), (-0.0234, -0.2122, 0.1619, -0.1082, 0.0789),
     (-0.0001, -0.0583, 0.0450, 0.1273, -0.1056), (0.0088, -0.3357, 0.1996, 0.1731, -0.1257),
     (0.1460, -0.3491, 0.3639, -0.1008, -0.0273), (0.1335, 0.0677, 0.0942, -0.2907, 0.1227))
OFFSET = (0.3361, -0.2762, -0.0112, -0.2369, 0.1976, 0.4777)
#: s; the text gives a cycle of 20 s and a frequency of 0.02 Hz, which do not agree
PERIOD, STATED_FREQUENCY = 20.0, 0.02
ORDER = np.arange(1.0, 6.0)
#: half a unit of the fourth decimal
PRINTED = 0.5e-4
#: the objective of the paper and the one that it is compared with; our default
BLOCKS, ALONE, DEFAULT = 'blocks', 'condition number alone', 'condition'
WHY_HIGHER = (
    'known: what the search for the condition number alone lowers, one for five numbers does not; '
    'the figures of the paper, of a pattern search, are those of two ends of a search')
#: ratios of condition numbers, blocks over the condition number alone, that are known to be above
#: one, by arm and part ('' is the whole), and how well
KNOWN_RATIOS: Mapping[tuple[str, str], float] = {
    ('ur10e', ''): 1.049, ('ur10e', 'acceleration'): 1.284, ('puma560', ''): 1.057}
RATIO_KNOWN = 0.03
#: 6-joint arms on which trajectories are compared
ARMS = ('puma560', 'ur10e')
#: what our design has besides the limits
SETTINGS = {'duration': PERIOD, 'harmonics': len(ORDER), 'scale': 1.0, 'starts': 2}


def trajectory(joints: tuple[str, ...]) -> FourierTrajectory:
    """Return table 3 as a motion of six joints.

    Position sum a / (w l) sin(w l t) - b / (w l) cos(w l t) + offset: the signs that the text
    lost are those with which every joint starts at zero, see `table_rows`.
    """
    amplitude = PERIOD / (2.0 * np.pi * ORDER)
    return FourierTrajectory(joints, 1.0 / PERIOD, frozen(OFFSET), frozen(amplitude * A),
                             frozen(-amplitude * B))


def limits(joints: tuple[str, ...]) -> MotionLimits:
    """Return table 1 for six joints; efforts and jerk are not limited."""
    position, velocity, acceleration = np.deg2rad(np.array(LIMITS)).T
    none = frozen(np.full(len(joints), np.nan))
    return MotionLimits(joints, frozen(-position), frozen(position), frozen(velocity),
                        frozen(acceleration), none, none)


def rows(progress: Progress) -> Iterator[Entry]:
    """Yield the paper's figures beside ours."""
    yield from table_remarks()
    yield from limit_rows()
    for index, name in enumerate(ARMS):
        def report(stage: str, fraction: float, first: int = index) -> None:
            progress(stage, (first + fraction) / len(ARMS))

        yield from arm_rows(load_robot(name), report)


def at_start() -> dict[str, tuple[FloatArray, float]]:
    """Return the quantities (6,) that table 3 makes zero, with the rounding of its four decimals.

    Motions start at rest, at zero.
    """
    a, b, lever = np.array(A), np.array(B), PERIOD / (2.0 * np.pi)
    start = np.array(OFFSET) - lever * np.sum(b / ORDER, axis=1)
    return {'velocity, sum of a': (np.sum(a, axis=1), 5.0 * PRINTED),
            'acceleration over w, sum of l b': (b @ ORDER, 15.0 * PRINTED),
            'position [rad]': (start, (1.0 + lever * np.sum(1.0 / ORDER)) * PRINTED)}


def table_remarks() -> Iterator[Remark]:
    """Yield the remarks on the layout of tables 1 to 3, and their contradictions."""
    yield Remark('table 3: layout', 'six joints in turn, five harmonics each; read as five rows '
                 'of six joints, sum of a would reach '
                 f'{np.abs(np.ravel(A).reshape(5, 6).sum(axis=0)).max():.2g}')
    for what, (values, left) in at_start().items():
        yield Remark(
            f'table 3: {what} at the start', f'at most {np.abs(values[:-1]).max():.1e} in joints '
            f'1 to 5, where four decimals leave {left:.1e}; {values[-1]:.1e} in joint 6, which '
            'they do not explain: one of its figures is misprinted, or the search left it')
    offset, sums = np.array(OFFSET)[:-1], np.sum(np.array(B) / ORDER, axis=1)[:-1]
    yield Remark('base frequency', f'the text gives a cycle of {PERIOD:g} s and '
                 f'{STATED_FREQUENCY:g} Hz, which do not agree; joints 1 to 5 start at zero with '
                 f'{np.median(sums / offset) / (2.0 * np.pi):.4f} Hz')


def limit_rows() -> list[Row]:
    """Return the share of table 1's limits that table 3 uses, by the peaks of the motion."""
    joints = tuple(f'joint {i}' for i in range(1, 7))
    used = fractions_used(trajectory(joints).peaks(), limits(joints))
    return [claimed(matched(
        f'limits used by {joint}: position, velocity, acceleration', '<= 1 1 1',
        _shares(used[joint].values()), all(share <= 1.0 for share in used[joint].values()),
        f'{_shares(bound)} by the bound of eq. 17, a sum of amplitudes'),
        f'the excitation keeps the limits of table 1, {joint}')
        for joint, bound in zip(joints, amplitude_bounds(), strict=True)]


def amplitude_bounds() -> FloatArray:
    """Return (6, 3): what eq. 17 counts of the limits of position, velocity, acceleration."""
    size, rate = np.hypot(A, B), 2.0 * np.pi / PERIOD * ORDER
    sums = (np.sum(size / rate, axis=1) + np.abs(OFFSET), np.sum(size, axis=1),
            np.sum(size * rate, axis=1))
    return np.asarray(np.stack(sums, axis=1) / np.deg2rad(LIMITS))


def _shares(values: Iterable[float]) -> str:
    return ' '.join(f'{value:.3f}' for value in values)


def arm_rows(robot: RobotModel, progress: Progress) -> list[Row]:
    """Return the designs by all objectives on one arm, and the paper's motion beside them."""
    criteria = _without_efforts(design_criteria(robot))
    assert criteria.score is not None
    paper = criteria.score(trajectory(robot.joints))
    designs = {}
    for index, (name, objective, wanted) in enumerate((
            (BLOCKS, BLOCKS, criteria), (ALONE, BLOCKS, condition_alone(criteria)),
            (DEFAULT, DEFAULT, criteria))):
        progress(f'{robot.name}: {name}', index / 3.0)
        designs[name] = _designed(robot, wanted, objective)
    return condition_rows(robot.name, paper, designs)


def condition_alone(criteria: DesignCriteria) -> DesignCriteria:
    """Return criteria whose objective is the first of the blocks: the whole regressor."""
    assert criteria.objective is not None
    blocks = criteria.objective

    def objective(name: str, typical: Motion, seconds: float) -> Objective:
        weighted = blocks(name, typical, seconds)
        assert isinstance(weighted, WeightedBlocks)
        return weighted.objectives[0]

    return replace(criteria, objective=objective)


def _without_efforts(criteria: DesignCriteria) -> DesignCriteria:
    """Return the design criteria without limits of effort: the paper has none."""
    return replace(criteria, inverse=None, constraints=())


def _designed(robot: RobotModel, criteria: DesignCriteria, objective: str) -> Score:
    request = parse_request('fourier', {**SETTINGS, 'objective': objective})
    found: Design = design_within(limits(robot.joints), request, criteria)
    assert found.score is not None
    return found.score


def condition_rows(name: str, paper: Score, designs: Mapping[str, Score]) -> list[Row]:
    """Return the claims of the paper about its objective on one arm: it lowers whole and parts.

    Judged are the objectives on the same arm. ``paper`` is the score of table 3, a motion for
    another arm, which is shown.
    """
    alone, blocks, ours = (designs[objective] for objective in (ALONE, BLOCKS, DEFAULT))
    return [
        shown(f'{name}: condition number of the motion of table 3, table 2', CONDITION_BLOCKS,
              paper.condition_number, 'it was designed for another arm, with other columns: ours '
              'are base regressor with friction, weighted rows, unit columns'),
        lower(name, '', CONDITION_BLOCKS / CONDITION_WLS, blocks.condition_number,
              alone.condition_number),
        *(lower(name, part, None, value, alone.parts[part])
          for part, value in blocks.parts.items()),
        matched(f'{name}: log det, default objective less blocks', None,
                ours.log_det - blocks.log_det, ours.log_det > blocks.log_det,
                'the default looks at the size of the deviations as well, blocks do not'),
        shown(f'{name}: condition number, default objective over the condition number alone', None,
              ours.condition_number / alone.condition_number, 'not in the paper'),
    ]


def lower(name: str, part: str, paper: float | None, blocks: float, alone: float) -> Row:
    """Return the ratio of two condition numbers, which the blocks' objective makes less than one.
    """
    of = f'of the {part} part' if part else 'of the regressor'
    row = matched(f'{name}: condition number {of}, blocks over the condition number alone', paper,
                  blocks / alone, blocks < alone,
                  f'{blocks:.4g} and {alone:.4g}; the paper claims less than one')
    figure = KNOWN_RATIOS.get((name, part))
    return claimed(row if figure is None else known(row, WHY_HIGHER, figure, RATIO_KNOWN),
                   f'blocks lower the condition number {of} ({name})')
