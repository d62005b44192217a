"""Identified models as a perfect identification of a nominal robot would give them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.model_file import DIGEST
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing

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
