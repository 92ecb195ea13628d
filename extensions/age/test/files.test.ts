/** `qsp encrypt` and `qsp decrypt`. */
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
import { createAgeKey, createIdentity } from "./keys.ts";

const server = useServer();

function placeWith(files: Readonly<Record<string, string | Uint8Array>>) {
  const place = server.place();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(place.cwd, name), content);
  return { ...place, read: (name: string) => readFileSync(join(place.cwd, name)) };
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
    const place = placeWith({ "report.pdf": "the report" });
    expect(await qspDone(["encrypt", "report.pdf", "--key", keyId], place)).toBe(
      "report.pdf.age: encrypted to 1 recipient\n",
    );
    const again = await refused(["decrypt", "report.pdf.age"], place);
    expect(again).toMatchObject({ code: 2, message: expect.stringContaining("report.pdf already exists") });
    expect(await qspDone(["decrypt", "report.pdf.age", "--key", keyId, "--out", "copy"], place)).toBe(
      "copy: decrypted\n",
    );
    expect(place.read("copy").toString()).toBe("the report");
    expect(statSync(join(place.cwd, "copy")).mode & 0o777).toBe(0o600);
  });

  it.each([0, chunkBytes, 21 * chunkBytes + 7])("restore %i bytes, binary and armored", async (size) => {
    const { identity, recipient } = await createIdentity();
    const plaintext = randomBytes(size);
    const place = placeWith({ plaintext, identity });
    for (const [out, ...options] of [["binary"], ["text", "--armor"]] as const) {
      await qspDone(["encrypt", "plaintext", "--recipient", recipient, "--out", out, ...options], place);
      await qspDone(["decrypt", out, "--identity", "identity", "--out", `${out}.plain`], place);
      expect(place.read(`${out}.plain`).equals(plaintext)).toBe(true);
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
    const own = await createIdentity();
    const place = placeWith({
      file: "hello",
      mine: `# mine\n\n${own.identity}\n`,
      recipients: `# ours\n${own.recipient}\n`,
    });
    await qspDone(
      ["encrypt", "file", "--key", first, "--key", second, "--recipients-file", "recipients"],
      place,
    );
    for (const options of [
      ["--key", first],
      ["--key", second],
      ["--identity", "mine"],
    ])
      expect(await qspDone(["decrypt", "file.age", ...options, "--out", "-"], place)).toBe("hello");
  });

  it("read a header that is larger than a chunk of the file", async () => {
    const { identity, recipient } = await createIdentity();
    const place = placeWith({ file: "hello", identity, recipients: `${recipient}\n`.repeat(700) });
    await qspDone(["encrypt", "file", "--recipients-file", "recipients"], place);
    expect(place.read("file.age").length).toBeGreaterThan(1024 * 1024);
    expect(await qspDone(["decrypt", "file.age", "--identity", "identity", "--out", "-"], place)).toBe(
      "hello",
    );
  });

  it("find an older version of a rotated name, and the caller's key if none is named", async () => {
    await createAgeKey(server, "rotating");
    const place = placeWith({ file: "hello" });
    await qspDone(["encrypt", "file", "--key", "name/rotating"], place);
    await server.client(KmsService).rotateKey({ keyId: "name/rotating" });
    for (const options of [["--key", "name/rotating"], ["--key", "name/rotating/1"], []])
      expect(await qspDone(["decrypt", "file.age", ...options, "--out", "-"], place)).toBe("hello");
  });

  it("release nothing of a changed file to a file, and only authentic chunks to standard output", async () => {
    const { identity, recipient } = await createIdentity();
    const plaintext = Buffer.alloc(3 * chunkBytes, "a");
    const place = placeWith({ plaintext, identity });
    await qspDone(["encrypt", "plaintext", "--recipient", recipient, "--out", "file.age"], place);
    const whole = place.read("file.age");
    const changed = Buffer.from(whole);
    changed[changed.length - 100] = (changed.at(-100) ?? 0) ^ 1;
    const truncated = whole.subarray(0, -(chunkBytes + 16));
    for (const content of [changed, truncated]) {
      writeFileSync(join(place.cwd, "file.age"), content);
      const toFile = await refused(["decrypt", "file.age", "--identity", "identity", "--out", "out"], place);
      expect(toFile).toEqual({
        code: 1,
        stdout: "",
        message: expect.stringMatching(/changed or truncated: chunk \d/),
      });
      expect(existsSync(join(place.cwd, "out"))).toBe(false);
      const toOutput = await refused(["decrypt", "file.age", "--identity", "identity", "--out", "-"], place);
      expect(toOutput.code).toBe(1);
      expect(toOutput.stdout).toMatch(/^a*$/);
      expect(toOutput.stdout.length % chunkBytes).toBe(0);
      expect(toOutput.stdout.length).toBeLessThan(plaintext.length);
    }
    expect(readdirSync(place.cwd).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("leave no file behind after %s", async (signal) => {
    const { recipient } = await createIdentity();
    const place = server.place();
    const { child, end } = startQsp(["encrypt", "-", "--recipient", recipient, "--out", "out"], {
      ...place,
      stdin: null,
    });
    child.stdin?.write("hello");
    await expect
      .poll(() => readdirSync(place.cwd))
      .toContainEqual(expect.stringMatching(/^\.qsp-.*\.draft$/));
    child.kill(signal);
    expect((await end).code).toBe(130);
    expect(readdirSync(place.cwd)).toEqual([]);
  });

  it("keep an existing output file if encryption fails", async () => {
    const place = placeWith({ "file.age": "before" });
    const { recipient } = await createIdentity();
    expect(await refused(["encrypt", "file", "--recipient", recipient], place)).toMatchObject({ code: 2 });
    expect(place.read("file.age").toString()).toBe("before");
  });

  it("refuse a file for other keys, and keys that are not for age", async () => {
    const { recipient } = await createIdentity();
    const keyId = await createAgeKey(server);
    const { result } = await server.client(KmsService).createKey({ algorithm: "X-Wing", usage: "ENCRYPT" });
    const place = placeWith({ file: "hello" });
    await qspDone(["encrypt", "file", "--recipient", recipient], place);
    expect(await refused(["decrypt", "file.age", "--key", keyId, "--out", "-"], place)).toEqual({
      code: 1,
      stdout: "",
      message: `qsp: the file was not encrypted to ${keyId}`,
    });
    expect(await refused(["encrypt", "file", "--key", result?.keyId ?? ""], place)).toMatchObject({
      code: 2,
      message: expect.stringContaining("age needs an X-Wing key with usage KEM"),
    });
  });
});

describe("qsp encrypt", { timeout }, () => {
  it.each([
    [[], /use --key, --recipient or --recipients-file/],
    [
      ["--recipient", "AGE-SECRET-KEY-PQ-1SECRET"],
      /^qsp: --recipient is an identity; name a recipient age1pq…$/,
    ],
    [["--recipient", "age1pq1qqqq"], /damaged recipient/],
    [["--recipient", "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"], /not post-quantum/],
    [["--recipient", "ssh-ed25519 AAAA"], /"ssh-ed25519 AAAA"; name a recipient age1pq…/],
    [["--recipients-file", "empty"], /empty contains no recipient/],
  ])("refuses the recipients %j", async (options, message) => {
    const place = placeWith({ file: "hello", empty: "# none\n" });
    const failed = await refused(["encrypt", "file", ...options], place);
    expect(failed).toEqual({ code: 2, stdout: "", message: expect.stringMatching(message) });
    expect(existsSync(join(place.cwd, "file.age"))).toBe(false);
  });
});

describe("qsp decrypt", { timeout }, () => {
  it.each([
    ["age-encryption.org/v1\n-> X25519 a\n\n--- bWFj\n", /header is malformed/],
    [
      `age-encryption.org/v1\n-> X25519 a\n\n--- ${"A".repeat(43)}\n`,
      /no post-quantum recipient .* only X25519/,
    ],
    [`age-encryption.org/v1\r\n`, /not an age file/],
    ["age-encryption.org/v2\n", /has version "age-encryption.org\/v2" of the age format/],
    ["hello", /not an age file/],
    ["", /not an age file/],
    [`age-encryption.org/v1\n-> ${"a".repeat(3_000_000)}`, /a line is longer than/],
    [`age-encryption.org/v1\n${"-> a\n\n".repeat(1025)}`, /more than 1024 stanzas/],
  ])("refuses a malformed file %#", async (file, message) => {
    const place = placeWith({ file });
    expect(await refused(["decrypt", "file", "--out", "-"], place)).toEqual({
      code: 2,
      stdout: "",
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ["AGE-SECRET-KEY-1QQQQ", /only X25519 identities/],
    ["AGE-SECRET-KEY-PQ-1SECRET", /^qsp: identity contains a malformed identity$/],
    ["age-encryption.org/v1\n", /identity is encrypted; decrypt it first/],
    ["# nothing\n", /contains no identity/],
    ["AGE-PLUGIN-YUBIKEY-1QQQQ", /contains no identity/],
  ])("refuses the identity file %j", async (identity, message) => {
    const { recipient } = await createIdentity();
    const place = placeWith({ file: "hello", identity });
    await qspDone(["encrypt", "file", "--recipient", recipient], place);
    const failed = await refused(["decrypt", "file.age", "--identity", "identity", "--out", "-"], place);
    expect(failed).toEqual({ code: 2, stdout: "", message: expect.stringMatching(message) });
  });

  it("needs --out for a file without the ending .age", async () => {
    const place = placeWith({ file: "hello" });
    expect((await refused(["decrypt", "file"], place)).message).toMatch(/--out is missing/);
    const both = await refused(["decrypt", "file", "--out", "a", "--key", "k", "--identity", "file"], place);
    expect(both.message).toMatch(/only one of --key and --identity/);
  });
});
