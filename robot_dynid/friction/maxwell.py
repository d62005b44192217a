"""Presliding by several stop operators: generalised Maxwell slip."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar

from robot_dynid.friction.law import FrictionLaw
from robot_dynid.friction.terms import CONSTANT, POWER, STOP, Parameter, Term
from robot_dynid.kernels.friction import SLIDING
from robot_dynid.numbers import SPEED, TRAVEL
from robot_dynid.settings import setting

if TYPE_CHECKING:
    from typing import Self

#: what the lengths are chosen from [rad or m]: two per decade; the amplitudes of nearer ones could
#: not be told apart
LENGTHS = (2e-5, 6e-5, 2e-4, 6e-4, 2e-3, 6e-3, 2e-2)
#: length of the state that additions scale; on the UR10e all from 2e-5 to 3e-4 do as well
DRY_LENGTH = 6e-5


@dataclass(frozen=True)
class Maxwell(FrictionLaw):
    """``fv v + sum_k fc_k z_k + f0``; each z_k a spring that slips at the travel ``lengths[k]``.

    ``z_k`` grows by dq / lengths[k] and stops at -1 and 1. The torque is linear in the amplitudes
    ``fca, fcb, ...``, one per length [rad or m], which add up to the Coulomb friction of steady
    sliding. A recording begins relaxed, z = 0, or as it slides where it begins in motion; a state
    forgets its beginning once the axis has moved two lengths. A state without a past slides: ``z =
    clip(v / width, -1, 1)``.
    Source: Al-Bender, Lampaert, Swevers 2005 without their rate law; Kuhnen 2003.
    """

    lengths: tuple[float, ...] = setting((1e-4, 1e-3), TRAVEL)
    width: float = setting(SLIDING, SPEED)
    name: ClassVar[str] = 'maxwell'

    def __post_init__(self) -> None:
        self.read_increasing('lengths', len(ascii_lowercase))
        self.check()

    @property
    def table(self) -> tuple[Parameter, ...]:
        """Viscous friction, amplitudes, offset."""
        return (Parameter('fv', (Term(POWER),)),
                *(Parameter(f'fc{letter}', (Term(STOP, length, width=self.width),), holds=True)
                  for letter, length in zip(ascii_lowercase, self.lengths, strict=False)),
                Parameter('f0', (Term(CONSTANT),), nonnegative=False))

    @property
    def dry(self) -> Term:
        """A state that does not depend on the lengths chosen."""
        return Term(STOP, DRY_LENGTH, width=self.width)

    @classmethod
    def candidates(cls) -> Sequence[Self]:
        """Return the law with all lengths, of which data takes away."""
        return [cls(LENGTHS)]

    @property
    def prunable(self) -> tuple[str, ...]:
        """The amplitudes, unless there is one only."""
        return self.holding if len(self.lengths) > 1 else ()

    def without(self, parameters: Collection[str]) -> Maxwell:
        """Return the law without the lengths of these amplitudes; one always stays."""
        kept = tuple(length for name, length in zip(self.holding, self.lengths, strict=True)
                     if name not in parameters)
        return replace(self, lengths=kept or self.lengths[:1])

    def unpruned(self) -> Maxwell:
        """Return the law with all lengths."""
        return replace(self, lengths=LENGTHS)
