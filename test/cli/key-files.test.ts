/** Public and secret key files in all formats that `qsp` reads. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout, useServer } from "./qsp.ts";

const server = useServer();

const read = ({ cwd }: RunOptions, name: string) => readFileSync(join(cwd, name), "utf8");
const write = ({ cwd }: RunOptions, name: string, content: string | Uint8Array) =>
  writeFileSync(join(cwd, name), content);
const raw = (key: KeyObject, format: string) => key.export({ format } as never) as unknown as Buffer;
const verifyLine = (file = "keys") => ["verify", "file", "--signature", "file.sig", "--public-key", file];

describe("qsp verify --public-key", { timeout }, () => {
  it("reads both output files of kms public-keys after a rotation", async () => {
    const place = server.place();
    write(place, "file", "hello");
    const kms = server.client(KmsService);
    const { result } = await kms.createKey({ name: "rotated" });
    await qspDone(["sign", "file", "--key", "name/rotated"], place);
    await kms.rotateKey({ keyId: result?.keyId ?? "" });
    await qspDone(["kms", "public-keys", "--name", "rotated", "--pem", "pem", "--jwks", "jwks"], place);
    for (const file of ["pem", "jwks"]) expect(await qspDone(verifyLine(file), place)).toMatch(/key \d of 2/);
  });
});

describe("a secret key file", { timeout }, () => {
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
  ])("can sign and be imported as %s", async (_, file) => {
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
});

describe("every verb with a single-key public key file", { timeout }, () => {
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
});

/** An ML-DSA JWK. */
function jwkOf(pem: string) {
  const alg = createPublicKey(pem).asymmetricKeyType?.toUpperCase();
  return { kty: "AKP", alg, pub: raw(createPublicKey(pem), "raw-public").toString("base64url") };
}
