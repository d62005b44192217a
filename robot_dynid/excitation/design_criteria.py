"""Design criteria of a robot: objectives of its base regressor, score, predicted efforts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.blas import one_blas_thread
from robot_dynid.collision.clearance import prove
from robot_dynid.effects import (
    Effect,
    JointFriction,
    RigidLinks,
    axes_of,
    frictionless_blocks,
)
from robot_dynid.errors import DynIdError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.score import EFFORT_RATE, Scorer
from robot_dynid.excitation.search.constraints import KeepClear, RigidEffort
from robot_dynid.excitation.search.objective import (
    Measured,
    Objective,
    WeightedBlocks,
    both,
    log_largest_deviation,
    log_mean_deviation,
)
from robot_dynid.excitation.search.observation import (
    Observation,
    SlidingFriction,
    part_observations,
)
from robot_dynid.friction import Coulomb
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, Progress, frozen

if TYPE_CHECKING:
    from robot_dynid.collision.scene import Scene

#: noise of an effort sample in terms of the effort limit of the joint
NOISE_SHARE = 0.01
#: width of the ramps of friction in the search, in terms of the velocity limit
RAMP_SHARE = 0.05


@one_blas_thread()
def design_criteria(
    robot: RobotModel, progress: Progress | None = None, blocks: Sequence[Effect] | None = None,
    elapsed: Callable[[], float] | None = None, noise: ArrayLike | None = None,
    links: FloatArray | None = None,
) -> DesignCriteria:
    """Return the criteria for a robot for the parameters of ``blocks`` (default: links, friction).

    Planned excitations look for rotor inertias, too, unless ``blocks`` are given. ``noise`` (n,)
    N m (N) is the deviation of an effort sample of each joint, by default 1 % of its effort limit
    (all alike where a limit is unknown). Efforts are predicted with ``links`` (n, 10), those of a
    previous model, or the nominal inertials where the robot has them and none is misleading.
    Elastic joints are taken as rigid: what moves the links bends their gears.
    """
    robot = robot.rigid
    spread = _noise(robot) if noise is None else frozen(np.broadcast_to(noise, (robot.n,)))
    chosen = _default_blocks(robot) if blocks is None else tuple(blocks)
    model = TorqueModel.of(robot, chosen)
    seen = TorqueModel.of(robot, _smooth(robot, chosen))
    known, warnings = links, _warnings(robot, chosen, noise is None)
    if known is None:
        misleading = [f'link {one.link!r}: {one.text}' for one in implausible_inertials(robot)
                      if one.misleading]
        warnings += tuple(misleading)
        nominal = robot.tree.nominal
        known = nominal if np.any(nominal[:, 0] > 0.0) and not misleading else None
    parts = part_observations(robot, spread)
    planned = TorqueModel.of(robot, _with_rotors(robot)) if blocks is None else model
    return DesignCriteria(
        score=Scorer(Observation.of(model, spread), model.reduction.names, parts,
                     _sizes(model, spread, known)),
        inverse=None if known is None else RigidEffort(robot, known), progress=progress,
        model=planned, elapsed=elapsed,
        objective=_objectives(Observation.of(seen, spread), parts, _sizes(seen, spread, known)),
        sizes=_sizes(planned, spread, known), noise=spread, warnings=warnings)


def keeping_clear(criteria: DesignCriteria, scene: Scene) -> DesignCriteria:
    """Return criteria that also keeps all pairs of a scene apart, and proves it in the end."""
    pairs = (KeepClear(scene),) if scene.pairs else ()
    return replace(criteria, constraints=(*criteria.constraints, *pairs),
                   proof=partial(prove, scene))


def _objectives(
    observation: Observation, parts: Mapping[str, Observation], sizes: FloatArray | None
) -> Callable[[str, Motion, float], Objective]:
    """Return a function that builds objectives by name; ``sizes`` (b,) of the parameters.

    It raises DynIdError where the robot has no nominal parameters to compare with.
    """
    def objective(name: str, typical: Motion, seconds: float) -> Objective:
        samples = EFFORT_RATE * seconds
        if name == 'blocks':
            return WeightedBlocks.at(observation, tuple(parts.values()), typical)
        if name == 'precision':
            if sizes is None:
                raise DynIdError("objective 'precision' is relative to nominal parameters: the "
                                 "robot has none; take 'log-det', or give the links inertials")
            return Measured(observation, partial(log_largest_deviation, sizes=sizes), samples)
        return Measured(observation, both if name == 'condition' else log_mean_deviation, samples)
    return objective


def _noise(robot: RobotModel) -> FloatArray:
    """Return the deviation (n,) of an effort sample: a share of the limit, or one for all."""
    limits = robot.limits.effort
    return frozen(NOISE_SHARE * limits if np.all(limits > 0.0) else np.ones(robot.n))


def _sizes(model: TorqueModel, noise: FloatArray, links: FloatArray | None) -> FloatArray | None:
    """Return sizes (b,) of the base parameters to which deviations are relative.

    They are the nominal ones, but at least so large that the effort of the parameter at about
    1 rad/s is as large as the noise: what is less need not be known in relation to itself.
    """
    if links is None:
        return None
    standard = np.zeros(len(model.reduction.standard))
    standard[:links.size] = np.ravel(links)
    least = 1.0 / np.max(model.moderate_effort / noise[:, None], axis=0)
    return np.asarray(np.maximum(np.abs(model.reduction.base(standard)), least))


def _smooth(robot: RobotModel, blocks: Sequence[Effect]) -> tuple[Effect, ...]:
    """Return the blocks with gradients."""
    speeds = np.where(robot.limits.velocity > 0.0, robot.limits.velocity, 1.0)
    found: list[Effect] = []
    for block in blocks:
        if isinstance(block, JointFriction):
            widths = RAMP_SHARE * np.abs(block.axes.matrix) @ speeds
            found.append(SlidingFriction(block.axes, block.laws, frozen(widths)))
        elif block.smooth:
            found.append(block)
    return tuple(found)


def _warnings(robot: RobotModel, blocks: Sequence[Effect], assumed: bool) -> tuple[str, ...]:
    found = [f'{type(block).__name__} has no gradient in the motion: the search leaves it out'
             for block in blocks if not (block.smooth or isinstance(block, JointFriction))]
    if assumed and not np.all(robot.limits.effort > 0.0):
        found.append('efforts of all joints weigh alike, since not all effort limits are known')
    return tuple(found)


def _default_blocks(robot: RobotModel) -> tuple[Effect, ...]:
    axes = axes_of(robot)
    return RigidLinks(robot), JointFriction(axes, tuple(Coulomb() for _ in axes.labels))


def _with_rotors(robot: RobotModel) -> tuple[Effect, ...]:
    *_, friction = _default_blocks(robot)
    return (*frictionless_blocks(robot, rotor_inertia=robot.drive.shows_motors), friction)
