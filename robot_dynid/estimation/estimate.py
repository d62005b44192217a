"""Estimators, the estimates they return, and quantiles of the distributions behind intervals.

The latter are those of `scipy.stats`, which takes half a second to import.
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
    """Return the probability that an F-distributed number is above ``ratio`` (not below zero)."""
    from scipy.special import fdtrc

    return float(fdtrc(*degrees, ratio))


def student_tail(ratio: float, degrees: float) -> float:
    """Return the probability that Student's t is further from zero than ``ratio``."""
    from scipy.special import stdtr

    return float(2.0 * stdtr(degrees, -abs(ratio)))


#: returns values (b,) of which those in the mask (b,) are solved for, and the others as they are
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
    NOT_SETTLED = ('the weights of the samples did not come to rest: the parameters are those of '
                   'the last round; look for a joint with grossly wrong effort, or use wls')
    NOT_SOLVED = ('the conic solver stopped short of the optimum: the parameters are feasible, '
                  'but not the best; excite the motion better, give the prior a larger weight '
                  '(prior_weight), or check the bounds')


@dataclass(frozen=True)
class Details:
    """Results of a method beyond its parameters; a method with such extends this dataclass.

    Its fields (plain types, arrays, dataclasses of such) are kept in model files and printed by
    ``identify --json``. ``rows`` are the names of the equations.
    """

    def sentence(self, rows: Sequence[str]) -> str:
        """Return one sentence about how the fit went, without a full stop; '' for none."""
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
        """Standard parameters that a prior decided rather than the data."""
        return ()

    @property
    def prior_share(self) -> Mapping[str, float]:
        """Share of its prior variance that the data left to each standard parameter."""
        return {}

    @property
    def active_constraints(self) -> tuple[str, ...]:
        """Constraints that hold with equality, in words."""
        return ()


class Estimator(ABC):
    """Settings of a fit; a subclass is a frozen dataclass.

    Fields made by `setting` are the keys of ``estimator`` in a recipe, and options of the command
    line. The class variables are what the pipeline asks before the fit.
    """

    #: results beyond the parameters
    details_type: ClassVar[type[Details]] = Details
    #: the recordings show single joints that move while all others rest: friction laws are
    #: selected joint by joint from its own motion; no torque ripple is sought, no residual model
    #: learnt, no joint is elastic
    single_joint_motions: ClassVar[bool] = False
    #: the fit estimates the motion, too, from recordings as they are: no residual of a deflection
    #: is learnt from a motion that is taken as it was measured
    estimates_motion: ClassVar[bool] = False
    #: joints with encoders on both sides of the gear are elastic where none are named
    seeks_elastic_joints: ClassVar[bool] = False
    #: the fit gives standard parameters of bodies that can exist
    physically_feasible: ClassVar[bool] = False
    #: the fit needs the information of the recordings alone, not their samples
    fits_information: ClassVar[bool] = False
    #: the fit is linear in the effort, with one weight for all rows of a joint
    linear: ClassVar[bool] = False
    #: value of the parameters that the data leaves open, in words
    open_parameters: ClassVar[str] = ''

    def __post_init__(self) -> None:
        """Raise UsageError for a setting that is outside its range or choices."""
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
        """Whether friction and links may be fitted in turn, see `part_solver`."""
        return False

    def part_solver(self, experiment: Experiment, batches: Sequence[int]) -> PartSolver:
        """Return the solver of ``batches`` for some of the parameters, the others known.

        Raises UsageError where the method is not `sequential`.
        """
        raise UsageError(f'{self.name} solves for all parameters at once')

    def joint_weights(self, experiment: Experiment) -> FloatArray:
        """Return the weights (n,) of the joints in a fit that is `linear`; else UsageError."""
        raise UsageError(f'{self.name} is not linear in the effort')

    @abstractmethod
    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; numerical trouble is in the status."""

    def fit_to_batches(self, experiment: Experiment, estimate: Estimate) -> FitToBatches | None:
        """Return the fit that made ``estimate``, for some cells of distinct motion only.

        To judge the estimate on the motion left out. None stands for weighted least squares.
        """
        return None

    def with_settings(self, content: Mapping[str, Any], source: str = 'recipe') -> Estimator:
        """Return it with settings in plain types. Raises UsageError naming key and remedy."""
        given: dict[str, Any] = read_settings(type(self), content, source)
        return replace(self, **given)  # type: ignore[type-var]

    def laws(
        self, experiment: Experiment, chosen: Sequence[tuple[str, FrictionLaw]],
        without: Sequence[Sequence[str]],
    ) -> Sequence[tuple[str, FrictionLaw]]:
        """Return the laws of friction of all axes by name, those ``chosen`` or better ones.

        ``without`` names for every axis laws and additions that are not to be taken. A method
        that estimates the motion may see more of friction than a filtered motion shows.
        """
        return chosen

    def for_robot(self, robot: RobotModel) -> Estimator:
        """Return it with what the description of a robot adds to its settings.

        Raises UsageError for settings that do not fit the robot.
        """
        return self

    def read_details(self, content: Mapping[str, Any]) -> Details:
        """Return the details of a model file. Raises ValueError, TypeError where they differ."""
        return from_plain(self.details_type, content)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty.

    ``values`` and ``std`` (b,), ``covariance`` (b, b); ``noise`` (n,) residual deviation of each
    joint over the rows as they were weighted [N m]; ``condition_raw`` and ``condition`` of the
    weighted regressor as it is and with unit columns; ``rank``; ``degrees_of_freedom`` of the
    covariance; ``not_excited`` names of parameters the data leaves open (std infinite);
    ``not_identified`` joints. ``standard`` (p,) are feasible standard parameters, where the method
    gives such; ``shares`` (n,) of the variance of each joint's effort that is predicted, where the
    method decides that itself; ``remedy`` what to record for what is not excited, where the method
    knows more than its status says.
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
    """Return the factor from a deviation to half of a confidence interval (Student's t)."""
    return student_quantile(0.5 + level / 2.0, degrees)
