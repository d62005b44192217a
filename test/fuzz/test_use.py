"""What follows the loading of damaged files, and of files with hostile names.

Robots, models, recordings and plans that can still be read are identified, validated, evaluated,
reported and exported, see uses.py and hostile_names.py. ROBOT_DYNID_FUZZ='SEED COUNT' chooses the
inputs of the long run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from bags import storage_file, write_bag
from fuzzing import Reader, assert_no_faults, fuzz, mutated
from hostile_names import name_mutated, use_names
from identified_models import nominal_model
from recording_inputs import mcap_mutated
from recordings import recording
from text_inputs import NAMES, SCREWS, gently, model_texts, trajectories
from uses import use_model, use_plan, use_recording, use_robot

from robot_dynid import Recipe, identify
from robot_dynid.io.csv import write_csv
from robot_dynid.io.trajectory_file import save_trajectory
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog, take

ROOT = Path(__file__).resolve().parents[2] / 'robot_dynid'
#: seed and number of inputs of the long run
SEED, COUNT = map(int, os.environ.get('ROBOT_DYNID_FUZZ', '1 500').split())
#: pieces of the short run, and the inputs of each
PIECES = {'robot': (4, 2), 'URDF': (4, 1), 'model': (5, 1), 'recording': (4, 1), 'bag': (3, 1),
          'plan': (2, 4), 'names': (5, 1)}
#: a recording of the arm of the recordings [s], and its settings
SECONDS = 4.0
RECIPE = '{friction: coulomb, cutoff: 5.0, effort_lag: 0.0, ripple: none, adaptation: none}\n'
SMALL = ('planar_3r', 'elastic_2r')


def csv_mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a table with numbers, rows or whole columns changed, or with any damage."""
    kind, lines = int(rng.integers(8)), data.split(b'\n')
    if kind > 5 or len(lines) < 4 or b',' not in lines[1]:
        return mutated(rng, data)
    k = int(rng.integers(1, len(lines) - 1))
    stop = min(k + int(rng.integers(1, 50)), len(lines))
    if kind < 3:  # a number, a column of another number, one in another unit
        rows = slice(k, k + 1) if kind == 0 else slice(1, len(lines))
        lines[rows] = changed(rng, lines[rows], in_unit=kind == 2)
    elif kind == 3:
        del lines[k:stop]
    elif kind == 4:
        lines[k:k] = lines[k:stop]
    else:
        lines[k:stop] = lines[k:stop][::-1]
    return b'\n'.join(lines)


def changed(rng: np.random.Generator, lines: list[bytes], in_unit: bool) -> list[bytes]:
    """Return lines with another number in a column, or one that is a multiple."""
    column = int(rng.integers(lines[0].count(b',') + 1))
    value = str(rng.choice(['nan', '', 'inf', '1e308', '-1e308', '1e-308', '1e100', '1e17', '0',
                            '-1', '99999', 'x', '1e6'])).encode()
    factor = float(rng.choice([0.0, -1.0, 1e3, 1e-3, 57.3, 1e30, 1e150, 1e300, 1e-300]))
    rows = [line.split(b',') for line in lines]
    for cells in rows:
        if column < len(cells):
            with suppress(ValueError):
                cells[column] = repr(float(cells[column]) * factor).encode() if in_unit else value
    return [b','.join(cells) for cells in rows]


class Files:
    """Readers of every kind, and the files beside their inputs, made once in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[str, Reader] = {}

    def reader(self, kind: str) -> Reader:
        """Return the reader of a kind."""
        if kind not in self._readers:
            self._readers[kind] = getattr(self, kind.lower())()
        return self._readers[kind]

    def log(self, name: str, seed: int, every: int = 1) -> RawLog:
        """Return a recording of an arm."""
        return take(recording(load_robot(name), seed, SECONDS), slice(None, None, every))

    def robot(self) -> Reader:
        """Return that of robot YAMLs."""
        seeds = [(ROOT / 'config' / 'robots' / f'{name}.yaml').read_bytes() for name in SMALL]
        return Reader('robot', '.yaml', (SCREWS, SCREWS, *seeds), use_robot, gently)

    def urdf(self) -> Reader:
        """Return that of URDFs."""
        seeds = [(ROOT / 'urdf' / f'{name}.urdf').read_bytes() for name in (*SMALL, 'puma560')]
        return Reader('URDF', '.urdf', seeds, use_robot, gently)

    def model(self) -> Reader:
        """Return that of models, with a recording to validate them on."""
        recordings = {}
        for name in SMALL:
            recordings[load_robot(name).joints] = path = self._folder / f'{name}.csv'
            write_csv(path, self.log(name, 1))
        return Reader('model', '.yaml', model_texts(unprotected=True),
                      partial(use_model, recordings=recordings), gently)

    def _with_recording(self) -> Callable[[Path], None]:
        model, recipe = self._folder / 'nominal.yaml', self._folder / 'recipe.yaml'
        nominal_model('planar_3r').save(model)
        recipe.write_text(RECIPE)
        return partial(use_recording, robot=ROOT / 'config' / 'robots' / 'planar_3r.yaml',
                       model=model, recipe=recipe)

    def recording(self) -> Reader:
        """Return that of tables."""
        write_csv(self._folder / 'run.csv', self.log('planar_3r', 0, 2))
        seed = (self._folder / 'run.csv').read_bytes()
        return Reader('recording', '.csv', (seed,), self._with_recording(), csv_mutated)

    def bag(self) -> Reader:
        """Return that of bags."""
        write_bag(self._folder / 'bag', self.log('planar_3r', 0, 2))
        seed = storage_file(self._folder / 'bag').read_bytes()
        return Reader('bag', '.mcap', (seed,), self._with_recording(), mcap_mutated)

    def plan(self) -> Reader:
        """Return that of trajectories, with a model that expects errors on them."""
        robot, seeds, path = load_robot('planar_3r'), [], self._folder / 'plan.yaml'
        for trajectory in trajectories(robot.joints):
            save_trajectory(trajectory, path)
            seeds.append(path.read_bytes())
        recipe = Recipe(friction='coulomb', cutoff=5.0, effort_lag=0.0, ripple='none',
                        adaptation='none')
        model = self._folder / 'fitted.yaml'
        identify(robot, [self.log('planar_3r', 0, 2)], None, recipe).model.save(model)
        return Reader('plan', '.yaml', seeds, partial(use_plan, model=model, robot=robot), gently)

    def names(self) -> Reader:
        """Return that of hostile names."""
        return Reader('names', '.txt', [name.encode() for name in NAMES], use_names, name_mutated)


@pytest.fixture(scope='module')
def files() -> Iterator[Files]:
    """Return the readers, and remove their files in the end."""
    with TemporaryDirectory() as folder:
        yield Files(Path(folder))


def check(reader: Reader, count: int, seed: int) -> None:
    outcome = fuzz(reader, count, seed)
    sys.stdout.write(f'{outcome}\n')
    assert_no_faults(outcome)


@pytest.mark.parametrize(('kind', 'piece'), [
    (kind, piece) for kind, (pieces, _) in PIECES.items() for piece in range(pieces)])
def test_what_is_read_is_used_or_refused(
    kind: str, piece: int, files: Files
) -> None:
    check(files.reader(kind), PIECES[kind][1], seed=1000 + piece)


@pytest.mark.soak
@pytest.mark.parametrize('kind', PIECES)
def test_very_much_that_is_read_is_used_or_refused(kind: str, files: Files) -> None:
    check(files.reader(kind), COUNT, SEED)
