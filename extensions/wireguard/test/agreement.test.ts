/** Agreements: the vectors on every engine, and a peer against servers that lie. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DescMethod } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "vitest";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { CryptoProvider, KeyPair } from "../../../src/crypto/provider.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { describeProviders } from "../../../test/support/crypto-providers.ts";
import type { Value, VectorCase, VectorSet } from "../../../test/vectors/own/vector-set.ts";
import {
  type AgreedKeys,
  type Agreement,
  agreementContext,
  buildTranscript,
  buildTunnelStatement,
  deriveKeys,
  tunnelContext,
} from "../agreement.ts";
import { agreeOnKey, fetchTunnel, type PeerDeps } from "../peer-agreement.ts";

const folder = join(import.meta.dirname, "vectors");
const readSet = (name: string): VectorSet => JSON.parse(readFileSync(join(folder, name), "utf8"));
const sets = [readSet("agreement.json"), readSet("tunnel-statement.json")] as const;
const [agreements, statements] = sets;

const bytes = (value: Value | undefined): Uint8Array => Uint8Array.fromHex(String(value));
const keyOf = (set: VectorSet, name: string): Uint8Array => bytes(set.keys[name]?.publicKey);

function readAgreement({ input }: VectorCase): Agreement {
  return {
    tunnelId: String(input.tunnelId),
    epoch: Number(input.epoch),
    gatewayWireguardKey: bytes(input.gatewayWireguardPublicKey),
    peerWireguardKey: bytes(input.peerWireguardPublicKey),
    nonce: bytes(input.nonce),
    ephemeralPublicKey: keyOf(agreements, "ephemeral"),
    registeredPublicKey: keyOf(agreements, "registered"),
    ephemeralCiphertext: bytes(input.ephemeralCiphertext),
    registeredCiphertext: bytes(input.registeredCiphertext),
  };
}

describeProviders("a peer with %s agrees with the vector for", (provider) => {
  it.each(agreements.cases)("$name", async (one) => {
    const { intermediate, result, valid } = one;
    const transcript = buildTranscript(readAgreement(one));
    expect(transcript.toHex()).toBe(intermediate.transcript);
    const decapsulate = async (name: string, ciphertext: Value | undefined): Promise<Uint8Array> => {
      const seed = bytes(agreements.keys[name]?.seed);
      return provider.decapsulate(await provider.importSecretKey("ML-KEM-1024", { seed }), bytes(ciphertext));
    };
    const keys = deriveKeys(
      transcript,
      await decapsulate("ephemeral", one.input.ephemeralCiphertext),
      await decapsulate("registered", one.input.registeredCiphertext),
    );
    const identity = provider.importPublicKey("ML-DSA-65", { raw: keyOf(agreements, "identity") });
    const context = agreementContext;
    const isSigned = await provider.verify(identity, transcript, bytes(result.signature), { context });
    const isConfirmed = keys.gatewayConfirmation.toHex() === result.gatewayConfirmation;
    expect(isSigned && isConfirmed).toBe(valid);
    const isAgreed = keys.presharedKey.toHex() === result.presharedKey;
    expect(isAgreed).toBe(keys.peerConfirmation.toHex() === result.peerConfirmation);
    expect(isAgreed || !valid).toBe(true);
  });

  it.each(statements.cases)("$name", async ({ input, intermediate, result, valid }) => {
    const statement = buildTunnelStatement({
      tunnelId: String(input.tunnelId),
      nonce: bytes(input.nonce),
      lastEpoch: Number(input.lastEpoch),
      serverTimeMs: Number(input.serverTimeMs),
      gatewayWireguardKey: bytes(input.gatewayWireguardPublicKey),
      peerWireguardKey: bytes(input.peerWireguardPublicKey),
      registeredPublicKey: keyOf(statements, "registered"),
      gatewayEndpoint: String(input.gatewayEndpoint),
      gatewayAddress: String(input.gatewayAddress),
      assignedIp: String(input.assignedIp),
    });
    expect(statement.toHex()).toBe(intermediate.signedBytes);
    const identity = provider.importPublicKey("ML-DSA-65", { raw: keyOf(statements, "identity") });
    const context = tunnelContext;
    expect(await provider.verify(identity, statement, bytes(result.signature), { context })).toBe(valid);
  });
});

describe("an agreement", () => {
  const [first] = agreements.cases.map(readAgreement);
  if (first === undefined) throw new Error("agreement.json has no case");
  const secret = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
  const derive = (agreement: Agreement) => deriveKeys(buildTranscript(agreement), secret(1), secret(2));

  it.each(Object.keys(first))("has other keys and confirmations with a different %s", (field) => {
    const value = first[field as keyof Agreement];
    const changed = value instanceof Uint8Array ? value.with(0, (value[0] ?? 0) ^ 1) : undefined;
    const other = changed ?? (typeof value === "number" ? value + 1 : `${value}0`);
    const [keys, others] = [derive(first), derive({ ...first, [field]: other })];
    const all = [...Object.values(keys), ...Object.values(others)].map((key) => key.toHex());
    expect(new Set(all).size).toBe(6);
  });

  it("has other keys if either shared secret differs, or both are swapped", () => {
    const keyWith = (one: number, other: number) =>
      deriveKeys(buildTranscript(first), secret(one), secret(other)).presharedKey.toHex();
    expect(new Set([keyWith(1, 2), keyWith(1, 3), keyWith(3, 2), keyWith(2, 1)]).size).toBe(4);
  });

  it("overwrites the shared secrets", () => {
    const secrets = [secret(1), secret(2)] as const;
    deriveKeys(buildTranscript(first), ...secrets);
    expect(secrets).toEqual([secret(0), secret(0)]);
  });
});

const { method } = WireguardService;
const [gatewayWireguardKey, wireguardKey] = [randomBytes(32), randomBytes(32)];

let provider: CryptoProvider;
let identity: KeyPair;
let registered: KeyPair;

beforeAll(async () => {
  provider = await createCryptoProvider("openssl");
  identity = await provider.generateKeyPair("ML-DSA-65");
  registered = await provider.generateKeyPair("ML-KEM-1024");
  return () => provider.close();
});

/** What a lying gateway does differently. */
interface Lies {
  /** Changes the fields that it signs. */
  readonly signed?: (fields: Fields) => Fields;
  /** Changes the answer after it is signed. */
  readonly answered?: (answer: Fields) => Fields;
  readonly context?: Uint8Array;
  readonly signer?: KeyPair;
  /** Chooses the confirmation that it returns. */
  readonly confirmed?: (keys: AgreedKeys) => Uint8Array;
}

