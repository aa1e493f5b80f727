"""The scores of a trained captioner, on scenes it never saw or on any pictures with captions."""

from pathlib import Path
from typing import Any

from regard.data.caption_sets import CaptionSet, make_shapes, read_captions
from regard.errors import DataError
from regard.tasks.caption import SHAPES, CaptionOptions, CaptionSettings, find_captions
from regard.tasks.judge_captions import judge_captions
from regard.tasks.picture_captioner import PictureCaptioner, open_captioner
from regard.training.settings import settings_from


def evaluate_captioner(folder: Path, options: CaptionOptions) -> dict[str, Any]:
    """BLEU-4, the share of captions that are right to the word, and pointing where objects are known."""
    opened = open_captioner(folder)
    pictures = choose_captions(opened, options)
    found = judge_captions(
        opened.model, pictures, opened.words, opened.scaling, crop=opened.crop, longest=opened.longest,
        beams=options.beams,
    )  # fmt: skip
    samples = [
        {"picture": pictures.pictures.names(at), "written": found.written[at], "right": pictures.captions_of(at)[0]}
        for at in range(min(options.samples, len(pictures)))
    ]
    told = {"task": "caption", "pictures": len(pictures), "beams": options.beams, "scores": found.scores}
    return told | {"signature": found.signature, "samples": samples}


def choose_captions(opened: PictureCaptioner, options: CaptionOptions) -> CaptionSet:
    """The pictures to judge by: never those that the model learned from."""
    settings = settings_from(CaptionSettings, opened.facts.get("settings") or {})
    data = options.data or settings.data
    if data == SHAPES:
        return make_shapes(options.count, seed=settings.seed, part=options.part)
    if options.data:
        return read_captions(Path(data))
    if not Path(data).exists():
        raise DataError(f"the pictures that this model was trained on are not here ({data}); name some with --data")
    return find_captions(settings).validation


def report_captions(result: dict[str, Any]) -> str:
    """Samples and scores, as a terminal shows them."""
    lines = [f"{one['picture']}\n  → {one['written']}\n  = {one['right']}" for one in result["samples"]]
    scores, beams = result["scores"], result["beams"]
    pointing = f"  pointing {scores['pointing']:.1%}" if "pointing" in scores else ""
    how = "greedy" if beams == 1 else f"{beams} beams"
    lines.append(
        f"\nBLEU-4 {scores['bleu']:.2f}  exactly right {scores['exact']:.1%}{pointing}  "
        f"({result['pictures']:,} pictures, {how})\n  {result['signature']}"
    )
    return "\n".join(lines)
