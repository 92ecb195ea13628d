/** `qsp encrypt`, `qsp decrypt`, and `qsp kms age-recipient`, `age-identity`, and `import` of age identities. */
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import {
  qsp,
  qspDone,
  type RunOptions,
  runQsp,
  startQsp,
  timeout,
  useServer,
} from "../../../test/cli/qsp.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { createAgeKey, createIdentity } from "./keys.ts";

const server = useServer();

/** A directory with files, and an identity with its recipient. */
async function placeWith(files: Readonly<Record<string, string | Uint8Array>> = {}) {
  const place = server.place();
  const { identity, recipient } = await createIdentity();
  for (const [name, content] of Object.entries({ identity, ...files }))
    writeFileSync(join(place.cwd, name), content);
  const read = (name: string) => readFileSync(join(place.cwd, name));
  const encrypt = (...options: string[]) => qspDone(["encrypt", "file", ...options], place);
  /** Decrypts to standard output. */
  const decrypt = (...options: string[]) => ["decrypt", "file.age", ...options, "--out", "-"];
  const decrypted = (...options: string[]) => qspDone(decrypt(...options), place);
  return { ...place, identity, recipient, read, encrypt, decrypt, decrypted };
}

/** Runs a command that must fail. */
async function refused(args: readonly string[], place: RunOptions) {
  const { code, stdout, stderr } = await qsp(args, place);
  return { code, stdout, message: stderr.trim() };
}

const chunkBytes = 65_536;

