import { randomUUID } from "node:crypto";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { refuseField } from "../../errors.ts";
import type { IdempotentCall } from "../../records/idempotency.ts";
import type { Principal } from "../../records/ownership.ts";
import { lendSecret } from "../../secrets/sealed-keys.ts";
import type { Store } from "../../store/store.ts";
import { findUsage, isKeyAlgorithm, type KeyAlgorithm, type KeyRecord } from "./record.ts";
import { keyRecordCodec } from "./record-message.ts";
import type { KmsStore } from "./store.ts";
import { keyQuota } from "./tables.ts";

/** What the creation of keys needs. */
export interface CreateDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly keys: KmsStore;
  readonly now: () => Date;
}

/** The properties of a new key; a property that the caller leaves out is empty. */
export interface CreateInput {
  readonly alias: string;
  readonly algorithm: string;
  readonly usage: string;
  readonly principal: Principal;
  readonly idempotentCall: IdempotentCall | undefined;
}

/**
 * Creates a key and stores its secret half sealed.
 *
 * @throws FIELD_INVALID if the algorithm does not match the usage, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export async function createKey(deps: CreateDeps, input: CreateInput): Promise<KeyRecord> {
  const { store, keys } = deps;
  const { user, userId } = input.principal;
  const algorithm = chooseAlgorithm(input);
  return store.runIdempotent(input.idempotentCall, keyRecordCodec, async (write) => {
    await store.requireRoom(keyQuota, userId);
    return withNewKey(deps, { algorithm, alias: input.alias, owner: userId }, (record, secret) =>
      write(async (transaction) => {
        await keys.insert(transaction, record, secret);
        transaction.audit({
          keyId: record.keyId,
          operation: "CREATE",
          user,
          outcome: "OK",
          details: `algorithm=${algorithm}, usage=${record.usage}`,
        });
        return record;
      }),
    );
  });
}

function chooseAlgorithm({ algorithm, usage }: CreateInput): KeyAlgorithm {
  const name = algorithm || (usage === "KEM" ? "ML-KEM-768" : "ML-DSA-65");
  if (!isKeyAlgorithm(name)) throw refuseField("algorithm", `"${name}" is unknown`);
  const right = findUsage(name);
  if (usage === "" || usage === right) return name;
  throw refuseField("usage", `"${usage}" is not a usage of ${name}; omit it or send "${right}"`);
}

/** Makes a key pair, lends its record and its secret half, and wipes the latter. */
export function withNewKey<T>(
  { provider, now }: CreateDeps,
  { algorithm, alias, owner }: { algorithm: KeyAlgorithm; alias: string; owner: string },
  use: (record: KeyRecord, secret: Uint8Array) => Promise<T>,
): Promise<T> {
  return withFreshKeyPair(provider, algorithm, ({ publicKey, secretKey }) => {
    const keyId = `key-${randomUUID()}`;
    const record: KeyRecord = {
      keyId,
      alias: alias || keyId,
      algorithm,
      usage: findUsage(algorithm),
      state: "ACTIVE",
      publicKey: publicKey.exportRaw(),
      owner,
      createdAt: now(),
    };
    return lendSecret(secretKey, (secret) => use(record, secret));
  });
}
