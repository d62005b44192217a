"""Answers of services whose responses carry ``success`` and ``message``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robot_dynid.errors import DynIdError

Handler = Callable[[Any, Any], None]


def answered(handler: Handler, logger: Any) -> Callable[[Any, Any], Any]:
    """Return a service callback that lets ``handler(request, response)`` fill the response.

    Whatever goes wrong becomes its message, with ``success`` false: the node outlives every
    request.
    """
    def answer(request: Any, response: Any) -> Any:
        response.success = True
        try:
            handler(request, response)
        except DynIdError as error:
            response.success, response.message = False, str(error)
        except Exception as error:
            response.success = False
            response.message = f'unexpected {type(error).__name__}: {error}'
            logger.error(response.message)
        return response

    return answer
