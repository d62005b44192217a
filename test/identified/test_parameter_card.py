"""identified/parameter_card.py: measurements, tables of links, comments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.identified.parameter_card import (
    ParameterRow,
    by_link,
    comment_lines,
    measurement,
)
from robot_dynid.robot.robot_file import load_robot

ROBOT = load_robot('planar_3r')


@pytest.mark.parametrize(('name', 'says'), [
    ('', 'a motion that excites it'), ('m3', 'weigh {2}'), ('mx2', 'balance {1}: mx2'),
    ('Ixy1', 'swing {0} as a pendulum: Ixy1'), ('fv2', 'data sheet of joint_2: fv2'),
    ('fv3', 'data sheet of joint_3: fv3'), ('fv4', 'data sheet of : fv4'),
    ('fv0', 'data sheet of : fv0')])
def test_measurements_determine_what_efforts_do_not_show_alone(name: str, says: str) -> None:
    model: Any = SimpleNamespace(robot=ROBOT)
    origin: Any = SimpleNamespace(separated_by=name)
    assert measurement(model, origin) == says.format(*ROBOT.bodies)


ROWS = (ParameterRow('hand', 'm3', 1.23456789, 'measured', 0.0123, (), None, ''),
        ParameterRow('hand', 'mx3', -0.5, 'only in combination', None,
                     ('mx3 + m4 = 2 +- 0.1', 'b = 1 +- 0.2'), 0.25, 'balance hand: mx3'),
        ParameterRow('arm', 'Izz2', 0.1, 'prior', None, (), 0.75, 'swing arm'),
        ParameterRow('joint_3', 'fv3', 4.0, 'prior', 0.3, (), None, ''))


def test_comments_tell_all_that_is_known_of_the_parameters_of_links() -> None:
    assert comment_lines(ROWS) == [
        'hand m3 1.23457: measured, deviation 0.012',
        'hand mx3 -0.5: only in combination, determined: mx3 + m4 = 2 +- 0.1; b = 1 +- 0.2, '
        'left to the prior 25.0 %, to determine it: balance hand: mx3',
        'arm Izz2 0.1: prior, left to the prior 75.0 %, to determine it: swing arm']


def test_parameters_of_links_are_sorted_by_origin() -> None:
    assert by_link(ROWS, 'prior') == {'hand': (), 'arm': ('Izz2',)}
    assert by_link(ROWS, 'measured') == {'hand': ('m3',), 'arm': ()}
