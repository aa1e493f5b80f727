"""Tokens of several rows as they are chosen, each row until it has ended by itself."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.decode import Limits, TokenIterator, TokenStep
from regard.models.decoder_state import DecoderState
from regard.tasks.generation import GenerationSettings
from regard.tasks.written_text import Alternative, RowInProgress, WrittenToken
from regard.tokens import TextTokenizer

AT_ONCE = 16  # prompts that are written side by side


class RowIterator(Iterator[list[WrittenToken]]):
    """The tokens of one step after the other, of the rows that are still written; a row that has ended leaves."""

    def __init__(self, tokens: TokenIterator, rows: Sequence[RowInProgress], tokenizer: TextTokenizer) -> None:
        self.tokens, self.rows, self.tokenizer = tokens, rows, tokenizer

    def __next__(self) -> list[WrittenToken]:
        step = next(self.tokens)
        numbers, listed = step.rows.tolist(), list_alternatives(step, self.tokenizer)
        said = [
            self.rows[number].add(token, log_prob, others)
            for number, token, log_prob, others in zip(
                numbers, step.tokens.tolist(), step.log_probs.tolist(), listed, strict=True
            )
        ]
        self.tokens.stop([number for number, token in zip(numbers, said) if token.stopped])
        return said


class TextStream(Iterator[WrittenToken]):
    """The tokens of one text, each as soon as it is chosen. `row` is what was written so far.

    The token that came last has not been read; `read_last` gives the logits of what would come after it.
    """

    def __init__(self, steps: DecoderState, iterator: RowIterator) -> None:
        self.steps, self.iterator, self.row = steps, iterator, iterator.rows[0]

    def __next__(self) -> WrittenToken:
        [token] = next(self.iterator)
        return token

    @torch.no_grad()
    def read_last(self) -> Tensor:
        """The logits (n,) of what comes after all that was written; of the end, where the model ended by itself."""
        logits = self.iterator.tokens.logits
        if self.row.has_ended and logits is not None:
            return logits[0]
        return self.steps(self.iterator.tokens.ids)[0]


def list_alternatives(step: TokenStep, tokenizer: TextTokenizer) -> list[tuple[Alternative, ...]]:
    """The likeliest tokens of each row by name."""
    if step.alternatives is None:
        return [()] * len(step.rows)
    pairs = zip(step.alternatives.ids.tolist(), step.alternatives.values.exp().tolist())
    return [tuple(map(Alternative, tokenizer.names(ids), ids, shares)) for ids, shares in pairs]


def make_chunks(
    lengths: Sequence[int], longest: Sequence[int], context: int | None, settings: GenerationSettings
) -> list[list[int]]:
    """Which prompts of these lengths are written side by side: the longest first, like with like.

    Padding before a shorter prompt takes room as well. The first tokens of all, which sinks keep, must stand in one
    place, and padding is not what a penalty counts as said: there only prompts of one length go together.

    >>> make_chunks([3, 9, 3, 5], [4, 4, 4, 4], None, GenerationSettings())
    [[1, 3, 0, 2]]
    >>> make_chunks([3, 9, 3, 5], [4, 4, 4, 4], 10, GenerationSettings())
    [[1], [3, 0, 2]]
    """
    chunks: list[list[int]] = []
    is_alone = settings.sinks > 0 or settings.repetition_penalty != 1
    for at in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        first = lengths[chunks[-1][0]] if chunks else 0
        alike = lengths[at] == first
        fits = context is None or settings.window is not None or first + longest[at] <= context
        if chunks and len(chunks[-1]) < AT_ONCE and (alike or (fits and not is_alone)):
            chunks[-1].append(at)
        else:
            chunks.append([at])
    return chunks


def read_texts(steps: DecoderState, texts: Sequence[Sequence[int]]) -> TokenIterator:
    """Steps that say these texts, whatever is likely: for the probability of each of their tokens."""

    def choose(logits: Tensor, alive: Tensor) -> Tensor:
        return alive.new_tensor([texts[row][reading.said] if texts[row] else 0 for row in alive.tolist()])

    reading = TokenIterator(steps, len(texts), Limits(longest=[len(text) for text in texts], end=None), choose)
    return reading


class JoinedEnds:
    """A `DecoderState` in which the first of several ids that end a text stands for all of them."""

    def __init__(self, steps: DecoderState, ends: Sequence[int]) -> None:
        self.steps, self.ends = steps, list(ends)
        self.left_padding = getattr(steps, "left_padding", None)

    def __call__(self, ids: Tensor) -> Tensor:
        logits = self.steps(ids).clone()
        together = logits[:, self.ends].logsumexp(-1)
        logits[:, self.ends] = -torch.inf
        logits[:, self.ends[0]] = together
        return logits

    def take_prompt(self, rows: int, steps: int) -> Tensor:
        """What the first step reads."""
        prompt: Tensor = self.steps.take_prompt(rows, steps)  # type: ignore[attr-defined]
        return prompt

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        self.steps.reorder(index)

    def attention(self) -> Tensor | None:
        """Where the last step looked in a source."""
        return self.steps.attention()
