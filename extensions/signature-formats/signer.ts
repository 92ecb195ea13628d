/** Keys that sign in a format: server-held and local ones. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { parsePublicKey, readSecretKey, requireSigning } from "../../src/cli/keys/read-keys.ts";
import { signWithAlgorithm } from "../../src/cli/signing/keys.ts";
import { signContent } from "../../src/cli/signing/local.ts";
import type { VerbInput } from "../../src/cli/verb.ts";
import type { CryptoProvider, PublicKey } from "../../src/crypto/provider.ts";

/** A key that signs messages under the empty context, with its public key. */
export interface Signer {
  readonly publicKey: PublicKey;
  /** Set for a server-held key. */
  readonly keyId?: string;
  sign(message: AsyncIterable<Uint8Array>): Promise<Uint8Array>;
}

/**
 * Finds the key given by --key or --key-file.
 *
 * @throws CliError
 */
export async function openSigner(provider: CryptoProvider, { options, server }: VerbInput): Promise<Signer> {
  const { name, value: key } = options.one("key", "key-file");
  if (name === "key") return openServerKey(provider, server, key);
  const context = new Uint8Array();
  const secretKey = await readSecretKey(provider, key);
  requireSigning(secretKey.algorithm, key);
  const { publicKey } = secretKey;
  return { publicKey, sign: (chunks) => signContent(provider, secretKey, { chunks, context }) };
}

/**
 * Finds a server-held key. A name is resolved to a version once, so a rotation in between changes nothing.
 */
async function openServerKey(
  provider: CryptoProvider,
  server: ApiClient,
  reference: string,
): Promise<Signer> {
  const { result } = await server.ask(KmsService.method.getKey, { keyId: reference });
  const publicKey = parsePublicKey(provider, result?.publicKeyPem ?? "", `key ${reference}`);
  requireSigning(publicKey.algorithm, `key ${reference}`);
  const keyId = result?.keyId ?? reference;
  const content = (chunks: AsyncIterable<Uint8Array>) => ({ chunks, context: new Uint8Array() });
  return {
    publicKey,
    keyId,
    sign: async (chunks) =>
      (await signWithAlgorithm(server, keyId, publicKey.algorithm, content(chunks))).signature,
  };
}
