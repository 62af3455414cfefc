"""What the controllers write in a whole run is what the CRDs allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.options import Options
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.store import Store

EXAMPLE = Path(__file__).parents[3] / "examples" / "one-gpu"


def test_every_object_that_is_written_is_one_that_the_crds_allow(crds: Any, monkeypatch: Any) -> None:
    written: dict[str, list[Any]] = {kind: [] for kind in crds}
    create, patch = Store.create, Store.patch

    def noting(call: Any) -> Any:
        def write(store: Store, *arguments: Any, **named: Any) -> Any:
            stored = call(store, *arguments, **named)
            if stored.plain["kind"] in written:
                written[stored.plain["kind"]].append(stored.plain)
            return stored

        return write

    monkeypatch.setattr(Store, "create", noting(create))
    monkeypatch.setattr(Store, "patch", noting(patch))
    manifests = [item for path in sorted(EXAMPLE.glob("*.yaml")) for item in yaml.safe_load_all(path.read_text())]

    async def live() -> None:
        await EmbeddedWorld(manifests, seed=7, options=Options(ignore_dra_requests=False)).run(7200)

    run_virtual(live())

    assert {kind for kind, objects in written.items() if len(objects) > 2} == crds.keys() - {"NodeOverlay"}
    problems = [
        problem for kind, objects in written.items() for item in objects for problem in crds[kind].problems(item)
    ]
    assert problems == []
