/** Example values that a peer computes. */
import type { ComputedValues } from "../../../test/openapi/computed-values.ts";
import { readBytes } from "../../../test/openapi/computed-values.ts";
import { makePeer } from "../../../test/services/vpn-peer.ts";
import { epoch, nonce, peerConfirmation, peerKeys } from "../examples.ts";
import { deriveAsPeer, random32 } from "./agent.ts";

const [registered, ephemeral] = [makePeer(), makePeer()];
let wireguardPublicKey = random32();

const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

export const computeValues: ComputedValues = {
  [peerKeys]: (outcomes) => {
    // A WireGuard key belongs to one tunnel, and every run of the examples registers one.
    if (!outcomes.has("register-wireguard-peer")) wireguardPublicKey = random32();
    return {
      registeredPublicKey: encode(registered.publicKey),
      ephemeralPublicKey: encode(ephemeral.publicKey),
      wireguardPublicKey: encode(wireguardPublicKey),
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
    return { confirmation: encode(keys.peerConfirmation) };
  },
};
