/** Public and secret keys in the files of people: what `qsp` reads, and what it says about the rest. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout, useServer } from "./qsp.ts";

const server = useServer();
const nowhere = "http://127.0.0.1:1";

/** A place with a file, its signature by the second of three keys, and no server. */
async function placeWithKeys(algorithm = "ML-DSA-65") {
  const place = { ...server.place(), url: nowhere };
  writeFileSync(join(place.cwd, "file"), "hello");
  for (const name of ["a", "b", "c"]) await qspDone(["keygen", name, "--algorithm", algorithm], place);
  await qspDone(["sign", "file", "--key-file", "b.key"], place);
  return place;
}

const read = ({ cwd }: RunOptions, name: string) => readFileSync(join(cwd, name), "utf8");
const write = ({ cwd }: RunOptions, name: string, content: string | Uint8Array) =>
  writeFileSync(join(cwd, name), content);
const joined = (place: RunOptions, ...names: string[]) => names.map((name) => read(place, name)).join("");
const raw = (key: KeyObject, format: string) => key.export({ format } as never) as unknown as Buffer;
const verifyLine = (file = "keys") => ["verify", "file", "--signature", "file.sig", "--public-key", file];

describe("qsp verify --public-key", { timeout }, () => {
  it.each(["ML-DSA-65", "SLH-DSA-SHA2-128f"])(
    "finds the key that has signed among several of %s, and says which",
    async (algorithm) => {
      const place = await placeWithKeys(algorithm);
      write(place, "keys", `Keys of the release team\n${joined(place, "a.pub", "b.pub", "c.pub")}`);
      expect(await qspDone(verifyLine(), place)).toBe(
        `file: the signature is valid (${algorithm}, key 2 of 3)\n`,
      );
      expect(await qspJson(verifyLine(), place)).toEqual({ valid: true, algorithm, keyNumber: 2 });
      write(place, "keys", joined(place, "a.pub", "c.pub"));
      expect(await qsp(verifyLine(), place)).toMatchObject({
        code: 1,
        stdout: "file: the signature is NOT valid (none of 2 keys)\n",
      });
    },
  );

  it("finds it among keys of several algorithms, and skips those for encapsulation", async () => {
    const place = await placeWithKeys();
    await qspDone(["keygen", "kem", "--algorithm", "ML-KEM-768"], place);
    await qspDone(["keygen", "small", "--algorithm", "ML-DSA-44"], place);
    write(place, "keys", joined(place, "kem.pub", "small.pub", "b.pub"));
    expect(await qspDone(verifyLine(), place)).toContain("valid (ML-DSA-65, key 3 of 3)");
    write(place, "file.sig", Buffer.alloc(3309).toString("base64"));
    expect((await qsp(verifyLine(), place)).code).toBe(1);
    write(place, "file.sig", "short");
    expect(await qsp(verifyLine(), place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("an ML-DSA-44 signature has 2420, an ML-DSA-65 signature has 3309"),
    });
  });

  it("reads both files of kms public-keys after a rotation", async () => {
    const place = server.place();
    write(place, "file", "hello");
    const kms = server.client(KmsService);
    const { result } = await kms.createKey({ name: "rotated" });
    await qspDone(["sign", "file", "--key", "name/rotated"], place);
    await kms.rotateKey({ keyId: result?.keyId ?? "" });
    await qspDone(["kms", "public-keys", "--name", "rotated", "--pem", "pem", "--jwks", "jwks"], place);
    for (const file of ["pem", "jwks"]) expect(await qspDone(verifyLine(file), place)).toMatch(/key \d of 2/);
  });

  it("reads one JWK", async () => {
    const place = await placeWithKeys();
    write(place, "keys", JSON.stringify(toJwk(place, "b.pub")));
    expect(await qspDone(verifyLine(), place)).toBe("file: the signature is valid (ML-DSA-65)\n");
  });

  it.each<[string, (place: RunOptions) => string | Uint8Array, RegExp]>([
    ["no key", () => "hello", /keys does not contain an ML-DSA, .* public key in PEM, and is not a JWK/],
    [
      "a key without END",
      (place) => read(place, "b.pub").slice(0, 500),
      /keys: the PUBLIC KEY in line 1 has no END/,
    ],
    [
      "a key that cannot be read, before another",
      (place) => read(place, "a.pub").replace("MII", "MI!") + read(place, "b.pub"),
      /keys: the PUBLIC KEY in line 1 is not valid base64/,
    ],
    [
      "a key of another kind, before another",
      (place) =>
        generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }) +
        read(place, "b.pub"),
      /keys: the PUBLIC KEY in line 1 is not an ML-DSA, /,
    ],
    [
      "UTF-16",
      (place) => Buffer.from(`\uFEFF${read(place, "b.pub")}`, "utf16le"),
      /keys: the text is in UTF-16/,
    ],
    [
      "a secret key",
      (place) => read(place, "b.key"),
      /keys: line 1 begins a secret key; name the file of the public key/,
    ],
    [
      "a certificate",
      () => "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
      /keys: line 1 begins a CERTIFICATE; expected a PUBLIC KEY; give a certificate with --certificate/,
    ],
    ["a key for encapsulation", kemKey, /keys is an ML-KEM-768 key, which cannot sign or verify/],
    ["a JWK set of other keys", () => '{"keys":[{"kty":"EC"}]}', /keys: the JWK set has no key of ML-DSA-44/],
    [
      "a JWK cut short in a set",
      (place) =>
        JSON.stringify({ keys: [toJwk(place, "b.pub"), { kty: "AKP", alg: "ML-DSA-65", pub: "AAAA" }] }),
      /keys: pub of key 2 of the JWK set must be the public key of ML-DSA-65: 1952 bytes/,
    ],
    [
      "a secret JWK",
      (place) => JSON.stringify({ ...toJwk(place, "b.pub"), priv: "AAAA" }),
      /keys: the JWK has priv: it is a secret key/,
    ],
  ])("refuses %s, and says what it found", async (_, makeFile, message) => {
    const place = await placeWithKeys();
    write(place, "keys", makeFile(place));
    const { code, stderr } = await qsp(verifyLine(), place);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
  });
});

