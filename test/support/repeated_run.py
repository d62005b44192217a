"""Writes models and a design to the working directory: ``python repeated_run.py SMALL WIDE``.

``SMALL`` that of recordings of planar_3r, ``WIDE`` that
of recordings of seven_axis.
"""

from __future__ import annotations

import sys
from pathlib import Path

RECIPE = '{cutoff: 12, friction: coulomb, ramp_width: 0.02, effort_lag: 0}'
#: choices made from the data; many columns; a random search
NAMES = ('chosen.yaml', 'fixed.yaml', 'plan.yaml')


def run(small: str, wide: str) -> None:
    """Write the files NAMES to the working directory."""
    from robot_dynid.cli.main import main

    Path('recipe.yaml').write_text(RECIPE)
    chosen, fixed, plan = NAMES
    for words in (
            ['identify', small, '--robot', 'planar_3r', '--method', 'feasible', '--out', chosen],
            ['identify', wide, '--robot', 'seven_axis', '--recipe', 'recipe.yaml',
             '--out', fixed],
            ['design', 'planar_3r', '--duration', '4', '--harmonics', '3', '--iterations', '3',
             '--starts', '2', '--seed', '3', '--out', plan]):
        assert main([*words, '--quiet']) == 0, words


if __name__ == '__main__':
    run(*sys.argv[1:])
