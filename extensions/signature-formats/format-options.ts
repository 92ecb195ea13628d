/** Command-line options for signing and verifying in a standard format. */

import {
  inputFile,
  type Options,
  outputFile,
  type ParsedOptions,
} from "../../src/cli/command-line/options.ts";
import { usageError } from "../../src/cli/exit-codes.ts";

/** Signature formats besides raw. */
export const formatNames = ["dsse", "cms", "jws", "cose"] as const;
export type FormatName = (typeof formatNames)[number];

/** Encodings by format; the first is the default. */
const encodings = {
  dsse: ["json"],
  cms: ["pem", "der"],
  jws: ["compact", "json"],
  cose: ["cbor"],
} as const satisfies Record<FormatName, readonly string[]>;

/** Options that only some formats accept, by verb. */
const formatsOf = {
  sign: { "payload-type": ["dsse"], certificate: ["cms"], encoding: ["cms", "jws"], embed: ["jws", "cose"] },
  verify: { "payload-type": ["dsse"], out: ["dsse", "cms", "jws", "cose"] },
} as const satisfies Record<string, Readonly<Record<string, readonly FormatName[]>>>;

const format = {
  value: "FORMAT",
  meaning: "Standard format of the signature: dsse, cms, jws (ML-DSA) or cose (ML-DSA); default: raw",
  offers: ["raw", ...formatNames],
};

export const signFormatOptions = {
  format,
  "payload-type": { value: "TYPE", meaning: "dsse: content type; default: derived from the file name" },
  certificate: inputFile(
    "cms: the key's certificate in PEM, followed by its CAs'; default: key identifier only",
  ),
  encoding: {
    value: "NAME",
    meaning: "cms: pem (default) or der; jws: compact (default) or json",
    offers: ["pem", "der", "compact", "json"],
  },
  embed: { meaning: "jws, cose: embeds the content, up to 16 MiB, in the signature" },
} as const satisfies Options;

export const verifyFormatOptions = {
  format,
  "payload-type": { value: "TYPE", meaning: "dsse: required content type" },
  out: outputFile(
    "dsse, cms, jws, cose: file for the content embedded in FILE, written only if the signature is valid",
  ),
} as const satisfies Options;

/**
 * Reads --format and rejects options that conflict with it.
 *
 * @returns undefined for raw signatures
 * @throws CliError
 */
export function readFormat(options: ParsedOptions, verb: keyof typeof formatsOf): FormatName | undefined {
  const given = options.text("format");
  const text = given === "raw" ? undefined : given;
  const name = formatNames.find((known) => known === text);
  if (text !== undefined && name === undefined)
    throw usageError(`--format "${text}" is unknown; use one of raw, ${formatNames.join(", ")}`);
  const table: Readonly<Record<string, readonly FormatName[]>> = formatsOf[verb];
  for (const [option, formats] of Object.entries(table)) {
    if (!options.flag(option) || (name !== undefined && formats.includes(name))) continue;
    throw usageError(`--${option} is for --format ${formats.join(" and --format ")}`);
  }
  // Every standard here uses the empty context and defines the bytes to sign.
  const raw = ["context", "sha256"].find((option) => name !== undefined && options.flag(option));
  if (raw !== undefined)
    throw usageError(`--${raw} cannot be combined with --format ${name}, which defines what is signed`);
  return name;
}

/**
 * Reads --encoding.
 *
 * @throws CliError if the format does not have it
 */
export function readEncoding<Name extends FormatName>(
  options: ParsedOptions,
  name: Name,
): (typeof encodings)[Name][number] {
  const known: readonly (typeof encodings)[Name][number][] = encodings[name];
  const text = options.text("encoding") ?? known[0];
  const found = known.find((encoding) => encoding === text);
  if (found !== undefined) return found;
  throw usageError(`--encoding "${text}" is not available for ${name}; use one of ${known.join(", ")}`);
}
