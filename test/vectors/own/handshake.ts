/** Vectors of VPN sessions: the transcript and its signature, the keys and their confirmation, packets, the gateway key. */
import { createCipheriv, createHash, createHmac, hkdfSync } from "node:crypto";
import { buildTranscript } from "../../../src/services/vpn/handshake.ts";
import { fixedBytes, kemKey, mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type Values, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const tunnelId = "tunnel-00000000-0000-4000-8000-000000000004";
const identity = mlDsaKey("ML-DSA-65", "gateway identity");
const gateway = kemKey("gateway encapsulation key");
const peer = kemKey("peer encapsulation key");

type Side = "gateway" | "peer";
type KeyForm = "SHARED" | "PER_DIRECTION";

/** The keys of a session, and the salt that they are derived with; packet keys by the side that seals. */
interface SessionKeys {
  readonly salt: Uint8Array;
  readonly confirmation: Uint8Array;
  readonly packets: Readonly<Record<Side, Uint8Array>>;
}

function deriveKeys(sharedSecret: Uint8Array, keyForm: KeyForm, transcript: string): SessionKeys {
  const isShared = keyForm === "SHARED";
  const salt = isShared ? new Uint8Array() : createHash("sha256").update(transcript).digest();
  const derive = (use: string): Uint8Array =>
    new Uint8Array(hkdfSync("sha256", sharedSecret, salt, `quantum-safe-playground vpn ${use}`, 32));
  if (isShared) {
    const packets = { peer: sharedSecret, gateway: sharedSecret };
    return { salt, confirmation: derive("key confirmation"), packets };
  }
  const packets = { peer: derive("peer to gateway"), gateway: derive("gateway to peer") };
  return { salt, confirmation: derive("key confirmation per direction"), packets };
}

interface Agreed {
  /** Owner of the encapsulation key: the gateway if the peer encapsulates, otherwise the peer. */
  readonly recipient: Side;
  readonly keyForm: KeyForm;
  readonly m: Uint8Array;
  readonly ciphertext: Uint8Array;
  /** What the recipient decapsulates. */
  readonly sharedSecret: Uint8Array;
  /** Replaces the shared secret and the key form in the key confirmation, which makes it invalid. */
  readonly confirmed?: { readonly sharedSecret: Uint8Array; readonly keyForm: KeyForm };
}

function handshakeCase(name: string, recipient: Side, keyForm: KeyForm): VectorCase {
  const m = fixedBytes(`m of ${name}`, 32);
  const { ciphertext, sharedSecret } = { gateway, peer }[recipient].encapsulate(m);
  return describeSession(name, { recipient, keyForm, m, ciphertext, sharedSecret });
}

function describeSession(name: string, agreed: Agreed): VectorCase {
  const { recipient, keyForm, m, ciphertext, sharedSecret, confirmed } = agreed;
  const transcript = buildTranscript(tunnelId, ciphertext, peer);
  const keys = deriveKeys(sharedSecret, keyForm, transcript);
  const { confirmation } = confirmed
    ? deriveKeys(confirmed.sharedSecret, confirmed.keyForm, transcript)
    : keys;
  return vectorCase(name, {
    valid: confirmed === undefined,
    input: {
      ...{ identityKey: "identity", peerKey: "peer", recipientKey: recipient },
      ...{ tunnelId, keyForm, m: m.toHex(), ciphertext: ciphertext.toHex() },
    },
    intermediate: {
      peerKeyHash: createHash("sha256").update(peer.publicKey).digest("hex"),
      salt: keys.salt.toHex(),
      peerToGatewayKey: keys.packets.peer.toHex(),
      gatewayToPeerKey: keys.packets.gateway.toHex(),
      confirmationKey: keys.confirmation.toHex(),
    },
    result: {
      transcript,
      signature: identity.sign(utf8(transcript)).toHex(),
      sharedSecret: sharedSecret.toHex(),
      keyConfirmation: createHmac("sha256", confirmation).update(transcript).digest("hex"),
      packets: confirmed === undefined ? makePackets(keys, keyForm, sharedSecret) : [],
    },
  });
}

/** AES-256-GCM with a given IV; a session generates its own. */
function seal(from: Side, key: Uint8Array, plaintext: Uint8Array, ivName: string): Values {
  const iv = fixedBytes(ivName, 12);
  const cipher = createCipheriv("aes-256-gcm", key, iv, { authTagLength: 16 });
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  const packet = Buffer.concat([iv, ciphertext, cipher.getAuthTag()]).toString("hex");
  return { from, valid: true, plaintext: plaintext.toHex(), iv: iv.toHex(), packet };
}

function makePackets({ packets }: SessionKeys, keyForm: KeyForm, sharedSecret: Uint8Array): Values[] {
  const { peer: peerKey, gateway: gatewayKey } = packets;
  const hello = utf8("hello");
  const text = seal("peer", peerKey, hello, "first iv");
  const packet = String(text.packet);
  const tampered = `${packet.slice(0, -2)}${packet.endsWith("00") ? "01" : "00"}`;
  const invalid = (values: Values): Values => ({ ...values, valid: false });
  const ofEitherForm = [
    text,
    seal("gateway", gatewayKey, Uint8Array.of(0), "second iv"),
    seal("peer", peerKey, utf8(awkwardText), "third iv"),
    invalid({ ...text, packet: tampered }),
    invalid(seal("gateway", fixedBytes("another session key", 32), hello, "fourth iv")),
  ];
  if (keyForm === "SHARED") return ofEitherForm;
  return [
    ...ofEitherForm,
    seal("gateway", gatewayKey, hello, "fifth iv"),
    invalid(seal("peer", gatewayKey, hello, "sixth iv")),
    invalid(seal("gateway", peerKey, hello, "seventh iv")),
    invalid(seal("peer", sharedSecret, hello, "eighth iv")),
  ];
}

/** Handshakes in both directions and with both key forms, with packets. */
export function handshakeVectors(): VectorSet {
  const m = fixedBytes("m for another key", 32);
  const { ciphertext, sharedSecret: meant } = peer.encapsulate(m);
  const toWrongKey = {
    recipient: "gateway",
    m,
    ciphertext,
    sharedSecret: gateway.decapsulate(ciphertext),
  } as const;
  const downgraded = fixedBytes("m for the other key form", 32);
  const exchange = gateway.encapsulate(downgraded);
  const { sharedSecret } = exchange;
  return {
    format: "qsp-vectors/1",
    name: "handshake",
    specification: "docs/formats.md#vpn-handshake",
    note: "m is the randomness of encapsulation. The signatures are deterministic; servers sign hedged. In a packet, from is the side that seals, and valid refers to the packet.",
    keys: { identity: identity.entry, gateway: gateway.entry, peer: peer.entry },
    cases: [
      handshakeCase("the gateway encapsulates to the peer", "peer", "SHARED"),
      handshakeCase("the peer encapsulates to the gateway", "gateway", "SHARED"),
      describeSession("a ciphertext for a different key: the key confirmation differs", {
        ...{ ...toWrongKey, keyForm: "SHARED" },
        confirmed: { sharedSecret: meant, keyForm: "SHARED" },
      }),
      handshakeCase("a key per direction: the gateway encapsulates to the peer", "peer", "PER_DIRECTION"),
      handshakeCase("a key per direction: the peer encapsulates to the gateway", "gateway", "PER_DIRECTION"),
      describeSession("a key per direction: a ciphertext for a different key", {
        ...{ ...toWrongKey, keyForm: "PER_DIRECTION" },
        confirmed: { sharedSecret: meant, keyForm: "PER_DIRECTION" },
      }),
      describeSession("a key per direction: the gateway was asked for a shared key", {
        ...{ ...exchange, recipient: "gateway", keyForm: "PER_DIRECTION", m: downgraded },
        confirmed: { sharedSecret, keyForm: "SHARED" },
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
    specification: "docs/formats.md#gateway-keys",
    note: "The signatures are deterministic; servers sign hedged.",
    keys: { identity: identity.entry, gateway: gateway.entry },
    cases: [
      make("the gateway's key", identity.sign(gateway.publicKey, context)),
      make("a signature with an empty context", identity.sign(gateway.publicKey), false),
    ],
  };
}
