// scale: places on a logarithmic axis, and the round values that are written beside it.

export interface LogScale {
  readonly least: number;
  readonly most: number;
}

/** Around all values; the default when there are none. */
export function logScale(values: readonly number[], least: number, most: number): LogScale {
  const above = values.filter((value) => value > 0);
  return {
    least: Math.min(least, ...above),
    most: Math.max(most, ...above),
  };
}

/** From 0 to 1; what is below the scale stands at its beginning. */
export function placeOn(scale: LogScale, value: number): number {
  if (value <= scale.least) return 0;
  return Math.log(value / scale.least) / Math.log(scale.most / scale.least);
}

/** Those of the marks that lie on the scale, thinned out to `most` of them. */
export function marksOn(scale: LogScale, marks: readonly number[], most: number): number[] {
  const inside = marks.filter((mark) => mark >= scale.least && mark <= scale.most);
  const step = Math.max(1, Math.ceil(inside.length / most));
  return inside.filter((_, index) => index % step === 0);
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const AGE_MARKS: readonly number[] = [
  ...[100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE],
  ...[HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY, 1000 * DAY],
];

/** Every fourth power of two. */
export const BYTE_MARKS: readonly number[] = Array.from({ length: 15 }, (_, index) => 16 ** index);
