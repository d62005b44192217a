"""Requests for the friction law of an axis: a law, or a choice that leaves some out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robot_dynid.errors import UsageError
from robot_dynid.friction import ADDITIONS, LAWS, law_from

#: the choice that the data makes
AUTO = 'auto'
#: word between it and what it leaves out
WITHOUT = 'without'
#: the law that others are compared with
COULOMB = 'coulomb'
#: the law of axes that have none
NONE = 'none'


@dataclass(frozen=True)
class LawRequest:
    """The ``law`` of an axis by name, of which only shapes are chosen; '': the data chooses it.

    ``without`` are laws and additions that are not to be chosen; ``simplest`` is the law that the
    others have to improve on.
    """

    law: str = ''
    without: tuple[str, ...] = ()
    simplest: str = COULOMB

    @classmethod
    def of(cls, text: str) -> LawRequest:
        """Return the request of ``maxwell+load``, ``none``, ``auto``, ``auto without dahl load``.

        Raises UsageError for an unknown name.
        """
        first, *rest = text.replace(',', ' ').split() or ['']
        if first != AUTO:
            law_from(text)  # refuses an unknown one
            return cls(text)
        known = [*(name for name, law in LAWS.items()
                   if name not in (COULOMB, NONE) and not law.by_name), *ADDITIONS]
        if rest and (rest[0] != WITHOUT or not rest[1:] or not set(rest[1:]) <= set(known)):
            raise UsageError(
                f'friction {text!r}: write {AUTO}, or {AUTO} {WITHOUT} and the laws and additions '
                f'that are not to be chosen, such as {AUTO} {WITHOUT} dahl load; they are '
                f'{", ".join(known)}')
        return cls('', tuple(rest[1:]))

    @property
    def auto(self) -> bool:
        """Whether the data chooses the law."""
        return not self.law

    @property
    def base(self) -> str:
        """The law that is named, without its additions."""
        return self.law.split('+', maxsplit=1)[0]

    @property
    def searches(self) -> bool:
        """Whether anything is chosen or searched, for which the axis has to move both ways."""
        return self.auto or self.law not in (COULOMB, NONE)


def requests_of(requested: str | Sequence[LawRequest], axes: int) -> tuple[LawRequest, ...]:
    """Return the request of each of ``axes``, of a text that of all; raises UsageError."""
    if isinstance(requested, str):
        return (LawRequest.of(requested),) * axes
    return tuple(requested)
