"""How many URDFs of a folder are read, and whether torque is Pinocchio's: survey.py FOLDER..."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pinocchio

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import DynIdError
from robot_dynid.robot.linkage import followers_of
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import described, source_text

ANSWERS = {'driver': 'other', 'effort_kind': 'torque'}
DESIGN = ('--duration', '3', '--harmonics', '2', '--starts', '1', '--iterations', '1', '--json')
NAMED = re.compile(r"'[^']*'|\([^)]*\)|[-+\d.e]+\d")


def deviation(robot: RobotModel) -> float:
    """Return the largest error of torque relative to Pinocchio's largest, in random states."""
    description, tree = described(source_text(robot), robot.source), robot.tree
    _, standing, _ = followers_of(description, description.below(robot.base_link), {}, ())
    model = pinocchio.buildModelFromXML(source_text(robot))
    model.gravity.linear = np.array(robot.gravity)
    data, generator, errors = model.createData(), np.random.default_rng(0), []
    for _ in range(5):
        state = generator.uniform(-1.0, 1.0, (3, robot.n))
        q, v, a = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        moved = robot.motion(*state[:, None])
        for name, position in (*standing.items(), *zip(tree.joints, moved[0][0])):
            joint = model.joints[model.getJointId(name)]
            q[joint.idx_q:joint.idx_q + joint.nq] = position if joint.nq == 1 else (
                np.cos(position), np.sin(position))
        rows = [model.joints[model.getJointId(name)].idx_v for name in tree.joints]
        v[rows], a[rows] = moved[1][0], moved[2][0]
        expected = robot.projected(np.array(pinocchio.rnea(model, data, q, v, a))[rows])
        own = inverse_dynamics(robot, *state[:, None])[0]
        errors.append(np.abs(own - expected).max() / max(np.abs(expected).max(), 1e-9))
    return float(max(errors))


def outcomes(path: Path, folder: Path, design: bool) -> Iterator[tuple[str, str]]:
    """Yield what each verb makes of a URDF: a cause, empty where it is read."""
    try:
        robot = load_robot(path)
        yield 'base', ''
        yield 'torque', f'{deviation(robot):.1e}' if robot.base_link else ''
    except DynIdError as error:
        yield 'base', str(error).partition(': ')[2]
    except (ValueError, RuntimeError) as error:
        yield 'torque', f'Pinocchio: {str(error).splitlines()[0]}'
    answers, out = folder / 'answers.yaml', folder / f'{path.stem}.yaml'
    answers.write_text(json.dumps(ANSWERS))
    verbs = {'init': ['init', str(path), '--answers', str(answers), '--out', str(out), '--json']}
    if design:
        verbs['design'] = ['design', str(out), *DESIGN, '--out', str(folder / 'plan.yaml')]
    for verb, words in verbs.items():
        heard = StringIO()
        with redirect_stderr(heard), redirect_stdout(StringIO()):
            code = main(words)
        lines = heard.getvalue().strip().splitlines()
        yield verb, '' if code == 0 else (lines or ['?'])[-1].split(': ', 2)[-1]
        if code:
            return


if __name__ == '__main__':
    folders = [word for word in sys.argv[1:] if word != '--design']
    paths = sorted({path for one in folders for path in Path(one).rglob('*.urdf')})
    tally: dict[tuple[str, str], list[str]] = defaultdict(list)
    with TemporaryDirectory() as temporary:
        for path in paths:
            for verb, cause in outcomes(path, Path(temporary), '--design' in sys.argv):
                key = cause if verb == 'torque' else NAMED.sub('*', cause)[:110]
                if verb == 'torque' and not cause.startswith('Pin') and cause:
                    key = 'equal' if float(cause) < 1e-6 else cause
                tally[verb, key].append(f'{path} | {cause}')
    sys.stdout.write(f'{len(paths)} files\n')
    for (verb, cause), cases in sorted(tally.items(), key=lambda one: (one[0][0], -len(one[1]))):
        sys.stdout.write(f'{verb:7} {len(cases):5}  {cause or "read"}   e.g. {cases[0]}\n')
