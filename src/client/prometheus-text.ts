/** Parses a server's metrics (Prometheus text format 0.0.4). */

/** One value of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** Maximum samples to read; a server exposes a few thousand. */
const maxSamples = 100_000;

/** A name, labels in braces, a value, and an optional timestamp. Names follow the Prometheus data model. */
const line = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+([+-]?(?:Inf|NaN|[\d.eE+-]+))(?:\s+-?\d+)?$/;
const label = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?\s*/y;

/** Parses all samples; skips comments and other lines. */
export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const row of text.split("\n")) {
    if (row === "" || row.startsWith("#")) continue;
    const [, name, labels = "", value = ""] = line.exec(row.trimEnd()) ?? [];
    if (name === undefined) continue;
    samples.push({ name, labels: parseLabels(labels), value: parseValue(value) });
    if (samples.length >= maxSamples) break;
  }
  return samples;
}

function parseLabels(text: string): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  label.lastIndex = 0;
  for (let found = label.exec(text); found !== null; found = label.exec(text)) {
    const [, name = "", value = ""] = found;
    labels.set(
      name,
      value.replace(/\\(.)/g, (_, letter: string) => (letter === "n" ? "\n" : letter)),
    );
  }
  return labels;
}

function parseValue(text: string): number {
  return text.endsWith("Inf") ? (text.startsWith("-") ? -Infinity : Infinity) : Number(text);
}

/** A histogram bucket: the number of values up to its upper bound, including all smaller buckets. */
interface Bucket {
  readonly upToSeconds: number;
  readonly count: number;
}

/**
 * Estimates a quantile like Prometheus's histogram_quantile: by linear interpolation within a bucket.
 *
 * @param buckets ascending; the last one is infinite
 * @returns undefined without measurements, Infinity above the last finite bucket
 */
export function estimateQuantile(buckets: readonly Bucket[], share: number): number | undefined {
  const total = buckets.at(-1)?.count ?? 0;
  if (!(total > 0)) return undefined;
  const rank = share * total;
  const at = buckets.findIndex(({ count }) => count >= rank);
  const bucket = buckets[at];
  if (bucket === undefined || bucket.upToSeconds === Infinity) return Infinity;
  const { upToSeconds: from, count: below } = buckets[at - 1] ?? { upToSeconds: 0, count: 0 };
  const within = bucket.count === below ? 1 : (rank - below) / (bucket.count - below);
  return from + (bucket.upToSeconds - from) * within;
}
