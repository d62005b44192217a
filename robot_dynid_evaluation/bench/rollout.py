"""Simulation on one core: motions of the seven-axis arm in one call beside MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import MissingDependency
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.mujoco_model import build_model
from robot_dynid.simulation.truth import Truth, load_truth, true_base
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import (
    DRY,
    FRICTION,
    ROTORS,
    VISCOUS,
    true_model,
    ur10e_model,
)
from robot_dynid_evaluation.bench.timing import ROBOT, in_turns, over_threads

MOTIONS, STEPS, STEP = 256, 2000, 1e-3
CHECKED = 8  # motions held against the reference
FINE = 4  # Runge-Kutta steps of the reference per step
LOOPED = 4  # motions in the Python loop
FASTER, CLOSER, WITHIN = Target(1.0), Target(1.0), Target(1.0, faster=False)
MOST_ERROR = 1e-3  # rad after two seconds
LAW_STEPS = 500
#: us that a step may take in a batch and alone
MOST = {'many': 2.0, 'alone': 4.0}


def measure(progress: Progress) -> list[Row]:
    """Return steps per second against MuJoCo's, and the errors of both after two seconds."""
    with threads_at_most(1):
        found = beside_mujoco(progress) + with_friction(progress)
    model = ur10e_model('auto')
    run = partial(model.rollout, *smooth_inputs(model, LAW_STEPS, 2.0), STEP)
    return found + over_threads({f'UR10e, auto: {MOTIONS} motions x {LAW_STEPS} steps': run},
                                'us per step', 1e6 / (MOTIONS * LAW_STEPS), progress)


def beside_mujoco(progress: Progress) -> list[Row]:
    """Return the rows of the seven-axis arm."""
    mujoco = import_mujoco()
    rough, truth = rough_and_smooth()
    model, sticking = rollout_model(truth), rollout_model(rough)
    inputs = smooth_inputs(model)
    euler, fast = Peer(truth, 'EULER'), Peer(truth, 'IMPLICITFAST')
    seconds = in_turns({
        'ours': lambda: model.rollout(*inputs, STEP),
        'ours with dry friction': lambda: sticking.rollout(*inputs, STEP),
        'Euler': lambda: euler.batch(*inputs),
        'implicitfast': lambda: fast.batch(*inputs),
        'Python loop': lambda: euler.loop(*(a[:LOOPED] for a in inputs)),
    }, progress, rounds=3)
    step = {name: 1e6 * t / (MOTIONS * STEPS) for name, t in seconds.items()}
    step['Python loop'] *= MOTIONS / LOOPED
    name = f'mujoco.rollout {mujoco.__version__}'
    found = [row(f'{MOTIONS} motions x {STEPS} steps of 1 ms / {peer}', 'us per step',
                 step[mine], step[theirs], FASTER)
             for mine, theirs, peer in (
                 ('ours', 'Euler', f'{name}, Euler'),
                 ('ours', 'implicitfast', f'{name}, implicitfast'),
                 ('ours', 'Python loop', 'mj_step in a Python loop, Euler'),
                 ('ours with dry friction', 'Euler', f'{name}, Euler, without dry friction'))]
    q, qd, effort = (a[:CHECKED] for a in inputs)
    exact = Peer(truth, 'RK4', FINE).batch(q, qd, effort)[:, -1]
    ours = float(np.abs(model.rollout(q, qd, effort, STEP).position[:, -1] - exact).max())
    theirs = float(np.abs(euler.batch(q, qd, effort)[:, -1] - exact).max())
    return [*found, row('largest error after 2 s / MuJoCo, Euler', 'rad', ours, theirs, CLOSER),
            row(f'largest error after 2 s / {MOST_ERROR:g}', 'rad', ours, MOST_ERROR, WITHIN)]


