"""The links of a robot with their shapes, as elements of MuJoCo's XML."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf_text import number_text
from robot_dynid.types import FloatArray

#: how hard dry friction holds within one step, below 1
FRICTION_IMPEDANCE = 0.9999


def rotor_name(joint: str) -> str:
    """Return the name of the joint that the rotor of an elastic ``joint`` turns."""
    return f'{joint}_rotor'


def gear_name(joint: str) -> str:
    """Return the name of the twist of the gear of an elastic ``joint``."""
    return f'{joint}_gear'


@dataclass(frozen=True, eq=False)
class FixedLink:
    """A link on the body ``body`` (-1: the base), at ``placement`` (4, 4), with its ``geoms``."""

    name: str
    body: int
    placement: FloatArray
    geoms: tuple[Element, ...] = ()


@dataclass(frozen=True, eq=False)
class Shapes:
    """All ``links`` with their shapes, the ``assets`` these need, and what is missing."""

    links: tuple[FixedLink, ...]
    assets: tuple[Element, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether a link has a shape."""
        return any(link.geoms for link in self.links)

    @classmethod
    def none(cls, robot: RobotModel) -> Shapes:
        """Return the links of ``robot`` without shapes."""
        return cls(tuple(FixedLink(link.name, link.body, link.placement) for link in robot.links))


def placed(rotation: FloatArray, translation: FloatArray) -> dict[str, str]:
    """Return position and axes as MuJoCo has them; none where they are those of the parent.

    ``rotation`` (3, 3), ``translation`` (3,) m.
    """
    found = {}
    if np.any(translation != 0.0):
        found['pos'] = number_text(translation)
    if not np.array_equal(rotation, np.eye(3)):
        found['xyaxes'] = number_text([*rotation[:, 0], *rotation[:, 1]])
    return found
