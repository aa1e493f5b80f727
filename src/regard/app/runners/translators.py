"""Models of our own that read one sequence and write another."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from regard.app.protocol.limits import must_fit
from regard.app.protocol.messages import EditSpec, RunRequest, RunStep
from regard.app.protocol.refusal import Refusal
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs, Runner
from regard.data.special import END, SPECIAL
from regard.errors import ModelError
from regard.models import store
from regard.models.open.open_model import open_model
from regard.models.seq2seq import Seq2Seq
from regard.models.tokenizer import WordTokenizer
from regard.tasks.read_and_written import ReadAndWritten, label_ids, name_tokens
from regard.tasks.text_translator import LONGEST, TextTranslator, check_looks_across, open_translator
from regard.tasks.translate import SOURCE
from regard.tasks.writing import ChooseText, WritingIds, write, writing_ids
from regard.tokens import as_tokenizer
from regard.trace.census.corpus import encode
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

BEAMS = 5
MOST = 400  # tokens that are written one by one without a cache


@runtime_checkable
class PairCodec(Protocol):
    """The texts of a model that reads one sequence and writes another: text → ids, ids → text, and tokens by name."""

    model: Any

    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def name(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten: ...


class LanguagePair:
    """Of a translator with two vocabularies."""

    def __init__(self, translator: TextTranslator) -> None:
        check_looks_across(translator)
        self.translator, self.model, self.longest = translator, translator.model, translator.longest
        self.choose = translator.choose

    def encode(self, text: str) -> list[int]:
        return self.translator.read(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.translator.target.decode(ids)

    def name(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten:
        return label_ids(self.translator.source, self.translator.target, ids, written)


class SymbolPair:
    """Of a model that copies, reverses or sorts: one vocabulary of plain words."""

    def __init__(self, folder: Path) -> None:
        self.model, self.words = store.read(folder), store.vocabulary_of(folder)
        self.tokenizer = WordTokenizer(self.words)

    def encode(self, text: str) -> list[int]:
        ids = self.tokenizer.encode(text)
        if not ids:
            some = " ".join(self.words[len(SPECIAL) :][:4])
            raise Refusal(f"the text is empty; give some words, such as {some}").with_code("text.words", words=some)
        if len(ids) > LONGEST:
            raise Refusal(
                f"the text has {len(ids):,} words, but at most {LONGEST:,} are read at once; shorten it"
            ).with_code("text.longer", tokens=len(ids), limit=LONGEST)
        return [*ids, END]

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def name(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten:
        return label_ids(self.tokenizer, self.tokenizer, ids, written)


class TokenizedPair:
    """Of a model with one tokenizer for what it reads and writes, such as a T5."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        if tokenizer is None:
            raise ModelError(
                f"{name} has no tokenizer beside it, so it cannot read a text; add its tokenizer files"
            ).with_code("model.mute", model=name)
        self.title, self.model, self.tokenizer, self.names = name, model, tokenizer, as_tokenizer(tokenizer)

    def encode(self, text: str) -> list[int]:
        ids = encode(text, self.tokenizer)[0] if text.strip() else []
        if not ids:
            raise Refusal("the text is empty, so there is nothing to look at; give some words").with_code("text.empty")
        must_fit(len(ids), LONGEST, self.title)
        end = writing_ids(self.model).end
        return ids if ids[-1] == end else [*ids, end]

    def decode(self, ids: Sequence[int]) -> str:
        return self.names.decode(ids)

    def name(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten:
        return label_ids(self.names, self.names, ids, written)


def open_text_to_text(name: str, folder: Path) -> "PairRunner":
    """The runner of a T5 in its folder."""
    return PairRunner(TokenizedPair(name, *open_model(folder)))


def open_pair(name: str, folder: Path) -> "PairRunner":
    """The runner of a model that reads one sequence and writes another, in its folder."""
    return PairRunner(LanguagePair(open_translator(folder)) if (folder / SOURCE).exists() else SymbolPair(folder))


class PairRunner(Runner):
    """An encoder and decoder: what it is fed while it is watched is its own translation, written before."""

    def __init__(self, codec: PairCodec, step: RunStep = "translating") -> None:
        self.codec, self.model, self.step = codec, codec.model, step
        self.longest: int | None = getattr(codec, "longest", None)  # tokens that it writes at most
        self.choose: ChooseText | None = getattr(codec, "choose", None)
        self.stepwise = isinstance(codec.model, Seq2Seq)  # it looks once for each token that it writes
        self.ids = writing_ids(codec.model)

    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        ids = self.codec.encode(request.text)
        monitor.progress(self.step, step=self.step)
        written = write(self.model, [ids], beams=BEAMS, longest=self.longest, choose=self.choose)[0].ids
        monitor.must_go_on()
        return {"text": request.text, "source": list(ids), "written": list(written)}

    @contextmanager
    def watch(self, inputs: Inputs) -> Iterator[Trace]:
        with watch(self.model) as trace:
            yield trace
        name_tokens(trace, self.codec.name(inputs["text"], inputs["source"], inputs["written"]))

    def forward(self, inputs: Inputs) -> Prediction:
        """Of every token that was written, and of the end."""
        logits = self.model(torch.tensor([inputs["source"]]), torch.tensor([[self.ids.begin, *inputs["written"]]]))[0]
        return Prediction(logits, lambda number: self.codec.decode([number]))

    def written_text(self, inputs: Inputs) -> str:
        return self.codec.decode(inputs["written"])

    def rewrite(
        self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor, *, whole: bool
    ) -> str:
        """Greedily: the likeliest token each time."""
        if whole:
            longest = self.longest or 2 * len(inputs["source"]) + 20
            again = rewrite_whole(self, inputs, layers, edits, monitor, longest=longest, special=self.ids)
            return self.codec.decode(again)
        with self.edit(layers, edits):
            return self.codec.decode(write(self.model, [inputs["source"]], longest=self.longest)[0].ids)


def rewrite_whole(
    runner: Runner,
    inputs: Inputs,
    layers: list[str],
    edits: list[EditSpec],
    monitor: RunMonitor,
    *,
    longest: int,
    special: WritingIds,
) -> list[int]:
    """An edit of one position needs all positions in each call, so nothing is taken from a cache."""
    written: list[int] = []
    while len(written) < min(MOST, longest):
        monitor.must_go_on()
        so_far = inputs | {"written": written}
        reached = [one for one in edits if one.query is None or one.query <= last_query(so_far, layers, one)]
        with runner.edit(layers, reached):
            prediction = runner.forward(so_far)
        assert prediction is not None
        step = prediction.logits[-1]
        step[[i for i in (*special.never, special.unknown) if i is not None]] = -torch.inf
        likeliest = int(step.argmax())
        if likeliest == special.end:
            break
        written.append(likeliest)
    return written


def last_query(inputs: Inputs, layers: list[str], one: EditSpec) -> int:
    """The last position that the layer of an edit has by now: one that is not there yet cannot be edited."""
    inside = one.layer < len(layers) and layers[one.layer].startswith("encoder")
    return len(inputs["source" if inside else "written"]) - inside
