"""Arrays in kernels without counting the references to them.

Every view of an array, such as a row, is counted at its begin and its end by a call that no other
core may disturb. On rows of one sample that takes longer than the work.
"""

from __future__ import annotations

from typing import Any


def borrowed(arrays: Any) -> Any:
    """Return an array, or tuples of such, whose references are not counted in a kernel.

    Others hold the memory: whoever calls the kernel, or what `keep` names after the last use.
    """
    return arrays


def keep(arrays: Any) -> None:
    """Keep the memory of arrays, or tuples of such, up to here."""


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return compiled ``value`` of ``kind`` without the owners of its memory."""
    from numba.core import cgutils
    from numba.core.types import Array
    from numba.core.types.containers import BaseTuple

    if isinstance(kind, Array):
        array = context.make_array(kind)(context, builder, value)
        for owner in ('meminfo', 'parent'):
            setattr(array, owner, getattr(array, owner).type(None))
        return array._getvalue()
    if isinstance(kind, BaseTuple):
        parts = cgutils.unpack_tuple(builder, value)
        return context.make_tuple(builder, kind, [
            _uncounted(context, builder, own, part) for own, part in zip(kind, parts)])
    return value


def teach() -> None:
    """Tell the compiler what `borrowed` and `keep` mean in kernels."""
    from numba.core.types import void
    from numba.extending import intrinsic, overload

    @intrinsic
    def borrow(typing, arrays):
        def code(context, builder, signature, arguments):
            return _uncounted(context, builder, arrays, arguments[0])

        return arrays(arrays), code

    @intrinsic
    def use(typing, arrays):
        def code(context, builder, signature, arguments):
            return context.get_dummy_value()

        return void(arrays), code

    # not the functions themselves: numba compiles what these return
    overload(borrowed, jit_options={'forceinline': True})(
        lambda arrays: lambda arrays: borrow(arrays))  # noqa: PLW0108
    overload(keep, jit_options={'forceinline': True})(
        lambda arrays: lambda arrays: use(arrays))  # noqa: PLW0108
