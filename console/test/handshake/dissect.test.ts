import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { HandshakeRecorder, handshakeGroups } from "../../../src/services/pqc/record-handshake.ts";
import { fromHex, toHex } from "../../page/values.ts";
import { messageTypes } from "../../page/views/handshake/code-points.ts";
import { dissect, openRecords } from "../../page/views/handshake/dissect.ts";
import { type Field, findPath, findProblem, listLeaves } from "../../page/views/handshake/field.ts";
import { describeField } from "../../page/views/handshake/notes.ts";
import { deriveKeys, findSuite, openRecord } from "../../page/views/handshake/protection.ts";
import { findShares, type Reading, readHandshake } from "../../page/views/handshake/reading.ts";
import { type Recording, splitRecords } from "../../page/views/handshake/recording.ts";
import { tsharkFields } from "./record/tshark-fields.ts";
import { goRecordings } from "./recordings.ts";

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

describe("the key shares of X25519MLKEM768", () => {
  it("are split as in RFC 10024, section 4", async () => {
    const [first] = goRecordings;
    const shares = findShares(await readHandshake(first?.recording ?? { records: [], keyLog: "" }));
    const sizes = shares.map(({ field }) =>
      field.parts.map(({ name, start, end }) => `${name}: ${end - start}`),
    );
    expect(sizes).toEqual([
      ["length: 2", "ML-KEM-768 encapsulation key: 1184", "X25519 public key: 32"],
      ["length: 2", "ML-KEM-768 ciphertext: 1088", "X25519 public key: 32"],
    ]);
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
