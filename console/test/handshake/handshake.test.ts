import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { HandshakeRecorder, handshakeGroups } from "../../../src/services/pqc/record-handshake.ts";
import { fromHex, toHex } from "../../page/values.ts";
import { changeRecord, checkRecording } from "../../page/views/handshake/checks.ts";
import { messageTypes } from "../../page/views/handshake/code-points.ts";
import { dissect, openRecords } from "../../page/views/handshake/dissect.ts";
import { type Field, findPath, findProblem, listLeaves } from "../../page/views/handshake/field.ts";
import { describeField } from "../../page/views/handshake/notes.ts";
import { deriveKeys, findSuite, openRecord } from "../../page/views/handshake/protection.ts";
import { type Reading, readHandshake } from "../../page/views/handshake/reading.ts";
import {
  type Recording,
  readRecording,
  splitRecords,
  writeRecording,
} from "../../page/views/handshake/recording.ts";
import { tsharkFields } from "./record/tshark-fields.ts";
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
    ["has a wrong direction", withRecord({ fromClient: "yes", bytes: "" }), /\[0\] is not a direction/],
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

  const noSecret = /^The key log has no SERVER_HANDSHAKE_TRAFFIC_SECRET/;
  const otherKeys = goRecordings[1]?.recording.keyLog ?? "";
  it.each([
    ["without keys", { ...recording, keyLog: "" }, noSecret],
    ["with a different connection's keys", { ...recording, keyLog: otherKeys }, noSecret],
    ["that are damaged", changeByte(4, 100, 0xff), /^Record 5 does not open with the key log's secret/],
    ["of an unknown suite", changeByte(1, suiteAt + 1, 4), /^Browsers cannot compute TLS_AES_128_CCM_SHA256/],
    [
      "without their beginning",
      { ...recording, records: recording.records.slice(1) },
      /does not begin with a ClientHello/,
    ],
    ["of an older version", changeByte(1, version + 4, 3), /^This connection uses 0x0303, TLS 1.2/],
  ])("are explained: %s", async (_, changed, sentence) => {
    expect((await openRecords(changed)).obstacle).toMatch(sentence);
  });
});

/** A field, and the name of the one around it. */
interface Named {
  readonly name: string;
  readonly hex: string;
}

function listNamed(bytes: Uint8Array, field: Field, parent = ""): Named[] {
  const own = { name: `${parent}/${field.name}`, hex: toHex(bytes.subarray(field.start, field.end)) };
  return [own, ...field.parts.flatMap((part) => listNamed(bytes, part, field.name))];
}

/** All fields of a reading, in the order of the records. */
function listAll({ records }: Pick<Reading, "records">): Named[] {
  return records.flatMap(({ plain, bytes, field }) => listNamed(plain ?? bytes, field));
}

/** The values of all fields with a name, or with a name in a parent. */
function valuesOf(all: readonly Named[], names: readonly string[]): string[] {
  return all
    .filter(({ name }) => names.some((wanted) => name === wanted || name.endsWith(`/${wanted}`)))
    .map(({ hex }) => hex);
}

/** Expects leaves without gaps or overlaps, in a field that covers its bytes. */
function expectTiled(bytes: Uint8Array, field: Field): void {
  let at = 0;
  for (const { start, end } of listLeaves(field)) {
    expect(start).toBe(at);
    expect(end).toBeGreaterThan(start);
    at = end;
  }
  expect(at).toBe(bytes.length);
}

/** Fields whose sentence would say too little about what they contain. */
const wrappers = "TLSPlaintext TLSCiphertext fragment encrypted_record TLSInnerPlaintext content";
const outer = new Set([...wrappers.split(" "), ...messageTypes.values()]);

function expectExplained({ records, opened, checks }: Reading): void {
  expect(opened.obstacle).toBeUndefined();
  for (const { bytes, field } of records) {
    expectTiled(bytes, field);
    expect(findProblem(field)).toBeUndefined();
  }
  const leaves = records.flatMap(({ field }) => listLeaves(field).map(({ start }) => findPath(field, start)));
  const inner = leaves.map((path) => path.filter(({ name }) => !outer.has(name)));
  const unexplained = inner.filter((path) => describeField(path) === undefined);
  expect(unexplained.map((path) => path.map(({ name }) => name))).toEqual([]);
  expect(checks.filter(({ holds }) => !holds)).toEqual([]);
}

