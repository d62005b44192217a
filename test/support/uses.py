"""What people do with what they have loaded, for the fuzzer: every result is finite or refused.

Each use ends, or raises a DynIdError; a number that is none, in a result or in a file, is an
AssertionError. Commands run in this process, as `robot-dynid` runs them, and write beside their
input.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from fuzzing import may_refuse
from identified_models import feasible_model
from report_pages import unpacked

from robot_dynid.cli.evaluation import write_rows
from robot_dynid.cli.main import as_json, parser
from robot_dynid.cli.terminal import Terminal, printable_streams
from robot_dynid.cli.verbs import VERBS
from robot_dynid.excitation.design import Design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.execution.sampled import sampled
from robot_dynid.export.identified_arm import is_physical
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import read_states, write_csv
from robot_dynid.io.log import load_log
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.plausibility.finding import KINDS
from robot_dynid.report.html import packed_plotly, write_report
from robot_dynid.report.plan import Plan, plan_report
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import fractions_used, motion_limits
from robot_dynid.types import CHANNELS

# what commands load when they are run is loaded here, and not again in every process of a piece
for module in ('casadi', 'mujoco', 'pinocchio', 'rich.console', 'scipy.signal', 'scipy.optimize',
               *(f'robot_dynid.{name}' for name in (
                   'export.c_code', 'export.functions', 'export.mujoco', 'export.pinocchio',
                   'export.solver_parameters', 'report.expected', 'robot.implausible'))):
    import_module(module)
for verb in ('base', 'export', 'forward', 'identify', 'inverse', 'validate'):
    _ = VERBS[verb]
packed_plotly()

#: a number that is none, as text, and as a result on a page
NO_NUMBER = re.compile(r'(?<![\w.])[-+]?(?:nan|inf|infinity)(?![\w.])', re.IGNORECASE)
NO_RESULT = re.compile(rf'(?:(?:\A|[=±]|\+-)\s*|, ){NO_NUMBER.pattern}', re.IGNORECASE)
#: states that a model is used in, with their largest position, velocity and acceleration
STATES, SIZES = 4, (1.0, 0.5, 2.0)
#: step and steps of a simulation
STEP, STEPS = 0.002, 20


def one_in(count: int, path: Path) -> bool:
    """Return whether a file is one of a share of all: the same file always is, or is not."""
    return zlib.crc32(path.read_bytes()) % count == 0


def command(*words: str | Path) -> dict[str, Any]:
    """Run a command as `robot-dynid` does and show its result; return the result."""
    verb, *rest = map(str, words)
    options = parser([verb]).parse_args([verb, *rest])
    options.command = ('robot-dynid', verb, *rest)
    terminal = Terminal(quiet=True, verbose=True)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), \
            printable_streams():
        result: dict[str, Any] = VERBS[verb].run(options, terminal)
        json.loads(as_json(result))
        VERBS[verb].show(result, terminal)
    return result


def require_finite(**results: Any) -> None:
    """Require that all numbers of results are finite."""
    for name, value in results.items():
        assert np.isfinite(value).all(), f'{name} is not finite'


def require_numbers(path: Path) -> str:
    """Return the text of a file; require that none of its numbers is infinite or none."""
    text = path.read_text('utf-8')
    wrong = NO_NUMBER.search(text)
    assert wrong is None, f'{path.suffix} has {text[max(wrong.start() - 60, 0):wrong.end() + 20]}'
    return text


class Page(HTMLParser):
    """The elements of a page, what is written on it, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._inside = ''
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element, with the names of its attributes."""
        self.tags.append(' '.join([tag, *(name for name, _ in attrs)]))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        """Leave a script or style."""
        self._inside = ''

    def handle_data(self, data: str) -> None:
        """Note a text."""
        if self._inside == 'script':
            self.scripts.append(data)
        elif self._inside != 'style':
            self.words.append(data)


def _no_number(word: str) -> float:
    raise AssertionError(f'the figures have {word}')


def _finite(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a figure; a curve may have gaps, and is finite beside them."""
    if part.get('packed'):
        values = unpacked(part)
        assert np.isfinite(values).any() and not np.isinf(values).any(), 'a curve has no numbers'
    return part


