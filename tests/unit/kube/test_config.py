from __future__ import annotations

import asyncio
import ssl
import stat
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest
import yaml

from karpenter_linode.kube.config import ClusterEntry, NamedServer, connect, load_config
from karpenter_linode.kube.credentials import ExecAuth, ExecPlugin
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.kube.streaming import STREAM


def kubeconfig(name: str, **user: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        "current-context": name,
    }


def write(path: Path, document: Any) -> str:
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def test_a_given_file_goes_before_the_environment(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", kubeconfig("one")), write(tmp_path / "two", kubeconfig("two"))
    assert load_config(one, {"KUBECONFIG": two}).cluster.server == "https://one:6443"
    assert load_config("", {"KUBECONFIG": two}).namespace == "ns-two"


def test_several_files_are_merged_and_the_first_one_wins(tmp_path: Path) -> None:
    first = kubeconfig("one")
    second = kubeconfig("two", token="t")
    second["clusters"].append({"name": "one", "cluster": {"server": "https://other"}})
    del first["current-context"]
    config = load_config(
        "", {"KUBECONFIG": f"{write(tmp_path / 'a', first)}:{tmp_path / 'missing'}:{write(tmp_path / 'b', second)}"}
    )
    assert config.context_name == "two"
    first["current-context"] = "one"
    config = load_config(f"{write(tmp_path / 'a', first)}:{tmp_path / 'b'}", {})
    assert config.cluster.server == "https://one:6443"


def test_files_that_a_kubeconfig_names_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    config = load_config(write(tmp_path / "sub" / "config", kubeconfig("one", tokenFile="token")), {})
    assert config.user is not None
    assert config.user.token_file == str(tmp_path / "sub" / "token")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"clusters": [], "contexts": [], "users": []}, "current context"),
        ({**kubeconfig("one"), "current-context": "nine"}, "nine"),
        ([1], "expected a mapping"),
        ({"contexts": [{"name": "x", "context": {"cluster": "gone"}}], "current-context": "x"}, "cannot be used"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_reason(tmp_path: Path, document: Any, said: str) -> None:
    with pytest.raises(ConnectionConfigError, match=f"(?i){said}"):
        load_config(write(tmp_path / "config", document), {})


def test_a_context_other_than_the_current_one_may_be_named(tmp_path: Path) -> None:
    both = kubeconfig("one")
    for section in ("clusters", "users", "contexts"):
        both[section] += kubeconfig("two")[section]
    file = write(tmp_path / "config", both)
    assert load_config(file, {}).cluster.server == "https://one:6443"
    assert load_config(file, {}, context="two").cluster.server == "https://two:6443"
    with pytest.raises(ConnectionConfigError, match="three"):
        load_config(file, {}, context="three")


def test_the_servers_certificate_may_be_checked_against_another_name(tmp_path: Path) -> None:
    document = kubeconfig("one")
    document["clusters"][0]["cluster"]["tls-server-name"] = "kubernetes.internal"
    config = load_config(write(tmp_path / "config", document), {})
    assert isinstance(config.cluster, ClusterEntry)
    assert config.cluster.tls_server_name == "kubernetes.internal"
    seen: list[str] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.extensions["sni_hostname"])
        return httpx2.Response(200)

    async def send() -> None:
        transport = NamedServer(httpx2.MockTransport(answer), "kubernetes.internal")
        async with httpx2.AsyncClient(transport=transport) as client:
            await client.get("https://one:6443/")
        async with connect(config, user_agent="test") as client:
            assert isinstance(client._transport, NamedServer)

    asyncio.run(send())
    assert seen == ["kubernetes.internal"]


def test_calls_and_streams_go_through_the_proxy_that_a_kubeconfig_names(tmp_path: Path) -> None:
    lines: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def send() -> None:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        document = kubeconfig("one")
        document["clusters"][0]["cluster"] = {
            "server": "http://api.invalid:6443",
            "proxy-url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
        }
        async with server, connect(load_config(write(tmp_path / "config", document), {}), user_agent="t") as client:
            assert (await client.get("/version")).content == b"{}"
            assert (await client.get("/api/v1/pods", extensions={STREAM: True})).content == b"{}"

    asyncio.run(send())
    assert lines == ["GET http://api.invalid:6443/version HTTP/1.1", "GET http://api.invalid:6443/api/v1/pods HTTP/1.1"]


def test_a_proxy_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    document = kubeconfig("one")
    document["clusters"][0]["cluster"]["proxy-url"] = "ftp://proxy"
    with pytest.raises(ConnectionConfigError, match="proxy-url 'ftp://proxy': expected one of http, https, socks5"):
        load_config(write(tmp_path / "config", document), {})


