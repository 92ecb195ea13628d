import { refuse } from "../../src/errors.ts";
import { encodeCanonical } from "./canonical-json.ts";
import { buildRoot, type Head, type OnlineRole, onlineRoles } from "./metadata.ts";
import { reasons } from "./reasons.ts";
import type { StoredRoleKey } from "./role-keys.ts";
import { type RootWallet, toSignerKey } from "./wallets.ts";

/** Maximum bytes of a proposal's data, as in the rules of defi's CreateProposalRequest. */
const maxDataBytes = 65_536;

/**
 * Encodes a root as the data of its proposal: canonical JSON.
 *
 * @throws ROOT_TOO_LARGE
 */
export function encodeRoot(
  head: Head,
  { wallet, signers }: RootWallet,
  keys: Partial<Record<OnlineRole, StoredRoleKey>>,
): Uint8Array {
  const quorumOf = (key: StoredRoleKey | undefined) => ({
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
