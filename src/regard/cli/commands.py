"""Commands that depend on a task: their help lists its settings, and tasks add commands of their own.

Nothing of a task loads before its command is named.
"""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from regard.extras import load_named
from regard.tasks.registry import task_commands, task_named

FIRST_WORD = "regard.first_word"
BEFORE = "train"  # the commands of tasks are listed after this one


class SettingsCommand(TyperCommand):
    """A command with a setting for each flag; its help lists those that fit its first word, where that is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if set(ctx.help_option_names) & set(args):
            ctx.meta[FIRST_WORD] = next((word for word in args if not word.startswith("-")), None)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        if ctx.meta.get(FIRST_WORD) is not None:
            from regard.training.settings import describe_settings

            title, kind = self.settings_for(ctx.meta[FIRST_WORD])
            rows = describe_settings(kind)
            if rows:
                with formatter.section(title):
                    formatter.write_dl([(row.flag, f"{row.about} [{row.default}]") for row in rows], col_max=32)

    def settings_for(self, word: str) -> tuple[str, Any]:
        """A heading, and the class of the settings."""
        raise NotImplementedError


class TrainCommand(SettingsCommand):
    """`regard train TASK --help` lists the settings of the task."""

    def settings_for(self, word: str) -> tuple[str, Any]:
        return f"Settings of {word}", task_named(word).settings


class EvaluateCommand(SettingsCommand):
    """`regard evaluate RUN --help` lists the options of the task that the run was trained on."""

    def settings_for(self, word: str) -> tuple[str, Any]:
        from regard.tasks.evaluate import task_of

        task = task_of(word)
        return f"Options for {task.name}", task.options


class TaskGroup(TyperGroup):
    """The commands of `regard`: its own, and those that tasks add."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        at = own.index(BEFORE) + 1 if BEFORE in own else len(own)
        return [*own[:at], *(name for name in task_commands() if name not in own), *own[at:]]

    def get_command(self, ctx: Any, name: str) -> Any:
        own = super().get_command(ctx, name)
        if own is not None or name not in task_commands():
            return own
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        app.command(name)(load_named(task_commands()[name].function))
        return typer.main.get_command(app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands; those of tasks are described by their entries, so that none is imported."""
        known, names = task_commands(), self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        rows = [(name, self.describe_command(ctx, name, limit, known)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def describe_command(self, ctx: Any, name: str, limit: int, known: dict[str, Any]) -> str:
        own = super().get_command(ctx, name)
        return known[name].about if own is None else own.get_short_help_str(limit)
