/** Wrapping keys with HPKE: both directions with Go's crypto/hpke, which others wrote, and what does not open. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import {
  generateWrappingKey,
  isWrappingMethod,
  maxPlaintextBytes,
  unwrap,
  type WrappingMethod,
  wrap,
  wrappingMethods,
} from "../../src/crypto/hpke.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { isMissing, run } from "../interop/tools.ts";
import { base64, bytesOf, flipBit, unbase64 } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { refusal } from "./refusal.ts";

/** Lengths in bytes of private key, public key and enc (draft-ietf-hpke-pq-04, section 8), and the identifier in Go. */
const sizes: Record<WrappingMethod, { seed: number; publicKey: number; enc: number; kem: number }> = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: { seed: 32, publicKey: 1216, enc: 1120, kem: 0x647a },
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: { seed: 64, publicKey: 1184, enc: 1088, kem: 0x0041 },
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: { seed: 64, publicKey: 1568, enc: 1568, kem: 0x0042 },
};
const tagBytes = 16;
const plaintext = bytesOf("a secret key in PKCS#8");
const context = { info: bytesOf("import of key-1"), aad: bytesOf("ML-DSA-65") };

/** Reads one order per line: to open `wrapped` if it is there, otherwise to wrap `plaintext` to `publicKey`. */
const program = `package main

import (
	"crypto/hpke"
	"encoding/json"
	"fmt"
	"os"
)

type order struct {
	Kem                                              uint16
	Seed, PublicKey, Info, Aad, Plaintext, Wrapped []byte
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	kdf, aead := hpke.HKDFSHA256(), hpke.AES256GCM()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var o order
		must(0, in.Decode(&o))
		kem := must(hpke.NewKEM(o.Kem))
		answer := map[string][]byte{}
		if o.Wrapped != nil {
			key := must(kem.NewPrivateKey(o.Seed))
			encBytes := len(o.Wrapped) - len(o.Plaintext) - 16
			recipient := must(hpke.NewRecipient(o.Wrapped[:encBytes], key, kdf, aead, o.Info))
			answer["publicKey"] = key.PublicKey().Bytes()
			answer["plaintext"] = must(recipient.Open(o.Aad, o.Wrapped[encBytes:]))
		} else {
			publicKey := must(kem.NewPublicKey(o.PublicKey))
			enc, sender := must2(hpke.NewSender(publicKey, kdf, aead, o.Info))
			answer["wrapped"] = append(enc, must(sender.Seal(o.Aad, o.Plaintext))...)
		}
		must(0, out.Encode(answer))
	}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	must(0, err)
	return a, b
}
`;

/** What Go answers: bytes in base64. */
type Answer = Readonly<Record<"publicKey" | "plaintext" | "wrapped", string>>;

let goDirectory: string;

