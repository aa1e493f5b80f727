"""Open every door for one listener while a block lasts, and close them all behind it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from regard.attention.observe import OBSERVER
from regard.errors import WatchError
from regard.trace.doors.dispatcher import DOORS, open_products
from regard.trace.doors.elsewhere import OPEN
from regard.trace.doors.embedding import open_embedding
from regard.trace.doors.fastpath import open_fastpath
from regard.trace.doors.flex import open_flex
from regard.trace.doors.own import announce_attend
from regard.trace.doors.registry import open_registry
from regard.trace.doors.scope import SCOPE, Listener, ListenerScope

DOORS.others = [open_registry, open_fastpath, open_embedding]


@contextmanager
def listening(listener: Listener) -> Iterator[ListenerScope]:
    """Doors open, and this listener among those who hear in this context."""
    before = SCOPE.get()
    scope = ListenerScope((*(() if before is None else before.listeners), listener))
    with ExitStack() as undo:
        DOORS.open()
        undo.callback(DOORS.close)
        scope.above = not DOORS.hears_inference and torch.is_inference_mode_enabled()
        if scope.above:
            open_products(scope)
        modules = list(listener.modules())
        undo.callback(open_flex(modules))
        if is_compiled(modules):
            undo.enter_context(torch.compiler.set_stance("force_eager"))
        undo.callback(SCOPE.reset, SCOPE.set(scope))
        OPEN.append(mine := (threading.get_ident(), scope))
        undo.callback(OPEN.remove, mine)
        undo.callback(OBSERVER.reset, OBSERVER.set(announce_attend))
        try:
            yield scope
        finally:
            scope.candidates.clear()
            scope.sums = None
            scope.ledger.clear()
            scope.quiet(over=True)
            listener.release()


def must_be_watchable(model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise WatchError(f"a model is a torch.nn.Module, but {type(model).__name__} came; pass the module itself")
    if isinstance(model, nn.DataParallel):
        raise WatchError(
            "DataParallel runs copies of the model in other threads, which cannot be watched; watch model.module"
        )
    if next((p.is_meta for module in model.modules() for p in module._parameters.values() if p is not None), False):
        raise WatchError("the model is on the meta device and holds no numbers; load its weights first")


def is_compiled(modules: list[nn.Module]) -> bool:
    """Whether some part of the model runs compiled: then, while watched, it runs uncompiled (process-wide)."""
    for module in modules:
        own = module.__dict__
        if own.get("_compiled_call_impl") is not None or ("forward" in own and hasattr(own["forward"], COMPILED)):
            return True
    types = {type(module) for module in modules}
    return any(kind.__name__ == "OptimizedModule" for kind in types) or any(
        compiled_in(name) for name in {kind.__module__ for kind in types}
    )


COMPILED = "_torchdynamo_orig_callable"
SCANNED: dict[tuple[str, int], bool] = {}  # reading all names of a source file takes a while


def compiled_in(name: str) -> bool:
    """Whether a source file holds a compiled function."""
    names = vars(sys.modules[name]) if name in sys.modules and not name.startswith("torch.") else {}
    key = (name, len(names))
    if key not in SCANNED:
        SCANNED[key] = any(callable(value) and hasattr(value, COMPILED) for value in list(names.values()))
    return SCANNED[key]
