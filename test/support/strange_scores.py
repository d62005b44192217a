"""Tables of what identification makes of the strange plant.

Of arms and motions that the command line names, with the folders of example-robot-data and
pybullet_data on PYTHONPATH: one row per joint, and the figures of all joints by kind of motion.

    python test/support/strange_scores.py --arms ur5,panda --motions repeated,pick --seeds 1
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from strange_arms import available
from strange_cases import Case, covered_parameters, run_case
from strange_motions import TRAINING

from robot_dynid.errors import DynIdError
from robot_dynid.types import FloatArray

#: "good for feed-forward" is wrong above this error in motion
FEED_FORWARD_ERROR = 0.2
HEADER = ('joint', 'product %', 'plain %', 'nominal %', 'over plain', 'got', 'promised', 'ratio',
          'feed-forward', 'static', 'true', 'weight', 'covered %', 'law')
WIDTHS = (20, 9, 8, 9, 10, 9, 9, 6, 12, 9, 9, 9, 9, 0)


def _row(cells: Sequence[object]) -> str:
    texts = [f'{one:.3g}' if isinstance(one, float) else str(one) for one in cells]
    return '  ' + ' '.join(
        text[:width or None].ljust(width) if i in (0, len(texts) - 1) else text.rjust(width)
        for i, (text, width) in enumerate(zip(texts, WIDTHS, strict=True)))


def case_lines(case: Case) -> Iterator[str]:
    """Yield what a case shows, one row per joint."""
    named, right, there = case.waves
    yield (f'{case.arm} {case.motion} seed {case.seed} {case.rate:g} Hz: {case.seconds:.1f} s, '
           f'{named} waves named, {right} of the {there} there; {case.contacts} false contacts in '
           f'{case.watched:.0f} s; mass matrix definite in {100 * case.definite:.0f} %; refused: '
           f'{", ".join(case.refused) or "none"}')
    yield _row(HEADER)
    for j, joint in enumerate(case.joints):
        yield _row((
            joint, 100.0 * case.product[j], 100.0 * case.plain[j], 100.0 * case.nominal[j],
            case.product[j] / case.plain[j], case.got[j], case.promised[j],
            case.got[j] / case.promised[j], case.feed_forward[j], case.static[j],
            case.static_error[j], case.weight_error[j], 100.0 * case.covered[j], case.laws[j]))


@dataclass(frozen=True, eq=False)
class Summary:
    """The figures of all joints of some cases together.

    ``over_plain``, ``over_nominal``, ``over_better`` (of these two alternatives) and ``promise``
    (got over promised) are ratios (joints,),
    ``covered`` shares (joints,); ``good`` joints are "good for feed-forward", of which ``wrong``
    are not. ``static`` and ``weight`` are the shares of joints whose static effort, and weight
    alone, is off by more than is said; ``waves`` are named, right and there.
    """

    cases: int
    over_plain: FloatArray
    over_nominal: FloatArray
    over_better: FloatArray
    promise: FloatArray
    good: int
    wrong: int
    static: float
    weight: float
    covered: FloatArray
    waves: tuple[int, int, int]
    contacts: int
    watched: float
    refused: int
    indefinite: int

    @classmethod
    def of(cls, cases: Sequence[Case]) -> Summary:
        """Sum up some cases."""
        def each(of: Callable[[Case], Sequence[float] | FloatArray]) -> FloatArray:
            return np.concatenate([np.asarray(of(case), dtype=float) for case in cases])

        good = each(lambda c: [word == 'good' for word in c.feed_forward]) > 0.5
        static, weight = (each(of) for of in (
            lambda c: c.static_error / c.static, lambda c: c.weight_error / c.static))
        judged = np.isfinite(static)
        named, right, there = np.sum([case.waves for case in cases], axis=0).tolist()
        return cls(
            len(cases), each(lambda c: c.product / c.plain), each(lambda c: c.product / c.nominal),
            each(lambda c: c.product / np.minimum(c.plain, c.nominal)),
            each(lambda c: c.got / c.promised), int(good.sum()),
            int((good & (each(lambda c: c.moving) > FEED_FORWARD_ERROR)).sum()),
            float(np.mean(static[judged] > 1.0)), float(np.mean(weight[judged] > 1.0)),
            each(lambda c: c.covered), (named, right, there),
            sum(case.contacts for case in cases), sum(case.watched for case in cases),
            sum(len(case.refused) for case in cases), sum(case.definite < 1.0 for case in cases))

    def lines(self, title: str) -> Iterator[str]:
        """Yield the tables."""
        yield f'{title}: {self.cases} recordings, {len(self.promise)} joints'
        yield f'  {"":36}{"median":>11}{"90 %":>11}{"largest":>11}'
        for name, values in (('error over plain least squares', self.over_plain),
                             ('error over nominal links + friction', self.over_nominal),
                             ('error over the better of these', self.over_better),
                             ('error got over promised', self.promise)):
            figures = (*np.percentile(values, (50, 90)), values.max())
            yield f'  {name:36}' + ''.join(f'{one:11.3g}' for one in figures)
        named, right, there = self.waves
        for name, figure in (
                ('above 1.1 of plain, of the better',
                 f'{np.count_nonzero(self.over_plain > 1.1)}, '
                 f'{np.count_nonzero(self.over_better > 1.1)} of {len(self.over_plain)}'),
                ('good for feed-forward, but is not', f'{self.wrong} of {self.good}'),
                ('static effort beyond what is said', f'{100 * self.static:.0f} %'),
                ('weight beyond what is said', f'{100 * self.weight:.0f} %'),
                ('95 % intervals of effort hold in', f'{100 * self.covered.mean():.0f} %, '
                 f'{100 * self.covered.min():.0f} to {100 * self.covered.max():.0f} %'),
                ('ripple waves', f'{named} named, {right} right, {there} there'),
                ('false contacts', f'{self.contacts} in {self.watched:.0f} s'),
                ('joints refused', self.refused),
                ('mass matrix not definite', f'{self.indefinite} of {self.cases}')):
            yield f'  {name:36}{figure}'


def write_line(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f'{text}\n')
    sys.stdout.flush()


def run_cases(
    arms: Sequence[str], motions: Sequence[str], seeds: Sequence[int]
) -> tuple[list[Case], list[str]]:
    """Run and print all cases, and the tables by kind of motion; return them, and what failed."""
    cases, failures = [], []
    for motion in motions:
        for name in arms:
            for seed in seeds:
                try:
                    cases.append(run_case(name, motion, seed))
                except DynIdError as error:
                    failures.append(f'{name} {motion} seed {seed}: {error}')
                    write_line(failures[-1])
                    continue
                for line in case_lines(cases[-1]):
                    write_line(line)
    for title, chosen in (*((motion, [motion]) for motion in motions), ('all motions', motions)):
        some = [case for case in cases if case.motion in chosen]
        for line in Summary.of(some).lines(title) if some else ():
            write_line(line)
    return cases, failures


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--arms', default='ur10e,scara', help=f'all, or {",".join(available())}')
    parser.add_argument('--motions', default='repeated,pick', help=f'all, or {",".join(TRAINING)}')
    parser.add_argument('--seeds', default='1', help='of the plants, such as 1,2,3')
    parser.add_argument('--repetitions', type=int, default=0,
                        help='of each case, for the intervals of parameters alone')
    given = parser.parse_args()
    warnings.simplefilter('ignore')
    arms = available() if given.arms == 'all' else given.arms.split(',')
    motions = tuple(TRAINING) if given.motions == 'all' else given.motions.split(',')
    seeds = [int(seed) for seed in given.seeds.split(',')]
    if not given.repetitions:
        run_cases(arms, motions, seeds)
        return
    for name in arms:
        for motion in motions:
            shares = 100.0 * covered_parameters(name, motion, seeds[0], given.repetitions)
            write_line(f'{name} {motion}: 95 % intervals of {len(shares)} parameters of links and '
                       f'rotors hold in {shares.mean():.0f} % of {given.repetitions}, the least '
                       f'in {shares.min():.0f} %')


if __name__ == '__main__':
    main()