describe("qsp encrypt and qsp decrypt", { timeout }, () => {
  it("name their output files, and write the plaintext only for its owner", async () => {
    const keyId = await createAgeKey(server);
    const place = await placeWith({ "report.pdf": "the report" });
    const encrypted = await qspDone(["encrypt", "report.pdf", "--key", keyId], place);
    expect(encrypted).toBe("report.pdf.age: encrypted to 1 recipient\n");
    const again = await refused(["decrypt", "report.pdf.age"], place);
    expect(again).toMatchObject({ code: 2, message: expect.stringContaining("report.pdf already exists") });
    const copied = await qspDone(["decrypt", "report.pdf.age", "--key", keyId, "--out", "copy"], place);
    expect(copied).toBe("copy: decrypted\n");
    expect(place.read("copy").toString()).toBe("the report");
    expect(statSync(join(place.cwd, "copy")).mode & 0o777).toBe(0o600);
  });

  it.each([0, chunkBytes, 21 * chunkBytes + 7])("restore %i bytes, binary and armored", async (size) => {
    const file = randomBytes(size);
    const place = await placeWith({ file });
    for (const [out, ...options] of [["binary"], ["text", "--armor"]] as const) {
      await place.encrypt("--recipient", place.recipient, "--out", out, ...options);
      await qspDone(["decrypt", out, "--identity", "identity", "--out", `${out}.plain`], place);
      expect(place.read(`${out}.plain`).equals(file)).toBe(true);
    }
    expect(place.read("text").toString()).toMatch(
      /^-----BEGIN AGE ENCRYPTED FILE-----\n([\w+/=]{1,64}\n)+-----END/,
    );
  });

  it("are filters", async () => {
    const keyId = await createAgeKey(server);
    const place = server.place();
    const armored = await runQsp(["encrypt", "-", "--key", keyId, "--armor"], { ...place, stdin: "hello" });
    const decrypted = await runQsp(["decrypt", "-", "--key", keyId], { ...place, stdin: armored.stdout });
    expect(decrypted).toEqual({ code: 0, stdout: "hello", stderr: "" });
  });

  it("serve each of several recipients", async () => {
    const [first, second] = [await createAgeKey(server), await createAgeKey(server)];
    const { identity, recipient } = await createIdentity();
    const files = { mine: `# mine\n\n${identity}\n`, recipients: `# ours\n${recipient}\n` };
    const { encrypt, decrypted } = await placeWith({ file: "hello", ...files });
    await encrypt("--key", first, "--key", second, "--recipients-file", "recipients");
    for (const [option, value] of [
      ["--key", first],
      ["--key", second],
      ["--identity", "mine"],
    ] as const)
      expect(await decrypted(option, value)).toBe("hello");
  });

  it("read a header that is larger than a chunk of the file", async () => {
    const { encrypt, decrypted, cwd, recipient, read } = await placeWith({ file: "hello" });
    writeFileSync(join(cwd, "recipients"), `${recipient}\n`.repeat(700));
    await encrypt("--recipients-file", "recipients");
    expect(read("file.age").length).toBeGreaterThan(1024 * 1024);
    expect(await decrypted("--identity", "identity")).toBe("hello");
  });

  it("find an older version of a rotated name, and the caller's key if none is named", async () => {
    await createAgeKey(server, "rotating");
    const { encrypt, decrypted } = await placeWith({ file: "hello" });
    await encrypt("--key", "name/rotating");
    await server.client(KmsService).rotateKey({ keyId: "name/rotating" });
    for (const options of [["--key", "name/rotating"], ["--key", "name/rotating/1"], []])
      expect(await decrypted(...options)).toBe("hello");
  });

  it("release nothing of a changed file to a file, and only authentic chunks to standard output", async () => {
    const file = Buffer.alloc(3 * chunkBytes, "a");
    const place = await placeWith({ file });
    await place.encrypt("--recipient", place.recipient);
    const whole = place.read("file.age");
    const changed = flipBit(whole, whole.length - 100);
    const truncated = whole.subarray(0, -(chunkBytes + 16));
    for (const content of [changed, truncated]) {
      writeFileSync(join(place.cwd, "file.age"), content);
      const toFile = await refused(["decrypt", "file.age", "--identity", "identity", "--out", "out"], place);
      const message = expect.stringMatching(/changed or truncated: chunk \d/);
      expect(toFile).toEqual({ code: 1, stdout: "", message });
      expect(existsSync(join(place.cwd, "out"))).toBe(false);
      const { code, stdout } = await refused(place.decrypt("--identity", "identity"), place);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^a*$/);
      expect(stdout.length % chunkBytes).toBe(0);
      expect(stdout.length).toBeLessThan(file.length);
    }
    expect(readdirSync(place.cwd).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("leave no file behind after %s", async (signal) => {
    const { recipient } = await createIdentity();
    const place = server.place();
    const args = ["encrypt", "-", "--recipient", recipient, "--out", "out"];
    const { child, end } = startQsp(args, { ...place, stdin: null });
    child.stdin?.write("hello");
    const draft = expect.stringMatching(/^\.qsp-.*\.draft$/);
    await expect.poll(() => readdirSync(place.cwd)).toContainEqual(draft);
    child.kill(signal);
    expect((await end).code).toBe(130);
    expect(readdirSync(place.cwd)).toEqual([]);
  });

  it("keep an existing output file if encryption fails", async () => {
    const place = await placeWith({ "file.age": "before" });
    expect((await refused(["encrypt", "file", "--recipient", place.recipient], place)).code).toBe(2);
    expect(place.read("file.age").toString()).toBe("before");
  });

  it("refuse a file for other keys, and keys that are not for age", async () => {
    const keyId = await createAgeKey(server);
    const { result } = await server.client(KmsService).createKey({ algorithm: "X-Wing", usage: "ENCRYPT" });
    const place = await placeWith({ file: "hello" });
    await place.encrypt("--recipient", place.recipient);
    expect(await refused(place.decrypt("--key", keyId), place)).toEqual({
      code: 1,
      stdout: "",
      message: `qsp: the file was not encrypted to ${keyId}`,
    });
    const message = expect.stringContaining("age needs an X-Wing key with usage KEM");
    const encrypting = refused(["encrypt", "file", "--key", result?.keyId ?? ""], place);
    expect(await encrypting).toMatchObject({ code: 2, message });
  });
});

describe("qsp encrypt", { timeout }, () => {
  const classic = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
  it.each([
    ["", /use --key, --recipient or --recipients-file/],
    ["--recipient AGE-SECRET-KEY-PQ-1SECRET", /^qsp: --recipient is an identity; name a recipient age1pq…$/],
    ["--recipient age1pq1qqqq", /damaged recipient/],
    [`--recipient ${classic}`, /not post-quantum/],
    ["--recipient ssh-ed25519", /"ssh-ed25519"; name a recipient age1pq…/],
    ["--recipients-file empty", /empty contains no recipient/],
  ])("refuses the recipients %j", async (options, message) => {
    const place = await placeWith({ file: "hello", empty: "# none\n" });
    const failed = await refused(["encrypt", "file", ...options.split(" ").filter(Boolean)], place);
    expect(failed).toEqual({ code: 2, stdout: "", message: expect.stringMatching(message) });
    expect(existsSync(join(place.cwd, "file.age"))).toBe(false);
  });
});

describe("qsp decrypt", { timeout }, () => {
  const version = "age-encryption.org/v1\n";
  const classic = "-> X25519 a\n\n---";
  // vectors.test.ts has the other malformed files.
  it.each([
    [`${version}${classic} ${"A".repeat(43)}\n`, /no post-quantum recipient .* only X25519/],
    ["", /not an age file/],
    [`${version}-> ${"a".repeat(3_000_000)}`, /a line is longer than/],
    [`${version}${"-> a\n\n".repeat(1025)}`, /more than 1024 stanzas/],
  ])("refuses a malformed file %#", async (content, message) => {
    const place = await placeWith({ "file.age": content });
    const failed = await refused(place.decrypt(), place);
    expect(failed).toEqual({ code: 2, stdout: "", message: expect.stringMatching(message) });
  });

  it.each([
    ["AGE-SECRET-KEY-1QQQQ", /only X25519 identities/],
    ["AGE-SECRET-KEY-PQ-1SECRET", /^qsp: identity contains a malformed identity$/],
    [version, /identity is encrypted; decrypt it first/],
    ["# nothing\n", /contains no identity/],
    ["AGE-PLUGIN-YUBIKEY-1QQQQ", /contains no identity/],
  ])("refuses the identity file %j", async (identity, message) => {
    const place = await placeWith({ file: "hello", identity });
    await place.encrypt("--recipient", place.recipient);
    const failed = await refused(place.decrypt("--identity", "identity"), place);
    expect(failed).toEqual({ code: 2, stdout: "", message: expect.stringMatching(message) });
  });

  it("needs --out for a file without the ending .age", async () => {
    const place = await placeWith({ file: "hello" });
    expect((await refused(["decrypt", "file"], place)).message).toMatch(/--out is missing/);
    const both = await refused(["decrypt", "file", "--out", "a", "--key", "k", "--identity", "file"], place);
    expect(both.message).toMatch(/only one of --key and --identity/);
  });
});

describe("qsp kms age-recipient", { timeout }, () => {
  it.each([
    { algorithm: "X-Wing", usage: "ENCRYPT" },
    { algorithm: "ML-KEM-768", usage: "KEM" },
    { algorithm: "ML-DSA-65", usage: "SIGN" },
  ])("refuses a key $algorithm with usage $usage", async (fields) => {
    const { result } = await server.client(KmsService).createKey(fields);
    const advice = "age needs an X-Wing key with usage KEM: qsp kms create --algorithm X-Wing";
    const message = expect.stringContaining(advice);
    for (const verb of ["age-recipient", "age-identity"])
      expect(await refused(["kms", verb, result?.keyId ?? ""], server.place())).toMatchObject({
        code: 2,
        message,
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
  it("writes an identity without a key", async () => {
    const printed = await qspDone(["kms", "age-identity"], server.place());
    // As age --decrypt -j qsp writes it.
    expect(printed).toBe(
      "# all X-Wing keys with usage KEM at the server that QSP_URL names\nAGE-PLUGIN-QSP-1YECVGM\n",
    );
  });
});

describe("qsp kms import", { timeout }, () => {
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
