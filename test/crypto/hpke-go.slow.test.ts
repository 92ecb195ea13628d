import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  generateWrappingKey,
  unwrap,
  type WrappingMethod,
  wrap,
  wrappingMethods,
} from "../../src/crypto/hpke.ts";
import { isMissing } from "../interop/tools.ts";
import { base64, bytesOf, unbase64 } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { createGoProgram } from "../support/go-program.ts";

/** Go's identifiers of the methods. */
const identifiers: Record<WrappingMethod, number> = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: 0x647a,
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: 0x0041,
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: 0x0042,
};
const plaintext = bytesOf("a secret key in PKCS#8");
const context = { info: bytesOf("import of key-1"), aad: bytesOf("ML-DSA-65") };

/** Reads one request per line: unwraps `wrapped` if present, otherwise wraps `plaintext` for `publicKey`. */
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

let askGo: ReturnType<typeof createGoProgram>;

describe.skipIf(isMissing("go"))("Go's crypto/hpke (needs Go 1.26)", { timeout: 300_000 }, () => {
  beforeAll(() => {
    askGo = createGoProgram(program, afterAll);
  });

  describeProviders("with %s", (provider) => {
    it("opens what we wrapped, with every method", async () => {
      const orders = await Promise.all(
        wrappingMethods.map(async (method) => {
          const { publicKey, seed } = await generateWrappingKey(provider, method);
          const wrapped = await wrap(provider, method, publicKey, plaintext, context);
          return { publicKey, order: { kem: identifiers[method], seed, wrapped, plaintext, ...context } };
        }),
      );
      const answers = await askGo(orders.map(({ order }) => order));
      expect(answers).toEqual(
        orders.map(({ publicKey }) => ({ publicKey: base64(publicKey), plaintext: base64(plaintext) })),
      );
    });

    it("wraps what we can open, with every method", async () => {
      const keys = await Promise.all(
        wrappingMethods.map(async (method) => ({ method, ...(await generateWrappingKey(provider, method)) })),
      );
      const answers = await askGo(
        keys.map(({ method, publicKey }) => ({ kem: identifiers[method], publicKey, plaintext, ...context })),
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
