"""The exceptions of the package: one family, so callers can catch all of it at once."""


class DynIdError(Exception):
    """The data, the robot or the model does not allow what was asked (exit code 1)."""


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
