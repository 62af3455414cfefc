"""Each end-to-end test may fail once and is then tried again, loudly: many processes on a busy machine take part."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

# For one attempt of one test. What its fixtures do, a build among it, is not counted: it has limits of its own.
_SECONDS = 420
FIRST_FAILURE = "failure of the first attempt"
END_TO_END = "end to end"  # reports carry properties, and no markers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives end-to-end tests the time that they may need on a busy machine."""
    for item in items:
        if item.get_closest_marker("e2e") is not None:
            own = item.get_closest_marker("timeout")
            seconds = own.args[0] if own is not None else _SECONDS
            item.add_marker(pytest.mark.timeout(seconds, func_only=True), append=False)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs an end-to-end test, and once more where it fails; leaves all other tests to pytest."""
    if item.get_closest_marker("e2e") is None:
        return None
    item.user_properties.append((END_TO_END, True))
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failures = [report for report in reports if report.failed]
    if failures:
        _forget_broken_fixtures(item)
        item.user_properties.append((FIRST_FAILURE, "\n".join(report.longreprtext for report in failures)))
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _forget_broken_fixtures(item: pytest.Item) -> None:
    """A shared fixture that could not be set up would else fail again without being tried."""
    for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
        for definition in definitions:
            if definition.cached_result is not None and definition.cached_result[2] is not None:
                definition.cached_result = None


def is_end_to_end(report: pytest.TestReport) -> bool:
    """Whether the report is of an end-to-end test."""
    return END_TO_END in dict(report.user_properties)


def first_failure(report: pytest.TestReport) -> str:
    """How the first attempt failed, or "" where there was only one."""
    return str(dict(report.user_properties).get(FIRST_FAILURE, ""))
