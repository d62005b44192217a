"""What may be prescribed about an identification; everything left open is chosen from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.estimation.errors_in_variables.instrumental import InstrumentalVariables
from robot_dynid.estimation.feasible.bounds import Bounds, bounds_from_dict
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible
from robot_dynid.estimation.friction_selection.law_selection import AUTO
from robot_dynid.estimation.irls import RobustLeastSquares
from robot_dynid.estimation.staged.procedure import PROCEDURES
from robot_dynid.friction import law_from
from robot_dynid.residual import RESIDUALS
from robot_dynid.signals.averaging import Periodic

#: keys whose values are taken as they are
PLAIN = ('rotor_inertia', 'friction', 'procedure', 'prior', 'sweeps', 'warm_up', 'robust',
         'residual', 'loops', 'elastic_joints')
#: value of ``period`` that asks for the one of the recorded motion, of ``friction`` for a choice
#: value of ``residual`` that leaves the deflection out
NONE = 'none'
#: values of ``loops``: friction and links at once, or one after the other
JOINT, THREE = 'joint', 'three'


@dataclass(frozen=True)
class Recipe:
    """Settings of ``identify``.

    ``cutoff`` [Hz] of the low-pass, ``ramp_width`` [rad/s, m/s] of the Coulomb ramp of all joints,
    ``effort_lag`` [s], ``rate`` [Hz] of the uniform grid: None means chosen from the data.
    ``friction`` is a law such as ``maxwell+load``, of which only the shapes are chosen, or
    'auto': the law too, axis by axis, which is Coulomb's where ``ramp_width`` is given.
    ``rotor_inertia`` False for torque sensors on the link side, which do not see rotors.
    ``procedure`` is that of the method staged; ``prior``, ``prior_weight``, ``bounds`` those of
    the methods feasible and sequential-feasible, ``sweeps`` of the latter. ``period`` [s], or
    'auto' for the one of the recorded motion, asks for averaging over the periods of every
    recording, the first ``warm_up`` of them left out. ``robust`` are the weights of the method
    irls, ``instrument_cutoff`` [Hz] that of the instruments of iv, None: chosen from the data.
    ``residual`` is what learns from the deflection: 'none', 'gmr', 'rbf', or 'auto', which is gmr
    where there are motor states. ``loops`` 'joint' fits friction and links at once, 'three' in
    turn, friction first, from sweeps. ``elastic_joints`` are those whose gears deflect, () none;
    None: those of the robot.
    """

    cutoff: float | None = None
    ramp_width: float | None = None
    effort_lag: float | None = None
    rate: float | None = None
    rotor_inertia: bool = True
    friction: str = AUTO
    procedure: str = 'distal-to-proximal'
    prior: str = Feasible.prior
    prior_weight: float | None = None
    bounds: Bounds = field(default_factory=Bounds)
    sweeps: int = SequentialFeasible.sweeps
    period: float | str | None = None
    warm_up: int = Periodic.warm_up
    robust: str = RobustLeastSquares.robust
    instrument_cutoff: float | None = None
    residual: str = AUTO
    loops: str = JOINT
    elastic_joints: tuple[str, ...] | None = None

    @property
    def periodic(self) -> Periodic | None:
        """What is averaged, None for recordings taken as they are."""
        if self.period is None:
            return None
        return Periodic(None if self.period == AUTO else float(self.period), self.warm_up)

    def __post_init__(self) -> None:
        SequentialFeasible(self.prior, self.prior_weight, self.bounds, self.sweeps)  # checks them
        RobustLeastSquares(self.robust)
        InstrumentalVariables(self.instrument_cutoff)
        for name in ('cutoff', 'ramp_width', 'rate'):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < 1e9:
                raise UsageError(f'recipe: {name} must be positive, is {value!r}')
        if isinstance(self.period, str) and self.period != AUTO:
            raise UsageError(f'recipe: period must be seconds or {AUTO}, is {self.period!r}')
        _ = self.periodic  # refuses what no period can be
        if self.procedure not in PROCEDURES:
            raise UsageError(f'recipe: procedure {self.procedure!r}: choose one of '
                             f'{", ".join(PROCEDURES)}')
        if self.residual not in (AUTO, NONE, *RESIDUALS):
            raise UsageError(f'recipe: residual {self.residual!r}: choose one of {AUTO}, {NONE}, '
                             f'{", ".join(RESIDUALS)}')
        if self.loops not in (JOINT, THREE):
            raise UsageError(f'recipe: loops {self.loops!r}: choose one of {JOINT}, {THREE}')
        if self.elastic_joints is not None and not (
                isinstance(self.elastic_joints, (list, tuple))
                and all(isinstance(name, str) for name in self.elastic_joints)):
            raise UsageError('recipe: elastic_joints must be a list of joint names, is '
                             f'{self.elastic_joints!r}')
        if self.friction != AUTO:
            law_from(self.friction)  # refuses an unknown one
        if self.ramp_width is not None and self.friction not in (AUTO, 'coulomb'):
            raise UsageError(f'recipe: ramp_width is that of the law coulomb, not of '
                             f'{self.friction}; leave one of them out')


def recipe_from_dict(content: Mapping[str, Any], source: str = 'recipe') -> Recipe:
    """Build a recipe from the keys of a mapping. Raises UsageError on an unknown key or value."""
    known = {f.name for f in fields(Recipe)}
    unknown = sorted(set(content) - known)
    if unknown:
        raise UsageError(f'{source}: unknown key {", ".join(unknown)}; known are '
                         f'{", ".join(sorted(known))}')
    values: dict[str, Any] = {}
    for key, value in content.items():
        if key == 'bounds':
            values[key] = bounds_from_dict(value or {}, source)
            continue
        if key in PLAIN or value is None or value == AUTO:
            values[key] = value
            continue
        try:
            values[key] = float(value)
        except (TypeError, ValueError):
            raise UsageError(f'{source}: {key} must be a number, is {value!r}') from None
    if not isinstance(values.get('rotor_inertia', True), bool):
        raise UsageError(f'{source}: rotor_inertia must be true or false')
    for key in ('sweeps', 'warm_up'):
        if not isinstance(values.get(key, 0), int):
            raise UsageError(f'{source}: {key} must be a whole number, is {values[key]!r}')
    return Recipe(**values)
