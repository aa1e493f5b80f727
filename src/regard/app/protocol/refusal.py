"""What the server says no with: one sentence, and a status that fits."""

from regard.errors import RegardError


class Refusal(RegardError):
    """A request that is not answered, and why."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class RunStopped(RegardError):
    """Somebody closed the connection while a model ran."""


class WorkerError(Exception):
    """From a worker: its cause is no Exception, such as the panic of a library in Rust."""


def sentence_of(error: BaseException, what: str) -> str:
    """What went wrong, in one sentence: ours as it is, another library's in short.

    >>> sentence_of(IndexError("index out of range\\nin self"), "bert")
    'bert failed: IndexError: index out of range in self'
    """
    if isinstance(error, RegardError):
        return str(error)
    return f"{what} failed: {short(error)}"


def short(error: BaseException) -> str:
    """What another library says, in one line."""
    error = error.__cause__ or error if isinstance(error, WorkerError) else error
    line = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if line else ''}{line[:300]}"


def refusal_of(error: BaseException, model: str, status: int = 500) -> RegardError:
    """What is told of an error that came out of a model: ours as it is, another library's in short."""
    if isinstance(error, RegardError):
        return error
    return Refusal(sentence_of(error, model), status).with_code("model.failed", model=model, why=short(error))
