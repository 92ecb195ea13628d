/** Server-held keys as age keys: X-Wing keys with usage KEM. */
import { ConnectError } from "@connectrpc/connect";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { type ApiClient, askPages } from "../../src/cli/connection/api-client.ts";
import { CliError, distrustError, exitCodes, findReason, usageError } from "../../src/cli/exit-codes.ts";
import { publicKeyBytes } from "./bech32.ts";
import { openFileKey, type SealedFileKey } from "./file-key.ts";

const { method } = KmsService;

/**
 * Maximum Decapsulate calls for a file. A sealed file key does not name its key, so each key is tried with each of them:
 * without a limit, a file could cause any number of calls.
 */
export const maxCalls = 8;

/** Decapsulates with a key that may open a file key: returns 32 bytes, which the caller wipes. */
export type Decapsulate = (enc: Uint8Array) => Promise<Uint8Array>;

/**
 * Finds an X-Wing key with usage KEM.
 *
 * @param use what the caller needs the key for
 * @throws CliError for a key that is no age recipient
 */
export async function findRecipientKey(
  server: ApiClient,
  handle: string,
  use: "encrypts" | "decrypts" = "encrypts",
): Promise<{ readonly keyId: string; readonly publicKey: Uint8Array }> {
  const { result } = await server.ask(method.getKey, { keyId: handle });
  const { keyId, publicKey, algorithm, usage, status } = result ?? {};
  if (algorithm !== "X-Wing" || usage !== "KEM")
    throw usageError(
      `${handle} is an ${algorithm} key with usage ${usage}; age needs an X-Wing key with usage KEM: ` +
        "qsp kms create --algorithm X-Wing --usage KEM",
    );
  const states = use === "encrypts" ? ["ACTIVE"] : ["ACTIVE", "ROTATED"];
  if (status === undefined || !states.includes(status))
    throw usageError(`${handle} is ${status}; only an ${states.join(" or ")} key ${use}`);
  if (keyId === undefined || publicKey?.length !== publicKeyBytes)
    throw new CliError(exitCodes.unreachable, "the server sent an answer without an X-Wing public key");
  return { keyId, publicKey };
}

/**
 * Finds the file key with server-held keys.
 *
 * @param handle of the key; "" tries the caller's keys, the newest first.
 * @returns the file key, which the caller wipes; undefined if none of the keys opens it
 * @throws CliError if `maxCalls` do not suffice
 */
export async function findFileKeyOnServer(
  server: ApiClient,
  handle: string,
  sealed: readonly SealedFileKey[],
): Promise<Uint8Array | undefined> {
  let calls = 0;
  const decapsulate = async (keyId: string, enc: Uint8Array): Promise<Uint8Array> => {
    if (calls === maxCalls) throw tooManyCalls(handle, sealed.length);
    calls += 1;
    const { result } = await server.ask(method.decapsulate, { keyId, ciphertext: Uint8Array.from(enc) });
    if (result?.sharedSecret.length === 32) return result.sharedSecret;
    throw new CliError(
      exitCodes.unreachable,
      "the server sent an answer without a shared secret of 32 bytes",
    );
  };
  if (sealed.length === 0) return undefined;
  const unusable: KeyRecord[] = [];
  let refusal: unknown;
  try {
    for await (const keyId of listKeys(server, handle, unusable)) {
      const fileKey = await tryKey((enc) => decapsulate(keyId, enc), sealed).catch((error: unknown) => {
        // A disabled primary version: an older one may open the file.
        if (keyId !== handle || !isStateRefusal(error)) throw error;
        refusal = error;
      });
      if (fileKey instanceof Uint8Array) return fileKey;
    }
  } catch (error) {
    throw refusal ?? error;
  }
  if (refusal !== undefined) throw refusal;
  if (unusable.length > 0) throw notTried(handle, unusable);
  return undefined;
}

function isStateRefusal(error: unknown): boolean {
  return error instanceof ConnectError && findReason(error) === "KEY_STATE_INVALID";
}

/** For a file that only a key could open that does not decrypt now: nobody should destroy it as unneeded. */
function notTried(handle: string, unusable: readonly KeyRecord[]): CliError {
  const keys = unusable.map(
    ({ keyId, name, version, status }) => `${name === undefined ? keyId : `${name}/${version}`} (${status})`,
  );
  const shown = keys.slice(0, 5).join(", ");
  const more = keys.length > 5 ? ` and ${keys.length - 5} more` : "";
  return distrustError(
    `the file was not encrypted to a usable key of ${handle || "yours"}. Not tried: ${shown}${more}; restore and enable them, or enable them, to decrypt`,
  );
}

/** Tries one key with all sealed file keys. */
export async function tryKey(
  decapsulate: Decapsulate,
  sealed: readonly SealedFileKey[],
): Promise<Uint8Array | undefined> {
  for (const one of sealed) {
    const fileKey = openFileKey(one, await decapsulate(one.enc));
    if (fileKey !== undefined) return fileKey;
  }
  return undefined;
}

/**
 * Yields the keys that a handle may mean, the most probable first.
 *
 * @param unusable receives the keys that do not decrypt now, but could again
 */
async function* listKeys(server: ApiClient, handle: string, unusable: KeyRecord[]): AsyncGenerator<string> {
  if (handle !== "") {
    yield handle;
    // A name is its primary version. Files may be older than that.
    if (!/^(name|user)\//.test(handle)) return;
    const { versions } = await server.ask(method.getKey, { keyId: handle });
    yield* listUsable(
      versions.filter(({ isPrimary }) => !isPrimary),
      unusable,
    );
    return;
  }
  // The newest keys are on the last page.
  const pages = await askPages((pageToken) =>
    server.ask(method.listKeys, { algorithm: "X-Wing", usage: "KEM", pageToken }),
  );
  const usable = listUsable(
    pages.flatMap(({ keys }) => keys),
    unusable,
  );
  if (usable.length === 0 && unusable.length === 0)
    throw usageError(
      "you have no X-Wing key with usage KEM on this server; name a key that was granted to you",
    );
  yield* usable;
}

/** Lists the IDs of the keys that decapsulate, the newest first. */
function listUsable(keys: readonly KeyRecord[], unusable: KeyRecord[]): readonly string[] {
  unusable.push(...keys.filter(({ status }) => status === "DISABLED" || status === "DESTROY_SCHEDULED"));
  return keys
    .filter(({ status }) => status === "ACTIVE" || status === "ROTATED")
    .map(({ keyId }) => keyId)
    .toReversed();
}

function tooManyCalls(handle: string, recipients: number): CliError {
  const count = `${recipients} post-quantum ${recipients === 1 ? "recipient" : "recipients"}`;
  return distrustError(
    handle === ""
      ? `${maxCalls} attempts with your newest keys did not open the file, which has ${count}; name its key: ` +
          "qsp decrypt --key KEY, or for age the identity from qsp kms age-identity KEY"
      : `${maxCalls} attempts with ${handle} did not open the file, which has ${count}; ` +
          (/^(name|user)\/.*\/\d+$|^key-/.test(handle) ? "" : "name the key's version, and ") +
          `encrypt with its recipient among the first ${maxCalls}`,
  );
}
