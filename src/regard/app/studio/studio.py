"""What there is to look at and to run, and the few threads that do the work."""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from regard.app.protocol.limits import NAME, WAITING, must_be_short
from regard.app.protocol.messages import EditEffect, EditSpec, ModelOutput, RunRequest
from regard.app.protocol.refusal import Refusal, RunStopped, WorkerError, sentence_of
from regard.app.runners.edits import describe_edits
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.runner import RunResult
from regard.app.studio.cards import Card, make_id
from regard.app.studio.models import Models
from regard.app.studio.readers_first import ReadersFirst
from regard.app.studio.traces import Traces, text_of
from regard.app.studio.trainings import Trainings, identity_of
from regard.errors import ConfigError, WatchError
from regard.models.open.locate import is_run, locate_path
from regard.tokens.visible import cut
from regard.trace.file import load
from regard.trace.record.trace import Trace
from regard.training.run import RunFolder

ASKERS = 2  # threads that answer questions
MEASURERS = 2  # threads that answer those which take long, each for another trace
WELCOME = RunRequest(model="en-zh", text="The cat sat on the mat.")
SWITCH = 0.0001  # seconds after which a thread lets another one go on


class Studio:
    """Everything behind the routes; knows nothing of HTTP."""

    def __init__(self, paths: Iterable[Path] = (), *, keep: Path, runs: Path | None = None) -> None:
        self.traces, self.models = Traces(keep), Models()
        folders: list[Path] = []
        for path in paths:
            self.add(path, folders)
        self.trainings = Trainings(folders, runs)
        self.asking = ThreadPoolExecutor(ASKERS, "regard-ask", initializer=use_threads, initargs=(1,))
        self.measuring = ThreadPoolExecutor(MEASURERS, "regard-measure", initializer=use_threads, initargs=(1,))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.running = ThreadPoolExecutor(1, "regard-run", initializer=use_threads, initargs=(max(1, cores - ASKERS),))
        self.waiting, self.lock, self.way = 0, threading.Lock(), ReadersFirst()
        self.welcomed: Future[Any] | None = None

    def add(self, path: Path, folders: list[Path]) -> None:
        """What somebody named: a trace, a model, or a run of training."""
        model = locate_path(path)
        if model is None and os.path.isfile(path):
            trace = load(path)  # says what is wrong with it
            card = Card(identity_of(path), path.stem[:NAME], text=text_of(trace))
            self.traces.add_file(path, card)
            return
        if model is not None:
            self.models.add(model)
        if is_run(path):
            RunFolder.open(path)  # says what is wrong with it
            folders.append(path)
        elif model is None:
            there = "is neither" if os.path.exists(path) else "does not exist, and should be"
            either = "nor" if os.path.exists(path) else "or"
            raise ConfigError(
                f"{cut(str(path), 200)} {there} a trace, the folder of a model {either} that of a training run"
            )

    def begin(self, first: RunRequest | None = None) -> None:
        """Start working: an empty studio runs its translator on a good sentence, so that there is something to see."""
        sys.setswitchinterval(SWITCH)  # a model holds the interpreter in small pieces; tiles must not wait for many
        if first is not None or not self.traces.list_traces():
            self.welcomed = self.running.submit(run_contained, self.run, first or WELCOME, RunMonitor())
            self.welcomed.add_done_callback(report_failure)

    def close(self) -> None:
        """Nobody begins anything any more."""
        for pool in (self.asking, self.measuring, self.running):
            pool.shutdown(wait=False, cancel_futures=True)

    # Running

    def queue(self, work: Callable[[], Any]) -> "Future[Any]":
        """One model runs at a time; a few others may wait."""
        with self.lock:
            if self.waiting >= WAITING:
                raise Refusal(
                    f"{self.waiting} runs are waiting already; wait until some are done, then run again", 429
                ).with_code("runs.many", count=self.waiting)
            self.waiting += 1
        future = self.running.submit(run_contained, work)
        future.add_done_callback(self.release)
        return future

    def release(self, _: "Future[Any]") -> None:
        with self.lock:
            self.waiting -= 1

    def run(self, request: RunRequest, monitor: RunMonitor) -> tuple[str, str | None]:
        """Run a model: (the trace's name, what it wrote). Whoever calls this waits."""
        must_be_short(request.text)
        monitor.give_way = self.way.give
        monitor.must_go_on()
        self.models.find(request.model)
        seen: list[Trace] = []
        begun = Card(make_id(), title(request.text), request.model, request.text)

        def rows(trace: Trace) -> None:
            self.traces.pass_by(begun, trace)
            seen[:] = [trace]
            monitor.rows_of(begun.id)

        monitor.rows = rows
        model = self.models.open(request.model, lambda text: monitor.progress(text, step="loading", name=request.model))
        monitor.must_go_on()
        try:
            ran = model.run(request, monitor)
        except RunStopped:
            if seen:  # what was shown last stays: somebody may be looking at it
                self.traces.keep(begun, seen[-1])
            raise
        card = card_of(request, ran, begun.id)
        trouble = self.traces.keep(card, ran.trace)
        if trouble is not None:
            monitor.trouble(trouble)
        return card.id, ran.output.text

    def edit(self, wanted: str, edits: list[EditSpec], monitor: RunMonitor, run: int = -1) -> EditEffect:
        """Run what made a trace again under edits. Whoever calls this waits."""
        monitor.give_way = self.way.give
        monitor.must_go_on()
        entry = self.traces.find(wanted)
        card = entry.card
        if card.edits:
            raise Refusal(
                "this run is edited already; open the plain one, and add the edits to those of that", 409
            ).with_code("edit.twice")
        if card.given is None or not card.model:
            raise Refusal(
                "this trace came without the model that made it, so nothing can be run again; "
                "choose a model, run it here, and edit that",
                409,
            ).with_code("edit.alone")
        model, trace = self.models.open(card.model), self.traces.trace_of(entry)
        trace.check(model.model)  # a folder may hold other weights by now
        layers = [layer.name for layer in trace.runs[run].layers]
        try:
            changed = model.run_again(card.given, layers, edits, monitor)
        except WatchError as error:
            if not error.code:
                error.with_code("edit.refused", why=str(error))
            raise
        specs = [one.model_dump() for one in edits]
        name = f"{title(card.text)} · {describe_edits(edits, layers)}"[:NAME]
        output = changed.output.to_json()
        edited = Card(make_id(), name, card.model, card.text, output=output, edits=specs, picture=card.picture)
        self.traces.keep(edited, changed.trace)
        return EditEffect(
            before=changed.before,
            after=changed.after,
            before_text=changed.before_text,
            after_text=changed.after_text,
            kl=changed.kl,
            trace=edited.id,
        )

    def model_of(self, wanted: str) -> str:
        """The name of the model that made a trace, for a sentence."""
        return self.traces.find(wanted).card.model

    def open_training(self, wanted: str, step: int, example: int) -> str:
        """The name under which a trace of a run of training can be asked."""
        training = self.trainings.find(wanted)
        file = training.trace(step, example)
        read, wrote = training.about(step, example)
        card = Card(identity_of(file), f"{training.folder.resolve().name}, step {step:,}", text=read)
        card.output = ModelOutput(text=wrote, next=None, classes=None).to_json()
        return self.traces.add_file(file, card, listed=False)


def card_of(request: RunRequest, ran: RunResult, name: str) -> Card:
    """What is known of a run beside its numbers."""
    return Card(
        name,
        title(request.text) or "picture",
        request.model,
        request.text,
        output=ran.output.to_json(),
        given=None if request.edits else ran.inputs,  # an edited run is compared with the plain one, not edited again
        edits=[one.model_dump() for one in request.edits],
        picture=None if ran.picture is None else ran.picture.to_json(),
    )


def title(text: str) -> str:
    """A name for a text: its first words."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def run_contained(work: Callable[..., Any], *parts: Any) -> Any:
    """Do the work of a worker; what is no Exception, such as a panic, becomes one, else it would end the event loop."""
    try:
        return work(*parts)
    except Exception:
        raise
    except BaseException as error:
        raise WorkerError from error


def report_failure(done: "Future[Any]") -> None:
    """Say in the terminal why the first run failed: nobody has asked for it from a page yet."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        sys.stderr.write(f"regard: the first run failed: {sentence_of(error, 'it')}\n")


def use_threads(count: int) -> None:
    """How many threads torch takes for work that is asked for in this one."""
    torch.set_num_threads(count)