def test_no_configuration_at_all_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="set KUBECONFIG or --kubeconfig"):
        load_config(str(tmp_path / "nothing"), {})


def test_certificates_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    document = kubeconfig("one")
    document["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    with pytest.raises(ConnectionConfigError, match="context one"):
        connect(load_config(write(tmp_path / "config", document), {}), user_agent="test")


def plugin(tmp_path: Path, text: str) -> str:
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def sent(auth: ExecAuth, *codes: int) -> list[str]:
    """The Authorization headers of one request for each code."""
    headers: list[str] = []
    answers = list(codes)

    async def answer(request: httpx2.Request) -> httpx2.Response:
        headers.append(request.headers["Authorization"])
        return httpx2.Response(answers.pop(0))

    async def send() -> None:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), auth=auth) as client:
            while answers:
                await client.get("http://api/")

    asyncio.run(send())
    return headers


def test_a_plugin_is_asked_once_and_again_when_its_token_is_refused(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f'echo x >> {count}; n=$(wc -l < {count}); echo "{{\\"status\\": {{\\"token\\": \\"t$n\\"}}}}"'
    auth = ExecAuth(ExecPlugin("client.authentication.k8s.io/v1", plugin(tmp_path, script)))
    assert sent(auth, 200, 200, 401, 200) == ["Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"]


def test_a_token_that_has_expired_is_replaced(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = (
        f"echo x >> {count}; n=$(wc -l < {count}); "
        'echo "{\\"status\\": {\\"token\\": \\"t$n\\", \\"expirationTimestamp\\": \\"2020-01-01T00:00:00Z\\"}}"'
    )
    auth = ExecAuth(ExecPlugin("client.authentication.k8s.io/v1beta1", plugin(tmp_path, script)))
    assert sent(auth, 200, 200) == ["Bearer t1", "Bearer t2"]


class Certificates(ssl.SSLContext):
    """Notes what is loaded."""

    loaded: ClassVar[list[str]] = []

    def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        self.loaded.append(Path(certfile).read_text(encoding="utf-8"))


def test_a_plugin_may_give_a_client_certificate(tmp_path: Path) -> None:
    said = '{"status": {"clientCertificateData": "CERTIFICATE", "clientKeyData": "KEY"}}'
    file = plugin(tmp_path, f"echo '{said}'")
    context = Certificates(ssl.PROTOCOL_TLS_CLIENT)
    auth = ExecAuth(ExecPlugin("client.authentication.k8s.io/v1", file), context)

    async def send() -> None:
        transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=dict(request.headers)))
        async with httpx2.AsyncClient(transport=transport, auth=auth) as client:
            for _ in range(2):
                assert "authorization" not in (await client.get("http://api/")).json()

    asyncio.run(send())
    assert context.loaded == ["CERTIFICATE\nKEY\n"]


def test_a_client_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    said = '{"status": {"clientCertificateData": "CERTIFICATE", "clientKeyData": "KEY"}}'
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    auth = ExecAuth(ExecPlugin("client.authentication.k8s.io/v1", plugin(tmp_path, f"echo '{said}'")), context)
    with pytest.raises(ConnectionConfigError, match="client certificate that cannot be used"):
        sent(auth, 200)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo oops >&2; exit 3", "exit code 3: oops"),
        ("echo hello", "no ExecCredential"),
        ('echo "{}"', "printed no token"),
    ],
)
def test_a_plugin_that_fails_says_how(tmp_path: Path, script: str, said: str) -> None:
    auth = ExecAuth(ExecPlugin("client.authentication.k8s.io/v1", plugin(tmp_path, script)))
    with pytest.raises(ConnectionConfigError, match=said):
        sent(auth, 200)


def test_an_unknown_version_of_the_plugins_protocol_is_refused() -> None:
    with pytest.raises(ConnectionConfigError, match="v1alpha1"):
        ExecAuth(ExecPlugin("client.authentication.k8s.io/v1alpha1", "x"))


@pytest.mark.parametrize("text", ["a: 2026-13-45", "a: !!int x", "a: !!bool x", "[" * 5000, "a: " + "1" * 5000, "\x00"])
def test_a_kubeconfig_that_cannot_be_parsed_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConnectionConfigError, match=f"kubeconfig {file}: "):
        load_config(str(file))


def test_a_kubeconfig_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConnectionConfigError, match=f"kubeconfig {file}: "):
        load_config(str(file))
