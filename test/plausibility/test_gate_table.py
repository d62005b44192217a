"""plausibility/gate.py: faults of recordings and descriptions are named, on arms and motions of
the strange plant.

A few rows of the table that `python test/support/gate_table.py --help` describes. What clearly
shows in the plant must be named, with a remedy that leads to the recording without the fault; of
what does not nothing must be said that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pin = pytest.importorskip('pinocchio', reason='optional oracle is not installed: pinocchio')

from gate_rows import ROWS, Take, arm_names  # noqa: E402
from gate_table import (  # noqa: E402
    BAD_REMEDY,
    BROKEN,
    FALSE,
    SILENT,
    WRONG,
    Cell,
    line_of,
    run_row,
)

#: standard deviations in torque from which on a fault must be named; below, it may be
CLEAR = 25.0
TAKES = (Take('ur10e', 'random', False, 2), Take('ur10e', 'pick', False, 2),
         Take('tx40', 'random', False, 2), Take('tx40', 'pick', False, 2))
NAMED = (
    'mounted: wall x', 'mounted: wall y', 'mounted: ceiling', 'mounted: tilted 30 degrees',
    'mounted: tilted 45 degrees', 'position x 2, velocity too', 'position x 2 only',
    'offset 30 degrees', 'offset 90 degrees', 'wrist joints swapped', 'efforts swapped',
    'URDF x 0.6', 'sign of a position, velocity too', 'sign of a position only',
    'sign of an effort', 'an effort x 2', 'an effort / 100', 'all efforts x 1000', 'degrees',
    'clock x 0.8', 'clock x 1.07', 'clock x 2', 'time in ms', 'gravity removed',
    'gravity not removed', 'inertias in g mm^2', 'masses in g')
#: may be passed over, and must not be taken for anything else
TAKEN_UP = ('healthy', 'all efforts x 2', 'tool of 0.25 of the load', 'late efforts',
            'no inertials')
BAD = (WRONG, FALSE, BAD_REMEDY, BROKEN)
#: what clearly shows and is passed over all the same, by joint: the gate counts fewer rows as
#: independent than the oracle, and fits the friction of a coupled motor in each joint by itself
FEW_ROWS, COUPLED = 'offset 30 degrees', 'an effort / 100'
MISSED = {(TAKES[0], FEW_ROWS): ['wrist_1_joint'], (TAKES[1], FEW_ROWS): ['wrist_1_joint'],
          (TAKES[2], COUPLED): ['joint_6'], (TAKES[3], COUPLED): ['joint_6']}


def must_be_named(cell: Cell) -> bool:
    """Return whether a fault shows clearly, in the torque or by the motion."""
    row = ROWS[cell.row]
    return row.by != 'torque' or cell.told.torque > CLEAR


def in_turn(names: Sequence[str]) -> list[Any]:
    """Return each row with one of the takes."""
    takes = [TAKES[i % len(TAKES)] for i in range(len(names))]
    return [pytest.param(take, name, id=f'{take.name}-{take.motion}-{name}')
            for take, name in zip(takes, names, strict=True)]


@pytest.mark.parametrize(('take', 'name'), in_turn(NAMED))
def test_gate_names_faults_that_show(take: Take, name: str) -> None:
    """A joint is drawn where a fault is of one; in the long run, each joint in turn."""
    (cell,) = run_row(take, name, 1)
    assert cell.verdict not in BAD, line_of(cell, True)
    assert cell.verdict != SILENT or not must_be_named(cell), line_of(cell, True)


@pytest.mark.soak
@pytest.mark.parametrize('name', NAMED)
@pytest.mark.parametrize('take', TAKES, ids=lambda take: f'{take.name}-{take.motion}')
def test_gate_names_faults_that_show_in_each_joint(take: Take, name: str) -> None:
    cells = list(run_row(take, name))
    wrong = [line_of(cell, True) for cell in cells if cell.verdict in BAD]
    assert not wrong, '\n'.join(wrong)
    missed = [joint for cell in cells if cell.verdict == SILENT and must_be_named(cell)
              for joint in cell.case.joints or ('all',)]
    assert missed == MISSED.get((take, name), [])


@pytest.mark.parametrize(('take', 'name', 'joint'), [
    (TAKES[0], 'position x 2, velocity too', 'shoulder_pan_joint'),
    (TAKES[2], 'position x 2, velocity too', 'joint_6'),
    (TAKES[0], 'sign of a position, velocity too', 'wrist_3_joint'),
    (Take('gen3', 'random', False, 5), 'sign of an effort', 'joint_1')], ids=lambda one: str(
        getattr(one, 'name', one)))
def test_gate_names_faults_of_joints_that_bear_little(take: Take, name: str, joint: str) -> None:
    """No weight shows them, but their share in the residual, and friction that drives.

    Heavier links, which are no fault, must not hide them either.
    """
    (cell,) = run_row(take, name, joint=joint)
    assert cell.verdict not in (*BAD, SILENT), line_of(cell, True)


@pytest.mark.parametrize(('take', 'name'), in_turn(TAKEN_UP))
def test_gate_names_no_fault_for_what_identification_takes_up(take: Take, name: str) -> None:
    (cell,) = run_row(take, name)
    assert cell.verdict not in BAD, line_of(cell, True)


def test_links_of_another_arm_are_no_fault_of_the_efforts() -> None:
    """Wrists that are lighter than described look like efforts of another unit."""
    if 'ur10' not in arm_names():
        pytest.skip('no other description of this arm is installed: UR10 and UR5')
    for cell in run_row(Take('ur10', 'random', True, 2), 'URDF of a UR5'):
        assert cell.verdict not in BAD, line_of(cell, True)


def test_a_counterbalance_is_no_reason_to_refuse() -> None:
    (cell,) = run_row(TAKES[0], 'counterbalance')
    assert cell.verdict not in BAD, line_of(cell, True)
    assert cell.severity_fits, line_of(cell, True)


@pytest.mark.parametrize(('motion', 'name'), [
    ('random', 'wrapped at pi'), ('pick', 'wrapped at 360'), ('random', 'one wrap')])
def test_wraps_are_told_and_nothing_else(motion: str, name: str) -> None:
    (cell,) = run_row(Take('gen3', motion, False, 2), name)
    assert cell.verdict not in (*BAD, SILENT), line_of(cell, True)
