import assert from "node:assert/strict";
import { test } from "node:test";

import {
  age,
  byteRate,
  bytes,
  count,
  label,
  number,
  percent,
  printable,
  rate,
  times,
} from "../../src/model/text.js";

test("what is not known is a dash, never 0", () => {
  for (const text of [number, bytes, age, rate, percent, times]) assert.equal(text(null), "–");
  assert.equal(count(null, "page"), "– pages");
  assert.equal(byteRate(null), "–");
});

test("quantities", () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(number), [
    "0",
    "999",
    "1\u202f000",
    "1\u202f234\u202f567",
  ]);
  assert.deepEqual(
    [1, 2].map((value) => count(value, "page")),
    ["1 page", "2 pages"],
  );
  assert.deepEqual([0, 1023, 1024, 46_695, 2 ** 30].map(bytes), [
    "0 B",
    "1023 B",
    "1.0 KiB",
    "45.6 KiB",
    "1.0 GiB",
  ]);
  assert.equal(bytes(2 ** 64), "16.0 EiB");
});

test("ages are worded as the command words them", () => {
  const ages = [0, 1_250, 9_999, 61_000, 119_999, 120_000, 7_200_000, 172_800_000].map(age);
  assert.deepEqual(ages, ["0.0 s", "1.2 s", "9.9 s", "61 s", "119 s", "2 min", "2 h", "2 d"]);
});

test("rates and parts keep what is small apart from 0", () => {
  const rates = [0, 0.001, 0.25, 3.14, 12.4, 12_345.6].map(rate);
  assert.deepEqual(rates, ["0 /s", "< 0.01 /s", "0.25 /s", "3.1 /s", "12 /s", "12\u202f346 /s"]);
  assert.deepEqual([0, 0.00001, 0.0034, 0.034, 0.34, 1].map(percent), [
    "0 %",
    "< 0.01 %",
    "0.34 %",
    "3.4 %",
    "34 %",
    "100 %",
  ]);
  assert.deepEqual([1.234, 25.4].map(times), ["1.23×", "25×"]);
});

test("nothing in a text is invisible or turns the reading direction", () => {
  assert.equal(printable("a\nb\r\t\u0000\u007f"), "a\\nb\\r\\t\\u{0}\\u{7f}");
  assert.equal(
    printable("\u202egnp.exe\u2066\u200b\ufeff"),
    "\\u{202e}gnp.exe\\u{2066}\\u{200b}\\u{feff}",
  );
  assert.equal(printable("\ud800x"), "\\u{d800}x");
  assert.equal(printable("\u2028"), "\\u{2028}");
  for (const text of ["<b>&amp;", "مرحبا", "👩‍💻 🦀", "naïve"]) assert.equal(printable(text), text);
});

test("labels that are missing or empty are told apart", () => {
  assert.deepEqual(
    [label(null, 0), label(null, 3), label("", 3), label("x", 0)],
    ["default", "–", "(empty label)", "x"],
  );
});
