"""A model and its tokenizer, as far as guessing tokens of a text needs them."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ModelError, RegardError, TraceError
from regard.models.context import max_tokens
from regard.models.failure import explain_failure
from regard.models.find_logits import find_logits
from regard.tokens import Reader, Tokens, as_tokenizer
from regard.tokens.mask_token import find_mask_id
from regard.trace.census.corpus import encode

Span = tuple[int, int]
LONGEST = 512  # tokens


class LanguageModel:
    """Ids in, a tensor for each of them out: logits over the vocabulary, or what else the model computes.

    >>> from regard.models.open.open_model import open_model
    >>> one = LanguageModel("induction", *open_model("induction"))
    >>> one.output(torch.tensor([one.encode("A B C A B")])).shape, one.predicts, one.mask_id
    (torch.Size([1, 5, 140]), True, None)
    """

    def __init__(self, name: str, model: nn.Module, tokenizer: Any) -> None:
        if tokenizer is None:
            raise ModelError(f"{name} has no tokenizer, so it cannot read a text; add its tokenizer files")
        self.name, self.tokenizer = name, tokenizer
        self.model: Any = model
        self.reader = Reader(tokenizer)
        self.predicts = False  # known after the first call, as is what is called:
        self.call: Callable[[Tensor], Any] = model

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with those that stand around it; refused where the model takes fewer."""
        ids = encode(text, self.tokenizer)[0]
        limit = max_tokens(self.model, self.tokenizer)
        if not ids:
            raise TraceError("the text is empty, so there is nothing to read; give some words")
        if limit is not None and len(ids) > limit:
            raise ModelError(
                f"the text has {len(ids):,} tokens, but {self.name} takes at most {limit:,}; give a shorter one"
            )
        if len(ids) > LONGEST:
            raise ModelError(
                f"the text has {len(ids):,} tokens for {self.name}, and each is masked once to be guessed, so at most "
                f"{LONGEST} are compared; give a shorter one"
            )
        return ids

    @torch.no_grad()
    def output(self, ids: Tensor) -> Float[Tensor, "b t n"]:
        """Logits where the model predicts tokens (then `predicts` is True), else its last hidden state."""
        found = self.run(self.call, ids)
        logits, states = find_logits(found), find_states(found)
        if states is None or states.shape[:2] != ids.shape:
            if self.call is self.model and hasattr(self.model, "hidden"):  # it answers for the whole text
                self.call = self.model.hidden
                return self.output(ids)
            raise ModelError(
                f"{self.name} gives no vector for each token, so it cannot be compared; give a GPT or a BERT"
            )
        self.predicts = logits is not None and logits.shape[-1] == self.vocabulary_size
        return logits if logits is not None and self.predicts else states

    def run(self, call: Callable[[Tensor], Any], ids: Tensor) -> Any:
        """What the model answers; its failure in one sentence."""
        with explain_failure(f"{self.name} failed on {ids.shape[1]:,} tokens"):
            return call(ids)

    @cached_property
    def vocabulary_size(self) -> int:
        """How many tokens there are, as the model's config says, else the tokenizer."""
        size = getattr(getattr(self.model, "config", None), "vocab_size", None)
        if isinstance(size, int):
            return size
        count: Callable[[], int] = getattr(self.tokenizer, "get_vocab_size", None) or self.tokenizer.__len__
        return count()

    @cached_property
    def mask_id(self) -> int | None:
        """The token that stands for a hidden word; None where there is none."""
        return find_mask_id(self.tokenizer)

    def choose(self, logits: Float[Tensor, " n"]) -> int:
        """The likeliest token that stands for text."""
        return int(logits.index_fill(0, self.special_ids, -torch.inf).argmax())

    @cached_property
    def special_ids(self) -> Tensor:
        """The tokens that stand for no text."""
        special = as_tokenizer(self.tokenizer).special
        return torch.tensor([token for token in sorted(special) if token < self.vocabulary_size], dtype=torch.long)

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """The ids as people read them."""
        return self.reader(list(ids))

    def is_special(self, ids: Sequence[int]) -> list[bool]:
        """Which of these stand for no text."""
        special = self.tokens(ids).special
        return [False] * len(ids) if special is None else list(special)

    def spans(self, text: str, ids: Sequence[int]) -> list[Span | None] | None:
        """Which characters of the text each id stands for, None for a special one; None where nobody can say."""
        places = [at for at, special in enumerate(self.is_special(ids)) if not special]
        try:
            known = as_tokenizer(self.tokenizer)
            plain, spans = known.encode(text), known.offsets(text)
        except RegardError:
            return None
        if [ids[at] for at in places] != plain[: len(places)]:
            return None
        found: list[Span | None] = [None] * len(ids)
        for at, span in zip(places, spans):
            found[at] = span
        return found


def find_states(output: Any) -> Tensor | None:
    """One vector for each token: the hidden states of an answer, or whatever else it has for each."""
    states = getattr(output, "last_hidden_state", None)
    return states if isinstance(states, Tensor) else find_logits(output)