// biome-ignore lint/suspicious/noExplicitAny: messages of several calls, which the tests change.
type Fields = any;

/** A gateway that follows the protocol, except for its lies. */
function makeGateway(lies: Lies = {}): PeerDeps["server"] {
  const { signed = (one) => one, answered = (one) => one, signer = identity, confirmed } = lies;
  let keys: AgreedKeys;
  const agree = async ({ tunnelId, epoch, nonce, ephemeralPublicKey }: Fields) => {
    const ephemeralKey = provider.importPublicKey("ML-KEM-1024", { raw: ephemeralPublicKey });
    const [one, two] = [
      await provider.encapsulate(ephemeralKey),
      await provider.encapsulate(registered.publicKey),
    ];
    const ciphertexts = { ephemeralCiphertext: one.ciphertext, registeredCiphertext: two.ciphertext };
    const registeredPublicKey = registered.publicKey.exportRaw();
    const facts = { tunnelId, epoch, nonce, ephemeralPublicKey, registeredPublicKey, ...ciphertexts };
    const transcript = buildTranscript(
      signed({ ...facts, gatewayWireguardKey, peerWireguardKey: wireguardKey }),
    );
    keys = deriveKeys(transcript, one.sharedSecret, two.sharedSecret);
    const { context = agreementContext } = lies;
    const signature = await provider.sign(signer.secretKey, transcript, { context });
    return answered({ ...ciphertexts, gatewayWireguardPublicKey: gatewayWireguardKey, signature });
  };
  const confirm = ({ confirmation }: Fields) => {
    expect(Buffer.from(confirmation).equals(keys.peerConfirmation)).toBe(true);
    return { confirmation: confirmed?.(keys) ?? keys.gatewayConfirmation };
  };
  const getTunnel = async ({ tunnelId, nonce }: Fields) => {
    const facts = {
      ...{ lastEpoch: 5, serverTimeMs: 6, gatewayEndpoint: "192.0.2.1:51820" },
      ...{ gatewayAddress: "10.8.0.1", assignedIp: "10.8.0.2" },
    };
    const registeredPublicKey = registered.publicKey.exportRaw();
    const keysOfTunnel = { gatewayWireguardKey, peerWireguardKey: wireguardKey, registeredPublicKey };
    const statement = buildTunnelStatement(signed({ tunnelId, nonce, ...facts, ...keysOfTunnel }));
    const { context = tunnelContext } = lies;
    const signature = await provider.sign(signer.secretKey, statement, { context });
    return answered({ ...facts, gatewayWireguardPublicKey: gatewayWireguardKey, signature });
  };
  const answers = new Map<DescMethod, (request: Fields) => Fields>([
    [method.agree, agree],
    [method.confirm, confirm],
    [method.getTunnel, getTunnel],
  ]);
  return { ask: async (call, request) => answers.get(call)?.(request) };
}

