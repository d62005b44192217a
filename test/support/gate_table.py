"""Table of what the examination of recordings makes of every fault, on arms of the strange plant.

One line per arm, motion, version of the plant (links as described, or off) and row; the folders of
example-robot-data and pybullet_data on PYTHONPATH, and a folder ../shared/data for --healthy.

    python test/support/gate_table.py --arms ur10,tx40 --motions random,pick --rows offset,clock
    python test/support/gate_table.py --healthy

The verdicts: "named right" (the kind is one of KINDS_OF, the joints are those concerned), "named
right and more" (there are warnings about something else beside it), "wrong remedy" (what it says
does not lead to the recording without the fault), "wrong cause", "false" (there is nothing wrong),
"broken" (an exception), "silent", "silent, taken up" (identification takes the fault up, so
nothing need be said) and "silent, nobody could tell". A finding is right, too, where one of the
alternatives of its remedy leads to the recording without the fault. Who could tell is computed
from the plant, see gate_oracle.py: the column "told" has standard deviations in torque / error of
velocities in %.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gate_oracle import TORQUE, Told, can_tell, told
from gate_remedy import CELLS, case_of_row, lines_of, obey, puts_right, remedies
from gate_rows import ROWS, Case, Row, Take, arm_names, cached
from healthy_recordings import drawn, healthy_lines, measured, simulated
from strange_plant import TRAINING

from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.plausibility.gate import examine, verdict
from robot_dynid.signals.plausible import drop_implausible

#: kinds of findings that name the cause of a fault, by the `cause` of a row
KINDS_OF: dict[str, tuple[str, ...]] = {
    'nothing': (),
    'mounting': ('mounting', 'gravity'),
    'position': ('position_unit', 'position_scale'),
    'position_sign': ('position_sign', 'position_unit'),
    'offset': ('position_offset',),
    'order': ('joint_order',),
    'effort_order': ('joint_order', 'effort_order'),
    'description': ('description', 'links', 'inertials', 'robot', 'size'),
    'effort_sign': ('effort_sign',),
    'effort': ('effort_scale',),
    'clock': ('clock', 'time_unit'),
    'gravity': ('gravity',),
    'tool': ('tool', 'payload', 'missing_tool'),
    'spring': ('counterbalance', 'spring'),
    'wrap': ('wrap', 'position_wrap', 'turns'),
    'late_velocity': ('velocity', 'lag', 'late', 'delay'),
    'late_effort': ('lag', 'late', 'delay', 'effort_lag'),
}
#: kinds that name it as well where no torque tells more than the motion does
OR_KINDS = {'position': ('velocity',), 'position_sign': ('velocity',)}
ARMS = 'ur10,jaco,gen3,panda,tx40,talos'
RIGHT, MORE, WRONG, FALSE = 'named right', 'named right and more', 'wrong cause', 'false'
BAD_REMEDY, BROKEN = 'wrong remedy', 'broken'
SILENT, TAKEN_UP, NOBODY = 'silent', 'silent, taken up', 'silent, nobody could tell'
VERDICTS = (RIGHT, MORE, BAD_REMEDY, WRONG, FALSE, BROKEN, SILENT, TAKEN_UP, NOBODY)


@dataclass(frozen=True, eq=False)
class Cell:
    """What was made of one row of one take."""

    take: Take
    row: str
    case: Case
    told: Told
    findings: tuple[Finding, ...]
    verdict: str

    @property
    def severity_fits(self) -> bool:
        """Whether what is named is refused or warned of as expected."""
        return self.verdict not in (RIGHT, MORE) or bool(self.case.error) or not self.findings \
            or any(f.severity in ROWS[self.row].severities for f in self.findings)


def all_findings(row: Row, case: Case) -> tuple[Finding, ...]:
    """Return what is found in the recording of a case, and said of it beside that."""
    if case.error:
        return (Finding('description', '', (), Severity.REFUSE, case.error, ''),)
    log = case.sample.log
    findings = list(verdict(case.robot, [examine(case.robot, log)])[0])
    about = [text for text in case.robot.warnings if text.startswith('link ')]
    if about and row.cause == 'description':
        findings.append(Finding('description', '', (), Severity.WARN, '; '.join(about), ''))
    if row.cause == 'wrap':
        findings += unwrapped(case)
    return tuple(findings)


def unwrapped(case: Case) -> Iterator[Finding]:
    """Yield that positions are unrolled before they are used, where that is so, and said."""
    assert case.right
    log, notes = drop_implausible(case.robot, case.sample.log)
    away = np.diff(log.position - case.right[1].position, axis=0)
    if np.abs(away).max() < 1e-6 and notes:
        yield Finding('wrap', '', case.joints, Severity.WARN, '; '.join(notes), '')


def is_right(row: Row, case: Case, finding: Finding, by_torque: bool) -> bool:
    """Return whether a finding names the cause."""
    if True in outcomes(case, finding):
        return True  # one of its alternatives is the cause
    kinds = KINDS_OF[row.cause] + (() if by_torque else OR_KINDS.get(row.cause, ()))
    if finding.kind not in kinds:
        return False
    if case.joints:
        return set(finding.joints) == set(case.joints)
    return not finding.joints or row.cause in ('description', 'mounting', 'gravity') \
        or 2 * len(finding.joints) >= case.robot.n


def outcomes(case: Case, finding: Finding) -> list[bool | None]:
    """Return whether the alternatives of a remedy lead to the recording without the fault.

    None where that cannot be tried. An alternative may be about another joint, which the evidence
    names.
    """
    others = [joint for joint in case.robot.joints if re.search(
        rf'\bor of (?:\S+, )*{joint}\b', finding.looks_like)]
    return [None if fix is None or case.right is None else
            puts_right(fix(case.robot, case.sample.log), case.right)
            for joints in (finding.joints, *((joint,) for joint in others))
            for fix in remedies(case.robot, replace(finding, joints=joints))]


def misleads(row: Row, case: Case, finding: Finding) -> bool:
    """Return whether a finding names the cause and all its remedy says leads elsewhere."""
    return finding.kind in KINDS_OF[row.cause] and not any(
        one is not False for one in outcomes(case, finding))


def judged(row: Row, case: Case, findings: Sequence[Finding], evidence: Told) -> str:
    """Return the verdict about what was found."""
    if not findings:
        if row.cause == 'nothing':
            return RIGHT
        if row.taken_up:
            return TAKEN_UP
        return SILENT if can_tell(row, evidence) else NOBODY
    if row.cause == 'nothing':
        return FALSE
    right = [is_right(row, case, one, evidence.torque > TORQUE) for one in findings]
    if all(right):
        return BAD_REMEDY if any(misleads(row, case, one) for one in findings) else RIGHT
    refused = [one.severity is Severity.REFUSE for one in findings]
    wrong = not any(right) or any(no and not yes for yes, no in zip(right, refused, strict=True))
    return WRONG if wrong else MORE


def run_row(
    take: Take, name: str, most: int | None = None, joint: str = ''
) -> Iterator[Cell]:
    """Make the cases of a row, none where the arm cannot have the fault, and examine them.

    At most ``most``, drawn, of rows with a case for each joint, or that of ``joint``.
    """
    row = ROWS[name]
    cases = [(number, case) for number, case in enumerate(row.make(take, take.draw(name)))
             if joint in ('', *case.joints)]
    take.draw(f'{name}: joints').shuffle(cases)
    for number, case in sorted(cases[:most], key=lambda one: one[0]):
        blind = row.by == 'always' or row.cause == 'nothing' or case.error
        evidence = Told(np.inf, 0.0) if blind else cached(
            f'told {take!r} {name} {number}', lambda case=case: told(take, row, case))
        try:
            findings = all_findings(row, case)
        except Exception as error:  # the table goes on, and shows it
            findings = (Finding('clock', '', (), Severity.REFUSE, repr(error), ''),)
            yield Cell(take, name, case, evidence, findings, BROKEN)
        else:
            yield Cell(take, name, case, evidence, findings,
                       judged(row, case, findings, evidence))


def expected(cell: Cell) -> str:
    """Return what should be found."""
    row = ROWS[cell.row]
    if row.cause == 'nothing':
        return '-'
    kinds = '/'.join(KINDS_OF[row.cause][:2])
    severity = '/'.join(one.value for one in row.severities)
    return f'{severity} {kinds} {",".join(short(cell.case.joints))}'.strip()


def short(joints: Sequence[str]) -> list[str]:
    """Return names of joints, long ones by their end."""
    return [joint if len(joint) < 12 else f'..{joint[-9:]}' for joint in joints]


def line_of(cell: Cell, sentences: bool) -> str:
    """Return the line of a cell, with the sentences where these are asked for."""
    found = ' + '.join(
        f'{f.severity.value} {f.kind} '
        f'{",".join(short(f.joints)) if len(f.joints) < 4 else f"{len(f.joints)} joints"}'.strip()
        for f in cell.findings) or '-'
    evidence = '' if np.isinf(cell.told.torque) else \
        f'{min(cell.told.torque, 999.0):.0f}/{min(100.0 * cell.told.motion, 999.0):.0f}'
    late = '' if cell.severity_fits else ' (severity)'
    text = (f'{cell.take.name:7} {cell.take.motion:8} {cell.take.version:5} {cell.row:33} '
            f'{evidence:>8} {expected(cell):48} {found:60} {cell.verdict}{late}')
    for f in cell.findings if sentences else ():
        text += f'\n      {f.sentence}'
    if sentences and cell.case.note:
        text += f'\n      ({cell.case.note})'
    return text


def write_line(text: str = '') -> None:
    """Print a line at once."""
    sys.stdout.write(f'{text}\n')
    sys.stdout.flush()


def run_table(
    takes: Sequence[Take], rows: Sequence[str], most: int | None, sentences: bool
) -> list[Cell]:
    """Run and print all cells, and the counts per row."""
    cells, started = [], time.perf_counter()
    write_line(f'{"arm":7} {"motion":8} {"links":5} {"row":33} {"told":>8} {"expected":48} '
               f'{"found":60} verdict')
    for take in takes:
        for row in rows:
            for cell in run_row(take, row, most):
                cells.append(cell)
                write_line(line_of(cell, sentences))
    write_line()
    for line in count_lines(cells):
        write_line(line)
    write_line(f'{len(cells)} cells in {time.perf_counter() - started:.0f} s')
    return cells


def run_obey(takes: Sequence[Take], rows: Sequence[str]) -> None:
    """Print what obeying the remedies leads to, in joint 2 where a fault is of one joint."""
    for take in takes:
        for name in rows:
            case = case_of_row(take, name)
            findings = all_findings(ROWS[name], case) if case else ()
            if case and not findings:
                write_line(f'{take.name} {take.motion} {take.version} | {name} | silent')
            for obeyed in obey(take, name, findings):
                for line in lines_of(take, name, obeyed):
                    write_line(line)


def count_lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the counts per row, and of all."""
    heads = ('right', 'and more', 'remedy', 'wrong', 'false', 'broken', 'silent', 'taken up',
             'nobody', 'severity')
    yield f'{"row":33}' + ''.join(f'{head:>10}' for head in heads)
    for row in (*dict.fromkeys(cell.row for cell in cells), 'all'):
        some = [cell for cell in cells if row in (cell.row, 'all')]
        counts = Counter(cell.verdict for cell in some)
        other = sum(not cell.severity_fits for cell in some)
        yield f'{row:33}' + ''.join(f'{one or ".":>10}' for one in (
            *(counts[one] for one in VERDICTS), other))


