"""A joint held by friction, pulled by a spring and shaken, and the readings of its encoder.

Written apart from the package: a mass under LuGre friction (Canudas de Wit, Olsson, Astrom,
Lischinsky 1995, A new model for control of systems with friction, eq. 1 to 4). Lengths are in
steps of the encoder, so that friction gives way by half a step before it slides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np

MASS, COULOMB, STATIC, BRISTLES, DAMPING, STRIBECK = 5e-4, 1.0, 1.4, 2.0, 0.03, 3.0
#: time step [s] of the simulation; end of what is judged, and of the swing behind it that shows
#: the steps of the encoder [s]
FINE, REST, END = 2.5e-4, 11.0, 14.0
Signal = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Held:
    """A joint at ``place``, pulled by a ``spring`` to ``reference``(time), pushed by ``force``.

    ``noise`` is that of single readings. Everything in steps, and units of Coulomb friction.
    """

    reference: Signal = np.zeros_like
    force: Signal = np.zeros_like
    spring: float = 0.4
    noise: float = 0.0
    place: float = 0.5

    def motion(self) -> np.ndarray:
        """Return the positions (N,) every FINE."""
        time = np.arange(0.0, END, FINE)
        swing = 30.0 * (1.0 - np.cos(0.5 * np.pi * (time - REST))) * (time > REST)
        pull = (self.spring * self.reference(np.minimum(time, REST)) + self.force(time)
                + max(self.spring, 2.0) * swing)
        x = v = z = 0.0
        found = []
        for push, late in zip(pull.tolist(), (time > REST).tolist()):
            level = COULOMB + (STATIC - COULOMB) * exp(-(v / STRIBECK)**2)
            bend = v - BRISTLES * abs(v) / level * z
            spring = max(self.spring, 2.0) if late else self.spring
            v += FINE / MASS * (push - spring * x - BRISTLES * z - DAMPING * bend)
            x += FINE * v
            z += FINE * bend
            found.append(x)
        return self.place + np.array(found)

    def readings(self, motion: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return what the encoder shows of a ``motion`` (N,)."""
        return np.round(motion + self.noise * rng.standard_normal(len(motion)))


def waves(*parts: tuple[float, float]) -> Signal:
    """Return the sum of sines of frequencies [Hz] and sizes."""
    return lambda time: sum(size * np.sin(2.0 * np.pi * hertz * time) for hertz, size in parts)


def stop_and_go(size: float, every: float) -> Signal:
    """Return a ramp of ``size`` steps in 0.3 s, ``every`` so many seconds."""
    return lambda time: size * (time // every + np.clip((time % every) / 0.3, 0.0, 1.0))


SLOW = waves((0.1, 0.3), (0.23, 0.3), (0.4, 0.3))
#: 8 Hz by 0.45 steps at the stiffness of the bristles
DITHER = waves((8.0, 0.85))
CASES = {
    'held': Held(noise=0.3),
    'shaken slowly': Held(force=SLOW, noise=0.2),
    'pulled slowly': Held(lambda time: 0.8 * time),
    'pulled slowly, noise': Held(lambda time: 0.8 * time, noise=0.2),
    'dither': Held(force=DITHER),
    'dither, noise': Held(force=DITHER, noise=0.2),
    'low dither': Held(force=waves((3.0, 0.9))),
    'stop and go': Held(stop_and_go(3.0, 1.7), spring=20.0, place=0.2),
    'far stop and go': Held(stop_and_go(20.0, 2.5), spring=20.0, noise=0.2),
}
