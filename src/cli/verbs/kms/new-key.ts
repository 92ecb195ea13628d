/** `qsp kms create` and `import`, which make a key. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { wipe } from "../../../crypto/bytes.ts";
import { isWrappingMethod, maxPlaintextBytes, wrap } from "../../../crypto/hpke.ts";
import { operationsOf } from "../../../crypto/key-uses.ts";
import { unaryVerb } from "../../call-verbs.ts";
import type { Options, ParsedOptions } from "../../command-line/options.ts";
import { readSeconds } from "../../command-line/time-options.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { CliError, exitCodes, usageError } from "../../exit-codes.ts";
import { readWhole } from "../../files/read.ts";
import type { KeyFile, readKeyFile } from "../../keys/importable-key.ts";
import { serverKeyAlgorithms, withProvider } from "../../keys/read-keys.ts";
import type { Verb } from "../../verb.ts";
import { describeKey } from "./describe.ts";

const { method } = KmsService;

export const usages = Object.keys(operationsOf);

/** Options of a new key, except its algorithm and its alias. */
const newKeyOptions = {
  name: { value: "NAME", meaning: "Name that stays the same when the key is rotated, such as team/release" },
  label: { value: "K=V", meaning: "Label to find the key by; may occur several times", isMany: true },
  "rotate-every": {
    value: "DURATION",
    meaning: "Time between automatic rotations, such as 30d or 12w; at least 1d; requires --name",
  },
} as const satisfies Options;

export const createVerb = unaryVerb(method.createKey, {
  line: "kms create [ALIAS]",
  options: {
    algorithm: {
      value: "NAME",
      meaning:
        "A parameter set of ML-DSA, ML-KEM or SLH-DSA, X-Wing, or a composite such as MLDSA65-ECDSA-P256-SHA512; default: ML-DSA-65, or X-Wing for --usage ENCRYPT",
      offers: serverKeyAlgorithms,
    },
    usage: {
      value: "USAGE",
      meaning:
        "SIGN, KEM or ENCRYPT (X-Wing, ML-KEM-768 or ML-KEM-1024); default: SIGN, or KEM for an algorithm that encapsulates",
      offers: usages,
    },
    ...newKeyOptions,
  },
  meaning: "Creates a server-held key.",
  example: "qsp kms create invoices --algorithm ML-DSA-87",
  ask: ({ operands: [alias = ""], options }) => ({
    alias,
    algorithm: options.text("algorithm") ?? "",
    ...readNewKey(options),
  }),
  say: ({ result }) => describeKey(result),
});

/**
 * Declares `kms import`.
 *
 * @param readKey extensions may read more forms of keys.
 */
export function createImportVerb(readKey: typeof readKeyFile): Verb {
  return unaryVerb(method.importKey, {
    line: "kms import FILE",
    operandFiles: { FILE: "reads" },
    options: {
      algorithm: {
        value: "NAME",
        meaning: "Parameter set of the key; needed only for raw bytes",
        offers: serverKeyAlgorithms,
      },
      usage: {
        value: "USAGE",
        meaning: "SIGN, KEM or ENCRYPT; default: SIGN, or KEM for an algorithm that encapsulates",
        offers: usages,
      },
      alias: { value: "TEXT", meaning: "Label for people" },
      ...newKeyOptions,
    },
    meaning:
      "Imports a secret key from a file, - for standard input: PKCS#8 in PEM or DER, as qsp keygen and openssl write it, a\n" +
      "JWK (RFC 9964), a raw seed, or a raw secret key. Wraps the key with HPKE (RFC 9180) before it leaves this machine.",
    example: "qsp kms import signer.key --name release",
    async ask({ operands: [path = ""], options, server }) {
      const fields = { alias: options.text("alias") ?? "", ...readNewKey(options) };
      const file = await readWhole(path, maxPlaintextBytes);
      try {
        const key = readKey(file, path, options.text("algorithm"));
        const wrapped = await wrapFor(server, key).finally(() => wipe(key.bytes));
        return { ...wrapped, ...fields, algorithm: key.algorithm };
      } finally {
        wipe(file);
      }
    },
    say: ({ result }) => describeKey(result),
  });
}

/** Fetches a wrapping key from the server, and wraps a secret key with it. */
async function wrapFor(
  server: ApiClient,
  { bytes }: KeyFile,
): Promise<{ readonly importToken: string; readonly wrappedKey: Uint8Array<ArrayBuffer> }> {
  const { publicKey, importToken, algorithm } = await server.ask(method.getImportParameters, {});
  if (!isWrappingMethod(algorithm))
    throw new CliError(
      exitCodes.unreachable,
      `the server requires keys wrapped with ${algorithm}, which this version of qsp does not support`,
    );
  const wrappedKey = await withProvider((provider) => wrap(provider, algorithm, publicKey, bytes));
  return { importToken, wrappedKey: Uint8Array.from(wrappedKey) };
}

/**
 * Reads the options of a new key.
 *
 * @throws CliError
 */
function readNewKey(options: ParsedOptions) {
  const name = options.text("name") ?? "";
  const seconds = readSeconds(options, "rotate-every", { min: 1 });
  if (seconds !== undefined && name === "") throw usageError("--rotate-every requires --name");
  return {
    name,
    usage: options.text("usage") ?? "",
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