describe.each(goRecordings)("a recording of Go's crypto/tls: $name", ({ recording, go, tshark }) => {
  it("is explained without a gap, with a sentence for each field, and all its checks hold", async () => {
    expectExplained(await readHandshake(recording));
  });

  it("reads as Go's own report", async () => {
    const reading = await readHandshake(recording);
    const all = listAll(reading);
    const { facts } = reading.messages.find(({ name }) => name === "ClientHello") ?? {};
    const curves: Record<string, string> = { x25519: "X25519" };
    for (const bits of [256, 384, 521]) curves[`secp${bits}r1`] = `CurveP${bits}`;
    const nameGroup = (name = "") => curves[name] ?? name;
    const valuesIn = (name: string) => reading.records.flatMap(({ field }) => listValues(field, name));
    const offered = valuesIn("NamedGroup").slice(0, go.offeredGroups.length);
    const has = (title: string) => reading.messages.some(({ name }) => name === title);
    const server = reading.messages.find(({ name }) => name === "EncryptedExtensions");
    expect(go).toMatchObject({
      cipherSuite: reading.cipherSuite,
      group: nameGroup(reading.group),
      serverName: facts?.serverName,
      alpn: server?.facts.alpn[0] ?? "",
      didResume: !has("Certificate"),
      helloRetryRequest: has("HelloRetryRequest"),
      offeredGroups: offered.map((name) => nameGroup(name.split(", ")[1])),
      exchanged: valuesIn("application data"),
    });
    // A resumed connection has no certificates; Go remembers the first connection's.
    const serials = valuesOf(all, ["serialNumber/contents"]);
    expect(serials).toEqual(go.didResume ? [] : go.serialNumbers);
  });

  for (const [theirs, ours] of Object.entries(tsharkFields)) {
    it(`reads as tshark's ${theirs}`, async () => {
      const values = tshark.map((line) => line.split(" ")).filter(([name]) => name === theirs);
      expect(valuesOf(listAll(await readHandshake(recording)), ours)).toEqual(values.map(([, hex]) => hex));
    });
  }
});

function listValues(field: Field, name: string): string[] {
  const own = field.name === name ? [field.value ?? ""] : [];
  return [...own, ...field.parts.flatMap((part) => listValues(part, name))];
}

describe.each(handshakeGroups)("a recording by this server, with %s", (group) => {
  it.each(["ECDSA-P256", "ML-DSA-65"])("and %s, is explained without a gap", async (certificate) => {
    const recorded = await new HandshakeRecorder().record({ group, certificate });
    const reading = await readHandshake({ records: splitRecords(recorded.records), keyLog: recorded.keyLog });
    expectExplained(reading);
    expect([reading.group, reading.cipherSuite]).toEqual([recorded.group, recorded.cipherSuite]);
    const claims = reading.checks.map(({ claim }) => claim);
    expect(claims).toEqual(expect.arrayContaining(["CertificateVerify", "Finished"]));
  });
});

describe("protection", () => {
  it.each([
    [4865, "aes-128-gcm"],
    [4866, "aes-256-gcm"],
    [4867, "chacha20-poly1305"],
  ])("of suite %i opens what node:crypto has sealed with %s, and nothing else", async (codePoint, name) => {
    const suite = findSuite(codePoint);
    if (suite === undefined) throw new Error("the suite is unknown");
    const secret = Uint8Array.from(randomBytes(suite.hashBytes));
    const keys = await deriveKeys(suite, secret);
    const sequence = 0x1_0000_0002;
    const nonce = Buffer.from(keys.iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ 2) >>> 0, 8);
    nonce[7] = (nonce[7] ?? 0) ^ 1;
    const cipher = createCipheriv(name as "aes-128-gcm", keys.key, nonce, { authTagLength: 16 });
    const header = Buffer.from([23, 3, 3, 0, 5 + 16]);
    cipher.setAAD(header, { plaintextLength: 5 });
    const sealed = Buffer.concat([header, cipher.update("hello"), cipher.final(), cipher.getAuthTag()]);
    const opened = await openRecord(keys, sequence, Uint8Array.from(sealed));
    expect(Buffer.from(opened ?? []).toString()).toBe("hello");
    expect(await openRecord(keys, sequence + 1, Uint8Array.from(sealed))).toBeUndefined();
  });
});

