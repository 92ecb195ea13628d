/** What verbs do to files: no output overwrites an input or another output, and files are complete or unchanged. */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, globSync, linkSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { readVerbLine } from "../../src/cli/command-line/options.ts";
import { keepLogin } from "../../src/cli/connection/logins.ts";
import { openFiles } from "../../src/cli/files/open.ts";
import { readState, writeState } from "../../src/cli/files/state.ts";
import { openFile, writeTo } from "../../src/cli/files/write.ts";
import { loadAllVerbs } from "../../src/cli/groups.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { createOutput } from "../../src/cli/output/output.ts";
import type { VerbInput } from "../../src/cli/verb.ts";
import { deviceReadingVerbs } from "../../src/cli/verbs/device/readings.ts";
import { deviceKind, withDevice } from "../../src/cli/verbs/device/state.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { verbTable } from "../support/whole-program.ts";
import { inShell, qspDone, type RunOptions, timeout } from "./qsp.ts";

const isRoot = process.geteuid?.() === 0;

function makeDeviceKey(): Promise<string> {
  return withProvider(async (provider) => (await provider.generateKeyPair("ML-DSA-44")).secretKey.toPem());
}

/** The contents of a directory of files. */
function contentsOf({ cwd }: RunOptions): Record<string, string> {
  const names = readdirSync(cwd);
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(cwd, name), "base64")]));
}

/** A directory with a document, a key pair, and a second name of the secret key. */
async function makePlace() {
  const place = { cwd: makeTemporaryDirectory(), url: "http://127.0.0.1:1" };
  writeFileSync(join(place.cwd, "f"), "a document");
  await qspDone(["keygen", "k"], place);
  linkSync(join(place.cwd, "k.key"), join(place.cwd, "hard"));
  return place;
}

describe("no output overwrites an input, another output or a secret key:", { timeout }, () => {
  const jwk = { kty: "AKP", alg: "ML-DSA-65", pub: "AA", priv: "AA" };
  const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  /** Contents that no output may overwrite. */
  const secrets: Readonly<Record<string, string | Uint8Array>> = {
    "a key pair's PEM": p256.export({ type: "pkcs8", format: "pem" }),
    "PKCS#8 in DER": p256.export({ type: "pkcs8", format: "der" }),
    "a JWK": JSON.stringify(jwk),
    "a JWK set": JSON.stringify({ keys: [jwk] }, undefined, 2),
    "a device": JSON.stringify({ secretKeyPem: "-----BEGIN PRIVATE KEY-----\nAA" }),
    "a master key": `${"0f".repeat(32)}\n`,
    "an age identity": "# created: today\nAGE-SECRET-KEY-PQ-1QQQQ\n",
  };
  const allOutputs = loadAllVerbs(verbTable).then((verbs) =>
    verbs.flatMap((verb) =>
      Object.entries({ ...verb.options })
        .filter(([, { file }]) => file === "writes")
        .map(([option]) => ({ verb, option })),
    ),
  );

  it.each(Object.entries(secrets))("%s remains, whichever verb would overwrite it", async (_, content) => {
    const path = join(makeTemporaryDirectory(), "secret");
    writeFileSync(path, content);
    const outputs = await allOutputs;
    expect(outputs.length).toBeGreaterThan(5);
    for (const { verb, option } of outputs) {
      const operands = verb.operands.map(() => "x");
      const line = readVerbLine(verb, [...operands, `--${option}`, path]);
      expect(() => openFiles(verb, line), `${verb.name} --${option}`).toThrow(
        `${path} contains a secret key, which this would erase; name another file for --${option}`,
      );
    }
    expect(readFileSync(path)).toEqual(Buffer.from(content));
  });
});

describe("an output of any size", () => {
  const verb = {
    name: "copy",
    operands: [],
    options: { out: { value: "FILE", meaning: "", file: "creates" } },
    isLocal: true,
  } as const;

  async function* chunks(folder: string, seen: string[], fails: boolean) {
    for (const chunk of ["one ", "two"]) {
      yield Buffer.from(chunk);
      seen.push(...readdirSync(folder).map((name) => `${name}: ${statSync(join(folder, name)).size}`));
    }
    if (fails) throw new Error("no more");
  }

  it.each([
    ["appears under its name when all chunks are written, and not before", false],
    ["leaves nothing if a chunk fails", true],
  ])("%s", async (_what, fails) => {
    const folder = makeTemporaryDirectory();
    const path = join(folder, "out");
    const seen: string[] = [];
    const files = openFiles(verb, readVerbLine(verb, ["--out", path]));
    const error = await files.writeChunks("out", chunks(folder, seen, fails)).then(() => undefined, String);
    const draft = expect.stringMatching(/^\.qsp-\w+\.draft: [47]$/);
    expect(seen).toEqual([draft, "out: 0", draft, "out: 0"]);
    expect([error, readdirSync(folder)]).toEqual(fails ? ["Error: no more", []] : [undefined, ["out"]]);
    expect(fails || readFileSync(path, "utf8") === "one two").toBe(true);
  });
});

