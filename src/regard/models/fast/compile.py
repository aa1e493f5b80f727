"""How kernels are compiled: without the interpreter's lock, and once per machine."""

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be taken in any order and products fused; infinities and NaN keep their meaning, as masks and overflow need.
LOOSE = {"reassoc", "contract", "arcp", "nsz"}
SOURCES = ("attention", "code_products", "compile", "float_products", "products", "share", "step", "tables", "vectors")
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": LOOSE, "error_model": "numpy"}
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # nobody outside calls it


def kernel(function: Function) -> Function:
    """A function that other kernels call, too long to be copied into each of them."""
    return cast(Function, njit(**OPTIONS, **INNER)(inspect.unwrap(function)))


def inline_kernel(function: Function) -> Function:
    """A function whose instructions are copied to wherever it is called."""
    return cast(Function, njit(**OPTIONS, **INNER, forceinline=True)(inspect.unwrap(function)))


def entry_kernel(function: Function) -> Function:
    """A function that Python calls: compiled once per machine and kept on disk, beside it or in the user's cache."""
    return cast(Function, njit(**OPTIONS, cache=True)(inspect.unwrap(function)))


def operation(function: Callable[..., Any]) -> Any:
    """A function that says its type and writes its own instructions (`numba.extending.intrinsic`)."""
    return intrinsic(inspect.unwrap(function))


def fingerprint() -> str:
    """What the sources of all kernels are: numba by itself looks only at the file of the function that Python calls."""
    text = b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in SOURCES)
    return hashlib.sha256(text).hexdigest()
