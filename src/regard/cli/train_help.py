"""`regard train TASK --help`: the help of the command, and the settings of that task. Nothing loads for help alone."""

from typing import Any

from typer.core import TyperCommand

TASK = "regard.task"


class TrainCommand(TyperCommand):
    """A command whose help also lists the settings of the task that was named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if set(ctx.help_option_names) & set(args):
            ctx.meta[TASK] = next((word for word in args if not word.startswith("-")), None)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        if ctx.meta.get(TASK) is not None:
            from regard.tasks import task_named
            from regard.training.settings import described

            with formatter.section(f"Settings of {ctx.meta[TASK]}"):
                rows = described(task_named(ctx.meta[TASK]).settings)
                formatter.write_dl([(row.flag, f"{row.about} [{row.default}]") for row in rows], col_max=32)
