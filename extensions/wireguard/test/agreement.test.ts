import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeProviders } from "../../../test/support/crypto-providers.ts";
import type { Value, VectorCase, VectorSet } from "../../../test/vectors/own/vector-set.ts";
import {
  type Agreement,
  agreementContext,
  buildTranscript,
  buildTunnelStatement,
  deriveKeys,
  tunnelContext,
} from "../agreement.ts";

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
    const transcript = buildTranscript(first);
    const pairs = [
      [1, 2],
      [1, 3],
      [3, 2],
      [2, 1],
    ] as const;
    const keys = pairs.map(([one, other]) => deriveKeys(transcript, secret(one), secret(other)));
    expect(new Set(keys.map(({ presharedKey }) => presharedKey.toHex())).size).toBe(pairs.length);
  });

  it("overwrites the shared secrets", () => {
    const secrets = [secret(1), secret(2)] as const;
    deriveKeys(buildTranscript(first), ...secrets);
    expect(secrets).toEqual([secret(0), secret(0)]);
  });
});
