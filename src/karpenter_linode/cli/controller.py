"""``controller``: the autoscaler itself, against a real cluster and the real Linode API."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import click

from karpenter_linode.cli.errors import EXIT_BAD_INPUT
from karpenter_linode.cli.version import current
from karpenter_linode.kube.config import load_config
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.operator.build import commit
from karpenter_linode.operator.controller import EXIT_FAILED, ControllerProcess
from karpenter_linode.operator.flag_table import FLAGS
from karpenter_linode.operator.flags import FlagError, read_settings
from karpenter_linode.operator.logging import JsonLogger, open_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightkube.config.kubeconfig import SingleConfig

    from karpenter_linode.operator.flag_table import Flag
    from karpenter_linode.operator.flags import ControllerSettings


def _with_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    for flag in reversed(FLAGS):
        function = _option(flag)(function)
    return function


def _option(flag: Flag) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    default = f"  [env: {flag.variable}; default: {flag.default}]" if flag.default else f"  [env: {flag.variable}]"
    optional: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if flag.boolean else {}
    return click.option(
        f"--{flag.name}", flag.name.replace("-", "_"), metavar="VALUE", help=flag.help + default, **optional
    )


@click.command("controller")
@click.option("--kubeconfig", default="", metavar="FILE", help="How to reach the cluster from outside of it.")
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig, in place of its current one.")
@_with_flags
def command(*, kubeconfig: str, context: str, **flags: str | None) -> int:
    """Run the controller until SIGTERM or ctrl-c.

    Needs LINODE_TOKEN, and a cluster: KUBECONFIG, or the service account of its pod. Settings are flags or environment
    variables; a flag wins. Ends with code 1 where it must not start, and says why in one line.
    """
    try:
        settings = read_settings({name.replace("_", "-"): value for name, value in flags.items()}, os.environ)
        logger = _logger(settings)
    except FlagError as error:
        click.echo(f"error: {error}", err=True)
        return EXIT_BAD_INPUT
    except OSError as error:
        text = f"LOG_OUTPUT_PATHS, LOG_ERROR_OUTPUT_PATHS: cannot open {error.filename}: {error.strerror}"
        click.echo(f"error: {text}", err=True)
        return EXIT_BAD_INPUT
    try:
        config = load_config(kubeconfig, context=context)
    except ConnectionConfigError as error:
        logger.error("refusing to start", error=str(error))  # noqa: TRY400 - one clear line, no stack
        return EXIT_FAILED
    if config.user is not None:
        logger.hide(config.user.token or "", config.user.password or "")
    return asyncio.run(_run(settings, config, logger))


def _logger(settings: ControllerSettings) -> JsonLogger:
    built_from = commit()
    logger = JsonLogger(
        open_outputs(settings.log_output_paths),
        settings.log_level,
        commit=built_from,
        complaints=open_outputs(settings.log_error_output_paths),
    )
    logger.hide(os.environ.get("LINODE_TOKEN", "").strip())
    if not built_from:
        logger.info("Unable to read vcs.revision from binary")
    return logger


async def _run(settings: ControllerSettings, config: SingleConfig, logger: JsonLogger) -> int:
    stop = asyncio.Event()

    def told() -> None:
        if stop.is_set():
            os._exit(EXIT_FAILED)  # the second signal: at once, whatever is under way
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)
    return await ControllerProcess(settings, config, os.environ, logger, current()).run(stop)
