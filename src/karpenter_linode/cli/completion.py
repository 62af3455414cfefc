"""``completion``: shell completion scripts."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

PROGRAM: Final = "karpenter-linode"
_VARIABLE: Final = "_KARPENTER_LINODE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the shell completion script for SHELL.

    \b
      bash: eval "$(karpenter-linode completion bash)"         in ~/.bashrc
      zsh:  eval "$(karpenter-linode completion zsh)"          in ~/.zshrc, after compinit
      fish: karpenter-linode completion fish > ~/.config/fish/completions/karpenter-linode.fish
    """  # noqa: D301 - \b is click's mark for "do not rewrap"
    from karpenter_linode.cli.main import cli  # noqa: PLC0415 - main imports this module's command by name

    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(completer(cli, {}, PROGRAM, _VARIABLE).source())
