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

#: noise of an effort sample as a share of the effort limit of the joint
NOISE_SHARE = 0.01
#: width of the friction ramps in the search as a share of the velocity limit
RAMP_SHARE = 0.05


@one_blas_thread()
def design_criteria(
    robot: RobotModel, progress: Progress | None = None, blocks: Sequence[Effect] | None = None,
    elapsed: Callable[[], float] | None = None, noise: ArrayLike | None = None,
    links: FloatArray | None = None,
) -> DesignCriteria:
    """Return the design criteria for the parameters of ``blocks`` (default: links, friction).

    Planned excitations identify rotor inertias, too, unless ``blocks`` are given. ``noise`` (n,) N
    m (N) is the standard deviation of an effort sample of each joint, by default 1 % of its effort
    limit (equal for all if a limit is unknown). Efforts are predicted with ``links`` (n, 10) of a
    previous model, by default with the nominal inertials unless they are missing or misleading.
    Elastic joints are treated as rigid: what moves the links deflects their gears.
    """
    robot = robot.rigid
    spread = _noise(robot) if noise is None else frozen(np.broadcast_to(noise, (robot.n,)))
    chosen = _default_blocks(robot) if blocks is None else tuple(blocks)
    model = TorqueModel.of(robot, chosen)
    observed = TorqueModel.of(robot, _smooth_blocks(robot, chosen))
    inertials, warnings = links, _warnings(robot, chosen, noise is None)
    if inertials is None:
        misleading = [f'link {one.link!r}: {one.text}' for one in implausible_inertials(robot)
                      if one.misleading]
        warnings += tuple(misleading)
        nominal = robot.tree.nominal
        inertials = nominal if np.any(nominal[:, 0] > 0.0) and not misleading else None
    parts = part_observations(robot, spread)
    planned = TorqueModel.of(robot, _with_rotors(robot)) if blocks is None else model
    return DesignCriteria(
        score=Scorer(Observation.of(model, spread), model.reduction.names, parts,
                     _sizes(model, spread, inertials)),
        inverse=None if inertials is None else RigidEffort(robot, inertials), progress=progress,
        model=planned, elapsed=elapsed,
        objective=_objectives(
            Observation.of(observed, spread), parts, _sizes(observed, spread, inertials)),
        sizes=_sizes(planned, spread, inertials), noise=spread, warnings=warnings)


def keeping_clear(criteria: DesignCriteria, scene: Scene) -> DesignCriteria:
    """Return criteria that also keep all pairs of a scene apart, and prove it at the end."""
    pairs = (KeepClear(scene),) if scene.pairs else ()
    return replace(criteria, constraints=(*criteria.constraints, *pairs),
                   proof=partial(prove, scene))


def _objectives(
    observation: Observation, parts: Mapping[str, Observation], sizes: FloatArray | None
) -> Callable[[str, Motion, float], Objective]:
    """Return a function that builds an objective by name; ``sizes`` (b,) of the parameters.

    It raises DynIdError if the objective needs nominal parameters and the robot has none.
    """
    def objective(name: str, typical: Motion, seconds: float) -> Objective:
        samples = EFFORT_RATE * seconds
        if name == 'blocks':
            return WeightedBlocks.at(observation, tuple(parts.values()), typical)
        if name == 'precision':
            if sizes is None:
                raise DynIdError("objective 'precision' is relative to nominal parameters and the "
                                 "robot has none: use 'log-det', or give the links inertials")
            return Measured(observation, partial(log_largest_deviation, sizes=sizes), samples)
        return Measured(observation, both if name == 'condition' else log_mean_deviation, samples)
    return objective


def _noise(robot: RobotModel) -> FloatArray:
    """Return the standard deviation (n,) of an effort sample: a share of its limit, or one."""
    limits = robot.limits.effort
    return frozen(NOISE_SHARE * limits if np.all(limits > 0.0) else np.ones(robot.n))


def _sizes(model: TorqueModel, noise: FloatArray, links: FloatArray | None) -> FloatArray | None:
    """Return the sizes (b,) of the base parameters that deviations are relative to.

    They are the nominal values, but at least so large that the effort of the parameter at about 1
    rad/s equals the noise: a smaller value needs no relative accuracy.
    """
    if links is None:
        return None
    standard = np.zeros(len(model.reduction.standard))
    standard[:links.size] = np.ravel(links)
    least = 1.0 / np.max(model.moderate_effort / noise[:, None], axis=0)
    return np.asarray(np.maximum(np.abs(model.reduction.base(standard)), least))


def _smooth_blocks(robot: RobotModel, blocks: Sequence[Effect]) -> tuple[Effect, ...]:
    """Return the blocks that have gradients."""
    speeds = np.where(robot.limits.velocity > 0.0, robot.limits.velocity, 1.0)
    smooth: list[Effect] = []
    for block in blocks:
        if isinstance(block, JointFriction):
            widths = RAMP_SHARE * np.abs(block.axes.matrix) @ speeds
            smooth.append(SlidingFriction(block.axes, block.laws, frozen(widths)))
        elif block.smooth:
            smooth.append(block)
    return tuple(smooth)


def _warnings(robot: RobotModel, blocks: Sequence[Effect], assumed: bool) -> tuple[str, ...]:
    warnings = [f'{type(block).__name__} has no gradient in the motion: the search omits it'
             for block in blocks if not (block.smooth or isinstance(block, JointFriction))]
    if assumed and not np.all(robot.limits.effort > 0.0):
        warnings.append('all joints have equal weight, because not all effort limits are known')
    return tuple(warnings)


def _default_blocks(robot: RobotModel) -> tuple[Effect, ...]:
    axes = axes_of(robot)
    return RigidLinks(robot), JointFriction(axes, tuple(Coulomb() for _ in axes.labels))


def _with_rotors(robot: RobotModel) -> tuple[Effect, ...]:
    *_, friction = _default_blocks(robot)
    return (*frictionless_blocks(robot, rotor_inertia=robot.drive.shows_motors), friction)
