"""Estimators, their estimates, and quantiles of the distributions behind intervals.

The quantiles equal those of `scipy.stats`, which takes half a second to import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import Section, Table
from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.friction import FrictionLaw
from robot_dynid.plain import from_plain
from robot_dynid.robot.model import RobotModel
from robot_dynid.settings import read_settings, require_allowed
from robot_dynid.types import FloatArray


def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution with ``degrees`` of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def fisher_tail(ratio: float, degrees: tuple[int, int]) -> float:
    """Return the probability that an F-distributed number exceeds `ratio` (not negative)."""
    from scipy.special import fdtrc

    return float(fdtrc(*degrees, ratio))


def student_tail(ratio: float, degrees: float) -> float:
    """Return the two-sided probability that Student's t exceeds `ratio` in magnitude."""
    from scipy.special import stdtr

    return float(2.0 * stdtr(degrees, -abs(ratio)))


#: returns values (b,): those in the mask (b,) are solved for, the others are unchanged
PartSolver = Callable[[NDArray[np.bool_], FloatArray], FloatArray]
#: returns the base parameters (b,) of a fit to some of the batches of an experiment
FitToBatches = Callable[[Sequence[int]], FloatArray]


class Status(Enum):
    """Outcome of a fit; the value is the advice."""

    OK = 'the data determines every base parameter'
    NOT_EXCITED = ('the motion does not excite every base parameter; record a motion in which all '
                   'joints move through most of their range at different speeds')
    NOT_IDENTIFIED = ('the data gives no model of the effort of a joint; check its effort signal, '
                      'and do not use the model for this joint')
    NOT_SETTLED = ('the weights of the samples did not converge: the parameters are those of the '
                   'last round; look for a joint with grossly wrong effort, or use wls')
    NOT_SOLVED = ('the conic solver stopped before the optimum: the parameters are feasible, but '
                  'not optimal; excite the robot better, give the prior a larger weight '
                  '(prior_weight), or check the bounds')


