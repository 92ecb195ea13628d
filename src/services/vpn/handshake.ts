import { hash } from "node:crypto";
import { equalBytes, wipe } from "../../crypto/bytes.ts";
import { refuse } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import { checkCiphertextLength } from "../fields.ts";
import { type GivenCiphertext, maxCiphertexts } from "./ciphertext-store.ts";
import { requireTunnel, tunnelNotFound, type VpnDeps } from "./register-peer.ts";
import { Session } from "./session.ts";
import { deriveSessionKeys, type KeyForm } from "./session-keys.ts";
import { kemAlgorithm, type Tunnel } from "./store.ts";
import { tunnelTable } from "./tables.ts";

/** The gateway's half of a new session key. */
export type Handshake = Awaited<ReturnType<typeof agreeOnKey>>;

/** Key form of the session, and its caller. */
export interface AgreementInput {
  readonly isRekey: boolean;
  readonly keyForm: KeyForm;
  readonly principal: Principal;
  readonly signal: AbortSignal;
}

/**
 * Establishes a session key with ML-KEM-1024 (FIPS 203), which replaces the previous one.
 *
 * @param given ciphertext of a peer that encapsulated to the gateway's key. If empty, the gateway
 *   encapsulates to the peer's key.
 * @throws TUNNEL_NOT_FOUND, LENGTH_INVALID, HANDSHAKE_REPLAYED, HANDSHAKE_LIMIT_REACHED, RECORD_DAMAGED
 */
export async function agreeOnKey(
  deps: VpnDeps,
  tunnelId: string,
  given: Uint8Array,
  { isRekey, keyForm, principal, signal }: AgreementInput,
) {
  const { provider, gateway, tunnels } = deps;
  const peer = await requireTunnel(deps, tunnelId, principal);
  if (given.length > 0) {
    checkCiphertextLength(kemAlgorithm, given);
    // A first check that makes refusing replays cheap; `requireFirstUse` decides.
    if (await tunnels.hasUsedCiphertext(given)) throw handshakeReplayed(tunnelId);
  }
  const { ciphertext, sharedSecret, sharedSecretMatch } =
    given.length > 0
      ? await takeCiphertext(deps, given)
      : await encapsulateTo(deps, peer).catch(async (error: unknown) => {
          // A disconnect erases the sealed key. The tunnel is then missing, not damaged.
          await requireTunnel(deps, tunnelId, principal);
          throw error;
        });
  const transcript = buildTranscript(tunnelId, ciphertext, peer);
  const session = new Session(deriveSessionKeys(sharedSecret, keyForm, transcript));
  try {
    const signature = await provider.sign(gateway.identityKey, new TextEncoder().encode(transcript));
    const keyConfirmation = session.confirm(transcript);
    // A peer whose call has ended does not receive the new key, so keep the previous session.
    signal.throwIfAborted();
    if (given.length > 0) await requireFirstUse(deps, { tunnelId, ciphertext: given, keyForm });
    signal.throwIfAborted();
    const tunnel = gateway.establish(peer, session, isRekey);
    await requireStillThere(deps, tunnelId, principal);
    return { ciphertext, transcript, signature, keyConfirmation, sharedSecretMatch, tunnel };
  } catch (error) {
    session.close();
    throw error;
  }
}

/**
 * Marks a ciphertext as used. A second session from it would have the same keys but an empty replay window,
 * so all packets could be replayed.
 *
 * @throws HANDSHAKE_REPLAYED, HANDSHAKE_LIMIT_REACHED, TUNNEL_NOT_FOUND
 */
async function requireFirstUse({ store, tunnels }: VpnDeps, given: GivenCiphertext): Promise<void> {
  const { tunnelId } = given;
  const outcome = await store.write((transaction) => tunnels.useCiphertext(transaction, given));
  if (outcome === "TUNNEL_MISSING") throw tunnelNotFound(tunnelId);
  if (outcome === "USED_BEFORE") throw handshakeReplayed(tunnelId);
  if (outcome === "LIMIT_REACHED")
    throw refuse(
      "HANDSHAKE_LIMIT_REACHED",
      `tunnel ${tunnelId} has used ${maxCiphertexts} ciphertexts; omit ciphertext so that the gateway encapsulates, or register the peer again`,
      { tunnelId, maxCiphertexts: String(maxCiphertexts) },
    );
}

function handshakeReplayed(tunnelId: string): Error {
  return refuse(
    "HANDSHAKE_REPLAYED",
    "this ciphertext has already opened a session; encapsulate again for each handshake",
    { tunnelId },
  );
}

/**
 * A tunnel that was disconnected during the handshake must not be revived.
 *
 * @throws TUNNEL_NOT_FOUND
 */
async function requireStillThere(deps: VpnDeps, tunnelId: string, principal: Principal): Promise<void> {
  try {
    await requireTunnel(deps, tunnelId, principal);
  } catch (error) {
    deps.gateway.forget(tunnelId);
    throw error;
  }
}

interface AgreedSecret {
  readonly ciphertext: Uint8Array;
  readonly sharedSecret: Uint8Array;
  /** Whether the gateway and the peer have the same secret; undefined for a peer that keeps its own key. */
  readonly sharedSecretMatch: boolean | undefined;
}

async function takeCiphertext({ provider, gateway }: VpnDeps, ciphertext: Uint8Array): Promise<AgreedSecret> {
  // FIPS 203, section 6.3: a ciphertext for a different key yields a different secret; keyConfirmation
  // reveals that.
  const sharedSecret = await provider.decapsulate(gateway.kemKey, ciphertext);
  return { ciphertext, sharedSecret, sharedSecretMatch: undefined };
}

async function encapsulateTo(deps: VpnDeps, peer: Tunnel): Promise<AgreedSecret> {
  const { provider } = deps;
  const publicKey = provider.importPublicKey(kemAlgorithm, { raw: peer.publicKey });
  const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
  if (!peer.isServerHeld) return { ciphertext, sharedSecret, sharedSecretMatch: undefined };
  const key = describeSealedKey(tunnelTable, kemAlgorithm, peer);
  const peersSecret = await withSealedKey(deps, key, (secretKey) =>
    provider.decapsulate(secretKey, ciphertext),
  );
  const sharedSecretMatch = equalBytes(sharedSecret, peersSecret);
  wipe(peersSecret);
  return { ciphertext, sharedSecret, sharedSecretMatch };
}

/** Builds the text that the gateway signs: tunnelId:base64(ciphertext):hex(SHA-256(peer public key)). */
export function buildTranscript(
  tunnelId: string,
  ciphertext: Uint8Array,
  { publicKey }: Pick<Tunnel, "publicKey">,
): string {
  return `${tunnelId}:${Buffer.from(ciphertext).toString("base64")}:${hash("sha256", publicKey, "hex")}`;
}
