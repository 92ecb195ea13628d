/** A peer against servers that lie. */
import { randomBytes } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "vitest";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { CryptoProvider, KeyPair } from "../../../src/crypto/provider.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import {
  type AgreedKeys,
  agreementContext,
  buildTranscript,
  buildTunnelStatement,
  deriveKeys,
  tunnelContext,
} from "../agreement.ts";
import { agreeOnKey, fetchTunnel, type PeerDeps } from "../peer-agreement.ts";

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
  const otherNonce = signs(({ nonce }) => ({ nonce: flipBit(nonce) }));

  it.each<[string, (lies: Lies) => Promise<unknown>, Lies]>([
    // agreement.test.ts changes each field.
    ["a recorded agreement, with another nonce", agree, otherNonce],
    [
      "a changed ciphertext",
      agree,
      answers(({ ephemeralCiphertext }) => ({ ephemeralCiphertext: flipBit(ephemeralCiphertext) })),
    ],
    [
      "a gateway with another WireGuard key",
      agree,
      answers(() => ({ gatewayWireguardPublicKey: flipBit(wireguardKey) })),
    ],
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