def require_page(path: Path, names: bool = False) -> Page:
    """Return a page, of figures and texts with finite numbers.

    With ``names`` its texts are not looked at: names may be such numbers.
    """
    page = Page(path.read_text('utf-8'))
    assert len(page.scripts) == 3, f'the page has {len(page.scripts)} scripts'
    json.loads(page.scripts[0], parse_constant=_no_number, object_hook=_finite)
    for word in () if names else page.words:
        found = NO_RESULT.search(word.strip())
        assert found is None, f'the page says {word.strip()[max(found.start() - 99, 0):][:200]}'
    return page


def use_states(model: IdentifiedModel) -> None:
    """Compute what a model says of states: efforts, accelerations, derivatives, a simulation."""
    n, rng = model.robot.n, np.random.default_rng(0)
    q, qd, qdd = (size * rng.uniform(-1.0, 1.0, (STATES, n)) for size in SIZES)
    effort = model.inverse(q, qd, qdd, ripple=True)
    require_finite(effort=effort, mass=model.mass_matrix(q), gravity=model.gravity(q))
    require_finite(friction=model.friction(q, qd, qdd))
    for use in (
        lambda: require_finite(acceleration=model.forward(q, qd, effort)),
        lambda: [require_finite(slope=x) for x in model.inverse_derivatives(q, qd, qdd)],
        lambda: [require_finite(slope=x) for x in model.forward_derivatives(q, qd, effort)],
        lambda: require_finite(columns=model.inverse_by_parameters(q, qd, qdd)),
        lambda: require_finite(columns=model.forward_by_parameters(q, qd, effort)),
        lambda: require_finite(interval=model.effort_interval(q, qd, qdd)),
        lambda: use_rollout(model, q, qd, effort),
        lambda: use_motors(model, q, qd, qdd),
    ):
        with may_refuse():
            use()


def use_rollout(model: IdentifiedModel, q: Any, qd: Any, effort: Any) -> None:
    """Simulate: states are finite until the motion is said to have ended."""
    held = np.repeat(effort[:, None], STEPS, axis=1)
    motors = (q, qd) if model.elastic_joints else None
    done = model.rollout(q, qd, held, STEP, motors)
    for k, stopped in enumerate(done.stop_step):
        stop = STEPS if stopped < 0 else int(stopped)
        require_finite(position=done.position[k, :stop], velocity=done.velocity[k, :stop])


def use_motors(model: IdentifiedModel, q: Any, qd: Any, qdd: Any) -> None:
    """Compute the motion of the motors of elastic joints."""
    if model.elastic_joints:
        drive = model.inverse_elastic(q, qd, qdd, 0.01)
        require_finite(effort=drive.effort, position=drive.position, velocity=drive.velocity)
        links, motors = model.forward_elastic(q, qd, drive.effort, q, qd)
        require_finite(links=links, motors=motors)


def use_tables(path: Path, model: IdentifiedModel, folder: Path) -> None:
    """Compute efforts of states in a table, and from these the accelerations again."""
    n, rng = model.robot.n, np.random.default_rng(1)
    states, efforts = folder / 'states.csv', folder / 'efforts.csv'
    motion = {channel: size * rng.uniform(-1.0, 1.0, (STATES, n)) for channel, size in zip(
        ('position', 'velocity', 'acceleration'), SIZES, strict=True)}
    write_rows(str(states), model.joints, motion)
    done = command('inverse', path, states, '--out', efforts)
    refused = [model.joints.index(joint) for joint in model.not_identified]
    assert np.isnan(done['effort']).any(axis=0).tolist() == [j in refused for j in range(n)]
    (read,) = read_states(efforts, model.joints, ('effort',)) if not refused else (None,)
    assert read is None or np.array_equal(read, done['effort'])
    write_rows(str(states), model.joints, {**motion, 'effort': np.nan_to_num(done['effort'])})
    done = command('forward', path, states, '--out', folder / 'accelerations.csv')
    assert refused or np.isfinite(done['acceleration']).all()


def use_exports(path: Path, model: IdentifiedModel, folder: Path) -> None:
    """Write a model in all forms, each of which is read back by others before it is written."""
    for form, name in (('out', 'out.urdf'), ('mjcf', 'out.xml'), ('sdf', 'out.sdf'),
                       ('inverse-dynamics-solver', 'solver.yaml')):
        with may_refuse():
            command('export', path, f'--{form}', folder / name, '--accept-partial')
            require_numbers(folder / name)
    with may_refuse():
        model.to_casadi()
    if one_in(3, path):  # a compiler takes long
        command('export', path, '--c', folder / 'code')