def chosen(texts: str, names: Sequence[str]) -> list[str]:
    """Return the names that hold one of the texts, all for 'all'."""
    if texts == 'all':
        return list(names)
    return [name for name in names if any(text in name for text in texts.split(','))]


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--arms', default=ARMS, help=f'all, or {",".join(arm_names())}')
    parser.add_argument('--motions', default='random,pick', help=f'all, or {",".join(TRAINING)}')
    parser.add_argument('--rows', default='all', help='texts that the names of the rows hold, '
                        'separated by commas: ' + '; '.join(ROWS).replace('%', '%%'))
    parser.add_argument('--links', default='exact,off', help='exact, off: as described, or not')
    parser.add_argument('--seeds', default='1', help='of plants and faults, such as 1,2,3')
    parser.add_argument('--healthy', action='store_true',
                        help='healthy recordings instead of the table')
    parser.add_argument('--obey', action='store_true', help='instead of the table: obey what is '
                        'said, identify again and compare on a motion held out')
    parser.add_argument('--robots', type=int, default=50, help='random ones for --healthy')
    parser.add_argument('--joints', type=int, help='of rows of one joint, drawn; default: each')
    parser.add_argument('--sentences', action='store_true', help='print what is said, whole')
    given = parser.parse_args()
    warnings.simplefilter('ignore')
    arms = arm_names() if given.arms == 'all' else given.arms.split(',')
    motions = tuple(TRAINING) if given.motions == 'all' else given.motions.split(',')
    seeds = [int(seed) for seed in given.seeds.split(',')]
    if given.healthy:
        for line in healthy_lines((('measured', measured()), ('random robots', drawn(
                given.robots)), ('strange plant', simulated(seeds)))):
            write_line(line)
        return
    takes = [Take(arm, motion, links == 'exact', seed) for arm in arms for motion in motions
             for links in given.links.split(',') for seed in seeds]
    if given.obey:
        run_obey(takes, chosen(given.rows, tuple(ROWS)) if given.rows != 'all' else CELLS)
        return
    run_table(takes, chosen(given.rows, tuple(ROWS)), given.joints, given.sentences)


if __name__ == '__main__':
    main()
