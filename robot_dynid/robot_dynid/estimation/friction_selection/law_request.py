"""Requests for the friction law of an axis: a law, or an automatic choice with exclusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robot_dynid.errors import UsageError
from robot_dynid.friction import ADDITIONS, LAWS, law_from

#: the law is chosen from the data
AUTO = 'auto'
#: keyword before the exclusions
WITHOUT = 'without'
#: reference law of the comparison
COULOMB = 'coulomb'
#: law of axes without friction
NONE = 'none'


@dataclass(frozen=True)
class LawRequest:
    """A friction law by name, of which only shapes are chosen; '': the data chooses the law.

    `without` are excluded laws and additions; `simplest` is the law that the others have to
    improve on.
    """

    law: str = ''
    without: tuple[str, ...] = ()
    simplest: str = COULOMB

    @classmethod
    def of(cls, text: str) -> LawRequest:
        """Return the request for texts such as ``maxwell+load``, ``none``, ``auto without dahl``.

        Raises UsageError for an unknown name.
        """
        first, *rest = text.replace(',', ' ').split() or ['']
        if first != AUTO:
            law_from(text)  # refuses an unknown law
            return cls(text)
        candidates = [*(name for name, law in LAWS.items()
                   if name not in (COULOMB, NONE) and not law.by_name), *ADDITIONS]
        if rest and (rest[0] != WITHOUT or not rest[1:] or not set(rest[1:]) <= set(candidates)):
            raise UsageError(
                f'friction {text!r}: write {AUTO}, or {AUTO} {WITHOUT} and the laws and additions '
                f'that are not to be chosen, such as {AUTO} {WITHOUT} dahl load; they are '
                f'{", ".join(candidates)}')
        return cls('', tuple(rest[1:]))

    @property
    def auto(self) -> bool:
        """True if the data chooses the law."""
        return not self.law

    @property
    def base(self) -> str:
        """Name of the law without its additions."""
        return self.law.split('+', maxsplit=1)[0]

    @property
    def searches(self) -> bool:
        """True if a law or shape is chosen from the data; the axis must then move both ways."""
        return self.auto or self.law not in (COULOMB, NONE)


def requests_of(requested: str | Sequence[LawRequest], axes: int) -> tuple[LawRequest, ...]:
    """Return the request of each of `axes`; a text counts for all. Raises UsageError."""
    if isinstance(requested, str):
        return (LawRequest.of(requested),) * axes
    return tuple(requested)
