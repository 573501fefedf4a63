"""Draws the icon of the page, tools/tslab/page/public/icon.png."""

from pathlib import Path

from PIL import Image, ImageDraw

ICON = Path(__file__).resolve().parent / "tslab" / "page" / "public" / "icon.png"
SIDE = 64
FINER = 8  # drawn so many times larger, so that its corners are smooth

# Of 32 units: left, top, right, bottom, radius of the corners; colour.
SHAPES = (
    ((0, 0, 32, 32, 7), "#14343b"),
    ((6, 7, 26, 11, 1), "#f4efe6"),
    ((6, 14, 20, 18, 1), "#4fb3a5"),
    ((6, 21, 14, 25, 1), "#e8a33d"),
)


def draw() -> Image.Image:
    large = Image.new("RGBA", (SIDE * FINER, SIDE * FINER))
    pen = ImageDraw.Draw(large)
    unit = SIDE * FINER // 32
    for places, colour in SHAPES:
        left, top, right, bottom, radius = (place * unit for place in places)
        pen.rounded_rectangle((left, top, right - 1, bottom - 1), radius, fill=colour)
    return large.resize((SIDE, SIDE), Image.Resampling.BOX)


if __name__ == "__main__":
    draw().save(ICON, optimize=True)
