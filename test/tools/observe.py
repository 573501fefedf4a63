"""`tslab observe` starts what is installed, says what is not, and ends all that it started.

observe.py TSLAB DASHBOARDS

Grafana is a script that says how it was called, and so is Prometheus but for one check. The compose
file is held against the schema of Compose, and against what the command writes.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from prometheus import SKIPPED, Prometheus

PATIENCE_SECONDS = 30
# What a program of this name would do: it serves until it is told to end.
SERVER = """#!/bin/sh
trap 'echo over >"$0.over"; exit 0' TERM
echo "$@" >"$0.arguments"
while :; do sleep 0.05; done
"""
BROKEN = "#!/bin/sh\necho 'the disk is full'\nexit 7\n"
# Of the files below dashboards/, what they are called in the folder of the command.
WRITTEN = {
    "./observe.yaml": "prometheus.yaml",
    "./rules.yaml": "rules.yaml",
    "./datasource.yaml": "grafana/provisioning/datasources/tslab.yaml",
    "./grafana.yaml": "grafana/provisioning/dashboards/tslab.yaml",
    "./generated": "grafana/dashboards",
}


def install(folder: Path, name: str, text: str = SERVER) -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def free_ports() -> list[int]:
    sockets = [socket.socket() for _ in range(3)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def words(tslab: str, folder: Path, ports: list[int], *more: str) -> list[str]:
    names = ("--port", "--prometheus-port", "--grafana-port")
    options = [f"{name}={port}" for name, port in zip(names, ports, strict=True)]
    return [tslab, "observe", "--dir", str(folder), *options, *more]


def environment(programs: Path) -> dict[str, str]:
    # Without what this machine has; the scripts need a shell and its `sleep`.
    return {"PATH": str(programs), "XDG_STATE_HOME": str(programs / "state")}


@contextmanager
def observing(
    tslab: str, programs: Path, folder: Path
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    ports = free_ports()
    # As a shell starts it: in a process group of its own.
    child = subprocess.Popen(
        words(tslab, folder, ports),
        env=environment(programs),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield child, ports
    finally:
        child.terminate()
        child.wait(PATIENCE_SECONDS)
        assert child.stderr is not None
        child.stderr.close()


def said_until(child: subprocess.Popen[str], last: str) -> str:
    said = ""
    assert child.stderr is not None
    for line in child.stderr:
        said += line
        if last in line:
            return said
    raise AssertionError(f"it never said {last!r}, but: {said}")


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def end(child: subprocess.Popen[str], programs: int) -> None:
    """Ctrl-C on its terminal; it leaves none of its programs behind."""
    started = children(child.pid)
    assert len(started) == programs, started
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(PATIENCE_SECONDS) == 0, child.returncode
    left = [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert not left, left


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{path} is not written"
        time.sleep(0.02)
    return path.read_text()


def tools(folder: Path) -> None:
    """What the scripts call."""
    for name in ("sh", "sleep"):
        (folder / name).symlink_to(f"/bin/{name}")


def check_all(tslab: str, base: Path) -> None:
    """All are installed: they run as configured, and end together."""
    programs, folder = base / "all", base / "state of all"
    programs.mkdir()
    tools(programs)
    install(programs, "prometheus")
    install(programs, "grafana-server")
    with observing(tslab, programs, folder) as (child, ports):
        said = said_until(child, "Ctrl-C")
        for port in ports:
            assert f"http://127.0.0.1:{port}/" in said, said
        assert "tslab_processes" in scrape(ports[0])
        asked = wait_for(programs / "prometheus.arguments")
        assert f"--web.listen-address=127.0.0.1:{ports[1]}" in asked, asked
        assert f"--config.file={folder}/prometheus.yaml" in asked, asked
        assert f"--config {folder}/grafana/grafana.ini" in wait_for(
            programs / "grafana-server.arguments"
        )
        scraped = yaml.safe_load((folder / "prometheus.yaml").read_text())["scrape_configs"]
        assert scraped[0]["static_configs"] == [{"targets": [f"127.0.0.1:{ports[0]}"]}], scraped
        assert folder.stat().st_mode & 0o077 == 0, oct(folder.stat().st_mode)
        wait_for(programs / "grafana-server.arguments")
        end(child, programs=3)
        assert (programs / "prometheus.over").exists(), "it was not asked to end"
        assert (folder / "history.db").exists(), "the history is not in the folder"


def check_some(tslab: str, base: Path) -> None:
    """Grafana is missing, and Prometheus fails: both are said, and the page goes on."""
    programs, folder = base / "some", base / "state of some"
    programs.mkdir()
    tools(programs)
    install(programs, "prometheus", BROKEN)
    with observing(tslab, programs, folder) as (child, ports):
        said = said_until(child, "Prometheus ended")
        assert "Grafana is not installed: https://grafana.com" in said, said
        assert "status: 7; the disk is full" in said, said
        assert "tslab_processes" in scrape(ports[0])
        end(child, programs=1)


def check_agent_ends(tslab: str, base: Path) -> None:
    """Without the agent there is nothing to see: the others are ended."""
    programs = base / "agent"
    programs.mkdir()
    tools(programs)
    install(programs, "prometheus")
    with observing(tslab, programs, base / "state of agent") as (child, _):
        said_until(child, "Ctrl-C")
        wait_for(programs / "prometheus.arguments")
        agent, _ = children(child.pid)
        os.kill(agent, signal.SIGKILL)
        said_until(child, "the agent ended: signal: 9")
        assert child.wait(PATIENCE_SECONDS) == 2, child.returncode
        assert (programs / "prometheus.over").exists(), "it was not asked to end"


def refused(command: list[str], programs: Path) -> str:
    """What it says as it starts nothing."""
    done = subprocess.run(
        command,
        env=environment(programs),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 2, done
    return done.stderr


def check_refusals(tslab: str, base: Path) -> None:
    """Ports in use, and folders that cannot be made: each is said before anything starts."""
    programs, folder = base / "refused", base / "state of refused"
    programs.mkdir()
    install(programs, "prometheus")
    names = ("--port", "--prometheus-port")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for place, name in enumerate(names):
            ports = free_ports()
            ports[place] = port
            said = refused(words(tslab, folder, ports), programs)
            told = f"cannot listen on 127.0.0.1:{port}: name another port with {name}: "
            assert told + "Address already in use" in said, said
    assert not folder.exists(), "it wrote something"
    file = base / "a file"
    file.write_text("")
    said = refused(words(tslab, file / "below", free_ports()), programs)
    assert f"cannot make {file}/below: Not a directory" in said, said


def check_prometheus(tslab: str, base: Path, prometheus: str) -> None:
    """The real one scrapes the agent, and knows its metrics and the rules."""
    programs, folder = base / "real", base / "state of real"
    programs.mkdir()
    (programs / "prometheus").symlink_to(prometheus)
    with observing(tslab, programs, folder) as (child, ports):
        said_until(child, "Ctrl-C")
        server = Prometheus(f"127.0.0.1:{ports[1]}")
        server.wait_for(["tslab_processes", "up{job='tslab'} == 1"])
        (target,) = server.get("targets")["activeTargets"]
        assert target["scrapeUrl"] == f"http://127.0.0.1:{ports[0]}/metrics", target
        assert server.get("rules")["groups"], "it has no rules"
        end(child, programs=2)


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
        return str(reply.read().decode())


def printed(tslab: str, folder: Path) -> str:
    done = subprocess.run(
        [tslab, "observe", "--dir", str(folder), "--print"],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def check_print(tslab: str, base: Path) -> None:
    folder = base / "printed"
    text = printed(tslab, folder)
    assert not folder.exists(), "it wrote something"
    for shown in (
        f"# {folder}/prometheus.yaml\n",
        "http_port = 3000\n",
        "# Prometheus is not installed: Debian has it as the package `prometheus`",
        f"\n$ {tslab} --directory /dev/shm serve --listen 127.0.0.1:9464 "
        f"--history {folder}/history.db\n",
    ):
        assert shown in text, (shown, text)


def sources(service: Any) -> dict[str, str]:
    """Folders and files of this machine, with their places in the container."""
    volumes = (volume.split(":") for volume in service["volumes"])
    return {volume[0]: volume[1] for volume in volumes if volume[0].startswith("./")}


def complaints(file: Path) -> str:
    """What the schema of the Compose specification has against it."""
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode != 0 else ""


def check_schema(base: Path, dashboards: Path) -> None:
    file = dashboards / "compose.yaml"
    assert not complaints(file), complaints(file)
    wrong = base / "wrong.yaml"
    wrong.write_text(file.read_text().replace("network_mode:", "network_modes:", 1))
    assert "'network_modes' was unexpected" in complaints(wrong), complaints(wrong)


def check_compose(tslab: str, base: Path, dashboards: Path) -> None:
    """Its containers are told what the programs are told that the command starts."""
    compose = yaml.safe_load((dashboards / "compose.yaml").read_text())
    assert compose.keys() == {"name", "services", "volumes"}, compose.keys()
    prometheus, grafana = compose["services"]["prometheus"], compose["services"]["grafana"]
    text = printed(tslab, base)
    shared = sources(prometheus) | sources(grafana)
    assert shared.keys() == WRITTEN.keys(), shared
    for source, written in WRITTEN.items():
        assert (dashboards / source).exists(), source
        assert f"{base}/{written}" in text, written
    listen = "--web.listen-address=127.0.0.1:9090"
    assert listen in prometheus["command"], prometheus
    assert f"--config.file={shared['./observe.yaml']}" in prometheus["command"], prometheus
    settings = grafana["environment"]
    assert settings["GF_SERVER_HTTP_ADDR"] == "127.0.0.1", settings
    assert f"http_port = {settings['GF_SERVER_HTTP_PORT']}\n" in text, settings
    source = yaml.safe_load((dashboards / "datasource.yaml").read_text())["datasources"][0]
    assert source["url"] == "http://" + listen.partition("=")[2], source
    provider = yaml.safe_load((dashboards / "grafana.yaml").read_text())["providers"][0]
    assert provider["options"]["path"] == shared["./generated"], provider
    for service in (prometheus, grafana):
        # Loopback alone: no port is published.
        assert service["network_mode"] == "host", service
        assert "ports" not in service, service
        assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", service["image"]), service
    named = {
        volume.split(":")[0]
        for service in (prometheus, grafana)
        for volume in service["volumes"]
        if not volume.startswith("./")
    }
    assert named == compose["volumes"].keys(), named


def main(tslab: str, dashboards: str) -> int:
    prometheus = shutil.which("prometheus")
    with tempfile.TemporaryDirectory() as name:
        base = Path(os.path.realpath(name))
        check_print(tslab, base)
        check_schema(base, Path(dashboards))
        check_compose(tslab, base, Path(dashboards))
        check_refusals(tslab, base)
        check_all(tslab, base)
        check_some(tslab, base)
        check_agent_ends(tslab, base)
        if prometheus is not None:
            check_prometheus(tslab, base, prometheus)
    if prometheus is None:
        print("skipped: there is no prometheus here; `tools/bootstrap test` installs it")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
