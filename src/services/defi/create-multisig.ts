import { randomUUID } from "node:crypto";
import { type CreateMultisigRequest, CreateMultisigResponseSchema } from "#gen/defi/defi_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { withFreshKeyPairs } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider, KeyPair, PublicKey, SecretKey } from "../../crypto/provider.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { lendSecretOf } from "../../secrets/sealed-keys.ts";
import { readField } from "../fields.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type DefiStore, type MultisigWallet, signerAlgorithm } from "./store.ts";
import { signerQuota } from "./tables.ts";

export interface DefiDeps extends ServiceDeps {
  readonly governance: DefiStore;
}

/** A signer that does not belong to a wallet yet. Without a secret key here, the signer keeps its own. */
interface NewSigner {
  readonly address: string;
  readonly publicKey: Uint8Array;
  readonly secretKey?: SecretKey;
}

/**
 * Creates a wallet with its signers.
 *
 * @throws KEY_INVALID naming the public key, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function createMultisig(
  { provider, store, governance, now }: DefiDeps,
  { signerCount, threshold, signerPublicKeys }: CreateMultisigRequest,
  { owner, idempotentCall }: CallerInput,
) {
  const own = signerPublicKeys.map((raw, i) => readSigner(provider, raw, i));
  return store.runIdempotent(idempotentCall, messageCodec(CreateMultisigResponseSchema), async (write) => {
    await store.requireRoom(signerQuota, owner, own.length || signerCount);
    const missing = Array<typeof signerAlgorithm>(own.length > 0 ? 0 : signerCount).fill(signerAlgorithm);
    return withFreshKeyPairs(provider, missing, (pairs) => {
      const signers = own.length > 0 ? own : pairs.map(toSigner);
      const wallet: MultisigWallet = {
        walletId: `multisig-${randomUUID()}`,
        threshold,
        signers: signers.map(({ address }) => address),
        owner,
        createdAt: now(),
      };
      return write(async (transaction) => {
        await governance.insertWallet(transaction, wallet);
        for (const { address, publicKey, secretKey } of signers) {
          const signer = {
            walletId: wallet.walletId,
            address,
            publicKey,
            isServerHeld: secretKey !== undefined,
          };
          await lendSecretOf(secretKey, (secret) => governance.signers.insert(transaction, signer, secret));
        }
        return { walletId: wallet.walletId, signers: [...wallet.signers], threshold };
      });
    });
  });
}

function toSigner({ publicKey, secretKey }: KeyPair): NewSigner {
  return { ...describeKey(publicKey), secretKey };
}

function readSigner(provider: CryptoProvider, raw: Uint8Array, i: number): NewSigner {
  const read = () => provider.importPublicKey(signerAlgorithm, { raw });
  return describeKey(readField(`signerPublicKeys[${i}]`, read, "KEY_INVALID"));
}

function describeKey(key: PublicKey) {
  const publicKey = key.exportRaw();
  return { address: deriveAddress(publicKey), publicKey };
}
