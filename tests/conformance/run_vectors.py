"""Answer conformance vectors: ``run_vectors.py SUBCOMMAND FILE.jsonl.gz`` prints one JSON line for each row.

The form of rows and answers is that of the vectors' README, so that any file of that form can be judged from outside.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scheduling_cases

from karpenter_linode.cel import CompileError, EvaluationError
from karpenter_linode.dra import AllocationError, Features, InUse, allocate_on_node
from karpenter_linode.dra.selector import Shape, device_environment
from karpenter_linode.model import codec
from karpenter_linode.model.core import Node
from karpenter_linode.model.resource import Device, DeviceClass, DeviceID, ResourceClaim, ResourceSlice
from karpenter_linode.scheduling import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CEL_ENVIRONMENT = device_environment()


def answer_dra(row: dict[str, Any]) -> dict[str, Any]:
    """Allocate the claims of a row on its node."""
    given = row["input"]
    claims = [codec.convert(claim, ResourceClaim) for claim in given["claims"]]
    try:
        results = allocate_on_node(
            codec.convert(given["node"], Node),
            [codec.convert(item, ResourceSlice) for item in given["slices"]],
            [codec.convert(item, DeviceClass) for item in given["classes"]],
            claims,
            InUse(frozenset(map(_device_id, given.get("allocated") or ()))),
            codec.convert(given.get("features") or {}, Features),
        )
    except AllocationError as error:
        return {"id": row["id"], "outcome": "error", "error": error.message}
    if results is None:
        return {"id": row["id"], "outcome": "none"}
    return {
        "id": row["id"],
        "outcome": "allocated",
        "results": {
            claim.name: [[item.request, f"{item.driver}/{item.pool}/{item.device}"] for item in result.devices.results]
            for claim, result in zip(claims, results, strict=True)
        },
        "node_selector": {
            claim.name: codec.to_plain(result.node_selector) for claim, result in zip(claims, results, strict=True)
        },
    }


def _device_id(text: str) -> DeviceID:
    """``driver/pool/device``; the pool's name may have slashes in it."""
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    return DeviceID(driver, pool, device)


def answer_scheduling(row: dict[str, Any]) -> dict[str, Any]:
    """Solve the problem of a row."""
    outcome = scheduling_cases.to_outcome(solve(scheduling_cases.to_problem(row["problem"])))
    return {"id": row["id"], **outcome}


def answer_cel(row: dict[str, Any]) -> dict[str, Any]:
    """Apply the selector of a row to its device."""
    given = row["device"]
    amounts = given.get("capacity") or {}
    capacity = {name: {"value": amount} if isinstance(amount, str) else amount for name, amount in amounts.items()}
    device = codec.convert({"name": "device", **given, "capacity": capacity}, Device)
    shape = Shape(0, given["driver"], device, {})
    try:
        matched = CEL_ENVIRONMENT.compile(row["expression"]).evaluate(shape.cel_input())
    except CompileError as error:
        return {"id": row["id"], "outcome": "compile_error", "error": error.render()}
    except EvaluationError as error:
        return {"id": row["id"], "outcome": "runtime_error", "error": error.message}
    return {"id": row["id"], "outcome": "match" if matched else "no_match"}


SUBCOMMANDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "cel": answer_cel,
    "dra": answer_dra,
    "scheduling": answer_scheduling,
}


# What a row comes to whose objects no API server would have stored.
MALFORMED = {"cel": "runtime_error", "dra": "error"}


def answer(subcommand: str, row: dict[str, Any]) -> dict[str, Any]:
    """The answer to a row, also to one that holds no valid objects."""
    try:
        return SUBCOMMANDS[subcommand](row)
    except codec.DecodeError as error:
        if subcommand not in MALFORMED:
            raise
        return {"id": row["id"], "outcome": MALFORMED[subcommand], "error": f"malformed input: {error}"}


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, gzipped or plain."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def main(arguments: list[str]) -> int:
    """Run from the command line; 2 for a call that makes no sense."""
    if len(arguments) != 2 or arguments[0] not in SUBCOMMANDS:
        sys.stderr.write(f"usage: run_vectors.py {'|'.join(sorted(SUBCOMMANDS))} FILE.jsonl.gz\n")
        return 2
    for row in read_rows(Path(arguments[1])):
        sys.stdout.write(json.dumps(answer(arguments[0], row), separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
