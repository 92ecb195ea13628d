/** Generates the vectors of agreements: `node extensions/wireguard/test/vectors/generate.ts` writes agreement.json. */
import { createHmac, hash, hkdfSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixedBytes, kemKey, mlDsaKey } from "../../../../test/vectors/own/keys.ts";
import {
  utf8,
  type Values,
  type VectorCase,
  type VectorSet,
  vectorCase,
} from "../../../../test/vectors/own/vector-set.ts";
import { agreementContext, buildTranscript, buildTunnelStatement, tunnelContext } from "../../agreement.ts";

const tunnelId = "tunnel-00000000-0000-4000-8000-000000000007";
const epoch = 1_790_000_000_000;
const identity = mlDsaKey("ML-DSA-65", "wireguard gateway identity");
const registered = kemKey("wireguard registered key");
const ephemeral = kemKey("wireguard ephemeral key");
const other = kemKey("another wireguard key");
const gatewayWireguardKey = fixedBytes("wireguard key of the gateway", 32);
const peerWireguardKey = fixedBytes("wireguard key of the peer", 32);

interface AgreementCase {
  readonly epoch?: number;
  readonly tunnelId?: string;
  readonly registered?: typeof registered;
  /** Signs with another context. */
  readonly context?: Uint8Array;
  /** Swaps the confirmations, as an attacker would who reflects the peer's own. */
  readonly isReflected?: boolean;
}

function agreementCase(name: string, changes: AgreementCase = {}): VectorCase {
  const { context = agreementContext, isReflected = false } = changes;
  const mEphemeral = fixedBytes(`m for the ephemeral key, ${name}`, 32);
  const mRegistered = fixedBytes(`m for the registered key, ${name}`, 32);
  const toEphemeral = ephemeral.encapsulate(mEphemeral);
  const toRegistered = (changes.registered ?? registered).encapsulate(mRegistered);
  const facts = {
    tunnelId: changes.tunnelId ?? tunnelId,
    epoch: changes.epoch ?? epoch,
    ...{ gatewayWireguardKey, peerWireguardKey },
    nonce: fixedBytes(`nonce, ${name}`, 32),
    ephemeralPublicKey: ephemeral.publicKey,
    registeredPublicKey: registered.publicKey,
    ephemeralCiphertext: toEphemeral.ciphertext,
    registeredCiphertext: toRegistered.ciphertext,
  };
  const transcript = buildTranscript(facts);
  const digest = hash("sha256", transcript, "buffer");
  // What the gateway derives. If it encapsulated to another key, the peer derives something else.
  const secret = Buffer.concat([toEphemeral.sharedSecret, toRegistered.sharedSecret]);
  const keys = Buffer.from(hkdfSync("sha256", secret, "", digest, 96));
  const confirm = (from: number): string =>
    createHmac("sha256", keys.subarray(from, from + 32))
      .update(digest)
      .digest("hex");
  return vectorCase(name, {
    valid: changes.registered === undefined && changes.context === undefined && !isReflected,
    input: {
      ...{ identityKey: "identity", ephemeralKey: "ephemeral", registeredKey: "registered" },
      ...{ tunnelId: facts.tunnelId, epoch: facts.epoch, nonce: facts.nonce.toHex() },
      gatewayWireguardPublicKey: gatewayWireguardKey.toHex(),
      peerWireguardPublicKey: peerWireguardKey.toHex(),
      ephemeralCiphertext: facts.ephemeralCiphertext.toHex(),
      registeredCiphertext: facts.registeredCiphertext.toHex(),
    },
    intermediate: {
      transcript: transcript.toHex(),
      transcriptHash: digest.toString("hex"),
      context: agreementContext.toHex(),
      ephemeralSecret: toEphemeral.sharedSecret.toHex(),
      registeredSecret: toRegistered.sharedSecret.toHex(),
    },
    result: {
      signature: identity.sign(transcript, context).toHex(),
      presharedKey: keys.toString("hex", 0, 32),
      peerConfirmation: confirm(32),
      gatewayConfirmation: confirm(isReflected ? 32 : 64),
    },
  });
}

function statementCase(name: string, changes: { lastEpoch?: number; context?: Uint8Array } = {}): VectorCase {
  const texts = {
    gatewayEndpoint: "vpn.example.com:51820",
    gatewayAddress: "10.8.0.1",
    assignedIp: "10.8.0.2",
  };
  const numbers = { lastEpoch: changes.lastEpoch ?? epoch, serverTimeMs: epoch + 120_000 };
  const nonce = fixedBytes(`nonce, ${name}`, 32);
  const registeredPublicKey = registered.publicKey;
  const keys = { gatewayWireguardKey, peerWireguardKey, registeredPublicKey };
  const statement = buildTunnelStatement({ tunnelId, nonce, ...numbers, ...keys, ...texts });
  const input: Values = {
    ...{ identityKey: "identity", registeredKey: "registered", tunnelId, nonce: nonce.toHex(), ...numbers },
    gatewayWireguardPublicKey: gatewayWireguardKey.toHex(),
    peerWireguardPublicKey: peerWireguardKey.toHex(),
    ...texts,
  };
  return vectorCase(name, {
    valid: changes.context === undefined,
    input,
    intermediate: { signedBytes: statement.toHex(), context: tunnelContext.toHex() },
    result: { signature: identity.sign(statement, changes.context ?? tunnelContext).toHex() },
  });
}

const note =
  "The signatures are deterministic; servers sign hedged. The shared secrets of a case are the gateway's; a peer computes its own from the ciphertexts.";
const keys = { identity: identity.entry, registered: registered.entry, ephemeral: ephemeral.entry };

const agreementVectors: VectorSet = {
  format: "qsp-vectors/1",
  name: "agreement",
  specification: "extensions/wireguard/README.md#agreement",
  note,
  keys,
  cases: [
    agreementCase("an agreement"),
    agreementCase("the smallest epoch, and a short tunnel ID", { epoch: 1, tunnelId: "t" }),
    agreementCase("the largest epoch", { epoch: Number.MAX_SAFE_INTEGER }),
    agreementCase("a gateway that encapsulated to another registered key", { registered: other }),
    agreementCase("a signature with an empty context", { context: new Uint8Array() }),
    agreementCase("a signature with the context of tunnel statements", { context: tunnelContext }),
    agreementCase("a gateway that returns the peer's own confirmation", { isReflected: true }),
  ],
};

const statementVectors: VectorSet = {
  format: "qsp-vectors/1",
  name: "tunnel-statement",
  specification: "extensions/wireguard/README.md#tunnel-statement",
  note: "The signatures are deterministic; servers sign hedged.",
  keys: { identity: identity.entry, registered: registered.entry },
  cases: [
    statementCase("a tunnel with a confirmed key"),
    statementCase("a tunnel without one", { lastEpoch: 0 }),
    statementCase("a signature with the context of agreements", {
      context: utf8("qsp-wireguard-agreement-v1"),
    }),
  ],
};

/** The content of each file, by its name. */
export function renderVectorFiles(): ReadonlyMap<string, string> {
  const sets = [agreementVectors, statementVectors];
  return new Map(sets.map((set) => [`${set.name}.json`, `${JSON.stringify(set, undefined, 2)}\n`]));
}

if (import.meta.main) {
  for (const [name, text] of renderVectorFiles()) writeFileSync(join(import.meta.dirname, name), text);
}
