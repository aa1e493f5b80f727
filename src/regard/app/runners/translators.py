"""Models of our own that read one sequence and write another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import EditOf, RunAsk
from regard.app.runners.chances import divergence
from regard.app.runners.edits import edited, placed
from regard.app.runners.runner import Changed, Ran, RunMonitor, output
from regard.data.special import BEGIN, END, SPECIAL
from regard.models import store
from regard.models.seq2seq import Seq2Seq
from regard.models.tokenizer import WordTokenizer
from regard.tasks.read_and_written import ReadAndWritten, watched
from regard.tasks.text_translator import LONGEST, TextTranslator, must_look, open_translator
from regard.tasks.translate import SOURCE, shown
from regard.tasks.writing import write

BEAMS = 5
MOST = 400  # tokens that are written one by one without a cache


@runtime_checkable
class Speech(Protocol):
    """Text → ids that are read, ids that were written → text."""

    model: Any

    def read(self, text: str) -> list[int]: ...
    def told(self, ids: Sequence[int]) -> str: ...
    def shown(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten: ...


class Languages:
    """Of a translator with two vocabularies."""

    def __init__(self, interpreter: TextTranslator) -> None:
        must_look(interpreter)
        self.inner, self.model = interpreter, interpreter.model

    def read(self, text: str) -> list[int]:
        return self.inner.read(text)

    def told(self, ids: Sequence[int]) -> str:
        return self.inner.target.decode(ids)

    def shown(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten:
        return shown(self.inner.source, self.inner.target, text, ids, written)


class Symbols:
    """Of a model that copies, reverses or sorts: one vocabulary of plain words."""

    def __init__(self, folder: Path) -> None:
        self.model, self.words = store.read(folder), store.vocabulary_of(folder)
        self.tokenizer = WordTokenizer(self.words)

    def read(self, text: str) -> list[int]:
        ids = self.tokenizer.encode(text)
        if not ids:
            some = " ".join(self.words[len(SPECIAL) :][:4])
            raise Refusal(f"the text is empty; give some words, such as {some}").coded("text.words", words=some)
        if len(ids) > LONGEST:
            raise Refusal(
                f"the text has {len(ids):,} words, but at most {LONGEST:,} are read at once; shorten it"
            ).coded("text.longer", tokens=len(ids), limit=LONGEST)
        return [*ids, END]

    def told(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def shown(self, text: str, ids: Sequence[int], written: Sequence[int]) -> ReadAndWritten:
        return ReadAndWritten(ids, [self.words[i] for i in ids], written, [self.words[i] for i in written])


def speech_of(folder: Path) -> Speech:
    """Of a model in its folder."""
    return Languages(open_translator(folder)) if (folder / SOURCE).exists() else Symbols(folder)


def open_pair(name: str, folder: Path) -> "Translating":
    """The model in this folder, ready to run."""
    return Translating(speech_of(folder))


class Translating:
    """A model that reads one sequence and writes another."""

    def __init__(self, speech: Speech) -> None:
        self.speech, self.model = speech, speech.model
        self.stepwise = isinstance(speech.model, Seq2Seq)  # it looks once for each token that it writes

    @torch.no_grad()
    def run(self, ask: RunAsk, telling: RunMonitor) -> Ran:
        ids = self.speech.read(ask.text)
        telling.progress("translating", step="translating")
        written = write(self.model, [ids], beams=BEAMS)[0].ids
        telling.must_go_on()
        given = {"text": ask.text, "source": list(ids), "written": list(written)}
        trace = watched(self.model, self.fed(given))
        if ask.edits:
            changed = self.again(given, [layer.name for layer in trace.layers], ask.edits, telling)
            return Ran(changed.trace, changed.output, given)
        return Ran(trace, output(text=self.speech.told(written)), given)

    @torch.no_grad()
    def again(self, given: dict[str, Any], layers: list[str], edits: list[EditOf], telling: RunMonitor) -> Changed:
        """The map is of the same words as before; the texts are written anew, with and without the edits.

        Both are written greedily: the likeliest token each time.
        """
        fed = self.fed(given)
        with edited(self.model, layers, edits, stepwise=self.stepwise):
            trace = watched(self.model, fed)
        before = self.logits(fed)
        with edited(self.model, layers, edits, stepwise=self.stepwise):
            after = self.logits(fed)
        telling.must_go_on()
        texts = [self.freely(fed, layers, some, telling, whole=placed(edits)) for some in ([], edits)]
        kl = divergence(before, after)
        return Changed(trace, output(text=texts[1]), before_text=texts[0], after_text=texts[1], kl=kl)

    def fed(self, given: dict[str, Any]) -> ReadAndWritten:
        return self.speech.shown(given["text"], given["source"], given["written"])

    def logits(self, fed: ReadAndWritten) -> Tensor:
        found: Tensor = self.model(torch.tensor([list(fed.source)]), torch.tensor([[BEGIN, *fed.written]]))
        return found[0]

    def freely(
        self, fed: ReadAndWritten, layers: list[str], edits: list[EditOf], telling: RunMonitor, *, whole: bool
    ) -> str:
        """What the model writes under the edits.

        An edit of one position needs all positions in each call, so then nothing is taken from a cache.
        """
        if not whole:
            with edited(self.model, layers, edits, stepwise=self.stepwise):
                return self.speech.told(write(self.model, [list(fed.source)])[0].ids)
        most = min(MOST, 2 * len(fed.source) + 20)
        written: list[int] = []
        while len(written) < most:
            telling.must_go_on()
            reached = [one for one in edits if one.query is None or one.query <= self.length(layers, one, fed, written)]
            with edited(self.model, layers, reached, stepwise=self.stepwise):
                step = self.logits(fed._replace(written=written))[-1]
            step[[i for i in range(len(SPECIAL)) if i != END]] = -torch.inf
            chosen = int(step.argmax())
            if chosen == END:
                break
            written.append(chosen)
        return self.speech.told(written)

    def length(self, layers: list[str], one: EditOf, fed: ReadAndWritten, written: list[int]) -> int:
        """The last position that the layer of an edit has by now: one that is not there yet cannot be edited."""
        inside = one.layer < len(layers) and layers[one.layer].startswith("encoder")
        return len(fed.source) - 1 if inside else len(written)
