/** `qsp kms import`: keys from files arrive on the server and are exposed nowhere else. */
import { type AsymmetricKeyType, generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { qsp, qspDone, qspJson, runQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

type Pair = { readonly privateKey: KeyObject; readonly publicKey: KeyObject };

function makePair(type: string): Pair {
  return generateKeyPairSync(type as "ed25519" & AsymmetricKeyType);
}

const der = ({ privateKey }: Pair) => privateKey.export({ format: "der", type: "pkcs8" });
const pem = ({ privateKey }: Pair) => privateKey.export({ format: "pem", type: "pkcs8" });
const seed = ({ privateKey }: Pair) => privateKey.export({ format: "raw-seed" } as never) as Buffer;
const raw = ({ privateKey }: Pair) => privateKey.export({ format: "raw-private" } as never) as Buffer;

describe("qsp kms import", { timeout }, () => {
  it.each([
    ["ML-DSA-44", "ml-dsa-44", "PKCS#8 in DER", der, []],
    ["ML-DSA-87", "ml-dsa-87", "PKCS#8 in PEM", pem, []],
    ["ML-KEM-768", "ml-kem-768", "PKCS#8 in PEM", pem, []],
    ["ML-DSA-65", "ml-dsa-65", "a raw seed", seed, ["--algorithm", "ML-DSA-65"]],
    ["SLH-DSA-SHA2-128f", "slh-dsa-sha2-128f", "a raw key", raw, ["--algorithm", "SLH-DSA-SHA2-128f"]],
  ])(
    "imports an %s key (%s) from a third-party tool as %s",
    async (algorithm, type, _form, write, options) => {
      const place = server.place();
      const pair = makePair(type);
      writeFileSync(join(place.cwd, "key"), write(pair));
      const { result } = await qspJson(["kms", "import", "key", ...options], place);
      const publicKey = pair.publicKey.export({ format: "raw-public" } as never) as Buffer;
      expect(result).toMatchObject({
        algorithm,
        origin: "IMPORTED",
        publicKey: publicKey.toString("base64"),
      });
    },
  );

  it.each(["ML-DSA-65", "X-Wing", "SLH-DSA-SHAKE-128f"])(
    "imports an %s key from qsp keygen",
    async (algorithm) => {
      const place = server.place();
      await qspDone(["keygen", "mine", "--algorithm", algorithm], place);
      const name = `imported/${algorithm}`;
      const line = ["kms", "import", "mine.key", "--name", name, "--alias", "mine", "--label", "a=b"];
      const shown = await qspDone([...line, "--rotate-every", "30d"], place);
      for (const fact of [/^alias +mine$/m, /^labels +a=b$/m, /^origin +IMPORTED$/m, /^rotated every +30d$/m])
        expect(shown).toMatch(fact);
      await qspDone(["kms", "get", `name/${name}`, "--public-key", "there.pub"], place);
      const [here, there] = ["mine.pub", "there.pub"].map((file) =>
        readFileSync(join(place.cwd, file), "utf8"),
      );
      expect(there).toBe(here);
    },
  );

  it("reads standard input", async () => {
    const stdin = pem(makePair("ml-dsa-44"));
    const { code, stdout } = await runQsp(["kms", "import", "-"], { ...server.place(), stdin });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^origin +IMPORTED$/m) });
  });

  it("prints no byte of the key, and refuses a name that exists", async () => {
    const place = server.place();
    const pair = makePair("ml-dsa-44");
    writeFileSync(join(place.cwd, "key"), der(pair));
    const runs = [await qsp(["kms", "import", "key", "--name", "secret", "--json"], place)];
    runs.push(await qsp(["kms", "import", "key", "--name", "secret", "--json"], place));
    expect(runs.map(({ code }) => code)).toEqual([0, 3]);
    const secret = seed(pair);
    for (const { stdout, stderr } of runs)
      for (const encoding of ["base64", "hex"] as const)
        expect(stdout + stderr).not.toContain(secret.toString(encoding).slice(0, 32));
    const { auditLog } = await server.client(KmsService).getAuditLog({ keyId: "name/secret" });
    expect(auditLog.map(({ operation }) => operation)).toEqual(["IMPORT"]);
  });
});
