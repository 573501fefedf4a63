"""The table's arithmetic on made-up runs."""

from measure import Run, numbers_of, pairs_of
from run import plan
from summary import Results, advantage, geometric_mean, interval, paired_ratios, row_of, summarise
from work import CORE, Bar, Metric, Work

FASTER = Metric("rate", "M/s", Bar.AHEAD, higher_is_better=True)
SMALLER = Metric("peak_kib", "KiB", Bar.PEAK)
WORK = Work("w", ("w",), ("w",), (FASTER, SMALLER), "s")


def runs(allocator: str, rates: list[float], peak: float = 100.0) -> list[Run]:
    return [
        Run(number, "w", allocator, "1", {"rate": rate, "peak_kib": peak})
        for number, rate in enumerate(rates)
    ]


def test_advantage_is_above_one_when_we_are_better() -> None:
    assert advantage(FASTER, 3.0, 2.0) == 1.5
    assert advantage(SMALLER, 2.0, 3.0) == 1.5


def test_interval_holds_the_median_and_nothing_outside_the_data() -> None:
    low, high = interval([1.0, 1.1, 1.2, 1.3, 1.4])
    assert 1.0 <= low <= 1.2 <= high <= 1.4
    assert interval([1.5] * 7) == (1.5, 1.5)


def test_row_names_the_best_peer_and_judges_against_it() -> None:
    results = Results([*runs("tslab", [9, 9, 9]), *runs("a", [8, 8, 8]), *runs("b", [10, 10, 10])])
    row = row_of(results, WORK, FASTER)
    assert (row.peer_name, row.peer, row.met) == ("b", 10, False)


def test_peak_may_be_five_percent_above_the_best() -> None:
    within = Results([*runs("tslab", [1], 105), *runs("a", [1], 100)])
    beyond = Results([*runs("tslab", [1], 106), *runs("a", [1], 100)])
    assert row_of(within, WORK, SMALLER).met is True
    assert row_of(beyond, WORK, SMALLER).met is False


def test_without_us_nothing_is_judged() -> None:
    rows = summarise(Results(runs("a", [1.0])), [WORK])
    assert [row.met for row in rows] == [None, None]


def test_ratios_pair_the_same_rounds_even_when_a_run_failed() -> None:
    ours = runs("tslab", [2.0, 4.0, 8.0])
    peer = runs("a", [1.0, 2.0, 4.0])
    results = Results([*ours, *peer[1:]])
    assert paired_ratios(results, WORK, FASTER, "a") == [2.0, 2.0]


def test_geometric_mean() -> None:
    assert round(geometric_mean([1.0, 100.0]), 9) == 10.0


def test_plan_runs_every_allocator_once_a_round_and_respects_most_rounds() -> None:
    works = [work for work in CORE if work.name in ("scaling_2", "rss_blocks")]
    steps = list(plan(works, [], 7))
    assert steps == []
    assert {work.most_rounds for work in works} == {3, 1_000_000}


def test_a_result_line_becomes_numbers() -> None:
    pairs = pairs_of("result program=x allocator=libc.so.6 rate=1.5 unit=Mops/s")
    assert pairs["allocator"] == "libc.so.6"
    assert numbers_of(pairs) == {"rate": 1.5}
