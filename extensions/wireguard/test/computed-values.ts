/** Example values that a peer computes. */
import { type ComputedValues, readBytes } from "../../../test/openapi/computed-values.ts";
import { makePeer } from "../../../test/services/vpn-peer.ts";
import { base64 } from "../../../test/support/bytes.ts";
import { epoch, nonce, peerConfirmation, peerKeys } from "../examples.ts";
import { deriveAsPeer, random32 } from "./agent.ts";

const [registered, ephemeral] = [makePeer(), makePeer()];
let wireguardPublicKey = random32();

export const computeValues: ComputedValues = {
  [peerKeys]: (outcomes) => {
    // A WireGuard key belongs to one tunnel, and every run of the examples registers one.
    if (!outcomes.has("register-wireguard-peer")) wireguardPublicKey = random32();
    return {
      registeredPublicKey: base64(registered.publicKey),
      ephemeralPublicKey: base64(ephemeral.publicKey),
      wireguardPublicKey: base64(wireguardPublicKey),
    };
  },
  [peerConfirmation]: (outcomes) => {
    const { tunnelId = "" } = outcomes.get("register-wireguard-peer")?.body ?? {};
    const answer = (field: string) => readBytes(outcomes, "agree-on-wireguard-key", field);
    const peer = { ...registered, tunnelId: String(tunnelId), wireguardPublicKey };
    const keys = deriveAsPeer(peer, ephemeral, {
      ...{ epoch, nonce: Buffer.from(nonce, "base64") },
      gatewayWireguardPublicKey: answer("gatewayWireguardPublicKey"),
      ephemeralCiphertext: answer("ephemeralCiphertext"),
      registeredCiphertext: answer("registeredCiphertext"),
    });
    return { confirmation: base64(keys.peerConfirmation) };
  },
};
