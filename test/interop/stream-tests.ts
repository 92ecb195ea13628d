/** Streams, including bidirectional ones, which the examples lack. Clients that cannot send a stream only receive. */
import { hash } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { makeSigner, sha256, verifiesOutside } from "../services/node-crypto.ts";
import { registerOwn } from "../services/own-device.ts";
import { connectPeer, openAsPeer } from "../services/vpn-peer.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid } from "../support/refusals.ts";
import type { Tested } from "./client-tests.ts";
import { createForeignClient } from "./foreign-client.ts";

const chunks = [bytesOf("hello"), Buffer.alloc(100_000, "x"), bytesOf("world")];
const context = bytesOf("invoices");

/** Tests the streams that a client can send, and a live stream that it receives. */
export function testStreams({ driver, nextServer }: Tested): void {
  const kms = createForeignClient(KmsService, driver, nextServer);
  const iot = createForeignClient(IotService, driver, nextServer);
  const vpn = createForeignClient(VpnService, driver, nextServer);

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

    it("of chunks of a firmware image", async () => {
      const vendor = makeSigner("ml-dsa-87");
      const image = Buffer.concat(chunks);
      const signature = vendor.sign(hash("sha256", image, "buffer"));
      const header = { signature, vendorPublicKey: vendor.publicKey };
      expect(await iot.updateFirmwareStream(toParts(header, chunks))).toMatchObject({
        result: "FIRMWARE_ACCEPTED",
        firmwareHash: sha256(image),
      });
    });

    it("that is rejected without its header", async () => {
      expect(await refusal(kms.signStream(toParts(undefined, chunks)))).toEqual(fieldInvalid);
    });
  });

  if (driver.sends === "streams") return;
  describe("sends and receives at the same time", () => {
    it("readings, each answered in order", async () => {
      const { deviceId, sign } = await registerOwn(iot);
      const telemetry = bytesOf("21.5");
      const reading = { deviceId, telemetry, signature: sign(telemetry) };
      const readings = [
        reading,
        { ...reading, deviceId: "device-x" },
        { ...reading, signature: new Uint8Array(2420) },
        reading,
      ];
      const verdicts = await take(
        iot.streamTelemetry(toStream(readings.map((one) => ({ reading: one })))),
        4,
      );
      const reasons = verdicts.map(({ reason }) => reason);
      expect(reasons).toEqual(["", "DEVICE_NOT_FOUND", "SIGNATURE_INVALID", ""]);
    });

    it("packets, each answered in order", async () => {
      const { tunnelId, sessionKey } = await connectPeer(vpn);
      const data = bytesOf("hello");
      const requests = [tunnelId, "tunnel-x", tunnelId].map(
        (id) => ({ packet: { case: "send", value: { tunnelId: id, data } } }) as const,
      );
      const answers = await take(vpn.tunnel(toStream(requests), untilTestEnds()), 3);
      const read = answers.map(({ result }) =>
        result.case === "sent" ? openAsPeer(sessionKey, result.value.packet) : result.value,
      );
      expect(read).toMatchObject([data, { code: "NOT_FOUND", reason: "TUNNEL_NOT_FOUND" }, data]);
    });
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

async function* toStream<Message>(messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages;
}

/** Reads the first answers of a stream. */
async function take<Answer>(answers: AsyncIterable<Answer>, count: number): Promise<Answer[]> {
  const taken: Answer[] = [];
  for await (const answer of answers) if (taken.push(answer) === count) break;
  return taken;
}
