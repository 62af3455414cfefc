from __future__ import annotations

import asyncio
import stat
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import yaml

from karpenter_linode.kube.config import connect, load_config
from karpenter_linode.kube.credentials import ExecAuth, ExecPlugin
from karpenter_linode.kube.errors import ConnectionConfigError

if TYPE_CHECKING:
    from pathlib import Path


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
