"""A causal language model with its tokenizer: a prompt in, what comes after it out, at once or token by token."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import torch

from regard.attention.observe import has_listeners, muted
from regard.decode import Limits, beam, stream
from regard.decode.replay import replay_once
from regard.errors import ConfigError, DataError, ModelError
from regard.models.decoder_state import DecoderState, Replayable
from regard.tasks.generation import GenerationSettings, make_settings
from regard.tasks.load_writer import load_writer
from regard.tasks.row_iterator import JoinedEnds, RowIterator, TextStream, make_chunks, read_texts
from regard.tasks.writable import begin, check_tokenizer, check_writes, find_context, find_ends, find_template
from regard.tasks.written_text import RowInProgress, WrittenText
from regard.tokens.protocol import as_tokenizer
from regard.trace.census.corpus import encode

if TYPE_CHECKING:
    from regard.tasks.chat import Chat


class TextWriter:
    """A model that writes, as `regard.open_writer` gives it, or of parts: any causal model of ours or of
    `transformers`, and the tokenizer of either library that belongs to it.

    `ends` are the ids that end a text, `template` renders conversations, `context` is how many tokens the model
    takes; all are found out where they are not given. `engine` is that of `CausalModel.begin`.

    >>> import regard
    >>> writer = regard.open_writer("induction")
    >>> writer.generate("the cat sees A B C . the", max_tokens=3).text
    ' cat sees A'
    >>> [(token.text, round(token.probability, 2)) for token in writer.stream("A B C A B", max_tokens=2)]
    [(' C', 1.0), (' A', 1.0)]
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "",
        ends: Sequence[int] | None = None,
        template: Any = None,
        context: int | None = None,
        engine: str | None = None,
    ) -> None:
        self.name = name or type(model).__name__
        check_writes(self.name, model)
        if tokenizer is None:
            raise ModelError(f"{self.name} has no tokenizer, so it cannot read a prompt; give its tokenizer")
        self.model, self.library_tokenizer, self.tokenizer = model, tokenizer, as_tokenizer(tokenizer)
        check_tokenizer(self.name, model, tokenizer)
        self.ends = frozenset(find_ends(model, tokenizer) if ends is None else ends)
        self.template: Any = find_template(tokenizer) if template is None else template
        self.engine = engine
        self.context = find_context(model, tokenizer) if context is None else context

    @overload
    def generate(self, prompts: str, settings: GenerationSettings | None = None, **changes: Any) -> WrittenText: ...
    @overload
    def generate(
        self, prompts: Sequence[str], settings: GenerationSettings | None = None, **changes: Any
    ) -> list[WrittenText]: ...
    def generate(
        self, prompts: str | Sequence[str], settings: GenerationSettings | None = None, **changes: Any
    ) -> WrittenText | list[WrittenText]:
        """What comes after a prompt, or after each of several; settings by name are those of `GenerationSettings`.

        Several prompts are written side by side, and each gets what it would get alone: what is drawn for it follows
        from `seed` and its own probabilities. Whoever watches the model hears one pass over each chunk of prompts and
        what was written after them.
        """
        chosen = make_settings(settings, changes)
        texts = [prompts] if isinstance(prompts, str) else list(prompts)
        rows = self.write_rows([self.read(text) for text in texts], chosen)
        written = [row.finish(text) for row, text in zip(rows, texts)]
        return written[0] if isinstance(prompts, str) else written

    def stream(
        self, prompt: str, settings: GenerationSettings | None = None, *, alternatives: int = 0, **changes: Any
    ) -> "TextStream":
        """The tokens that come after a prompt, each as soon as it is chosen, with as many `alternatives` as asked for.

        The texts of the tokens, joined, are that of `generate` with the same settings and seed. Whoever watches the
        model hears each step.
        """
        return self.stream_ids(self.read(prompt), make_settings(settings, changes), alternatives=alternatives)

    def chat(self, system: str | None = None, settings: GenerationSettings | None = None, **changes: Any) -> "Chat":
        """A conversation in turns, rendered by the chat template of the model."""
        from regard.tasks.chat import Chat

        return Chat(self, system, make_settings(settings, changes))

    def read(self, prompt: str) -> list[int]:
        """The ids of a prompt, with the special tokens that its tokenizer puts before a text."""
        if not prompt:
            raise DataError("the prompt is empty, so there is nothing to go on from; give some words").with_code(
                "text.empty"
            )
        ids = encode(prompt, self.library_tokenizer)[0]
        while ids and ids[-1] in self.ends:  # a tokenizer may end every text that it reads
            ids.pop()
        if not ids:
            raise DataError(f"the prompt {prompt[:40]!r} has no token in it; give some words").with_code("text.empty")
        return ids

    # From ids on

    def stream_ids(
        self,
        ids: Sequence[int],
        settings: GenerationSettings,
        *,
        alternatives: int = 0,
        steps: DecoderState | None = None,
    ) -> TextStream:
        """`stream` after these ids; `steps` is a state that has read some of them and gives the rest as its prompt."""
        if settings.beams > 1:
            raise ConfigError(
                f"{settings.beams} beams came, but a search knows its text only at its end, so no token can be "
                "streamed; give beams=1, or call generate"
            )
        row = self.make_row(ids, settings)
        if steps is None:
            steps = begin(self.model, [ids], settings, self.engine)
        return TextStream(steps, self.iterate(steps, [row], settings, alternatives))

    def write_rows(self, rows: Sequence[Sequence[int]], settings: GenerationSettings) -> list[RowInProgress]:
        """What comes after each row of ids, several side by side where they fit."""
        written = [self.make_row(ids, settings) for ids in rows]
        for chunk in make_chunks([len(ids) for ids in rows], [row.longest for row in written], self.context, settings):
            ids, some = [rows[at] for at in chunk], [written[at] for at in chunk]
            with muted():  # who watches hears one pass over all that was written
                steps = begin(self.model, ids, settings, self.engine)
            if has_listeners() and not isinstance(steps, Replayable):
                steps = begin(self.model, ids, settings, self.engine)
            if settings.beams > 1:
                self.search(steps, ids, some, settings)
                continue
            with replay_once(steps, 0) as keep:
                for _ in self.iterate(steps, some, settings):
                    pass
                keep([row.ids for row in some])
        return written

    def make_row(self, ids: Sequence[int], settings: GenerationSettings) -> RowInProgress:
        """A row that has nothing written yet, and how long it may become."""
        room = None
        if self.context is not None and settings.window is None:
            if len(ids) > self.context:
                raise ModelError(
                    f"the prompt has {len(ids):,} tokens, but {self.name} takes at most {self.context:,}; shorten it"
                ).with_code("text.longer", tokens=len(ids), limit=self.context)
            room = self.context - len(ids) + (settings.beams == 1)  # the last token is not read, but by a search
        longest = min((one for one in (room, settings.max_tokens) if one is not None), default=None)
        if longest is None:
            raise ConfigError("max_tokens is None, but nothing else ends this text either; give a number")
        return RowInProgress(self.tokenizer, ids, settings, longest=longest, ends=self.ends)

    def iterate(
        self, steps: DecoderState, rows: list[RowInProgress], settings: GenerationSettings, alternatives: int = 0
    ) -> RowIterator:
        """The loop of `regard.decode.stream` over these rows."""
        tokens = stream(
            steps,
            len(rows),
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            min_p=settings.min_p,
            repetition_penalty=settings.repetition_penalty,
            generator=[torch.Generator().manual_seed(row.seed or 0) for row in rows],
            alternatives=alternatives,
            limits=Limits(longest=[row.longest for row in rows], end=None),
        )
        return RowIterator(tokens, rows, self.tokenizer)

    def search(
        self,
        steps: DecoderState,
        ids: Sequence[Sequence[int]],
        rows: list[RowInProgress],
        settings: GenerationSettings,
    ) -> None:
        """The best text that beams find for each row; a second reading gives the probability of each token."""
        ends = sorted(self.ends)
        found = beam(
            JoinedEnds(steps, ends) if len(ends) > 1 else steps,
            len(rows),
            beams=settings.beams,
            repetition_penalty=settings.repetition_penalty,
            limits=Limits(longest=[row.longest for row in rows], end=ends[0] if ends else None, never=()),
        )
        texts = [[*best[0].ids, *ends[:1]][: row.longest] for best, row in zip(found, rows)]
        with muted():
            again = begin(self.model, ids, settings, self.engine)
            for _ in RowIterator(read_texts(again, texts), rows, self.tokenizer):
                pass

    def __repr__(self) -> str:
        return f"TextWriter({self.name}, context {self.context})"


def open_writer(
    name: str | os.PathLike[str] = "writer",
    *,
    ours: bool = True,
    download: bool = False,
    engine: str | None = None,
    quantized: bool | None = None,
) -> TextWriter:
    """The causal language model of this name, ready to write: an embedded one (`regard models`), a folder, a GGUF file,
    or a name of the hub, as `regard.open_model` opens them; `ours=False` takes the class of `transformers`.

    `engine` is that of `CausalModel.begin`. With `quantized` a GGUF file is computed with its codes as they are, which
    needs regard[fast] and cannot be watched; without, its weights are unpacked. None chooses the former where it can
    be and no other engine was asked for.

    >>> open_writer("en-zh-grammar")
    Traceback (most recent call last):
    regard.errors.ModelError: en-zh-grammar is a translator, which does not go on with a text; translate with...
    """
    as_codes = engine in (None, "fast") if quantized is None else quantized
    loaded = load_writer(name, ours=ours, download=download, quantized=as_codes)
    return TextWriter(
        loaded.model,
        loaded.tokenizer,
        name=os.path.basename(os.path.normpath(name)),
        ends=loaded.end_ids or None,
        template=loaded.chat_template,
        engine=engine,
    )
