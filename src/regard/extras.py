"""Libraries that come with an extra: what to install where one is missing, and the real cause where one is broken."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from regard.errors import RegardError

APP = ("fastapi", "starlette", "uvicorn", "websockets", "h11", "anyio")
HF = ("transformers", "huggingface_hub", "tokenizers", "safetensors")
GGUF = ("gguf", "jinja2")
NOTEBOOK = ("anywidget", "traitlets", "ipywidgets")


@contextmanager
def importing(*packages: str, missing: RegardError) -> Iterator[None]:
    """A block that imports these packages: `missing` is raised where one of them is not installed.

    A package that is installed and fails, or lacks something of its own, is told as that: whoever is sent to install
    it again and again learns nothing.

    >>> with importing("no_such", missing=RegardError("install regard[such]: pip install 'regard[such]'")):
    ...     import no_such
    Traceback (most recent call last):
    regard.errors.RegardError: install regard[such]: pip install 'regard[such]'
    """
    try:
        yield
    except ImportError as error:
        if is_missing(error, packages):
            raise missing from error
        raise type(missing)(
            f"{packages[0]} is installed but cannot be imported ({type(error).__name__}: {error}); install it again, "
            "or what it lacks"
        ) from error


def load_named(path: str) -> Any:
    """What "module:name" stands for, imported now. Registries name classes so, and load none before it is used.

    >>> load_named("math:pi")
    3.141592653589793
    """
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def is_missing(error: ImportError, packages: tuple[str, ...]) -> bool:
    """Whether an import failed because one of these packages is not there.

    >>> is_missing(ModuleNotFoundError("no", name="sacrebleu.metrics"), ("sacrebleu",))
    True
    >>> is_missing(ModuleNotFoundError("no", name="lxml"), ("sacrebleu",))
    False
    >>> is_missing(ImportError("DLL load failed", name="sacrebleu"), ("sacrebleu",))
    False
    """
    return isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in packages
