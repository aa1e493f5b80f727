"""Traces that can be opened: kept in a folder, named when the server was started, or only in memory."""

import errno
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from regard.app.protocol.limits import ANSWER, must_be_measurable
from regard.app.protocol.messages import TraceCard
from regard.app.protocol.refusal import Refusal
from regard.app.studio.cards import IDENTITY, Card, make_id, read_card
from regard.attention.map.deadline import time_limit
from regard.errors import RegardError, Stale, TraceError
from regard.files import put, replace
from regard.trace.file import load, save
from regard.trace.record.trace import Trace
from regard.views.explorer.answer import Answers
from regard.views.explorer.answer.lru_cache import LruCache
from regard.views.explorer.answer.questions import MeasuresQuestion, Question, TileQuestion

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
PASSING = 8  # looks at runs that are not over
ASKED = 16  # traces that are ready to answer
ROOM = 64 << 20  # bytes that each of them may keep of what it computed
TILES = 64 << 20  # bytes of tiles that were sent: who looks at the same place gets the same answer


@dataclass
class TraceEntry:
    """One trace, and where it is."""

    card: Card
    file: Path | None = None
    trace: Trace | None = None  # where there is no file
    ours: bool = False  # whether we wrote the file, and may take it away
    listed: bool = True


class Traces:
    """By opaque name. Every method may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, TraceEntry] = {}
        self.passing: OrderedDict[tuple[str, int], TraceEntry] = OrderedDict()  # by name, and which look it is
        self.ready: OrderedDict[tuple[str, int, int], Answers] = OrderedDict()
        self.tiles = LruCache(TILES)
        self.lock = threading.RLock()
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
            card, file = read_card(path), path.with_suffix(".trace")
            if card is not None and file.is_file():
                self.entries[card.id] = TraceEntry(card, file, ours=True)

    # Finding

    def list_traces(self) -> list[TraceCard]:
        """The cards of all, the newest_look first."""
        with self.lock:
            cards = [entry.card for entry in self.entries.values() if entry.listed]
        return [card.describe() for card in sorted(cards, key=lambda card: card.made, reverse=True)]

    def find(self, wanted: str, look: int = 0) -> TraceEntry:
        """One trace; of a run that is not over, one look at it."""
        known = IDENTITY.fullmatch(wanted) is not None
        with self.lock:
            entry = self.entries.get(wanted) if not look else self.passing.get((wanted, look))
        if known and entry is not None:
            return entry
        if known and look:
            raise Refusal("the run has gone on since this was drawn; open it again", 410).with_code("trace.older")
        raise Refusal("there is no such trace here any more; choose one from the list, or run it again", 404).with_code(
            "trace.none"
        )

    def newest_look(self, wanted: str) -> int:
        """The number of the last look at a run that is not over; 0 for a trace that is whole."""
        with self.lock:
            if wanted in self.entries:
                return 0
            return max((number for name, number in self.passing if name == wanted), default=0)

    def trace_of(self, entry: TraceEntry) -> Trace:
        """Its numbers; of a file only what is asked is read."""
        if entry.trace is not None:
            return entry.trace
        assert entry.file is not None
        try:
            return load(entry.file)
        except OSError as error:
            raise TraceError(
                f"the file of {entry.card.name!r} cannot be read ({error.strerror}); it was moved or taken away"
            ).with_code("file.unreadable", why=str(error.strerror)) from error

    def answers(self, wanted: str, run: int = -1, look: int = 0) -> Answers:
        """Somebody who answers questions about a trace; those asked last stay ready."""
        with self.lock:
            entry, key = self.find(wanted, look), (wanted, run, look)
            if key in self.ready:
                self.ready.move_to_end(key)
                return self.ready[key]
        trace, card = self.trace_of(entry), entry.card
        made = Answers(
            trace, run=run, identity=card.id, name=card.name, output=card.output, picture=card.picture, room=ROOM
        )
        with self.lock:
            made = self.ready.setdefault(key, made)  # two may have come at once
            while len(self.ready) > ASKED:
                self.ready.popitem(last=False)
        return made

    # Asking

    def ask(self, question: Question, wanted: str, run: int = -1, look: int = 0) -> bytes:
        """The answer to one question. Who asks for a tile that somebody else has asked for gets the same bytes."""
        answers = self.answers(wanted, run, look)
        if isinstance(question, MeasuresQuestion):
            layer = answers.layer(question)
            must_be_measurable(layer.name, math.prod(layer.weights.shape[-3:]))
        with self.renew_if_stale(wanted), time_limit(ANSWER):
            if not isinstance(question, TileQuestion) or question.coarse:
                return answers.answer(question)  # a first look is not kept: an exact one follows it
            return self.tiles.get((answers.serial, question), lambda: answers.answer(question))

    @contextmanager
    def renew_if_stale(self, wanted: str) -> Iterator[None]:
        """A file that was written over is opened anew for whoever asks next."""
        try:
            yield
        except Stale:
            self.forget_answers(wanted)
            raise

    def peek_tile(self, question: Question, wanted: str, run: int = -1, look: int = 0) -> bytes | None:
        """A tile that was sent before, if it is still here: at once, also to who would be content with a first look."""
        with self.lock:
            self.find(wanted, look)
            answers = self.ready.get((wanted, run, look))
        if answers is None or not isinstance(question, TileQuestion):
            return None
        tile: bytes | None = self.tiles.peek((answers.serial, question.model_copy(update={"coarse": False})))
        return tile

    # Keeping

    def keep(self, card: Card, trace: Trace) -> RegardError | None:
        """Keep a run; gives what says why it is only in memory, None where it is on the disk."""
        file = self.folder / f"{card.id}.trace"
        entry, trouble = TraceEntry(card, trace=trace), None
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            save(trace, file)
            put(file.with_suffix(".json"), card.to_bytes())
            entry = TraceEntry(card, file, ours=True)
        except (OSError, TraceError) as error:
            with suppress(OSError):
                file.unlink(missing_ok=True)
            trouble = self.describe_not_kept(error)
            trace.notes.append(str(trouble))
        with self.lock:
            self.entries[card.id] = entry
        return trouble

    def describe_not_kept(self, error: Exception) -> RegardError:
        first = error.__cause__ or error
        why = getattr(first, "strerror", None) or str(first)
        return Refusal(
            f"the run could not be kept in {self.folder} ({why}), so it is only here until the server ends; "
            "free some space, or start the server with --keep and another folder",
            507,
        ).with_code("disk.memory", folder=str(self.folder), why=why)

    def pass_by(self, card: Card, trace: Trace) -> None:
        """What was seen of a run that is not over: in memory, and only the last few looks.

        Each look has a number of its own, so that whoever draws one never gets numbers of the next.
        """
        with self.lock:
            self.passing[card.id, self.newest_look(card.id) + 1] = TraceEntry(card, trace=trace, listed=False)
            while len(self.passing) > PASSING:
                (old, number), _ = self.passing.popitem(last=False)
                self.forget_answers(old, number)

    def add_file(self, file: Path, card: Card, *, listed: bool = True) -> str:
        """Make a file known that lies elsewhere and stays there; whole traces only."""
        load(file)
        with self.lock:
            self.entries.setdefault(card.id, TraceEntry(card, file, listed=listed))
        return card.id

    def take(self, part: Path, name: str) -> str:
        """Keep a file that was sent, if it is a trace."""
        try:
            trace = load(part)
        except TraceError as error:
            refused = Refusal(str(error).replace(str(part), f"{name!r}"), 422)
            raise (refused.with_code(error.code, **error.about) if error.code else refused) from error
        card = Card(make_id(), name, text=text_of(trace))
        file = self.folder / f"{card.id}.trace"
        try:
            replace(part, file)
            put(file.with_suffix(".json"), card.to_bytes())
        except OSError as error:
            file.unlink(missing_ok=True)
            raise disk_refusal(self.folder, error) from error
        with self.lock:
            self.entries[card.id] = TraceEntry(card, file, ours=True)
        return card.id

    def rename(self, wanted: str, name: str) -> None:
        """Give a trace another name."""
        entry = self.find(wanted)
        entry.card.name = name
        self.forget_answers(wanted)
        if entry.ours and entry.file is not None:
            try:
                put(entry.file.with_suffix(".json"), entry.card.to_bytes())
            except OSError as error:
                raise disk_refusal(self.folder, error) from error

    def forget(self, wanted: str) -> None:
        """Take a trace off the list, and what we wrote off the disk; a file of somebody else stays."""
        entry = self.find(wanted)
        with self.lock:
            self.entries.pop(wanted, None)
            for key in [key for key in self.passing if key[0] == wanted]:
                del self.passing[key]
            self.forget_answers(wanted)
        if entry.ours and entry.file is not None:
            for file in (entry.file.with_suffix(".json"), entry.file):
                with suppress(OSError):
                    file.unlink(missing_ok=True)

    def forget_answers(self, wanted: str, look: int | None = None) -> None:
        with self.lock:
            for key in [key for key in self.ready if key[0] == wanted and look in (None, key[2])]:
                del self.ready[key]


def text_of(trace: Trace) -> str:
    """The text that a trace is of, where it says so."""
    for layer in trace.layers:
        for tokens in layer.keys or ():
            return tokens.text or " ".join(tokens.shown[:200])
    return ""


def disk_refusal(folder: Path, error: OSError) -> Refusal:
    """Why nothing can be written: most often the disk is full."""
    why = str(error.strerror or error)
    return Refusal(
        f"the trace could not be kept in {folder} ({why}); free some space, or start the server with --keep and "
        "another folder",
        507,
    ).with_code("disk.full" if error.errno in FULL else "disk.wrong", folder=str(folder), why=why)
