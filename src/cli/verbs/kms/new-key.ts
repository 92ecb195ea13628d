/** Options of verbs that make a key: `qsp kms create` and `import`. */
import { operationsOf } from "../../../crypto/key-uses.ts";
import type { Options, ParsedOptions } from "../../command-line/options.ts";
import { readSeconds } from "../../command-line/time-options.ts";
import { usageError } from "../../exit-codes.ts";

export const usages = Object.keys(operationsOf);

/** Options of a new key, except its algorithm and its alias. */
export const newKeyOptions = {
  name: { value: "NAME", meaning: "Name that stays the same when the key is rotated, such as team/release" },
  label: { value: "K=V", meaning: "Label to find the key by; may occur several times", isMany: true },
  "rotate-every": {
    value: "DURATION",
    meaning: "Time between automatic rotations, such as 30d or 12w; at least 1d; requires --name",
  },
} as const satisfies Options;

export interface NewKeyFields {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly rotationPeriodSeconds?: number;
}

/**
 * Reads the options of a new key.
 *
 * @throws CliError
 */
export function readNewKey(options: ParsedOptions): NewKeyFields {
  const name = options.text("name") ?? "";
  const seconds = readSeconds(options, "rotate-every", { min: 1 });
  if (seconds !== undefined && name === "") throw usageError("--rotate-every requires --name");
  return {
    name,
    labels: readLabels(options.all("label")),
    ...(seconds !== undefined && { rotationPeriodSeconds: seconds }),
  };
}

function readLabels(texts: readonly string[]): Record<string, string> {
  const labels = new Map<string, string>();
  for (const text of texts) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined)
      throw usageError(`--label "${text}" is not a name and a value such as team=payments`);
    if (labels.has(name)) throw usageError(`--label ${name} occurs twice; use it once`);
    labels.set(name, value);
  }
  return Object.fromEntries(labels);
}
