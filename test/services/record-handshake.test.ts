/** Recorded handshakes, decrypted and verified without the code that made them (RFC 8446, RFC 10024). */
import { createDecipheriv, createHash, createHmac, verify, X509Certificate } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  type HandshakeInput,
  HandshakeRecorder,
  type RecordedHandshake,
} from "../../src/services/pqc/record-handshake.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type PqcServer, startPqcServer } from "./pqc-server.ts";

/** Timeout in milliseconds for tests that start threads on busy machines. */
const timeout = 60_000;

/** What one record contains. */
interface Opened {
  readonly from: "client" | "server";
  /** ContentType (RFC 8446, section 5.1). */
  readonly type: number;
  readonly content: Buffer;
  readonly isPlain: boolean;
}

type Secrets = ReadonlyMap<string, Buffer>;

/** Reads a key log (RFC 9850), whose lines must belong to the ClientHello of this random. */
function readKeyLog(keyLog: string, clientRandom: Buffer): Secrets {
  const lines = keyLog
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" "));
  expect(new Set(lines.map(([, random]) => random))).toEqual(new Set([clientRandom.toString("hex")]));
  return new Map(lines.map(([name = "", , secret = ""]) => [name, Buffer.from(secret, "hex")]));
}

/** HKDF-Expand-Label with an empty context, for outputs of one block (RFC 8446, section 7.1). */
function expandLabel(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.of(0, length, name.length), name, Buffer.of(0)]);
  return createHmac("sha384", secret).update(info).update(Buffer.of(1)).digest().subarray(0, length);
}

/** Decrypts the records under one traffic secret, in order (RFC 8446, sections 5.2 and 5.3). */
function createOpener(secret: Buffer) {
  const key = expandLabel(secret, "key", 32);
  const iv = expandLabel(secret, "iv", 12);
  let sequence = 0;
  return (record: Buffer) => {
    const nonce = Buffer.from(iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sequence++) >>> 0, 8);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce).setAAD(record.subarray(0, 5));
    decipher.setAuthTag(record.subarray(-16));
    const inner = Buffer.concat([decipher.update(record.subarray(5, -16)), decipher.final()]);
    return { type: inner.at(-1) ?? 0, content: inner.subarray(0, -1) };
  };
}

/** Decrypts a recording. */
function openRecords({ records }: RecordedHandshake, secrets: Secrets): Opened[] {
  const openerOf = (name: string) => createOpener(secrets.get(name) ?? Buffer.alloc(0));
  const sides = {
    client: { open: openerOf("CLIENT_HANDSHAKE_TRAFFIC_SECRET"), next: openerOf("CLIENT_TRAFFIC_SECRET_0") },
    server: { open: openerOf("SERVER_HANDSHAKE_TRAFFIC_SECRET"), next: openerOf("SERVER_TRAFFIC_SECRET_0") },
  };
  return records.map(({ fromClient, bytes }) => {
    const record = Buffer.from(bytes);
    const from = fromClient ? "client" : "server";
    if (record[0] !== 23) return { from, type: record[0] ?? 0, content: record.subarray(5), isPlain: true };
    const side = sides[from];
    const opened = side.open(record);
    if (nameOf(opened) === "Finished") side.open = side.next;
    return { from, ...opened, isPlain: false };
  });
}

const messages: Readonly<Record<number, string>> = {
  1: "ClientHello",
  2: "ServerHello",
  4: "NewSessionTicket",
  8: "EncryptedExtensions",
  11: "Certificate",
  15: "CertificateVerify",
  20: "Finished",
};

function nameOf({ type, content }: Pick<Opened, "type" | "content">): string {
  if (type === 22) return messages[content[0] ?? 0] ?? "unknown message";
  if (type === 21) return `alert ${content.join(" ")}`;
  return type === 20 ? "change_cipher_spec" : (content.toString().split("\r\n")[0] ?? "");
}

/** The handshake messages up to, but not including, the one at an index: a transcript hash (section 4.4.1). */
function hashBefore(opened: readonly Opened[], index: number): Buffer {
  const handshake = opened.slice(0, index).filter(({ type }) => type === 22);
  return createHash("sha384")
    .update(Buffer.concat(handshake.map(({ content }) => content)))
    .digest();
}

const hex = (...numbers: number[]): string =>
  numbers.map((number) => number.toString(16).padStart(4, "0")).join("");

/** FIPS 203, table 3; RFC 7748, section 5; SEC 1, section 2.3.3. */
const groups = [
  { group: "X25519MLKEM768", name: "X25519MLKEM768", code: 0x11ec, client: 1184 + 32, server: 1088 + 32 },
  { group: "X25519", name: "x25519", code: 29, client: 32, server: 32 },
  { group: "P-384", name: "secp384r1", code: 24, client: 97, server: 97 },
] as const;
const certificates = [
  { certificate: "ECDSA-P256", scheme: 0x0403, digest: "sha256" },
  { certificate: "ML-DSA-65", scheme: 0x0905, digest: null },
] as const;
const rows = groups.flatMap((group) => certificates.map((certificate) => ({ ...group, ...certificate })));

