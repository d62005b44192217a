"""iDynTree's regressor of the inertial parameters (PyPI idyntree), called for every sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

NAME = 'iDynTree in a Python loop'
#: the sample whose regressor is returned
SAMPLE = -1
#: our order of the ten parameters of a link in its own, which has xz before yy
ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)


def prepared(robot: RobotModel, samples: Samples) -> Callable[[], FloatArray]:
    """Return the loop; it returns the last regressor (n, 10 n), in our order.

    Raises MissingDependency where iDynTree is not installed.
    """
    try:
        from idyntree import bindings
    except ImportError:
        raise MissingDependency(f'{NAME}: pip install idyntree') from None
    loader = bindings.ModelLoader()
    loader.loadReducedModelFromFile(robot.source, bindings.StringVector(robot.joints))
    computations = bindings.KinDynComputations()
    computations.loadRobotModel(loader.model())
    model = computations.model()
    chosen = [10 * model.getLinkIndex(name) + k for name in robot.bodies for k in ORDER]
    found = bindings.MatrixDynSize(6 + robot.n, 10 * model.getNrOfLinks())
    still, gravity = np.zeros(6), np.asarray(robot.gravity)

    def loop() -> FloatArray:
        for q, qd, qdd in zip(samples.position, samples.velocity, samples.acceleration,
                              strict=True):
            computations.setRobotState(q, qd, gravity)
            computations.inverseDynamicsInertialParametersRegressor(still, qdd, found)
        return np.asarray(found.toNumPy()[6:, chosen])

    return loop
