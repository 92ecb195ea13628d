/** Files, keys and grants with --format: the cases that raw signatures are tested for. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { useGuardedServer } from "../../../test/cli/guarded-server.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout } from "../../../test/cli/qsp.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const { loggedIn } = useGuardedServer();
const read = ({ cwd }: RunOptions, name: string) => readFileSync(join(cwd, name), "utf8");

/** A directory with a document, a key pair and an envelope, without a server. */
async function makePlace(): Promise<RunOptions> {
  const place = { cwd: makeTemporaryDirectory(), url: "http://127.0.0.1:1" };
  writeFileSync(join(place.cwd, "f"), "a document");
  writeFileSync(join(place.cwd, "f.jws"), "a..b");
  await qspDone(["keygen", "k"], place);
  await qspDone(["sign", "f", "--key-file", "k.key", "--format", "dsse"], place);
  return place;
}

describe("output in a format never replaces an input", { timeout }, () => {
  const verify = ["verify", "f.dsse", "--format", "dsse", "--public-key", "k.pub", "--out"];
  it.each([
    ["the secret key by default", ["sign", "k", "--format", "dsse", "--key-file", "k.dsse"], "--key-file"],
    ["the envelope", [...verify, "f.dsse"], "FILE"],
  ])("keeps %s, and the message names both options", async (_what, args, other) => {
    const place = await makePlace();
    const readAll = () => ["f", "f.dsse", "k.key", "k.pub"].map((name) => read(place, name));
    const before = readAll();
    const { code, stdout, stderr } = await qsp(args, place);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^qsp: [^\n]*--out[^\n]+; name [^\n]+\n$/);
    expect(stderr).toContain(other);
    expect(readAll()).toEqual(before);
  });

  it("writes the envelope's content to -, and the verdict to standard error", async () => {
    const { code, stdout, stderr } = await qsp([...verify, "-"], await makePlace());
    expect({ code, stdout }).toEqual({ code: 0, stdout: "a document" });
    expect(stderr).toContain("the signature is valid");
  });
});

describe("mistakes with --format", { timeout }, () => {
  it("suggests --format if the signature is in a standard format", async () => {
    const line = ["verify", "f", "--signature", "f.jws", "--public-key", "k.pub"];
    const stderr = expect.stringContaining("did you mean --format jws?\n");
    expect(await qsp(line, await makePlace())).toMatchObject({ code: 2, stderr });
  });
});

describe("several public keys", { timeout }, () => {
  it.each(["dsse", "cms", "jws", "cose"])("find the one that signed in %s", async (format) => {
    const place = await makePlace();
    await qspDone(["keygen", "small", "--algorithm", "ML-DSA-44"], place);
    await qspDone(["keygen", "a"], place);
    const keys = ["small.pub", "a.pub", "k.pub"].map((name) => read(place, name));
    writeFileSync(join(place.cwd, "keys"), keys.join(""));
    writeFileSync(join(place.cwd, "others"), keys.slice(0, 2).join(""));
    await qspDone(["sign", "f", "--key-file", "k.key", "--format", format, "--out", "signed"], place);
    const line = ["verify", "f", "--signature", "signed", "--format", format, "--public-key"];
    expect(await qspJson([...line, "keys"], place)).toMatchObject({ valid: true, keyNumber: 3 });
    const stdout = expect.stringContaining("none of 2 keys");
    expect(await qsp([...line, "others"], place)).toMatchObject({ code: 1, stdout });
  });
});

describe("a document larger than a gRPC message", { timeout }, () => {
  it("is signed by a server-held key", async () => {
    const ada = await loggedIn("ada");
    await qspDone(["kms", "create", "--name", "large"], ada);
    writeFileSync(join(ada.cwd, "large"), new Uint8Array(5 * 1024 * 1024));
    await qspDone(["sign", "large", "--key", "name/large", "--format", "dsse"], ada);
    const signed = ["--signature", "large.dsse", "--format", "dsse"];
    const { code } = await qsp(["verify", "large", ...signed, "--key", "name/large"], ada);
    expect(code).toBe(0);
  });
});

describe("a grant to sign", { timeout }, () => {
  it("is not enough for a format, which needs GET_KEY too", async () => {
    const [ada, bob] = [await loggedIn("ada"), await loggedIn("bob")];
    await qspDone(["kms", "create", "--name", "shared"], ada);
    const grant = ["kms", "grant", "name/shared", "bob", "--operations"];
    await qspDone([...grant, "SIGN"], ada);
    writeFileSync(join(bob.cwd, "f"), "a document");
    const line = ["sign", "f", "--key", "user/ada/name/shared", "--format", "jws"];
    expect(await qsp(line, bob)).toMatchObject({ code: 3, stderr: expect.stringContaining("GRANT_MISSING") });
    await qspDone([...grant, "GET_KEY"], ada);
    expect((await qsp(line, bob)).code).toBe(0);
  });
});
