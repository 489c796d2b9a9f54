"""Say what came of a site's stories: `python -m tests.scheduler.promises.site_report [STORY...]`.

`--keep-hot "5 min"` gives that to all projects that have no parent, `--min-runtime "10 min"` to batch cells.
"""

import argparse
import heapq
from collections import Counter, defaultdict

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.site_books import Asked, Site, play_site
from tests.scheduler.promises.site_people import SITE
from tests.scheduler.promises.site_stories import STORIES, Story
from tests.scheduler.promises.stories import NINE_MS, quotas


def history_of(story: Story, text: str = "") -> hi.History:
    """Make the history of a story; `text` is what its quota file says instead."""
    happenings = tuple(sorted(story.happenings, key=lambda one: one.ms))
    settings, until_ms = quotas(text or story.text), round(story.last_s * 1000)
    return hi.History(begin_ms=NINE_MS, settings=settings, happenings=happenings, until_ms=until_ms, delays=SITE)


def table(site: Site, until_s: float) -> str:
    """Show what came, by group: sessions are named after it, and numbered."""
    groups: dict[str, list[Asked]] = defaultdict(list)
    for one in site.asked.values():
        groups[group_of(one.event.session)].append(one)
    gpus = sum(site.nodes.values())
    busy = gpus * until_s - site.idle_s
    lost = sum(site.losses())
    idle, waited = site.idle_s / gpus / until_s, site.waited_idle_s / gpus / until_s
    lines = [
        f"  {gpus} GPUs, {until_s / 3600:.1f} h, {len(site.asked)} requests",
        f"  idle {idle:.1%}, while somebody waits {waited:.2%}",
        f"  taken {len(site.taken)} cells, lost {lost / 3600:.1f} GPU-h, {lost / max(1, busy):.1%} of what ran",
    ]
    rights = Counter(right.value for _, _, right in site.taken)
    lines.append(f"  by right: {dict(rights)}")
    for name, all_of in sorted(groups.items()):
        waits = sorted((one.end if one.end is not None else until_s) - one.at for one in all_of)
        times = Counter(
            held.asked.event.session for _, held, _ in site.lost if group_of(held.asked.event.session) == name
        )
        lines.append(
            f"  {name:<14} {len(waits):>5} requests; waits: half {waits[len(waits) // 2]:7.1f} s, 95% "
            f"{waits[int(len(waits) * 0.95)]:8.1f} s, longest {waits[-1]:8.1f} s; still wait "
            f"{sum(one.end is None for one in all_of)}; lost {sum(times.values())} cells, "
            f"{sum(site.losses(name)) / 3600:.2f} GPU-h, of one at most {max(times.values(), default=0)}"
        )
    long = heapq.nlargest(6, site.spells, key=lambda spell: spell.end - spell.begin)
    lines += [f"  {s.end - s.begin:8.1f} s from {s.begin:8.1f}: {s.what}" for s in long]
    return "\n".join(lines)


def group_of(session: str) -> str:
    """Find what a session is named after."""
    return session.rstrip("0123456789").rstrip("-")


def main() -> None:
    """Play the stories that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stories", nargs="*", metavar="STORY", help=", ".join(STORIES))
    parser.add_argument("--keep-hot", default="")
    parser.add_argument("--min-runtime", default="")
    options = parser.parse_args()
    for name in options.stories or STORIES:
        story = STORIES[name]()
        lines = list[str]()
        for line in story.text.splitlines():
            lines.append(line)
            if options.keep_hot and line.startswith("[projects.") and line.count(".") == 1:
                lines.append(f'keep_hot = "{options.keep_hot}"')
            if options.min_runtime and line == "[qos.batch]":
                lines.append(f'min_runtime = "{options.min_runtime}"')
        if options.min_runtime and "[qos.batch]" not in lines:
            lines += ["[qos.batch]", f'min_runtime = "{options.min_runtime}"']
        site = play_site(history_of(story, "\n".join(lines)), lambda one: one.owed() | one.idling())
        print(f"{name}: {(STORIES[name].__doc__ or '').strip()}\n{table(site, story.last_s)}")


if __name__ == "__main__":
    main()
