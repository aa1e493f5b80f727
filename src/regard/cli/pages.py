"""Translations as one page of the explorer: each with its trace, opened where the model aligns its words."""

from collections.abc import Sequence

from regard.tasks.text_translator import Translation
from regard.trace.record.trace import Trace
from regard.views.explorer.page import PageTrace, page_html


def make_translations_page(title: str, translations: Sequence[tuple[str, Translation]]) -> str:
    """The page; each translation comes with its name."""
    held = [
        PageTrace(one.trace(), name, {"text": one.text, "next": None, "classes": None})  # as ModelOutput in messages.ts
        for name, one in translations
    ]
    first, *others = held
    start = alignment_address(translations[0][1], first.trace)
    return page_html(first.trace, name=first.name, output=first.output, others=others, title=title, first=start)


def alignment_address(one: Translation, trace: Trace) -> str:
    """The address of the sharpest head of the layer that aligns best, as the model's manifest says."""
    crossing = [number for number, layer in enumerate(trace.layers) if layer.kind != "self"]
    best = one.translator.facts.get("alignment", {}).get("layer", len(crossing) - 1)
    layer = crossing[min(int(best), len(crossing) - 1)]
    head = int(trace.layers[layer].weights[0].entropy().mean(-1).argmin())
    return f"#/layer={layer}&head={head}"
