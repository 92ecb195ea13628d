/** Reads the text in which a server exposes its metrics (Prometheus text format 0.0.4). */

/** One value of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** The most samples to read; a server has a few thousand. */
const maxSamples = 100_000;

/** A name, labels in braces, a value, and perhaps a time. Both names are those of the data model of Prometheus. */
const line = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+([+-]?(?:Inf|NaN|[\d.eE+-]+))(?:\s+-?\d+)?$/;
const label = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?\s*/y;

/** Reads all samples; leaves out comments and other lines. */
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
