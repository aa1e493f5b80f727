"""The training loop. Every number that it makes is a function of the settings, the data and the step.

The order of examples follows from (seed, epoch) and dropout from (seed, step), so a run that was stopped anywhere and
resumed goes through exactly the steps it would have gone through.
"""

import copy
import math
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import RegardError, RunError, is_failure
from regard.memory import give_back
from regard.training import checkpoint as checkpoints
from regard.training import due
from regard.training.board import board, writer_class
from regard.training.checkpoint import Checkpoint
from regard.training.clock import Speed, TrainingClock
from regard.training.compute import LossModule, seed_of, size_of
from regard.training.device import choose_device, own_randomness, to_device
from regard.training.distributed import ProcessGroup, distributed, gather_full
from regard.training.event import Event, Tell
from regard.training.feed import Update, feed
from regard.training.optimizer import make_optimizer
from regard.training.progress import Progress, beats
from regard.training.recorder import RunRecorder
from regard.training.restore import distinct, put_optimizer, put_weights
from regard.training.result import choose_weights
from regard.training.run import RunFolder
from regard.training.schedule import rate_at
from regard.training.settings import Settings
from regard.training.stop import NAMES, StopRequest, catch_signals
from regard.training.task import PreparedTask, Task


class Result(NamedTuple):
    """How a run ended."""

    step: int
    scores: dict[str, float]
    folder: Path
    code: int  # 0, or 128 + the signal that stopped it


def fit(task: Task, settings: Settings, folder: Path, *, resume: bool = False, tell: Tell | None = None) -> Result:
    """Train in a folder, from its last checkpoint where it has one and `resume` is given."""
    say = tell or (lambda event: None)
    if settings.tensorboard:
        writer_class()  # before anything is written
    choose_device(settings.device)  # likewise
    task.check_requirements(settings)
    with distributed() as group:
        run = RunFolder(Path(group.share(str(folder))))  # each process may have thought of another one
        with run.lock_folder(new=not resume) if group.first else nullcontext():
            if group.first and not resume:
                run.begin(task.name, settings.model_dump(mode="json"))
            group.wait()
            if not group.first:
                run.describe()  # a folder that not all processes see is noticed here
                return Fit(task, settings, run, group, lambda event: None).go(resume)
            with board(run.folder, wanted=settings.tensorboard) as draw:

                def both(event: Event) -> None:
                    if draw is not None:
                        draw(*event)
                    say(event)

                try:
                    ready = Fit(task, settings, run, group, both)
                except RegardError:
                    if not resume:
                        run.withdraw()  # nothing was learnt yet: the folder is free for another try
                    raise
                return ready.go(resume)


