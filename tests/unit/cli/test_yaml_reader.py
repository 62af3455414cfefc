"""YAML as kubectl reads it, with positions and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cli.errors import InputError, Place
from karpenter_linode.cli.yaml_reader import MAX_DEPTH, read_yaml


def plain(text: str) -> Any:
    (document,) = read_yaml(text, "file.yaml")
    return document.plain()


def failure(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_yaml(text, "file.yaml")
    return str(caught.value.findings[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("0x1f", 31),
        ("0o17", 15),
        ("017", 15),
        ("0b101", 5),
        ("1_000", 1000),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.30.2", "1.30.2"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("16Gi", "16Gi"),
        ("yes", True),
        ("Off", False),
        ("n", False),
        ("yEs", "yEs"),
        ("~", None),
        ("null", None),
        ("", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("- 1", [1]),
        ("-", [None]),
        ("+", "+"),
        ("08", 8.0),
        ("1e999", "1e999"),
    ],
)
def test_scalars_resolve_as_kubernetes_resolves_them(text: str, value: object) -> None:
    assert plain(f"key: {text}" if not text.startswith("- ") and text != "-" else f"key:\n{text}")["key"] == value


def test_a_number_of_many_digits_stays_text() -> None:
    assert plain("key: " + "9" * 2000)["key"] == "9" * 2000


def test_keys_become_text() -> None:
    assert plain("1: a\ntrue: b\n1.5: c") == {"1": "a", "true": "b", "1.5": "c"}


def test_not_a_number_is_refused() -> None:
    assert "file.yaml:1:6: .nan has no place" in failure("key: .nan")


def test_a_key_written_twice_is_refused_with_both_lines() -> None:
    assert failure("a: 1\nb: 2\na: 3\n") == "file.yaml:3:1: key 'a' is written twice in one mapping, first in line 1"


def test_a_list_as_key_is_refused() -> None:
    assert "a mapping key must be text" in failure("? [1, 2]\n: x\n")


def test_an_unknown_tag_is_refused() -> None:
    assert "YAML tag !!python/object:os.system" in failure("key: !!python/object:os.system {}").replace(
        "tag:yaml.org,2002:", "!!"
    )


def test_a_tag_that_does_not_fit_is_refused() -> None:
    assert "does not fit the tag" in failure("key: !!int abc")


def test_documents_are_numbered_and_empty_ones_left_out() -> None:
    documents = read_yaml("---\na: 1\n---\n# nothing\n---\nb: 2\n", "f")
    assert [(item.number, item.plain()) for item in documents] == [(1, {"a": 1}), (3, {"b": 2})]


def test_positions_of_values_and_keys() -> None:
    (document,) = read_yaml("spec:\n  limits:\n    cpu:   16\n  list:\n    - name: x\n", "f")
    assert document.place(("spec", "limits", "cpu")) == Place("f", 3, 12, 1)
    assert document.place(("spec", "limits", "cpu"), key=True) == Place("f", 3, 5, 1)
    assert document.place(("spec", "list", 0, "name")) == Place("f", 5, 13, 1)
    assert document.place(("spec", "list", 4, "name")) == Place("f", 5, 5, 1), "the nearest thing that exists"
    assert document.place(("nothing",)) == Place("f", 1, 1, 1)


def test_malformed_text_tells_where_it_ends_and_where_it_began() -> None:
    message = "while scanning a quoted scalar that starts at 2:6, found unexpected end of stream"
    assert failure('a:\n  b: "open\n') == f"file.yaml:3:1: malformed YAML: {message}"


def test_control_characters_are_refused() -> None:
    assert "malformed YAML" in failure("a: \x00")


def test_anchors_aliases_and_merges() -> None:
    assert plain("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\nc: *x\nd:\n  <<: [*x, {r: 4}]\n") == {
        "a": {"p": 1, "q": 2},
        "b": {"q": 3, "p": 1},
        "c": {"p": 1, "q": 2},
        "d": {"p": 1, "q": 2, "r": 4},
    }


def test_a_merge_of_a_scalar_is_refused() -> None:
    assert "the merge key << takes a mapping" in failure("a:\n  <<: 3\n")


def test_an_alias_of_itself_is_refused() -> None:
    assert "names no finished anchor" in failure("a: &x [*x]\n")


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "aliases stand for more than" in failure("\n".join(lines))


def test_merges_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{i}: x" for i in range(50)) + "}"]
    lines += [f"a{n}: &a{n} {{{', '.join(f'j{i}: *a{n - 1}' for i in range(50))}}}" for n in range(1, 6)]
    assert "aliases stand for more than" in failure("\n".join(lines))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_and_does_not_exhaust_the_stack(opening: str) -> None:
    assert f"nested deeper than {MAX_DEPTH} levels" in failure(opening * (MAX_DEPTH + 1) + "x")


def test_very_deep_nesting_ends_quickly() -> None:
    with pytest.raises(InputError):
        read_yaml("[" * 1_000_000, "f")