it.each([1, 2])("device stream fails if the server ends it after %i of 3 readings", async (answers) => {
  const folder = makeTemporaryDirectory();
  const [path, readings] = [join(folder, "device.json"), join(folder, "readings")];
  writeFileSync(readings, "1\n2\n3\n");
  const secretKeyPem = await makeDeviceKey();
  writeState(path, { url: "http://a.test", deviceId: "d", secretKeyPem, nextSequence: 1 });
  async function* stream(_: unknown, requests: AsyncIterable<unknown>) {
    let left = answers;
    for await (const _request of requests) {
      yield { verified: true, reason: "" };
      left -= 1;
      if (left === 0) return;
    }
  }
  const verb = deviceReadingVerbs.find(({ name }) => name === "device stream");
  const input = {
    operands: [readings],
    output: createOutput(false, () => {}),
    files: { need: () => path },
    server: { url: "http://a.test", stream },
  } as unknown as VerbInput;
  await expect(verb?.run(input)).rejects.toThrow("ended the stream before it answered all readings");
});

it("two verbs that use a device's file at once keep each other's changes", async () => {
  const path = join(makeTemporaryDirectory(), "device.json");
  const url = "http://a.test";
  const secretKeyPem = await makeDeviceKey();
  writeState(path, { url, deviceId: "d", secretKeyPem, nextSequence: 1 });
  const input = { files: { need: () => path }, server: { url } } as unknown as VerbInput;
  await withDevice(input, async (one) => {
    expect(one.takeSequences(10)).toBe(1);
    await withDevice(input, async (other) => {
      expect(other.takeSequences(1)).toBe(11);
      other.keep({ token: "t", tokenExpiresAt: "2030-01-01T00:00:00Z" });
    });
    expect(one.takeSequences(10)).toBe(12);
    expect(one.state).toEqual(readState(path, url, deviceKind));
  });
  expect(readState(path, url, deviceKind)).toMatchObject({ token: "t", nextSequence: 22 });
});

describe("every verb declares its files:", () => {
  it("each file option and operand states what happens to the file", async () => {
    const verbs = (await loadAllVerbs(verbTable)).map((verb) => ({ ...verb, settings: undefined }));
    // A socket is not a file.
    const silent = verbs.flatMap(({ name, options, operands, operandFiles = {} }) => [
      ...Object.entries(options)
        .filter(
          ([option, { value, file, offers }]) =>
            (value === "FILE" || offers === "files") && file === undefined && option !== "socket",
        )
        .map(([option]) => `${name} --${option}`),
      ...operands
        .map((operand) => operand.replaceAll(/[[\]…]/g, ""))
        .filter((operand) => /FILE|IMAGE|DATA|JSON|TRANSACTION|READING/.test(operand))
        .filter((operand) => operandFiles[operand] === undefined)
        .map((operand) => `${name} ${operand}`),
    ]);
    expect(silent).toEqual([]);
  });

  it("no verb writes files directly", () => {
    const root = join(import.meta.dirname, "../..");
    const writers = globSync(["src/cli/**/*.ts", "extensions/*/*.ts"], { cwd: root }).filter((path) =>
      /\/write\.ts"|\b(writeFileSync|createWriteStream|appendFile|copyFileSync|renameSync|openSync)\b/.test(
        readFileSync(join(root, path), "utf8"),
      ),
    );
    expect(writers.map((path) => path.replaceAll("\\", "/")).sort()).toEqual([
      // Stored logins, and the state of devices and tunnels.
      "src/cli/connection/logins.ts",
      "src/cli/files/open.ts",
      "src/cli/files/state.ts",
      "src/cli/files/uses.ts",
      "src/cli/files/write.ts",
      // A new file that SQLite fills, the CA directory, and copies of a backup and of a damaged store.
      "src/cli/operator/backup.ts",
      "src/cli/operator/ca-files.ts",
      "src/cli/operator/restore.ts",
      "src/cli/operator/store-cut-log.ts",
    ]);
  });
});

