"""The `bench` group: what subcommands there are, and how each way of failing leaves the program."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any, NamedTuple

import click

from harness.errors import BenchError

INCOMPLETE = 3  # the run came to its end, but cells failed
INTERRUPTED = 130  # 128 + SIGINT, what shells use


class Lazy(NamedTuple):
    """A subcommand that is not imported yet."""

    source: str  # module:function
    help: str  # its line in `bench --help`


COMMANDS = {
    "doctor": Lazy("harness.cli.doctor:doctor", "Say what this machine is and what works on it."),
    "figures": Lazy("harness.cli.figures:figures", "Draw the figures of a run and print the files written."),
    "plan": Lazy("harness.cli.plan:plan", "Print the cells of a suite, what is measured and what is left."),
    "run": Lazy("harness.cli.run:run", "Measure the cells of a suite, going on where the last run stopped."),
    "show": Lazy("harness.cli.show:show", "Print the comparison of the arms of a run."),
}


class Mendable(click.ClickException):
    """A `BenchError` on its way out: one sentence, exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.secho(f"error: {self.message}", fg="red", err=True, file=file)


class LazyGroup(click.Group):
    """A group whose help comes from a table and whose subcommands are imported one at a time."""

    def __init__(self, *args: Any, lazy: dict[str, Lazy], **options: Any) -> None:
        super().__init__(*args, **options)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, function = self._lazy[cmd_name].source.partition(":")
        command: click.Command = getattr(import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in self._lazy.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BenchError as error:
            raise Mendable(str(error)) from error
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(INTERRUPTED)


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    click.echo(f"dspark-bench {version('dspark-bench')}")
    ctx.exit()


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def bench() -> None:
    """Measure whether speculative decoding is really faster: on your model, your engine, your load."""
