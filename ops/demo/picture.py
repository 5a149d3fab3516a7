"""The page with its lines boxed, beside what was read."""

from __future__ import annotations

from pathlib import Path

from ops.demo.ocr import Line
from PIL import Image, ImageDraw, ImageFont

SCALE = 3
GREEN = (0, 140, 60)


def draw(page: Path, lines: list[Line], out: Path) -> None:
    """Writes a picture: left the page with a box round each line, right the text at the line's place."""
    with Image.open(page) as opened:
        image = opened.convert("RGB")
    image = image.resize((image.width * SCALE, image.height * SCALE))
    whole = Image.new("RGB", (image.width * 2, image.height), "white")
    whole.paste(image)
    pen = ImageDraw.Draw(whole)
    for line in lines:
        corners = [(x * SCALE, y * SCALE) for x, y in line.box]
        pen.polygon(corners, outline=GREEN, width=2)
        pen.polygon([(x + image.width, y) for x, y in corners], outline=(225, 225, 225))
        left, top = min(x for x, _ in corners), min(y for _, y in corners)
        width, height = max(x for x, _ in corners) - left, max(y for _, y in corners) - top
        place = (left + image.width + 4, top + height / 2)
        pen.text(place, line.text, fill="black", font=_font(line.text, width, height), anchor="lm")
    out.parent.mkdir(parents=True, exist_ok=True)
    whole.save(out)


def _font(text: str, width: float, height: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The largest font that keeps ``text`` inside a box."""
    size = max(10.0, height * 0.7)
    font = ImageFont.load_default(size)
    if (length := font.getlength(text)) > width - 8:
        font = ImageFont.load_default(max(10.0, size * (width - 8) / length))
    return font
