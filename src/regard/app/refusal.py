"""What the server says no with: one sentence, and a status that fits."""

from regard.errors import RegardError


class Refusal(RegardError):
    """A request that is not answered, and why."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class Stopped(RegardError):
    """Somebody closed the connection while a model ran."""


def sentence_of(error: BaseException, what: str) -> str:
    """What went wrong, in one sentence: ours as it is, another library's in short.

    >>> sentence_of(IndexError("index out of range\\nin self"), "bert")
    'bert failed: IndexError: index out of range in self'
    """
    if isinstance(error, RegardError):
        return str(error)
    said = " ".join(str(error).split())
    return f"{what} failed: {type(error).__name__}{': ' if said else ''}{said[:300]}"
