"""The exceptions of the package: one family, so callers can catch all of it at once."""


#: characters of a message; what a file holds is quoted in it, whatever its length
MESSAGE = 4000


def clipped(text: str, length: int = 80) -> str:
    """Return a text of at most ``length`` characters, the middle left out."""
    if len(text) <= length:
        return text
    half = (length - 5) // 2
    return f'{text[:half]} ... {text[-half:]}'


class DynIdError(Exception):
    """The data, the robot or the model does not allow what was asked (exit code 1)."""

    def __init__(self, message: str = '') -> None:
        super().__init__(clipped(message, MESSAGE))


class UsageError(DynIdError):
    """The call itself is wrong: an unknown name, an impossible option (exit code 2)."""


class RobotError(DynIdError):
    """The robot description is broken or describes something outside the scope."""


class DataError(DynIdError):
    """The recorded data cannot be used; the message names file, channel and remedy."""


class ModelError(DynIdError):
    """The identified model is incomplete, damaged or belongs to another robot."""


class MissingDependency(DynIdError):
    """An optional library is absent; the message says how to install it."""

    @classmethod
    def of(cls, purpose: str, extra: str) -> 'MissingDependency':
        """Return the error for ``purpose`` ("a report needs Plotly") and the extra with it."""
        return cls(f"{purpose}: pip install 'robot_dynid[{extra}]'")


class Cancelled(DynIdError):
    """The caller asked a long computation to stop."""


class RefusedJointWarning(UserWarning):
    """A model is used that has refused joints; the message names them and the reasons."""