describe("a KeyUpdate", () => {
  it("changes the sender's keys, and only those", async () => {
    const [first] = goRecordings;
    const { records, keyLog } = first?.recording ?? { records: [], keyLog: "" };
    const random = toHex(records[0]?.bytes.subarray(11, 43) ?? new Uint8Array());
    const secret = fromHex(new RegExp(`CLIENT_TRAFFIC_SECRET_0 ${random} (\\w+)`).exec(keyLog)?.[1] ?? "");
    // The client has already sent two records under this secret.
    const update = seal(secret, 2, [24, 0, 0, 1, 0, 22]);
    const data = seal(expand(secret, "traffic upd", 32), 0, [104, 105, 23, 0, 0, 0]);
    const added = [update, data].map((bytes) => ({ fromClient: true, bytes }));
    const reading = await readHandshake({ records: [...records, ...added], keyLog });
    expectExplained(reading);
    expect(reading.records.slice(-2).map(({ title }) => title)).toEqual(["KeyUpdate", "application data"]);
    expect(valuesOf(listAll(reading), ["zeros"])).toEqual(["000000"]);
  });

  /** HKDF-Expand-Label (RFC 8446, section 7.1), with SHA-256 and an empty context. */
  function expand(secret: Uint8Array, label: string, length: number): Uint8Array<ArrayBuffer> {
    const info = Buffer.from(`\0${String.fromCharCode(length, 6 + label.length)}tls13 ${label}\0`);
    const digest = createHmac("sha256", secret).update(info).update(Uint8Array.of(1)).digest();
    return Uint8Array.from(digest.subarray(0, length));
  }

  function seal(secret: Uint8Array, sequence: number, inner: readonly number[]): Uint8Array<ArrayBuffer> {
    const nonce = expand(secret, "iv", 12);
    nonce[11] = (nonce[11] ?? 0) ^ sequence;
    const header = Buffer.from([23, 3, 3, 0, inner.length + 16]);
    const cipher = createCipheriv("aes-128-gcm", expand(secret, "key", 16), nonce).setAAD(header);
    const sealed = cipher.update(Uint8Array.from(inner));
    return Uint8Array.from(Buffer.concat([header, sealed, cipher.final(), cipher.getAuthTag()]));
  }
});

describe("whatever the bytes are, the fields", () => {
  /** A reproducible sequence of numbers below a limit (Numerical Recipes, section 7.1). */
  function createRandom(seed: number) {
    let state = seed;
    return (limit: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * limit);
    };
  }

  it.each(goRecordings)("cover each byte once after changes to $name", async ({ recording }) => {
    const { records } = await openRecords(recording);
    const random = createRandom(7);
    for (let round = 0; round < 60; round += 1) {
      const changed = records.map((record) => {
        const { bytes, plain } = { ...record, bytes: record.bytes.slice(), plain: record.plain?.slice() };
        for (let count = random(4); count > 0; count -= 1) {
          const target = plain ?? bytes;
          target[random(target.length)] = random(256);
        }
        return { ...record, bytes, plain };
      });
      for (const { bytes, field } of dissect(changed).records) expectTiled(bytes, field);
    }
  });

  it("cover each byte of random records once", async () => {
    const random = createRandom(11);
    for (let round = 0; round < 300; round += 1) {
      const bytes = Uint8Array.from({ length: 5 + random(300) }, () => random(256));
      bytes.set([20 + random(5), 3, 3, (bytes.length - 5) >> 8, (bytes.length - 5) & 255]);
      // Often a hello with a plausible length, so that its extensions are reached.
      if (bytes.length > 60 && random(2) === 0)
        bytes.set([22, 3, 3, bytes[3] ?? 0, bytes[4] ?? 0, 1 + random(25), 0, 0, bytes.length - 9]);
      const recording: Recording = { records: [{ fromClient: random(2) === 0, bytes }], keyLog: "" };
      for (const { field } of (await readHandshake(recording)).records) expectTiled(bytes, field);
    }
  });
});

it("takes a message in many records apart once for each of them", () => {
  // Each entry of the certificate list is five zeros.
  const message = new Uint8Array(6008);
  message.set([11, 0, 23, 116, 0, 0, 23, 112]);
  const records = Array.from({ length: 20 }, (_none, at) => {
    const content = message.subarray(at * 301, (at + 1) * 301);
    const bytes = Uint8Array.of(22, 3, 3, content.length >> 8, content.length, ...content);
    return { fromClient: false, bytes };
  });
  const cut = vi.spyOn(Array.prototype, "flatMap");
  const { messages } = dissect(records);
  const { length } = cut.mock.calls;
  cut.mockRestore();
  expect(messages).toMatchObject([{ name: "Certificate", isCut: false, pieces: { length: 20 } }]);
  expect(length).toBeLessThan(15_000);
});

