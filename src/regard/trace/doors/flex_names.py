"""Where a model holds `flex_attention`: in its source files, in the files that help them, and in its modules."""

import sys
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from torch import nn


class HeldName(NamedTuple):
    """A dictionary of names, the name in it, and who owns the dictionary."""

    names: dict[str, Any]
    word: str
    owner: str


def unwrap(value: Any) -> Any:
    """What stands behind a name that is wrapped here; anything else is itself."""
    return getattr(value, "_regard_hears", value)


def means(value: Any, original: Any) -> bool:
    """Whether this is `flex_attention`, compiled or not, wrapped or not."""
    if value is original:
        return True
    if not isinstance(value, FunctionType):  # asking anything else for an attribute may run code of its own
        return False
    value = unwrap(value)
    return value is original or getattr(value, "_torchdynamo_orig_callable", None) is original


KNOWN: dict[tuple[str, int], tuple[list[str], list[str]]] = {}  # reading all names of a source file takes a while


def held_names(modules: list[nn.Module], original: Any) -> list[HeldName]:
    """Every place from which these modules may call `flex_attention`."""
    own = frozenset([kind.__module__ for kind in set(map(type, modules))])
    found = []
    for name in files_around(own, original):
        found += [HeldName(vars(sys.modules[name]), word, name) for word in read_file(name, original)[0]]
    functions = {FunctionType, type(original)}  # what else a module holds cannot mean it
    values = chain.from_iterable(map(dict.values, map(vars, modules)))
    for module in () if functions.isdisjoint(map(type, values)) else modules:
        names = module.__dict__
        found += [HeldName(names, word, f"module {id(module)}") for word in names if means(names[word], original)]
    return found


def files_around(own: frozenset[str], original: Any) -> list[str]:
    """The source files of a model and those that help them, of which some hold it; asked anew when one has changed."""
    files, sizes, holding = AROUND.get(own, ([], [], []))
    if not files or sizes_of(files) != sizes:
        wanted = {*own, "transformers.integrations.flex_attention", "torch.nn.attention.flex_attention"}
        for name in own:
            wanted.update(read_file(name, original)[1])
        files = sorted(wanted)
        holding = [name for name in files if read_file(name, original)[0]]
        AROUND[own] = (files, sizes_of(files), holding)
    return holding


AROUND: dict[frozenset[str], tuple[list[str], list[int], list[str]]] = {}


def sizes_of(files: list[str]) -> list[int]:
    """How many names each of these files has; −1 where it is not loaded."""
    return [-1 if source is None else len(source.__dict__) for source in map(sys.modules.get, files)]


def read_file(name: str, original: Any) -> tuple[list[str], list[str]]:
    """The names in a source file that mean it, and the files whose functions or names it uses."""
    source = sys.modules.get(name)
    if source is None:
        return [], []
    names = source.__dict__
    key = (name, len(names))
    known = KNOWN.get(key)
    if known is None or (known[0] and not all(means(names.get(word), original) for word in known[0])):
        values = list(names.items())
        files = {file_of(value) for _, value in values} - {"", name}
        words = [word for word, value in values if means(value, original)]
        KNOWN[key] = known = (words, sorted(file for file in files if not file.startswith("torch.")))
    return known


def file_of(value: Any) -> str:
    """The source file of a function, of a class, or of the functions in it; "" for anything else."""
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, FunctionType | type):
        return str(value.__module__ or "")
    return ""
