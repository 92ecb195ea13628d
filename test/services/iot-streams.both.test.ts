import { createHash, randomFillSync } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, it, onTestFinished } from "vitest";
import type {
  StreamTelemetryRequestSchema,
  UpdateFirmwareStreamRequestSchema,
} from "#gen/iot/iot_service_pb.ts";
import { systemPrincipal } from "../../src/records/ownership.ts";
import { createReadingChecks } from "../../src/services/iot/telemetry.ts";
import { bytesOf } from "../support/bytes.ts";
import { failureOf, refusal } from "../support/refusal.ts";
import { damaged, fieldInvalid, invalid } from "../support/refusals.ts";
import { createOutgoing, streamOf } from "../support/streams.ts";
import { expectTimeSince } from "../support/times.ts";
import { present } from "./answers.ts";
import {
  connectTo,
  describeApp,
  describeReplicas,
  findListed,
  type IotClient,
} from "./devices-and-tunnels.ts";
import { makeSigner, type Signer, sha256 } from "./node-crypto.ts";
import { noSuchDevice, readingOf, reasonsOf, registerOwn } from "./own-device.ts";

type Part = MessageInitShape<typeof UpdateFirmwareStreamRequestSchema>;
type Header = Extract<NonNullable<Part["part"]>, { case: "header" }>["value"];
type ReadingRequest = MessageInitShape<typeof StreamTelemetryRequestSchema>;

const mebibyte = 1024 * 1024;
const vendor = makeSigner("ml-dsa-87");

const header = (value: Header): Part => ({ part: { case: "header", value } });
const chunk = (value: Uint8Array<ArrayBuffer>): Part => ({ part: { case: "chunk", value } });

/** Sends items, then stalls without ending until the test has finished. */
async function* stalled<Item>(...items: Item[]): AsyncGenerator<Item> {
  yield* items;
  await new Promise<void>((resolve) => onTestFinished(() => resolve()));
}

/** Returns an image of this many identical 1 MiB chunks. */
function imageOf(mebibytes: number) {
  const one = new Uint8Array(mebibyte);
  randomFillSync(one);
  const hash = createHash("sha256");
  for (let i = 0; i < mebibytes; i++) hash.update(one);
  const digest = hash.digest();
  return {
    firmwareHash: digest.toString("hex"),
    async *stream(value: Header = {}): AsyncGenerator<Part> {
      yield header({ vendorPublicKey: vendor.publicKey, signature: vendor.sign(digest), ...value });
      for (let i = 0; i < mebibytes; i++) yield chunk(one);
    },
  };
}

const image = bytesOf("firmware, version 7");
/** The header of the small image. */
const headerOf = (value: Header = {}, { publicKey, sign }: Signer = vendor): Part =>
  header({ vendorPublicKey: publicKey, signature: sign(Buffer.from(sha256(image), "hex")), ...value });

async function registerPinned({ registerDevice }: IotClient): Promise<string> {
  return (await registerDevice({ vendorPublicKey: vendor.publicKey })).deviceId;
}

