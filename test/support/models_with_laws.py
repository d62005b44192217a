"""Identified models with chosen friction laws and random parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.effects import axes_of
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing

#: least and greatest values by the beginning of the name; of the others 0.2 to 1
VALUES = {'Ia': (0.1, 1.0), 'fv': (1.0, 6.0), 'fc': (1.0, 6.0), 'fw': (0.02, 0.08),
          'f0': (-0.5, 0.5), 'K': (4e3, 9e3), 'D': (10.0, 30.0), 's': (-1.0, 1.0)}
Law = tuple[str, dict[str, object]]
#: what is chosen for a UR10e
AUTO: tuple[Law, ...] = (
    ('dahl+levelling', {'length': 1.2e-4, 'levelling': {'speed': 0.53, 'speeds': [-1.4, 1.4]}}),
    ('dahl+load+levelling', {'length': 1.4e-4,
                             'levelling': {'speed': 0.63, 'speeds': [-1.6, 1.3]}}),
    ('dahl+load', {'length': 1.4e-4}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4]}),
    ('maxwell+load', {'lengths': [2e-5, 6e-5, 6e-4, 2e-3]}),
    ('maxwell+breakaway', {'lengths': [2e-5, 2e-3],
                           'breakaway': {'speed': 0.2, 'speeds': [-1.0, 1.2]}}))
#: every kind of term
ALL_LAWS: tuple[Law, ...] = (
    ('stribeck+load', {'width': 0.02, 'speed': 0.2, 'speeds': [-1.1, 1.4]}),
    ('two-speed', {}), ('asymmetric', {}), ('coulomb+drift+temperature', {'width': 0.05}),
    ('coulomb+breakaway+load', {'breakaway': {'speed': 0.3, 'speeds': [-0.7, 0.9]}}), *AUTO)


def model_of(robot: RobotModel, laws: Sequence[Law], seed: int = 0) -> IdentifiedModel:
    """Return a model of ``robot`` whose axes have the ``laws`` in turn."""
    rng = np.random.default_rng(seed)
    chosen = [laws[i % len(laws)] for i in range(len(axes_of(robot).labels))]
    load = robot.nominal * rng.uniform(0.8, 1.2, (robot.n, 1))
    structure = Structure(True, tuple(name for name, _ in chosen),
                          tuple(settings for _, settings in chosen),
                          tuple(tuple(row) for row in load.tolist()))
    reduction = structure.torque_model(robot).reduction
    standard = robot.nominal.ravel().tolist()
    for name in reduction.standard[10 * robot.n:]:
        beginning = next((key for key in VALUES if name.startswith(key)), '')
        standard.append(rng.uniform(*VALUES.get(beginning, (0.2, 1.0))))
    values = reduction.base(np.array(standard))
    return IdentifiedModel(robot, structure, reduction, values, abs(values), values,
                           Preprocessing(10.0))
