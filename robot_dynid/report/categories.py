"""Identifiability of the parameters, and other sensor configurations, as a section."""

from __future__ import annotations

from robot_dynid.document import Card, Row, Section, Table
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.reduction.identifiability import (
    CATEGORIES,
    DEPENDENT,
    INDEPENDENT,
    UNIDENTIFIABLE,
    lifted_by,
    with_advice,
)
from robot_dynid.reduction.sensor_configurations import SENSOR_CONFIGURATIONS

TEXT = (
    'Unidentifiable parameters act on no measured effort. What linearly dependent ones do, others '
    'can do as well: only the base parameters they appear in are known. Independently '
    'identifiable ones are known by themselves, given a motion that excites them. Other sensor '
    'configurations were tried: their equations joined those of the robot, and the whole was '
    'reduced anew.')


def categories(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with the category of every standard parameter."""
    torque = model.torque_model
    found = with_advice(torque.robot, torque.blocks, model.reduction)
    counted = [one.category for one in found.values()]
    cards = tuple(Card(category, str(counted.count(category))) for category in CATEGORIES)
    rows = tuple(
        Row((name, one.category, ', '.join(one.combinations), one.advice),
            {UNIDENTIFIABLE: 'poor', DEPENDENT: 'fair'}.get(one.category, ''))
        for name, one in found.items())
    more = tuple(
        Row((SENSOR_CONFIGURATIONS[key].words, ', '.join(lifted[INDEPENDENT]) or 'none',
             ', '.join(lifted[DEPENDENT]) or 'none')) for key, lifted in lifted_by(found).items())
    tables = (
        Table(('parameter', 'category', 'in', 'sensor configuration'), rows, words=True),
        Table(('sensor configuration', 'identifiable alone', 'in combinations'), more,
              'Parameters identifiable with other sensor configurations', words=True))
    return (Section('What can be identified', text=TEXT, cards=cards, tables=tables),)
