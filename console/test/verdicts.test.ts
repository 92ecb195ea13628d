import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { decapsulateHere, nameCode, verifyHere } from "../page/algorithms.ts";
import { sayInvalid, sayValid } from "../page/checks.ts";
import { expectRefusal } from "../page/failure.ts";
import { refusalOf } from "./steps/fake-caller.ts";

afterEach(() => vi.restoreAllMocks());
const { publicKey, secretKey } = ml_dsa65.keygen();
const message = Uint8Array.of(1, 2, 3);
const signature = ml_dsa65.sign(message, secretKey);
const verify = () => verifyHere("ML-DSA-65", signature, message, publicKey);

describe("verifyHere", () => {
  it("verifies with the library where Web Cryptography lacks the algorithm, and says so", async () => {
    vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(new DOMException("", "NotSupportedError"));
    expect([await verify(), nameCode("ML-DSA-65")]).toEqual([true, "@noble/post-quantum"]);
  });

  it("verifies with both, and says so", async () => {
    expect([await verify(), nameCode("ML-DSA-65")]).toEqual([
      true,
      "@noble/post-quantum and Web Cryptography",
    ]);
  });

  it("finds a signature not valid if one of them does", async () => {
    vi.spyOn(crypto.subtle, "verify").mockResolvedValue(false);
    expect(await verify()).toBe(false);
  });
});

it("decapsulateHere opens a ciphertext with both, and refuses different secrets", async () => {
  const seed = crypto.getRandomValues(new Uint8Array(64));
  const keys = ml_kem768.keygen(seed);
  const { cipherText, sharedSecret } = ml_kem768.encapsulate(keys.publicKey);
  const open = (from: Uint8Array) => decapsulateHere("ML-KEM-768", from, keys.secretKey, cipherText);
  expect(await open(seed)).toEqual(sharedSecret);
  await expect(open(seed.toReversed())).rejects.toThrow("compute different secrets");
});

it("both sides' verdicts count as expected only if neither side disagrees", () => {
  const sides = [
    { server: true, browser: true },
    { server: true, browser: false },
    { server: false, browser: true },
    { server: false, browser: false },
  ];
  expect(sides.map((verdicts) => sayValid(verdicts, "Both sides find it valid."))).toEqual([
    "Both sides find it valid.",
    ...Array(3).fill("Not both sides find it valid, which should not happen."),
  ]);
  expect(sides.map((verdicts) => sayInvalid(verdicts, "Neither side takes it."))).toEqual([
    ...Array(3).fill("One side still finds it valid, which should not happen."),
    "Neither side takes it.",
  ]);
});

describe("a step that expects a refusal", () => {
  it("is done if the server refuses for the expected reason", async () => {
    const refusal = await expectRefusal(Promise.reject(refusalOf("OWNER_MISMATCH")), "OWNER_MISMATCH");
    expect(refusal.reason).toBe("OWNER_MISMATCH");
  });

  it.each([
    ["the server is unreachable", ConnectError.from(new TypeError("Failed to fetch")), "UNREACHABLE"],
    ["a proxy answers for the server", new ConnectError("HTTP 502", Code.Unavailable), "UNAVAILABLE"],
    ["the log-in has expired", refusalOf("TOKEN_EXPIRED"), "TOKEN_EXPIRED"],
    ["the server accepts the call", undefined, "NOT_REFUSED"],
  ])("fails if %s", async (_what, outcome, reason) => {
    const call = outcome === undefined ? Promise.resolve() : Promise.reject(outcome);
    await expect(expectRefusal(call, "OWNER_MISMATCH")).rejects.toMatchObject({ reason });
  });
});
