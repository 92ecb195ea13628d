/** The token issuer's store: token-signing keys with sealed seeds. */
import { algorithms } from "../crypto/algorithms.ts";
import { type TokenAlgorithm, tokenAlgorithms } from "../crypto/jwt.ts";
import type { PublicKey } from "../crypto/provider.ts";
import type { RecordOf } from "../records/columns.ts";
import { openTable } from "../records/record-table.ts";
import { intact, nameSecret } from "../records/table-declaration.ts";
import type { Store } from "../store/store.ts";
import type { WriteTransaction } from "../store/write-transaction.ts";
import { byOperator, bySystem } from "./identity-entry.ts";
import { issuerKeyTable } from "./tables.ts";

export interface IssuerKeyRecord extends RecordOf<typeof issuerKeyTable.columns> {
  readonly algorithm: TokenAlgorithm;
}

export interface NewIssuerKey {
  readonly keyId: string;
  readonly publicKey: PublicKey;
  readonly seed: Uint8Array;
}

/**
 * The issuer's keys. Ignores keys that were added or changed outside the server, because whoever did so could
 * issue tokens for any user.
 */
export type IssuerStore = ReturnType<typeof createIssuerStore>;

/** Creates the issuer's store on top of the shared store. */
export function createIssuerStore(store: Store) {
  const keys = openTable(store, issuerKeyTable);
  /** Lists intact keys that sign, or that stopped at or after a time. */
  const listOwn = async (db: WriteTransaction["db"], notRetiredBefore: Date): Promise<IssuerKeyRecord[]> => {
    const rows = await keys
      .select(db)
      .where((row) =>
        row.or([row("retired_at_ms", "is", null), row("retired_at_ms", ">=", notRetiredBefore.getTime())]),
      )
      // The signing key comes first, whatever its creators' clocks showed.
      .orderBy((row) => row.case().when("retired_at_ms", "is", null).then(0).else(1).end())
      .orderBy("created_at_ms", "desc")
      .execute();
    const found = rows.map(keys.readRow);
    return found.filter(({ isIntact }) => isIntact).map(({ record }) => withAlgorithm(record));
  };
  const insert = async (transaction: WriteTransaction, key: NewIssuerKey, createdAt: Date): Promise<void> => {
    const { keyId, publicKey, seed } = key;
    const record = { keyId, algorithm: publicKey.algorithm, publicKey: publicKey.exportRaw(), createdAt };
    await keys.insert(transaction, { ...record, retiredAt: undefined }, seed);
  };
  return {
    background: store.background,
    /** Lists keys that sign, or that stopped at or after a time, newest first. */
    listKeys: (notRetiredBefore: Date) => listOwn(store.reader, notRetiredBefore),
    /**
     * Stores a key unless its algorithm already has a signing key. Of several concurrent callers, one
     * succeeds.
     */
    addFirstKey: (key: NewIssuerKey, now: Date) =>
      store.write(async (transaction) => {
        const known = await listOwn(transaction.db, now);
        if (known.some((record) => isCurrent(record, key.publicKey))) return;
        await insert(transaction, key, now);
        await transaction.auditIdentity(bySystem("CREATE_ISSUER_KEY", key.keyId, describeKey(key)));
      }),
    /** Stores a new signing key. Retires the earlier keys of its algorithm and erases their seeds. */
    replaceKey: (key: NewIssuerKey, now: Date, retiredAt: Date) =>
      store.write(async (transaction) => {
        for (const record of await listOwn(transaction.db, retiredAt)) {
          if (record.algorithm !== key.publicKey.algorithm) continue;
          await transaction.eraseSecret(nameSecret(issuerKeyTable, record));
          await keys.update(transaction, intact(record), { retiredAt });
          const details = `${describeKey(record)}, retired=${retiredAt.toISOString()}`;
          await transaction.auditIdentity(byOperator("RETIRE_ISSUER_KEY", record.keyId, details));
        }
        await insert(transaction, key, now);
        await transaction.auditIdentity(byOperator("CREATE_ISSUER_KEY", key.keyId, describeKey(key)));
      }),
    /**
     * Opens a key's 32-byte seed. The caller wipes it.
     *
     * @throws SEAL_BROKEN (CryptoError)
     */
    openSeed: (keyId: string) => store.readSecret(nameSecret(issuerKeyTable, { keyId })),
  };
}

function describeKey(key: Pick<IssuerKeyRecord, "algorithm"> | Pick<NewIssuerKey, "publicKey">): string {
  return `algorithm=${"algorithm" in key ? key.algorithm : key.publicKey.algorithm}`;
}

function withAlgorithm(record: RecordOf<typeof issuerKeyTable.columns>): IssuerKeyRecord {
  const { length } = record.publicKey;
  const algorithm = tokenAlgorithms.find((name) => algorithms[name].publicKeyBytes === length);
  return { ...record, algorithm: algorithm ?? "ML-DSA-65" };
}

function isCurrent(record: IssuerKeyRecord, { algorithm }: PublicKey): boolean {
  return record.retiredAt === undefined && record.algorithm === algorithm;
}
