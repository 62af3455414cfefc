from __future__ import annotations

import pytest

from karpenter_linode.model.core import TopologySpreadConstraint
from karpenter_linode.operator.flags import FlagError, read_settings
from karpenter_linode.operator.permissions import permissions
from karpenter_linode.operator.scheduler_config import SchedulerConfigError, parse_scheduler_config

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
TEXT = f"""
podTopologySpread:
  defaultConstraints:
    - maxSkew: 3
      topologyKey: {ZONE}
      whenUnsatisfiable: ScheduleAnyway
    - {{"maxSkew": 1, "topologyKey": "{HOST}", "whenUnsatisfiable": "DoNotSchedule", "minDomains": null}}
"""


def configured(*constraints: str) -> str:
    return f'{{"podTopologySpread": {{"defaultConstraints": [{", ".join(constraints)}]}}}}'


def test_constraints_are_read_from_yaml_and_json() -> None:
    assert parse_scheduler_config(TEXT) == (
        TopologySpreadConstraint(max_skew=3, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
        TopologySpreadConstraint(max_skew=1, topology_key=HOST),
    )


@pytest.mark.parametrize("text", ["", "  \n", "# nothing", "{}", "podTopologySpread:", configured()])
def test_an_empty_configuration_switches_it_off(text: str) -> None:
    assert parse_scheduler_config(text) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spread: {}", "decoding scheduler config, Object contains unknown field `spread`"),
        ("podTopologySpread: {constraints: []}", "decoding scheduler config, Object contains unknown field"),
        (configured('{"maxSkew": 1, "key": "a"}'), "decoding scheduler config, Object contains unknown field `key`"),
        (configured('{"maxSkew": "1"}'), "decoding scheduler config, Expected `int`, got `str`"),
        ("[", "decoding scheduler config, while parsing"),
        ("a: 1\na: 2", "decoding scheduler config, key 'a' is there twice"),
        ("a: &x [1]\nb: *x", "decoding scheduler config, aliases are not allowed"),
        ("[" * 5000, "decoding scheduler config, nested too deeply"),
        ("- 1", "decoding scheduler config, Expected `object`, got `array`"),
        ("a: 2026-13-45", "decoding scheduler config, a value is not of its type"),
        ("a: " + "1" * 5000, "decoding scheduler config, a value is not of its type"),
        ("a: !!int x", "decoding scheduler config, a value is not of its type"),
        ("a: !!bool x", "decoding scheduler config, a value is not of its type"),
        ("a: !!timestamp x", "decoding scheduler config, a value is not of its type"),
        (
            configured('{"topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}'),
            "validating scheduler config, podTopologySpread.defaultConstraints[0].maxSkew must be greater than 0",
        ),
        (
            configured('{"maxSkew": 1, "topologyKey": "a"}'),
            'defaultConstraints[0].whenUnsatisfiable "" must be one of "DoNotSchedule" or "ScheduleAnyway"',
        ),
        (
            configured('{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}'),
            "defaultConstraints[0].labelSelector must not be set, as selectors are deduced for each pod",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SchedulerConfigError) as caught:
        parse_scheduler_config(text)
    assert str(caught.value).startswith("parsing scheduler config, ")
    assert message in str(caught.value)


def test_the_controller_takes_it_from_its_environment_and_does_not_start_on_a_faulty_one() -> None:
    options = read_settings({}, {"CLUSTER_NAME": "lab", "SCHEDULER_CONFIG": TEXT}).options
    assert options.scheduling().default_spread == parse_scheduler_config(TEXT)
    with pytest.raises(FlagError, match="parsing scheduler config, decoding scheduler config, "):
        read_settings({"scheduler-config": "x: 1"}, {"CLUSTER_NAME": "lab"})


def test_services_and_workloads_are_read_only_where_a_spread_is_set() -> None:
    more = {str(item) for item in permissions(with_devices=False, with_spread=True)}
    more -= {str(item) for item in permissions(with_devices=False)}
    plurals = {"services", "replicationcontrollers", "replicasets.apps", "statefulsets.apps"}
    assert more == {f"{verb} {plural}" for plural in plurals for verb in ("list", "watch")}
