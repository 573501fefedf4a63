"""The package in interpreters that it starts."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
import tslab
from tslab import _library, _run

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
HEADER = (ROOT / "include/tslab.h").read_text()


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE / "src"), **variables}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def on_library(code: str, *options: str) -> object:
    """What code on the library leaves in `result`."""
    text = f"import json, tslab\n{textwrap.dedent(code)}\nprint(json.dumps(result))"
    done = python("-m", "tslab", "run", *options, "-c", text)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_what_is_allocated_in_an_epoch_lies_there_and_survives_it() -> None:
    code = """
        with tslab.epoch("etl batch") as batch:
            rows = [bytes(1000 + n) for n in range(100)]
            inside = batch.stats()
        closed = tslab.epoch_stats(batch.id)
        kept = sum(map(len, rows))
        del rows
        try:
            over = tslab.epoch_stats(batch.id).state.name
        except tslab.TslabError as error:
            over = error.strerror
        result = [tslab.captures_malloc(), inside.label, inside.live_objects >= 100,
                  inside.state.name, closed.state.name, kept, batch.survivors.objects >= 100, over]
    """
    bytes_kept = sum(1000 + n for n in range(100))
    over = "the epoch is over, or never was"
    expected = [True, "etl batch", True, "OPEN", "CLOSED", bytes_kept, True, over]
    assert on_library(code) == expected


def as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


OBJECTS = """
    with tslab.epoch("objects") as kept:
        records = [{"n": n} for n in range(10_000)]
    result = kept.survivors.objects