const [hybrid, retried, resumed] = await Promise.all(
  goRecordings.map(({ recording }) => readHandshake(recording)),
);
if (hybrid === undefined || retried === undefined || resumed === undefined)
  throw new Error("a recording is missing");

/** Finds the first byte of a field, by the end of its path, in the first record with a title. */
function findByte(
  { records }: Reading,
  title: string,
  path: string,
): { readonly record: number; readonly at: number } {
  const names = path.split("/");
  const search = (field: Field, above: readonly string[]): number | undefined => {
    const here = [...above, field.name];
    if (names.every((name, index) => here.at(index - names.length) === name)) return field.start;
    return field.parts.map((part) => search(part, here)).find((at) => at !== undefined);
  };
  const record = records.findIndex((candidate) => candidate.title === title);
  const root = records[record]?.field;
  const at = root && search(root, []);
  if (at === undefined) throw new Error(`${title} has no field ${path}`);
  return { record, at };
}

/** The failed checks after a flipped bit: "client: Finished: decrypt_error". */
async function flip(
  reading: Reading,
  title: string,
  path: string,
  { isInside = false, mask = 1, skip = 0 } = {},
) {
  const place = findByte(reading, title, path);
  const changed = await changeRecord(reading.opened, { ...place, at: place.at + skip, mask, isInside });
  const checks = await checkRecording(changed, reading.opened);
  return checks.filter(({ holds }) => !holds).map(({ by, claim, alert }) => `${by}: ${claim}: ${alert}`);
}

const differentKeys = "client: record authentication: bad_record_mac";
const unsupported = "client: fits the ClientHello: unsupported_extension";
const unacceptable = "server: acceptable: illegal_parameter";
const unfit = "client: fits the ClientHello: illegal_parameter";
const [hello, answer, change] = ["ClientHello", "ServerHello", "ChangeCipherSpec"] as const;

describe("a bit flipped on the wire", () => {
  it.each([
    ["a hello's random", hello, "random", differentKeys],
    ["the client's ML-KEM key", hello, "ByteEncode12(t̂)", differentKeys],
    ["the client's X25519 key", hello, "X25519 public key", differentKeys],
    ["the server's ML-KEM ciphertext", answer, "c1", differentKeys],
    ["the server's legacy_version, which clients ignore", answer, "legacy_version", differentKeys],
    ["the server's choice of a session ID", answer, "legacy_session_id_echo/contents", unfit],
    ["the server's choice of a cipher suite", answer, "cipher_suite", unfit],
    ["the server's compression method", answer, "legacy_compression_method", unfit],
    ["the server's group", answer, "server_share/group", unfit],
    ["an extension not offered", answer, "key_share/extension_type", unsupported],
    ["the compression methods", hello, "legacy_compression_methods/contents", unacceptable],
    ["a length in a hello", hello, "legacy_session_id/length", "server: well-formed: decode_error"],
    ["a message type", hello, "msg_type", "server: message type: unexpected_message"],
    ["a record type", hello, "TLSPlaintext/type", "server: record header: unexpected_message"],
    [change, change, "change_cipher_spec", "client: ChangeCipherSpec: unexpected_message"],
    ["a ciphertext", "Certificate", "serialNumber/contents", differentKeys],
    ["a tag", "Certificate", "authentication tag", differentKeys],
    ["a protected record's version", "Certificate", "legacy_record_version", differentKeys],
    ["a protected record's type", "Certificate", "opaque_type", "client: record header: unexpected_message"],
  ])("fails first where its receiver notices it: %s", async (_, title = "", path = "", first = "") => {
    expect((await flip(hybrid, title, path))[0]).toBe(first);
  });

  it("in a hello makes the transcripts differ, so that signature and both Finished would fail too", async () => {
    const claims = ["client: CertificateVerify", "client: Finished", "server: Finished"];
    const failed = expect.arrayContaining(claims.map((claim) => `${claim}: decrypt_error`));
    expect(await flip(hybrid, hello, "random")).toEqual(failed);
  });

  it("in an ML-KEM key can make a coefficient too large, which the server refuses", async () => {
    const { record, at } = findByte(hybrid, hello, "ByteEncode12(t̂)");
    const bytes = hybrid.records[record]?.bytes.subarray(at) ?? new Uint8Array();
    // The upper eight bits of the second coefficient in three bytes.
    const skip = bytes.findIndex((byte, offset) => offset % 3 === 2 && (byte ^ 0xc0) > 0xd1);
    const [first] = await flip(hybrid, hello, "ByteEncode12(t̂)", { skip, mask: 0xc0 });
    expect(first).toBe(unacceptable);
  });

  it("in a resumption's ClientHello breaks the ticket's binder first", async () => {
    expect((await flip(resumed, hello, "random"))[0]).toBe("server: acceptable: decrypt_error");
  });

  it("in the version of an unprotected record is not noticed by anyone", async () => {
    expect(await flip(hybrid, hello, "legacy_record_version")).toEqual([]);
  });

  it("in a plaintext record's length leaves the receiver with the wrong bytes", async () => {
    const [first] = await flip(hybrid, hello, "TLSPlaintext/length", { skip: 1 });
    expect(first).toMatch(/^server: record header: /);
  });
});

