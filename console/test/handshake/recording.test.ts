import { describe, expect, it, vi } from "vitest";
import { openRecords } from "../../page/views/handshake/dissect.ts";
import {
  type Recording,
  readRecording,
  splitRecords,
  writeRecording,
} from "../../page/views/handshake/recording.ts";
import { goRecordings } from "./recordings.ts";

const [{ recording } = { recording: { records: [], keyLog: "" } as Recording }] = goRecordings;
const record = Uint8Array.of(22, 3, 3, 0, 2, 1, 2);
const withRecord = (value: unknown, count = 1) =>
  JSON.stringify({ records: Array(count).fill(value), keyLog: "" });
const toFile = (bytes: Uint8Array, count = 1): string =>
  withRecord({ fromClient: true, bytes: Buffer.from(bytes).toString("base64") }, count);
const otherThanTls = /client's bytes are not TLS records: at offset 0, a record would have type 71/;

describe("a file with a recording", () => {
  it("opens as it was saved", () => {
    expect(readRecording(writeRecording(recording))).toEqual(recording);
  });

  it("may be a REST answer, which omits false and has more fields", () => {
    const { records } = readRecording(
      '{"status":"success","records":[{"bytes":"FgMDAAIBAg=="}],"keyLog":"","group":"x25519"}',
    );
    expect(records).toEqual([{ fromClient: false, bytes: record }]);
  });

  it.each([
    ["is not JSON", "<html>", /^The file is not JSON\. Expected/],
    ["is null", "null", /^"records" is not a list with records/],
    ["has no records", '{"records":[],"keyLog":""}', /^"records" is not a list with records/],
    ["has no key log", '{"records":[{"bytes":"FgMDAAIBAg=="}]}', /^"keyLog" is not a text/],
    ["has a record that is no object", withRecord(null), /^records\[0\] is not a direction with bytes/],
    [
      "has a wrong direction",
      withRecord({ fromClient: "yes", bytes: "" }),
      /^records\[0\] is not a direction/,
    ],
    ["has bytes that are not base64", withRecord({ bytes: "%%" }), /^records\[0\]\.bytes is not base64/],
    ["holds something other than TLS", toFile(Buffer.from("GET / HTTP/1.1\r\n")), otherThanTls],
    ["has too long a record", toFile(Uint8Array.of(22, 3, 3, 0xff, 0xff)), /type 22 and 65535 bytes/],
    ["has too many records", toFile(record, 201), /has more than 200 records, too many/],
    ["has too many bytes", toFile(new Uint8Array(70_000).fill(22), 4), /has 280000 bytes; .* 262144/],
    ["is too long", " ".repeat(1_000_001), /^The file has more than 1000000 bytes/],
  ])("is refused in a sentence if it %s", (_, text, sentence) => {
    expect(() => readRecording(text)).toThrow(sentence);
  });
});

describe("splitRecords", () => {
  it("splits and joins what each end wrote, and keeps the order in which records begin", () => {
    const bytes = (...values: number[]) => Uint8Array.from(values);
    const chunks = [
      { fromClient: true, bytes: bytes(22, 3, 3, 0, 1, 1, 23, 3) },
      { fromClient: false, bytes: bytes(20, 3, 3, 0, 1, 1) },
      { fromClient: true, bytes: bytes(3, 0, 1, 2) },
    ];
    const found = splitRecords(chunks).map((one) => `${one.fromClient} ${one.bytes[0]} ${one.bytes.length}`);
    expect(found).toEqual(["true 22 6", "true 23 6", "false 20 6"]);
  });

  it("stops at the limit of records, however many follow", () => {
    const bytes = Uint8Array.from({ length: 5000 }, (_none, at) => (at % 5 === 0 ? 22 : 0));
    const find = vi.spyOn(Array.prototype, "findLast");
    expect(() => splitRecords([{ fromClient: true, bytes }])).toThrow("more than 200 records");
    expect(find).toHaveBeenCalledTimes(201);
    find.mockRestore();
  });
});

describe("records that stay closed", () => {
  function changeByte(at: number, index: number, value: number): Recording {
    const records = recording.records.map((one) => ({ ...one, bytes: one.bytes.slice() }));
    records[at]?.bytes.set([value], index);
    return { ...recording, records };
  }
  const version =
    recording.records[1]?.bytes.findLastIndex((byte, at, all) => byte === 43 && all[at + 4] === 4) ?? 0;
  /** Offset of the cipher suite in a ServerHello whose session ID has 32 bytes. */
  const suiteAt = 76;

  const otherKeys = goRecordings[1]?.recording.keyLog ?? "";
  it.each([
    [
      "without a key log",
      { ...recording, keyLog: "" },
      /^The key log has no SERVER_HANDSHAKE_TRAFFIC_SECRET/,
    ],
    [
      "of a different connection",
      { ...recording, keyLog: otherKeys },
      /^The key log has no SERVER_HANDSHAKE/,
    ],
    ["that are damaged", changeByte(4, 100, 0xff), /^Record 5 does not open with the key log's secret/],
    ["of an unknown suite", changeByte(1, suiteAt + 1, 4), /^Browsers cannot compute TLS_AES_128_CCM_SHA256/],
    [
      "without their beginning",
      { ...recording, records: recording.records.slice(1) },
      /^The recording does not begin with a ClientHello/,
    ],
    ["of an older version", changeByte(1, version + 4, 3), /^This connection uses 0x0303, TLS 1.2/],
  ])("are explained: %s", async (_, changed, sentence) => {
    expect((await openRecords(changed)).obstacle).toMatch(sentence);
  });
});