describe.each(rows)("a recorded handshake with $group and $certificate", { timeout }, (row) => {
  let recording: RecordedHandshake;
  let opened: Opened[];
  let secrets: Secrets;
  const at = (name: string): number => opened.findIndex((one) => nameOf(one) === name);
  const contentOf = (name: string): Buffer => opened[at(name)]?.content ?? Buffer.alloc(0);

  beforeAll(async () => {
    const { group, certificate }: HandshakeInput = row;
    recording = await new HandshakeRecorder().record({ group, certificate });
    const hello = Buffer.from(recording.records[0]?.bytes ?? []);
    secrets = readKeyLog(recording.keyLog, hello.subarray(5 + 4 + 2, 5 + 4 + 2 + 32));
    opened = openRecords(recording, secrets);
  }, timeout);

  it("contains every record from ClientHello to close_notify, in order, and no tickets", () => {
    expect(opened.map((one) => `${one.from}: ${nameOf(one)}${one.isPlain ? " in the clear" : ""}`)).toEqual([
      "client: ClientHello in the clear",
      "server: ServerHello in the clear",
      "server: change_cipher_spec in the clear",
      "server: EncryptedExtensions",
      "server: Certificate",
      "server: CertificateVerify",
      "server: Finished",
      "client: change_cipher_spec in the clear",
      "client: Finished",
      "client: GET / HTTP/1.1",
      "server: HTTP/1.1 204 No Content",
      "server: alert 1 0",
      "client: alert 1 0",
    ]);
  });

  it("has one key share of the group in each direction, without a HelloRetryRequest", () => {
    const { code, client, server } = row;
    // ExtensionType key_share (RFC 8446, section 4.2.8): a list from the client, one entry from the server.
    const offered = hex(51, client + 6, client + 4, code, client);
    expect(contentOf("ClientHello").toString("hex")).toContain(offered);
    expect(contentOf("ServerHello").toString("hex")).toContain(hex(51, server + 4, code, server));
    expect(recording).toMatchObject({ group: row.name, cipherSuite: "TLS_AES_256_GCM_SHA384" });
  });

  it("has a certificate for a fixed name, and its key signed the transcript", () => {
    const certificate = new X509Certificate(recording.certificate);
    expect(certificate.checkHost("handshake.example")).toBe("handshake.example");
    expect(contentOf("Certificate").includes(certificate.raw)).toBe(true);
    const message = contentOf("CertificateVerify");
    expect(message.readUInt16BE(4)).toBe(row.scheme);
    const signature = message.subarray(8, 8 + message.readUInt16BE(6));
    // RFC 8446, section 4.4.3.
    const context = `${" ".repeat(64)}TLS 1.3, server CertificateVerify\0`;
    const signed = Buffer.concat([Buffer.from(context), hashBefore(opened, at("CertificateVerify"))]);
    expect(verify(row.digest, signed, certificate.publicKey, signature)).toBe(true);
  });

  it.each(["server", "client"])("has the Finished message of the %s that its secret yields", (from) => {
    const index = opened.findIndex((one) => nameOf(one) === "Finished" && one.from === from);
    const secret = secrets.get(`${from.toUpperCase()}_HANDSHAKE_TRAFFIC_SECRET`) ?? Buffer.alloc(0);
    const key = expandLabel(secret, "finished", 48);
    const expected = createHmac("sha384", key).update(hashBefore(opened, index)).digest();
    expect(opened[index]?.content.subarray(4)).toEqual(expected);
  });
});

describe("PqcService.RecordHandshake", { timeout }, () => {
  const dataDir = makeTemporaryDirectory(afterAll);
  let server: PqcServer;
  beforeAll(async () => {
    server = await startPqcServer(dataDir);
  });
  afterAll(() => server.close());

  it("records the hybrid group with an ECDSA certificate by default", async () => {
    const { group, certificate, records } = await server.pqc.recordHandshake({});
    expect([group, records.length]).toEqual(["X25519MLKEM768", 13]);
    expect(new X509Certificate(certificate).publicKey.asymmetricKeyType).toBe("ec");
  });

  it.each(["group", "certificate"])("refuses an unknown %s, and names the known ones", async (field) => {
    const error = await failureOf(server.pqc.recordHandshake({ [field]: "RSA" }));
    expect(describeRefusal(error)).toEqual(invalid(field));
    expect(error.message).toMatch(/X25519MLKEM768|ML-DSA-65/);
  });
});