/** Gives orders to Go, and returns an answer to each. */
async function askGo(orders: readonly Readonly<Record<string, Uint8Array | number>>[]): Promise<Answer[]> {
  const input = orders.map((order) =>
    JSON.stringify(order, (_name, value) => (value instanceof Uint8Array ? base64(value) : value)),
  );
  const { code, stdout, stderr } = await run("go", ["run", "-C", goDirectory, "."], input.join("\n"));
  if (code !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe.skipIf(isMissing("go"))("Go's crypto/hpke (needs Go 1.26)", { timeout: 300_000 }, () => {
  beforeAll(() => {
    goDirectory = makeTemporaryDirectory(afterAll);
    writeFileSync(join(goDirectory, "go.mod"), "module hpke\n\ngo 1.26\n");
    writeFileSync(join(goDirectory, "main.go"), program);
  });

  describeProviders("with %s", (name) => {
    let provider: CryptoProvider;
    beforeAll(async () => {
      provider = await createCryptoProvider(name);
    });
    afterAll(() => provider.close());

    it("opens what we wrap, with every method", async () => {
      const orders = await Promise.all(
        wrappingMethods.map(async (method) => {
          const { publicKey, seed } = await generateWrappingKey(provider, method);
          const wrapped = await wrap(provider, method, publicKey, plaintext, context);
          return { publicKey, order: { kem: sizes[method].kem, seed, wrapped, plaintext, ...context } };
        }),
      );
      const answers = await askGo(orders.map(({ order }) => order));
      expect(answers).toEqual(
        orders.map(({ publicKey }) => ({ publicKey: base64(publicKey), plaintext: base64(plaintext) })),
      );
    });

    it("wraps what we open, with every method", async () => {
      const keys = await Promise.all(
        wrappingMethods.map(async (method) => ({ method, ...(await generateWrappingKey(provider, method)) })),
      );
      const answers = await askGo(
        keys.map(({ method, publicKey }) => ({ kem: sizes[method].kem, publicKey, plaintext, ...context })),
      );
      const opened = await Promise.all(
        keys.map(({ method, seed }, i) =>
          unwrap(provider, method, seed, unbase64(answers[i]?.wrapped), context),
        ),
      );
      expect(opened).toEqual(keys.map(() => plaintext));
    });
  });
});

describeProviders("HPKE with %s", (name) => {
  let provider: CryptoProvider;
  beforeAll(async () => {
    provider = await createCryptoProvider(name);
  });
  afterAll(() => provider.close());

  describe.each(wrappingMethods)("%s", (method) => {
    const { enc: encBytes } = sizes[method];
    let publicKey: Uint8Array;
    let seed: Uint8Array;
    let wrapped: Uint8Array;
    beforeAll(async () => {
      ({ publicKey, seed } = await generateWrappingKey(provider, method));
      wrapped = await wrap(provider, method, publicKey, plaintext, context);
    });

    it("has the lengths of the draft", () => {
      expect({ publicKey: publicKey.length, seed: seed.length, wrapped: wrapped.length }).toEqual({
        publicKey: sizes[method].publicKey,
        seed: sizes[method].seed,
        wrapped: encBytes + plaintext.length + tagBytes,
      });
    });

    it("opens what it wrapped, and leaves the inputs as they are", async () => {
      const inputs = [Uint8Array.from(seed), Uint8Array.from(wrapped)];
      expect(await unwrap(provider, method, seed, wrapped, context)).toEqual(plaintext);
      expect([seed, wrapped]).toEqual(inputs);
    });

    it("wraps nothing, and as much as there may be, without a context", async () => {
      for (const bytes of [new Uint8Array(), new Uint8Array(randomBytes(maxPlaintextBytes))]) {
        const sealed = await wrap(provider, method, publicKey, bytes);
        expect(await unwrap(provider, method, seed, sealed)).toEqual(bytes);
      }
    });

    const changes: Record<string, () => Promise<Uint8Array>> = {
      "a changed bit at the start of enc": () => unwrap(provider, method, seed, flipBit(wrapped, 0), context),
      "a changed bit at the end of enc": () =>
        unwrap(provider, method, seed, flipBit(wrapped, encBytes - 2), context),
      "a changed bit in the ciphertext": () =>
        unwrap(provider, method, seed, flipBit(wrapped, encBytes), context),
      "a changed bit in the tag": () =>
        unwrap(provider, method, seed, flipBit(wrapped, wrapped.length - 1), context),
      "a byte less": () => unwrap(provider, method, seed, wrapped.subarray(0, -1), context),
      "a byte more": () => unwrap(provider, method, seed, Uint8Array.of(...wrapped, 0), context),
      zeros: () => unwrap(provider, method, seed, new Uint8Array(wrapped.length), context),
      ones: () => unwrap(provider, method, seed, new Uint8Array(wrapped.length).fill(0xff), context),
      "another info": () =>
        unwrap(provider, method, seed, wrapped, { ...context, info: bytesOf("import of key-2") }),
      "another aad": () => unwrap(provider, method, seed, wrapped, { ...context, aad: bytesOf("X-Wing") }),
      "no context": () => unwrap(provider, method, seed, wrapped),
      "the seed of another key": () => unwrap(provider, method, flipBit(seed, 3), wrapped, context),
    };

    it.each(Object.entries(changes))("does not open with %s", async (_name, attempt) => {
      expect(await refusal(attempt)).toBe("UNWRAP_FAILED");
    });

    const lengths: Record<string, () => Promise<Uint8Array>> = {
      "no bytes": () => unwrap(provider, method, seed, new Uint8Array()),
      "no room for a tag": () => unwrap(provider, method, seed, new Uint8Array(encBytes + tagBytes - 1)),
      "more than can be wrapped": () =>
        unwrap(provider, method, seed, new Uint8Array(encBytes + tagBytes + maxPlaintextBytes + 1)),
      "too much to wrap": () => wrap(provider, method, publicKey, new Uint8Array(maxPlaintextBytes + 1)),
      "an info of 65,536 bytes": () =>
        unwrap(provider, method, seed, wrapped, { info: new Uint8Array(65_536) }),
      "an aad of 65,536 bytes": () =>
        unwrap(provider, method, seed, wrapped, { aad: new Uint8Array(65_536) }),
    };

    it.each(Object.entries(lengths))("refuses %s", async (_name, attempt) => {
      expect(await refusal(attempt)).toBe("INVALID_ARGUMENT");
    });

    it("refuses a seed and a public key of the wrong length", async () => {
      const short = new Uint8Array(31);
      expect(await refusal(() => unwrap(provider, method, short, wrapped, context))).toBe("INVALID_KEY");
      expect(await refusal(() => wrap(provider, method, short, plaintext, context))).toBe("INVALID_KEY");
    });
  });

  it("does not open with another method of the same private key", async () => {
    const [, small, large] = wrappingMethods;
    const { publicKey, seed } = await generateWrappingKey(provider, small);
    const wrapped = await wrap(provider, small, publicKey, new Uint8Array(1000));
    expect(await unwrap(provider, small, seed, wrapped)).toHaveLength(1000);
    expect(await refusal(() => unwrap(provider, large, seed, wrapped))).toBe("UNWRAP_FAILED");
  });
});

describe("the wrapping methods", () => {
  it("are those of the table, and no other name", () => {
    expect(wrappingMethods.every(isWrappingMethod)).toBe(true);
    expect(["constructor", "hpke_xwing_hkdf_sha256_aes_256_gcm", ""].some(isWrappingMethod)).toBe(false);
  });

  it("refuse an unknown name", async () => {
    const provider = await createCryptoProvider("openssl");
    const unknown = "HPKE_XWING" as WrappingMethod;
    expect(await refusal(() => generateWrappingKey(provider, unknown))).toBe("INVALID_ARGUMENT");
    await provider.close();
  });
});
