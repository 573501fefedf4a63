// text: quantities, ages and labels as people read them; the same words as the command's.
import type { Figure } from "../api/answers.js";

/** What stands for a figure that is not known. */
export const NOT_KNOWN = "–";

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const NARROW_SPACE = "\u202f";

/** A number with its digits in groups of three: "12 345". */
export function number(value: Figure): string {
  if (value === null) return NOT_KNOWN;
  return value.toString().replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);
}

/** "1 page", "2 pages". */
export function count(value: Figure, thing: string): string {
  return `${number(value)} ${thing}${value === 1 ? "" : "s"}`;
}

/** In the largest unit that it fills: "45.6 KiB". */
export function bytes(value: Figure): string {
  if (value === null) return NOT_KNOWN;
  if (value < 1024) return `${Math.round(value)} B`;
  let scaled = value / 1024;
  let unit = 0;
  while (scaled >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${scaled.toFixed(1)} ${UNITS[unit]}`;
}

/** A time that has passed: "61 s", "17 min", "30 h", "9 d". */
export function age(ms: Figure): string {
  if (ms === null) return NOT_KNOWN;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 10) return `${seconds}.${Math.floor((ms % 1000) / 100)} s`;
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** How often a second: "0 /s", "0.25 /s", "12 /s". */
export function rate(perSecond: Figure): string {
  if (perSecond === null) return NOT_KNOWN;
  if (perSecond === 0) return "0 /s";
  if (perSecond < 0.01) return "< 0.01 /s";
  const digits = perSecond < 1 ? 2 : perSecond < 10 ? 1 : 0;
  return `${grouped(perSecond.toFixed(digits))} /s`;
}

export function byteRate(perSecond: Figure): string {
  return perSecond === null ? NOT_KNOWN : `${bytes(perSecond)}/s`;
}

/** A part of one: "12 %", "3.4 %", "0.02 %". */
export function percent(part: Figure): string {
  if (part === null) return NOT_KNOWN;
  const value = part * 100;
  if (value > 0 && value < 0.01) return "< 0.01 %";
  const digits = value === 0 || value >= 10 ? 0 : value >= 1 ? 1 : 2;
  return `${value.toFixed(digits)} %`;
}

/** "1.4×" */
export function times(factor: Figure): string {
  return factor === null ? NOT_KNOWN : `${factor.toFixed(factor < 10 ? 2 : 0)}×`;
}

/** Local time of day of a moment, in seconds since 1970. */
export function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()];
  return parts.map((part) => part.toString().padStart(2, "0")).join(":");
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Text of another process on one line, in which nothing is invisible and nothing turns the reading
 * direction of what stands around it.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => {
    if (char === "\u200d") return char; // joins emoji, and is invisible only between them
    return SHORT_ESCAPES[char] ?? `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** What an epoch is called. The default epoch may have no label of its own. */
export function label(text: string | null, row: number): string {
  if (text === null) return row === 0 ? "default" : NOT_KNOWN;
  return text === "" ? "(empty label)" : printable(text);
}

function grouped(digits: string): string {
  const [whole = "", fraction] = digits.split(".");
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);
  return fraction === undefined ? groups : `${groups}.${fraction}`;
}
