"""Semantic versions: strict reading and precedence."""

import pytest

from karpenter_linode.model.semver import SemVer, SemVerError

# semver.org 2.0.0, section 11: each precedes the next
ORDERED = (
    "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11"
    " 1.0.0-rc.1 1.0.0 1.0.1 1.10.0 2.0.0"
)


def test_precedence_follows_the_standard() -> None:
    versions = [SemVer.parse(text) for text in ORDERED.split()]
    for index, version in enumerate(versions):
        assert [version.compare(other) for other in versions] == [
            (index > other) - (index < other) for other in range(len(versions))
        ]


def test_build_metadata_has_no_precedence_but_stays_in_the_text() -> None:
    left, right = SemVer.parse("1.0.0+a"), SemVer.parse("1.0.0+b")
    assert left.compare(right) == 0
    assert left != right
    assert str(left) == "1.0.0+a"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "v1.2.3",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3-a..b",
        "550.127.08",
        "1.2.3.4",
        "1.2.3 ",
        "1.2.3+",
        "99999999999999999999.0.0",
    ],
)
def test_what_is_no_version_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(SemVerError) as caught:
        SemVer.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("form", ["{}.0.0", "1.0.0-{}", "1.0.0-a.{}"])
def test_numbers_beyond_64_bits_are_refused_however_long(form: str) -> None:
    for number in (str(2**64), "9" * 5000):
        with pytest.raises(SemVerError, match="is not a semantic version"):
            SemVer.parse(form.format(number))
