/** Parses metrics, and estimates quantiles of their histograms. */
import { describe, expect, it } from "vitest";
import { estimateQuantile, parseMetrics } from "../../src/client/prometheus-text.ts";

describe("metrics text", () => {
  it("is parsed with labels in any order, escapes, signs and special values", () => {
    const text =
      'a{x="1,2}",y="a\\"b\\\\c\\nd"} +Inf\nb -1.5e3 1700000000\n# comment\nc{} NaN\nnonsense here\n{} 1\n';
    expect(parseMetrics(text).map(({ name, labels, value }) => [name, [...labels], value])).toEqual([
      [
        "a",
        [
          ["x", "1,2}"],
          ["y", 'a"b\\c\nd'],
        ],
        Infinity,
      ],
      ["b", [], -1500],
      ["c", [], Number.NaN],
    ]);
  });

  it("from an untrusted server yields no samples if it opens a hundred thousand labels and closes none", () => {
    expect(parseMetrics(`a{${'x="'.repeat(100_000)} 1\n${`a{x="\\`.repeat(50_000)}`)).toEqual([]);
  });
});

describe("the quantile of a histogram", () => {
  it("is unknown without buckets", () => {
    expect(estimateQuantile([], 0.5)).toBeUndefined();
  });
});
