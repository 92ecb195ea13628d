/** `qsp verify`: verifies a file of any size, without a server if the public key is available. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import type { ApiClient } from "./client.ts";
import { CliError, exitCodes, usageError } from "./exit-codes.ts";
import { readText } from "./files.ts";
import { readFormat, verifyFormatOptions } from "./format-options.ts";
import { parsePublicKey, readPublicKey, requireSigning, withProvider } from "./pem-keys.ts";
import { readContext, readSignature, verifyContent } from "./signatures.ts";
import { readContent } from "./signing.ts";
import type { Verb, VerbInput } from "./verb.ts";

export const verifyVerbs: readonly Verb[] = [
  {
    name: "verify",
    operands: ["FILE"],
    operandFiles: { FILE: "reads" },
    options: {
      signature: {
        value: "FILE",
        meaning: "File with the signature: raw, in base64, or in the format",
        file: "reads",
      },
      key: { value: "KEY", meaning: "Key of the server to verify with, ACTIVE or ROTATED" },
      "public-key": {
        value: "FILE",
        meaning: "Public key to verify with (PEM), without a server",
        file: "reads",
      },
      certificate: {
        value: "FILE",
        meaning: "Certificate (PEM) whose key to verify with; its issuer and lifetime are not checked",
        file: "reads",
      },
      context: { value: "TEXT", meaning: "Context of the signature" },
      sha256: { meaning: "The signature covers SHA-256 of the file" },
      ...verifyFormatOptions,
    },
    meaning:
      "Verifies the signature of a file of any size, - for standard input, locally. With --key, it only requests the public\n" +
      "key from the server. With --public-key or --certificate, it does not call a server. With --format and without\n" +
      "--signature, FILE contains both the content and the signature.",
    example: 'qsp verify contract.txt --signature contract.txt.sig --key "$KEY"',
    run: (input) =>
      withProvider(async (provider) => {
        const { operands, options, output } = input;
        const format = readFormat(options, "verify");
        const key = { provider, publicKey: await findPublicKey(provider, input) };
        if (format !== undefined)
          return (await import("./verify-format.ts")).verifyInFormat(input, format, key);
        const { publicKey } = key;
        const signatureFile = options.need("signature");
        const context = readContext(options.text("context"));
        const signature = await readSignature(signatureFile, publicKey.algorithm);
        const content = { chunks: readContent(input), context };
        const valid = await verifyContent(provider, publicKey, signature, content);
        output.tell(
          { valid, algorithm: publicKey.algorithm },
          valid
            ? `${operands[0]}: the signature is valid (${publicKey.algorithm})`
            : `${operands[0]}: the signature is NOT valid (${publicKey.algorithm})`,
        );
        return valid ? exitCodes.done : exitCodes.no;
      }),
  },
];

async function findPublicKey(provider: CryptoProvider, { options, server }: VerbInput): Promise<PublicKey> {
  const [keyId, file, certificate] = ["key", "public-key", "certificate"].map((name) => options.text(name));
  if ([keyId, file, certificate].filter((value) => value !== undefined).length !== 1)
    throw usageError("use exactly one of --key, --public-key and --certificate");
  if (keyId !== undefined) return findServerKey(provider, server, keyId);
  const origin = file ?? certificate ?? "";
  const publicKey = file === undefined ? await readKeyOf(provider, origin) : readPublicKey(provider, origin);
  requireSigning(publicKey.algorithm, origin);
  return publicKey;
}

async function readKeyOf(provider: CryptoProvider, file: string): Promise<PublicKey> {
  // Loaded on demand, because it loads the parsers of ASN.1.
  const { readCertificates } = await import("../formats/certificate.ts");
  const [{ publicKeyPem }] = readCertificates(readText(file), file);
  return parsePublicKey(provider, publicKeyPem, file);
}

/** Requests the public key of a key that may verify. @throws CliError */
export async function findServerKey(
  provider: CryptoProvider,
  server: ApiClient,
  keyId: string,
): Promise<PublicKey> {
  const { result } = await server.ask(KmsService.method.getKey, { keyId });
  const status = result?.status ?? "";
  if (!["ACTIVE", "ROTATED"].includes(status))
    throw new CliError(
      exitCodes.refused,
      `key ${keyId} is ${status} and cannot verify (FAILED_PRECONDITION, KEY_STATE_INVALID)`,
    );
  const publicKey = parsePublicKey(provider, result?.publicKeyPem ?? "", `key ${keyId}`);
  requireSigning(publicKey.algorithm, `key ${keyId}`);
  return publicKey;
}
