"""Numbers, names and paths as the report writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

#: what the words of a report mean that it explains nowhere else
TERMS: Mapping[str, str] = {
    'effort': 'torque, force or motor current of a joint, as the driver reports it',
    'baseline': 'URDF inertials with fitted friction',
    'nominal': 'from the URDF',
    'held-out': 'not used for the fit',
    'R²': 'share of the variance of the effort that the model predicts',
    'outliers': 'errors more than 1.5 interquartile ranges outside the quartiles',
    'reversal': 'change of the direction of motion',
    'standard parameter': 'mass, mass times centre of mass, or inertia of one link',
    'base parameter': 'one of the smallest set of combinations that determines all efforts',
    'only in combination': 'determined together with other parameters, not alone',
    'condition number': 'how unevenly the motion shows the parameters; 1 is best',
    'unit columns': 'after scaling every parameter to the same effect on the efforts',
    'prior': 'preference for nominal values where the recordings do not decide',
}


def name(key: str) -> str:
    """Return the key of a setting as words."""
    return key.replace('_', ' ')


def file_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the names of files by their paths, with as many folders as tell them apart."""
    distinct = list(dict.fromkeys(paths))
    for depth in range(1, 8):
        names = {path: '/'.join(PurePath(path).parts[-depth:]) for path in distinct}
        if len(set(names.values())) == len(distinct):
            break
    return names


def without_folders(command: str) -> str:
    """Return a command line without the folders of absolute paths."""
    return re.sub(r'(?<![^\s\'"=])/(?:[^\s/\'"]+/)+', '', command)


def with_file_names(texts: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return texts with every path in ``names`` replaced, each text once."""
    longest = sorted((path for path in names if '/' in path), key=len, reverse=True)
    replaced = []
    for text in texts:
        for path in longest:
            text = text.replace(path, names[path])
        replaced.append(text)
    return tuple(dict.fromkeys(replaced))
