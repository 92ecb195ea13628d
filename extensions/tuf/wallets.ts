/** The defi wallets whose signers sign roots. */
import { sql } from "kysely";
import { refuse } from "../../src/errors.ts";
import { requireIntact } from "../../src/records/table-declaration.ts";
import { type MultisigWallet, type Signer, signerAlgorithm } from "../../src/services/defi/store.ts";
import { signerTable } from "../../src/services/defi/tables.ts";
import type { TufDeps } from "./deps.ts";
import { type RoleKey, toTufKey } from "./keys.ts";
import { reasons } from "./reasons.ts";

/** A wallet with its signers. */
export interface RootWallet {
  readonly wallet: MultisigWallet;
  readonly signers: readonly Signer[];
}

/** Maximum signers of a wallet. */
const maxSigners = 100;

/**
 * Reads an owner's wallet.
 *
 * @throws WALLET_NOT_FOUND, RecordDamagedError
 */
export async function readWallet(
  { governance }: Pick<TufDeps, "governance">,
  walletId: string,
  owner: string,
): Promise<RootWallet> {
  const wallet = await governance.wallets.findIntact({ walletId });
  if (wallet?.owner !== owner)
    throw refuse("WALLET_NOT_FOUND", `wallet ${walletId} does not exist`, { walletId });
  const rows = await governance.signers.listWhere(
    sql<boolean>`wallet_id = ${walletId}`,
    sql`address`,
    maxSigners,
  );
  const signers = rows.map((found) => requireIntact(found, signerTable.describe(found.record)));
  return { wallet, signers };
}

/**
 * Reads an owner's wallet whose signers keep their own keys: only they may sign a root.
 *
 * @throws WALLET_NOT_FOUND, WALLET_UNSUITABLE, RecordDamagedError
 */
export async function readRootWallet(deps: TufDeps, walletId: string, owner: string): Promise<RootWallet> {
  const found = await readWallet(deps, walletId, owner);
  if (!found.signers.some(({ isServerHeld }) => isServerHeld)) return found;
  const advice = "create a wallet with signerPublicKeys";
  throw refuse(
    reasons.walletUnsuitable,
    `the service stores the keys of wallet ${walletId}, but root signers must keep their own; ${advice}`,
    { walletId },
  );
}

export function toSignerKey({ publicKey }: Signer): RoleKey {
  return { algorithm: signerAlgorithm, publicKey };
}

export function findTufKeyId(signer: Signer): string {
  return toTufKey(toSignerKey(signer)).tufKeyId;
}