describe("a secret key in a file", { timeout }, () => {
  const { privateKey, publicKey } = generateKeyPairSync("ml-dsa-65");
  const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
  const jwk = {
    kty: "AKP",
    alg: "ML-DSA-65",
    pub: raw(publicKey, "raw-public").toString("base64url"),
    priv: raw(privateKey, "raw-seed").toString("base64url"),
  };

  it.each([
    ["DER", privateKey.export({ type: "pkcs8", format: "der" })],
    ["PEM with text before it", `Private-Key: ML-DSA-65\n${pem}`],
    ["PEM with spaces at the end of its lines", pem.replaceAll("\n", "  \n")],
    ["a JWK", JSON.stringify(jwk)],
  ])("signs and is imported as %s", async (_, file) => {
    const place = server.place();
    write(place, "file", "hello");
    write(place, "key", file);
    write(place, "keys", publicKey.export({ type: "spki", format: "pem" }));
    await qspDone(["sign", "file", "--key-file", "key"], place);
    expect((await qsp(verifyLine(), place)).code).toBe(0);
    const { result } = await qspJson(["kms", "import", "key"], place);
    expect(result).toMatchObject({
      algorithm: "ML-DSA-65",
      publicKey: raw(publicKey, "raw-public").toString("base64"),
    });
  });

  it.each<[string, string | Uint8Array, RegExp]>([
    [
      "two keys",
      pem + pem,
      /key: 2 PEM blocks \(PRIVATE KEY in line 1, PRIVATE KEY in line 5\); expected one/,
    ],
    [
      "an encrypted key",
      encrypt(privateKey),
      /key: the ENCRYPTED PRIVATE KEY in line 1 is encrypted; decrypt it/,
    ],
    ["UTF-16", Buffer.from(pem, "utf16le"), /key: the text is in UTF-16; save it as UTF-8/],
    ["no END line", pem.slice(0, 60), /key: the PRIVATE KEY in line 1 has no END line/],
    [
      "a public key",
      String(publicKey.export({ type: "spki", format: "pem" })),
      /key: the PEM block is a PUBLIC KEY/,
    ],
    ["a public JWK", JSON.stringify({ ...jwk, priv: undefined }), /key: the JWK has no priv/],
    ["text", "hello", /key does not contain /],
  ])("is refused by both if it is %s, which they say", async (_, file, message) => {
    const place = { ...server.place(), url: nowhere };
    write(place, "file", "hello");
    write(place, "key", file);
    for (const line of [
      ["sign", "file", "--key-file", "key"],
      ["kms", "import", "key"],
    ]) {
      const { code, stderr } = await qsp(line, place);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
    }
  });
});

