"""A small arm as a URDF, from parts that tests replace."""

from __future__ import annotations

INERTIAL = ('<inertial><origin xyz="0.1 0 0"/><mass value="2"/><inertia ixx="0.02" ixy="0" '
            'ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>')
FINGER = INERTIAL.replace('"2"', '"0.1"').replace('0.02', '0.0001')
AXIS = '<axis xyz="0 1 0"/>'
LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="50"/>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = 'revolute',
          inside: str = AXIS + LIMIT, origin: str = '0.3 0 0') -> str:
    return (f'<joint name="{name}" type="{kind}"><origin xyz="{origin}"/><parent '
            f'link="{parent}"/><child link="{child}"/>{inside}</joint>')


def robot(*more: str) -> str:
    """Return an arm of three joints with a plate at the base and a camera at the end."""
    return ('<?xml version="1.0"?>\n<robot name="arm">' + link('base', '') + link('column')
            + link('upper') + link('fore') + joint('turn', 'base', 'column').replace(
                '0 1 0', '0 0 1') + joint('shoulder', 'column', 'upper')
            + joint('elbow', 'upper', 'fore') + joint('mount', 'fore', 'camera', 'fixed', '')
            + link('camera') + joint('bolt', 'base', 'plate', 'fixed', '') + link('plate')
            + ''.join(more) + '</robot>')
