"""The picture of the README: `python docs/picture.py` draws it from the figures of comparison.md.

These figures are those that `robot-dynid validate` prints on the held-out recordings of the UR10e.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
PAGE, PICTURE = DOCS / 'comparison.md', DOCS / 'ur10e.svg'
#: models from the simplest to the chosen one, and their colours, of the same order as `errors`
MODELS = (('identified links, Coulomb friction', '#b8bec8'),
          ('URDF links, identified friction and ripple', '#8ab4e8'),
          ('identified links, friction and ripple', '#1f5fb4'))
WIDTH, LEFT, TOP = 760, 150, 84  # px: of the picture, of the names, of title and legend
BAR, GAP = 11, 13  # px: height of a bar, space between joints
SCALE = 22.0  # px for one per cent


def errors(text: str) -> dict[str, tuple[float, ...]]:
    """Return the relative errors [%] of every joint by the models."""
    rows = re.findall(r'^\| (\w+_joint) \| [\d.]+ \| ([\d.]+) \| ([\d.]+) \|', text, re.M)
    (coulomb,) = re.findall(r'`friction: coulomb` as well, they are ([\d., ]+) %', text)
    simple = coulomb.split(', ')
    return {name: (float(simple[j]), float(baseline), float(identified))
            for j, (name, identified, baseline) in enumerate(rows)}


def drawn(values: dict[str, tuple[float, ...]]) -> str:
    """Return the picture as SVG."""
    step = len(MODELS) * BAR + GAP
    height = TOP + len(values) * step + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff"/>',
        '<text x="16" y="24" font-size="15" font-weight="bold">UR10e: error of the predicted '
        'joint effort on held-out recordings, % of the effort</text>']
    for i, (name, colour) in enumerate(MODELS):
        y = 34 + 14 * i
        lines += [f'<rect x="16" y="{y}" width="10" height="10" fill="{colour}"/>',
                  f'<text x="32" y="{y + 9}">{name}</text>']
    for j, (joint, shares) in enumerate(values.items()):
        y = TOP + j * step
        lines.append(f'<text x="{LEFT - 8}" y="{y + 1.5 * BAR + 4}" text-anchor="end">'
                     f'{joint.removesuffix("_joint").replace("_", " ")}</text>')
        for i, share in enumerate(shares):
            lines += [f'<rect x="{LEFT}" y="{y + i * BAR}" width="{SCALE * share:.1f}" '
                      f'height="{BAR - 1}" fill="{MODELS[i][1]}"/>',
                      f'<text x="{LEFT + SCALE * share + 4:.1f}" y="{y + i * BAR + 9}" '
                      f'font-size="10">{share:.1f}</text>']
    return '\n'.join([*lines, '</svg>', ''])


if __name__ == '__main__':
    PICTURE.write_text(drawn(errors(PAGE.read_text('utf-8'))), 'utf-8')