describe("every verb with a file of one public key", { timeout }, () => {
  const forms = {
    PEM: (pem: string) => pem,
    "a JWK": (pem: string) => JSON.stringify(jwkOf(pem)),
    "a JWK set of one key": (pem: string) => JSON.stringify({ keys: [{ kty: "EC" }, jwkOf(pem)] }),
  };

  it.each(Object.entries(forms))("reads %s", async (_, toForm) => {
    const place = server.place();
    const pemOf = async (name: string, algorithm: string): Promise<string> => {
      await qspDone(["keygen", name, "--algorithm", algorithm], place);
      return read(place, `${name}.pub`);
    };
    const wallet = await qspJson(["wallet", "create", "--public-key", "wallet.pub"], place);
    await qspDone(["wallet", "sign", String(wallet.walletId), "pay", "--out", "sig"], place);
    write(place, "file", toForm(read(place, "wallet.pub")));
    const line = ["wallet", "verify", "pay", "--signature", "sig", "--public-key", "file"];
    expect(await qspDone(line, place)).toContain("is valid for");

    write(place, "file", toForm(await pemOf("vendor", "ML-DSA-87")));
    write(place, "image", "image");
    await qspDone(["sign", "image", "--sha256", "--key-file", "vendor.key"], place);
    await qspDone(["device", "register", "--vendor-key", "file"], place);
    const firmware = ["device", "firmware", "image", "--signature", "image.sig", "--vendor-key", "file"];
    expect(await qspJson(firmware, place)).toMatchObject({ result: "FIRMWARE_ACCEPTED" });

    const { identityPublicKeyPem } = await server.client(VpnService).getGatewayInfo({});
    write(place, "file", toForm(identityPublicKeyPem));
    await qspDone(["tunnel", "up", "--gateway-identity", "file"], place);

    write(place, "file", toForm(await pemOf("signer", "ML-DSA-65")));
    await qspDone(["multisig", "create", "--signer", "file", "--threshold", "1"], place);
  });

  it.each([
    ["wallet", "verify", "pay", "--signature", "sig", "--public-key"],
    ["device", "register", "--vendor-key"],
    ["device", "firmware", "file", "--signature", "sig", "--vendor-key"],
    ["tunnel", "up", "--gateway-identity"],
    ["multisig", "create", "--threshold", "1", "--signer"],
  ])("names the file that it cannot read: %s %s", async (...line) => {
    const place = server.place();
    write(place, "file", "file");
    write(place, "sig", Buffer.alloc(line.includes("firmware") ? 4627 : 3309));
    const wrong: readonly [string, RegExp][] = [
      [" -----BEGIN PUBLIC KEY-----\n", /keys: line 1 is not a whole BEGIN or END line/],
      ["{}", /keys: kty of the JWK must be "AKP"/],
    ];
    for (const [content, stderr] of wrong) {
      write(place, "keys", content);
      expect(await qsp([...line, "keys"], place)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(stderr),
      });
    }
  });

  it("refuses a key of another algorithm, and several keys", async () => {
    const place = await placeWithKeys();
    await qspDone(["keygen", "small", "--algorithm", "ML-DSA-44"], place);
    const line = ["wallet", "verify", "pay", "--signature", "file.sig", "--public-key"];
    expect((await qsp([...line, "small.pub"], place)).stderr).toContain(
      "small.pub is an ML-DSA-44 key; expected an ML-DSA-65 key",
    );
    write(place, "keys", joined(place, "a.pub", "b.pub"));
    expect((await qsp([...line, "keys"], place)).stderr).toContain(
      "keys contains 2 public keys; expected one",
    );
  });
});

function toJwk(place: RunOptions, name: string) {
  return jwkOf(read(place, name));
}

/** A JWK of ML-DSA. */
function jwkOf(pem: string) {
  const alg = createPublicKey(pem).asymmetricKeyType?.toUpperCase();
  return { kty: "AKP", alg, pub: raw(createPublicKey(pem), "raw-public").toString("base64url") };
}

function kemKey(): string {
  return String(generateKeyPairSync("ml-kem-768").publicKey.export({ type: "spki", format: "pem" }));
}

function encrypt(privateKey: KeyObject): string {
  const passphrase = "secret";
  return String(privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase }));
}
