"""Just enough of the two APIs on loopback to keep a controller process alive: nothing exists, everything is allowed."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import yaml

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "/apis/karpenter.sh/v1": ["nodepools", "nodepools/status", "nodeclaims", "nodeclaims/status"],
    "/apis/karpenter.k8s.linode/v1alpha1": ["linodenodeclasses", "linodenodeclasses/status"],
}
_CLUSTER = {"id": 1, "label": "prod", "region": "us-ord", "tier": "standard", "status": "ready", "k8s_version": "1.37"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a loaded machine accepts late


class ControlPlaneStub:
    """A context manager; inside, ``url`` answers.

    Attributes:
        scopes: of the Linode token.
        hold_release: whether the lease, given back, is never taken.
        released: set once the lease is given back.
        ending: set at the end, for those who wait.
    """

    def __init__(self) -> None:
        self.scopes = "*"
        self.hold_release = False
        self.released = threading.Event()
        self.ending = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._server.shutdown()
        self.close()

    def close(self) -> None:
        """Stop listening."""
        self._server.server_close()

    def kubeconfig(self, folder: Path) -> str:
        """A kubeconfig file for it."""
        file = folder / "kubeconfig"
        document = {
            "clusters": [{"name": "stub", "cluster": {"server": self.url}}],
            "users": [{"name": "stub", "user": {"token": "the-token-of-the-cluster"}}],
            "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}],
            "current-context": "stub",
        }
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        return str(file)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path.startswith("/v4beta/"):
            found = [_CLUSTER] if path.endswith("/lke/clusters") else []
            page = {"data": found, "page": 1, "pages": 1, "results": len(found)}
            self._answer(200, page, {"X-OAuth-Scopes": self._stub.scopes})
        elif path == "/version":
            self._answer(200, {"gitVersion": "v1.37.0"})
        elif path in KINDS:
            self._answer(200, {"resources": [{"name": name} for name in KINDS[path]]})
        elif "watch=true" in query:
            self._silence()
        elif "/leases/" in path:
            self._answer(404, {"kind": "Status", "reason": "NotFound", "code": 404})
        else:
            self._answer(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})

    def do_POST(self) -> None:
        body = self._body()
        if body.get("kind") == "SelfSubjectAccessReview":
            self._answer(201, {"status": {"allowed": True}})
        else:
            self._answer(201, {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}})

    def do_PATCH(self) -> None:
        body = self._body()
        if body.get("spec", {}).get("holderIdentity") == "":
            self._stub.released.set()
            if self._stub.hold_release:
                self._stub.ending.wait()
                self.close_connection = True
                return
        self._answer(200, {**body, "metadata": {"name": "lease", "resourceVersion": "2"}})

    @property
    def _stub(self) -> ControlPlaneStub:
        return self.server.stub  # type: ignore[attr-defined,no-any-return]

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _silence(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self._stub.ending.wait()
        self.close_connection = True

    def _answer(self, code: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        for key, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing to say."""
