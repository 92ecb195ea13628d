/** X-Wing keys for tests: server-held ones, and identities in age's form. */
import { bech32 } from "@scure/base";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { withProvider } from "../../../src/cli/keys/read-keys.ts";
import type { CliServer } from "../../../test/cli/qsp.ts";
import { encodeRecipient } from "../bech32.ts";

/** @returns the ID of a new X-Wing key with usage KEM */
export async function createAgeKey(server: CliServer, name = ""): Promise<string> {
  const { result } = await server.client(KmsService).createKey({ algorithm: "X-Wing", usage: "KEM", name });
  return result?.keyId ?? "";
}

/** Creates an identity as age-keygen -pq writes it, and its recipient. */
export function createIdentity(): Promise<{ readonly identity: string; readonly recipient: string }> {
  return withProvider(async (provider) => {
    const { publicKey, secretKey } = await provider.generateKeyPair("X-Wing");
    const words = bech32.toWords(secretKey.exportSeed() ?? new Uint8Array());
    return {
      identity: bech32.encode("AGE-SECRET-KEY-PQ-", words, false).toUpperCase(),
      recipient: encodeRecipient(publicKey.exportRaw()),
    };
  });
}
