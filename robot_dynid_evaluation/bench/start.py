"""Times to the first answer: imports, help, mistyped words, and the first call of a model."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from robot_dynid.cli.terminal import Progress
from robot_dynid.cli.verbs import VERBS
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import true_model
from robot_dynid_evaluation.bench.timing import in_turns

#: limits [s] of words on the command line, of an import, and of the first call of a saved model
WORDS, IMPORT, CALL = 0.3, 0.6, 1.0
WITHIN = Target(1.0, faster=False)
COMMAND = 'import sys; from robot_dynid.cli.main import main; sys.exit(main())'
IMPORTING = 'from robot_dynid import identify'
#: arguments of the command, and what comes of them
MISTYPED = {'a mistyped verb': ('idenitfy',), 'a mistyped robot': ('base', 'ur10'),
            'a mistyped robot of identify': (
                'identify', 'a.csv', '--robot', 'ur10', '--out', 'M.yaml')}
FIRST = {'forward': 'forward(zeros, zeros, zeros)', 'inverse': 'inverse(zeros, zeros, zeros)',
         'rollout': 'rollout(zeros, zeros, np.zeros((1, 10, len(zeros))), 1e-3)'}
LOADED = """
import sys
import numpy as np
from robot_dynid import IdentifiedModel
model = IdentifiedModel.load(sys.argv[1])
zeros = np.zeros(len(model.joints))
model.{}
"""


def measure(progress: Progress) -> list[Row]:
    """Return a row for every process that is started; all of them in turns."""
    with tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        path = Path(folder) / 'model.yaml'
        true_model().save(path)
        started = commands(path)
        seconds = in_turns({what: partial(run, words) for what, (_, words) in started.items()},
                           progress)
    return [row(f'{what} (peer: the limit)', 's', seconds[what], limit, WITHIN)
            for what, (limit, _) in started.items()]


def commands(model: Path) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Return the limit [s] of every process that is started, and the arguments of Python."""
    words = {'robot-dynid --help': ('--help',),
             **{f'robot-dynid {verb} --help': (verb, '--help') for verb in VERBS}, **MISTYPED}
    return {
        IMPORTING: (IMPORT, ('-c', IMPORTING)),
        **{what: (WORDS, ('-c', COMMAND, *given)) for what, given in words.items()},
        **{f'first {name} of a saved model': (CALL, ('-c', LOADED.format(call), str(model)))
           for name, call in FIRST.items()}}


def run(words: tuple[str, ...]) -> int:
    """Return the exit code of Python with the arguments ``words``, whose output is dropped."""
    return subprocess.run([sys.executable, *words], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