describe.runIf(process.platform === "linux")("no output overwrites a redirected file:", { timeout }, () => {
  /** A shell command line, and the option that its error must name. */
  const mistakes: Readonly<Record<string, readonly [string, string]>> = {
    "the document": ["qsp sign - --key-file k.key --out f <f", "FILE"],
    "the document as a device": ["qsp sign /dev/stdin --key-file k.key --out f <f", "FILE"],
    "the document as a descriptor": ["qsp sign /dev/fd/5 --key-file k.key --out f 5<f", "FILE"],
    "the document as a file of the process": ["qsp sign /proc/self/fd/0 --key-file k.key --out f <f", "FILE"],
    "the document through a descriptor": ["qsp sign f --key-file k.key --out /dev/fd/5 5<>f", "FILE"],
    "the secret key": ["qsp sign f --key-file - --out k.key <k.key", "--key-file"],
    "the secret key by a hard link": ["qsp sign f --key-file - --out hard <k.key", "--key-file"],
    "the secret key as a device": ["qsp sign f --key-file /dev/stdin --out k.key <k.key", "--key-file"],
    "the appended document": ["qsp sign f --key-file k.key --out - >>f", "redirect standard output"],
    "the document as input and output": ["qsp sign - --key-file k.key --out - <f >>f", "FILE"],
    "the transaction": ["qsp wallet sign W - --out f <f", "TRANSACTION"],
  };

  it.each(Object.entries(mistakes))("%s remains, and the error names its option", async (_, given) => {
    const [script, name] = given;
    const place = await makePlace();
    const before = contentsOf(place);
    const { code, stderr } = await inShell(script, place);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^qsp: [^\n]+; [^\n]+\n$/)]);
    expect(stderr).toContain(name);
    expect(contentsOf(place)).toMatchObject(before);
  });

  it("other files may be redirected", async () => {
    const place = await makePlace();
    const sign = "qsp sign - --key-file k.key --out - <f >>new";
    const verify = "qsp verify f --signature new --public-key /dev/stdin <k.pub";
    expect((await inShell(`${sign} && ${verify}`, place)).code).toBe(0);
  });
});

describe.runIf(process.platform === "linux")("an output that cannot be written", { timeout }, () => {
  it("leaves the existing file, and nothing else", async () => {
    const place = await makePlace();
    await qspDone(["sign", "f", "--key-file", "k.key"], place);
    const before = contentsOf(place);
    const { code, stderr } = await inShell("ulimit -f 2; qsp sign f --key-file k.key", place);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^qsp: f\.sig [^\n]+size[^\n]+\n$/)]);
    expect(contentsOf(place)).toEqual(before);
  });

  it("is refused if nobody can create its directory", () => {
    vi.stubEnv("XDG_STATE_HOME", "/proc/x");
    onTestFinished(() => void vi.unstubAllEnvs());
    const login = { token: "t", username: "ada", expiresAt: "2030-01-01T00:00:00Z" };
    // Node's recursive mkdir never returns here.
    expect(() => keepLogin("http://127.0.0.1:1", login)).toThrow(
      "the directory /proc/x/qsp cannot be created: its file system allows no new directories",
    );
  });
});

describe.runIf(process.platform === "linux")("an output", { timeout }, () => {
  it("goes only to standard output for -, /dev/stdout or a pipe", async () => {
    const place = await makePlace();
    for (const out of ["-", "/dev/stdout", "/dev/fd/1"])
      expect(await inShell(`qsp sign f --key-file k.key --out ${out} | wc -c`, place)).toMatchObject({
        stdout: expect.stringMatching(/^\s*3309\n$/),
        stderr: "standard output: 3,309 bytes of ML-DSA-65\n",
      });
    execFileSync("mkfifo", [join(place.cwd, "pipe")]);
    const piped = "cat pipe | wc -c & qsp sign f --key-file k.key --out pipe; wait";
    expect((await inShell(piped, place)).stdout).toMatch(/^\s*3309$/m);
    expect(existsSync(join(place.cwd, "-"))).toBe(false);
  });

  it.skipIf(isRoot)("does not replace a file that the user may not write", () => {
    const path = join(makeTemporaryDirectory(), "file");
    writeFileSync(path, "protected", { mode: 0o444 });
    expect(() => writeTo(openFile(path, "public"), "new")).toThrow("permission denied");
    expect(readFileSync(path, "utf8")).toBe("protected");
  });
});
