import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { toFailure } from "../../page/failure.ts";
import { flipBits, isRejected, signMessage, verifyOnBothSides } from "../../page/home/signature.ts";
import { serve } from "../steps/fake-caller.ts";

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

describe("flipBits", () => {
  it("flips one bit of each selected byte in a copy", () => {
    const bytes = Uint8Array.of(0, 1, 0xff);
    expect([...flipBits(bytes, new Set([0, 2]))]).toEqual([1, 1, 0xfe]);
    expect([...bytes]).toEqual([0, 1, 0xff]);
  });
});

describe("isRejected", () => {
  it("requires the browser, and the server if it answered", () => {
    expect(isRejected({ server: false, browser: false })).toBe(true);
    expect(isRejected({ server: "not asked", browser: false })).toBe(true);
    expect(isRejected({ server: toFailure(new Error("lost")), browser: false })).toBe(true);
    expect(isRejected({ server: true, browser: false })).toBe(false);
    expect(isRejected({ server: false, browser: true })).toBe(false);
  });
});
