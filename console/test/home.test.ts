import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { Failure, toFailure } from "../page/failure.ts";
import { writeCaption } from "../page/home/caption.ts";
import * as cells from "../page/home/cells.ts";
import {
  type Finding,
  flipBits,
  isRejected,
  signMessage,
  verifyOnBothSides,
} from "../page/home/signature.ts";
import { serve } from "./steps/fake-caller.ts";

const lost = new Failure("UNREACHABLE", "UNAVAILABLE", "The server could not be reached.");

function tellOf(server: Finding, browser: Finding, flipped: readonly number[] = []): string {
  const findings = { server, browser };
  const shown = { flipped: new Set(flipped), findings, isChecking: false };
  return writeCaption({ signed: { by: server === "not asked" ? "browser" : "server" }, ...shown });
}

describe("the caption", () => {
  it("names the sides that accept the signature", () => {
    expect(tellOf(true, true)).toMatch(/^Server and browser accept it\./);
    expect(tellOf(lost, true)).toMatch(/^Your browser accepts it\./);
    expect(tellOf(false, true)).toMatch(/^The two sides disagree\./);
    expect(tellOf("not asked", true)).toContain("because calls require a log-in");
  });

  it("names the sides that reject a flipped bit, and no side that did not answer", () => {
    expect(tellOf(false, false, [7])).toContain("in byte 7. Both sides reject the whole signature.");
    expect(tellOf(lost, false, [7])).toContain("Your browser rejects the whole signature.");
    expect(tellOf("not asked", false, [7])).toContain("Your browser rejects the whole signature.");
    expect(tellOf(true, false, [7])).toContain("The two sides disagree.");
  });
});

/** Positions of a path's squares: "column row". */
function placesOf(path: string): string[] {
  return [...path.matchAll(/M(\d+) (\d+)/g)].map(([, column, row]) => `${column} ${row}`);
}

describe("the parts of ML-DSA-65 values", () => {
  it("add up to a signature and a public key", () => {
    expect(cells.countBytes(cells.signatureParts)).toBe(ml_dsa65.lengths.signature);
    expect(cells.countBytes(cells.publicKeyParts)).toBe(ml_dsa65.lengths.publicKey);
  });

  it("name each byte, including the first and last of each part", () => {
    const names = [0, 47, 48, 3247, 3248, 3308].map((index) => cells.nameByte(index, cells.signatureParts));
    const parts = ["the challenge", "the response", "the hint"];
    expect(names).toEqual(parts.flatMap((part) => [part, part]));
  });
});

it("drawBytes draws each byte once, at its position, shaded by its value, in its part's colour", () => {
  const parts = [
    { name: "a", bytes: 2 },
    { name: "b", bytes: 3 },
  ];
  const drawn = cells
    .drawBytes(Uint8Array.of(0, 255, 255, 0, 128), parts, 2)
    .filter(({ path }) => path !== "");
  const shown = drawn.map(({ part, level, path }) => `${part} ${level}: ${placesOf(path)}`);
  expect(shown).toEqual(["0 0: 0 0", "0 5: 1 0", "1 0: 1 1", "1 3: 0 2", "1 5: 0 1"]);
});

it("drawSquares draws as many squares as bytes, row by row", () => {
  expect(placesOf(cells.drawSquares(5, 2))).toEqual(["0 0", "1 0", "0 1", "1 1", "0 2"]);
  expect(cells.countRows(5, 2)).toBe(3);
});

it("findByte finds the square under the pointer, and none beyond the last one", () => {
  expect(cells.findByte(0.5, 0.5, 2, 5)).toBe(0);
  expect(cells.findByte(1.99, 1.01, 2, 5)).toBe(3);
  expect(cells.findByte(1.5, 2.5, 2, 5)).toBeUndefined();
  expect(cells.findByte(-0.1, 0, 2, 5)).toBeUndefined();
  expect(cells.findByte(2, 0, 2, 5)).toBeUndefined();
});

const { publicKey, secretKey } = ml_dsa65.keygen();

/** A server that calls every signature valid. */
const gullible = serve(PqcService, {
  signData: ({ data }) => ({ signature: ml_dsa65.sign(data, secretKey), publicKey }),
  verifySignature: () => ({ valid: true }),
});
const refuse = () => Promise.reject(new ConnectError("too many calls", Code.ResourceExhausted));
const busy = serve(PqcService, { signData: refuse, verifySignature: refuse });

describe("signMessage", () => {
  it("uses the server's signature and key", async () => {
    const signed = await signMessage(gullible, "hello");
    expect(signed).toMatchObject({ by: "server", publicKey });
    expect(signed.failure).toBeUndefined();
  });

  it.each([
    ["no call is possible", undefined, undefined],
    ["the server refuses, and keeps the reason", busy, { code: "RESOURCE_EXHAUSTED" }],
  ])("signs in the browser if %s", async (_what, caller, failure) => {
    const signed = await signMessage(caller, "hello");
    expect(signed).toMatchObject({ by: "browser", ...(failure && { failure }) });
    expect(signed.failure === undefined).toBe(failure === undefined);
    expect(ml_dsa65.verify(signed.signature, signed.data, signed.publicKey)).toBe(true);
  });
});

describe("verifyOnBothSides", () => {
  it("reports each side's finding separately", async () => {
    const signed = await signMessage(gullible, "hello");
    const forged = flipBits(signed.signature, new Set([3308]));
    const genuine = await verifyOnBothSides(gullible, signed, signed.signature);
    expect(genuine).toEqual({ server: true, browser: true });
    expect(await verifyOnBothSides(gullible, signed, forged)).toEqual({ server: true, browser: false });
    const alone = await verifyOnBothSides(undefined, signed, forged);
    expect(alone).toEqual({ server: "not asked", browser: false });
  });

  it("reports a refused call as no finding", async () => {
    const signed = await signMessage(undefined, "hello");
    const { server, browser } = await verifyOnBothSides(busy, signed, signed.signature);
    expect(server).toMatchObject({ reason: "RESOURCE_EXHAUSTED" });
    expect(browser).toBe(true);
  });
});

it("flipBits flips one bit of each selected byte in a copy", () => {
  const bytes = Uint8Array.of(0, 1, 0xff);
  expect([...flipBits(bytes, new Set([0, 2]))]).toEqual([1, 1, 0xfe]);
  expect([...bytes]).toEqual([0, 1, 0xff]);
});

it("isRejected requires the browser, and the server if it answered", () => {
  expect(isRejected({ server: false, browser: false })).toBe(true);
  expect(isRejected({ server: "not asked", browser: false })).toBe(true);
  expect(isRejected({ server: toFailure(new Error("lost")), browser: false })).toBe(true);
  expect(isRejected({ server: true, browser: false })).toBe(false);
  expect(isRejected({ server: false, browser: true })).toBe(false);
});
