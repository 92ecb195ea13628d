/** The chapter of a story that tells who the gateway is, and registers peers. */
import { randomUUID } from "node:crypto";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it } from "vitest";
import { refusal } from "../support/refusal.ts";
import { rawKeyOf } from "./outside.ts";
import type { Stage } from "./vpn-story.ts";

export function tellOfRegistration({ vpn, away, gateway, keep, tunnel, laptop, phone }: Stage): void {
  const registered = {
    status: "success",
    tunnelId: expect.stringMatching(/^tunnel-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    assignedIp: expect.stringMatching(/^10\.8\.\d{1,3}\.\d{1,3}$/),
  };

  describe("GetGatewayInfo", () => {
    it("tells both public keys of the gateway, raw and as PEM, the same on every server", async () => {
      const info = await away.getGatewayInfo({});
      // Each server has a signature of its own.
      const { kemPublicKeySignature, ...keys } = gateway();
      expect(info).toMatchObject(keys);
      expect([info.kemPublicKeySignature.length, kemPublicKeySignature.length]).toEqual([3309, 3309]);
      expect(info).toMatchObject({
        status: "success",
        kemAlgorithm: "ML-KEM-1024",
        identityAlgorithm: "ML-DSA-65",
        kemPublicKey: rawKeyOf(info.kemPublicKeyPem),
        identityPublicKey: rawKeyOf(info.identityPublicKeyPem),
      });
      expect([info.kemPublicKey.length, info.identityPublicKey.length]).toEqual([1568, 1952]);
    });
  });

  describe("RegisterPeer", () => {
    it.each([
      ["raw", "laptop – Zürich", { publicKey: laptop.publicKey }, laptop],
      ["as PEM", "phone", { publicKeyPem: phone.publicKeyPem }, phone],
    ] as const)("takes a peer's own key %s, and tells no private key", async (_form, peerName, key, peer) => {
      const answer = await vpn.registerPeer({ peerName, ...key });
      const { publicKey, publicKeyPem } = peer;
      expect(answer).toMatchObject({ ...registered, publicKey, publicKeyPem });
      expect(answer.privateKey).toBeUndefined();
      keep({ ...answer, peerName });
    });

    it("makes a pair whose private key opens what is encapsulated to its public key", async () => {
      const answer = await vpn.registerPeer({ peerName: "router" });
      const { publicKey, publicKeyPem, privateKey = new Uint8Array() } = answer;
      expect(answer).toMatchObject({ ...registered, publicKey: rawKeyOf(publicKeyPem) });
      expect(privateKey).toHaveLength(3168);
      const { cipherText, sharedSecret } = ml_kem1024.encapsulate(publicKey);
      expect(ml_kem1024.decapsulate(cipherText, privateKey)).toEqual(sharedSecret);
      keep({ ...answer, peerName: "router" });
    });

    it("makes one tunnel with an Idempotency-Key, however often, and tells its private key again", async () => {
      const once = { headers: { "Idempotency-Key": randomUUID() } };
      const first = await vpn.registerPeer({ peerName: "printer" }, once);
      expect(first.privateKey).toHaveLength(3168);
      expect(await vpn.registerPeer({ peerName: "printer" }, once)).toEqual(first);
      expect(await refusal(vpn.registerPeer({ peerName: "scanner" }, once))).toEqual({
        code: "AlreadyExists",
        reason: "IDEMPOTENCY_KEY_REUSED",
      });
      keep({ ...first, peerName: "printer" });
    });
  });

  it("before a handshake there is no session to send, to receive, or to rekey", async () => {
    const { tunnelId } = tunnel("phone");
    const calls = [
      vpn.sendPacket({ tunnelId, size: 1 }),
      vpn.receivePacket({ tunnelId, packet: new Uint8Array(29) }),
      vpn.rekey({ tunnelId }),
    ];
    const sessionMissing = { code: "FailedPrecondition", reason: "SESSION_MISSING" };
    expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => sessionMissing));
  });
}
