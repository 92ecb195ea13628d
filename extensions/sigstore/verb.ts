/** `qsp sigstore-kms`: sigstore's KMS plugin, started as `sigstore-kms-qsp`. */
import { ConnectError } from "@connectrpc/connect";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { type ApiClient, createClient } from "../../src/cli/connection/api-client.ts";
import { exitCodes, findReason, toCliError, usageError } from "../../src/cli/exit-codes.ts";
import { readChunks } from "../../src/cli/files/read.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { findServerKey, signOnServer } from "../../src/cli/signing/keys.ts";
import { findSigner } from "../../src/cli/signing/local.ts";
import type { Verb } from "../../src/cli/verb.ts";
import { mlDsaNames } from "../../src/crypto/algorithms.ts";
import { readMessage } from "./message.ts";
import { readBytes, readSigstoreRequest, type SigstoreRequest } from "./request.ts";

/** A method's result, under the method's name. */
type SigstoreResult = Readonly<Record<string, string | readonly string[]>>;

export const sigstoreVerbs: readonly Verb[] = [
  {
    name: "sigstore-kms",
    operands: ["VERSION", "REQUEST"],
    options: {},
    // The server comes from the environment, so that even errors about it end up in the answer.
    isLocal: true,
    meaning:
      "Answers one call of sigstore's KMS plugin protocol. sigstore tools start it as sigstore-kms-qsp for keys such as\n" +
      "qsp://name/release, with QSP_URL and QSP_TOKEN or the token of qsp login.",
    example: `qsp sigstore-kms v1 '{"initOptions":{"protocolVersion":"v1","keyResourceID":""},"methodName":"defaultAlgorithm"}'`,
    async run({ operands: [version = "", text = ""], options, output }) {
      let server: ApiClient | undefined;
      try {
        const client = createClient(options);
        server = client;
        const request = readSigstoreRequest(version, text);
        const result = await withDeadline(request.deadline, () => answer(request, client));
        output.print(JSON.stringify({ [request.method]: result }));
        return exitCodes.done;
      } catch (error) {
        // sigstore reads errors from the answer and ignores the exit code.
        const { message, exitCode } = toCliError(error, server?.url ?? "");
        output.print(JSON.stringify({ errorMessage: message }));
        return exitCode;
      } finally {
        server?.close();
      }
    },
  },
];

async function answer(request: SigstoreRequest, server: ApiClient): Promise<SigstoreResult> {
  const { method, keyReference, args } = request;
  switch (method) {
    case "defaultAlgorithm":
      return { defaultAlgorithm: "ML-DSA-65" };
    case "supportedAlgorithms":
      // sigstore cannot parse SLH-DSA public keys.
      return { supportedAlgorithms: mlDsaNames };
    case "createKey":
      return renderPublicKey(await createKey(server, keyReference, String(args.algorithm)));
    case "publicKey":
      return renderPublicKey((await server.ask(KmsService.method.getKey, { keyId: keyReference })).result);
    case "signMessage": {
      const content = { chunks: readMessage(request, readChunks("-")), context: new Uint8Array() };
      const { signature } = await signOnServer(server, keyReference, content);
      return { signature: signature.toBase64() };
    }
    case "verifySignature":
      return verifySignature(request, server);
    default:
      throw usageError(`method ${JSON.stringify(method)} is not supported`);
  }
}

/** Creates a named key, or returns the existing one: sigstore tools repeat the call. */
async function createKey(server: ApiClient, reference: string, algorithm: string) {
  const { createKey, getKey } = KmsService.method;
  if (!mlDsaNames.some((known) => known === algorithm))
    throw usageError(`algorithm "${algorithm}" is not supported; use one of ${mlDsaNames.join(", ")}`);
  const name = /^name\/(.+)$/.exec(reference)?.[1];
  if (name === undefined)
    throw usageError(
      `a new key needs a name: use qsp://name/release, for example, instead of qsp://${reference}`,
    );
  try {
    return (await server.ask(createKey, { name, algorithm })).result;
  } catch (error) {
    if (!(error instanceof ConnectError) || findReason(error) !== "NAME_TAKEN") throw error;
  }
  const { result } = await server.ask(getKey, { keyId: reference });
  if (result?.algorithm === algorithm && result.status === "ACTIVE") return result;
  throw usageError(
    `qsp://${reference} already exists; it is ${result?.status} and uses ${result?.algorithm}`,
  );
}

function renderPublicKey(key: { readonly publicKeyPem?: string | undefined } | undefined): SigstoreResult {
  return { publicKeyPEM: Buffer.from(key?.publicKeyPem ?? "").toBase64() };
}

async function verifySignature(request: SigstoreRequest, server: ApiClient): Promise<SigstoreResult> {
  const signature = readBytes("signature", request.args.signature);
  return withProvider(async (provider) => {
    const { publicKey } = await findServerKey(provider, server, request.keyReference);
    const message = readMessage(request, readChunks("-"));
    if (await findSigner({ provider, publicKeys: [publicKey] }, signature, message)) return {};
    throw usageError("the signature is not valid");
  });
}

/** Maximum timer delay in milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

/** Rejects at the deadline. The process then exits, which cancels the call. */
async function withDeadline<T>(deadline: Date | undefined, work: () => Promise<T>): Promise<T> {
  if (deadline === undefined) return work();
  const remainingMs = deadline.getTime() - Date.now();
  const late = () => usageError(`the deadline ${deadline.toISOString()} has passed`);
  if (remainingMs <= 0) throw late();
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), Math.min(remainingMs, maxTimerMs));
  try {
    return await Promise.race([work(), promise]);
  } finally {
    clearTimeout(timer);
  }
}
