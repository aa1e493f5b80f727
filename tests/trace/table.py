"""docs/architectures.md: what is seen of each architecture, made from the looks of the test."""

from collections import Counter

from tests.trace.look import Look

TITLES = {
    "encoder": "Encoders of text",
    "decoder": "Decoders of text",
    "encoder-decoder": "Encoders with decoders",
    "vision": "Vision",
    "multimodal": "Vision with text",
    "audio": "Audio",
}


def table(looks: list[Look]) -> str:
    """The whole page in Markdown."""
    seen = [one for one in looks if one.layers]
    calls = Counter(layer.weights.kind for one in looks for layer in one.layers)
    lines = [
        "# Architectures that are tested",
        "",
        f"{len(looks)} architectures of the `transformers` library, small and with random weights, in float32. "
        f"{len(seen)} of them show maps, {calls.total()} in all: "
        f"{', '.join(f'{count} {kind}' for kind, count in calls.most_common())}.",
        "",
        "For each one a test holds that",
        "",
        "- outputs, gradients and the random state are bit for bit those of the model that is not watched;",
        "- every attention of a forward pass is seen exactly once, or refused by name;",
        "- a map that is *computed* equals the arithmetic of its q and k in float64 to 1e-6;",
        "- every map equals what the model returns for `output_attentions=True` under eager attention with the same "
        "weights to 1e-4, where it returns it;",
        "- `trace.verify()` proves every map.",
        "",
        "*Computed* means that any part is computed from q and k when somebody looks; *stored* that the weights were "
        "kept as the model computed them, because more than q and k decides them. This page is written by "
        "`tests/trace/test_zoo.py`. [The survey](survey.md) looks at several hundred more, with another judge.",
        "",
    ]
    for family, title in TITLES.items():
        lines += [
            f"## {title}",
            "",
            "| architecture | class | attention | maps | compared with |",
            "|---|---|---|---|---|",
        ]
        lines += [row(one) for one in looks if one.species.family == family]
        lines.append("")
    return "\n".join(lines)


def row(one: Look) -> str:
    """One architecture."""
    species = one.species
    kinds = Counter(layer.weights.kind for layer in one.layers)
    maps = [f"{count} {kind}" if len(kinds) > 1 or species.refused else kind for kind, count in kinds.items()]
    if species.refused:
        maps.append(f"refused: {species.refused}")
    own_and_cross = " + ".join(
        f"{count} {kind}" for kind, count in (("self", species.own), ("cross", species.cross)) if count
    )
    against = "eager" if one.layers and not species.silent else species.silent or "–"
    against = f"eager, run as eager: {species.apart}" if species.apart else against
    cells = [species.name, f"`{species.model}`", own_and_cross or "none", ", ".join(maps), against]
    return f"| {' | '.join(cells)} |"
