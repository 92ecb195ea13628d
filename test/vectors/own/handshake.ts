/** Vectors of VPN sessions: the transcript and its signature, the key confirmation, packets, the gateway's key. */
import { createCipheriv, createHash, hkdfSync } from "node:crypto";
import { transcriptOf } from "../../../src/services/vpn/handshake.ts";
import { Session } from "../../../src/services/vpn/session.ts";
import { deriveSessionKeys } from "../../../src/services/vpn/session-keys.ts";
import { fixedBytes, kemKey, mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type Values, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const tunnelId = "tunnel-00000000-0000-4000-8000-000000000004";
const identity = mlDsaKey("ML-DSA-65", "gateway identity");
const gateway = kemKey("gateway encapsulation key");
const peer = kemKey("peer encapsulation key");

/** Which key the ciphertext is for: the gateway's if the peer encapsulates, else the peer's. */
type Recipient = "gateway" | "peer";

function handshakeCase(
  name: string,
  recipient: Recipient,
  packets: (sharedSecret: Uint8Array) => readonly Values[],
): VectorCase {
  const m = fixedBytes(`m of ${name}`, 32);
  const { ciphertext, sharedSecret } = { gateway, peer }[recipient].encapsulate(m);
  return describeSession(name, { recipient, m, ciphertext, sharedSecret, packets: packets(sharedSecret) });
}

interface Agreed {
  readonly recipient: Recipient;
  readonly m: Uint8Array;
  readonly ciphertext: Uint8Array;
  /** What the recipient decapsulates. */
  readonly sharedSecret: Uint8Array;
  readonly packets: readonly Values[];
  /** What the key confirmation is computed with; the shared secret if it is left out. */
  readonly confirmedSecret?: Uint8Array;
}

function describeSession(name: string, agreed: Agreed): VectorCase {
  const { recipient, m, ciphertext, sharedSecret, packets, confirmedSecret = sharedSecret } = agreed;
  const transcript = transcriptOf(tunnelId, ciphertext, peer);
  const confirmationKey = new Uint8Array(
    hkdfSync("sha256", sharedSecret, new Uint8Array(), "quantum-safe-playground vpn key confirmation", 32),
  );
  return vectorCase(name, {
    valid: confirmedSecret === sharedSecret,
    input: {
      ...{ identityKey: "identity", peerKey: "peer", recipientKey: recipient },
      ...{ tunnelId, m: m.toHex(), ciphertext: ciphertext.toHex() },
    },
    intermediate: {
      peerKeyHash: createHash("sha256").update(peer.publicKey).digest("hex"),
      confirmationKey: confirmationKey.toHex(),
    },
    result: {
      transcript,
      signature: identity.sign(utf8(transcript)).toHex(),
      sharedSecret: sharedSecret.toHex(),
      keyConfirmation: new Session(deriveSessionKeys(Uint8Array.from(confirmedSecret), "SHARED", transcript))
        .confirm(transcript)
        .toHex(),
      packets,
    },
  });
}

/** AES-256-GCM with a given IV; a session draws its own at random. */
function seal(sessionKey: Uint8Array, plaintext: Uint8Array, ivName: string): Values {
  const iv = fixedBytes(ivName, 12);
  const cipher = createCipheriv("aes-256-gcm", sessionKey, iv, { authTagLength: 16 });
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  const packet = Buffer.concat([iv, ciphertext, cipher.getAuthTag()]).toString("hex");
  return { valid: true, plaintext: plaintext.toHex(), iv: iv.toHex(), packet };
}

const somePackets = (sharedSecret: Uint8Array): readonly Values[] => {
  const text = seal(sharedSecret, utf8("hello"), "first iv");
  const packet = String(text.packet);
  const tampered = `${packet.slice(0, -2)}${packet.endsWith("00") ? "01" : "00"}`;
  return [
    text,
    seal(sharedSecret, Uint8Array.of(0), "second iv"),
    seal(sharedSecret, utf8(awkwardText), "third iv"),
    { ...text, valid: false, packet: tampered },
    { ...seal(fixedBytes("another session key", 32), utf8("hello"), "fourth iv"), valid: false },
  ];
};

/** Handshakes in both directions with packets. */
export function handshakeVectors(): VectorSet {
  const m = fixedBytes("m for another key", 32);
  const { ciphertext, sharedSecret: meant } = peer.encapsulate(m);
  return {
    format: "qsp-vectors/1",
    name: "handshake",
    specification: "docs/protocol.md#vpn-handshake",
    note: "m is the randomness of encapsulation. The signatures are deterministic; servers sign hedged.",
    keys: { identity: identity.entry, gateway: gateway.entry, peer: peer.entry },
    cases: [
      handshakeCase("the gateway encapsulates to the peer", "peer", somePackets),
      handshakeCase("the peer encapsulates to the gateway", "gateway", somePackets),
      describeSession("a ciphertext for another key: the key confirmation differs", {
        ...{ recipient: "gateway", m, ciphertext, packets: [] },
        sharedSecret: gateway.decapsulate(ciphertext),
        confirmedSecret: meant,
      }),
    ],
  };
}

/** The gateway's signature over its encapsulation key. */
export function gatewayKeyVectors(): VectorSet {
  const context = utf8("quantum-safe-playground vpn kem key");
  const make = (name: string, signature: Uint8Array, valid = true): VectorCase =>
    vectorCase(name, {
      valid,
      input: { identityKey: "identity", kemKey: "gateway", context: context.toHex() },
      intermediate: { signedBytes: gateway.publicKey.toHex() },
      result: { kemPublicKeySignature: signature.toHex() },
    });
  return {
    format: "qsp-vectors/1",
    name: "gateway-key",
    specification: "docs/protocol.md#gateway-keys",
    note: "The signatures are deterministic; servers sign hedged.",
    keys: { identity: identity.entry, gateway: gateway.entry },
    cases: [
      make("the gateway's key", identity.sign(gateway.publicKey, context)),
      make("a signature with an empty context", identity.sign(gateway.publicKey), false),
    ],
  };
}