def use_model(path: Path, recordings: Mapping[tuple[str, ...], Path]) -> None:
    """Use a model file as people do; ``recordings`` are those to validate it on, by joints."""
    model = IdentifiedModel.load(path)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.to_yaml() == model.to_yaml(), 'it changes when it is saved again'
    with TemporaryDirectory(dir=path.parent) as place:
        folder = Path(place)
        for use in (
            lambda: use_states(model), lambda: use_tables(path, model, folder),
            lambda: use_exports(path, model, folder),
            lambda: use_validation(path, recordings[model.joints], folder),
        )[:3 + (model.joints in recordings)]:
            with may_refuse():
                use()


def use_validation(path: Path, recording: Path, folder: Path) -> None:
    """Score a model on a recording, with a report."""
    report = folder / 'report.html'
    command('validate', path, recording, '--accept-partial', '--report', report,
            *(['--forward'] if one_in(2, path) else []))
    require_page(report)


def use_robot(path: Path) -> None:
    """Use a description as people do: its parameters, its export, a nominal model of it."""
    robot = load_robot(path)
    with TemporaryDirectory(dir=path.parent) as place:
        folder = Path(place)
        for form, name in (('out', 'out.urdf'), ('mjcf', 'out.xml'), ('sdf', 'out.sdf')):
            with may_refuse():
                command('export', path, f'--{form}', folder / name)
        done = command('base', path)
        assert done['joints']
        model, rng = folder / 'model.yaml', np.random.default_rng(0)
        nominal_of(robot, rng).save(model)
        use_model(model, {})


def nominal_of(robot: RobotModel, rng: np.random.Generator) -> IdentifiedModel:
    """Return a model of a robot as it is described, feasible where that is."""
    model = feasible_model(robot, robot.tree.nominal, rng)
    bodies = robot.tree.nominal
    return model if all(map(is_physical, bodies)) else replace(model, feasible=None)


def use_recording(path: Path, robot: Path, model: Path, recipe: Path) -> None:
    """Use a recording as people do: write it anew, identify, validate."""
    log = load_log(path, load_robot(robot))
    with TemporaryDirectory(dir=path.parent) as place:
        folder = Path(place)
        write_csv(folder / 'again.csv', log)
        again = load_log(folder / 'again.csv', load_robot(robot))
        for channel in ('time', *CHANNELS):
            one, other = getattr(log, channel), getattr(again, channel)
            assert (one is None and other is None) or np.array_equal(one, other, equal_nan=True)
        accepted = [word for kind in KINDS for word in ('--accept', kind)]
        for use in (
            lambda: use_fit(path, robot, recipe, folder, accepted),
            lambda: use_validation(model, path, folder),
        ):
            with may_refuse():
                use()


def use_fit(path: Path, robot: Path, recipe: Path, folder: Path, accepted: list[str]) -> None:
    """Identify from a recording, with a report; every second time whatever is wrong with it."""
    made, report = folder / 'made.yaml', folder / 'fit.html'
    command('identify', path, '--robot', robot, '--recipe', recipe, '--out', made, '--report',
            report, '--accept-partial', *(accepted if one_in(2, path) else []))
    require_page(report)
    model = IdentifiedModel.load(made)
    require_finite(values=model.values, control=model.control)
    use_states(model)


def use_plan(path: Path, model: Path, robot: RobotModel) -> None:
    """Use a trajectory as people do: write, sample, report, foretell its error."""
    trajectory = load_trajectory(path)
    with TemporaryDirectory(dir=path.parent) as place:
        folder = Path(place)
        save_trajectory(trajectory, folder / 'again.yaml')
        points = sampled(trajectory, 50.0)
        require_finite(time=points.time, position=points.position, velocity=points.velocity)
        again = sampled(load_trajectory(folder / 'again.yaml'), 50.0)
        assert np.array_equal(points.position, again.position), 'it moves otherwise, saved again'
        if trajectory.joints == robot.joints:
            limits = motion_limits(robot)
            used = fractions_used(trajectory.peaks(), limits)
            found = Design(trajectory, limits, used, None, ())
            write_report(plan_report(Plan('fourier', robot, found, design_criteria(robot))),
                         folder / 'plan.html')
            require_page(folder / 'plan.html')
        command('validate', model, '--plan', path, '--report', folder / 'expected.html')
        require_page(folder / 'expected.html')
