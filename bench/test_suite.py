"""How long, and how often, the suite's programs run, and what is judged of them."""

import pytest
from suite import SERVERS, SUITE
from work import EVERY_ROUND, Bar, Work


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


def bars_of(works: tuple[Work, ...], *units: str) -> dict[str, Bar]:
    return {
        f"{work.name} {metric.key}": metric.bar
        for work in works
        for metric in work.metrics
        if metric.unit.endswith(units)
    }


def test_every_rate_of_the_suite_is_judged() -> None:
    bars = bars_of(SUITE, "/s")
    assert len(bars) == 18
    assert set(bars.values()) == {Bar.WITHIN_5_PCT}


def test_times_beside_peers_are_judged_and_those_of_us_alone_are_shown() -> None:
    bars = bars_of(SUITE, "ns", "ms")
    assert bars["benchmark_accurate free_batch_p50_ns"] is Bar.WITHIN_5_PCT
    assert bars["realloc_growth step_ms"] is Bar.WITHIN_5_PCT
    assert bars["arena_malloc request_ns"] is Bar.WITHIN_5_PCT
    assert bars["arena_epoch_free request_ns"] is Bar.SHOWN


def test_a_server_without_a_pace_must_reach_the_rate_of_peers() -> None:
    bars = bars_of(SERVERS, "/s")
    assert bars["synthetic_burst_x10 rate"] is Bar.SHOWN
    assert bars["synthetic_burst_xmax rate"] is Bar.WITHIN_5_PCT


def test_threads_asleep_and_ended_keep_no_more_than_the_best_peer() -> None:
    bars = bars_of(SUITE, "B")
    assert bars["threads_sleeping asleep_bytes"] is Bar.AT_OR_BELOW
    assert bars["threads_sleeping ended_bytes"] is Bar.AT_OR_BELOW
