"""Stanford arm by moving one joint at a time: tables I and II of the source.

First as printed there: three samples per configuration, efforts by recursive Newton-Euler, the
equations of `composite_bodies` step by step. Then from a MuJoCo simulation with encoders, by the
staged estimator of this package.
Source: Lin, An identification method for estimating the inertia parameters of a manipulator,
1991, section 4.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.reduction import reduce_numeric
from robot_dynid.reduction.numeric import random_states
from robot_dynid.regressor import RigidLinks
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import Progress
from robot_dynid_evaluation.papers import Row, compared
from robot_dynid_evaluation.papers.composite_bodies import (
    NO_EFFECT,
    REVOLUTE_CONSTANTS,
    Constants,
    Sample,
    estimate_axis_inertia,
    estimate_body,
    kinematics,
    revolute_row,
)
from robot_dynid_evaluation.papers.stanford_motions import (
    BASE,
    STEPS,
    Step,
    constant_rows,
    load_arm,
    step_response,
)
from robot_dynid_evaluation.papers.stanford_recordings import ENCODER, estimate_from_recordings

Estimates = dict[tuple[int, str], float]

#: the instants at which efforts are taken [s]
INSTANTS = (0.2, 0.3, 0.4)
#: table I as printed, by frame and displacement of its own joint (for frame 3 of joint 2): u_1 in
#: that frame; the second row of the source belongs to -0.7, the third to -0.6
TABLE_1 = {
    (2, 0.7): '0.7648 -0.6442 0.', (3, 0.7): '0.7648 0. 0.6442',
    (4, 0.7): '0.5850 -0.4927 0.6442', (5, 0.7): '-0.1159 0.8624 0.4927',
    (6, 0.7): '0.2288 0.4515 -0.8624',
    (2, -0.7): '0.7648 0.6442 0.', (3, -0.7): '0.7648 0. -0.6442',
    (4, -0.7): '0.5850 0.4927 0.6442', (5, -0.7): '-0.8696 0.0324 0.4927',
    (6, -0.7): '-0.4060 0.3022 -0.8624',
    (2, -0.6): '0.8253 0.5646 0.', (4, -0.6): '0.6313 0.4319 0.6442',
    (5, -0.6): '-0.8620 0.1190 0.4927', (6, -0.6): '-0.3738 0.3412 -0.8264',
}
#: printed vectors that cannot be right, and why
MISPRINTS = {
    (5, -0.6): 'the y component is 0.11906; the paper cut the last digit off',
    (6, -0.6): 'misprint: q6 does not change the z component, which is -0.8624 in the rows above',
}
#: table II as printed, by body and constant
TABLE_2 = {
    (6, 'U11 - U22'): '0.', (6, 'U33'): '0.0003', (6, 'U12'): '0.', (6, 'U13'): '0.',
    (6, 'U23'): '0.', (6, 'kx'): '0.', (6, 'ky'): '0.',
    (5, 'U11 - U22'): '0.0270', (5, 'U33'): '0.0277', (5, 'U12'): '0.', (5, 'U13'): '0.',
    (5, 'U23'): '0.', (5, 'kx'): '0.', (5, 'ky'): '-0.1149',
    (4, 'U11 - U22'): '-0.0235', (4, 'U33'): '0.0044', (4, 'U12'): '-0.00005', (4, 'U13'): '0.',
    (4, 'U23'): '0.', (4, 'kx'): '0.0099', (4, 'ky'): '0.0058',
    (3, 'm'): '6.4700', (3, 'kx'): '0.', (3, 'ky'): '0.', (3, 'kz'): '-2.7400',
    (2, 'U11 - U22'): '4.3850', (2, 'U33'): '4.4053', (2, 'U12'): '0.00003', (2, 'U13'): '0.',
    (2, 'U23'): '-0.00003', (2, 'kx'): '-0.00001', (2, 'ky'): '2.7400',
    (1, 'U33'): '1.0144',
}
#: deviation of efforts known to four decimals [N m, N]
ROUNDED = 1e-4 / np.sqrt(12.0)
#: largest error of a constant from recordings [kg, kg m, kg m^2]: 0.02 % of the largest, 6.47 kg
RECORDED = 1.3e-3
#: the same by two computations: rounding times the condition of the equations of a body
SAME = 1e-10


def rows(progress: Progress) -> list[Row]:
    """Return tables I and II beside ours, from exact efforts and from simulated recordings."""
    robot = load_arm()
    progress('exact efforts', 0.0)
    exact = estimate_from_newton_euler(robot)
    true = {key: float(row @ robot.nominal.ravel()) for key, row in constant_rows(robot).items()}
    table = [_axis_row(robot, frame, angle) for frame, angle in TABLE_1]
    table += [_entry_row(robot, key, exact[key]) for key in TABLE_2]
    table += _consistency(robot, exact, true)
    progress('simulated recordings', 0.2)
    recorded = estimate_from_recordings(robot)
    return table + [_recorded_row(key, recorded[key], true[key]) for key in TABLE_2]


def samples_of(robot: RobotModel, step: Step) -> list[Sample]:
    """Return the samples of a step, efforts by Newton-Euler; one where the body's joint turns."""
    moving = step.moving - 1
    instants = INSTANTS[:1] if step.moving == step.body else INSTANTS
    found = []
    for start in step.configurations:
        for travel, rate, acceleration in zip(*step_response(instants), strict=True):
            q, qd, qdd = start.copy(), np.zeros(robot.n), np.zeros(robot.n)
            q[moving] = BASE[moving] + travel
            qd[moving], qdd[moving] = rate, acceleration
            effort = rigid_body.inverse_dynamics(robot, q[None], qd[None], qdd[None])[0]
            found.append(Sample(moving, q, float(rate), float(acceleration), effort))
    return found