const depsOf = (lies?: Lies): PeerDeps => ({
  server: makeGateway(lies),
  provider,
  peer: {
    ...{ tunnelId: "tunnel-1", wireguardKey, gatewayWireguardKey },
    registeredKey: registered.secretKey,
    gatewayIdentity: identity.publicKey,
  },
});

describe("a peer", () => {
  it("returns the key that the gateway has, and the signed facts", async () => {
    expect(await agreeOnKey(depsOf(), 7)).toHaveLength(32);
    expect(await fetchTunnel(depsOf())).toMatchObject({ lastEpoch: 5, serverTimeMs: 6 });
  });

  const signs = (change: (one: Fields) => Fields): Lies => ({
    signed: (one) => ({ ...one, ...change(one) }),
  });
  const answers = (change: (one: Fields) => Fields): Lies => ({
    answered: (one) => ({ ...one, ...change(one) }),
  });
  const agree = (lies: Lies) => agreeOnKey(depsOf(lies), 7);
  const fetch = (lies: Lies) => fetchTunnel(depsOf(lies));
  const otherCiphertext = answers((one) => ({ ephemeralCiphertext: flipBit(one.ephemeralCiphertext) }));
  const otherGateway = answers(() => ({ gatewayWireguardPublicKey: flipBit(wireguardKey) }));
  const otherNonce = signs(({ nonce }) => ({ nonce: flipBit(nonce) }));

  it.each<[string, (lies: Lies) => Promise<unknown>, Lies]>([
    // The tests above change each field.
    ["a recorded agreement, with another nonce", agree, otherNonce],
    ["a changed ciphertext", agree, otherCiphertext],
    ["a gateway with another WireGuard key", agree, otherGateway],
    ["an agreement without a signature", agree, answers(() => ({ signature: new Uint8Array() }))],
    ["a signature for handshakes, without a context", agree, { context: new Uint8Array() }],
    ["a signature for tunnel statements", agree, { context: tunnelContext }],
    ["a confirmation that is its own, reflected", agree, { confirmed: (keys) => keys.peerConfirmation }],
    ["a wrong confirmation", agree, { confirmed: (keys) => flipBit(keys.gatewayConfirmation) }],
    ["a recorded statement of its tunnel", fetch, otherNonce],
    ["a statement with another time", fetch, answers(() => ({ serverTimeMs: 7 }))],
    ["a statement with another epoch", fetch, answers(() => ({ lastEpoch: 0 }))],
    ["a statement with an epoch that is not a number", fetch, answers(() => ({ lastEpoch: Number.NaN }))],
    ["a statement with a negative time", fetch, answers(() => ({ serverTimeMs: -1 }))],
    ["a statement with another endpoint", fetch, answers(() => ({ gatewayEndpoint: "198.51.100.1:51820" }))],
    ["a statement signed for agreements", fetch, { context: agreementContext }],
  ])("refuses %s", async (_, call, lies) => {
    await expect(call(lies)).rejects.toMatchObject({ exitCode: 1 });
  });

  it.each([agree, fetch])("refuses another gateway's signature", async (call) => {
    const signer = await provider.generateKeyPair("ML-DSA-65");
    await expect(call({ signer })).rejects.toMatchObject({ exitCode: 1 });
  });

  it("refuses a ciphertext of the wrong length, even if it is signed", async () => {
    const shorten = (one: Fields) => ({ ephemeralCiphertext: one.ephemeralCiphertext.slice(1) });
    await expect(agree({ ...signs(shorten), ...answers(shorten) })).rejects.toThrow("malformed ciphertext");
  });
});
