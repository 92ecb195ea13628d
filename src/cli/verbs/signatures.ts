/** `qsp sign` and `verify`: files of any size, with server-held and local keys. */

import { inputFile } from "../command-line/options.ts";
import { usageError } from "../exit-codes.ts";
import { readSize } from "../files/read.ts";
import { readSecretKey, requireSigning, withProvider } from "../keys/read-keys.ts";
import { bytes, keyBehind } from "../output/output.ts";
import { findPublicKeys, readContent, type Signed, signOnServer } from "../signing/keys.ts";
import {
  describeSigner,
  findVerifyingKey,
  readContext,
  readSignature,
  signContent,
} from "../signing/local.ts";
import { declareVerb, type Verb, type VerbInput } from "../verb.ts";

export const signVerbs: readonly Verb[] = [
  declareVerb({
    line: "sign FILE",
    operandFiles: { FILE: "reads" },
    options: {
      key: { value: "KEY", meaning: "Server-held key to sign with" },
      "key-file": inputFile(
        "Secret key to sign with locally: from qsp keygen, other PKCS#8 in PEM or DER, or a JWK",
      ),
      out: {
        value: "FILE",
        meaning: "File for the signature; default: FILE.sig",
        file: "writes",
        defaultPath: ({ operands: [path] }) => (path === "-" ? undefined : `${path}.sig`),
      },
      context: {
        value: "TEXT",
        meaning: "Binds the signature to one use, up to 255 bytes; verification needs the same context",
      },
      sha256: { meaning: "Signs the file's SHA-256 hash (32 bytes), as firmware requires" },
    },
    meaning:
      "Signs a file of any size, - for standard input. The signature is raw (FIPS 204 or 205).\n" +
      "Server-held keys cannot sign an empty file.\n" +
      "Without --out, a signature of standard input is printed in base64.",
    example: 'qsp sign contract.txt --key "$KEY"',
    async run(input) {
      const { files, options, output } = input;
      const { signature, ...about } = await sign(input);
      const file = files.write("out", signature);
      const base64 = Buffer.from(signature).toString("base64");
      const key = keyBehind(options.text("key"), about.keyId);
      output.report(
        { signature: base64, ...about, ...(file !== undefined && { file }) },
        file === undefined ? base64 : `${file}: ${bytes(signature.length)} of ${about.algorithm}${key}`,
      );
    },
  }),
];

async function sign(input: VerbInput): Promise<Signed> {
  const { operands, options, server } = input;
  const [path = ""] = operands;
  const content = { chunks: readContent(input), context: readContext(options.text("context")) };
  const { name, value: key } = options.one("key", "key-file");
  if (name === "key" && readSize(path) === 0)
    throw usageError(`the file ${path} has no content; a server-held key cannot sign it`);
  if (name === "key") return signOnServer(server, key, content);
  return withProvider(async (provider) => {
    const secretKey = await readSecretKey(provider, key);
    requireSigning(secretKey.algorithm, key);
    const signature = await signContent(provider, secretKey, content);
    return { signature, algorithm: secretKey.algorithm };
  });
}

export const verifyVerbs: readonly Verb[] = [
  declareVerb({
    line: "verify FILE",
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
        const trusted = await findPublicKeys(provider, input);
        const { publicKeys } = trusted;
        const signatureFile = options.need("signature");
        const context = readContext(options.text("context"));
        const algorithms = publicKeys.map(({ algorithm }) => algorithm);
        const signature = await readSignature(signatureFile, algorithms);
        const content = { chunks: readContent(input), context };
        const signer = await findVerifyingKey(provider, publicKeys, signature, content);
        const valid = signer !== undefined;
        const key = describeSigner(trusted, signer);
        return output.report(
          { valid, ...key.fields },
          `${operands[0]}: the signature is ${valid ? "valid" : "NOT valid"} (${key.text})`,
          valid,
        );
      }),
  }),
];
