/** `qsp kms import`: wraps a secret key locally and imports it. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { wipe } from "../../../crypto/bytes.ts";
import { isWrappingMethod, maxPlaintextBytes, wrap } from "../../../crypto/hpke.ts";
import { unaryVerb } from "../../call-verbs.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { CliError, exitCodes } from "../../exit-codes.ts";
import { readSecret } from "../../files/read.ts";
import { type KeyFile, readKeyFile } from "../../keys/importable-key.ts";
import { serverKeyAlgorithms, withProvider } from "../../keys/read-keys.ts";
import type { Verb } from "../../verb.ts";
import { describeKey } from "./describe.ts";
import { newKeyOptions, readNewKey, usages } from "./new-key.ts";

const { method } = KmsService;

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
      const [alias, usage] = [options.text("alias") ?? "", options.text("usage") ?? ""];
      const fields = { alias, usage, ...readNewKey(options) };
      const file = await readSecret(path, maxPlaintextBytes);
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

export const kmsImportVerbs: readonly Verb[] = [createImportVerb(readKeyFile)];

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