def with_friction(progress: Progress) -> list[Row]:
    """Return steps of a UR10e with each friction, in a batch and alone.

    MuJoCo's Euler steps are of first order, with viscous friction alone and with dry friction,
    which its solver of constraints holds.
    """
    mujoco = import_mujoco()
    models = {friction: ur10e_model(friction) for friction in FRICTION}
    robot = models['auto'].robot

    smooth = Truth(np.array(VISCOUS), np.zeros(robot.n), np.array(ROTORS))
    peers = {words: Peer(truth, 'EULER', robot='ur10e') for words, truth in (
        ('viscous', smooth), ('dry friction', replace(smooth, coulomb=np.array(DRY))))}
    many = smooth_inputs(models['coulomb'], LAW_STEPS, 2.0)
    q, qd, effort = (np.ascontiguousarray(a[:1]) for a in many)
    contenders: dict[tuple[str, str], Callable[[], Any]] = {}
    for name, inputs in (('many', many), ('alone', (q, qd, effort))):
        for friction, model in models.items():
            contenders[friction, name] = partial(model.rollout, *inputs, STEP)
        for words, peer in peers.items():
            contenders[words, name] = partial(peer.batch, *inputs)
    seconds = in_turns(contenders, progress, rounds=5)
    step = {key: 1e6 * t / (LAW_STEPS * (MOTIONS if key[1] == 'many' else 1))
            for key, t in seconds.items()}
    rows = []
    for name, words in (('many', f'{MOTIONS} motions'), ('alone', 'one motion')):
        for friction in FRICTION:
            own = step[friction, name]
            rows += [*(row(f'UR10e, {friction}: {words} x {LAW_STEPS} steps of 1 ms / '
                           f'mujoco.rollout {mujoco.__version__}, Euler, {peer}', 'us per step',
                           own, step[peer, name], FASTER) for peer in peers),
                     row(f'UR10e, {friction}: {words} / {MOST[name]:g} us', 'us per step', own,
                         MOST[name], WITHIN)]
    return rows


def import_mujoco() -> Any:
    """Return MuJoCo with its module ``rollout``; raises MissingDependency."""
    try:
        import mujoco
        import mujoco.rollout
    except ImportError:
        raise MissingDependency('the peer of this benchmark is MuJoCo: pip install mujoco'
                                ) from None
    return mujoco


def rough_and_smooth() -> tuple[Truth, Truth]:
    """Return rotors and friction of the arm, with and without dry friction."""
    rough = load_truth(load_robot(ROBOT))
    return rough, replace(rough, coulomb=np.zeros_like(rough.coulomb))


def rollout_model(truth: Truth) -> IdentifiedModel:
    """Return the model of the arm with exactly the parameters of ``truth``."""
    model = true_model()
    return replace(model, values=true_base(model.robot, truth, model.reduction))


def smooth_inputs(
    model: IdentifiedModel, steps: int = STEPS, size: float = 8.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return q, qd (K, n) and efforts (K, T, n): the weight at the start and three sines."""
    rng = np.random.default_rng(0)
    n = model.robot.n
    q, qd = rng.uniform(-1.0, 1.0, (2, MOTIONS, n))
    time = STEP * np.arange(steps)
    sines = np.sin(2.0 * np.pi * np.outer([0.5, 1.0, 1.7], time))
    reach = np.einsum('kii->ki', model.mass_matrix(q))[:, :, None]
    swing = np.einsum('kjh,ht->ktj', size * reach * rng.normal(size=(MOTIONS, n, 3)), sines)
    return q, qd, np.ascontiguousarray(model.gravity(q)[:, None] + swing)


@dataclass
class Peer:
    """MuJoCo on one thread with the same parameters, neither contacts nor joint stops."""

    truth: Truth
    integrator: str
    parts: int = 1
    robot: str = ROBOT

    def __post_init__(self) -> None:
        self._mujoco = mujoco = import_mujoco()
        robot = load_robot(self.robot)
        self._n = robot.n
        self._model = build_model(robot, self.truth)
        assert [self._model.joint(j).name for j in range(robot.n)] == list(robot.joints)
        self._model.opt.timestep = STEP / self.parts
        self._model.opt.integrator = getattr(mujoco.mjtIntegrator, f'mjINT_{self.integrator}')
        self._data = mujoco.MjData(self._model)
        self._runner = mujoco.rollout.Rollout(nthread=0)

    def batch(self, q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        """Return positions (K, T, n) of all motions in one call of mujoco.rollout."""
        time = np.zeros((len(q), 1))
        if self.parts > 1:
            effort = np.repeat(effort, self.parts, axis=1)
        states, _ = self._runner.rollout(
            self._model, self._data, np.hstack([time, q, qd]), effort,
            control_spec=int(self._mujoco.mjtState.mjSTATE_QFRC_APPLIED))
        return np.asarray(states[:, self.parts - 1::self.parts, 1:1 + self._n])

    def loop(self, q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        """Return the motion by calling mj_step for every step."""
        model, data, step = self._model, self._data, self._mujoco.mj_step
        positions = np.empty_like(effort)
        for k in range(len(q)):
            data.qpos[:], data.qvel[:] = q[k], qd[k]
            for t in range(effort.shape[1]):
                data.qfrc_applied[:] = effort[k, t]
                step(model, data)
                positions[k, t] = data.qpos
        return positions
