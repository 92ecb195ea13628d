import { expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { opening, tampering } from "../../page/stories/encryption/page.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const sealing = { plaintext: Uint8Array.of(1), ciphertext: new Uint8Array(1200) };

it("opening detects that the server returns other data", async () => {
  // Not UTF-8.
  const liar = serve(KmsService, { decrypt: () => ({ result: { plaintext: Uint8Array.of(0xff) } }) });
  const opened = await runStep(opening, liar, { sealing });
  expect(opened).toMatchObject({ isSame: false });
  expect(opening.says(opened)).toBe("The server returns different data, which should not happen.");
});

it("tampering changes one byte at a time, and none for the other patient", async () => {
  const sent: { readonly ciphertext: Uint8Array; readonly associatedData: Uint8Array }[] = [];
  const server = serve(KmsService, {
    decrypt(request) {
      sent.push(request);
      throw refusalOf("DECRYPTION_FAILED");
    },
  });
  const { isAlike } = await runStep(tampering, server, { sealing });
  const changed = sent.map(({ ciphertext }) => ciphertext.findIndex((byte) => byte !== 0));
  expect([isAlike, ...changed]).toEqual([true, 1180, 100, -1]);
  expect(new Set(sent.map(({ associatedData }) => Buffer.from(associatedData).toString())).size).toBe(2);
});
