/** `qsp kms age-recipient`, `age-identity`, and `import` of age identities. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "../../../test/cli/qsp.ts";
import { decodePluginIdentity, decodeRecipient } from "../bech32.ts";
import { createAgeKey, createIdentity } from "./keys.ts";

const server = useServer();

describe("qsp kms age-recipient", { timeout }, () => {
  it("prints the key's public key as a recipient", async () => {
    const keyId = await createAgeKey(server, "archive");
    const { result } = await server.client(KmsService).getKey({ keyId });
    const printed = await qspDone(["kms", "age-recipient", "name/archive"], server.place());
    expect(decodeRecipient(printed.trim())).toEqual(Uint8Array.from(result?.publicKey ?? []));
    const answer = { recipient: printed.trim(), keyId };
    expect(await qspJson(["kms", "age-recipient", keyId], server.place())).toEqual(answer);
  });

  it.each([
    { algorithm: "X-Wing", usage: "ENCRYPT" },
    { algorithm: "ML-KEM-768", usage: "KEM" },
    { algorithm: "ML-DSA-65", usage: "SIGN" },
  ])("refuses a key $algorithm with usage $usage", async (fields) => {
    const { result } = await server.client(KmsService).createKey(fields);
    const advice = "age needs an X-Wing key with usage KEM: qsp kms create --algorithm X-Wing";
    const stderr = expect.stringContaining(advice);
    for (const verb of ["age-recipient", "age-identity"])
      expect(await qsp(["kms", verb, result?.keyId ?? ""], server.place())).toMatchObject({
        code: 2,
        stderr,
      });
  });

  it("refuses a key that no longer encrypts", async () => {
    await createAgeKey(server, "rotated");
    await server.client(KmsService).rotateKey({ keyId: "name/rotated" });
    const { stderr } = await qsp(["kms", "age-recipient", "name/rotated/1"], server.place());
    expect(stderr).toContain("name/rotated/1 is ROTATED; only an ACTIVE key encrypts");
    const identity = await qspDone(["kms", "age-identity", "name/rotated/1"], server.place());
    expect(identity).toContain("AGE-PLUGIN-QSP-1");
  });
});

describe("qsp kms age-identity", { timeout }, () => {
  it("writes the key's name, and its recipient as a comment", async () => {
    await createAgeKey(server, "backup");
    const place = server.place();
    const recipient = (await qspDone(["kms", "age-recipient", "name/backup"], place)).trim();
    await qspDone(["kms", "age-identity", "name/backup", "--out", "identity"], place);
    const [name, comment, line = ""] = readFileSync(join(place.cwd, "identity"), "utf8").split("\n");
    expect(name).toBe("# name/backup at the server that QSP_URL names");
    expect(comment).toBe(`# recipient: ${recipient}`);
    expect(decodePluginIdentity(line)).toBe("name/backup");
  });

  it("writes an identity without a key", async () => {
    const printed = await qspDone(["kms", "age-identity"], server.place());
    // As age --decrypt -j qsp writes it.
    expect(printed).toBe(
      "# all X-Wing keys with usage KEM at the server that QSP_URL names\nAGE-PLUGIN-QSP-1YECVGM\n",
    );
  });
});

describe("qsp kms import", { timeout }, () => {
  it("imports an age identity as an X-Wing key with usage KEM", async () => {
    const { identity, recipient } = await createIdentity();
    const place = server.place();
    writeFileSync(join(place.cwd, "key.txt"), `# created: today\n# public key: ${recipient}\n${identity}\n`);
    const { result } = await qspJson(["kms", "import", "key.txt", "--name", "imported"], place);
    expect(result).toMatchObject({ algorithm: "X-Wing", usage: "KEM", origin: "IMPORTED" });
    expect(await qspDone(["kms", "age-recipient", "name/imported"], place)).toBe(`${recipient}\n`);
  });

  it("still imports other keys", async () => {
    const place = server.place();
    await qspDone(["keygen", "signer"], place);
    const { result } = await qspJson(["kms", "import", "signer.key"], place);
    expect(result).toMatchObject({ algorithm: "ML-DSA-65", usage: "SIGN" });
  });

  it("requires one post-quantum identity, and quotes no secret", async () => {
    const [{ identity }, other] = [await createIdentity(), await createIdentity()];
    const damaged = identity.replace(/.$/, (last) => (last === "Q" ? "P" : "Q"));
    const place = server.place();
    for (const [content, message] of [
      [`${identity}\n${other.identity}\n`, "2 identities AGE-SECRET-KEY-PQ-1…; expected one"],
      [damaged, "a malformed identity"],
      [identity, "an X-Wing key, not ML-KEM-768; leave out --algorithm"],
    ] as const) {
      writeFileSync(join(place.cwd, "key.txt"), content);
      const { code, stderr } = await qsp(["kms", "import", "key.txt", "--algorithm", "ML-KEM-768"], place);
      expect({ code, stderr }).toEqual({ code: 2, stderr: `qsp: key.txt contains ${message}\n` });
    }
  });
});