def estimate_from_newton_euler(robot: RobotModel) -> Estimates:
    """Return all constants by Algorithm 2."""
    known = Constants.unknown(robot.n)
    found: Estimates = {}
    for step in STEPS:
        samples = samples_of(robot, step)
        if step.moving == step.body:
            values = estimate_axis_inertia(robot, samples[0], known)
        else:
            values = estimate_body(robot, samples, step.body - 1, known)
        known.add(step.body - 1, values)
        found |= {(step.body, name): value for name, value in values.items()}
    return found


def decimals(printed: str) -> int:
    """Return the decimals of a printed number; four where only a zero is printed."""
    return len(printed.partition('.')[2]) or 4


def shown(value: float, places: int) -> str:
    """Return ``value`` with so many decimals, without a negative zero."""
    return f'{round(float(value), places) + 0.0:.{places}f}'


def as_printed(printed: str, value: float) -> bool:
    """Return whether ``value`` rounds to the printed number."""
    return bool(abs(value - float(printed)) <= 0.5 * 10.0 ** -decimals(printed) + 1e-12)


def _axis_row(robot: RobotModel, frame: int, angle: float) -> Row:
    q = np.array(BASE)
    q[2 - 1 if frame == 3 else frame - 1] = angle
    still = Sample(0, q, 0.0, 0.0, np.zeros(robot.n))
    axis = kinematics(robot, still, frame - 1).axis
    printed = TABLE_1[frame, angle]
    ok = all(as_printed(p, a) for p, a in zip(printed.split(), axis, strict=True))
    note = MISPRINTS.get((frame, angle), '')
    ours = ' '.join(shown(a, 4) for a in axis)
    return Row(f'I: u1 in frame {frame}, q = {angle}', printed, ours, None if note else ok, note)


def _entry_row(robot: RobotModel, key: tuple[int, str], value: float) -> Row:
    """Return an entry of table II: not judged where rounding in the paper explains its last digit.
    """
    printed, (body, name) = TABLE_2[key], key
    what = f'II: body {body}, {name}'
    ours = shown(value, decimals(printed))
    if as_printed(printed, value) or name not in REVOLUTE_CONSTANTS:
        return Row(what, printed, ours, as_printed(printed, value))
    spread = _spread(robot, body, name)
    room = 0.5 * 10.0 ** -decimals(printed) + 3.0 * spread
    explained = abs(value - float(printed)) <= room
    return Row(what, printed, ours, None if explained else False,
               f'not to the last digit: exact efforts give {value:.6f}; efforts known to four '
               f'decimals scatter it by {spread:.1g}, and entries that must be zero show that')


def _spread(robot: RobotModel, body: int, name: str) -> float:
    """Return the deviation of a constant of a body when efforts are known to four decimals."""
    step = next(s for s in STEPS if s.body == body)
    design = np.array([revolute_row(robot, s, body - 1) for s in samples_of(robot, step)])
    size = np.abs(design).max(axis=0)
    seen = size > NO_EFFECT * size.max()
    gains = np.zeros(len(seen))
    gains[seen] = np.linalg.norm(np.linalg.pinv(design[:, seen]), axis=1)
    return float(ROUNDED * gains[REVOLUTE_CONSTANTS.index(name)])


def _consistency(robot: RobotModel, found: Estimates, true: Estimates) -> list[Row]:
    """Return the other statements of the source on the estimates: exact, minimal, sufficient."""
    worst = max(abs(found[key] - true[key]) for key in TABLE_2)
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    combinations = np.array([constant_rows(robot)[key] for key in TABLE_2])
    constants = np.array([found[key] for key in TABLE_2])
    base = np.linalg.solve(combinations[:, reduction.kept], constants)
    links = reduction.standard_values(base)
    states = random_states(robot, 100, np.random.default_rng(0))
    motion = (states.position, states.velocity, states.acceleration)
    effort = rigid_body.inverse_dynamics(robot, *motion)
    error = np.abs(rigid_body.inverse_dynamics(robot, *motion, links) - effort).max()
    return [
        compared('largest error of table II against Lemma 1', 0.0, worst, SAME),
        compared('constants in the minimal set', float(len(TABLE_2)), len(reduction.kept), 0.0,
                 'ours is the rank of the regressor at random states'),
        compared('effort of 100 states from table II alone, relative error', 0.0,
                 float(error / np.abs(effort).max()), SAME),
    ]


def _recorded_row(key: tuple[int, str], value: float, true: float) -> Row:
    body, name = key
    return Row(f'II from MuJoCo: body {body}, {name}', TABLE_2[key], shown(value, 4),
               abs(value - true) <= RECORDED,
               f'error {value - true:+.1e}; encoder step {ENCODER:g}')
