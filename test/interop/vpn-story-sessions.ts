/** The chapters of a story that agree on session keys. */
import { createPublicKey, encapsulate } from "node:crypto";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it } from "vitest";
import { makeSigner, sha256 } from "../services/node-crypto.ts";
import { confirmAsPeer, openAsPeer, sealAsPeer } from "../services/vpn-peer.ts";
import { base64, flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { isSignatureOf } from "./outside.ts";
import { count, type KnownTunnel, type Stage, sessionKeyOf } from "./vpn-story.ts";

/** What the gateway says of a new session key, in a handshake and in a rekey. */
interface Agreement {
  readonly ciphertext: Uint8Array;
  readonly transcript: string;
  readonly signature: Uint8Array;
  readonly keyConfirmation: Uint8Array;
}

/** Expects what must hold of any new session key, computed with nothing but the proto; and keeps the key. */
function takeKey(
  { gateway }: Stage,
  tunnel: KnownTunnel,
  { ciphertext, transcript, signature, keyConfirmation }: Agreement,
  sessionKey: Uint8Array,
): void {
  const { tunnelId, publicKey } = tunnel;
  expect(ciphertext).toHaveLength(1568);
  expect(transcript).toBe(`${tunnelId}:${base64(ciphertext)}:${sha256(publicKey)}`);
  const { identityPublicKeyPem } = gateway();
  expect(isSignatureOf(identityPublicKeyPem, signature, Buffer.from(transcript))).toBe(true);
  expect(keyConfirmation).toEqual(confirmAsPeer(sessionKey, transcript));
  expect(sessionKey).not.toEqual(tunnel.sessionKey);
  tunnel.sessionKey = sessionKey;
}

/** A session key, and the ciphertext that brings it to the gateway. */
function encapsulateTo({ gateway }: Stage) {
  const { sharedKey, ciphertext } = encapsulate(createPublicKey(gateway().kemPublicKeyPem));
  return { sessionKey: Uint8Array.from(sharedKey), ciphertext: Uint8Array.from(ciphertext) };
}

export function tellOfHandshakes(stage: Stage): void {
  const { vpn, home, gateway, tunnel, laptop } = stage;
  const identity = () => ({
    gatewayIdentityPublicKey: gateway().identityPublicKey,
    gatewayIdentityPublicKeyPem: gateway().identityPublicKeyPem,
  });

  let signed: { transcript: string; signature: Uint8Array };

  describe("Handshake", () => {
    it("encapsulates to a peer that keeps its own key", async () => {
      const { tunnelId } = tunnel("laptop – Zürich");
      const answer = await home.handshake({ tunnelId });
      takeKey(stage, tunnel("laptop – Zürich"), answer, laptop.decapsulate(answer.ciphertext));
      signed = answer;
      expect(answer).toMatchObject({ status: "success", ...identity() });
      expect(answer.sharedSecretMatch).toBeUndefined();
    });

    it("takes the ciphertext of a peer that encapsulated to the gateway", async () => {
      const { ciphertext, sessionKey } = encapsulateTo(stage);
      const { tunnelId } = tunnel("phone");
      const answer = await home.handshake({ tunnelId, ciphertext });
      takeKey(stage, tunnel("phone"), answer, sessionKey);
      expect(answer).toMatchObject({ status: "success", ciphertext, ...identity() });
      expect(answer.sharedSecretMatch).toBeUndefined();
    });

    it("encapsulates to a peer whose pair the gateway made, and tells that both came to one secret", async () => {
      const { tunnelId, privateKey = new Uint8Array() } = tunnel("router");
      const answer = await home.handshake({ tunnelId });
      takeKey(stage, tunnel("router"), answer, ml_kem1024.decapsulate(answer.ciphertext, privateKey));
      expect(answer).toMatchObject({ status: "success", sharedSecretMatch: true, ...identity() });
    });
  });

  describe("VerifyHandshake", () => {
    it("is true with the gateway's key left out, raw or as PEM, on any server", async () => {
      const { transcript, signature } = signed;
      const { gatewayIdentityPublicKey, gatewayIdentityPublicKeyPem } = identity();
      for (const key of [{}, { gatewayIdentityPublicKey }, { gatewayIdentityPublicKeyPem }]) {
        const answer = await vpn.verifyHandshake({ transcript, signature, ...key });
        expect(answer).toMatchObject({ status: "success", valid: true });
      }
    });

    it("is false for another transcript, signature or key", async () => {
      const { transcript, signature } = signed;
      for (const change of [
        { transcript: `${transcript}0` },
        { signature: flipBit(signature) },
        { gatewayIdentityPublicKey: makeSigner("ml-dsa-65").publicKey },
      ]) {
        const answer = await vpn.verifyHandshake({ transcript, signature, ...change });
        expect(answer).toMatchObject({ status: "success", valid: false });
      }
    });
  });
}

export function tellOfRekeys(stage: Stage): void {
  const { home, tunnel, laptop } = stage;
  const data = Buffer.from("hello");

  describe("Rekey", () => {
    it("encapsulates another session key to the peer, and counts", async () => {
      const ofLaptop = tunnel("laptop – Zürich");
      const oldKey = sessionKeyOf(ofLaptop);
      const { tunnelId } = ofLaptop;
      const answer = await home.rekey({ tunnelId });
      takeKey(stage, ofLaptop, answer, laptop.decapsulate(answer.ciphertext));
      ofLaptop.rekeyCount = 1;
      expect(answer).toMatchObject({ status: "success", rekeyCount: 1 });
      expect(answer.sharedSecretMatch).toBeUndefined();
      expect(await refusal(home.receivePacket({ tunnelId, packet: sealAsPeer(oldKey, data) }))).toEqual({
        code: "InvalidArgument",
        reason: "PACKET_INVALID",
      });
    });

    it("takes the ciphertext of a peer, and both sides use the new key", async () => {
      const ofLaptop = tunnel("laptop – Zürich");
      const { tunnelId } = ofLaptop;
      const { ciphertext, sessionKey } = encapsulateTo(stage);
      const answer = await home.rekey({ tunnelId, ciphertext });
      takeKey(stage, ofLaptop, answer, sessionKey);
      ofLaptop.rekeyCount = 2;
      expect(answer).toMatchObject({ status: "success", rekeyCount: 2, ciphertext });
      const sent = await home.sendPacket({ tunnelId, data });
      expect(openAsPeer(sessionKey, sent.packet)).toEqual(Uint8Array.from(data));
      const received = await home.receivePacket({ tunnelId, packet: sealAsPeer(sessionKey, data) });
      expect(received.data).toEqual(Uint8Array.from(data));
      count(ofLaptop, data);
      count(ofLaptop, data);
    });

    it("tells that both came to one secret where the gateway made the pair", async () => {
      const router = tunnel("router");
      const { tunnelId, privateKey = new Uint8Array() } = router;
      const answer = await home.rekey({ tunnelId });
      takeKey(stage, router, answer, ml_kem1024.decapsulate(answer.ciphertext, privateKey));
      router.rekeyCount = 1;
      expect(answer).toMatchObject({ status: "success", rekeyCount: 1, sharedSecretMatch: true });
    });
  });
}
