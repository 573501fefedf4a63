"""The icon, and that pictures have one format."""

import subprocess

import icon
from marked import ROOT
from PIL import Image

FORMATS = {
    ".bmp",
    ".eps",
    ".gif",
    ".ico",
    ".jpeg",
    ".jpg",
    ".pdf",
    ".png",
    ".svg",
    ".tiff",
    ".webp",
}


def test_the_icon_is_the_one_that_is_drawn() -> None:
    with Image.open(icon.ICON) as committed:
        assert committed.convert("RGBA").tobytes() == icon.draw().tobytes()


def test_every_picture_is_a_png() -> None:
    files = subprocess.run(
        [ROOT / "tools" / "files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    pictures = [file for file in files if any(file.lower().endswith(end) for end in FORMATS)]
    assert pictures
    assert [file for file in pictures if not file.endswith(".png")] == []
