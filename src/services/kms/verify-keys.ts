import type { CryptoProvider } from "../../crypto/provider.ts";
import { isAsStored } from "../../records/columns.ts";
import { nameSecret } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import {
  type MatchKeys,
  type MatchThreadInput,
  matchKeys,
  type SecretHalf,
  startMatchThreads,
} from "./match-keys.ts";
import { type KmsStore, readKeys, type StoredKey } from "./store.ts";
import { keyTable } from "./tables.ts";

export interface VerifyKeysDeps extends Pick<MatchThreadInput, "location" | "masterKey"> {
  readonly store: Pick<Store, "readSecrets">;
  readonly keys: KmsStore;
  readonly provider: CryptoProvider;
  /** Called from time to time with the number of checked keys and the total. */
  readonly onProgress: (checked: number, total: number) => void;
}

/** A damaged key, with an explanation for people. */
export interface KeyFault {
  readonly keyId: string;
  readonly reason: string;
}

/** Keys to read per query. */
const chunkRows = 500;

export interface KeysVerification {
  readonly checked: number;
  readonly faults: readonly KeyFault[];
  /** Identities of the secrets that were opened. */
  readonly opened: ReadonlySet<string>;
}

/**
 * Verifies that every created key still exists and is unchanged: its record, its state according to the audit
 * log, and its secret half, which must match its public key.
 */
export async function verifyKeys(deps: VerifyKeysDeps): Promise<KeysVerification> {
  const { store, keys, provider, location, masterKey, onProgress } = deps;
  const total = await keys.count();
  const faults: KeyFault[] = (await keys.listLost()).map((keyId) => ({
    keyId,
    reason: "its record is missing",
  }));
  const opened = new Set<string>();
  // Starting threads takes longer than checking a few keys.
  const threads =
    total > chunkRows ? startMatchThreads({ provider: provider.name, location, masterKey }) : undefined;
  const match: MatchKeys = threads?.match ?? ((halves) => matchKeys(provider, store.readSecrets, halves));
  const check = async (rows: readonly StoredKey[]) => {
    // A copy, because posting a view of a larger buffer would copy that buffer.
    const halves = await match(
      rows.map(({ record: { keyId, algorithm, publicKey } }) => ({
        ...{ keyId, algorithm, publicKey: Uint8Array.from(publicKey) },
      })),
    );
    const found: KeyFault[] = [];
    for (const [i, row] of rows.entries()) {
      const { keyId } = row.record;
      const half = halves[i] ?? "MISSING";
      if (half === "FITS" || half === "OTHER") opened.add(nameSecret(keyTable, { keyId }));
      const reason = findFault(row, half);
      if (reason !== undefined) found.push({ keyId, reason });
    }
    return { found, count: rows.length };
  };
  /** Pages being checked, oldest first, while the next ones are read. */
  const pending: ReturnType<typeof check>[] = [];
  let checked = 0;
  const finishOne = async (): Promise<void> => {
    const { found = [], count = 0 } = (await pending.shift()) ?? {};
    faults.push(...found);
    checked += count;
    onProgress(checked, Math.max(total, checked));
  };
  try {
    for await (const rows of readKeys(keys, chunkRows)) {
      const finding = check(rows);
      // Awaited in its turn.
      finding.catch(() => {});
      pending.push(finding);
      if (pending.length > 2 * (threads?.count ?? 0)) await finishOne();
    }
    while (pending.length > 0) await finishOne();
  } finally {
    await threads?.close();
  }
  return { checked, faults, opened };
}

/**
 * Returns what is wrong with a key.
 *
 * @returns undefined if nothing is
 */
function findFault(
  { record: { state }, row, isIntact, loggedState }: StoredKey,
  half: SecretHalf,
): string | undefined {
  // A row may merely read like its record, whose tag then matches.
  if (!isIntact || !isAsStored(keyTable.columns, row))
    return state === loggedState
      ? "its record was changed outside the server"
      : `its record has the status ${state}, the audit log ${loggedState ?? "does not have the key"}`;
  if (half === "CLOSED" || half === "OTHER") return "its secret key was changed outside the server";
  if (state === "DESTROYED")
    return half === "FITS" ? "its secret key is present, although the key was destroyed" : undefined;
  return half === "FITS" ? undefined : "its secret key is missing";
}
