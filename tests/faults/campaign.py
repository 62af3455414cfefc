"""Chaos campaign: many random stories, each judged by the same laws. ``python tests/faults/campaign.py --seeds 500``.

Without ``--seed`` it prints one line for each story that ended badly, and the numbers; with it, one story is cut down
to what it takes, and told.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import campaign_play
import campaign_story
from msgspec.structs import replace


def say(what: Any) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def run_seed(seed: int) -> Any:
    """Play the story of a seed; the verdict comes without the journal."""
    return replace(campaign_play.play(campaign_story.random_story(seed)), journal=b"")


def minimised(story: Any) -> Any:
    """The story with the acts left out that its bad end doesn't take."""
    wanted = _kinds(campaign_play.play(story).wrong)
    size = max(1, len(story.acts) // 2)
    while size:
        start = 0
        while start < len(story.acts):
            shorter = replace(story, acts=story.acts[:start] + story.acts[start + size :])
            if _kinds(campaign_play.play(shorter).wrong) & wanted:
                story = shorter
            else:
                start += size
        size //= 2
    return story


def _kinds(wrong: tuple[str, ...]) -> set[str]:
    return {"".join(char for char in line if not char.isdigit())[:12] for line in wrong}


def tell(seed: int) -> None:
    """Cut a story down, and print what is left and how it went."""
    story = minimised(campaign_story.random_story(seed))
    verdict = campaign_play.play(story)
    (Path.cwd() / f"campaign-{seed}.jsonl").write_bytes(verdict.journal)
    for manifest in story.manifests:
        say(manifest)
    for act in story.acts:
        say(act)
    say(replace(verdict, journal=b""))


def main() -> int:
    """Run stories."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many stories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="cut down and tell this one story")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    if options.seed is not None:
        tell(options.seed)
        return 0
    seeds = range(options.first, options.first + options.seeds)
    started, bad, totals = time.monotonic(), 0, [0, 0, 0]
    with ProcessPoolExecutor(options.jobs) as pool:
        for seed, verdict in zip(seeds, pool.map(run_seed, seeds), strict=True):
            totals = [sum(pair) for pair in zip(totals, (verdict.pods, verdict.claims, verdict.linodes), strict=True)]
            if verdict.wrong:
                bad += 1
                say(f"seed {seed}: {'; '.join(verdict.wrong[:6])}")
    seconds = time.monotonic() - started
    numbers = "{} pods, {} NodeClaims, {} Linodes".format(*totals)
    say(f"{options.seeds} stories ({numbers}) in {seconds:.0f} s, {bad} ended badly")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
