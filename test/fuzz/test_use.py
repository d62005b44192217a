"""What follows the loading of damaged files, and of files with hostile names.

Robots, models, recordings and plans that can still be read are identified, validated, evaluated,
reported and exported, see uses.py and hostile_names.py. ROBOT_DYNID_FUZZ='SEED COUNT' chooses the
inputs of the long run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from bags import storage_file, write_bag
from fuzzing import Reader, assert_no_faults, fuzz, mutated
from hostile_names import NAMES, name_mutated, use_names
from nominal import nominal_model
from recording_inputs import mcap_mutated
from synthetic_recordings import recording
from text_inputs import SCREWS, gently, model_texts, trajectories
from uses import use_model, use_plan, use_recording, use_robot

from robot_dynid.io.csv import write_csv
from robot_dynid.io.trajectory_file import save_trajectory
from robot_dynid.robot.robot_file import load_robot

ROOT = Path(__file__).resolve().parents[2] / 'robot_dynid'
#: seed and number of inputs of the long run
SEED, COUNT = map(int, os.environ.get('ROBOT_DYNID_FUZZ', '1 500').split())
#: pieces of the short run, and the inputs of each
PIECES = {'robot': (3, 8), 'URDF': (3, 8), 'model': (4, 8), 'recording': (4, 2), 'bag': (3, 2),
          'plan': (3, 8), 'names': (4, 3)}
#: a recording of the arm of the recordings [s], and its settings
SECONDS = 6.0
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


@pytest.fixture(scope='module')
def inputs() -> Iterator[dict[str, Reader]]:
    """Return the readers by kind of file, with what they need beside their inputs."""
    with TemporaryDirectory() as place:
        yield {reader.name: reader for reader in _readers(Path(place))}


def _readers(place: Path) -> Iterator[Reader]:
    robots = {name: load_robot(name) for name in SMALL}
    logs = {name: place / f'{name}.csv' for name in SMALL}
    for name, robot in robots.items():
        write_csv(logs[name], recording(robot, 1, SECONDS))
    by_joints = {robot.joints: logs[name] for name, robot in robots.items()}
    arm = robots['planar_3r']
    log = recording(arm, 0, SECONDS)
    log = replace(log, time=log.time[::2], position=log.position[::2], velocity=log.velocity[::2],
                  effort=log.effort[::2])
    write_csv(place / 'run.csv', log)
    model, recipe = place / 'model.yaml', place / 'recipe.yaml'
    nominal_model('planar_3r').save(model)
    elastic, plan_model = robots['elastic_2r'], place / 'plan_model.yaml'
    nominal_model('elastic_2r').save(plan_model)
    recipe.write_text(RECIPE)
    with_log = partial(use_recording, robot=ROOT / 'config' / 'robots' / 'planar_3r.yaml',
                       model=model, recipe=recipe)
    plans = []
    for trajectory in trajectories():
        save_trajectory(trajectory, place / 'plan.yaml')
        text = (place / 'plan.yaml').read_bytes()
        plans.append(_of_joints(text, elastic.joints))
    yield Reader('robot', '.yaml', (SCREWS, SCREWS, *(
        (ROOT / 'config' / 'robots' / f'{name}.yaml').read_bytes() for name in SMALL)),
        use_robot, gently)
    yield Reader('URDF', '.urdf', tuple(
        (ROOT / 'urdf' / f'{name}.urdf').read_bytes() for name in (*SMALL, 'puma560')),
        use_robot, gently)
    yield Reader('model', '.yaml', model_texts(unprotected=True),
                 partial(use_model, recordings=by_joints), gently)
    yield Reader('recording', '.csv', ((place / 'run.csv').read_bytes(),), with_log, csv_mutated)
    write_bag(place / 'bag', log)
    yield Reader('bag', '.mcap', (storage_file(place / 'bag').read_bytes(),), with_log,
                 mcap_mutated)
    yield Reader('plan', '.yaml', tuple(plans), partial(use_plan, model=plan_model, robot=elastic),
                 gently)
    yield Reader('names', '.txt', tuple(name.encode() for name in NAMES), use_names, name_mutated)


def _of_joints(text: bytes, joints: tuple[str, ...]) -> bytes:
    """Return a plan of the joints of an arm, for one of joints a and b."""
    first, second = (joint.encode() for joint in joints)
    return text.replace(b'[a, b]', b'[%b, %b]' % (first, second)).replace(
        b'moving: a', b'moving: ' + first).replace(b'moving: b', b'moving: ' + second)


def check(reader: Reader, count: int, seed: int) -> None:
    outcome = fuzz(reader, count, seed)
    sys.stdout.write(f'{outcome}\n')
    assert_no_faults(outcome)


@pytest.mark.parametrize(('kind', 'piece'), [
    (kind, piece) for kind, (pieces, _) in PIECES.items() for piece in range(pieces)])
def test_what_is_read_is_used_or_refused(
    kind: str, piece: int, inputs: dict[str, Reader]
) -> None:
    check(inputs[kind], PIECES[kind][1], seed=1000 + piece)


@pytest.mark.soak
@pytest.mark.parametrize('kind', PIECES)
def test_very_much_that_is_read_is_used_or_refused(kind: str, inputs: dict[str, Reader]) -> None:
    check(inputs[kind], COUNT, SEED)
