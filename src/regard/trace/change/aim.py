"""Where an edit aims: which layers, heads, queries and keys, as somebody names them."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.errors import WatchError
from regard.trace.doors.call_site import Tree

Named = tuple[int, ...] | slice | None  # positions or heads, as given; None is all of them
LISTED = 8  # names that an error lists at most


@dataclass(frozen=True)
class LayerName:
    """A name for one layer: a part of a module's path, and perhaps which of its calls in one run, `path#2`."""

    said: str
    path: str
    rule: int  # 0: the path of a module, 1: whole steps of a path, 2: any part of it
    call: int | None = None

    def fits(self, path: str, call: int) -> bool:
        """Whether this names the layer that the `call`-th call of the module at `path` is."""
        return (self.call is None or self.call == call) and RULES[self.rule](self.path, path)


RULES = (
    lambda part, path: path == part or path.startswith(f"{part}."),
    lambda part, path: f".{part}." in f".{path}.",
    lambda part, path: part in path,
)


def parts_of(path: Any, tree: Tree) -> tuple[LayerName, ...] | None:
    """The names in `path`: one, several, or None for every layer; each must be found in the tree."""
    if path is None:
        return None
    many = (path,) if isinstance(path, str) else tuple(path) if isinstance(path, Iterable) else (path,)
    if not all(isinstance(one, str) and one for one in many):
        raise WatchError(f"a layer is named by a part of its path, but {path!r} came; give a string or several")
    if not many:
        raise WatchError("no layer was named; give a part of a path, several, or None for every layer")
    return tuple(part_of(one, tree) for one in many)


def part_of(said: str, tree: Tree) -> LayerName:
    name, _, number = said.partition("#")
    if number and not (number.isdecimal() and int(number) > 0):
        raise WatchError(f"{said!r} names call {number!r} of a layer; count them from 1, as in path#2")
    call = int(number) if number else None
    paths = [path for path, _ in tree.values()]
    for rule, fits in enumerate(RULES):
        if any(fits(name, path) for path in paths if path):
            return LayerName(said, name, rule, call)
    root = next((type(module).__name__ for path, module in tree.values() if not path), "")
    if name == root:  # a model that is itself an attention layer has no path, and goes by its class in a trace
        return LayerName(said, "", 2, call)
    raise WatchError(f"no module is called {said!r}; {candidates(tree)}")


def candidates(tree: Tree) -> str:
    """Some names that would do: of modules that look like attention, else of the first ones."""
    looks = [path for path, module in tree.values() if path and "att" in f"{path} {type(module).__name__}".lower()]
    ends = [path for path in looks if not any(other.startswith(f"{path}.") for other in looks)] or looks
    whole = ends or [path for path, _ in tree.values() if path]
    if not whole:
        return "the model has no modules inside; leave the path out"
    more = f" and {len(whole) - LISTED} more" if len(whole) > LISTED else ""
    return f"there are: {', '.join(whole[:LISTED])}{more}"


def named_of(given: Any, what: str) -> Named:
    """Positions or heads as they may be given: a number, several, a slice, or None for all."""
    if given is None or isinstance(given, slice):
        return given
    listed = given.tolist() if hasattr(given, "tolist") else given
    listed = [listed] if not isinstance(listed, Iterable) or isinstance(listed, str) else list(listed)
    try:
        if any(isinstance(one, bool) for one in listed):
            raise TypeError
        found = tuple(map(operator.index, listed))
    except TypeError:
        raise WatchError(f"{what} is {given!r}; give a whole number, several, or a slice") from None
    if not found:
        raise WatchError(f"{what} names nothing; give a number, several, a slice, or leave it out for all")
    return found


def format_positions(named: Named) -> str:
    """As somebody would write it."""
    if isinstance(named, slice):
        parts = (named.start, named.stop) if named.step is None else (named.start, named.stop, named.step)
        return ":".join("" if part is None else str(part) for part in parts)
    if named is None:
        return "all"
    return str(named[0]) if len(named) == 1 else str(list(named))


def heads_of(named: Named, count: int, layer: str) -> Tensor:
    """The numbers of the heads that are meant, in order."""
    if named is None or isinstance(named, slice):
        return torch.tensor(sorted(range(count)[named or slice(None)]), dtype=torch.long)
    wrong = [head for head in named if not -count <= head < count]
    if wrong:
        raise WatchError(
            f"{layer} has {count} heads, but head {wrong[0]} was asked for; count from 0 to {count - 1}"
        ).with_code("head.none", layer=layer, heads=count, head=wrong[0])
    return torch.tensor(sorted({head % count for head in named}))


def places_of(named: Named, positions: Tensor, length: int) -> Tensor:
    """Which rows or columns are meant, where each stands at one of `length` positions, or nowhere (−1)."""
    if named is None:
        return (positions >= 0).nonzero()[:, 0]
    if isinstance(named, slice):
        found = list(range(*named.indices(length)))
    else:
        found = [place + length if place < 0 else place for place in named]
    wanted = torch.tensor([place for place in found if place >= 0], dtype=torch.long)
    return torch.isin(positions, wanted).nonzero()[:, 0]