describe("a bit flipped before encryption, by someone with the keys,", () => {
  const [badCertificate, badSignature, badFinished, badType] = [
    "client: the CA's signature: bad_certificate",
    "client: CertificateVerify: decrypt_error",
    "client: Finished: decrypt_error",
    "client: content type: unexpected_message",
  ];
  const der = "ECDSA-Sig-Value/identifier and length octets";
  it.each([
    ["in EncryptedExtensions", "EncryptedExtensions", "ProtocolName/contents", badSignature],
    ["in the certificate's name", "Certificate", "serialNumber/contents", badCertificate],
    ["in the certificate's key", "Certificate", "subjectPublicKey/contents", badCertificate],
    ["in the signature", "CertificateVerify", "r/contents", badSignature],
    ["in the type of the signature's DER", "CertificateVerify", der, badSignature],
    ["in Finished", "Finished", "verify_data", badFinished],
    ["in a record's type", "Finished", "TLSInnerPlaintext/type", badType],
  ])("passes the record's tag, and fails %s", async (_, title = "", path = "", first = "") => {
    // The last byte of a number is never a sign or a leading zero.
    const skip = path.endsWith("contents") ? 1 : 0;
    const failed = await flip(hybrid, title, path, { isInside: true, skip });
    expect(failed[0]).toBe(first);
    expect(failed.join()).not.toContain("record authentication");
  });

  it("fails at the server for the client's certificate", async () => {
    const place = { isInside: true, skip: 2 };
    const failed = await flip(retried, "CertificateVerify", "signature/contents", place);
    expect(failed[0]).toMatch(/^client: CertificateVerify/);
    const own = retried.records.findLastIndex(({ title }) => title === "CertificateVerify");
    const changed = await changeRecord(retried.opened, { record: own, at: 30, mask: 1, isInside: true });
    const [first] = (await checkRecording(changed, retried.opened)).filter(({ holds }) => !holds);
    expect([first?.by, first?.claim]).toEqual(["server", "CertificateVerify"]);
  });

  it("is not noticed in application data", async () => {
    expect(await flip(hybrid, "application data", "application data", { isInside: true })).toEqual([]);
  });
});

it("every byte of a handshake but the version of plaintext records breaks something on the wire", async () => {
  const recorded = await new HandshakeRecorder().record({ group: "X25519", certificate: "ECDSA-P256" });
  const reading = await readHandshake({ records: splitRecords(recorded.records), keyLog: recorded.keyLog });
  const unnoticed: string[] = [];
  for (const [record, { bytes, field, protection }] of reading.records.entries()) {
    const version = listLeaves(field).find(({ name }) => name === "legacy_record_version");
    const ignored = protection === undefined ? version : undefined;
    for (let at = 0; at < bytes.length; at += 13) {
      if (ignored && at >= ignored.start && at < ignored.end) continue;
      const changed = await changeRecord(reading.opened, { record, at, mask: 1, isInside: false });
      const checks = await checkRecording(changed, reading.opened);
      if (checks.every(({ holds }) => holds)) unnoticed.push(`byte ${at} of record ${record}`);
    }
  }
  expect(unnoticed).toEqual([]);
});
