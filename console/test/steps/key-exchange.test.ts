import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { ml_kem512, ml_kem768, ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import * as story from "../../page/stories/key-exchange/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

const kems = {
  "ML-KEM-512": ml_kem512,
  "ML-KEM-768": ml_kem768,
  "ML-KEM-1024": ml_kem1024,
  "X-Wing": ml_kem768_x25519,
};
const caller = serve(PqcService, {
  exchangeKeys({ algorithm, publicKey }) {
    const { cipherText, sharedSecret } = kems[algorithm as "X-Wing"].encapsulate(publicKey);
    return { encapsulatedKey: cipherText, sharedSecret };
  },
});

async function exchangeWith(algorithm = "ML-KEM-768") {
  const keyPair = await runStep(story.preparing, caller, { algorithm });
  return {
    preparing: keyPair,
    encapsulating: await runStep(story.encapsulating, caller, { preparing: keyPair }),
  };
}

describe("decapsulating", () => {
  it.each(Object.keys(kems))("finds the server's secret, with %s", async (algorithm) => {
    const found = await runStep(story.decapsulating, caller, await exchangeWith(algorithm));
    expect(found).toMatchObject({ isEqual: true });
  });

  it("detects that the server shows a different secret", async () => {
    const given = await exchangeWith();
    const other = { ...given, encapsulating: { ...given.encapsulating, sharedSecret: new Uint8Array(32) } };
    expect(await runStep(story.decapsulating, caller, other)).toMatchObject({ isEqual: false });
  });
});
