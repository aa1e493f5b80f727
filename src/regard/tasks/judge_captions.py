"""How good captions are: BLEU-4, how many are right to the word, and whether each noun looked at what it names."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.caption_sets import CaptionSet
from regard.data.special import END
from regard.data.vocabulary import Vocabulary
from regard.models.open.read_pixels import PixelScaling
from regard.tasks.pointing import PointingCount, point
from regard.tasks.score import score_texts, tokenizer_for
from regard.tasks.write_captions import pad_captions, write_captions

AT_ONCE = 256  # pictures


class JudgedCaptions(NamedTuple):
    """The scores of captions, with what was written."""

    scores: dict[str, float]
    written: list[str]
    signature: str  # of BLEU


@torch.inference_mode()
def judge_captions(
    model: Any,
    pictures: CaptionSet,
    vocabulary: Vocabulary,
    scaling: PixelScaling,
    *,
    crop: bool,
    longest: int,
    beams: int = 1,
) -> JudgedCaptions:
    """BLEU-4, how many captions are right to the word, and how often the model points at what it names.

    Compared is what the vocabulary can say: lower-case where it is. Pointing is measured where objects are known, on
    the right caption.
    """
    device, config = next(model.parameters()).device, model.config
    written: list[str] = []
    hits, nouns = 0, 0
    for rows in np.array_split(np.arange(len(pictures)), -(-len(pictures) // AT_ONCE)):
        some = pictures.select(rows)
        pixels = some.pictures.load(config.image_height, config.image_width, config.channels, crop=crop)
        values = scaling.scale(pixels).to(device)
        written += [vocabulary.decode(one.ids) for one in write_captions(model, values, beams=beams, longest=longest)]
        if model.decoder.attention is not None and pictures.things is not None:
            for one in point_all(model, values, some, vocabulary):
                hits, nouns = hits + one.hits, nouns + one.nouns
    right = [[vocabulary.normalise(text) for text in pictures.captions_of(at)] for at in range(len(pictures))]
    tokenizer = tokenizer_for([text for texts in right for text in texts])
    scores = score_texts(written, right, tokenizer=tokenizer)
    exact = sum(text in texts for text, texts in zip(written, right)) / len(written)
    pointing = {"pointing": hits / nouns} if nouns else {}
    return JudgedCaptions({"bleu": scores.bleu, "exact": exact} | pointing, written, scores.bleu_signature)


def point_all(model: Any, values: Tensor, pictures: CaptionSet, vocabulary: Vocabulary) -> list[PointingCount]:
    """Where the model looks for the nouns of the right captions of these pictures."""
    every = range(len(pictures))
    ids = [[*one, END] for one in vocabulary.encode_batch([pictures.captions_of(at)[0] for at in every])]
    weights = model.write(values, pad_captions(ids)[0].to(values.device)).weights.cpu()
    stride, width = model.config.stride, model.config.image_width
    return [point(weights[at], pictures.things_of(at), stride, width) for at in every]
