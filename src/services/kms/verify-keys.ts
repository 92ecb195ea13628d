import { CryptoError } from "../../crypto/crypto-error.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { systemPrincipal } from "../../records/ownership.ts";
import { readPageRequest } from "../../records/pages.ts";
import { importSealedKey } from "../../secrets/sealed-keys.ts";
import { allKeys, nameKeyList } from "./key-filter.ts";
import type { KmsStore, StoredKey } from "./store.ts";

/** The dependencies of the verification of keys. */
export interface VerifyKeysDeps {
  readonly keys: KmsStore;
  readonly provider: CryptoProvider;
  /** Receives the number of checked keys and the total from time to time. */
  readonly onProgress: (checked: number, total: number) => void;
}

/** A damaged key, with a readable explanation of what is wrong. */
export interface KeyFault {
  readonly keyId: string;
  readonly reason: string;
}

/** The number of keys to read at a time. */
const chunkRows = 500;

/**
 * Verifies that every created key is still there and unchanged: its record, its state according to the audit log, and
 * its secret half, which must match its public key.
 */
export async function verifyKeys({
  keys,
  provider,
  onProgress,
}: VerifyKeysDeps): Promise<{ readonly checked: number; readonly faults: readonly KeyFault[] }> {
  const total = await keys.count();
  const faults = (await keys.listLost()).map((keyId) => ({ keyId, reason: "its record is missing" }));
  let checked = 0;
  let pageToken = "";
  do {
    const request = readPageRequest(chunkRows, pageToken, nameKeyList(systemPrincipal, allKeys));
    if (request === undefined) throw new Error("a page token of ours is none");
    const page = await keys.list(request, systemPrincipal, allKeys);
    for (const key of page.rows) {
      const reason = await findFault(keys, provider, key);
      if (reason !== undefined) faults.push({ keyId: key.record.keyId, reason });
      checked += 1;
      onProgress(checked, Math.max(total, checked));
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { checked, faults };
}

async function findFault(
  keys: KmsStore,
  provider: CryptoProvider,
  { record, isIntact, loggedState }: StoredKey,
): Promise<string | undefined> {
  const { keyId, algorithm, publicKey, state } = record;
  if (!isIntact)
    return state === loggedState
      ? "its record was changed outside the server"
      : `its record has the status ${state}, the audit log ${loggedState ?? "does not have the key"}`;
  try {
    const secret = await keys.openSecret(keyId);
    if (state === "DESTROYED") return secret && "its secret key is present, although the key was destroyed";
    if (secret === undefined) return "its secret key is missing";
    (await importSealedKey(provider, algorithm, secret, publicKey)).erase();
    return undefined;
  } catch (error) {
    if (error instanceof CryptoError) return "its secret key was changed outside the server";
    throw error;
  }
}
