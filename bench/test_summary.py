"""The table's arithmetic on made-up runs."""

import math

import pytest
from measure import Run, numbers_of, pairs_of
from peers import Allocator
from run import plan
from summary import (
    JUDGES,
    NAMED,
    Results,
    advantage,
    degradation_row,
    geometric_mean,
    growth_row,
    has_ratio,
    interval,
    paired_ratios,
    row_of,
    shapes_row,
    summarise,
)
from work import CORE, EPOCHS, SHAPES, Bar, Metric, Work

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


@pytest.mark.parametrize(("ours", "met"), [(1512, True), (1513, False)])
def test_peak_of_a_shape_may_be_half_a_mebibyte_above_the_best(ours: float, met: bool) -> None:
    told = Results([*runs("tslab", [1], ours), *runs("a", [1], 1000)])
    for shape in SHAPES:
        (peak,) = [metric for metric in shape.metrics if metric.unit == "KiB"]
        assert row_of(told, WORK, peak).met is met


# Each judge on either side of its bar, and on the bar itself: limit, ours, the peer's, met or not.
MORE = True
LESS = False
JUDGED = (
    (Bar.AHEAD, MORE, 0, 101, 100, True),
    (Bar.AHEAD, MORE, 0, 100, 100, False),
    (Bar.AHEAD, LESS, 0, 99, 100, True),
    (Bar.AHEAD, LESS, 0, 101, 100, False),
    (Bar.WITHIN_5_PCT, MORE, 0, 95, 100, True),
    (Bar.WITHIN_5_PCT, MORE, 0, 94.9, 100, False),
    (Bar.WITHIN_5_PCT, LESS, 0, 100, 95, True),
    (Bar.WITHIN_5_PCT, LESS, 0, 100, 94.9, False),
    (Bar.AT_OR_BELOW, LESS, 0, 100, 100, True),
    (Bar.AT_OR_BELOW, LESS, 0, 100, 99.6, True),
    (Bar.AT_OR_BELOW, LESS, 0, 100, 99, False),
    (Bar.PEAK, LESS, 0, 105, 100, True),
    (Bar.PEAK, LESS, 0, 106, 100, False),
    (Bar.PEAK, LESS, 20, 120, 100, True),
    (Bar.PEAK, LESS, 20, 121, 100, False),
    (Bar.PEAK, LESS, 20, 1050, 1000, True),
    (Bar.AT_MOST, LESS, 5, 5, 1, True),
    (Bar.AT_MOST, LESS, 5, 5.1, 9, False),
    (Bar.AT_LEAST, MORE, 5, 5, 9, True),
    (Bar.AT_LEAST, MORE, 5, 4.9, 1, False),
    (Bar.OVER_GLIBC, LESS, 5, 105, 100, True),
    (Bar.OVER_GLIBC, LESS, 5, 106, 100, False),
    (Bar.TWICE, MORE, 0, 200, 100, True),
    (Bar.TWICE, MORE, 0, 199, 100, False),
    (Bar.TWICE, LESS, 0, 50, 100, True),
    (Bar.TWICE, LESS, 0, 51, 100, False),
    (Bar.TIMES_BEST, LESS, 0.75, 75, 100, True),
    (Bar.TIMES_BEST, LESS, 0.75, 76, 100, False),
    (Bar.TIMES_PLAIN, LESS, 1.5, 150, 100, True),
    (Bar.TIMES_PLAIN, LESS, 1.5, 151, 100, False),
    (Bar.WITHIN_1_PCT, MORE, 0, 99, 100, True),
    (Bar.WITHIN_1_PCT, MORE, 0, 98.9, 100, False),
)


@pytest.mark.parametrize("judged", JUDGED)
def test_judges(judged: tuple[Bar, bool, float, float, float, bool]) -> None:
    bar, higher, limit, ours, peer, met = judged
    metric = Metric("rate", "x", bar, limit, higher_is_better=higher)
    work = Work("w", ("w",), ("w",), (metric,), "s")
    told = Results([*runs("tslab", [ours]), *runs(NAMED.get(bar, "a"), [peer])])
    assert row_of(told, work, metric).met is met


