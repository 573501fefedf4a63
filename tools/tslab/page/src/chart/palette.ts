// palette: the style sheet's colours, for what is drawn instead of styled.

export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Slanted lines: an area that can be told from others without its colour. */
export function hatch(context: CanvasRenderingContext2D, name: string): CanvasPattern | string {
  const size = Math.round(8 * devicePixelRatio);
  const tile = document.createElement("canvas");
  tile.width = size;
  tile.height = size;
  const lines = tile.getContext("2d");
  if (lines === null) return colour(name);
  lines.strokeStyle = colour(name);
  lines.lineWidth = Math.max(1, devicePixelRatio);
  lines.beginPath();
  for (const start of [-size, 0, size]) {
    lines.moveTo(start, size);
    lines.lineTo(start + size, 0);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat") ?? colour(name);
}
