/** `qsp verify`: verifies a file of any size, without a server if the public key is available. */

import { isSignatureAlgorithm } from "../../crypto/algorithms.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { exitCodes, usageError } from "../exit-codes.ts";
import { readText } from "../files.ts";
import { inputFile } from "../options.ts";
import { parsePublicKey, parsePublicKeys, requireSigning, withProvider } from "../pem-keys.ts";
import type { Verb, VerbInput } from "../verb.ts";
import { readFormat, verifyFormatOptions } from "../../../extensions/signature-formats/format-options.ts";
import { findServerKey, readContent } from "./keys.ts";
import { findVerifyingKey, readContext, readSignature } from "./local.ts";
import { describeSigner } from "./verdict.ts";

export const verifyVerbs: readonly Verb[] = [
  {
    name: "verify",
    operands: ["FILE"],
    operandFiles: { FILE: "reads" },
    options: {
      signature: inputFile("File with the signature: raw, in base64, or in the format"),
      key: { value: "KEY", meaning: "Key of the server to verify with, ACTIVE or ROTATED" },
      "public-key": inputFile(
        "Public keys, any of which may have signed: PEM, a JWK or a JWK set; without a server",
      ),
      certificate: inputFile(
        "Certificate (PEM) whose key to verify with; its issuer and lifetime are not checked",
      ),
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
        const publicKeys = await findPublicKeys(provider, input);
        if (format !== undefined)
          return (await import("../../../extensions/signature-formats/verify-in-format.ts")).verifyInFormat(input, format, {
            provider,
            publicKeys,
          });
        const signatureFile = options.need("signature");
        const context = readContext(options.text("context"));
        const algorithms = publicKeys.map(({ algorithm }) => algorithm);
        const signature = await readSignature(signatureFile, algorithms);
        const content = { chunks: readContent(input), context };
        const signer = await findVerifyingKey(provider, publicKeys, signature, content);
        const valid = signer !== undefined;
        const key = describeSigner(publicKeys, signer);
        output.tell(
          { valid, ...key.fields },
          `${operands[0]}: the signature is ${valid ? "valid" : "NOT valid"} (${key.text})`,
        );
        return valid ? exitCodes.done : exitCodes.no;
      }),
  },
];

async function findPublicKeys(
  provider: CryptoProvider,
  { options, server }: VerbInput,
): Promise<readonly PublicKey[]> {
  const [keyId, file, certificate] = ["key", "public-key", "certificate"].map((name) => options.text(name));
  if ([keyId, file, certificate].filter((value) => value !== undefined).length !== 1)
    throw usageError("use exactly one of --key, --public-key and --certificate");
  if (keyId !== undefined) return [await findServerKey(provider, server, keyId)];
  const origin = file ?? certificate ?? "";
  const publicKeys =
    file === undefined
      ? [await readKeyOf(provider, origin)]
      : parsePublicKeys(provider, readText(file), origin);
  const [first] = publicKeys;
  // Keys for encapsulation among several only count.
  const canVerify = publicKeys.some(({ algorithm }) => isSignatureAlgorithm(algorithm));
  if (!canVerify && first !== undefined) requireSigning(first.algorithm, origin);
  return publicKeys;
}

async function readKeyOf(provider: CryptoProvider, file: string): Promise<PublicKey> {
  // Loaded on demand, because it loads the parsers of ASN.1.
  const { readCertificates } = await import("../../../extensions/signature-formats/certificate.ts");
  const [{ publicKeyPem }] = readCertificates(readText(file), file);
  return parsePublicKey(provider, publicKeyPem, file);
}
