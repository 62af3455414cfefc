"""A few stories of the chaos campaign, and that its judge can tell bad from good; ``campaign.py`` plays many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import campaign
import campaign_play
import campaign_story
import pytest
from msgspec.structs import replace

CAMPAIGN = Path(__file__).with_name("campaign.py")
SEEDS = (302, 400, 401, 403, 404, 405, 407, 410)
REPLAYED = 308


@pytest.mark.parametrize("seed", SEEDS)
def test_a_story_ends_well(seed: int) -> None:
    verdict = campaign.run_seed(seed)
    assert verdict.wrong == ()
    assert verdict.claims > 0


def test_a_story_is_the_same_whenever_it_is_told() -> None:
    code = f"import sys; sys.path.insert(0, {str(CAMPAIGN.parent)!r}); import campaign; "
    code += f"print(campaign.run_seed({REPLAYED}).digest)"
    digests = {
        subprocess.run(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert digests == {campaign.run_seed(REPLAYED).digest}


def test_another_seed_tells_another_story() -> None:
    assert campaign_story.random_story(1) != campaign_story.random_story(2)


def test_the_judge_sees_what_was_bought_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = campaign_play.Stage
    plain = stage._calm

    async def bought_behind_their_back(self: Any) -> None:
        body = {"type": "g6-standard-2", "region": "us-ord", "label": "stray"}
        self.cluster.linode.create_machine(body)
        await plain(self)

    monkeypatch.setattr(stage, "_calm", bought_behind_their_back)
    monkeypatch.setattr(campaign_play, "REST", 600.0)
    story = replace(campaign_story.random_story(REPLAYED), acts=())
    wrong = campaign_play.play(story).wrong
    assert any("is billed" in line for line in wrong)
    assert "1 Linodes for 0 NodeClaims (late POSTs: 0)" in wrong