"""


def test_small_objects_lie_in_an_epoch_only_where_malloc_serves_them() -> None:
    by_arenas, by_malloc = on_library(OBJECTS), on_library(OBJECTS, "--small-objects")
    assert isinstance(by_arenas, int)
    assert isinstance(by_malloc, int)
    assert by_arenas < 100
    assert by_malloc > 20_000


def test_arrays_of_numpy_lie_in_an_epoch() -> None:
    pytest.importorskip("numpy", reason="numpy is not installed")
    code = """
        import ctypes, numpy
        with tslab.epoch("arrays") as arrays:
            table = numpy.zeros((1000, 50))
            view = table[::2] + 1
        addresses = [each.__array_interface__["data"][0] for each in (table, view)]
        result = [[tslab.epoch_of(address) == arrays.id for address in addresses],
                  arrays.survivors.bytes >= table.nbytes + view.nbytes, float(view.sum())]
    """
    assert on_library(code) == [[True, True], True, 25_000.0]


def test_scopes_nest_and_have_a_way_out() -> None:
    code = """
        import ctypes
        def place():
            block = ctypes.create_string_buffer(1000)
            return tslab.epoch_of(ctypes.addressof(block))
        tenant = tslab.Epoch("tenant")
        seen = []
        with tenant.scope():
            with tslab.epoch("request", parent=tenant) as request:
                seen.append(place() == request.id)
                with tslab.outside():
                    seen.append(place() == 0)
                seen.append(request.stats().parent == tenant.id)
            seen.append(place() == tenant.id)
        seen.append(place() == 0)
        tenant.close()
        result = seen
    """
    assert on_library(code) == [True] * 5


def test_threads_stay_apart() -> None:
    code = """
        import threading
        shared = tslab.Epoch("shared")
        kept = []
        def work():
            with shared.scope():
                kept.append(bytes(5000))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        outside = bytes(6000)
        for thread in threads: thread.join()
        result = [shared.stats().live_objects >= 4, shared.close().bytes >= 4 * 5000]
    """
    assert on_library(code) == [True, True]


def test_epochs_that_share_lie_in_the_shared_one_of_their_label() -> None:
    code = """
        kept = []
        def request(place):
            with tslab.epoch("request", place=place) as request:
                kept.append(bytes(5000))
                stats = request.stats()
            return request.id, stats.place, request.survivors.objects
        first, second = (request(tslab.Place.SHARED) for _ in range(2))
        own, place, survivors = request(tslab.Place.OWN)
        shared = tslab.epoch_stats(first[1])
        result = [first[1] == second[1] != first[0], shared.state.name, shared.live_objects >= 2,
                  first[2], own == place, survivors >= 1]
    """
    assert on_library(code) == [True, "SHARED", True, 0, True, True]


def test_an_exception_leaves_and_closes() -> None:
    code = """
        try:
            with tslab.epoch("failing") as failing:
                raise KeyError("on purpose")
        except KeyError:
            pass
        try:
            with failing.scope():
                result = "it was entered"
        except tslab.TslabError as error:
            result = [error.strerror, failing.survivors is not None]
    """
    texts = ("the epoch is over, or never was", "the epoch has ended: it was closed or released")
    text, has_survivors = as_list(on_library(code))
    assert text in texts
    assert has_survivors


def test_scopes_that_end_in_another_order_are_refused() -> None:
    code = """
        first, second = tslab.Epoch("first"), tslab.Epoch("second")
        outer, inner = first.scope(), second.scope()
        outer.__enter__(), inner.__enter__()
        try:
            outer.__exit__(None, None, None)
            result = "it was left"
        except tslab.TslabError as error:
            inner.__exit__(None, None, None)
            result = error.strerror
    """
    text = on_library(code)
    assert isinstance(text, str)
    assert "a scope is left as the innermost one of its thread" in text


def test_a_limit_raises_memory_error() -> None:
    code = """
        with tslab.epoch("limited", hard_limit_bytes=1 << 20) as limited:
            small = bytearray(1 << 18)
            try:
                bytearray(8 << 20)
                result = "it was served"
            except MemoryError:
                result = "refused"
    """
    assert on_library(code) == "refused"


@pytest.mark.parametrize("label", ["x" * 64, "a\\0b"])
def test_labels_fit_or_are_refused(label: str) -> None:
    code = f"""
        try:
            tslab.Epoch("{label}")
            result = "it was opened"
        except (ValueError, tslab.TslabError) as error:
            result = str(error)
    """
    text = on_library(code)
    assert isinstance(text, str)
    assert "label" in text


def test_the_process_says_what_it_is_made_of() -> None:
    code = """
        kept = bytes(1 << 20)
        with tslab.epoch("told") as told:
            block = bytes(1 << 20)
            names = [each.label for each in tslab.epochs()]
            reported = [each["label"] for each in tslab.report()["epochs"]]
        stats = tslab.stats()
        tslab.set_option("detain_ms", "11")
        try:
            tslab.option("no_such")
        except tslab.TslabError as error:
            unknown = error.errno
        del block
        result = [names, reported, stats.live_bytes >= 2 << 20, tslab.option("purge_delay_ms"),
                  tslab.option("detain_ms"), unknown, tslab.version(), type(tslab.trim()).__name__]
    """
    version = re.search(r'TSLAB_VERSION "(.*)"', HEADER)
    assert version
    assert on_library(code, "-o", "purge_delay_ms=5") == [
        ["told"],
        ["told"],
        True,
        "5",
        "11",
        2,
        version[1],
        "bool",
    ]


def test_run_passes_what_stands_behind_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, tslab; print(tslab.captures_malloc(), sys.argv[1:])")
    done = python("-m", "tslab", "run", str(script), "-o", "x", "--small-objects", "-m", "y")
    assert done.stdout == "True ['-o', 'x', '--small-objects', '-m', 'y']\n"
    done = python("-m", "tslab", "run", "-m", "tslab", "--help")
    assert (done.returncode, done.stdout.split()[0]) == (0, "usage:")


def test_without_the_library_nothing_is_captured_and_the_way_is_shown() -> None:
    assert not tslab.captures_malloc()
    with pytest.raises(tslab.NotLoadedError, match=r"python -m tslab run script\.py"):
        tslab.Epoch("x")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "--library", "no/such.so", "x.py"), "looked for no/such.so; name it with"),
        (("run", "-o", "helper", "x.py"), "NAME=VALUE is wanted, not 'helper'"),
        (("run",), "which program? name a script"),
        ((), "usage: python -m tslab run SCRIPT"),
    ],
)
def test_what_is_missing_is_named(arguments: tuple[str, ...], complaint: str) -> None:
    done = python("-m", "tslab", *arguments)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_options_win_over_the_environment_and_unknown_ones_are_told() -> None:
    code = "import tslab; print(tslab.option('cache_units'), tslab.option('purge_delay_ms'))"
    options = ["-o", "cache_units=3", "-o", "purge_delay_ms=7", "-o", "sample_bites=1"]
    before = {"TSLAB_CACHE_UNITS": "5", "TSLAB_CONF": "purge_delay_ms:9,cache_units:4"}
    done = python("-m", "tslab", "run", *options, "-c", code, **before)
    assert (done.returncode, done.stdout) == (0, "3 7\n")
    assert (
        done.stderr == "tslab: there is no option `sample_bites`; the nearest is `sample_bytes`\n"
    )


def test_a_library_whose_path_the_loader_cannot_take(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / _run.NAME).touch()
    with pytest.raises(SystemExit, match="without blanks and colons"):
        _run.find_library({"TSLAB_LIBRARY": str(folder / _run.NAME)})


def test_the_library_comes_behind_what_is_loaded_already(tmp_path: Path) -> None:
    library = tmp_path / _run.NAME
    library.touch()
    asked = _run.parser().parse_args(["--library", str(library), "x.py"])
    assert _run.environment_for(asked, {"LD_PRELOAD": "/a.so"})["LD_PRELOAD"] == f"/a.so:{library}"
    assert _run.environment_for(asked, {})["LD_PRELOAD"] == str(library)


C_TYPES = {
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "tslab_epoch": ctypes.c_uint64,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "const char *": ctypes.c_char_p,
    "void *": ctypes.c_void_p,
    "tslab_limit_callback *": ctypes.c_void_p,
}


def fields_in_c(name: str) -> list[tuple[str, type[object]]]:
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    body = re.search(rf"typedef struct {name} {{(.*?)}}", code, re.DOTALL)
    assert body
    found = re.findall(r"^\s*(.*?)(\w+);", body[1], re.MULTILINE)
    kinds = [(field, kind.strip()) for kind, field in found]
    return [
        (field, ctypes.c_uint if kind.startswith("enum") else C_TYPES[kind])
        for field, kind in kinds
    ]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (_library.RawStats, "tslab_stats"),
        (_library.RawOptions, "tslab_epoch_options"),
        (_library.RawSurvivors, "tslab_survivors"),
        (_library.RawScope, "tslab_scope"),
        (_library.RawEpochStats, "tslab_epoch_stats"),
    ],
)
def test_structs_are_those_of_the_header(raw: type[ctypes.Structure], name: str) -> None:
    assert list(raw._fields_) == fields_in_c(name)


def test_functions_have_as_many_parameters_as_in_the_header() -> None:
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    for name, (_, arguments) in _library.SIGNATURES.items():
        found = re.search(rf"\b{name}\((.*?)\)(?: TSLAB| *\n|;)", code, re.DOTALL)
        assert found, name
        flat = re.sub(r"\(\*\w+\)\([^)]*\)", "callback", found[1])
        count = 0 if flat == "void" else flat.count(",") + 1
        assert count == len(arguments), name


def test_a_wheel_has_all_it_needs(tmp_path: Path) -> None:
    library = next(place for place in _run.places(os.environ) if place.is_file())
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    source = tmp_path / "checkout/python"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("LICENSE-*", "build"))
    for text in ("LICENSE-APACHE", "LICENSE-MIT"):
        shutil.copyfile(PACKAGE.parent / text, source.parent / text)
    made = python(
        "-m", "pip", "wheel", *options, "-w", str(tmp_path), str(source), TSLAB_LIBRARY=str(library)
    )
    assert made.returncode == 0, made.stderr
    [wheel] = tmp_path.glob("*.whl")
    assert re.fullmatch(r"tslab-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as contents:
        contents.extractall(installed)
    assert (installed / "tslab/py.typed").exists()
    assert len(list(installed.glob("*.dist-info/licenses/LICENSE-*"))) == 2
    done = python(
        "-m",
        "tslab",
        "run",
        "-c",
        "import tslab; print(tslab.__file__, tslab.captures_malloc())",
        PYTHONPATH=str(installed),
        TSLAB_LIBRARY="",
    )
    assert done.stdout == f"{installed}/tslab/__init__.py True\n"
