"""The explorer in a notebook: a widget whose questions the kernel answers. Nothing is sent that nobody asked for."""

import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, TraceError
from regard.extras import NOTEBOOK, importing
from regard.trace.record.trace import Path, Trace
from regard.views.explorer.bundle import read_bundle
from regard.views.explorer.page_data import dump_safe_json
from regard.views.explorer.still import still_html

if TYPE_CHECKING:
    from anywidget import AnyWidget

HEIGHT = 560  # pixels
TALL = 4000  # more than any screen


def see(trace: Trace, layer: Path | None = None, head: int | None = None, *, height: int = HEIGHT) -> "AnyWidget":
    """A widget that shows the trace, opened at a layer and head.

    It lives while the kernel does: tiles, rows and numbers are computed here whenever somebody looks.
    """
    first = _find_place(trace, layer, head)
    if not 0 < height <= TALL:
        raise TraceError(f"a height of {height} pixels was asked for; give 1 to {TALL}")
    return _widget_class()(trace, *first, height)


def _find_place(trace: Trace, layer: Path | None, head: int | None) -> tuple[int, int]:
    """Which layer and head are opened, counted from 0; −1 where the reader has not said."""
    if not trace.layers:
        raise TraceError("the trace holds no layer, so there is nothing to see; watch a call of the model first")
    if layer is None and head is None:
        return -1, -1
    layers = trace.layers
    wanted = layers[0] if layer is None else trace[layer]
    number = next(i for i, one in enumerate(layers) if one is wanted)
    if head is not None and not 0 <= head < wanted.heads:
        raise TraceError(f"head {head} was asked for, but {wanted.name} has {wanted.heads}; count from 0")
    return number, -1 if head is None else head


@lru_cache(maxsize=1)
def _widget_class() -> "type[AnyWidget]":
    """The class of the widget; made when the first one is wanted, because anywidget is an extra."""
    missing = RegardError("to see it in a notebook, install regard[notebook]: pip install 'regard[notebook]'")
    with importing(*NOTEBOOK, missing=missing):
        import anywidget
        import traitlets

    class Explorer(anywidget.AnyWidget):
        info = traitlets.Unicode().tag(sync=True)  # JSON that stays text, also in a page made of the notebook
        layer = traitlets.Int(-1).tag(sync=True)
        head = traitlets.Int(-1).tag(sync=True)
        height = traitlets.Int(HEIGHT).tag(sync=True)
        place = traitlets.Unicode().tag(sync=True)  # all that is picked, as in a link; a second view begins there
        still = traitlets.Unicode().tag(sync=True)  # by which a live view finds the still picture, and hides it

        def __init__(self, trace: Trace, layer: int, head: int, height: int) -> None:
            from regard.views.explorer.answer import Answers

            self._trace, self._answers = trace, Answers(trace)
            self._esm = read_bundle()
            super().__init__(
                info=dump_safe_json(self._answers.info()), layer=layer, head=head, height=height, still=uuid.uuid4().hex
            )
            self.on_msg(self._on_message)

        def _ipython_display_(self, **_: Any) -> None:
            """Two outputs: a still picture, which needs no kernel, and the explorer, which hides it while it is alive.

            One output with both would not do: notebooks and their exporters then choose the explorer, kernel or not.
            """
            from IPython.display import display

            still = still_html(self._trace, self.layer, self.still)
            display({"text/html": still, "text/plain": repr(self._trace)}, raw=True)
            live = self._repr_mimebundle_()
            data, about = live if isinstance(live, tuple) else (live, {})
            if data is not None:
                display({**data, "text/plain": "(explorer)"}, metadata=about, raw=True)

        def _on_message(self, _: object, content: Any, buffers: object) -> None:
            number = content.get("ask") if isinstance(content, dict) else None
            if not isinstance(number, int):
                return  # nobody would know whose answer it is
            if content.get("what") == "hello":
                self.send({"answer": number})
                return
            try:
                answer = self._answers.ask(str(content.get("what")), dict(content.get("about") or {}))
            except Exception as error:
                # Whatever went wrong is said where the reader looks; a traceback in a log helps nobody there.
                self.send({"answer": number, **_describe_error(error)})
            else:
                self.send({"answer": number}, [answer])

    return Explorer


def _describe_error(error: Exception) -> dict[str, Any]:
    if not isinstance(error, RegardError):
        why = f"{type(error).__name__}: {error}"
        error = RegardError(f"Python could not answer: {why}").with_code("kernel.failed", why=why)
    return {key: _replace_surrogates(value) for key, value in error.to_json().items()}


def _replace_surrogates(value: Any) -> Any:
    """Half a surrogate pair in a name is no UTF-8, which a message must be."""
    if isinstance(value, dict):
        return {key: _replace_surrogates(one) for key, one in value.items()}
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
