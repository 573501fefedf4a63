"""Requests to the example server: each has an epoch, and what is kept lies outside.

server.py PROGRAM
"""

import gzip
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

REQUESTS = 200


def ask(address: str, path: str, body: bytes | None = None) -> dict[str, object]:
    with urlopen(f"{address}{path}", body, timeout=10) as answer:
        answered = json.load(answer)
    assert isinstance(answered, dict)
    return answered


def profile_of(address: str) -> bytes:
    """The heap profile, unpacked: gzip's checksum is right."""
    with urlopen(f"{address}/debug/pprof/heap", timeout=10) as answer:
        profile: bytes = gzip.decompress(answer.read())
    return profile


def use(address: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda n: ask(address, f"/words/{'ab-' * n}abc"), range(REQUESTS))
        assert [answer["words"] for answer in answers] == list(range(1, REQUESTS + 1))
        kept = pool.map(lambda _: ask(address, "/notes", b"remember"), range(REQUESTS))
        assert sorted(str(answer["notes"]) for answer in kept) == sorted(
            str(n) for n in range(1, REQUESTS + 1)
        )
    memory = ask(address, "/memory")
    print(memory)
    epochs = memory["epochs"]
    assert isinstance(epochs, list)
    for text in (b"inuse_space", b"POST /notes"):
        assert text in profile_of(address), text
    # Connections of clients that are gone may take a moment more than the answer.
    assert len(epochs) < REQUESTS / 10, f"{len(epochs)} epochs are not over"
    assert {each["label"] for each in epochs} <= {"GET /words/{text}", "POST /notes"}


def main() -> int:
    sampled = {**os.environ, "TSLAB_SAMPLE_BYTES": "4K"}
    server = subprocess.Popen([sys.argv[1]], stdout=subprocess.PIPE, text=True, env=sampled)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", line)
        assert found, line
        use(found[1])
    finally:
        server.kill()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
