"""The Kubernetes adapter over loopback TLS: the first list of a large cluster, and a watch at full speed.

The server is this file, run as a process of its own: it sends what was rendered before, so that the client is measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.kube.api import LightkubeApi
from karpenter_linode.kube.config import connect, load_config
from karpenter_linode.kube.http import KubeHttp
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.system import SystemClock, SystemRandom

PODS, NODES, EVENTS = 15_000, 500, 60_000
PAGE, TOGETHER = 500, 8
_DOZE = 0.005
MIB = 1 << 20


def pod(number: int, version: int) -> dict[str, Any]:
    """A pod as a Deployment makes them, some 7 kB with the field managers' notes."""
    name = f"web-{number // 30:04d}-{number:05d}"
    env = [{"name": f"SETTING_{item}", "value": f"value-of-{item}"} for item in range(20)]
    fields: dict[str, Any] = {f"f:field-{item}": {"f:name": {}, "f:value": {}, ".": {}} for item in range(60)}
    return {
        "metadata": {
            "name": name,
            "generateName": f"web-{number // 30:04d}-",
            "namespace": f"team-{number % 40}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "labels": {"app": f"web-{number // 30}", "pod-template-hash": "5d59d67564", "tier": "front"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
            ],
            "managedFields": [
                {
                    "manager": who,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fields,
                }
                for who in ("kube-controller-manager", "kubelet")
            ],
        },
        "spec": {
            "nodeName": f"node-{number % NODES}",
            "containers": [
                {
                    "name": "web",
                    "image": "registry.example/web:1.2.3",
                    "env": env,
                    "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                }
            ],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler",
            "priority": 0,
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-11-30T12:00:05Z",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-11-30T12:00:05Z"}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
        },
    }


def node(number: int) -> dict[str, Any]:
    """A node."""
    return {
        "metadata": {"name": f"node-{number}", "uid": f"node-{number}", "resourceVersion": str(number + 1)},
        "spec": {"providerID": f"linode://{number}"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


class Server:
    """Pages and one endless watch."""

    def __init__(self) -> None:
        self._pods = [json.dumps(pod(number, number + 1)).encode() for number in range(PODS)]
        self._nodes = [json.dumps(node(number)).encode() for number in range(NODES)]
        # As an API server under load writes them: each event is an HTTP chunk, and a few go out at a time.
        chunks = [
            chunk(b'{"type":"MODIFIED","object":%b}\n' % json.dumps(pod(number % PODS, PODS + number + 1)).encode())
            for number in range(EVENTS)
        ]
        self._writes = [b"".join(chunks[start : start + TOGETHER]) for start in range(0, EVENTS, TOGETHER)]

    async def serve(self, certificate: str, key: str) -> None:
        """Print the port and serve until killed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=context)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            while (await reader.readline()).strip():
                pass
            target = urlsplit(head.split()[1].decode())
            query = parse_qs(target.query)
            if "watch" in query:
                await self._stream(writer)
            else:
                items = self._pods if target.path.endswith("pods") else self._nodes
                body = page(items, int(query.get("continue", ["0"])[0]))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                )
                writer.write(body)
                await writer.drain()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        for some in self._writes:
            writer.write(some)
            await writer.drain()
        await asyncio.sleep(60)


def chunk(body: bytes) -> bytes:
    """A chunk of an HTTP body."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def page(items: list[bytes], start: int) -> bytes:
    """A page of a list, and where the next one starts."""
    following = f',"continue":"{start + PAGE}"' if start + PAGE < len(items) else ""
    head = f'{{"kind":"List","metadata":{{"resourceVersion":"{PODS}"{following}}},"items":['
    return head.encode() + b",".join(items[start : start + PAGE]) + b"]}"


def memory() -> int:
    """Resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def measure(kubeconfig: str) -> None:
    """List, then watch, and print what it took."""
    client = connect(load_config(kubeconfig), user_agent="bench")
    logger = JsonLogger([sys.stderr], "error")
    clock = SystemClock()
    api = LightkubeApi(KubeHttp(client, clock), clock=clock, random=SystemRandom(), logger=logger)
    state = ClusterState()
    before, started, busy = memory(), time.perf_counter(), time.process_time()
    longest = await watchdog_around(lambda: sync(api, state))
    took, grown = time.perf_counter() - started, (memory() - before) / MIB
    busy = time.process_time() - busy
    print(f"initial sync of {PODS:,} pods and {NODES} nodes: {took:.2f} s ({busy:.2f} s of processor)")
    print(f"  {grown:.0f} MiB more; the loop was blocked for {longest * 1000:.0f} ms at most")
    started, count = time.perf_counter(), 0
    busy = time.process_time()
    async with aclosing(api.watch(Pod, str(PODS))) as events:
        async for event in events:
            if event.object is not None:
                state.observe(event.object)
            count += 1
            if count == EVENTS:
                break
    took = time.perf_counter() - started
    busy = time.process_time() - busy
    print(f"watch of pods into the cluster state: {count / took:,.0f} events/s")
    print(f"  {busy / count * 1e6:.0f} us of processor for each: {count / busy:,.0f} events/s on a core of its own")
    await api.close()


async def sync(api: LightkubeApi, state: ClusterState) -> None:
    """List into the state."""
    for kind in (Node, Pod):
        listing = await api.list(kind)
        state.relist(kind, listing.items, listing.resource_version)


async def watchdog_around(work: Any) -> float:
    """Run work; the longest time in seconds for which nothing else could run."""
    longest, running = 0.0, asyncio.create_task(work())
    while not running.done():
        before = time.perf_counter()
        await asyncio.sleep(_DOZE)
        longest = max(longest, time.perf_counter() - before - _DOZE)
    await running
    return longest


def main() -> int:
    """Make a certificate, start the server, measure."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = f"{folder}/tls.crt", f"{folder}/tls.key"
        make = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ]
        make += ["-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
        try:
            subprocess.run(make, check=True, capture_output=True)  # noqa: S603 - written above
        except FileNotFoundError:
            print("skipped: needs openssl to make a certificate")
            return 0
        serve = [sys.executable, __file__, "serve", certificate, key]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - this very file
            assert server.stdout is not None  # noqa: S101 - it was piped
            port = server.stdout.readline().strip()
            cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": certificate}
            config = {
                "clusters": [{"name": "bench", "cluster": cluster}],
                "contexts": [{"name": "bench", "context": {"cluster": "bench"}}],
                "current-context": "bench",
            }
            path = Path(folder, "kubeconfig")
            path.write_text(json.dumps(config), encoding="utf-8")
            try:
                asyncio.run(measure(str(path)))
            finally:
                server.kill()
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(Server().serve(*sys.argv[2:4]))
    else:
        sys.exit(main())
