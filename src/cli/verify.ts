/** `qsp verify`: verifies a file of any size, without a server if the public key is available. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import { CliError, exitCodes, usageError } from "./exit-codes.ts";
import { parsePublicKey, readPublicKey, requireSigning, withProvider } from "./pem-keys.ts";
import { readContent } from "./sign.ts";
import { readContext, readSignature, verifyContent } from "./signatures.ts";
import type { Verb, VerbInput } from "./verb.ts";

export const verifyVerbs: readonly Verb[] = [
  {
    name: "verify",
    operands: ["FILE"],
    options: {
      signature: { value: "FILE", meaning: "File with the signature, raw or in base64", offers: "files" },
      key: { value: "KEY", meaning: "Key of the server to verify with, ACTIVE or ROTATED" },
      "public-key": {
        value: "FILE",
        meaning: "Public key to verify with (PEM), without a server",
        offers: "files",
      },
      context: { value: "TEXT", meaning: "Context of the signature" },
      sha256: { meaning: "The signature covers SHA-256 of the file" },
    },
    meaning:
      "Verifies the signature of a file of any size, - for standard input, locally. With --key, it only requests the public\n" +
      "key from the server. With --public-key, it does not call a server.",
    example: 'qsp verify contract.txt --signature contract.txt.sig --key "$KEY"',
    run: (input) =>
      withProvider(async (provider) => {
        const { operands, options, output } = input;
        const signatureFile = options.need("signature");
        const context = readContext(options.text("context"));
        const publicKey = await findPublicKey(provider, input);
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
  const keyId = options.text("key");
  const file = options.text("public-key");
  if ((keyId === undefined) === (file === undefined))
    throw usageError("use exactly one of --key and --public-key");
  if (file !== undefined) {
    const publicKey = readPublicKey(provider, file);
    requireSigning(publicKey.algorithm, file);
    return publicKey;
  }
  const { result } = await server.ask(KmsService.method.getKey, { keyId: keyId ?? "" });
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
