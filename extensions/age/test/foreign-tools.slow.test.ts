/** age and age-encryption read what qsp writes, and the reverse. The page does so with SOPS. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { launch, qspDone, qspJson, type RunOptions, timeout, useServer } from "../../../test/cli/qsp.ts";
import { isMissing } from "../../../test/interop/tools.ts";
import { createAgeKey, createIdentity } from "./keys.ts";

const server = useServer();
const plugin = join(import.meta.dirname, "../age-plugin-qsp.mjs");
const nodeProgram = join(import.meta.dirname, "node/age.mjs");
const isPackageMissing =
  process.env.QSP_TEST_REQUIRE_ALL !== "1" &&
  !existsSync(join(import.meta.dirname, "node/node_modules/age-encryption"));

/** A directory with a key, its recipient, an identity for the plugin, and a file larger than two chunks. */
async function makePlace() {
  const place = server.place();
  const keyId = await createAgeKey(server);
  const content = randomBytes(150_000);
  const recipient = (await qspDone(["kms", "age-recipient", keyId], place)).trim();
  await qspDone(["kms", "age-identity", keyId, "--out", "identity"], place);
  writeFileSync(join(place.cwd, "file"), content);
  symlinkSync(plugin, join(place.cwd, "age-plugin-qsp"));
  const path = [place.cwd, process.env.PATH].join(delimiter);
  const expectContent = (name: string) =>
    expect(readFileSync(join(place.cwd, name)).equals(content), name).toBe(true);
  return { ...place, env: { PATH: path }, keyId, recipient, expectContent };
}

/** Runs a program that must succeed, and returns its output. */
async function done(program: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await launch(program, args, options).end;
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

const needsAge = isMissing("age") || isMissing("age-keygen");
describe.skipIf(needsAge)("age (needs age and age-keygen)", { timeout }, () => {
  it.each([[], ["--armor"]])(
    "decrypts through the plugin what it encrypted to a server-held key %j",
    async (...options) => {
      const place = await makePlace();
      await done("age", ["-r", place.recipient, ...options, "-o", "file.age", "file"], place);
      await done("age", ["-d", "-i", "identity", "-o", "by-age", "file.age"], place);
      await done("age", ["-d", "-j", "qsp", "-o", "by-any-key", "file.age"], place);
      await qspDone(["decrypt", "file.age", "--key", place.keyId, "--out", "by-qsp"], place);
      for (const name of ["by-age", "by-any-key", "by-qsp"]) place.expectContent(name);
    },
  );

  it.each([[], ["--armor"]])("decrypts what qsp encrypted to its own key %j", async (...options) => {
    const place = await makePlace();
    await done("age-keygen", ["-pq", "-o", "own"], place);
    const recipient = (await done("age-keygen", ["-y", "own"], place)).trim();
    await qspDone(["encrypt", "file", "--key", place.keyId, "--recipient", recipient, ...options], place);
    await done("age", ["-d", "-i", "own", "-o", "by-age", "file.age"], place);
    place.expectContent("by-age");
    const { result } = await qspJson(["kms", "import", "own"], place);
    const { keyId } = result as { keyId: string };
    await qspDone(["decrypt", "file.age", "--key", keyId, "--out", "by-import"], place);
    place.expectContent("by-import");
  });

  it("shows why the plugin refuses", async () => {
    const place = await makePlace();
    const kms = server.client(KmsService);
    const decrypt = (file: string) => launch("age", ["-d", "-i", "identity", file], place).end;
    await done("age", ["-r", place.recipient, "-o", "file.age", "file"], place);
    await kms.disableKey({ keyId: place.keyId });
    const stderr = expect.stringMatching(/qsp plugin: .*DISABLED.*KEY_STATE_INVALID/);
    expect(await decrypt("file.age")).toMatchObject({ code: 1, stderr });
    const other = await createIdentity();
    await done("age", ["-r", other.recipient, "-o", "other.age", "file"], place);
    await kms.enableKey({ keyId: place.keyId });
    expect((await decrypt("other.age")).stderr).toContain("no identity matched any of the recipients");
  });
});

const neededPackage = "the npm package age-encryption (needs age-encryption)";
describe.skipIf(isPackageMissing)(neededPackage, { timeout }, () => {
  it("encrypts to a server-held key, and decrypts what qsp encrypted", async () => {
    const place = await makePlace();
    const run = (script: string) => done("bash", ["-c", script, nodeProgram, place.recipient], place);
    await run(`node "$0" encrypt "$1" < file > file.age`);
    await qspDone(["decrypt", "file.age", "--key", place.keyId, "--out", "by-qsp"], place);
    place.expectContent("by-qsp");
    const own = await createIdentity();
    writeFileSync(join(place.cwd, "own"), own.identity);
    await qspDone(["encrypt", "file", "--recipient", own.recipient, "--out", "own.age"], place);
    await run(`node "$0" decrypt own < own.age > by-package`);
    place.expectContent("by-package");
  });
});
