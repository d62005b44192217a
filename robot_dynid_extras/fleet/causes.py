"""Causes of changes of a characteristic, in words."""

from __future__ import annotations

from robot_dynid.friction.law import DRY, OFFSET, VISCOUS
from robot_dynid_extras.fleet.characteristics import (
    FRICTION,
    GEAR,
    GEAR_STIFFNESS,
    LINK,
    LOAD,
    OTHER,
    ROTOR,
)

#: by kind: what a rise may come from, and what a fall
CAUSES = {
    FRICTION: ('wear, lack of lubrication, or colder than usual',
               'run in, new grease, or warmer than usual'),
    VISCOUS: ('colder than usual, or another, stiffer or too much grease',
              'warmer than usual, thinner or lost grease'),
    DRY: ('wear, worn seals or bearings, lack of lubrication, more preload',
          'run in, new grease, less preload of the gear'),
    OFFSET: ('zero of the torque or current sensor', 'zero of the torque or current sensor'),
    LOAD: ('payload or tool left on', 'tool or payload taken off'),
    LINK: ('load or cables on the arm, another part, or gain of a drive',
           'part taken off, another part, or gain of a drive'),
    ROTOR: ('another drive, or gain of the drive', 'another drive, or gain of the drive'),
    GEAR: ('another gear, or its encoders', 'another gear, or its encoders'),
    GEAR_STIFFNESS: ('another gear, more preload', 'worn or cracked gear, loose coupling'),
    OTHER: ('unknown', 'unknown'),
}


def cause(kind: str, size: float) -> str:
    """Return the causes that a change by ``size`` of a ``kind`` of characteristic may have."""
    rise, fall = CAUSES[kind]
    return rise if size > 0.0 else fall
