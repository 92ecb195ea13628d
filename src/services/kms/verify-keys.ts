import { wipe } from "../../crypto/bytes.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { systemPrincipal } from "../../records/ownership.ts";
import { readPageRequest } from "../../records/pages.ts";
import { nameSecret } from "../../records/table-declaration.ts";
import { allKeys, nameKeyList } from "./key-filter.ts";
import { type KeyHalves, type MatchKeys, matchKeys, startMatchThreads } from "./match-keys.ts";
import type { KmsStore, StoredKey } from "./store.ts";
import { keyTable } from "./tables.ts";

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

/** The result of the verification. */
export interface KeysVerification {
  readonly checked: number;
  readonly faults: readonly KeyFault[];
  /** The identities of the secrets that were opened. */
  readonly opened: ReadonlySet<string>;
}

/**
 * Verifies that every created key is still there and unchanged: its record, its state according to the audit log, and
 * its secret half, which must match its public key.
 */
export async function verifyKeys(deps: VerifyKeysDeps): Promise<KeysVerification> {
  const { keys, provider, onProgress } = deps;
  const total = await keys.count();
  const faults: KeyFault[] = (await keys.listLost()).map((keyId) => ({
    keyId,
    reason: "its record is missing",
  }));
  const opened = new Set<string>();
  // Threads take longer to start than a few keys take to check.
  const threads = total > chunkRows ? startMatchThreads(provider) : undefined;
  const match: MatchKeys = threads?.match ?? ((halves) => matchKeys(provider, halves));
  const check = async (rows: readonly StoredKey[]): Promise<readonly (KeyFault | undefined)[]> => {
    const secrets = await keys.openSecrets(rows.map(({ record }) => record.keyId));
    for (const [keyId, secret] of secrets)
      if (secret !== undefined) opened.add(nameSecret(keyTable, { keyId }));
    return findFaults(rows, secrets, match);
  };
  /** The pages that are being checked, oldest first: their secrets are read while others are opened and matched. */
  const pending: Promise<readonly (KeyFault | undefined)[]>[] = [];
  let checked = 0;
  const finishOne = async (): Promise<void> => {
    const found = (await pending.shift()) ?? [];
    faults.push(...found.filter((fault) => fault !== undefined));
    checked += found.length;
    onProgress(checked, Math.max(total, checked));
  };
  try {
    let pageToken = "";
    do {
      const request = readPageRequest(chunkRows, pageToken, nameKeyList(systemPrincipal, allKeys));
      if (request === undefined) throw new Error("a page token of ours is none");
      const page = await keys.list(request, systemPrincipal, allKeys);
      const finding = check(page.rows);
      // Awaited in its turn.
      finding.catch(() => {});
      pending.push(finding);
      if (pending.length > 2 * (threads?.count ?? 0)) await finishOne();
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    while (pending.length > 0) await finishOne();
  } finally {
    await threads?.close();
  }
  return { checked, faults, opened };
}

/** @returns for each key what is wrong with it; undefined for an intact key */
async function findFaults(
  rows: readonly StoredKey[],
  secrets: ReadonlyMap<string, Uint8Array | undefined>,
  match: MatchKeys,
): Promise<(KeyFault | undefined)[]> {
  const halves: (KeyHalves & { readonly keyId: string })[] = [];
  const reasons = new Map<string, string>();
  for (const key of rows) {
    const { keyId, algorithm, publicKey } = key.record;
    const secret = secrets.get(keyId);
    const reason = findFault(key, secrets.has(keyId), secret);
    if (reason !== undefined) reasons.set(keyId, reason);
    if (secret === undefined) continue;
    if (reason === undefined) halves.push({ keyId, algorithm, secret, publicKey });
    else wipe(secret);
  }
  const matches = await match(halves);
  for (const [i, { keyId }] of halves.entries()) if (matches[i] !== true) reasons.set(keyId, changedSecret);
  return rows.map(({ record: { keyId } }) => {
    const reason = reasons.get(keyId);
    return reason === undefined ? undefined : { keyId, reason };
  });
}

const changedSecret = "its secret key was changed outside the server";

/** Finds what is wrong with a key, apart from halves that do not fit. @param secret undefined if it does not open */
function findFault(
  { record: { state }, isIntact, loggedState }: StoredKey,
  hasSecret: boolean,
  secret: Uint8Array | undefined,
): string | undefined {
  if (!isIntact)
    return state === loggedState
      ? "its record was changed outside the server"
      : `its record has the status ${state}, the audit log ${loggedState ?? "does not have the key"}`;
  if (hasSecret && secret === undefined) return changedSecret;
  if (state === "DESTROYED")
    return hasSecret ? "its secret key is present, although the key was destroyed" : undefined;
  return hasSecret ? undefined : "its secret key is missing";
}