def test_every_judge_is_tried_both_ways() -> None:
    tried = {(bar, met) for bar, *_, met in JUDGED}
    assert tried == {(bar, met) for bar in JUDGES for met in (True, False)}


def test_the_best_peer_of_a_size_is_the_smallest() -> None:
    told = Results([*runs("tslab", [1], 104), *runs("a", [1], 100), *runs("b", [1], 90)])
    row = row_of(told, WORK, SMALLER)
    assert (row.peer_name, row.peer, row.met) == ("b", 90, False)


@pytest.mark.parametrize(("ours", "met"), [(119.0, True), (120.0, True), (121.0, False)])
def test_many_threads_may_cost_a_fifth(ours: float, met: bool) -> None:
    def run(count: int, name: str, rate: float) -> Run:
        return Run(0, f"random_mixed_{count}", name, "1", {"rate": rate})

    told = [run(256, "tslab", ours), run(8192, "tslab", 100.0)]
    told += [run(256, "a", 150.0), run(8192, "a", 100.0)]
    told += [run(256, "b", 200.0), run(8192, "b", 100.0)]
    row = degradation_row(Results(told))
    assert (row.peer_name, row.peer, row.met) == ("a", 1.5, met)


@pytest.mark.parametrize(("ours", "met"), [(12.1, True), (11.9, False), (9.0, False)])
def test_all_shapes_together_must_be_a_fifth_ahead_of_the_best_peer(ours: float, met: bool) -> None:
    def run(name: str, rate: float) -> list[Run]:
        return [Run(0, shape.name, name, "1", {"rate": rate}) for shape in SHAPES]

    row = shapes_row(Results([*run("tslab", ours), *run("a", 10.0), *run("b", 5.0)]), SHAPES)
    assert row.peer is not None
    assert (row.peer_name, round(row.peer, 6), row.met) == ("a", 10.0, met)


def test_nothing_is_a_multiple_of_what_did_not_grow() -> None:
    assert has_ratio(1.0, 2.0, [0.5])
    assert not has_ratio(0.0, 2.0, [0.5])
    assert not has_ratio(1.0, 2.0, [0.5, math.inf])


def test_without_us_nothing_is_judged() -> None:
    rows = summarise(Results(runs("a", [1.0])), [WORK])
    assert [row.met for row in rows] == [None, None]


def test_a_limit_is_judged_without_peers() -> None:
    work = Work("w", ("w",), ("w",), (Metric("rate", "ns", Bar.AT_MOST, 5.0),), "s")
    assert row_of(Results(runs("tslab", [4.9])), work, work.metrics[0]).met is True
    assert row_of(Results(runs("tslab", [5.1])), work, work.metrics[0]).met is False


def test_epochs_must_not_cost_more_the_more_there_are() -> None:
    def run(count: int, ns: float) -> Run:
        return Run(0, f"many_epochs_{count}", "tslab", "1", {"near_ns": ns})

    assert growth_row(Results([run(1, 10.0), run(100_000, 19.0)])).met is True
    assert growth_row(Results([run(1, 10.0), run(100_000, 20.0)])).met is False
    assert growth_row(Results([run(1, 10.0)])).met is None


def test_peers_run_their_own_mode_and_not_what_only_we_can() -> None:
    everybody = [Allocator("tslab", None), Allocator("a", None)]
    modes = {
        (work.name, allocator.name): work.command_of(allocator.name == "tslab")
        for _, work, allocator in plan(EPOCHS, everybody, 1)
    }
    assert modes["request_freed", "tslab"][1] == "epoch_free"
    assert modes["request_freed", "a"][1] == "malloc"
    assert ("epoch_costs", "tslab") in modes
    assert ("epoch_costs", "a") not in modes


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


