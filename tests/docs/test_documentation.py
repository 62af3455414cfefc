"""The documentation is complete, its links resolve, and what it tells people to type exists."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec
import pytest
import yaml
from starlette.routing import Route

from karpenter_linode.cli.main import COMMANDS, PROGRAM, cli, run
from karpenter_linode.operator.flag_table import FLAGS, GATES, VARIABLES
from karpenter_linode.operator.metric_table import METRICS, NODE_LABELS, NOT_THERE
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.outcome import (
    BillLine,
    DeviceOutcome,
    JournalEntry,
    NodeClaimOutcome,
    Outcome,
    PodOutcome,
    UnplacedPod,
)
from karpenter_linode.sim.clock import WallClock
from karpenter_linode.sim.faults import Fault
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.world import LinodeWorld
from karpenter_linode.sim.scenario import Scenario, Step
from karpenter_linode.sim.seeded import SeededRandom

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))])
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"^(MEASURED|SETTINGS|TODO|TBD|FIXME)\b", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as MkDocs makes them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower() for title in titles)
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_resolve(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        assert goal.exists(), f"{page}: {target} does not exist"
        if anchor:
            assert anchor in anchors(goal), f"{page}: {target} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_nothing_is_left_to_fill_in(page: Path) -> None:
    assert PLACEHOLDER.search(page.read_text()) is None


def test_every_page_is_in_the_navigation() -> None:
    def files(node: Any) -> list[str]:
        if isinstance(node, str):
            return [node]
        return [name for value in (node.values() if isinstance(node, dict) else node) for name in files(value)]

    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(files(navigation)) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_the_reference_of_commands_is_what_the_commands_say() -> None:
    script = runpy.run_path(str(ROOT / "scripts/cli_reference.py"))
    hint = "run: .venv/bin/python scripts/cli_reference.py"
    assert (DOCS / "reference/cli.md").read_text() == script["page"](), hint


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (DOCS / "reference/cli.md").read_text()
    context = click.Context(cli, info_name=PROGRAM)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        for title, leaf in leaves(name, command):
            assert re.search(rf"^##+ {title}$", text, re.MULTILINE), f"{title} is not documented"
            for option in (option for parameter in leaf.params for option in parameter.opts if option.startswith("--")):
                assert f"{option}" in text, f"{title} {option} is not documented"


def leaves(title: str, command: click.Command) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(title, command)]
    return [leaf for name, child in command.commands.items() for leaf in leaves(f"{title} {name}", child)]


TABLES = runpy.run_path(str(ROOT / "scripts/reference_tables.py"))


@pytest.mark.parametrize("page", TABLES["PAGES"], ids=lambda page: page.name)
def test_tables_of_the_reference_are_what_the_program_has(page: Path) -> None:
    text = page.read_text()
    assert text == TABLES["filled"](text), "run: .venv/bin/python scripts/refresh_docs.py"


def first_cells(page: str) -> set[str]:
    """What the first cells of a page's tables name."""
    rows = re.findall(r"^\| (`.*?) \|", (DOCS / "reference" / page).read_text(), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_setting_is_documented_and_nothing_else() -> None:
    accepted = {f"--{flag.name}" for flag in FLAGS} | {item.name for item in VARIABLES} | set(GATES)
    accepted |= {flag.variable for flag in FLAGS if not flag.used}
    options = {field.name.replace("_", "-") for field in msgspec.structs.fields(Options)}
    assert first_cells("settings.md") == accepted | options


def test_every_metric_is_documented_and_nothing_else() -> None:
    assert first_cells("metrics.md") == set(METRICS) | set(NOT_THERE) | set(NODE_LABELS)


def test_the_command_takes_the_flags_of_the_table_and_no_others() -> None:
    command = cli.get_command(click.Context(cli), "controller")
    assert command is not None
    taken = {option for parameter in command.params for option in parameter.opts}
    assert taken == {f"--{flag.name}" for flag in FLAGS} | {"--kubeconfig", "--context"}


CHART = ROOT / "charts/karpenter"


def chart_values(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from chart_values(item, f"{path}.{key}" if path else key)
    else:
        yield path


def test_chart_values_that_settings_name_exist() -> None:
    values = set(chart_values(yaml.safe_load((CHART / "values.yaml").read_text())))
    for item in (*FLAGS, *VARIABLES):
        assert not item.chart or any(value == item.chart or value.startswith(f"{item.chart}.") for value in values), (
            item
        )


def test_chart_values_that_are_settings_are_named_by_one() -> None:
    named = {item.chart for item in (*FLAGS, *VARIABLES)}
    values = chart_values(yaml.safe_load((CHART / "values.yaml").read_text()))
    settings = [
        value for value in values if re.match(r"settings\.|log|linodeDebug|api|region|controller\..*\.port", value)
    ]
    assert len(settings) > 15
    for value in settings:
        covered = any(value == name or value.startswith(f"{name}.") for name in named if name)
        assert covered or value == "settings.clusterCABundle", f"{value} sets nothing"  # nothing reads a CA bundle


def test_variables_that_the_chart_sets_are_settings_and_the_table_says_from_which_value() -> None:
    template = (CHART / "templates/_env.tpl").read_text() + (CHART / "templates/secret.yaml").read_text()
    flags = {flag.variable: flag.chart for flag in FLAGS}
    charts = {**flags, **{item.name: item.chart for item in VARIABLES}}
    plain = re.findall(r'\(list "([A-Z_]+)" \$?\.?(?:Values\.)?([\w.]+)\)', template)
    assert len(plain) > 5
    for name, value in plain:
        assert charts[name] == value
    for name in re.findall(r"^(?:- name: )?([A-Z][A-Z_]+)(?::|$)", template, re.MULTILINE):
        assert charts[name], name


def test_every_member_of_the_output_for_machines_is_documented() -> None:
    text = (DOCS / "reference/output.md").read_text()
    spelled = {"price": "pricePerHour", "nanoDollars": "cost"}
    for struct in (Outcome, PodOutcome, NodeClaimOutcome, DeviceOutcome, BillLine, JournalEntry, UnplacedPod):
        for field in msgspec.structs.fields(struct):
            name = spelled.get(field.encode_name, field.encode_name)
            assert f"`{name}`" in text or f"`{name}[]`" in text, f"{struct.__name__}.{field.encode_name}"


def test_routes_of_the_emulator_are_documented() -> None:
    text = (DOCS / "user-guide.md").read_text()
    world = LinodeWorld(WallClock(), SeededRandom(0), types=(), regions=(), availability=())
    for route in create_app(world).routes:
        if isinstance(route, Route):
            assert f"`{route.path.removeprefix('/{version}')}`" in text, route.path


def test_every_fault_and_member_of_a_scenario_is_documented() -> None:
    text = (DOCS / "reference/scenarios.md").read_text()
    for fault in get_args(Fault):
        (row,) = re.findall(rf"^\| `{fault.__struct_config__.tag}` .*$", text, re.MULTILINE)
        for field in msgspec.structs.fields(fault):
            assert f"`{field.encode_name}`" in row, f"{fault.__struct_config__.tag}.{field.encode_name}"
    for struct in (Scenario, Step):
        for field in msgspec.structs.fields(struct):
            assert field.encode_name in text, f"{struct.__name__}.{field.encode_name}"


REFRESH = runpy.run_path(str(ROOT / "scripts/refresh_docs.py"))


@pytest.mark.parametrize("page", REFRESH["pages"](), ids=lambda page: page.name)
def test_runs_that_pages_show_are_real(page: Path) -> None:
    text = page.read_text()
    assert text == REFRESH["refreshed"](text), "run: .venv/bin/python scripts/refresh_docs.py"


def test_every_example_is_described() -> None:
    text = (ROOT / "examples/README.md").read_text()
    folders = {file.parent.relative_to(ROOT / "examples") for file in (ROOT / "examples").rglob("*.yaml")}
    for folder in folders - {Path("scenarios")}:
        assert f"| `{folder}` |" in text, f"{folder} is not described"


@pytest.mark.parametrize(
    ("name", "code"),
    re.findall(r"^\| `([\w/-]+)` \|.*\| (\d) \|$", (ROOT / "examples/README.md").read_text(), re.MULTILINE),
)
def test_examples_end_with_the_code_that_is_told(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["plan", f"examples/{name}"]) == int(code)


def console_commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for language, block in FENCE.findall(page.read_text()):
            if language in {"console", "sh", "bash"}:
                whole = block.replace("\\\n", " ").splitlines()  # continued lines joined
                found += [(page.name, line.removeprefix("$ ")) for line in whole if line.startswith("$ ")]
    return found


def test_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {line.split()[1] for _, line in console_commands() if line.startswith("make ")}
    for page in PAGES:
        named |= set(re.findall(r"`make ([a-z]+)`", page.read_text()))
    assert {"demo", "test"} <= named, "README names the two commands"
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"


@pytest.mark.parametrize(("page", "line"), console_commands())
def test_commands_that_pages_show_parse(page: str, line: str) -> None:
    for part in re.split(r"\s[|]\s|\s&&\s|\s+#\s", line):
        words = shlex.split(part)
        if not words or Path(words[0]).name != PROGRAM or "completion" in words:
            continue
        name, *arguments = words[1:]
        assert name in COMMANDS, f"{page}: {line}"
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if not {"-h", "--help"} & set(arguments):
            command.make_context(name, arguments)


PATH = re.compile(
    r"`((?:src|tests|examples|docs|scripts|bench|cli|model|cel|dra|catalog|scheduling|linode|cluster|sim|operator)/[\w/.-]*)`"
)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_paths_that_pages_name_exist(page: Path) -> None:
    for path in PATH.findall(page.read_text()):
        assert (ROOT / path).exists() or (ROOT / "src/karpenter_linode" / path).exists(), f"{page.name}: {path}"
