"""The command `regard`. Nothing heavy loads before a command runs, so that help is instant."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from regard import __version__
from regard.cli.chat import chat
from regard.cli.commands import EvaluateCommand, TaskGroup, TrainCommand
from regard.cli.generate import generate
from regard.cli.learn import learn
from regard.cli.options import DOWNLOAD, JSON, MODEL
from regard.cli.texts import FILE, LENGTH, read_text
from regard.errors import ConfigError, RegardError, is_failure

# Plain help: the library that draws boxes around it takes longer to load than all the rest.
app = typer.Typer(
    name="regard",
    cls=TaskGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class DemoKind(StrEnum):
    """Which demo is meant, where it is not the usual one."""

    tasks = "tasks"


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def regard(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Build, train and see attention."""


@app.command()
def demo(
    what: Annotated[
        DemoKind | None,
        typer.Argument(
            metavar="[tasks]", help="Run every task on its embedded model instead, and write demo-tasks.html."
        ),
    ] = None,
    by_hand: Annotated[bool, typer.Option("--by-hand", help="Attention worked by hand on a small example.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder for the page, demo.html or demo-tasks.html.")] = Path(),
) -> None:
    """Translate a few sentences with two small models, and show what they look at."""
    if by_hand and what is not None:
        raise ConfigError(f"--by-hand is another demo than {what.value}; leave one of them out")
    if what is DemoKind.tasks:
        from regard.cli.demo_tasks import write_demo_tasks

        typer.echo(write_demo_tasks(folder))
        return
    if by_hand:
        from regard.cli.by_hand import by_hand_text as worked  # torch loads when a command runs, not when help is shown

        typer.echo(worked())
        return
    from regard.cli.demo import write_demo as run

    typer.echo(run(folder))


