"""Whole-world tests: real controllers, client and provider in an embedded cluster and cloud, in virtual time."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from karpenter_linode.operator.embedded import EmbeddedWorld, run_embedded
from karpenter_linode.operator.options import Options
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from karpenter_linode.operator.outcome import Outcome

DESCRIBED = """
apiVersion: karpenter.k8s.linode/v1alpha1
kind: LinodeNodeClass
metadata: {name: default}
spec: {}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements:
        - key: node.kubernetes.io/instance-type
          operator: In
          values: ["g2-gpu-rtx4000a1-s"]
      taints:
        - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
  limits:
    cpu: "16"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 1}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: gpu-job
  annotations: {simulate.karpenter-linode/runtime: 10m}
spec:
  restartPolicy: Never
  nodeSelector: {karpenter.sh/nodepool: gpu}
  tolerations:
    - {key: nvidia.com/gpu, operator: Equal, value: "true", effect: NoSchedule}
  resourceClaims:
    - {name: gpu, resourceClaimTemplateName: one-gpu}
  containers:
    - name: app
      image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
      resources:
        claims: [{name: gpu}]
"""


@pytest.fixture
def described() -> list[dict[str, Any]]:
    """NodePool, node class and claim template of the description."""
    return list(yaml.safe_load_all(DESCRIBED))


@pytest.fixture
def job() -> Callable[..., dict[str, Any]]:
    """A pod of the description; ``runtime`` None runs for ever."""

    def make(name: str = "gpu-job", runtime: str | None = "10m", **spec: Any) -> dict[str, Any]:
        pod = copy.deepcopy(yaml.safe_load(POD))
        pod["metadata"]["name"] = name
        pod["metadata"]["annotations"] = {"simulate.karpenter-linode/runtime": runtime} if runtime else {}
        pod["spec"].update(spec)
        return pod

    return make


@pytest.fixture
def simulate() -> Callable[..., Outcome]:
    """Run manifests to the end, DRA on unless options say otherwise."""

    def run(manifests: list[dict[str, Any]], **settings: Any) -> Outcome:
        settings.setdefault("options", Options(ignore_dra_requests=False))
        settings.setdefault("seed", 7)
        return run_embedded(manifests, **settings)

    return run


@pytest.fixture
def play() -> Callable[..., Any]:
    """Run a story against a started world; every part of the world must have survived it."""

    def run(manifests: list[dict[str, Any]], story: Callable[[EmbeddedWorld], Awaitable[Any]], **settings: Any) -> Any:
        settings.setdefault("options", Options(ignore_dra_requests=False))
        settings.setdefault("seed", 7)

        async def live() -> Any:
            world = EmbeddedWorld(manifests, **settings)
            await world.start()
            try:
                return await story(world)
            finally:
                await world.stop()

        return run_virtual(live())

    return run
