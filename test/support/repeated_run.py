"""Writes models and a design: ``python repeated_run.py OUT SMALL WIDE``.

``OUT`` is the folder of what is written, ``SMALL`` that of recordings of planar_3r, ``WIDE`` that
of recordings of seven_axis.
"""

from __future__ import annotations

import sys
from pathlib import Path

RECIPE = '{cutoff: 12, friction: coulomb, ramp_width: 0.02, effort_lag: 0}'
#: choices made from the data; many columns; a random search
NAMES = ('chosen.yaml', 'fixed.yaml', 'plan.yaml')


def run(out: Path, small: str, wide: str) -> None:
    """Write the files NAMES to the folder ``out``."""
    from robot_dynid.cli.main import main

    (out / 'recipe.yaml').write_text(RECIPE)
    chosen, fixed, plan = (str(out / name) for name in NAMES)
    for words in (
            ['identify', small, '--robot', 'planar_3r', '--method', 'feasible', '--out', chosen],
            ['identify', wide, '--robot', 'seven_axis', '--recipe', str(out / 'recipe.yaml'),
             '--out', fixed],
            ['design', 'planar_3r', '--duration', '4', '--harmonics', '3', '--iterations', '3',
             '--starts', '2', '--seed', '3', '--out', plan]):
        assert main([*words, '--quiet']) == 0, words


if __name__ == '__main__':
    run(Path(sys.argv[1]), *sys.argv[2:])
