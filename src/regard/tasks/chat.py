"""A conversation with a model, turn by turn: each turn reads only what is new."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.errors import CacheError, DataError, ModelError
from regard.models.decoder_state import DecoderState
from regard.tasks.generation import GenerationSettings, make_settings
from regard.tasks.writable import begin
from regard.tasks.written_text import WrittenText, WrittenToken
from regard.tokens.protocol import call_plainly

if TYPE_CHECKING:
    from regard.tasks.text_writer import TextWriter

Message = dict[str, str]  # "role" (system, user, assistant) and "content"


class Chat:
    """The turns so far, and the state of the model that has read them.

    What the model has read is kept from turn to turn. A turn is rendered whole by the chat template; as far as its
    ids begin with those that were read, nothing is read again, and the rest is forgotten.
    """

    def __init__(self, writer: "TextWriter", system: str | None, settings: GenerationSettings) -> None:
        if writer.template is None:
            raise ModelError(
                f"{writer.name} has no chat template, so it was not made for conversations; give it a prompt to go on "
                "with instead (regard generate)"
            )
        self.writer, self.settings, self.system = writer, settings, system
        self.reset()

    def reset(self) -> None:
        """Forget every turn; the system message stays."""
        self.messages: list[Message] = [] if self.system is None else [{"role": "system", "content": self.system}]
        self.kept: KeptState | None = None

    def send(self, message: str, settings: GenerationSettings | None = None, **changes: Any) -> WrittenText:
        """The answer to a message, which becomes a turn of the conversation together with it."""
        chosen = make_settings(settings or self.settings, changes)
        if chosen.beams == 1:
            for _ in self.stream(message, chosen):
                pass
        else:
            ids = self.ask(message)
            [row] = self.writer.write_rows([ids], chosen)
            self.answer(message, row.finish(message))
        return self.last

    def stream(
        self, message: str, settings: GenerationSettings | None = None, *, alternatives: int = 0, **changes: Any
    ) -> Generator[WrittenToken, None, None]:
        """The tokens of the answer, each as soon as it is chosen. An answer that is left early counts as it is then."""
        chosen = make_settings(settings or self.settings, changes)
        ids = self.ask(message)
        steps = self.continue_state(ids, chosen)
        try:
            tokens = self.writer.stream_ids(ids, chosen, alternatives=alternatives, steps=steps)
        except BaseException:
            self.kept = None
            raise
        self.kept = steps
        try:
            yield from tokens
        except GeneratorExit:
            raise
        except BaseException:  # in the middle of a step: what it has read of it is not sure
            self.kept = None
            raise
        finally:
            self.answer(message, tokens.row.finish(message))

    def ask(self, message: str) -> list[int]:
        """The ids of the whole conversation with this message at its end."""
        if not message.strip():
            raise DataError("the message is empty, so there is nothing to answer; give some words")
        text = self.writer.template.render([*self.messages, {"role": "user", "content": message}])
        encoded = call_plainly(self.writer.library_tokenizer.encode, text)
        return [int(token) for token in getattr(encoded, "ids", encoded)]

    def answer(self, message: str, written: WrittenText) -> None:
        """Make a message and its answer turns of the conversation."""
        self.last = written
        self.messages += [{"role": "user", "content": message}, {"role": "assistant", "content": written.text}]

    def continue_state(self, ids: list[int], settings: GenerationSettings) -> "KeptState":
        """The state that has read as much of these ids as was read already; a new one where it cannot go back."""
        shared = 0 if self.kept is None else self.kept.go_back(ids)
        if self.kept is None or not shared:
            return KeptState(begin(self.writer.model, [ids], settings, self.writer.engine), ids)
        self.kept.rest = ids[shared:]
        return self.kept


class KeptState:
    """A `DecoderState` of one row that remembers the ids it has read, and reads on from there."""

    def __init__(self, steps: DecoderState, rest: Sequence[int]) -> None:
        self.steps, self.rest = steps, list(rest)
        self.read_ids: list[int] = []

    def __call__(self, ids: Tensor) -> Tensor:
        self.read_ids += ids[0].tolist()
        return self.steps(ids)

    def take_prompt(self, rows: int, steps: int) -> Tensor:
        """What was not read yet of the conversation."""
        return torch.tensor([self.rest])

    def go_back(self, ids: Sequence[int]) -> int:
        """Keep what these ids begin with, all but the last of them; how many those are. 0: nothing can be kept."""
        most = min(len(self.read_ids), len(ids) - 1)
        shared = next((at for at in range(most) if self.read_ids[at] != ids[at]), most)
        if shared < len(self.read_ids):
            crop = getattr(self.steps, "crop", None)
            if crop is None:
                return 0
            try:
                crop(shared)
            except CacheError:  # a window that has dropped keys
                return 0
            del self.read_ids[shared:]
        return shared

    def reorder(self, index: Tensor) -> None:
        """One row stays where it is."""
        self.steps.reorder(index)

    def attention(self) -> Tensor | None:
        """There is no source to look at."""
        return None
