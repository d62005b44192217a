"""Answers of services whose responses carry ``success`` and ``message``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robot_dynid.errors import MESSAGE, DynIdError, clipped

Handler = Callable[[Any, Any], None]


def sendable(text: str) -> str:
    """Return a text that every message can carry: of bounded length, in UTF-8, without NUL.

    Names of files may hold bytes that are no text, which Python keeps as characters of its own.
    """
    return clipped(text.encode('utf-8', 'backslashreplace').decode().replace('\0', '\\0'), MESSAGE)


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
            logger.error(sendable(response.message))
        response.message = sendable(response.message)
        return response

    return answer
