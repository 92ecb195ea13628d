/** A peer's side of an agreement. Everything that the server sends is checked against what the peer pinned. */
import { randomBytes } from "node:crypto";
import {
  type AgreeResponse,
  type GetTunnelResponse,
  WireguardService,
} from "#gen/wireguard/wireguard_service_pb.ts";
import type { ApiClient, CallLimits } from "../../src/cli/connection/api-client.ts";
import { distrustError } from "../../src/cli/exit-codes.ts";
import { equalBytes, wipe } from "../../src/crypto/bytes.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import { withFreshKeyPair } from "../../src/crypto/fresh-key-pair.ts";
import type { CryptoProvider, SecretKey } from "../../src/crypto/provider.ts";
import {
  type AgreedKeys,
  type Agreement,
  agreementContext,
  buildTranscript,
  buildTunnelStatement,
  deriveKeys,
  tunnelContext,
} from "./agreement.ts";
import type { Peer } from "./peer-state.ts";

const { method } = WireguardService;

/** What a peer's calls need. */
export interface PeerDeps {
  readonly server: Pick<ApiClient, "ask">;
  readonly provider: CryptoProvider;
  readonly peer: Peer;
}

/**
 * Fetches the last epoch and the time, which a peer needs for its next epoch.
 *
 * @throws CliError if the gateway's identity did not sign them for this call
 */
export async function fetchTunnel({ server, provider, peer }: PeerDeps): Promise<GetTunnelResponse> {
  const nonce = Uint8Array.from(randomBytes(32));
  const { tunnelId } = peer;
  const answer = await server.ask(method.getTunnel, { tunnelId, nonce });
  requireSameGateway(peer, answer.gatewayWireguardPublicKey);
  if (![answer.lastEpoch, answer.serverTimeMs].every(isWholeNumber))
    throw distrustError("the gateway sent an epoch or a time that is not a whole number");
  const statement = buildTunnelStatement({
    ...answer,
    ...{ tunnelId, nonce },
    gatewayWireguardKey: peer.gatewayWireguardKey,
    peerWireguardKey: peer.wireguardKey,
    registeredPublicKey: peer.registeredKey.publicKey.exportRaw(),
  });
  const context = tunnelContext;
  if (await provider.verify(peer.gatewayIdentity, statement, answer.signature, { context })) return answer;
  throw distrustError(
    "the gateway's identity did not sign this tunnel: another server answers, or the peer has another WireGuard key",
  );
}

/**
 * Agrees on a pre-shared key. When this returns, the gateway has set it.
 *
 * @param epoch above all earlier ones: see AgreeRequest
 * @returns 32 bytes, which the caller wipes
 * @throws CliError if the server does not prove that it is the gateway, and has the same key
 */
export function agreeOnKey(deps: PeerDeps, epoch: number, limits?: CallLimits): Promise<Uint8Array> {
  const { server, provider, peer } = deps;
  return withFreshKeyPair(provider, "ML-KEM-1024", async (ephemeral) => {
    const request = {
      tunnelId: peer.tunnelId,
      epoch,
      nonce: Uint8Array.from(randomBytes(32)),
      ephemeralPublicKey: Uint8Array.from(ephemeral.publicKey.exportRaw()),
    };
    const answer = await server.ask(method.agree, request, limits);
    const keys = await checkAgreement(deps, ephemeral.secretKey, request, answer);
    const { peerConfirmation, gatewayConfirmation, presharedKey } = keys;
    try {
      const confirmation = Uint8Array.from(peerConfirmation);
      const confirmed = await server.ask(
        method.confirm,
        { tunnelId: peer.tunnelId, epoch, confirmation },
        limits,
      );
      if (equalBytes(confirmed.confirmation, gatewayConfirmation)) return presharedKey;
      throw distrustError("the gateway does not have the same pre-shared key");
    } catch (error) {
      wipe(presharedKey);
      throw error;
    }
  });
}

/** @throws CliError */
async function checkAgreement(
  { provider, peer }: PeerDeps,
  ephemeralKey: SecretKey,
  request: Pick<Agreement, "tunnelId" | "epoch" | "nonce" | "ephemeralPublicKey">,
  answer: AgreeResponse,
): Promise<AgreedKeys> {
  const { ephemeralCiphertext, registeredCiphertext, signature } = answer;
  requireSameGateway(peer, answer.gatewayWireguardPublicKey);
  const transcript = buildTranscript({
    ...request,
    gatewayWireguardKey: peer.gatewayWireguardKey,
    peerWireguardKey: peer.wireguardKey,
    registeredPublicKey: peer.registeredKey.publicKey.exportRaw(),
    ...{ ephemeralCiphertext, registeredCiphertext },
  });
  const context = agreementContext;
  if (!(await provider.verify(peer.gatewayIdentity, transcript, signature, { context })))
    throw distrustError(
      "the gateway's identity did not sign this agreement; another server may be answering",
    );
  return deriveKeys(
    transcript,
    await decapsulate(provider, ephemeralKey, ephemeralCiphertext),
    await decapsulate(provider, peer.registeredKey, registeredCiphertext),
  );
}

function isWholeNumber(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** @throws CliError for a gateway whose WireGuard key is not the one in the peer's configuration */
function requireSameGateway({ gatewayWireguardKey }: Peer, sent: Uint8Array): void {
  if (!equalBytes(sent, gatewayWireguardKey))
    throw distrustError("the gateway has a different WireGuard key than when this peer joined; join again");
}

/** @throws CliError for a ciphertext of the wrong length */
function decapsulate(provider: CryptoProvider, key: SecretKey, ciphertext: Uint8Array): Promise<Uint8Array> {
  return provider.decapsulate(key, ciphertext).catch((error: unknown) => {
    throw error instanceof CryptoError
      ? distrustError(`the gateway sent a malformed ciphertext: ${error.message}`)
      : error;
  });
}
