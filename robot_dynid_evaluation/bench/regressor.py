"""Regressor of arms of 7 to 50 joints, one thread and two: beside Pinocchio, iDynTree and JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.regressor_columns import chunk_length
from robot_dynid.effects.effect import Assembly, SampleColumns
from robot_dynid.errors import DynIdError, MissingDependency
from robot_dynid.estimation.experiment import Regression, TorqueModel, chunks
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import serial_arm
from robot_dynid_evaluation.bench.pinocchio_cpp import REGRESSOR_SOURCE, Loop, compiled
from robot_dynid_evaluation.bench.regressor_peers import IDYNTREE, JAX, idyntree_loop, jax_columns
from robot_dynid_evaluation.bench.timing import (
    ROBOT,
    import_pinocchio,
    in_turns,
    over_threads,
    pinocchio_loop,
    pinocchio_model,
    random_motion,
)

SAMPLES = 20_000
#: joints of arms, and samples of each, beside the loop of C++
ARMS = {7: SAMPLES, 14: 8000, 30: 2000, 50: 600}
RAMP = 0.01
#: largest distance of two regressors, relative to their largest entry
ALIKE = 1e-10
#: ways of a peer by name, which fills them for an arm
Contenders = Mapping[str, Callable[[], Any]]


def measure(progress: Progress) -> Iterator[Row]:
    """Yield the rows: one arm beside all peers, then longer ones beside the fastest."""
    from threadpoolctl import threadpool_limits


    with threadpool_limits(limits=1), threads_at_most(1):
        yield from beside_python(progress)
        try:
            progress('compiling the loop of C++', 0.0)
            with compiled(REGRESSOR_SOURCE) as library:
                for joints, count in ARMS.items():
                    yield from beside_loop(
                        Arm.of(joints, count), Loop, library, progress)
        except MissingDependency as error:
            yield skipped(str(error))
        yield from beside_links(progress)
    for joints in (min(ARMS), max(ARMS)):
        arm = Arm.of(joints, ARMS[joints])
        yield from over_threads(
            {f'{joints} joints, all {arm.shape[1]} columns in one array': arm.in_one_array()},
            'ms', 1e3, progress)


def skipped(why: str) -> Row:
    """Return the row of a peer that is not there."""
    return {'what': f'left out: {why}', 'unit': '', 'ours': None, 'peer': None, 'ratio': None,
            'target': '', 'kept': None}


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm with Coulomb friction and rotors, and a random motion of it."""

    robot: RobotModel
    samples: Samples

    @classmethod
    def of(cls, joints: int, count: int) -> Arm:
        """Return the arm of the package with seven joints, otherwise one made up."""
        robot = load_robot(ROBOT) if joints == 7 else serial_arm(joints)
        return cls(robot, random_motion(robot, count))

    @property
    def motion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity and acceleration, each (N, n)."""
        return self.samples.position, self.samples.velocity, self.samples.acceleration

    @cached_property
    def columns(self) -> SampleColumns:
        """All columns: links, rotors, friction. The past of friction is computed here."""
        structure = Structure.uniform(self.robot, True, 'coulomb', {'width': RAMP})
        return Assembly.of(structure.blocks(self.robot)).columns_of(self.samples)

    @property
    def shape(self) -> tuple[int, int]:
        """Equations and columns."""
        return self.robot.rows, self.columns.assembly.columns.count

    def fresh(self) -> SampleColumns:
        """Return the columns with nothing computed of them."""
        return self.columns.assembly.columns_of(self.samples)

    def in_chunks(self, length: int) -> Callable[[], None]:
        """Return the computation of all columns, ``length`` samples at a time, memory reused."""
        out = np.zeros((*self.shape, length))

        def compute() -> None:
            columns = self.fresh()
            for rows in chunks(self.samples, length):
                columns.fill(rows, out[:, :, :rows.stop - rows.start])

        return compute

    def last(self, count: int) -> FloatArray:
        """Return all columns (R, k, count) of the last samples."""
        out = np.zeros((*self.shape, count))
        self.columns.fill(slice(len(self.samples) - count, len(self.samples)), out)
        return out

    def in_one_array(self) -> Callable[[], None]:
        """Return the computation of all columns in one array, whose memory is there before."""
        out = np.zeros((*self.shape, len(self.samples)))
        return lambda: self.fresh().fill(slice(0, len(self.samples)), out)


def beside_python(progress: Progress) -> list[Row]:
    """Return the rows beside Pinocchio called from Python, as the field's tools do."""
    arm = Arm.of(7, SAMPLES)
    structure = Structure.uniform(arm.robot, True, 'coulomb', {'width': RAMP})
    model = structure.torque_model(arm.robot)
    bare, stacking = peers(arm.robot, arm.samples)
    found = milliseconds({
        'ours': lambda: in_chunks(model, arm.samples), 'bare': bare, 'stacking': stacking,
    }, progress)
    base = len(model.reduction.pivots)
    return [
        row(f'{base} base columns in chunks / stacking loop in Python', 'ms', found['ours'],
            found['stacking'], Target(15.0)),
        row(f'{base} base columns in chunks / bare calls from Python', 'ms', found['ours'],
            found['bare'], Target(4.0)),
    ]