@app.command()
def see(
    model: Annotated[str, MODEL],
    text: Annotated[str | None, typer.Argument(help="What the model reads; - reads standard input.")] = None,
    file: FILE = None,
    length: LENGTH = None,
    layer: Annotated[str | None, typer.Option(help="A number, or a part of the layer's path.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="A head of the layer, counted from 0.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write it: .html, .svg, .png, .pdf or .trace.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Merge word pieces to words.")] = False,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Show what a model attends to when it reads TEXT."""
    whole = read_text(text, file)
    from regard.cli.see import see as show

    said = show(
        whole, model, layer=layer, head=head, to=to, words=words, length=length, download=download, as_json=as_json
    )
    if said:
        typer.echo(f"\n{said}" if to is None else said)


app.command()(generate)
app.command()(chat)


@app.command()
def serve(
    paths: Annotated[list[Path] | None, typer.Argument(help="Traces, folders of models, training runs.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Run this model first.")] = None,
    text: Annotated[str | None, typer.Option(help="What it reads first.")] = None,
    port: Annotated[int | None, typer.Option(help="This port; the first free one from 8765 on otherwise.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder where runs are kept.")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    allow_network: Annotated[bool, typer.Option("--allow-network", help="Let other machines connect.")] = False,
    download: Annotated[bool, DOWNLOAD] = False,
) -> None:
    """Open the explorer in a browser: run models, look at what they attend to, edit, compare."""
    from regard.cli.serve import serve as run

    run(
        paths or [],
        model=model,
        text=text,
        port=port,
        keep=keep,
        show=not no_open,
        host=host,
        allow_network=allow_network,
        download=download,
    )


@app.command()
def census(
    model: Annotated[str, MODEL],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts to read; - reads the lines of standard input.")
    ] = None,
    file: FILE = None,
    length: LENGTH = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Say which head does what, over TEXTS or the lines of a file: previous token, induction, sink, rare words."""
    from regard.cli.census import count

    typer.echo(count(texts or [], model, file=file, length=length, download=download, as_json=as_json))


@app.command()
def perplexity(
    model: Annotated[str, MODEL],
    file: Annotated[str, typer.Argument(help="A UTF-8 text, gzipped or not; - reads standard input.")],
    window: Annotated[int | None, typer.Option(min=1, help="Tokens read at once; 1,024 unless given.")] = None,
    stride: Annotated[int | None, typer.Option(min=1, help="Tokens between windows; half of one unless given.")] = None,
    length: LENGTH = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Measure how surprised a causal model is by FILE: perplexity per token and per word, bits per byte."""
    from regard.cli.perplexity import measure_perplexity

    sizes = {"window": window, "stride": stride, "length": length}
    typer.echo(measure_perplexity(file, model, **sizes, download=download, as_json=as_json))


@app.command()
def summary(
    file: Annotated[Path, typer.Argument(help="A trace, written by `regard see --to x.trace` or trace.save.")],
    sort: Annotated[str | None, typer.Option(help="The column to sort by, such as entropy.")] = None,
    descending: Annotated[bool, typer.Option("--descending", help="The largest first.")] = False,
    batch: Annotated[int | None, typer.Option(help="One entry of the batch; all of it otherwise.")] = None,
    lines: Annotated[int, typer.Option(min=1, help="Heads shown at most.")] = 48,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Measure every head of a trace: entropy, distance, sink, previous token, induction."""
    from regard.cli.summary import summarise_file

    typer.echo(summarise_file(file, sort=sort, descending=descending, batch=batch, lines=lines, as_json=as_json))


app.command()(learn)


@app.command()
def models(as_json: Annotated[bool, JSON] = False) -> None:
    """List the models that come with the package."""
    from regard.cli.models import list_models

    typer.echo(list_models(as_json=as_json))


@app.command(cls=TrainCommand, context_settings={"ignore_unknown_options": True})
def train(
    task: Annotated[str, typer.Argument(help="Task to train; `regard tasks` lists them.")],
    settings: Annotated[list[str] | None, typer.Argument(metavar="[--SETTING VALUE]...")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with settings; flags override it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; a new one under runs/ by default.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Resume the run in this folder.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Train a model on TASK. Every setting is a flag: --steps 1000 --width 128; `regard train TASK --help` lists them.

    Ctrl-C saves a checkpoint and stops; --resume continues to the same result. Exit codes: 0 done, 2 error, 130
    stopped by Ctrl-C, 143 by SIGTERM (after saving).
    """
    from regard.cli.train import train_task

    code = train_task(task, settings or [], config=config, out=out, resume=resume, quiet=quiet)
    if code:
        raise typer.Exit(code)


@app.command()
def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER]...", help="Runs, or folders of runs; runs/ by default.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Draw the curves: .svg, .png or .pdf.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Draw on dark ground.")] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """List training runs: how far each is, how good, and what to do next. One RUN alone is shown in full."""
    from regard.cli.runs import show_runs

    typer.echo(show_runs(folders or [], to=to, dark=dark, as_json=as_json))


@app.command(cls=EvaluateCommand, context_settings={"ignore_unknown_options": True})
def evaluate(
    run: Annotated[str, typer.Argument(help="A run, a folder of a model, or an embedded model.")],
    options: Annotated[list[str] | None, typer.Argument(metavar="[--OPTION VALUE]...")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Score a trained model by the task of its training. `regard evaluate RUN --help` lists the options of that task.

    The score is the one of its field: BLEU and chrF, accuracy and F1, exact match and F1, ROUGE, perplexity.
    """
    from regard.cli.evaluate import evaluate_run

    typer.echo(evaluate_run(run, options or [], as_json=as_json))


@app.command("compare-models")
def compare_models(
    text: Annotated[str | None, typer.Argument(help="What both models read; - reads standard input.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A GPT, then a BERT: give it twice. Two embedded ones by default."),
    ] = None,
    file: FILE = None,
    to: Annotated[Path | None, typer.Option(help="Write both maps side by side: .html.")] = None,
    written: Annotated[int, typer.Option("--write", min=0, metavar="N", help="Tokens to write after the text.")] = 8,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Let a GPT and a BERT read one text: what each may look at, what it looks at, how well it guesses each word."""
    from regard.cli.compare_models import EXAMPLE, compare_readings

    whole = EXAMPLE if text is None and file is None else read_text(text, file)
    typer.echo(compare_readings(whole, model or [], to=to, written=written, download=download, as_json=as_json))


@app.command("compare-attention")
def compare_attention(
    length: Annotated[list[int] | None, typer.Option(min=2, help="A length of text; give it several times.")] = None,
    heads: Annotated[int, typer.Option(min=1, help="Heads.")] = 8,
    width: Annotated[int, typer.Option(min=1, help="Channels of each head.")] = 64,
    keys: Annotated[int, typer.Option(min=1, help="Keys in a window, features, mixtures.")] = 256,
    to: Annotated[Path | None, typer.Option(help="Plot it: .svg, .png or .pdf.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Measure every way to attend on this machine: time, memory and error beside dense attention."""
    from regard.cli.compare import compare_lengths

    typer.echo(compare_lengths(length or [512, 2048], heads=heads, width=width, keys=keys, as_json=as_json, to=to))


@app.command()
def tasks(name: Annotated[str | None, typer.Argument(help="Task whose settings to list.")] = None) -> None:
    """List the tasks that can be trained, or the settings of one."""
    from regard.cli.train import list_tasks

    typer.echo(list_tasks(name))


def main() -> None:
    """Run one command. What goes wrong on purpose is told in one sentence, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ░ or → still gets the numbers
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # bars are for eyes; a file gets sentences
    try:
        app(args=sys.argv[1:] or ["--help"], prog_name="regard")
    except RegardError as error:
        typer.echo(f"regard: {error}", err=True)
        raise SystemExit(2) from None
    except OSError as error:  # of a file that nobody thought of: what the system says is enough
        where = f"{str(error.filename)[-200:]!r}: " if error.filename else ""
        typer.echo(f"regard: {where}{error.strerror or error}", err=True)
        raise SystemExit(2) from None
    except BaseException as error:
        if isinstance(error, Exception) or not is_failure(error):
            raise
        typer.echo(f"regard: a library failed: {type(error).__name__}: {' '.join(str(error).split())}", err=True)
        raise SystemExit(2) from None
