/** Encrypted data and Go's crypto/hpke: a program that knows only docs/formats.md, in both directions. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { withFreshKeyPair } from "../../../src/crypto/fresh-key-pair.ts";
import { isMissing } from "../../interop/tools.ts";
import { base64, bytesOf, unbase64 } from "../../support/bytes.ts";
import { createGoProgram } from "../../support/go-program.ts";
import { wrapKeyFile } from "../../support/wrap-key.ts";
import { present } from "../answers.ts";
import { describeKms, type KmsClient } from "./kms-server.ts";

/** HPKE's identifiers of the KEMs (docs/formats.md#encrypted-data). */
const kems = { "X-Wing": 0x647a, "ML-KEM-768": 0x0041, "ML-KEM-1024": 0x0042 } as const;
const plaintext = bytesOf("a database password");
const associatedData = bytesOf("row 17");

/** Opens `Ciphertext` with a seed, or seals `Plaintext` to a public key. */
const program = `package main

import (
	"bytes"
	"crypto/hpke"
	"encoding/hex"
	"encoding/json"
	"log"
	"os"
	"strings"
)

type order struct {
	Kem                                                     uint16
	KeyId                                                   string
	Seed, PublicKey, AssociatedData, Plaintext, Ciphertext []byte
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	kdf, aead := hpke.HKDFSHA256(), hpke.AES256GCM()
	encBytes := map[uint16]int{0x647A: 1120, 0x0041: 1088, 0x0042: 1568}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var o order
		must(0, in.Decode(&o))
		kem := must(hpke.NewKEM(o.Kem))
		uuid := must(hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(o.KeyId, "key-"), "-", "")))
		head := append([]byte{1}, uuid...)
		info := append([]byte("qsp-kms-encrypt-v1"), head...)
		answer := map[string][]byte{}
		if o.Ciphertext != nil {
			sealed, found := bytes.CutPrefix(o.Ciphertext, head)
			if !found {
				log.Fatal("the head names another key")
			}
			key := must(kem.NewPrivateKey(o.Seed))
			enc, ct := sealed[:encBytes[o.Kem]], sealed[encBytes[o.Kem]:]
			recipient := must(hpke.NewRecipient(enc, key, kdf, aead, info))
			answer["plaintext"] = must(recipient.Open(o.AssociatedData, ct))
		} else {
			publicKey := must(kem.NewPublicKey(o.PublicKey))
			enc, sender, err := hpke.NewSender(publicKey, kdf, aead, info)
			must(0, err)
			ct := must(sender.Seal(o.AssociatedData, o.Plaintext))
			answer["ciphertext"] = bytes.Join([][]byte{head, enc, ct}, nil)
		}
		must(0, out.Encode(answer))
	}
}
`;

/** Imports a new key whose seed the test knows, because the service never exports one. */
async function importKey(kms: KmsClient, algorithm: keyof typeof kems) {
  const provider = await createCryptoProvider("openssl");
  const seed = await withFreshKeyPair(provider, algorithm, async ({ secretKey }) =>
    present(secretKey.exportSeed()),
  );
  await provider.close();
  const wrapped = await wrapKeyFile(await kms.getImportParameters({}), seed);
  const { keyId, publicKey } = present(
    (await kms.importKey({ ...wrapped, algorithm, usage: "ENCRYPT" })).result,
  );
  return { keyId, publicKey, seed, kem: kems[algorithm] };
}

describeKms("Go's crypto/hpke (needs Go 1.26)", (_start, shared) => {
  let askGo: ReturnType<typeof createGoProgram>;
  beforeAll(() => {
    askGo = createGoProgram(program, afterAll);
  });

  it.skipIf(isMissing("go"))(
    "opens what Encrypt sealed, and seals what Decrypt opens, with each algorithm",
    async () => {
      const { kms } = await shared();
      const keys = await Promise.all(
        (Object.keys(kems) as (keyof typeof kems)[]).map((name) => importKey(kms, name)),
      );
      const opened = keys.map(async ({ keyId, seed, kem }) => {
        const { result } = await kms.encrypt({ keyId, plaintext, associatedData });
        return { keyId, seed, kem, ciphertext: present(result).ciphertext, associatedData };
      });
      const sealed = keys.map(({ keyId, publicKey, kem }) => ({
        keyId,
        publicKey,
        kem,
        plaintext,
        associatedData,
      }));
      const answers = await askGo([...(await Promise.all(opened)), ...sealed]);
      expect(answers.slice(0, keys.length)).toEqual(keys.map(() => ({ plaintext: base64(plaintext) })));
      for (const [i, { keyId }] of keys.entries()) {
        const ciphertext = unbase64(answers[keys.length + i]?.ciphertext);
        expect((await kms.decrypt({ ciphertext, associatedData })).result).toMatchObject({
          keyId,
          plaintext,
        });
      }
    },
  );
});
