"""The list of end-to-end tests at the end of a run, each in words and with its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attempts import first_failure, is_end_to_end

if TYPE_CHECKING:
    import pytest

_WORST_FIRST = ("failed", "error", "skipped", "passed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the list, where end-to-end tests ran."""
    reports = _reports(terminalreporter)
    if not reports:
        return
    terminalreporter.section("scenarios on the real control plane")
    for outcome in _WORST_FIRST[::-1]:
        for report in reports.get(outcome, ()):
            terminalreporter.line(_line(outcome, report), red=outcome in {"failed", "error"})
    again = [report for report in reports.get("passed", ()) if first_failure(report)]
    for report in again:
        terminalreporter.section(f"passed on the second attempt: {report.nodeid}", yellow=True)
        terminalreporter.line(first_failure(report))
    counts = [f"{len(found)} {outcome}" for outcome, found in reports.items()]
    counts.append(f"{len(again)} of them on the second attempt")
    terminalreporter.section(", ".join(counts), yellow=bool(again))


def _reports(terminalreporter: pytest.TerminalReporter) -> dict[str, list[pytest.TestReport]]:
    found: dict[str, list[pytest.TestReport]] = {}
    for outcome in _WORST_FIRST:
        items = [
            item
            for item in terminalreporter.stats.get(outcome, ())
            if is_end_to_end(item) and (item.when == "call" or outcome != "passed")
        ]
        if items:
            found[outcome] = sorted(items, key=lambda item: item.nodeid)
    return found


def _line(outcome: str, report: pytest.TestReport) -> str:
    path, _, name = report.nodeid.partition("::")
    if outcome == "passed" and first_failure(report):
        outcome = "PASSED ON THE SECOND ATTEMPT"
    why = f" ({report.longrepr[2].removeprefix('Skipped: ')})" if isinstance(report.longrepr, tuple) else ""
    return f"{outcome:8} {path.rpartition('/')[2]}: {name.removeprefix('test_').replace('_', ' ')}{why}"
