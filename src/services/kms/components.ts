/**
 * Finds keys that share a component with a composite key. A component must not be used twice, alone or in a
 * second composite (draft-ietf-lamps-pq-composite-sigs-19, section 9.3): its signatures could be moved from one
 * key to the other.
 */
import { type RawBuilder, sql } from "kysely";
import {
  type ClassicalAlgorithm,
  compositeHalves,
  compositeNames,
  isCompositeAlgorithm,
  isMlDsaAlgorithm,
  type MlDsaAlgorithm,
} from "../../crypto/algorithms.ts";
import { splitPublicKey } from "../../crypto/composite.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { KeyRecord } from "./tables.ts";

/** A key that is a component, or that could be one. */
interface Component {
  readonly algorithm: MlDsaAlgorithm | ClassicalAlgorithm;
  readonly publicKey: Uint8Array;
}

/**
 * Finds the algorithm of a component that a key shares with a stored key, where one of the two keys is a
 * composite; undefined if it shares none.
 */
export async function findSharedComponent(
  { db }: Pick<WriteTransaction, "db">,
  { algorithm, publicKey }: Pick<KeyRecord, "algorithm" | "publicKey">,
): Promise<string | undefined> {
  const isComposite = isCompositeAlgorithm(algorithm);
  for (const component of listComponents(algorithm, publicKey)) {
    const composites = compositeNames.filter((name) =>
      Object.values(compositeHalves[name]).includes(component.algorithm),
    );
    const found = await db
      .selectFrom("kms_keys")
      .select("algorithm")
      .where(sql<boolean>`key_usage = 'SIGN'`)
      .where(matchComponent(component))
      .where("algorithm", "in", isComposite ? [component.algorithm, ...composites] : composites)
      .limit(1)
      .executeTakeFirst();
    if (found !== undefined) return component.algorithm;
  }
  return undefined;
}

function listComponents(algorithm: string, publicKey: Uint8Array): readonly Component[] {
  if (isMlDsaAlgorithm(algorithm) || algorithm === "ECDSA-P256") return [{ algorithm, publicKey }];
  if (!isCompositeAlgorithm(algorithm)) return [];
  const names = compositeHalves[algorithm];
  const halves = splitPublicKey(algorithm, publicKey);
  return [
    { algorithm: names.mlDsa, publicKey: halves.mlDsa },
    { algorithm: names.classical, publicKey: halves.classical },
  ];
}

/**
 * Selects keys that start with an ML-DSA key, or end with a classical one. The first condition of each has an
 * index, in migrations.ts; it alone is not enough, because an importer can choose these 32 bytes.
 */
function matchComponent({ algorithm, publicKey }: Component): RawBuilder<boolean> {
  const length = sql.lit(publicKey.length);
  return isMlDsaAlgorithm(algorithm)
    ? sql`(substr(public_key, 1, 32) = ${publicKey.subarray(0, 32)}
        and substr(public_key, 1, ${length}) = ${publicKey})`
    : sql`(substr(public_key, length(public_key) - 31) = ${publicKey.subarray(-32)}
        and substr(public_key, length(public_key) - ${length} + 1) = ${publicKey})`;
}
