import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import {
  decapsulate,
  decapsulateChanged,
  encapsulate,
  makeKeyPair,
} from "../../page/stories/key-exchange/steps.ts";
import { createFakeCaller } from "./fake-caller.ts";

const caller = createFakeCaller(({ service }) =>
  service(PqcService, {
    exchangeKeys({ publicKey }) {
      const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey);
      return { encapsulatedKey: cipherText, sharedSecret };
    },
  }),
);
const keyPair = await makeKeyPair("ML-KEM-768");
const exchange = await encapsulate(caller, keyPair);

describe("decapsulate", () => {
  it("finds the server's secret", async () => {
    expect(await decapsulate(keyPair, exchange)).toMatchObject({ isEqual: true });
  });

  it("finds that the server shows another secret", async () => {
    const sharedSecret = new Uint8Array(32);
    expect(await decapsulate(keyPair, { ...exchange, sharedSecret })).toMatchObject({ isEqual: false });
  });
});

describe("decapsulateChanged", () => {
  it("finds another secret, and no error", async () => {
    const { change, ours, isEqual } = await decapsulateChanged(keyPair, exchange);
    expect({ index: change.index, bytes: ours.length, isEqual }).toEqual({
      index: 544,
      bytes: 32,
      isEqual: false,
    });
  });
});
