import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { breaking, decapsulating, encapsulating, preparing } from "../../page/stories/key-exchange/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

const caller = serve(PqcService, {
  exchangeKeys({ publicKey }) {
    const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey);
    return { encapsulatedKey: cipherText, sharedSecret };
  },
});
const keyPair = await runStep(preparing, caller, { algorithm: "ML-KEM-768" });
const exchange = await runStep(encapsulating, caller, { preparing: keyPair });

describe("decapsulating", () => {
  it("finds the server's secret", async () => {
    const found = await runStep(decapsulating, caller, { preparing: keyPair, encapsulating: exchange });
    expect(found).toMatchObject({ isEqual: true });
  });

  it("detects that the server shows a different secret", async () => {
    const other = { ...exchange, sharedSecret: new Uint8Array(32) };
    const found = await runStep(decapsulating, caller, { preparing: keyPair, encapsulating: other });
    expect(found).toMatchObject({ isEqual: false });
  });
});

describe("breaking", () => {
  it("results in a different secret, and no error", async () => {
    const given = { preparing: keyPair, encapsulating: exchange };
    const { change, ours, isEqual } = await runStep(breaking, caller, given);
    expect({ index: change.index, bytes: ours.length, isEqual }).toEqual({
      index: 544,
      bytes: 32,
      isEqual: false,
    });
  });
});
