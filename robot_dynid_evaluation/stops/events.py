"""Events in mid-motion: how each is made to happen, and the promise of the documentation."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.execution.guards import Code, GuardSettings
from robot_dynid_evaluation.stops.account import Account
from robot_dynid_evaluation.stops.cell import Bystander, Cell
from robot_dynid_evaluation.stops.client import Client

FROZEN = 2.0  # s
TO_COMMAND = 0.1  # s from a guard to the command, as docs/excitation.md says
AT_LIMIT = 0.1  # s: peak velocity of the motion over the acceleration limit
ROUNDED, OVERSHOOT = 0.01, 0.1  # of the acceleration limit, of the reference and of an arm


@dataclass
class Scene:
    """Whom an event may happen to: ``cell`` and ``client``, the ``handle`` of the goal.

    ``other``: the process whose goal it is where it is not the client's.
    """

    cell: Cell
    client: Client
    joints: tuple[str, ...]
    middle: list[float]
    handle: Any = None
    other: Bystander | None = None


@dataclass(frozen=True)
class Limits:
    """Parameters of the node from which promises follow: ``guards``, and ``lookahead`` s."""

    guards: GuardSettings
    lookahead: float

    @property
    def brake(self) -> float:
        """The longest that a stop along the path may take, with the way over to it, s."""
        return self.guards.stop_time + self.guards.join_time

    @property
    def immediate(self) -> float:
        """The longest that a stop in one cycle may take, s.

        From the guard to the command, and then an arm that brakes no softer than at its limit.
        """
        return TO_COMMAND + AT_LIMIT

    @property
    def unseen(self) -> float:
        """The longest silence of robot and controller until it is noticed and reported, s."""
        guards = self.guards
        return max(guards.state_timeout, guards.controller_timeout) + guards.stop_timeout


@dataclass(frozen=True)
class Event:
    """An event in mid-motion.

    ``act`` makes it happen; ``codes`` are the results that name it, none where no result can come;
    ``bound`` is the promise in s on ``measure``: ``rest`` from the event until the arm stands, or
    ``told`` until the client has the result. ``within``: the acceleration stays within its limit;
    ``goes_on``: the motion does; ``by_other``: the goal is another client's; ``pauses``: the goal
    does not end by itself; ``replaceable``: it is nothing where a goal is renewed in its cycle.
    """

    what: str
    act: Callable[[Scene], None]
    codes: tuple[Code, ...]
    bound: Callable[[Limits], float]
    measure: str = 'rest'
    within: bool = False
    goes_on: bool = False
    by_other: bool = False
    pauses: bool = False
    replaceable: bool = False

    def faults(self, account: Account, code: Code | None) -> list[str]:
        """Return the promises that are broken, with the ``code`` of the result."""
        found = []
        if self.codes and code not in self.codes:
            said = 'no result' if code is None else code.name
            found.append(f'{said} instead of {" or ".join(c.name for c in self.codes)}')
        unseen = np.isnan(account.acceleration)
        peak, most = (account.arm, OVERSHOOT) if unseen else (account.acceleration, ROUNDED)
        if self.within and not peak <= 1.0 + most:
            found.append(f'{peak:.3g} of the acceleration limit')
        if self.goes_on and account.reaction != np.inf:
            found.append(f'the motion changed after {account.reaction:.3f} s')
        return found


def _kill(name: str) -> Callable[[Scene], None]:
    return lambda scene: scene.cell.signal(name, signal.SIGKILL)


def _freeze(name: str) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        scene.cell.signal(name, signal.SIGSTOP)
        scene.client.spin(FROZEN)
        scene.cell.signal(name, signal.SIGCONT)

    return act


def _fault(name: str) -> Callable[[Scene], None]:
    return lambda scene: scene.client.fault_soon(name)


def _kill_client(scene: Scene) -> None:
    assert scene.other is not None
    scene.other.kill()


def _elsewhere(scene: Scene) -> tuple[tuple[str, ...], list[float]]:
    return scene.joints, scene.middle


EVENTS = {
    'kill-node': Event(
        'excitation node killed', _kill('excitation'), (), lambda p: p.lookahead, within=True),
    'freeze-node': Event(
        'excitation node frozen for 2 s', _freeze('excitation'), (Code.NODE_DELAYED,),
        lambda p: p.lookahead, within=True),
    'kill-robot': Event(
        'controller killed', _kill('simulated_robot'), (Code.CONTROLLER_LOST, Code.STALE_STATES),
        lambda p: p.unseen, 'told'),
    'freeze-robot': Event(  # where it is frozen in shared memory, it holds up other processes, too
        'controller frozen for 2 s', _freeze('simulated_robot'),
        (Code.CONTROLLER_LOST, Code.STALE_STATES, Code.EMERGENCY_STOP, Code.NODE_DELAYED),
        lambda p: FROZEN + p.lookahead),
    'emergency-stop': Event(
        'emergency stop pressed', lambda s: s.cell.emergency_stop.tell(True),
        (Code.EMERGENCY_STOP,), lambda p: p.brake, within=True),
    'kill-emergency-stop': Event(
        'publisher of the emergency stop killed', lambda s: s.cell.emergency_stop.kill(),
        (Code.EMERGENCY_STOP,), lambda p: p.guards.emergency_stop_timeout + p.brake,
        within=True),
    'kill-client': Event(
        'client killed: motion goes on', _kill_client, (), lambda p: np.nan, goes_on=True,
        by_other=True),
    'stale': Event(
        'joint states cease', _fault('stop_states'), (Code.STALE_STATES,),
        lambda p: p.guards.state_timeout + p.brake, within=True),
    'nan': Event(
        'joint states become NaN', _fault('nan'), (Code.STALE_STATES,), lambda p: p.brake,
        within=True),
    'topic': Event(
        "another program on the controller's topic",
        lambda s: s.client.command_topic(*_elsewhere(s)), (Code.TAKEN_OVER,), lambda p: p.brake,
        replaceable=True),
    'goal': Event(
        "another program's goal", lambda s: s.client.command_goal(*_elsewhere(s)),
        (Code.TAKEN_OVER,), lambda p: p.immediate + p.guards.stop_timeout, 'told'),
    'deactivate': Event(  # it holds in one cycle, which takes all the effort there is
        'controller deactivated', _fault('inactive'),
        (Code.ABORTED, Code.CONTROLLER_LOST, Code.EFFORT_LIMIT), lambda p: p.immediate),
    'effort': Event(
        'effort above its limit', _fault('effort_spike'), (Code.EFFORT_LIMIT,),
        lambda p: p.immediate),
    'tracking': Event(  # its drive jumps, which takes all the effort there is
        'tracking error', _fault('tracking_error'), (Code.TRACKING_ERROR, Code.EFFORT_LIMIT),
        lambda p: p.guards.tracking_window + p.immediate),
    'cancel': Event(
        'cancelled by the client', lambda s: s.client.cancel(s.handle), (Code.CANCELLED,),
        lambda p: p.brake, within=True),
    'pause': Event(
        'paused', lambda s: s.client.trigger('pause'), (Code.CANCELLED,), lambda p: p.brake,
        within=True, pauses=True),
}
