from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.operator.flag_table import FLAGS
from karpenter_linode.operator.flags import FlagError, read_settings
from karpenter_linode.operator.options import Options

NAME = {"CLUSTER_NAME": "prod"}


def test_defaults_are_those_of_the_contract() -> None:
    settings = read_settings({}, NAME)
    assert settings.options.ignore_dra_requests
    assert (settings.options.batch_idle_duration, settings.options.batch_max_duration) == (
        timedelta(seconds=1),
        timedelta(seconds=10),
    )
    assert (settings.metrics_port, settings.health_probe_port) == (8080, 8081)
    assert (settings.kube_qps, settings.kube_burst) == (200, 300)
    assert settings.lease_name == "karpenter-leader-election"
    assert settings.leader_election
    assert not settings.warmup
    assert settings.provider.instance_types.vm_memory_overhead == Fraction("0.075")
    assert (settings.provider.create_deadline, settings.provider.tag_verification_timeout) == (10, 4)
    assert settings.notes == ()


def test_a_flag_wins_over_the_environment_and_that_over_the_default() -> None:
    environment = {**NAME, "BATCH_MAX_DURATION": "5m", "METRICS_PORT": "9000"}
    settings = read_settings({"metrics-port": "9001", "batch-max-duration": None}, environment)
    assert settings.metrics_port == 9001
    assert settings.options.batch_max_duration == timedelta(minutes=5)


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("t", True), ("FALSE", False), ("f", False)])
def test_booleans_are_read_as_go_reads_them(text: str, expected: object) -> None:
    settings = read_settings({}, {**NAME, "IGNORE_DRA_REQUESTS": text})
    assert settings.options.ignore_dra_requests is expected
    assert settings.provider.ignore_dra_requests is expected


def test_a_variable_that_cannot_be_read_counts_as_unset_and_is_told_of() -> None:
    settings = read_settings({}, {**NAME, "IGNORE_DRA_REQUESTS": "nope", "BATCH_IDLE_DURATION": "soon"})
    assert settings.options.ignore_dra_requests
    assert len(settings.notes) == 2


def test_a_flag_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(FlagError, match="parsing flags, invalid value 'soon' for --batch-idle-duration"):
        read_settings({"batch-idle-duration": "soon"}, NAME)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"CLUSTER_NAME": ""}, "missing field, cluster-name"),
        ({"KARPENTER_MODE": "vm"}, """invalid mode "vm", must be either 'lke' or 'instance'"""),
        ({"KARPENTER_MODE": "instance"}, "mode instance is not supported"),
        ({"CLUSTER_ENDPOINT": "10.0.0.1"}, "cluster endpoint URL is not valid"),
        ({"VM_MEMORY_OVERHEAD_PERCENT": "-0.1"}, "vm-memory-overhead-percent cannot be negative"),
        ({"LOG_LEVEL": "loud"}, 'validating cli flags / env vars, invalid LOG_LEVEL "loud"'),
        ({"PREFERENCE_POLICY": "x"}, 'validating cli flags / env vars, invalid PREFERENCE_POLICY "x"'),
        ({"MIN_VALUES_POLICY": "x"}, 'validating cli flags / env vars, invalid MIN_VALUES_POLICY "x"'),
        ({"FEATURE_GATES": "NodeRepair"}, "parsing feature gates, missing bool value for NodeRepair"),
        ({"SCHEDULER_CONFIG": "podTopologySpreads: {}"}, "parsing scheduler config, decoding scheduler config, "),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_the_contracts_words(
    environment: dict[str, str], said: str
) -> None:
    with pytest.raises(FlagError) as found:
        read_settings({}, {**NAME, **environment})
    assert said in str(found.value)
    assert str(found.value).startswith("validating options, ")


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(FlagError) as found:
        read_settings({}, {"KARPENTER_MODE": "vm", "LOG_LEVEL": "loud"})
    assert all(part in str(found.value) for part in ("LOG_LEVEL", "cluster-name", "invalid mode"))


def test_gates_may_be_named_with_blanks_and_unknown_ones_are_ignored() -> None:
    settings = read_settings({}, {**NAME, "FEATURE_GATES": " ReservedCapacity = false , Nonsense=true"})
    assert not settings.options.reserved_capacity
    assert settings.notes == ()


def test_what_is_accepted_and_does_nothing_is_told_of() -> None:
    environment = {**NAME, "FEATURE_GATES": "NodeOverlay=true,NodeRepair=false", "LINODE_REGION": "us-east"}
    settings = read_settings({"enable-profiling": "true"}, environment)
    assert settings.notes == (
        "--enable-profiling (ENABLE_PROFILING) has no effect: Profiles of a Go program.",
        "feature gate NodeOverlay is not available in this program and stays off",
        "LINODE_REGION has no effect: Never read; CLUSTER_REGION sets the region.",
    )


def test_defaults_are_those_of_upstream() -> None:
    settings = read_settings({}, NAME)
    assert settings.options == Options()
    assert settings.provider == ProviderOptions(create_deadline=10)
    defaults = {flag.name: flag.default for flag in FLAGS}
    assert defaults["batch-max-duration"] == "10s"
    assert defaults["batch-idle-duration"] == "1s"
    assert defaults["ignore-dra-requests"] == "true"
    assert defaults["vm-memory-overhead-percent"] == "0.075"
    assert [defaults[f"lke-{name}"] for name in ("create-deadline", "tag-verification-timeout", "retry-delay")] == [
        "10s",
        "4s",
        "2s",
    ]


def test_zero_means_the_default_for_the_times_of_lke() -> None:
    zero = {"LKE_CREATE_DEADLINE": "0s", "LKE_TAG_VERIFICATION_TIMEOUT": "0s", "LKE_RETRY_DELAY": "0s"}
    provider = read_settings({}, {**NAME, **zero}).provider
    assert (provider.create_deadline, provider.tag_verification_timeout, provider.poll_interval) == (10, 4, 2)


@pytest.mark.parametrize(
    ("millicores", "workers"),
    [("100", (10, 1000, 100)), ("0", (10, 1000, 100)), ("4000", (60, 1203, 349)), ("64000", (1000, 5000, 5000))],
)
def test_more_processor_means_more_work_at_a_time(millicores: str, workers: tuple[int, int, int]) -> None:
    options = read_settings({}, {**NAME, "CPU_REQUESTS": millicores}).options
    assert (options.workers, options.launch_workers, options.drain_workers) == workers


def test_every_default_can_be_read() -> None:
    parsed: list[Any] = [flag.parse(flag.default) for flag in FLAGS]
    assert len(parsed) == len({flag.variable for flag in FLAGS})
