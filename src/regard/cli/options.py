"""Options that several commands have."""

import typer

JSON = typer.Option("--json", help="Print JSON, for another program to read.")
MODEL = typer.Option("--model", "-m", help="An embedded model (`regard models`), a folder, or a name of the hub.")
DOWNLOAD = typer.Option("--download", help="Fetch the model from the hub if it is not here.")
