/** Composites: Bouncy Castle and every provider read each other's keys and verify each other's signatures. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compositeNames } from "../../src/crypto/algorithms.ts";
import { decodePem } from "../../src/crypto/pem.ts";
import { bouncyCastle, isBouncyCastleMissing } from "../interop/java.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { type LineClient, startLineClient } from "../support/line-client.ts";

const message = bytesOf("a message");
const contexts = [new Uint8Array(), bytesOf("invoice"), new Uint8Array(255).fill(7)];
const none = "-";
const write = (bytes: Uint8Array) => (bytes.length === 0 ? none : bytes.toBase64());
const read = (text: string) => Uint8Array.fromBase64(text);

let java: LineClient<readonly string[], string>;

async function ask(requests: readonly (readonly string[])[]): Promise<string[]> {
  const answers: string[] = [];
  for (const words of requests) answers.push(await java.ask(words));
  return answers;
}

const needs = isBouncyCastleMissing() ? " (needs Java and Bouncy Castle)" : "";

describe.skipIf(isBouncyCastleMissing())(`Bouncy Castle${needs}`, { timeout: 180_000 }, () => {
  beforeAll(() => {
    java = startLineClient("java", ["-cp", bouncyCastle, join(import.meta.dirname, "java/Composite.java")]);
  });
  afterAll(() => java.end());

  describeProviders("and %s", async (provider) => {
    const pairs = await Promise.all(
      compositeNames.map(async (name) => {
        const { publicKey, secretKey } = await provider.generateKeyPair(name);
        const pkcs8 = write(decodePem("PRIVATE KEY", secretKey.toPem()));
        return { name, publicKey, secretKey, pkcs8, spki: write(decodePem("PUBLIC KEY", publicKey.toPem())) };
      }),
    );

    it("verifies our signatures, each under its context alone, and rejects a change in either half", async () => {
      const requests: string[][] = [];
      const expected: string[] = [];
      for (const { name, secretKey, spki } of pairs)
        for (const context of contexts) {
          const signature = await provider.sign(secretKey, message, { context });
          const changed = [flipBit(signature, 9), flipBit(signature, signature.length - 9)];
          for (const given of [signature, ...changed])
            for (const used of contexts) {
              requests.push(["verify", name, spki, write(message), write(used), write(given)]);
              expected.push(String(given === signature && used === context));
            }
        }
      expect(await ask(requests)).toEqual(expected);
    });

    it("makes signatures with our keys that verify, each under its context alone", async () => {
      const rows = pairs.flatMap((pair) => contexts.map((context) => ({ pair, context })));
      const signatures = await ask(
        rows.map(({ pair, context }) => ["sign", pair.name, pair.pkcs8, write(message), write(context)]),
      );
      expect(signatures).toHaveLength(rows.length);
      for (const [i, { pair, context }] of rows.entries())
        for (const used of contexts) {
          const signature = read(signatures[i] ?? "");
          const valid = await provider.verify(pair.publicKey, message, signature, { context: used });
          expect(valid, pair.name).toBe(used === context);
        }
    });

    it("writes keys that we read and write without a change", async () => {
      const generated = await ask(compositeNames.map((name) => ["generate", name]));
      const requests: string[][] = [];
      for (const [i, name] of compositeNames.entries()) {
        const [pkcs8 = "", spki = ""] = (generated[i] ?? "").split(" ");
        const secretKey = await provider.importSecretKey(name, { der: read(pkcs8) });
        expect(write(decodePem("PRIVATE KEY", secretKey.toPem()))).toBe(pkcs8);
        expect(write(decodePem("PUBLIC KEY", secretKey.publicKey.toPem()))).toBe(spki);
        const signature = write(await provider.sign(secretKey, message));
        requests.push(["verify", name, spki, write(message), none, signature]);
      }
      expect(await ask(requests)).toEqual(compositeNames.map(() => "true"));
    });
  });
});