describeApp("iot.IotService.UpdateFirmwareStream", (_start, shared) => {
  it.each([
    ["in one chunk", [image]],
    ["byte by byte", [...image].map((byte) => Uint8Array.of(byte))],
    ["with empty chunks between", [image.subarray(0, 5), new Uint8Array(), image.subarray(5)]],
  ])("accepts an image %s and returns the hash of the whole", async (_how, chunks) => {
    const { iot } = await shared();
    const answer = await iot.updateFirmwareStream(streamOf(headerOf(), ...chunks.map(chunk)));
    expect(answer).toMatchObject({ result: "FIRMWARE_ACCEPTED", firmwareHash: sha256(image) });
  });

  it("accepts 64 MiB for a device", async () => {
    const { iot } = await shared();
    const { stream, firmwareHash } = imageOf(64);
    const deviceId = await registerPinned(iot);
    const answer = await iot.updateFirmwareStream(stream({ deviceId, version: 1 }));
    expect(answer).toMatchObject({ result: "FIRMWARE_ACCEPTED", firmwareHash });
    expect(await findListed(iot, deviceId)).toMatchObject({ firmwareVersion: 1, firmwareHash });
  });

  it.each<[string, Part[], object]>([
    ["a stream without messages", [], invalid("header")],
    ["a chunk before the header", [chunk(image), headerOf()], invalid("header")],
    ["a second header", [headerOf(), chunk(image), headerOf()], invalid("header")],
    ["a header without an image", [headerOf()], invalid("firmware")],
    ["an empty image", [headerOf(), chunk(new Uint8Array())], invalid("firmware")],
    ["a version without a device", [headerOf({ version: 1 }), chunk(image)], fieldInvalid],
    ["neither a key nor a device", [headerOf({ vendorPublicKey: new Uint8Array() })], fieldInvalid],
  ])("rejects %s", async (_what, parts, expected) => {
    const { iot } = await shared();
    expect(await refusal(iot.updateFirmwareStream(streamOf(...parts)))).toMatchObject(expected);
  });

  it("rejects an unknown device, and a device without a vendor, before the image arrives", async () => {
    const { iot } = await shared();
    const unknown = iot.updateFirmwareStream(stalled(headerOf({ deviceId: noSuchDevice })));
    expect(await refusal(unknown)).toEqual({ code: "NotFound", reason: "DEVICE_NOT_FOUND" });
    const { deviceId } = await iot.registerDevice({});
    const keyless = headerOf({ deviceId, vendorPublicKey: new Uint8Array() });
    expect(await refusal(iot.updateFirmwareStream(stalled(keyless)))).toEqual({
      code: "FailedPrecondition",
      reason: "VENDOR_MISSING",
    });
  });

  it("does not install a partial image when the sender's connection breaks", async () => {
    const { iot, url } = await shared();
    const [broken, whole] = [await registerPinned(iot), await registerPinned(iot)];
    const sender = connectTo(url);
    const parts = async function* () {
      yield headerOf({ deviceId: broken });
      yield chunk(image);
      // The server has received the whole image by this point; only the end of the stream is missing.
      await sender.iot.getHealth({});
      sender.disconnect();
      await new Promise<void>((resolve) => onTestFinished(() => resolve()));
    };
    await failureOf(sender.iot.updateFirmwareStream(parts()));
    // A later call has finished, so the earlier one had enough time.
    await iot.updateFirmwareStream(streamOf(headerOf({ deviceId: whole }), chunk(image)));
    expect((await findListed(iot, whole)).firmwareHash).toBe(sha256(image));
    expect((await findListed(iot, broken)).firmwareHash).toBeUndefined();
  });
});

/** Registers a device that keeps its own key, and makes its readings. */
async function registerReader(iot: IotClient) {
  const device = await registerOwn(iot);
  const reading = (sequence?: number, change: object = {}): ReadingRequest => ({
    reading: { ...readingOf(device, sequence), ...change },
  });
  return { deviceId: device.deviceId, reading };
}

const tampered = { telemetry: bytesOf("something else") };

