"""The few errors of our own. Each message is one sentence: what came, what was wanted, what to do.

>>> import regard
>>> try:
...     regard.padding([3, -1])
... except regard.errors.MaskError as error:
...     print(error)
a length is -1, but lengths count keys; give 0 or more
"""

from typing import Any, TypeVar

Failed = TypeVar("Failed", bound="RegardError")


class RegardError(Exception):
    """Whatever goes wrong on purpose in this package.

    Those that a page may show also have a `code`, and the values of which their sentence speaks: by these the page
    says it in its reader's language (`code.…` in web/src/language). Where the code is "", the sentence is all.
    """

    code: str = ""

    def with_code(self: Failed, code: str, **about: Any) -> Failed:
        """The same error, with a code.

        >>> error = RegardError("the text is empty; give some words").with_code("text.empty")
        >>> error.to_json()
        {'error': 'the text is empty; give some words', 'code': 'text.empty', 'about': {}}
        """
        self.code, self.about = code, about
        return self

    def to_json(self) -> dict[str, Any]:
        """As it goes to a page: the sentence, and its code where there is one."""
        return {"error": str(self), **({"code": self.code, "about": self.about} if self.code else {})}


def is_failure(error: BaseException) -> bool:
    """Whether something failed, as against somebody wanting to stop: an Exception, or the panic of a Rust library.

    A panic reaches Python as a BaseException (pyo3_runtime.PanicException), which `except Exception` lets through.

    >>> is_failure(ValueError()), is_failure(KeyboardInterrupt())
    (True, False)
    """
    return isinstance(error, Exception) or type(error).__module__ == "pyo3_runtime"


class ShapeError(RegardError, ValueError):
    """Sizes that do not fit each other."""


class DtypeError(RegardError, TypeError):
    """A tensor, or a number, of a kind that cannot be used here."""


class DeviceError(RegardError, ValueError):
    """Tensors that live on different devices."""


class MaskError(RegardError, ValueError):
    """A mask that is ambiguous or does not fit the queries and keys."""


class Stale(RegardError, RuntimeError):
    """A map looked at after the tensors that it is computed from were changed: no number rather than a wrong one."""


class MapError(RegardError, ValueError):
    """A question that this attention map cannot answer."""


class PathError(RegardError, ValueError):
    """A way of computing that cannot honour what was asked of it."""


class PositionError(RegardError, ValueError):
    """A position beyond what a position encoding knows."""


class CacheError(RegardError, ValueError):
    """A key/value cache used beyond what it holds."""


class TraceError(RegardError, ValueError):
    """A trace that does not hold what was asked of it, or a file that is no whole trace."""


class WatchError(RegardError, RuntimeError):
    """A model that cannot be watched or edited, and why.

    >>> import regard, torch
    >>> try:
    ...     with regard.watch(torch.nn.Linear(2, 3)) as trace:
    ...         pass
    ... except regard.WatchError as error:
    ...     print(str(error).split(":")[0])
    the watch saw no attention
    """


class ModelError(RegardError, ValueError):
    """A model, or a text for it, that cannot be opened or read, and why."""


class DataError(RegardError, ValueError):
    """Data that cannot be read or does not fit together, and where."""


class ConfigError(RegardError, ValueError):
    """A setting that does not exist, or a value that it cannot have."""


class RunError(RegardError, RuntimeError):
    """A training run that cannot begin, go on or be read, and why."""