describe("the thread that records handshakes", () => {
  it("is replaced at once if it ended while it was idle", { timeout }, async () => {
    const threads: Worker[] = [];
    const note = (thread: Worker): void => void threads.push(thread);
    process.on("worker", note);
    onTestFinished(() => void process.off("worker", note));
    const recorder = new HandshakeRecorder();
    await recorder.record({ group: "X25519", certificate: "" });
    await threads[0]?.terminate();
    expect(await recorder.record({ group: "P-384", certificate: "" })).toMatchObject({ group: "secp384r1" });
    expect(threads).toHaveLength(2);
  });
});

describe("a key log", () => {
  it("is written only by the thread that records handshakes", () => {
    const root = join(import.meta.dirname, "../..");
    const sources = globSync(["src/**/*.{ts,mjs}", "extensions/*/*.ts", "extensions/*/!(test)/**/*.ts"], {
      cwd: root,
    });
    expect(sources).toContain("src/server/http1-server.ts");
    const listening = sources.filter((path) =>
      /["'`]keylog["'`]/.test(readFileSync(join(root, path), "utf8")),
    );
    expect(listening).toEqual(["src/services/pqc/handshake-thread.ts"]);
  });
});

const limited = { code: "ResourceExhausted", reason: "RATE_LIMITED" };
const hybrid = { group: "X25519MLKEM768", certificate: "ECDSA-P256" };
const classical = { group: "X25519", certificate: "ECDSA-P256" };
const third = { group: "P-384", certificate: "ML-DSA-65" };

/** A recorder with a clock that the test sets, and recordings that end when the test says so. */
function createRecorder() {
  const clock = { nowMs: 0 };
  const begun: { input: unknown; end: (error?: Error) => void }[] = [];
  const record = (input: unknown): Promise<RecordedHandshake> => {
    const { promise, resolve, reject } = Promise.withResolvers<RecordedHandshake>();
    const none = { records: [], group: "", cipherSuite: "", certificate: "" };
    const recorded = { ...none, keyLog: String(begun.length) };
    begun.push({ input, end: (error) => (error === undefined ? resolve(recorded) : reject(error)) });
    return promise;
  };
  return { clock, begun, recorder: new HandshakeRecorder({ record, nowMs: () => clock.nowMs }) };
}

/** Lets everything run that waits for nothing else. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("HandshakeRecorder", () => {
  it("records the hybrid group with an ECDSA certificate by default", async () => {
    const { recorder, begun } = createRecorder();
    void recorder.record({ group: "", certificate: "" });
    void recorder.record(hybrid);
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid]);
  });

  it("answers equal calls of the next second with the same recording, and then makes another", async () => {
    const { recorder, begun, clock } = createRecorder();
    const first = recorder.record(hybrid);
    await settle();
    clock.nowMs = 5000;
    const whileRecording = recorder.record(hybrid);
    begun[0]?.end();
    await first;
    clock.nowMs = 5999;
    expect(await recorder.record(hybrid)).toBe(await first);
    expect(await whileRecording).toBe(await first);
    clock.nowMs = 6000;
    void recorder.record(hybrid);
    await settle();
    expect(begun).toHaveLength(2);
  });

  it("records one at a time", async () => {
    const { recorder, begun } = createRecorder();
    void recorder.record(hybrid);
    void recorder.record(classical);
    await settle();
    expect(begun).toHaveLength(1);
    begun[0]?.end();
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid, classical]);
  });

  it("refuses a third recording in a second, and says when to retry", async () => {
    const { recorder, begun, clock } = createRecorder();
    const both = [recorder.record(hybrid), recorder.record(classical)];
    await settle();
    expect(() => recorder.record(third)).toThrow(/two|2 handshakes a second/);
    begun[0]?.end();
    await settle();
    clock.nowMs = 100;
    begun[1]?.end();
    await Promise.all(both);
    clock.nowMs = 400;
    const refused = Promise.resolve().then(() => recorder.record(third));
    expect(await refusal(refused)).toEqual(limited);
    await expect(refused).rejects.toMatchObject({
      details: expect.arrayContaining([
        expect.objectContaining({ value: { retryDelay: expect.objectContaining({ nanos: 600_000_000 }) } }),
      ]),
    });
    clock.nowMs = 1000;
    void recorder.record(third);
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid, classical, third]);
  });

  it("goes on after a recording that fails", async () => {
    const { recorder, begun, clock } = createRecorder();
    const first = recorder.record(hybrid);
    const second = recorder.record(classical);
    await settle();
    begun[0]?.end(new Error("the thread ended"));
    await expect(first).rejects.toThrow("the thread ended");
    await settle();
    begun[1]?.end();
    expect((await second).keyLog).toBe("1");
    clock.nowMs = 1000;
    void recorder.record(hybrid);
    await settle();
    expect(begun).toHaveLength(3);
  });
});
