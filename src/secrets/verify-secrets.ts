/** Verifies that every sealed secret opens. */
import type { Reader } from "../database/database.ts";
import type { SecretReader } from "./sealed-keys.ts";
import { opens } from "./vault.ts";

/** Secrets to read at once. */
const chunkRows = 500;

/** The result of the verification. */
export interface SecretsVerification {
  readonly checked: number;
  /** Identities of secrets that do not open. */
  readonly broken: readonly string[];
}

/** @param onProgress called with the number of checked secrets and the total */
export async function verifySecrets(
  { reader, readSecret }: SecretReader & { readonly reader: Reader },
  onProgress: (checked: number, total: number) => void,
): Promise<SecretsVerification> {
  const { total } = await reader
    .selectFrom("sealed_secrets")
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  const broken: string[] = [];
  let checked = 0;
  let last = "";
  for (;;) {
    const rows = await reader
      .selectFrom("sealed_secrets")
      .select("identity")
      .where("identity", ">", last)
      .orderBy("identity")
      .limit(chunkRows)
      .execute();
    for (const { identity } of rows) {
      // A secret that was erased in the meantime is not damaged.
      if ((await opens(readSecret(identity))) === false) broken.push(identity);
      checked += 1;
      onProgress(checked, Math.max(total, checked));
    }
    if (rows.length < chunkRows) return { checked, broken };
    last = rows.at(-1)?.identity ?? "";
  }
}
