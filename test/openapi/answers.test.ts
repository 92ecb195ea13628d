/**
 * The answers that the API description shows: complete, and without secrets. test/interop/clients.test.ts
 * compares them with the answers from a server.
 */
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/calls/example.ts";
import { loadExamples } from "./call-examples.ts";
import { cleanAnswer, secretNames, tokenSample } from "./clean-answer.ts";
import { listRecorded } from "./read-answers.ts";

const examples = await loadExamples();
const answers = listRecorded(examples);

/** Lists every text in an answer, with the name of its field. */
function listTexts(value: Json, name = ""): [name: string, text: string][] {
  if (typeof value === "string") return [[name, value]];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((part) => listTexts(part, name));
  return Object.entries(value).flatMap(([key, part]) => listTexts(part, key));
}

const recorded = Object.entries(answers);
const texts = recorded.flatMap(([example, answer]) =>
  listTexts(answer).map(([name, text]) => ({ example, name, text })),
);

/** Public fields with bytes, or texts that contain bytes. Add a new field here if it is not secret. */
const publicNames = new Set(
  `bytes certificate challenge checkpoint ciphertext compositePublicKey compositePublicKeyPem compositeSignature confirmation creatorPublicKey
  creatorPublicKeyPem creatorSignature csr csrPem data ecdsaPublicKey ecdsaPublicKeyPem ecdsaSignature encapsulatedKey
  ephemeralCiphertext gatewayIdentityPublicKey gatewayIdentityPublicKeyPem gatewayWireguardPublicKey hashes identityPublicKey identityPublicKeyPem kemPublicKey
  kemPublicKeyPem kemPublicKeySignature keyConfirmation kid leaf mldsaPublicKey mldsaPublicKeyPem mldsaSignature packet
  metadata pem pub publicKey publicKeyPem registeredCiphertext rootHash sha256 sha512 signature signatureLine signingHash statement transcript verifierKeys
  canonicalJson nextPageToken subject wireguardPublicKey witnessKey witnessKeys`.split(/\s+/),
);

/**
 * Whether a text contains 16 or more bytes in base64, not counting identifiers, hexadecimal hashes, paths and
 * names.
 */
function hasBytes(text: string): boolean {
  const runs = text.match(/[\w+/-]{22,}={0,2}/g) ?? [];
  return runs.some((run) => /[A-Z]/.test(run) && /[a-z]/.test(run) && /\d/.test(run));
}

describe("the recorded answers", () => {
  it("exist for every example and nothing else: npm run answers records them", () => {
    expect(recorded.map(([name]) => name).sort()).toEqual(examples.map(({ name }) => name).sort());
  });

  it("contain no secrets or tokens", () => {
    const secrets = texts.filter(({ name, text }) => secretNames.test(name) && text !== "");
    expect(secrets.length).toBeGreaterThan(8);
    const hidden = [tokenSample, "(secret)"];
    expect(secrets.filter(({ text }) => !hidden.includes(text) && !text.includes("SECRET/OF"))).toEqual([]);
    // The canonical JSON of a TUF root begins like a token.
    const others = texts.filter(
      ({ text }) => !text.startsWith(Buffer.from('{"_type":"root"').toString("base64")),
    );
    expect(others.filter(({ text }) => /eyJ[\w-]{10}|PRIVATE KEY/.test(text))).toEqual([]);
  });

  it("contain bytes only in fields known to be public", () => {
    const others = texts.filter(
      ({ example, name, text }) =>
        hasBytes(text) &&
        !publicNames.has(name) &&
        !text.includes("SECRET/OF") &&
        // Resource names, and bodies that are not JSON.
        !/^(projects|quantum-safe-playground)\//.test(text) &&
        example !== "get-tile",
    );
    expect(others).toEqual([]);
  });
});

it.each(["token", "access_token", "privateKey", "privateKeySeed", "client_secret", "password"])(
  "recording an answer removes %s anywhere",
  (name) => {
    const secret = Buffer.alloc(32, 0xfb).toString("base64");
    for (const text of [secret, "eyJhbGciOiJub25lIn0.e30.c2ln", "correct horse"])
      expect(JSON.stringify(cleanAnswer({ list: [{ [name]: text }] }))).not.toContain(text);
  },
);