class Fit:
    """One run while it runs."""

    def __init__(self, task: Task, settings: Settings, run: RunFolder, group: ProcessGroup, tell: Tell) -> None:
        self.task, self.settings, self.run, self.group, self.tell = task, settings, run, group, tell
        self.device = choose_device(settings.device)
        torch.manual_seed(settings.seed)
        if group.first:  # what is learnt from the data, such as a vocabulary, is written once
            self.prepared: PreparedTask = task.prepare(settings, run.folder)
        group.wait()
        if not group.first:
            torch.manual_seed(settings.seed)
            self.prepared = task.prepare(settings, run.folder)
        self.model = self.prepared.model.to(self.device)  # drawn on the CPU, so the first weights are the same anywhere
        self.place = Progress()
        self.scores: dict[str, float] = {}
        self.recorder = RunRecorder(run, settings, lambda text: tell(Event("notice", self.place.step, {"text": text})))
        for text in getattr(self.prepared, "notices", ()):  # of a task that has something to say of its data
            self.recorder.notice(text)
        self.stop = StopRequest()
        self.stopping: int | None = None  # the signal by which all processes agreed to stop
        self.clock = TrainingClock()

    def go(self, resume: bool) -> Result:
        """Train until the end, a signal or a failure, and write which of them it was."""
        try:
            result = self.train(resume)
        except BaseException as error:
            if self.group.first and is_failure(error):
                self.recorder.record_end(self.place.step, "failed", self.speed(self.place.step), error)
            raise
        if self.group.first:
            how = "finished" if self.stopping is None else "stopped"
            self.recorder.record_end(self.place.step, how, self.speed(self.place.step))
        return result

    def train(self, resume: bool) -> Result:
        settings = self.settings
        before = self.recorder.newest() if resume else None
        if self.group.share(before and before.step) != (before and before.step):
            raise RunError(
                f"process {self.group.rank} sees other checkpoints in {self.run.folder} than the first one; "
                "give all processes the same folder"
            )
        self.split = self.group.world > 1 and settings.parallel == "fsdp"
        self.unsplit = copy.deepcopy(self.model) if self.split and self.group.first else self.model
        computing = self.group.wrap(LossModule(self.model, self.prepared), settings.parallel)
        self.optimizer = make_optimizer(self.model, settings, fused=not self.split)
        if before is not None:
            self.restore(before)
        facts = {
            "parameters": size_of(self.model),
            "examples": self.prepared.examples,
            "left_out": self.prepared.left_out,
            "why_left_out": getattr(self.prepared, "why_left_out", "empty, or too long"),
            "device": str(self.device),
        }
        if self.group.first:
            self.recorder.cut(self.place.step)
            if before is not None:
                self.recorder.prune(self.place.step, self.place.best_step)  # as the save did that is gone on from
            self.recorder.record_start(self.place.step, self.prepared.better, facts)
        self.computing = torch.compile(computing) if settings.compile else computing
        with catch_signals() as self.stop:
            best = {"score": self.prepared.better.score, "best": self.place.best, "best_step": self.place.best_step}
            self.tell(Event("begin", self.place.step, facts | {"steps": settings.steps} | best))
            if not self.look(saved=before is not None):
                self.clock.resume()
                with closing(self.updates()) as updates:
                    for batch in updates:
                        self.update(batch)
                        if self.look():
                            break
                        self.clock.resume()
        if self.stopping is None:
            self.finish()
        self.tell(Event("end", self.place.step, dict(self.scores)))
        return Result(self.place.step, self.scores, self.run.folder, 128 + self.stopping if self.stopping else 0)

    # One update

    def updates(self) -> Generator[Update, None, None]:
        """What is left to do, from where the run stands."""
        place, settings = self.place, self.settings
        while place.step < settings.steps and not place.over:
            batches = self.prepared.batches(place.epoch)
            if not batches:
                raise RunError("there is nothing to learn from: no example is left after the limits on length")
            with closing(feed(self.prepared, batches[place.index :], self.group, settings)) as fed:
                for parts in fed:
                    yield parts
                    if place.step >= settings.steps or place.over:
                        return
            place.epoch, place.index = place.epoch + 1, 0

    def update(self, batch: Update) -> None:
        settings, place = self.settings, self.place
        rate = rate_at(
            place.step,
            kind=settings.lr_schedule,
            peak=settings.lr,
            warmup=settings.warmup_steps,
            steps=settings.steps,
            floor=settings.min_lr,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(seed_of(settings.seed, place.step, self.group.rank))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = nll = 0.0
        for part, last in batch.parts:
            whole, sums = self.compute(part, last)
            (whole * (self.group.world / batch.weight)).backward()
            loss, nll = loss + sums[0], nll + sums[1]
        norm = self.clip()
        heard = self.stop.signal
        loss, nll, *asked = self.group.add(loss, nll, *(float(heard == number) for number in NAMES))
        self.stopping = next((int(number) for number, count in zip(NAMES, asked) if count), None)
        self.must_be_finite(loss, norm, batch)
        self.optimizer.step()
        place.step, place.index = place.step + 1, place.index + 1
        place.since["loss"] += loss
        place.since["nll"] += nll
        place.since["count"] += batch.weight
        place.lr, place.norm = rate, norm
        self.clock.count_update(batch.tokens)
        loss = place.since["loss"] / place.since["count"]
        self.tell(Event("step", place.step, {"loss": loss, "lr": rate, "speed": self.speed(place.step - 1)}))

    def compute(self, part: Any, last: bool) -> tuple[Tensor, tuple[float, float]]:
        """The summed loss of one part; gradients are shared after the last one only."""
        part = to_device(part, self.device)
        quiet = getattr(self.computing, "no_sync", None)
        if last or quiet is None:
            found = self.computing(part)
        else:
            with quiet():
                found = self.computing(part)
        return found[0], (float(found[0].detach()), float(found[1]))

    def clip(self) -> float:
        limit = self.settings.grad_clip or math.inf
        return float(gather_full(nn.utils.clip_grad_norm_(self.model.parameters(), limit)))

    def must_be_finite(self, loss: float, norm: float, batch: Update) -> None:
        if math.isfinite(loss) and math.isfinite(norm):
            return
        what = "loss" if not math.isfinite(loss) else "gradient"
        raise RunError(
            f"the {what} is no number at step {self.place.step + 1}, batch {self.place.index} of epoch "
            f"{self.place.epoch} (examples {', '.join(map(str, batch.examples[:8].tolist()))}…); the last good "
            f"checkpoint is {self.recorder.last_good()}; lower the learning rate, or look at these examples"
        )

    # Between updates

    def look(self, *, saved: bool = False) -> bool:
        """Save, write, show and validate where it is time to; whether it is time to stop.

        What is saved is the moment before anything was told of the step. Who goes on from there comes here first, and
        tells it again: so it is the same whether a process ended before, after or amid of it.
        """
        settings, place = self.settings, self.place
        moment = asdict(place)
        if due.saves(settings, place.step) and not saved:
            self.save(moment)
            saved = True
        if due.logs(settings, place.step):
            self.log()
        if due.shows(settings, place.step):
            self.show()
        if due.validates(settings, place.step):
            self.validate()
        if self.group.world == 1:  # together, what was heard since is agreed on in the next update
            self.stopping = self.stop.signal
        if self.stopping is not None and not saved:
            self.save(moment)
        return self.stopping is not None or place.over

    def log(self) -> None:
        since = self.place.since
        line = {
            "step": self.place.step,
            "epoch": self.place.epoch,
            "loss": since["loss"] / since["count"],
            "nll": since["nll"] / since["count"],
            "lr": self.place.lr,
            "norm": self.place.norm,
        }
        self.place.since = {"loss": 0.0, "nll": 0.0, "count": 0.0}
        speed = self.speed(self.place.step - 1)
        if self.group.first:
            self.recorder.record(line)
            self.recorder.record_speed(self.place.step, speed)
        give_back()
        self.tell(Event("log", self.place.step, line | {"speed": speed}))

    def show(self) -> None:
        """What the model attends to now, written by the first process."""
        model, folder = self.whole_model(), self.run.shown / checkpoints.name_of(self.place.step)
        if self.group.first:
            with self.eval_mode(model), self.recorder.guard_writes(folder):
                self.prepared.show(model, folder)
        self.tell(Event("shown", self.place.step, {}))

    def validate(self) -> None:
        """Scores of the model as it is; the first process computes them, the others wait."""
        place, scores, model = self.place, {}, self.whole_model()
        self.tell(Event("validating", place.step, {}))
        with self.clock.validation():
            if self.group.first:
                with self.eval_mode(model):
                    scores = self.prepared.validate(model)
            self.scores = scores = self.group.share(scores)
        better = self.beaten_by(scores)
        if better:
            place.best, place.best_step, place.waited = scores[self.prepared.better.score], place.step, 0
        else:
            place.waited += 1
            place.over = bool(self.settings.patience) and place.waited >= self.settings.patience
        if self.group.first:
            self.recorder.record({"step": place.step, "validation": scores})
            self.recorder.record_speed(place.step, self.speed(place.step))
        facts = {"scores": dict(scores), "better": better, "best": place.best, "best_step": place.best_step}
        self.tell(Event("validation", place.step, facts))

    def beaten_by(self, scores: dict[str, float]) -> bool:
        """Whether these scores are better than the best so far."""
        return beats(scores[self.prepared.better.score], self.place.best, self.prepared.better)

    def speed(self, validated: int) -> Speed:
        """How fast it goes; `validated` is the last step whose validation is over."""
        left = max(self.settings.steps - self.place.step, 0)
        return self.clock.read(steps_left=left, validations_left=due.validations_left(self.settings, validated))

    # Keeping and going on

    def weights(self) -> dict[str, Tensor]:
        return {name: gather_full(value.detach()) for name, value in distinct(self.model).items()}

    def whole_model(self) -> nn.Module:
        """The model in one piece, on the first process; where it is split, all of them must ask for it."""
        if self.split:
            weights = self.weights()
            if self.group.first:
                put_weights(self.unsplit, weights)
        return self.unsplit

    def state(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": value for name, value in self.weights().items()}
        for name, weight in self.model.named_parameters():
            for key, value in self.optimizer.state.get(weight, {}).items():
                if value is not None:  # SGD without momentum remembers nothing
                    tensors[f"optimizer.{key}.{name}"] = gather_full(value)
        return tensors

    def save(self, moment: dict[str, Any]) -> None:
        step, tensors = self.place.step, self.state()
        if self.group.first:
            self.recorder.save(Checkpoint(step, {"place": moment, "scores": self.scores}, tensors))
            self.recorder.prune(step, self.place.best_step)
        self.tell(Event("checkpoint", step, {}))
        self.group.wait()

    def restore(self, before: Checkpoint) -> None:
        """Stand exactly where the checkpoint was taken."""
        tensors = before.tensors
        own = {name.removeprefix("model."): x for name, x in tensors.items() if name.startswith("model.")}
        put_weights(self.model, own)
        put_optimizer(self.model, self.optimizer, tensors)
        self.place = Progress(**before.facts["place"])
        self.scores = dict(before.facts["scores"])

    def finish(self) -> None:
        """The result as a model that opens by itself: the average where it is better than the best, or the best."""
        if not self.group.first:
            self.scores = self.group.share(None)
            return
        taken = choose_weights(
            self.run.checkpoints, self.settings, self.place.step, self.place.best_step, self.score, self.beaten_by
        )
        self.scores = taken.scores
        if taken.lost:
            self.recorder.notice(f"{' and '.join(taken.lost)}; the result is {taken.which}")
        manifest = self.run.describe()
        facts = {"task": manifest["task"], "settings": manifest["settings"], "weights_of": taken.which}
        facts |= {"steps": self.place.step, "scores": self.scores}
        with self.recorder.guard_writes(self.run.model):
            self.prepared.export(self.unsplit, self.run.model, facts)
        self.group.share(self.scores)

    def score(self, weights: dict[str, Tensor]) -> dict[str, float]:
        """Scores of these weights, which the model then holds."""
        put_weights(self.unsplit, weights)
        self.tell(Event("validating", self.place.step, {}))
        with self.clock.validation(), self.eval_mode(self.unsplit):
            return self.prepared.validate(self.unsplit)

    @contextmanager
    def eval_mode(self, model: nn.Module) -> Iterator[None]:
        """The model as it is used, and random numbers that leave those of the run alone."""
        model.eval()
        with torch.no_grad(), own_randomness(self.device):
            yield
