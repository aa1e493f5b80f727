"""Options that several commands have."""

import typer

JSON = typer.Option("--json", help="Print JSON, for another program to read.")
