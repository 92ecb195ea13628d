/** `qsp sign`: signs a file of any size with a server-held or local key. */

import { inputFile } from "../command-line/options.ts";
import { exitCodes, usageError } from "../exit-codes.ts";
import { readSize } from "../files/read.ts";
import { readSecretKey, requireSigning, withProvider } from "../keys/read-keys.ts";
import { bytes } from "../output/output.ts";
import { readContent, type Signed, signOnServer } from "../signing/keys.ts";
import { readContext, signContent } from "../signing/local.ts";
import type { Verb, VerbInput } from "../verb.ts";

export const signVerbs: readonly Verb[] = [
  {
    name: "sign",
    operands: ["FILE"],
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
      const { files, output } = input;
      const { signature, ...about } = await sign(input, readContent(input));
      const file = files.write("out", signature);
      const base64 = Buffer.from(signature).toString("base64");
      output.report(
        { signature: base64, ...about, ...(file !== undefined && { file }) },
        file === undefined ? base64 : `${file}: ${bytes(signature.length)} of ${about.algorithm}`,
      );
      return exitCodes.done;
    },
  },
];

async function sign(
  { operands: [path = ""], options, server }: VerbInput,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Signed> {
  const context = readContext(options.text("context"));
  const { name, value: key } = options.one("key", "key-file");
  if (name === "key" && readSize(path) === 0)
    throw usageError(`the file ${path} has no content; a server-held key cannot sign it`);
  if (name === "key") return signOnServer(server, key, { chunks, context });
  return withProvider(async (provider) => {
    const secretKey = await readSecretKey(provider, key);
    requireSigning(secretKey.algorithm, key);
    const signature = await signContent(provider, secretKey, { chunks, context });
    return { signature, algorithm: secretKey.algorithm };
  });
}
