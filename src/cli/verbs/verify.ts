/** `qsp verify`: verifies a file of any size, without a server if the public key is available. */

import { inputFile } from "../command-line/options.ts";
import { exitCodes } from "../exit-codes.ts";
import { withProvider } from "../keys/read-keys.ts";
import { findPublicKeys, readContent } from "../signing/keys.ts";
import { findVerifyingKey, readContext, readSignature } from "../signing/local.ts";
import { describeSigner } from "../signing/verdict.ts";
import type { Verb } from "../verb.ts";

export const verifyVerbs: readonly Verb[] = [
  {
    name: "verify",
    operands: ["FILE"],
    operandFiles: { FILE: "reads" },
    options: {
      signature: inputFile("File with the signature: raw, or in base64"),
      key: { value: "KEY", meaning: "Server-held key to verify with, ACTIVE or ROTATED" },
      "public-key": inputFile(
        "Public keys, any of which may have signed: PEM, a JWK or a JWK set; without a server",
      ),
      certificate: inputFile(
        "Certificate (PEM) whose key to verify with; its issuer and lifetime are not checked",
      ),
      context: { value: "TEXT", meaning: "Context of the signature" },
      sha256: { meaning: "The signature covers the file's SHA-256 hash" },
    },
    meaning:
      "Verifies the signature of a file of any size, - for standard input, locally. With --key, it only fetches the public\n" +
      "key from the server. With --public-key or --certificate, it does not call a server.",
    example: 'qsp verify contract.txt --signature contract.txt.sig --key "$KEY"',
    run: (input) =>
      withProvider(async (provider) => {
        const { operands, options, output } = input;
        const publicKeys = await findPublicKeys(provider, input);
        const signatureFile = options.need("signature");
        const context = readContext(options.text("context"));
        const algorithms = publicKeys.map(({ algorithm }) => algorithm);
        const signature = await readSignature(signatureFile, algorithms);
        const content = { chunks: readContent(input), context };
        const signer = await findVerifyingKey(provider, publicKeys, signature, content);
        const valid = signer !== undefined;
        const key = describeSigner(publicKeys, signer);
        output.report(
          { valid, ...key.fields },
          `${operands[0]}: the signature is ${valid ? "valid" : "NOT valid"} (${key.text})`,
        );
        return valid ? exitCodes.done : exitCodes.no;
      }),
  },
];
