/** The defi wallets whose signers sign roots, and the roots that they sign. */
import { sql } from "kysely";
import { refuse } from "../../src/errors.ts";
import { type MultisigWallet, type Signer, signerAlgorithm } from "../../src/services/defi/store.ts";
import { encodeCanonical } from "./canonical-json.ts";
import type { TufDeps } from "./deps.ts";
import { type RoleKey, toTufKey } from "./keys.ts";
import { buildRoot, type Head, onlineRoles } from "./metadata.ts";
import { reasons } from "./reasons.ts";
import type { RoleKeys } from "./role-keys.ts";

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
  return { wallet, signers: rows.map(governance.signers.requireIntact) };
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

/** Maximum bytes of a proposal's data, as in the rules of defi's CreateProposalRequest. */
const maxDataBytes = 65_536;

/**
 * Encodes a root as the data of its proposal: canonical JSON.
 *
 * @throws ROOT_TOO_LARGE
 */
export function encodeRoot(head: Head, { wallet, signers }: RootWallet, keys: RoleKeys): Uint8Array {
  const quorumOf = (key: RoleKey | undefined) => ({
    keys: key === undefined ? [] : [key],
    threshold: 1,
  });
  const signed = buildRoot(head, {
    root: { keys: signers.map(toSignerKey), threshold: wallet.threshold },
    targets: quorumOf(keys.targets),
    snapshot: quorumOf(keys.snapshot),
    timestamp: quorumOf(keys.timestamp),
  });
  const data = encodeCanonical(signed);
  if (data.length <= maxDataBytes) return data;
  const perSigner = Math.ceil(data.length / (signers.length + onlineRoles.length));
  const fitting = Math.floor(maxDataBytes / perSigner) - onlineRoles.length;
  throw refuse(
    reasons.rootTooLarge,
    `the root with ${signers.length} signers has ${data.length} bytes; a proposal has up to ${maxDataBytes}, which suffices for ${fitting} signers`,
    { signers: String(signers.length), bytes: String(data.length), maxBytes: String(maxDataBytes) },
  );
}
