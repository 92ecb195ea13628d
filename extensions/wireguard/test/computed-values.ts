/** Example values that a peer computes. */
import type { ComputedValues } from "../../../test/openapi/computed-values.ts";
import { readBytes } from "../../../test/openapi/computed-values.ts";
import { makePeer } from "../../../test/services/vpn-peer.ts";
import { buildTranscript, deriveKeys } from "../agreement.ts";
import { epoch, nonce, peerConfirmation, peerKeys } from "../examples.ts";
import { random32 } from "./agent.ts";

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
    const [ephemeralCiphertext, registeredCiphertext] = [
      answer("ephemeralCiphertext"),
      answer("registeredCiphertext"),
    ];
    const transcript = buildTranscript({
      ...{ tunnelId: String(tunnelId), epoch, nonce: Buffer.from(nonce, "base64") },
      gatewayWireguardKey: answer("gatewayWireguardPublicKey"),
      peerWireguardKey: wireguardPublicKey,
      ephemeralPublicKey: ephemeral.publicKey,
      registeredPublicKey: registered.publicKey,
      ...{ ephemeralCiphertext, registeredCiphertext },
    });
    const keys = deriveKeys(
      transcript,
      ephemeral.decapsulate(ephemeralCiphertext),
      registered.decapsulate(registeredCiphertext),
    );
    return { confirmation: encode(keys.peerConfirmation) };
  },
};
