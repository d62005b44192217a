"""Identified models: of nominal links, feasible ones, with any friction laws, with springs.

Some are as a perfect identification of a nominal robot would give them, some as a feasible fit
would; others have random links, rotors, friction and gears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.effects import axes_of
from robot_dynid.effects.counterbalance import Spring
from robot_dynid.friction import law_from
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.model_file import DIGEST
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray

ROTORS, VISCOUS, COULOMB, WIDTH = 0.3, 2.0, 1.5, 0.05


def nominal_model(name, rotors=ROTORS, viscous=VISCOUS, coulomb=COULOMB, kind=None, width=WIDTH):
    """Return the model a perfect identification of the nominal robot would give."""
    robot = load_robot(name)
    if kind is not None:
        robot = replace(robot, drive=replace(robot.drive, kind=kind))
    structure = Structure.uniform(robot, True, 'coulomb', {'width': width})
    model = structure.torque_model(robot)
    links = dict(zip(model.blocks[0].names, robot.nominal.ravel()))
    others = {'Ia': rotors, 'fv': viscous, 'fc': coulomb, 'f0': 0.0}
    standard = [links.get(n, others.get(n[:2], 0.0)) for n in model.reduction.standard]
    base = model.reduction.base(standard)
    return IdentifiedModel(
        robot, structure, model.reduction, base, np.full(len(base), 0.1), 0.5 * base,
        Preprocessing(10.0, effort_lag=0.001), 'wls', 'fine', (robot.joints[-1],), ('a warning',),
        FitRecord(recordings=('x.csv',), samples=5),
    )


def unprotected(text):
    """Return the text of a model file without its digest, as if it were edited on purpose."""
    body, mark, _ = text.rpartition(DIGEST)
    assert mark
    return body


def states(model, count=30, seed=1):
    """Return random q, qd, qdd (count, n)."""
    found = random_states(model.robot, count, np.random.default_rng(seed))
    return found.position, found.velocity, found.acceleration


def random_links(rng: np.random.Generator, count: int) -> FloatArray:
    """Return parameters (count, 10) of bodies with positive density."""
    links = []
    for _ in range(count):
        spread = rng.normal(size=(3, 3)) * 0.2
        second = spread @ spread.T + 1e-3 * np.eye(3)
        mass = rng.uniform(0.2, 8.0)
        inertia = mass * (np.trace(second) * np.eye(3) - second)
        links.append(parameters_from_com(mass, rng.normal(size=3) * 0.2, inertia))
    return np.array(links)


def feasible_model(
    robot: RobotModel, links: FloatArray, rng: np.random.Generator | None = None
) -> IdentifiedModel:
    """Return a model of ``robot`` with these ``links`` (n, 10).

    Rotors, friction and offsets are random; zero without ``rng``.
    """
    structure = Structure.uniform(robot, True, 'coulomb', {'width': 0.02})
    reduction = structure.torque_model(robot).reduction
    count = len(reduction.standard) - 10 * robot.n
    others = np.zeros(count) if rng is None else rng.uniform(0.1, 2.0, count)
    standard = np.concatenate([np.ravel(links), others])
    values = reduction.base(standard)
    return IdentifiedModel(
        robot, structure, reduction, values, np.full(len(values), 0.1), 0.5 * values,
        Preprocessing(10.0), 'feasible', 'fine', feasible=standard)


def with_friction(
    model: IdentifiedModel, laws: Sequence[str], load: FloatArray | None = None
) -> IdentifiedModel:
    """Return the model with other ``laws`` of its axes, of default settings and random size."""
    own = [(name, law_from(name)) for name in laws]
    structure = Structure.of(True, own, load)
    torque = structure.torque_model(model.robot)
    rng = np.random.default_rng(2)
    standard = np.array([model.standard.get(name, rng.uniform(0.1, 2.0))
                         for name in torque.reduction.standard])
    values = torque.reduction.base(standard)
    return replace(model, structure=structure, reduction=torque.reduction, values=values,
                   std=np.full(len(values), 0.1), control=0.5 * values, feasible=standard)


#: a chain, one whose motors turn with several joints, one whose gears give, and a tree
NAMES = ('ur10e', 'tx40', 'elastic_2r', 'tree')


def random_model(robot: RobotModel, seed: int = 0) -> IdentifiedModel:
    """Return a model of random links, rotors, friction and, where joints are elastic, gears."""
    rng = np.random.default_rng(seed)
    model = feasible_model(robot, random_links(rng, robot.n), rng)
    names, values = model.reduction.standard, model.feasible.copy()
    for i, name in enumerate(names):
        if name.startswith('K'):
            values[i] = rng.uniform(5e3, 2e4)
        elif name.startswith('s'):
            values[i] = rng.uniform(-3.0, 3.0)
    return replace(model, feasible=values, values=model.reduction.base(values))


def tree() -> RobotModel:
    """Return a random tree with joints that turn and joints that slide."""
    from random_robots import random_urdf  # needs Pinocchio

    return robot_from_urdf(random_urdf(np.random.default_rng(4), 7, 0.5))


def model_named(name: str) -> IdentifiedModel:
    """Return that of one of NAMES."""
    return random_model(tree() if name == 'tree' else load_robot(name))


def with_law(name: str, law: str, scale: float = 0.3) -> IdentifiedModel:
    """Return nominal links and random friction, small parameters that may be below zero."""
    robot = load_robot(name)
    settings = {'drift': {'longest': 40.0}} if 'drift' in law else {}
    load = [tuple(row) for row in robot.nominal.tolist()] if 'load' in law else None
    structure = replace(Structure.uniform(robot, True, law, settings), load=load)
    model = structure.torque_model(robot)
    rng = np.random.default_rng(7)
    standard = [rng.uniform(0.5, 1.0) * (0.02 if n.startswith('fw') else scale)
                for n in model.reduction.standard]
    standard[:10 * robot.n] = robot.nominal.ravel()
    values = model.reduction.base(np.array(standard))
    return IdentifiedModel(robot, structure, model.reduction, values, 0.0 * values, values,
                           Preprocessing(10.0))


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


def model_with_laws(robot: RobotModel, laws: Sequence[Law], seed: int = 0) -> IdentifiedModel:
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


#: one of each kind
SPRINGS = (Spring(1, 0.4, 0.6), Spring(0, -1.0, 0.0))


def counterbalanced(
    model: IdentifiedModel, springs: Sequence[Spring] = SPRINGS, torque: float = 30.0
) -> IdentifiedModel:
    """Return a model with ``springs`` of ``torque`` [N m], and more, each."""
    structure = replace(model.structure, chosen={'counterbalance': tuple(springs)})
    reduction = structure.torque_model(model.robot).reduction
    values = model.standard | {
        f'cb{spring.joint + 1}': torque + 10.0 * i for i, spring in enumerate(springs)}
    standard = np.array([values[name] for name in reduction.standard])
    base, none = reduction.base(standard), np.zeros(len(reduction.pivots))
    return replace(model, structure=structure, reduction=reduction, values=base, std=none,
                   control=base, correlation_factor=None,
                   feasible=None if model.feasible is None else standard)