describeApp("iot.IotService.StreamTelemetry", (_start, shared) => {
  it("answers each reading before the next is sent", async () => {
    const { iot } = await shared();
    const { reading } = await registerReader(iot);
    const outgoing = createOutgoing<ReadingRequest>();
    const answers = iot.streamTelemetry(outgoing)[Symbol.asyncIterator]();
    const beforeMs = Date.now();
    for (const [sequence, verified, reason] of [
      [1, true, ""],
      [1, false, "SEQUENCE_OLD"],
      [2, true, ""],
    ] as const) {
      outgoing.send(reading(sequence));
      const { value } = await answers.next();
      expect(value).toMatchObject({ verified, reason });
      expectTimeSince(beforeMs, value.receivedAt);
    }
    outgoing.end();
    expect((await answers.next()).done).toBe(true);
  });

  it("answers 500 readings sent without waiting, in order", async () => {
    const { iot } = await shared();
    const { deviceId, reading } = await registerReader(iot);
    const readings: ReadingRequest[] = [];
    const expected: string[] = [];
    for (let i = 1; i <= 500; i++) {
      const kind = i % 10;
      readings.push(kind === 3 ? reading(i, tampered) : reading(kind === 7 ? i - 1 : i));
      expected.push(kind === 3 ? "SIGNATURE_INVALID" : kind === 7 ? "SEQUENCE_OLD" : "");
    }
    expect(await reasonsOf(iot.streamTelemetry(streamOf(...readings)))).toEqual(expected);
    expect((await findListed(iot, deviceId)).lastSeenAt).toBeDefined();
  });

  it("answers an unknown device and a signature of the wrong length in order, and continues", async () => {
    const { iot } = await shared();
    const [one, two] = [await registerReader(iot), await registerReader(iot)];
    const answers = iot.streamTelemetry(
      streamOf(
        one.reading(1),
        one.reading(2, { deviceId: noSuchDevice }),
        two.reading(1),
        one.reading(2, { signature: new Uint8Array(2419) }),
        one.reading(2, { deviceId: two.deviceId }),
        one.reading(2),
        two.reading(),
      ),
    );
    const signature = ["LENGTH_INVALID", "SIGNATURE_INVALID"];
    const expected = ["", "DEVICE_NOT_FOUND", "", ...signature, "", "SEQUENCE_REQUIRED"];
    expect(await reasonsOf(answers)).toEqual(expected);
  });

  it("answers everything before a malformed request, then fails", async () => {
    const { iot } = await shared();
    const { reading } = await registerReader(iot);
    const outgoing = createOutgoing<ReadingRequest>();
    const answers = iot.streamTelemetry(outgoing)[Symbol.asyncIterator]();
    outgoing.send(reading(1));
    expect((await answers.next()).value).toMatchObject({ verified: true });
    outgoing.send(reading(2, { sequence: 2.5 }));
    expect(await refusal(answers.next())).toEqual(invalid("reading.sequence"));
  });

  it("fails with RECORD_DAMAGED for a device whose last sequence was set back", async () => {
    const { iot, tamper } = await shared();
    const { deviceId, reading } = await registerReader(iot);
    await reasonsOf(iot.streamTelemetry(streamOf(reading(9))));
    await tamper((db) =>
      db.updateTable("iot_devices").set({ last_sequence: 1 }).where("device_id", "=", deviceId).execute(),
    );
    expect(await refusal(reasonsOf(iot.streamTelemetry(streamOf(reading(5)))))).toEqual(damaged);
  });
});

it("StreamTelemetry accepts nothing after a reading that it could not verify, so that all can be sent again", async () => {
  const accepted: unknown[] = [];
  const verify = async (_key: unknown, message: Uint8Array) => {
    if (message.at(-1) === 1) throw new Error("the server is busy");
    return true;
  };
  const checks = createReadingChecks({
    provider: { importPublicKey: () => ({}), unbounded: { verify } },
    store: { tagRecord: () => "" },
    devices: {
      find: async (deviceId: string) => ({ deviceId, owner: "ada", publicKey: new Uint8Array() }),
      acceptReading: async ({ sequence }: { sequence: number }) => void accepted.push(sequence),
    },
    now: () => new Date(),
  } as never);
  const reading = (sequence: number) => {
    const telemetry = Uint8Array.of(sequence);
    return { deviceId: "device-1", telemetry, signature: new Uint8Array(2420), sequence };
  };
  const verdicts = checks.checkStream(
    streamOf(reading(0), reading(1), reading(2), reading(3)),
    systemPrincipal,
  );
  expect((await verdicts.next()).value).toMatchObject({ reason: "" });
  await expect(verdicts.next()).rejects.toThrow("busy");
  expect(accepted).toEqual([0]);
});

describeReplicas("iot.IotService.StreamTelemetry on two servers", (startTwo) => {
  it("accepts each sequence once when streams to both race with the same readings", async () => {
    const iots = (await startTwo()).map(({ iot }) => iot);
    const { reading } = await registerReader(present(iots[0]));
    const readings = Array.from({ length: 50 }, (_, i) => reading(i));
    const outcomes = await Promise.all(
      iots.map(({ streamTelemetry }) => reasonsOf(streamTelemetry(streamOf(...readings)))),
    );
    const timesVerified = readings.map((_, i) => outcomes.filter((reasons) => reasons[i] === "").length);
    expect(Math.max(...timesVerified)).toBe(1);
    expect(timesVerified.at(-1)).toBe(1);
  });
});
