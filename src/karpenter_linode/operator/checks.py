"""Checks at the start: one line each, and no start where the controller would do harm or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.kube.cluster_info import served_resources, server_version
from karpenter_linode.kube.errors import UnreachableError
from karpenter_linode.linode.discovery import discover_cluster
from karpenter_linode.linode.errors import LinodeUnauthorizedError
from karpenter_linode.operator.permission_watch import missing_permissions
from karpenter_linode.operator.permissions import permissions
from karpenter_linode.operator.token_scopes import NEEDED
from karpenter_linode.ports import CloudError, KubeError

if TYPE_CHECKING:
    from karpenter_linode.kube.cluster_info import Permission
    from karpenter_linode.kube.http import KubeHttp
    from karpenter_linode.linode.client import LinodeClient
    from karpenter_linode.linode.discovery import Cluster
    from karpenter_linode.operator.flags import ControllerSettings
    from karpenter_linode.operator.token_scopes import GrantedScopes
    from karpenter_linode.ports import Clock, Logger

_KARPENTER: Final = ("karpenter.sh/v1", ("nodepools", "nodepools/status", "nodeclaims", "nodeclaims/status"))
_LINODE: Final = ("karpenter.k8s.linode/v1alpha1", ("linodenodeclasses", "linodenodeclasses/status"))
_DRA: Final = ("resource.k8s.io/v1", ("resourceslices", "resourceclaims", "deviceclasses"))
_INSTALL: Final = "install or upgrade the chart karpenter-crd"
_PAUSE: Final = 2.0
_ATTEMPTS: Final = 15


class CheckError(Exception):
    """The controller must not start. The message says what was found, what was expected and what to do."""

    said = "refusing to start"


class ProviderCheckError(CheckError):
    """The Linode API is the reason."""

    said = "cannot start provider"


async def check_api_server(http: KubeHttp, clock: Clock, logger: Logger) -> None:
    """Wait for the API server, for half a minute.

    Raises:
        CheckError: it does not answer, or does not let us in.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            version = await server_version(http)
        except UnreachableError as error:
            if attempt == _ATTEMPTS:
                raise CheckError(f"the API server {http.server} cannot be reached: {error}") from None
            logger.info("waiting for the API server", server=http.server, error=str(error))
            await clock.sleep(_PAUSE)
        except KubeError as error:
            raise CheckError(f"the API server does not let us in: {error}") from None
        else:
            logger.info("check passed: API server", version=version.git_version)
            return


async def check_kinds(http: KubeHttp, *, with_devices: bool, logger: Logger) -> None:
    """The kinds that we work with are served.

    Raises:
        CheckError: some are not.
    """
    wanted = [(*_KARPENTER, _INSTALL), (*_LINODE, _INSTALL)]
    if with_devices:
        hint = "Kubernetes 1.34 or newer serves it; on older clusters set IGNORE_DRA_REQUESTS=true"
        wanted.append((*_DRA, hint))
    for api_version, resources, hint in wanted:
        try:
            served = await served_resources(http, api_version)
        except KubeError as error:
            raise CheckError(f"cannot ask what {api_version} serves: {error}") from None
        missing = [name for name in resources if name not in served]
        if missing:
            raise CheckError(f"the cluster does not serve {', '.join(missing)} of {api_version}: {hint}")
        logger.info("check passed: kinds", apiVersion=api_version)


async def check_permissions(
    http: KubeHttp, settings: ControllerSettings, namespace: str, logger: Logger
) -> tuple[Permission, ...]:
    """We may do everything that we do.

    Args:
        http: the connection.
        settings: settings.
        namespace: of the lease.
        logger: told of the result.

    Returns:
        What was asked for.

    Raises:
        CheckError: some things are not allowed; every one is named.
    """
    wanted = permissions(
        with_devices=not settings.options.ignore_dra_requests,
        with_spread=bool(settings.options.default_spread),
        lease_namespace=namespace if settings.leader_election else "",
        lease_name=settings.lease_name,
    )
    try:
        missing = await missing_permissions(http, wanted)
    except KubeError as error:
        raise CheckError(f"cannot ask what is allowed: {error}") from None
    if missing:
        rules = "; ".join(map(str, missing))
        raise CheckError(f"RBAC does not allow: {rules}; install the chart's ClusterRole and its binding")
    logger.info("check passed: permissions", rules=len(wanted))
    return wanted


async def check_linode(
    client: LinodeClient, granted: GrantedScopes, settings: ControllerSettings, logger: Logger
) -> Cluster:
    """The token works and may do what we do, and there is exactly one LKE cluster of the name.

    Args:
        client: the Linode API.
        granted: told by the client what the token may do.
        settings: settings.
        logger: told of the result.

    Raises:
        ProviderCheckError: not so. A token that may read and not write, or buy and not delete, is refused before it
            does harm.
    """
    logger.info("initializing in LKE mode")
    scopes = " and ".join(NEEDED)
    try:
        cluster = await discover_cluster(client, settings.cluster_name, settings.cluster_region)
        await client.list_pools(cluster.id)
        await client.list_instances({"label": "karpenter-check"})
    except LinodeUnauthorizedError as error:
        raise ProviderCheckError(f"{error}; LINODE_TOKEN needs the scopes {scopes}") from None
    except CloudError as error:
        raise ProviderCheckError(str(error)) from None
    missing = granted.missing()
    if missing:
        raise ProviderCheckError(
            f"LINODE_TOKEN has the scopes {granted.text!r} and lacks {', '.join(missing)}; "
            f"make a token with the scopes {scopes}"
        )
    told = "the API does not tell" if granted.text is None else granted.text
    logger.info("check passed: Linode token", scopes=told)
    logger.info(
        "discovered LKE cluster region", cluster=cluster.label, id=cluster.id, region=cluster.region, tier=cluster.tier
    )
    return cluster
