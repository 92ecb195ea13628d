/** Streams, including bidirectional ones, which the examples lack. Clients that cannot send a stream only receive. */
import { describe, expect, it, onTestFinished } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { verifiesOutside } from "../services/node-crypto.ts";
import { registerOwn } from "../services/own-device.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid } from "../support/refusals.ts";
import { streamOf } from "../support/streams.ts";
import type { Tested } from "./client-tests.ts";
import { createForeignClient } from "./foreign-client.ts";

const chunks = [bytesOf("hello"), Buffer.alloc(100_000, "x"), bytesOf("world")];
const context = bytesOf("invoices");

/** Tests the streams that a client can send, and a live stream that it receives. */
export function testStreams({ driver, nextServer }: Tested): void {
  const kms = createForeignClient(KmsService, driver, nextServer);
  const iot = createForeignClient(IotService, driver, nextServer);

  it("receives each entry of a live stream when it is written", async () => {
    const { totalSize } = await kms.getAuditLog({ pageSize: 1 });
    const watching = kms.watchAuditLog({ afterSequence: totalSize }, untilTestEnds());
    const entries = watching[Symbol.asyncIterator]();
    for (const sequence of [totalSize + 1, totalSize + 2]) {
      const next = entries.next();
      const { result } = await kms.createKey({ algorithm: "ML-DSA-44" });
      expect((await next).value?.entry).toMatchObject({
        sequence,
        keyId: result?.keyId,
        operation: "CREATE",
      });
    }
  });

  if (driver.sends === "no streams") return;
  describe("sends a stream", () => {
    it("of chunks that are signed as one message", async () => {
      const { keyId = "", publicKeyPem = "" } = (await kms.createKey({})).result ?? {};
      const { result } = await kms.signStream(toParts({ keyId, context }, chunks));
      const { signature = new Uint8Array() } = result ?? {};
      expect(verifiesOutside(publicKeyPem, Buffer.concat(chunks), signature, context)).toBe(true);
    });

    it("that is rejected without its header", async () => {
      expect(await refusal(kms.signStream(toParts(undefined, chunks)))).toEqual(fieldInvalid);
    });
  });

  if (driver.sends === "streams") return;
  it("sends readings and receives their answers at the same time, in order", async () => {
    const { deviceId, sign } = await registerOwn(iot);
    const telemetry = bytesOf("21.5");
    const reading = { deviceId, telemetry, signature: sign(telemetry) };
    const readings = [
      reading,
      { ...reading, deviceId: "device-x" },
      { ...reading, signature: new Uint8Array(2420) },
      reading,
    ];
    const requests = readings.map((one) => ({ reading: one }));
    const verdicts = await Array.fromAsync(iot.streamTelemetry(streamOf(...requests)));
    const reasons = verdicts.map(({ reason }) => reason);
    expect(reasons).toEqual(["", "DEVICE_NOT_FOUND", "SIGNATURE_INVALID", ""]);
  });
}

/** Call options that end a stream when the test ends. */
function untilTestEnds(): { readonly signal: AbortSignal } {
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  return { signal: ending.signal };
}

async function* toParts<Header>(header: Header | undefined, parts: readonly Uint8Array[]) {
  if (header) yield { part: { case: "header", value: header } } as const;
  for (const value of parts) yield { part: { case: "chunk", value } } as const;
}
