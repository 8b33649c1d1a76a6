"""`hermes gateway run`: runs a gateway in the foreground."""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Signals:
  SIGTERM, SIGINT, SIGHUP  drain and stop; a second one stops at once
  SIGUSR1                  drain and restart, as the same process

\b
Exit codes: 0 after a clean end, 1 if turns were cut off or the gateway could
not start, 4 if a gateway with this name runs already."""
)
@click.option("--node", metavar="NAME", help="The name of this gateway. Default: gateway.node, or that of the machine.")
def run(node: str | None) -> None:
    """Run a gateway in the foreground.

    Without any configuration it serves the local socket with the offline model; `hermes gateway talk` is a client.
    """
    from hermes.cli.gateway.foreground import run_in_foreground

    exit_code = run_in_foreground(node)
    if exit_code:
        raise click.exceptions.Exit(exit_code)
