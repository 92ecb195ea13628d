/** Key files of `qsp keygen` in programs that read only the seed form of a key (RFC 9881 and 9935, section 6). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { qspDone } from "../cli/qsp.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { findPython } from "./python.ts";
import { run } from "./tools.ts";

const python = findPython("cryptography.hazmat.primitives.asymmetric.mlkem");
const needs = python === undefined ? " (needs Python with cryptography 50 or newer)" : "";

/** Prints the class of a secret key, and whether it matches a public key. */
const script = `
import sys
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key, load_pem_public_key
secret = load_pem_private_key(open(sys.argv[1], "rb").read(), None)
public = load_pem_public_key(open(sys.argv[2], "rb").read())
raw = [key.public_bytes(Encoding.Raw, PublicFormat.Raw) for key in (secret.public_key(), public)]
print(type(secret).__name__, raw[0] == raw[1])
`;

const cwd = makeTemporaryDirectory(afterAll);
const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "ML-KEM-768", "ML-KEM-1024"];
let made = 0;

/** Returns the paths of the secret and the public key. */
async function makeKeyFiles(algorithm: string): Promise<string[]> {
  made += 1;
  await qspDone(["keygen", `key-${made}`, "--algorithm", algorithm], { cwd });
  return [".key", ".pub"].map((ending) => join(cwd, `key-${made}${ending}`));
}

describe("the secret key file of qsp keygen", () => {
  it.each(algorithms)("has only the seed of %s, as BoringSSL and Conscrypt require", async (algorithm) => {
    const [secret = ""] = await makeKeyFiles(algorithm);
    const der = Buffer.from(readFileSync(secret, "utf8").replaceAll(/-----.*-----|\s/g, ""), "base64");
    // SEQUENCE, version, algorithm, OCTET STRING, and in it the seed with the tag [0].
    const seedBytes = algorithm.startsWith("ML-KEM") ? 64 : 32;
    expect(der).toHaveLength(seedBytes + 22);
    expect([...der.subarray(-seedBytes - 4, -seedBytes)]).toEqual([0x04, seedBytes + 2, 0x80, seedBytes]);
  });
});

describe.skipIf(python === undefined)(`pyca/cryptography${needs}`, () => {
  it.each(algorithms)("reads the key files of %s", async (algorithm) => {
    const files = await makeKeyFiles(algorithm);
    const kind = algorithm.replaceAll("-", "");
    const { code, stdout, stderr } = await run(python ?? "", ["-c", script, ...files]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.toLowerCase()).toBe(`${kind}privatekey true\n`.toLowerCase());
  });
});