def test_what_is_observed_is_held_against_the_same_unobserved() -> None:
    metric = Metric("rate", "M/s", Bar.WITHIN_1_PCT, higher_is_better=True)
    work = Work("w", ("w",), ("w",), (metric,), "s")
    for rate, met in ((98.9, False), (99.1, True)):
        rates = {"tslab": rate, "statistics": 120.0, "unobserved": 100.0}
        told = [
            Run(number, "w", name, "1", {"rate": value})
            for number in range(2)
            for name, value in rates.items()
        ]
        (row,) = summarise(Results(told), [work])
        assert (row.peer_name, row.met) == ("unobserved", met)


def test_what_runs_in_epochs_is_held_against_the_same_without() -> None:
    metric = Metric("bytes", "bytes", Bar.TIMES_PLAIN, 1.1)
    plain = Work("plain", ("w",), ("w",), (Metric("bytes", "bytes", Bar.SHOWN),), "s")
    work = Work("w", ("w",), ("w",), (metric,), "s", plain="plain")
    for size, met in ((109.0, True), (111.0, False)):
        told = [
            Run(number, name, allocator, "1", {"bytes": value})
            for number in range(2)
            for name, allocator, value in (
                ("plain", "tslab", 100.0),
                ("plain", "a", 500.0),
                ("w", "tslab", size),
            )
        ]
        _, row = summarise(Results(told), [plain, work])
        assert (row.peer_name, row.peer, row.met) == ("plain", 100.0, met)
        assert row.ratio == row.low == 100.0 / size
        (alone,) = summarise(Results([run for run in told if run.work == "w"]), [work])
        assert (alone.peer, alone.met) == (None, None)


def test_each_mode_names_the_same_without_epochs() -> None:
    for work in EPOCHS:
        if work.plain:
            (plain,) = [other for other in EPOCHS if other.name == work.plain]
            without = {"--allocator=malloc"}  # in place of the same flag with another value
            assert set(plain.command) - without < set(work.command)
            assert set(plain.quick) - without < set(work.quick)
            assert {metric.key for metric in work.metrics} <= {each.key for each in plain.metrics}


def test_one_round_gives_no_interval_and_no_verdict() -> None:
    metric = Metric("rate", "M/s", Bar.AHEAD, higher_is_better=True)
    work = Work("w", ("w",), ("w",), (metric,), "s")
    told = [Run(0, "w", name, "1", {"rate": 1.0}) for name in ("tslab", "glibc")]
    (row,) = summarise(Results(told), [work])
    assert (row.ratio, row.low, row.high, row.met) == (1.0, None, None, None)


def test_a_work_of_one_round_among_others_has_no_interval_and_no_verdict() -> None:
    metric = Metric("rate", "M/s", Bar.AHEAD, higher_is_better=True)
    works = [Work(name, ("w",), ("w",), (metric,), "s") for name in ("once", "often")]
    told = [
        Run(number, work, name, "1", {"rate": rate})
        for work, rounds in (("once", 1), ("often", 2))
        for number in range(rounds)
        for name, rate in (("tslab", 2.0), ("glibc", 1.0))
    ]
    once, often = summarise(Results(told), works)
    assert (once.ratio, once.low, once.high, once.met) == (2.0, None, None, None)
    assert (often.ratio, often.low, often.high, often.met) == (2.0, 2.0, 2.0, True)


@pytest.mark.parametrize(("rounds", "met"), [(1, None), (2, True)])
def test_what_several_works_give_has_no_verdict_of_one_round(rounds: int, met: bool | None) -> None:
    works = [work for work in EPOCHS if work.name in ("many_epochs_1", "many_epochs_100000")]
    told = [
        Run(number, work.name, "tslab", "1", {"near_ns": 10.0})
        for number in range(rounds)
        for work in works
    ]
    (row,) = [row for row in summarise(Results(told), works) if row.name.startswith("allocation")]
    assert row.met is met
