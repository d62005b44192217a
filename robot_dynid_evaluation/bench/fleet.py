"""Findings about a simulated fleet, some arms of which changed: power and false alarms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.effects import JointFriction, axes_of, frictionless_blocks
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.friction import law_from
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.bench import Row
from robot_dynid_extras.fleet.fleet import RATE as ALLOWED
from robot_dynid_extras.fleet.fleet import Finding, Fleet, ReducedRecording
from robot_dynid_extras.fleet.fleet import fleet as judged_fleet

COLUMNS = ('plant', 'what', 'found', 'of', 'share', 'target', 'kept')
ROBOT = 'planar_3r'
ARMS, RECORDINGS = 50, 20
#: fleets of every plant with changes, and as many without
SEEDS = 10
DAY = 86400.0
#: [s], [Hz]: short recordings, sampled as slowly as filtered ones are
SECONDS, RATE, HARMONICS = 12.0, 50.0, 6
#: share of spread from arm to arm of friction, and of links
FRICTION, LINKS = 0.10, 0.02
#: share of spread of friction from day to day, of each axis and of all together; arms differ in
#: it by this factor (log-normal)
DAILY, TOGETHER, UNLIKE = 0.03, 0.02, 1.3
#: Plant COLD: Student's t of so many degrees, and the share of sessions that begin cold, with more
#: viscous and dry friction by these shares on all axes; Plant DRIFT: correlation of a day with the
#: one before, and the season of all arms, half a wave of this share
TAILS, COLD_STARTS, COLDER, CORRELATED, SEASON = 5.0, 0.08, (0.25, 0.08), 0.5, 0.06
#: outside the model of the estimator: friction that fades by this share as the arm warms up within
#: so many seconds, friction in parts of the torque that a gear carries [-], a ramp that is wider
WARMING, WARM, LOADED, RAMP = 0.15, 60.0, 0.02, (0.02, 0.03)
#: white noise of the efforts in terms of the dry friction
NOISE = 0.1
#: day of the changes, as number of the session
CHANGED = 12


#: how friction differs from day to day: by normal deviates; by some with heavy tails, and cold
#: starts; by such as drift, and a season
NORMAL, COLD, DRIFT = PLANTS = ('normal days', 'cold starts, heavy tails', 'drift, season')


@dataclass(frozen=True)
class Change:
    """A change of one arm: friction of a joint times a factor, or a load [kg] at the end.

    ``characteristic`` names where it shows first.
    """

    characteristic: str
    viscous: float = 1.0
    dry: float = 1.0
    joint: int = 0
    load: float = 0.0
    gradual: bool = False


CHANGES = (
    Change('dry_1', dry=1.2), Change('viscous_2', viscous=1.2, joint=1),
    Change('load_link_3', load=0.5), Change('dry_2', dry=0.8, joint=1),
    Change('dry_3', dry=1.3, joint=2, gradual=True))


@dataclass(frozen=True, eq=False)
class SimulatedFleet:
    """A fleet of one type: its size, what changed in its first arms, its plant, and the seed."""

    seed: int
    changes: tuple[Change, ...] = CHANGES
    plant: str = NORMAL
    arms: int = ARMS
    recordings: int = RECORDINGS

    def name(self, arm: int) -> str:
        """Return the name of an arm by its number."""
        return f'arm-{arm + 1:03}'

    @property
    def changed(self) -> dict[str, Change]:
        """The changes by the names of their arms."""
        return {self.name(arm): change for arm, change in enumerate(self.changes)}


def torque_model(robot: RobotModel) -> TorqueModel:
    """Return the model of the estimator: links, rotors, Coulomb and viscous friction."""
    laws = (law_from('coulomb', {'width': RAMP[0]}),) * robot.n
    return TorqueModel.of(robot, (*frictionless_blocks(robot, True),
                                  JointFriction(axes_of(robot), laws)))


def simulated(fleet: SimulatedFleet, model: TorqueModel) -> list[ReducedRecording]:
    """Return the recordings of a fleet, each with its information alone."""
    rng = np.random.default_rng(fleet.seed)
    robot, motions = model.robot, _motions(model.robot, rng)
    found = []
    for arm in range(fleet.arms):
        change = fleet.changes[arm] if arm < len(fleet.changes) else None
        own = simulated_arm(robot, rng)
        for session, day in enumerate(_days(fleet, robot.n, own.unrest, rng)):
            share = 0.0 if change is None else _share(change, session, fleet.recordings)
            samples = _recording(own, motions[rng.integers(len(motions))], change, share, day, rng)
            found.append(ReducedRecording(fleet.name(arm), session * DAY,
                                  Experiment.of(model, [samples]).information))
    return found


@dataclass(frozen=True, eq=False)
class SimulatedArm:
    """One arm: its robot, friction (n,) of its axes, how much more than others it is scattered."""

    robot: RobotModel
    viscous: FloatArray
    dry: FloatArray
    rotors: FloatArray
    unrest: float

    def on(self, day: FloatArray, change: Change | None, share: float = 1.0) -> SimulatedArm:
        """Return the arm with the friction of a ``day`` (2, n), a ``share`` of a change on top."""
        viscous, dry = np.array([self.viscous, self.dry]) * day
        if change is None:
            return replace(self, viscous=viscous, dry=dry)
        viscous[change.joint] *= 1.0 + share * (change.viscous - 1.0)
        dry[change.joint] *= 1.0 + share * (change.dry - 1.0)
        load, x = np.zeros_like(self.robot.nominal), 0.15  # a point mass at the end of the arm
        load[-1] = share * change.load * np.array(
            [1.0, x, 0.0, 0.0, 0.0, 0.0, x**2, 0.0, 0.0, x**2])
        return replace(self, viscous=viscous, dry=dry,
                       robot=self.robot.with_nominal(self.robot.nominal + load))

    def effort(
        self, links: FloatArray, rates: tuple[FloatArray, FloatArray],
        levels: tuple[FloatArray | float, FloatArray | float], loaded: float, ramp: float,
    ) -> FloatArray:
        """Return the effort (N, n) [N m] beside that of the ``links`` (N, n).

        ``rates`` are velocity and acceleration; viscous and dry friction count by ``levels``, and
        friction that is ``loaded`` by the links comes on top; ``ramp`` is that of reversals.
        """
        qd, qdd = rates
        dry = levels[1] * self.dry + loaded * np.abs(links)
        return np.asarray(links + self.rotors * qdd + levels[0] * self.viscous * qd
                          + dry * np.clip(qd / ramp, -1.0, 1.0))


def simulated_arm(robot: RobotModel, rng: np.random.Generator) -> SimulatedArm:
    """Return an arm whose links and friction differ from those of the others."""
    truth = load_truth(robot)
    links = robot.nominal * (1.0 + LINKS * rng.standard_normal((robot.n, 1)))
    off = 1.0 + FRICTION * rng.standard_normal((2, robot.n))
    return SimulatedArm(robot.with_nominal(links), truth.viscous * off[0], truth.coulomb * off[1],
                truth.rotor_inertia, float(np.exp(np.log(UNLIKE) * rng.standard_normal())))


def _motions(robot: RobotModel, rng: np.random.Generator) -> list[Samples]:
    """Return a few motions; a fleet does the same few tasks."""
    time = np.arange(round(SECONDS * RATE)) / RATE
    limits = motion_limits(robot).scaled(0.9)
    found = []
    for _ in range(4):
        motion = random_fourier(limits, FourierOptions(SECONDS, HARMONICS), rng).sample(time)
        found.append(Samples(robot.joints, time, motion.position, motion.velocity,
                             motion.acceleration))
    return found


def _days(
    fleet: SimulatedFleet, n: int, unrest: float, rng: np.random.Generator
) -> FloatArray:
    """Return viscous and dry friction of the axes beside what is usual, day by day (S, 2, n)."""
    count = fleet.recordings

    def drawn(*shape: int) -> FloatArray:
        if fleet.plant == COLD:
            return rng.standard_t(TAILS, (count, *shape)) * np.sqrt(1.0 - 2.0 / TAILS)
        found = rng.standard_normal((count, *shape))
        if fleet.plant == DRIFT:
            for day in range(1, count):
                found[day] = CORRELATED * found[day - 1] + np.sqrt(
                    1.0 - CORRELATED**2) * found[day]
        return found

    days = 1.0 + unrest * (TOGETHER * drawn(1, 1) + DAILY * drawn(2, n))
    if fleet.plant == COLD:
        cold = rng.random((count, 1, 1)) < COLD_STARTS
        days *= 1.0 + cold * np.array(COLDER)[:, None]
    if fleet.plant == DRIFT:
        days *= 1.0 + SEASON * np.sin(np.pi * np.arange(count) / count)[:, None, None]
    return days


def _share(change: Change, session: int, count: int) -> float:
    """Return the share of a change that is there in a session."""
    first = min(CHANGED, count // 2)
    if change.gradual:
        return session / (count - 1)
    return float(session >= first)


def _recording(
    arm: SimulatedArm, motion: Samples, change: Change | None, share: float, day: FloatArray,
    rng: np.random.Generator,
) -> Samples:
    """Return a recording: inverse dynamics and friction of the ``day`` (2, n), with noise."""
    now = arm.on(day, change, share)
    q, qd, qdd = motion.position, motion.velocity, motion.acceleration
    links = inverse_dynamics(now.robot, q, qd, qdd)
    warm = 1.0 - WARMING * (1.0 - np.exp(-motion.time[:, None] / WARM)) * rng.uniform(0.5, 1.5)
    effort = now.effort(links, (qd, qdd), (warm, 1.0), LOADED, RAMP[1])
    effort = effort + NOISE * arm.dry * rng.standard_normal(effort.shape)
    return replace(motion, effort=effort, measured=effort)


def analysed(fleet: SimulatedFleet, model: TorqueModel) -> Fleet:
    """Return the findings about a simulated fleet."""
    return judged_fleet(model, simulated(fleet, model))


def is_true(finding: Finding, change: Change | None) -> bool:
    """Return whether a finding says what changed.

    A load changes links in general; friction shows in its own coefficient, and in that of its
    axis as a whole.
    """
    if change is None:
        return False
    if change.load:
        return finding.characteristic.kind in ('load', 'link')
    joint = finding.characteristic.part == f'joint_{change.joint + 1}'
    return finding.characteristic.name == change.characteristic or (
        joint and finding.characteristic.kind == 'friction')


@dataclass
class Score:
    """Counts over fleets: ``arms`` named and those wrongly; what was ``said``, and wrongly."""

    changed: int = 0
    found: int = 0
    arms: int = 0
    wrong_arms: int = 0
    said: int = 0
    wrong: int = 0
    shares: tuple[float, ...] = ()
    by_change: tuple[tuple[str, bool], ...] = ()

    def add(self, fleet: SimulatedFleet, found: Fleet) -> None:
        """Count the findings about a fleet."""
        changed = fleet.changed
        named = {one.arm for one in found.findings}
        right = {one.arm for one in found.findings if is_true(one, changed.get(one.arm))}
        self.changed += len(changed)
        self.found += len(right)
        self.arms += len(named)
        self.wrong_arms += len(named - set(changed))
        wrong = sum(not is_true(one, changed.get(one.arm)) for one in found.findings)
        self.said += len(found.findings)
        self.wrong += wrong
        self.shares += (len(named - set(changed)) / max(len(named), 1),)
        self.by_change += tuple((change.characteristic, name in right)
                                for name, change in changed.items())


def measure(progress: Progress) -> list[Row]:
    """Return power and false alarms of fleets with changes and of fleets without, by plant."""
    model = torque_model(load_robot(ROBOT))
    found = []
    for i, plant in enumerate(PLANTS):
        scores = Score(), Score()
        fleets = [*((scores[0], SimulatedFleet(seed, CHANGES, plant)) for seed in range(SEEDS)),
                  *((scores[1], SimulatedFleet(seed, (), plant)) for seed in range(SEEDS))]
        for number, (score, own) in enumerate(fleets):
            progress(f'{plant}: fleet {number + 1} of {len(fleets)}',
                     (i + number / len(fleets)) / len(PLANTS))
            score.add(own, analysed(own, model))
        found += rows(plant, *scores, ALLOWED)
    return found


def rows(plant: str, with_changes: Score, without: Score, allowed: float) -> list[Row]:
    """Return the table of the scores of fleets with and without changes, of one plant."""
    one, none = with_changes, without
    found = [_row('changed arms found, with what changed', one.found, one.changed, None)]
    for name in dict.fromkeys(name for name, _ in one.by_change):
        hits = [hit for own, hit in one.by_change if own == name]
        found.append(_row(f'  {name}', sum(hits), len(hits), None))
    found += [
        _row('unchanged arms among those named, mean over fleets', one.wrong_arms, one.arms,
             allowed, float(np.mean(one.shares))),
        _row('wrong findings, all fleets', one.wrong, one.said, None),
        _row('fleets without changes in which an arm is named',
             sum(share > 0.0 for share in none.shares), len(none.shares), allowed)]
    return [{'plant': plant, **row} for row in found]


def _row(
    what: str, found: int, of: int, allowed: float | None, share: float | None = None
) -> Row:
    """Return a row; what is ``allowed`` comes with two deviations of so few."""
    share = found / max(of, 1) if share is None else share
    bound = None if allowed is None else allowed + 2.0 * np.sqrt(
        allowed * (1 - allowed) / max(of, 1))
    return {'what': what, 'found': found, 'of': of, 'share': share,
            'target': '-' if bound is None else f'<= {bound:.2g}',
            'kept': None if bound is None else bool(share <= bound)}
