"""Base parameters (minimal parameter sets); every method returns the same type."""

from collections.abc import Callable, Sequence

from robot_dynid.effects.effect import Effect
from robot_dynid.reduction.analytic import reduce_analytic
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import reduce_numeric
from robot_dynid.robot.model import RobotModel

METHODS: dict[str, Callable[[RobotModel, Sequence[Effect]], Reduction]] = {
    'numeric': reduce_numeric, 'analytic': reduce_analytic,
}

__all__ = ['METHODS', 'Reduction', 'reduce_analytic', 'reduce_numeric']
