/** Verifies that every sealed secret opens. */
import { wipe } from "../crypto/bytes.ts";
import type { Reader } from "../database/database.ts";
import { countRows, readChunks } from "../database/read-rows.ts";

/** What the verification needs of the store. */
export interface SecretsToVerify {
  readonly reader: Reader;
  /** @returns each existing secret; undefined for a secret that does not open */
  readSecrets(identities: readonly string[]): Promise<ReadonlyMap<string, Uint8Array | undefined>>;
}

/** Secrets to read at once. */
const chunkRows = 500;

export interface SecretsVerification {
  readonly checked: number;
  /** Identities of secrets that do not open. */
  readonly broken: readonly string[];
}

/**
 * @param onProgress called with the number of checked secrets and the total
 * @param opened identities of secrets that were just opened
 */
export async function verifySecrets(
  { reader, readSecrets }: SecretsToVerify,
  onProgress: (checked: number, total: number) => void,
  opened: ReadonlySet<string> = new Set(),
): Promise<SecretsVerification> {
  const secrets = reader.selectFrom("sealed_secrets");
  const total = await countRows(secrets);
  const broken: string[] = [];
  let checked = 0;
  for await (const rows of readChunks(secrets.select("identity"), ["identity"], chunkRows)) {
    const left = rows.map(({ identity }) => identity).filter((identity) => !opened.has(identity));
    // A secret that was erased in the meantime is not damaged.
    for (const [identity, secret] of await readSecrets(left)) {
      if (secret === undefined) broken.push(identity);
      else wipe(secret);
    }
    checked += rows.length;
    onProgress(checked, Math.max(total, checked));
  }
  return { checked, broken: broken.sort() };
}
