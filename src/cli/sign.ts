/** `qsp sign`: signs a file of any size, with a key of the server or a local key. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { KmsService, type SignResult, type SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { type ApiClient, theAnswer } from "./client.ts";
import { exitCodes, findReason, usageError } from "./exit-codes.ts";
import { gather, readChunks, readSize, writeFile } from "./files.ts";
import { bytes } from "./output.ts";
import { readSecretKey, requireSigning, withProvider } from "./pem-keys.ts";
import { createProgress, withProgress } from "./progress.ts";
import { hashContent, readContext, signContent } from "./signatures.ts";
import type { Verb, VerbInput } from "./verb.ts";

export const signVerbs: readonly Verb[] = [
  {
    name: "sign",
    operands: ["FILE"],
    options: {
      key: { value: "KEY", meaning: "Key of the server to sign with" },
      "key-file": {
        value: "FILE",
        meaning: "Secret key of qsp keygen to sign with locally",
        offers: "files",
      },
      out: { value: "FILE", meaning: "File for the signature; default: FILE.sig", offers: "files" },
      context: {
        value: "TEXT",
        meaning: "Binds the signature to one use, up to 255 bytes; verification needs the same context",
      },
      sha256: { meaning: "Signs the 32 bytes of SHA-256 of the file, as firmware requires" },
    },
    meaning:
      "Signs a file of any size, - for standard input. The signature is raw (FIPS 204 or 205). Without --out, that of\n" +
      "standard input is printed in base64.",
    example: 'qsp sign contract.txt --key "$KEY"',
    async run(input) {
      const { operands, options, output } = input;
      const [path = ""] = operands;
      const { signature, ...about } = await sign(input, readContent(input));
      const file = options.text("out") ?? (path === "-" ? undefined : `${path}.sig`);
      if (file !== undefined) writeFile(file, signature, 0o644);
      const base64 = Buffer.from(signature).toString("base64");
      output.tell(
        { signature: base64, ...about, ...(file !== undefined && { file }) },
        file === undefined ? base64 : `${file}: ${bytes(signature.length)} of ${about.algorithm}`,
      );
      return exitCodes.done;
    },
  },
];

/** Reads the content to sign or verify in chunks, with a progress bar. */
export function readContent({ operands: [path = ""], options }: VerbInput): AsyncGenerator<Uint8Array> {
  const chunks = withProgress(readChunks(path), createProgress(path, readSize(path)));
  return options.flag("sha256") ? hashContent(chunks) : chunks;
}

interface Signed {
  readonly signature: Uint8Array;
  readonly algorithm: string;
  readonly keyId?: string;
}

async function sign({ options, server }: VerbInput, chunks: AsyncIterable<Uint8Array>): Promise<Signed> {
  const keyId = options.text("key");
  const keyFile = options.text("key-file");
  const context = readContext(options.text("context"));
  if ((keyId === undefined) === (keyFile === undefined))
    throw usageError("use exactly one of --key and --key-file");
  if (keyFile !== undefined)
    return withProvider(async (provider) => {
      const secretKey = await readSecretKey(provider, keyFile);
      requireSigning(secretKey.algorithm, keyFile);
      const signature = await signContent(provider, secretKey, { chunks, context });
      return { signature, algorithm: secretKey.algorithm };
    });
  return signOnServer(server, keyId ?? "", context, chunks);
}

async function signOnServer(
  server: ApiClient,
  keyId: string,
  context: Uint8Array<ArrayBuffer>,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Signed> {
  // SLH-DSA reads a message twice, so the server accepts no stream for it. Ask for the key's algorithm first.
  if ((await findAlgorithm(server, keyId)).startsWith("SLH-DSA")) {
    const data = await gather(chunks, maxServerBytes, tooLargeForServer);
    const { result } = await server.ask(KmsService.method.sign, { keyId, data, context });
    return toSigned(result);
  }
  const { result } = await theAnswer(
    server.stream(KmsService.method.signStream, toRequests(keyId, context, chunks)),
  );
  return toSigned(result);
}

/** Finds the algorithm of a key; "" for a caller whose grant allows SIGN, but not GET_KEY. */
async function findAlgorithm(server: ApiClient, keyId: string): Promise<string> {
  try {
    return (await server.ask(KmsService.method.getKey, { keyId })).result?.algorithm ?? "";
  } catch (error) {
    if (error instanceof ConnectError && findReason(error) === "GRANT_MISSING") return "";
    throw error;
  }
}

function toSigned(result: SignResult | undefined): Signed {
  if (result === undefined) throw new Error("the server answered without a signature");
  const { signature, algorithm, keyId } = result;
  return { signature, algorithm, keyId };
}

async function* toRequests(
  keyId: string,
  context: Uint8Array<ArrayBuffer>,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<MessageInitShape<typeof SignStreamRequestSchema>> {
  yield { part: { case: "header", value: { keyId, context } } };
  for await (const chunk of chunks) yield { part: { case: "chunk", value: Uint8Array.from(chunk) } };
}

/** Maximum bytes of data in one message: the server's limit minus room for the other fields. */
const maxServerBytes = 4 * 1024 * 1024 - 4096;
const tooLargeForServer = `the content is larger than ${maxServerBytes} bytes, the limit for an SLH-DSA key of the server; an ML-DSA key has no limit`;
