"""How long, and how often, the suite's programs run."""

import pytest
from suite import SERVERS
from work import EVERY_ROUND, Work


def seconds_of(command: tuple[str, ...]) -> int:
    (text,) = [word for word in command if word.startswith("--duration_s=")]
    return int(text.removeprefix("--duration_s="))


def is_paced(work: Work) -> bool:
    return "--rate_factor=max" not in work.command


@pytest.mark.parametrize("work", SERVERS, ids=lambda work: work.name)
def test_a_pattern_with_a_pace_runs_ten_seconds_and_for_a_glance_one(work: Work) -> None:
    assert seconds_of(work.command) == (10 if is_paced(work) else 2)
    assert seconds_of(work.quick) == 1


@pytest.mark.parametrize("work", SERVERS, ids=lambda work: work.name)
def test_a_pattern_has_the_rounds_that_an_interval_needs(work: Work) -> None:
    assert work.most_rounds == (3 if is_paced(work) else EVERY_ROUND)
