"""What a model attends to when it reads a text: in the terminal, as a page, a figure, a trace, or as JSON."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.cli.harmless import format_json
from regard.cli.lengths import encode_within
from regard.cli.opening import load_named_model
from regard.cli.outputs import check_target, explain_write_errors
from regard.errors import ModelError, TraceError
from regard.models.failure import explain_failure
from regard.models.kinds import kind_of
from regard.models.t5 import T5
from regard.tasks.read_and_written import label_ids, trace_example
from regard.tasks.writing import write
from regard.tokens import as_tokenizer
from regard.trace.file import save
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from regard.views.static.trace_parts import choose, grid_of, labels_of, look, measure_sharpness
from regard.views.static.trace_terminal import print_trace

ENDINGS = (".html", ".svg", ".png", ".pdf", ".trace")
STEPS = 64  # tokens that an encoder and decoder write at most


def see(
    text: str,
    model: str,
    *,
    layer: str | None = None,
    head: int | None = None,
    to: Path | None = None,
    words: bool = False,
    length: int | None = None,
    download: bool = False,
    as_json: bool = False,
) -> str:
    """Watch the model read the text and show it; gives the next step in words, "" where another program reads."""
    check_target(to, ENDINGS)
    which = int(layer) if layer is not None and layer.removeprefix("-").isdecimal() else layer
    opened, tokenizer, *_ = load_named_model(model, download=download)
    if not isinstance(opened, T5):
        must_only_read(model, opened)
    trace = watch_text(opened, tokenizer, text, length)
    if to is not None:
        with explain_write_errors(to):
            write_file(trace, text, which, head, to, words=words)
    if as_json:
        print(format_json(as_records(trace, which, head, words=words)))
        return ""
    if to is not None:
        next_steps = {".trace": f" Look at it: regard summary {to}", ".html": " Open it in a browser."}
        return f"{to} is written.{next_steps.get(to.suffix.lower(), '')}"
    print_trace(trace, which, head, words=words)
    return next_step(trace, which, head)


def write_file(trace: Trace, text: str, layer: Any, head: int | None, to: Path, *, words: bool) -> None:
    """The trace as its file's ending says."""
    if to.suffix.lower() == ".trace":
        save(trace, to)
    elif to.suffix.lower() == ".html":
        write_explorer(trace, text, layer, head, to)
    else:
        from regard.views.static.trace_figure import figure

        figure(trace, layer, head, words=words, to=to)


def write_explorer(trace: Trace, text: str, layer: Any, head: int | None, to: Path) -> None:
    """The explorer over the trace, opened where it was asked to look."""
    from regard.views.explorer.page import page_html, write_page

    first = "" if layer is None else f"#/layer={trace.layers.index(choose(trace, layer))}&head={head or 0}"
    write_page(to, page_html(trace, name=text, first=first))


def must_only_read(name: str, model: nn.Module) -> None:
    """Refuse a kind of model that does not read one text: of a translator, its answer is half of what it reads."""
    kind = kind_of(model)
    if kind is None or "read" in kind.tasks:
        return
    if isinstance(model, T5):
        raise ModelError(
            f'{name} is a T5, which reads one text and writes another; see both with: regard see -m {name} "…"'
        )
    if "translate" in kind.tasks:
        raise ModelError(
            f"{name} is a translator, which reads one text and writes another; see both with: "
            f'regard translate -m {name} "…" --see'
        )
    if "summarise" in kind.tasks:
        raise ModelError(
            f"{name} is a summariser, which reads one text and writes another; see both with: "
            f'regard summarise "…" --model {name} --see'
        )
    reads = kind.reads if kind.reads == "numbers" else f"a {kind.reads}"
    raise ModelError(f"{name} is a {kind.name}, which reads {reads}, but a text came; watch it from Python")


def watch_text(model: nn.Module, tokenizer: Any, text: str, length: int | None = None) -> Trace:
    """The trace of the model reading the text; an encoder and decoder also write their answer to it."""
    if tokenizer is None:
        raise TraceError("this model has no tokenizer, so it cannot read a text; watch it from Python with its inputs")
    ids = torch.tensor([encode_within(text, model, tokenizer, length)])
    if not ids.numel():
        raise TraceError("the text is empty, so there is nothing to look at; give some words")
    if isinstance(model, T5):
        names, source = as_tokenizer(tokenizer), ids[0].tolist()
        return trace_example(model, label_ids(names, names, source, write(model, [source])[0].ids))
    writes = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    failed = f"the model failed on {ids.shape[1]:,} tokens"
    with explain_failure(failed, "; try fewer with --length"), torch.no_grad(), watch(model, tokenizer) as trace:
        if writes:
            model.generate(ids, max_new_tokens=STEPS)  # type: ignore[operator]
        else:
            model(ids)
    return trace


def as_records(trace: Trace, layer: Any, head: int | None, *, words: bool) -> dict[str, Any]:
    """One head with all its weights (null where hidden), or every head with how sharp it is, as plain values."""
    chosen = trace.layers if layer is None else [choose(trace, layer)]
    records: dict[str, Any] = {"model": trace.model, "notes": trace.notes, "layers": []}
    for one in (look(each, words=words) for each in chosen):
        queries, keys = labels_of(one, 1000)
        record: dict[str, Any] = {"layer": one.name, "kind": one.kind, "weights": one.weights.kind}
        record |= {"queries": queries, "keys": keys}
        if head is None:
            every = [measure_sharpness(one, number) for number in range(one.heads)]
            record["heads"] = [{"head": number, **each._asdict()} for number, each in enumerate(every)]
        else:
            grid, _ = grid_of(one.head(head), one.weights.shape[-2], one.weights.shape[-1])
            rows = [[None if value != value else value for value in row] for row in grid.tolist()]
            record |= {"head": head, "rows": rows}
        records["layers"].append(record)
    return records


def next_step(trace: Trace, layer: Any, head: int | None) -> str:
    """What to type next."""
    if head is not None:
        return "As a figure: --to head.svg. Words instead of pieces: --words."
    number = 0 if layer is None else trace.layers.index(choose(trace, layer))
    some = range(len(trace)) if layer is None else [number]
    looked = {at: look(trace.layers[at]) for at in some}
    _, at, best = min(
        (measure_sharpness(one, h).entropy, at, h) for at, one in looked.items() for h in range(one.heads)
    )
    return f"Look closer: --layer {at} --head {best}. As a figure: --to heads.svg"
