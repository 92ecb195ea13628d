import { createHash, createHmac, hkdfSync } from "node:crypto";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { type EndHolder, isTrusted } from "../../page/stories/tunnel/handshake.ts";
import { receiving, sending } from "../../page/stories/tunnel/packet-steps.tsx";
import { catching, ending, swapping } from "../../page/stories/tunnel/page.tsx";
import { meeting, registering, shaking } from "../../page/stories/tunnel/setup-steps.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const identity = ml_dsa65.keygen();
const kem = ml_kem1024.keygen();
const context = Buffer.from("quantum-safe-playground vpn kem key");

interface GatewayOptions {
  /** The gateway's copy of the peer's public key. */
  readonly swapKey?: (publicKey: Uint8Array) => Uint8Array;
  /** Signs transcripts. */
  readonly signingKey?: Uint8Array;
}

/** The gateway's half of a handshake for a public key; the confirmation follows VpnService in the proto. */
function answerHandshake(publicKey: Uint8Array, signingKey: Uint8Array) {
  const { cipherText: ciphertext, sharedSecret } = ml_kem1024.encapsulate(publicKey);
  const keyHash = createHash("sha256").update(publicKey).digest("hex");
  const transcript = `tunnel-1:${Buffer.from(ciphertext).toString("base64")}:${keyHash}`;
  const salt = createHash("sha256").update(transcript).digest();
  const info = "quantum-safe-playground vpn key confirmation per direction";
  const confirmationKey = new Uint8Array(hkdfSync("sha256", sharedSecret, salt, info, 32));
  const hmac = createHmac("sha256", confirmationKey).update(transcript).digest();
  const signature = ml_dsa65.sign(Buffer.from(transcript), signingKey);
  return { ciphertext, transcript, signature, keyConfirmation: Uint8Array.from(hmac) };
}

/** A gateway that calls every handshake valid, and opens every packet as "opened". */
function startGateway({ swapKey = (it) => it, signingKey = identity.secretKey }: GatewayOptions = {}) {
  let peerKey: Uint8Array = new Uint8Array();
  return serve(VpnService, {
    getGatewayInfo: () => ({
      kemPublicKey: kem.publicKey,
      identityPublicKey: identity.publicKey,
      kemPublicKeySignature: ml_dsa65.sign(kem.publicKey, signingKey, { context }),
    }),
    registerPeer({ publicKey = new Uint8Array() }) {
      peerKey = swapKey(publicKey);
      return { tunnelId: "tunnel-1" };
    },
    handshake({ keyForm }) {
      expect(keyForm).toBe("PER_DIRECTION");
      return answerHandshake(peerKey, signingKey);
    },
    verifyHandshake: () => ({ valid: true }),
    receivePacket: () => ({ data: Buffer.from("opened") }),
    disconnect: () => ({ tunnelStatus: "REMOVED" }),
    sendPacket({ size }) {
      if (size) throw refusalOf("TUNNEL_NOT_FOUND");
      return { packet: new Uint8Array(48) };
    },
  });
}

async function openTunnel(options: GatewayOptions = {}) {
  const caller = startGateway(options);
  const end: EndHolder = { current: undefined };
  const registered = await runStep(registering, caller, { name: "Laptop" });
  const given = { meeting: { identityPublicKey: identity.publicKey }, registering: registered };
  const shaken = await runStep(shaking, caller, given, end);
  return { caller, end, given, shaken };
}

const outsider = ml_dsa65.keygen();
const allTrue = { isOurTranscript: true, isSigned: true, isConfirmed: true };

it.each([
  ["finds the identity's signature over the other key", identity, true],
  ["detects that a different identity signed", outsider, false],
])("meeting %s", async (_what, { secretKey: signingKey }, isVouched) => {
  expect(await runStep(meeting, startGateway({ signingKey }), {})).toMatchObject({ isVouched });
});

describe("shaking", () => {
  it("uses the key from a valid handshake", async () => {
    const { end, shaken } = await openTunnel();
    expect(shaken.findings).toEqual(allTrue);
    expect(end.current).toBeDefined();
  });

  const otherKey = () => ml_kem1024.keygen().publicKey;
  it.each<[string, GatewayOptions, object]>([
    ["a key swapped in transit", { swapKey: otherKey }, { isOurTranscript: false, isConfirmed: false }],
    ["a different signer", { signingKey: outsider.secretKey }, { isSigned: false }],
  ])("uses no key from a handshake with %s", async (_what, options, faults) => {
    const { end, shaken } = await openTunnel(options);
    expect(shaken.findings).toEqual({ ...allTrue, ...faults });
    expect(end.current).toBeUndefined();
  });
});

describe("packets", () => {
  it("are 28 bytes longer than their payload, and are compared with what the gateway read", async () => {
    const { caller, end, given } = await openTunnel();
    const sent = await runStep(sending, caller, { ...given, out: "opened" }, end);
    expect({ bytes: sent.packet.length, isSame: sent.isSame }).toEqual({ bytes: 34, isSame: true });
    expect(sending.says(sent)).toBe("6 bytes became a packet of 34 bytes, which the gateway opened.");
    const other = await runStep(sending, caller, { ...given, out: "other" }, end);
    expect(other).toMatchObject({ isSame: false });
    expect(sending.says(other)).toBe("The gateway read different data, which should not happen.");
  });

  it("under a different key do not open", async () => {
    const { caller, end, given } = await openTunnel();
    const received = await runStep(receiving, caller, { ...given, back: "text" }, end);
    expect(received).toMatchObject({ opened: undefined, isSame: false });
  });

  it("are not sent without a trusted key", async () => {
    const { caller, end, given } = await openTunnel({ signingKey: outsider.secretKey });
    await expect(runStep(sending, caller, { ...given, out: "text" }, end)).rejects.toMatchObject({
      reason: "SESSION_MISSING",
    });
  });
});

it("ending forgets the key, and shows that a further packet is refused", async () => {
  const { caller, end, given } = await openTunnel();
  const { tunnelStatus, refusal } = await runStep(ending, caller, given, end);
  expect([tunnelStatus, refusal.reason, end.current]).toEqual(["REMOVED", "TUNNEL_NOT_FOUND", undefined]);
});

it("catching trusts none of her handshakes, even if the server does", async () => {
  const caller = startGateway();
  const swapped = await runStep(swapping, caller, {});
  expect(swapped.readsGateway).toBe(true);
  const met = await runStep(meeting, caller, {});
  const found = await runStep(catching, caller, { meeting: met, swapping: swapped });
  const { passedOn, rewritten, resigned } = found;
  expect([passedOn, rewritten, resigned].map(isTrusted)).toEqual([false, false, false]);
  expect([passedOn.isOurTranscript, rewritten.isSigned, resigned.isSigned]).toEqual([false, false, false]);
  expect(found.isSignedByHer).toBe(true);
});
