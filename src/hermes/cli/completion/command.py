"""`hermes completion`: prints a shell completion script."""

from __future__ import annotations

from importlib.resources import files

import click

from hermes.cli.display.terminal import write_stdout

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Add one of these lines to the start-up file of your shell:
  ~/.bashrc                   eval "$(hermes completion bash)"
  ~/.zshrc, after compinit    eval "$(hermes completion zsh)"
  ~/.config/fish/config.fish  hermes completion fish | source""",
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a completion script for bash, zsh or fish.

    It completes commands, options, sessions and sources.
    """
    write_stdout(files(__package__).joinpath(f"hermes.{shell}").read_text(encoding="utf-8").rstrip())
