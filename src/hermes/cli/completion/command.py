"""`hermes completion`: a script that teaches a shell to complete the words of `hermes`."""

from __future__ import annotations

from importlib.resources import files

import click

from hermes.cli.display.terminal import write_stdout

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Put one of these lines into the file that your shell reads at its start:
  ~/.bashrc                   eval "$(hermes completion bash)"
  ~/.zshrc, behind compinit   eval "$(hermes completion zsh)"
  ~/.config/fish/config.fish  hermes completion fish | source""",
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Write a script for bash, zsh or fish that completes commands, options, sessions and sources."""
    write_stdout(files(__package__).joinpath(f"hermes.{shell}").read_text(encoding="utf-8").rstrip())
