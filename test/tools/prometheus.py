"""A real Prometheus reads `tslab serve`: each query of the dashboards and each rule has an answer.

prometheus.py TSLAB PRELOAD LEAKER DASHBOARDS
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command import process

PATIENCE_SECONDS = 60
SKIPPED = 77
TOKEN = "s3cret"
SERVING = "tslab: serving http://"
# So many requests of the leaker lose an object each, in a function that the samples name.
REQUESTS = "1000"
NAMED = 'tslab_site_live_bytes{site=~"keep.* <- lose_one.*", epoch="GET /page", sampled="all"} > 0'


@contextmanager
def daemon(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is asked to end, and must do so without an error."""
    child = subprocess.Popen(command, text=True, **options)
    try:
        yield child
        child.terminate()
        assert child.wait(timeout=PATIENCE_SECONDS) == 0, f"{command[0]}: status {child.returncode}"
    finally:
        child.kill()
        child.wait()


@contextmanager
def exporter(tslab: str, token: Path) -> Iterator[str]:
    """`tslab serve`; the address at which it answers."""
    command = [
        tslab,
        "serve",
        "--history",
        "none",
        "--listen",
        "127.0.0.1:0",
        "--after",
        "0",
        "--token-file",
        token,
    ]
    with daemon([str(word) for word in command], stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        with child.stderr as said:
            line = said.readline()
            assert line.startswith(SERVING), line
            yield line.removeprefix(SERVING).rstrip("/\n")


def address_in(log: Path) -> str:
    """Where a Prometheus says that it listens."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        told = re.search(r'"Listening on" address=(\S+)', log.read_text())
        if told is not None:
            return told[1]
        time.sleep(0.05)
    raise AssertionError("it does not say where it listens")


def configuration(exporter_address: str, token: Path, rules: Path) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": "tslab",
                "authorization": {"credentials_file": str(token)},
                "static_configs": [{"targets": [exporter_address]}],
            }
        ],
    }


class Prometheus:
    """The server under its HTTP interface."""

    def __init__(self, address: str) -> None:
        self.url = f"http://{address}/api/v1"

    def get(self, path: str, **parameters: str) -> Any:
        """What it answers; None as long as it is not ready."""
        url = f"{self.url}/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        except OSError:
            pass
        return None

    def answers(self, expression: str) -> bool:
        found = self.get("query", query=expression)
        return found is not None and found["result"] != []

    def wait_for(self, expressions: list[str]) -> None:
        """Until each has an answer."""
        end = time.monotonic() + PATIENCE_SECONDS
        missing = expressions
        while missing:
            assert time.monotonic() < end, "no answer to:\n" + "\n".join(missing)
            time.sleep(0.5)
            missing = [expression for expression in missing if not self.answers(expression)]


@contextmanager
def prometheus(program: str, config: dict[str, Any], place: Path) -> Iterator[Prometheus]:
    """A Prometheus that has the configuration, and what it says when something fails."""
    file = place / "prometheus.yaml"
    file.write_text(json.dumps(config))
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={place / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    log = place / "log"
    with log.open("w") as out:
        try:
            with daemon(command, stdout=out, stderr=out):
                yield Prometheus(address_in(log))
        except BaseException:
            print(log.read_text(), file=sys.stderr)
            raise


def expanded(expression: str) -> str:
    """Without Grafana's variables: all values, and durations in which there are two scrapes."""
    expression = re.sub(r'"\$\w+"', '".+"', expression)
    return expression.replace("$__rate_interval", "10s").replace("$__range", "1m")


def queries(dashboard: dict[str, Any]) -> list[str]:
    """What its panels ask for, and what its variables choose from."""
    of_panels = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    of_variables = [
        variable["query"].removeprefix("label_values(").rpartition(",")[0]
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
    assert of_panels, dashboard["title"]
    assert of_variables, dashboard["title"]
    return [expanded(expression) for expression in of_panels + of_variables]


def check_scrapes(server: Prometheus, metrics: list[dict[str, Any]]) -> None:
    (target,) = server.get("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", ""), target
    told = server.get("metadata")
    for metric in metrics:
        promised = {key: metric[key] for key in ("type", "help", "unit")}
        name = metric["name"].removesuffix("_total")
        assert told[name] == [promised], f"{name}: {told[name]}"


def check_rules(server: Prometheus) -> None:
    rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
    assert rules
    for rule in rules:
        assert rule["health"] == "ok", rule
    server.wait_for([rule["name"] for rule in rules if rule["type"] == "recording"])


def main(tslab: str, preload: str, leaker: str, dashboards_path: str) -> int:
    program = shutil.which("prometheus")
    if program is None:
        print("skipped: there is no prometheus here; `tools/bootstrap test` installs it")
        return SKIPPED
    dashboards = Path(dashboards_path).resolve()
    files = sorted((dashboards / "generated").glob("*.json"))
    wanted = [query for file in files for query in queries(json.loads(file.read_text()))]
    assert wanted
    samples = {"TSLAB_SAMPLE_BYTES": "4K", "TSLAB_SAMPLE_RATE": "0"}
    sampled = process(leaker, REQUESTS, preload=preload, **samples)
    with tempfile.TemporaryDirectory() as name, sampled:
        place = Path(name)
        token = place / "token"
        token.write_text(TOKEN)
        with exporter(tslab, token) as address:
            config = configuration(address, token, dashboards / "rules.yaml")
            with prometheus(program, config, place) as server:
                server.wait_for([*wanted, NAMED])
                check_scrapes(server, json.loads((dashboards / "metrics.json").read_text()))
                check_rules(server)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