@dataclass(frozen=True)
class Details:
    """Results of a method beyond its parameters; methods with such results extend this dataclass.

    Its fields (plain types, arrays, dataclasses of such) are stored in model files and printed by
    ``identify --json``. In its methods `rows` are the names of the equations.
    """

    def sentence(self, rows: Sequence[str]) -> str:
        """Return one sentence about the fit, without a full stop; '' for none."""
        return ''

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return the tables of the section."""
        return ()

    def sections(self, method: str, rows: Sequence[str]) -> tuple[Section, ...]:
        """Return the sections of the report: one with sentence and tables, or none."""
        sentence, tables = self.sentence(rows), self.tables(rows)
        if not sentence and not tables:
            return ()
        text = f'{sentence[:1].upper()}{sentence[1:]}.' if sentence else ''
        return (Section(f'Method {method}', text=text, tables=tables),)

    @property
    def from_prior(self) -> tuple[str, ...]:
        """Names of the standard parameters that the prior rather than the data determines."""
        return ()

    @property
    def prior_share(self) -> Mapping[str, float]:
        """Share of the prior variance that the data leaves to each standard parameter."""
        return {}

    @property
    def active_constraints(self) -> tuple[str, ...]:
        """Descriptions of the constraints that are active."""
        return ()


class Estimator(ABC):
    """An identification method with its settings; subclasses are frozen dataclasses.

    Fields made by `setting` are keys of `estimator` in a recipe, and command-line options. The
    class variables tell the pipeline what the method needs.
    """

    #: details of an estimate beyond the parameters
    details_type: ClassVar[type[Details]] = Details
    #: in the recordings one joint moves while all others rest: friction laws are selected joint by
    #: joint from that motion; no torque ripple, residual model or elastic joint is fitted
    single_joint_motions: ClassVar[bool] = False
    #: the fit estimates the motion, too, from unfiltered recordings: no model of the deflection is
    #: learned from the measured motion
    estimates_motion: ClassVar[bool] = False
    #: joints with encoders on both sides of the gear are elastic if none are named
    seeks_elastic_joints: ClassVar[bool] = False
    #: the fit gives standard parameters of physically consistent bodies
    physically_feasible: ClassVar[bool] = False
    #: the fit needs only the information of the recordings, not their samples
    fits_information: ClassVar[bool] = False
    #: the fit is linear in the effort, with one weight for all rows of a joint
    linear: ClassVar[bool] = False
    #: value of the parameters that the data does not determine, in words
    open_parameters: ClassVar[str] = ''

    def __post_init__(self) -> None:
        """Raise UsageError for a setting outside its range or choices."""
        require_allowed(self, '{}')

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the method on the command line and in recipes."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The method in one line."""

    @property
    def sequential(self) -> bool:
        """True if friction and links can be fitted in turn, see `part_solver`."""
        return False

    def part_solver(self, experiment: Experiment, batches: Sequence[int]) -> PartSolver:
        """Return the solver of `batches` for some of the parameters, the others fixed.

        Raises UsageError unless the method is `sequential`.
        """
        raise UsageError(f'{self.name} solves for all parameters at once')

    def joint_weights(self, experiment: Experiment) -> FloatArray:
        """Return the weights (n,) of the joints; raises UsageError unless the fit is `linear`."""
        raise UsageError(f'{self.name} is not linear in the effort')

    @abstractmethod
    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; numerical problems are in the status."""

    def fit_to_batches(self, experiment: Experiment, estimate: Estimate) -> FitToBatches | None:
        """Return the fit behind `estimate` as a function of some cells of distinct motion.

        Cross-validation uses it; None stands for weighted least squares.
        """
        return None

    def with_settings(self, content: Mapping[str, Any], source: str = 'recipe') -> Estimator:
        """Return the estimator with settings in plain types; raises UsageError naming the key."""
        given: dict[str, Any] = read_settings(type(self), content, source)
        return replace(self, **given)  # type: ignore[type-var]

    def laws(
        self, experiment: Experiment, chosen: Sequence[tuple[str, FrictionLaw]],
        without: Sequence[Sequence[str]],
    ) -> Sequence[tuple[str, FrictionLaw]]:
        """Return the friction laws of all axes by name: those `chosen`, or better ones.

        `without` names for every axis excluded laws and additions. A method that estimates the
        motion may see more of friction than a filtered motion shows.
        """
        return chosen

    def for_robot(self, robot: RobotModel) -> Estimator:
        """Return the estimator with settings completed from the description of a robot.

        Raises UsageError for settings that do not fit the robot.
        """
        return self

    def read_details(self, content: Mapping[str, Any]) -> Details:
        """Return the details of a model file; raises ValueError or TypeError if they differ."""
        return from_plain(self.details_type, content)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty.

    `values` and `std` (b,), `covariance` (b, b); `noise` (n,) residual deviation of each joint
    over the weighted rows [N m]; `condition_raw` and `condition` of the weighted regressor,
    unscaled and with unit columns; `rank`; `degrees_of_freedom` of the covariance; `not_excited`
    names of parameters that the data does not determine (std infinite); `not_identified` joints.
    `standard` (p,) are feasible standard parameters, if the method gives such; `shares` (n,) of
    the variance of each joint's effort that is predicted, if the method computes them; `remedy`
    what to record for unexcited parameters, if the method can say.
    """

    names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    noise: FloatArray
    condition_raw: float
    condition: float
    rank: int
    degrees_of_freedom: int
    method: str
    status: Status = Status.OK
    not_excited: tuple[str, ...] = ()
    not_identified: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    details: Details = field(default_factory=Details)
    standard: FloatArray | None = None
    shares: FloatArray | None = None
    remedy: str = ''

    @property
    def std(self) -> FloatArray:
        """Standard deviations (b,)."""
        deviation: FloatArray = np.sqrt(np.diag(self.covariance))
        return np.where([n in self.not_excited for n in self.names], np.inf, deviation)

    @property
    def relative_std(self) -> FloatArray:
        """Standard deviations (b,) relative to the values."""
        with np.errstate(divide='ignore', invalid='ignore'):
            relative: FloatArray = self.std / np.abs(self.values)
        return relative

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds (b,) of the confidence interval of each parameter."""
        half = interval_factor(self.degrees_of_freedom, level) * self.std
        return self.values - half, self.values + half


def interval_factor(degrees: float, level: float = 0.95) -> float:
    """Return the factor from standard deviation to half-width of a confidence interval."""
    return student_quantile(0.5 + level / 2.0, degrees)
