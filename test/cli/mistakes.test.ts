/** Mistakes of a hurried user. Each gets a sentence that names its cause and its remedy. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { qsp, qspDone } from "./qsp.ts";

/** A directory with a document, its signature, and the key pair. There is no server. */
async function makePlace() {
  const place = { cwd: makeTemporaryDirectory(), url: "http://127.0.0.1:1" };
  writeFileSync(join(place.cwd, "f"), "a document");
  mkdirSync(join(place.cwd, "sub"));
  writeFileSync(join(place.cwd, "empty"), "");
  await qspDone(["keygen", "k"], place);
  await qspDone(["sign", "f", "--key-file", "k.key"], place);
  return place;
}

describe("a mistake at the command line gets its remedy:", () => {
  /** What the user writes, and the remedy. */
  const mistakes: Readonly<Record<string, readonly [readonly string[], string]>> = {
    "two letters in the wrong order": [["sgin", "f"], 'did you mean "sign"? qsp help lists the verbs'],
    "a verb without its group": [
      ["create"],
      'did you mean "kms create", "wallet create" or "multisig create"?',
    ],
    "a verb of the shell": [["ls"], '"kms list"'],
    "the version with a short option": [["-v"], "-v is not an option; did you mean --version?"],
    "an option between the words of a verb": [
      ["kms", "--cleartext", "list"],
      "put options after the verb: qsp kms list --cleartext\n",
    ],
    "an option with a value between them": [
      ["kms", "--url", "http://127.0.0.1:1", "list"],
      "put options after the verb: qsp kms list --url …\n",
    ],
    "an option before the verb": [
      ["--url", "http://127.0.0.1:1", "kms", "list"],
      "put options after the verb: qsp kms list --url …\n",
    ],
    "an option before a verb of one word": [
      ["--key-file=k.key", "sign", "f"],
      "put options after the verb: qsp sign --key-file …\n",
    ],
    "an option without a verb": [["--port", "9000"], "put the verb first, such as qsp serve --port"],
    "a group without a verb": [["kms", "--cleartext"], "kms needs one of its verbs: create, list"],
    "an option with one dash": [
      ["sign", "f", "-key", "x"],
      "-key is not an option of this verb; did you mean --key?",
    ],
    "an option of another program": [["sign", "f", "--output", "x"], "did you mean --out?"],
    "an option of another verb": [["verify", "f", "--key-file", "k.pub"], "did you mean --public-key?"],
    "a token instead of its file": [["kms", "list", "--token", "abc"], "did you mean --token-file?"],
    "no signature": [
      ["verify", "f", "--public-key", "k.pub"],
      "use --signature FILE: File with the signature",
    ],
    "the signature as an operand": [["verify", "f", "f.sig"], "qsp verify --help lists the options"],
    "the document as its signature": [
      ["verify", "f", "--signature", "f", "--public-key", "k.pub"],
      "an ML-DSA-65 signature has 3309; name the file of a signature",
    ],
    "the secret key as the public key": [
      ["verify", "f", "--signature", "f.sig", "--public-key", "k.key"],
      "line 1 begins a secret key; name the file of the public key",
    ],
    "an empty file for a server-held key": [
      ["sign", "empty", "--key", "k"],
      "the file empty has no content; a server-held key cannot sign it",
    ],
    "a rotation that is too frequent": [
      ["kms", "create", "--name", "n", "--rotate-every", "1h"],
      "--rotate-every must be at least 1d\n",
    ],
    "a delay that is too long": [["kms", "destroy", "k", "--after", "365d"], "--after may be at most 120d\n"],
    "a URL with a path": [
      ["kms", "list", "--url", "http://127.0.0.1:1/api"],
      "must have no path: use http://127.0.0.1:1\n",
    ],
    "a URL without its scheme": [
      ["kms", "list", "--url", "localhost:8080"],
      "lacks http:// or https://: use http://localhost:8080\n",
    ],
    "a device that is not registered": [
      ["device", "authenticate", "--device", "none.json"],
      "none.json does not exist; qsp device register creates one\n",
    ],
    "a wallet of signers without its threshold": [
      ["multisig", "create", "--signers", "3"],
      "use --threshold NUMBER with --signers NUMBER",
    ],
    "an option that is like --help, too": [["sign", "f", "--kee", "k"], "did you mean --key? --help"],
    "a database without a URL": [
      ["serve", "--database-url", "localhost"],
      "--database-url must be a URL such as postgres://",
    ],
    "an algorithm without its dashes": [
      ["keygen", "a", "--algorithm", "mldsa65"],
      'did you mean "ML-DSA-65"?\n',
    ],
    "an algorithm before its standard": [
      ["keygen", "a", "--algorithm", "SPHINCS+-128s"],
      "SPHINCS+ became SLH-DSA (FIPS 205)\n",
    ],
    "a key pair without a name": [["keygen", ""], "NAME is empty; usage: qsp keygen NAME"],
    "a key pair named like a directory": [["keygen", "sub"], "name the key, such as sub/signer"],
    "a key pair in a directory": [["keygen", "sub/"], "name the key, such as sub/signer"],
    "an empty name of a file": [["sign", "", "--key-file", "k.key"], "FILE is empty; usage: qsp sign FILE"],
    "a directory instead of a file": [
      ["sign", "sub", "--key-file", "k.key", "--out", "x"],
      "sub is a directory; name a file",
    ],
    "an algorithm that there is not": [
      ["keygen", "a", "--algorithm", "ML-DSA-66"],
      'did you mean "ML-DSA-65"?\n',
    ],
    "a grant of nothing": [["kms", "grant", "k", "bob"], "use one or more of SIGN, VERIFY, ENCAPSULATE"],
    "a file that is no backup": [["restore", "f", "--data-dir", "data"], "name a file that qsp backup wrote"],
    "a directory that is missing": [
      ["keygen", "none/k"],
      "the directory none does not exist; create it first",
    ],
    "a call with a dot": [["call", "kms.KmsService.CreateKey"], "did you mean kms.KmsService/CreateKey?"],
    "a key and a filter": [["kms", "public-keys", "k", "--name", "n"], "use either KEY or --name"],
  };

  it.each(Object.entries(mistakes))("%s", async (_, [args, remedy]) => {
    const { code, stdout, stderr } = await qsp(args, await makePlace());
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
    expect(stderr).toContain(remedy);
    expect(stderr.length).toBeLessThan(300);
  });

  it("words that are offered may be in small letters", async () => {
    const place = await makePlace();
    await qspDone(["keygen", "small", "--algorithm", "ml-dsa-44"], place);
    const line = ["sign", "f", "--key-file", "small.key"];
    expect(await qspDone(line, place)).toBe("f.sig: 2,420 bytes of ML-DSA-44\n");
  });

  it.each([[["-h"]], [["kms", "-h"]], [["kms", "help"]], [["kms", "list", "-h"]]])(
    "%j shows the help",
    async (args) => {
      const { code, stdout, stderr } = await qsp(args, await makePlace());
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("kms");
    },
  );

  it("-h after -- is an operand", async () => {
    const { code, stderr } = await qsp(["sign", "--key-file", "k.key", "--", "-h"], await makePlace());
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("-h does not exist") });
  });
});