def in_chunks(model: TorqueModel, samples: Samples) -> None:
    """Compute the base regressor as the identification does: chunk by chunk, memory reused."""
    regression = Regression(model, samples)
    for rows in chunks(samples, model.chunk):
        regression.columns(rows)


def beside_loop(arm: Arm, loop: Any, library: Any, progress: Progress) -> Iterator[Row]:
    """Yield the rows of an arm beside Pinocchio in a loop of C++.

    Both fill all columns of links, rotors and friction, in chunks of the same length whose memory
    is reused; for seven joints also in one array that is in memory before. An array that is not
    costs several times more on both sides: the system hands out its pages one by one.
    """
    n, length = arm.robot.n, chunk_length(*arm.shape)
    peer, motion, count = loop(library, arm.robot), arm.motion, len(arm.samples)
    tall = np.zeros((count * n if n == 7 else length * n, 14 * n))

    def chunked() -> None:
        for first in range(0, count, length):
            part = tuple(signal[first:first + length] for signal in motion)
            peer.stacked(part, tall[:len(part[0]) * n])

    contenders: dict[str, Callable[[], Any]] = {
        'ours': arm.in_chunks(length), 'calls': lambda: peer.calls(motion), 'chunked': chunked}
    if n == 7:
        contenders |= {'whole': arm.in_one_array(), 'tall': lambda: peer.stacked(motion, tall)}
    chunked()  # of the last chunk the rows that it has
    rest = (count - 1) % length + 1
    theirs = tall[:rest * n].reshape(rest, n, -1).transpose(1, 2, 0)
    compare('the loop of C++', theirs[:, :11 * n], arm.last(rest)[:, :11 * n])
    found = {name: 1e3 * ms / count for name, ms in milliseconds(contenders, progress).items()}
    peer.close()
    ahead, what = Target(3.0 if n == 7 else 1.0), f'{n} joints, all {arm.shape[1]} columns'
    us = 'us per sample'
    yield row(f'{what} in chunks / loop of C++', us, found['ours'], found['chunked'], ahead)
    yield row(f'{what} in chunks / its calls alone, links', us, found['ours'], found['calls'],
              ahead)
    if n == 7:
        yield row(f'{what} in one array / loop of C++', us, found['whole'], found['tall'], ahead)


def beside_links(progress: Progress) -> Iterator[Row]:
    """Yield the rows of the links' columns beside iDynTree and JAX."""
    arm = Arm.of(7, SAMPLES)
    out = np.zeros((7, 70, SAMPLES))
    for name, sample, prepared, target in (  # each returns the columns of its last or first sample
            (IDYNTREE, -1, idyntree_loop, Target(15.0)), (JAX, 0, jax_columns, Target(4.0))):
        try:
            theirs = prepared(arm.robot, arm.samples)
        except MissingDependency as error:
            yield skipped(str(error))
            continue
        one = theirs()
        rigid_body.regressor(arm.robot, arm.motion, out=out)
        compare(name, one, out[:, :, sample])
        found = milliseconds({
            'ours': lambda: rigid_body.regressor(arm.robot, arm.motion, out=out),
            'peer': theirs}, progress)
        yield row(f'70 columns of links in one array / {name}', 'ms', found['ours'],
                  found['peer'], target)


def compare(peer: str, theirs: FloatArray, ours: FloatArray) -> None:
    """Raise DynIdError where a peer computes something else, by more than rounding."""
    apart = float(np.abs(theirs - ours).max() / np.abs(ours).max())
    if not apart < ALIKE:
        raise DynIdError(f'{peer} computes another regressor: {apart:.1g} apart')


def milliseconds(contenders: Contenders, progress: Progress) -> dict[str, FloatArray]:
    """Return the ms (rounds,) of every contender, run in turns."""
    return {name: 1e3 * found for name, found in in_turns(contenders, progress).items()}


def peers(robot: RobotModel, samples: Samples) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return Pinocchio's regressor called for every sample, and called and stacked."""
    pin, (model, data) = import_pinocchio(), pinocchio_model(robot)
    q, qd, qdd = samples.position, samples.velocity, samples.acceleration

    def stacking() -> FloatArray:
        """Fill one tall matrix row by row, joint after joint, as the field's tools do.

        Same columns as ours: links, viscous and Coulomb friction, rotor inertia, offset.
        """
        count, n = q.shape
        tall = np.zeros((count * n, 14 * n))
        for i in range(count):
            links = pin.computeJointTorqueRegressor(model, data, q[i, :], qd[i, :], qdd[i, :])
            for j in range(n):
                line = j * count + i
                tall[line, :10 * n] = links[j, :]
                tall[line, 10 * n + j] = qdd[i, j]
                tall[line, 11 * n + 3 * j] = qd[i, j]
                tall[line, 11 * n + 3 * j + 1] = np.sign(qd[i, j])
                tall[line, 11 * n + 3 * j + 2] = 1.0
        return tall

    return pinocchio_loop(robot, 'computeJointTorqueRegressor', (q, qd, qdd)), stacking
