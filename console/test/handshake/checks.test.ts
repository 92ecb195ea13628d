import { describe, expect, it } from "vitest";
import { HandshakeRecorder } from "../../../src/services/pqc/record-handshake.ts";
import { changeRecord, checkRecording } from "../../page/views/handshake/checks.ts";
import { type Field, listLeaves } from "../../page/views/handshake/field.ts";
import { type Reading, readHandshake } from "../../page/views/handshake/reading.ts";
import { splitRecords } from "../../page/views/handshake/recording.ts";
import { goRecordings } from "./recordings.ts";

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

describe("a bit flipped on the wire", () => {
  it.each([
    ["a hello's random", "ClientHello", "random", differentKeys],
    ["the client's ML-KEM key", "ClientHello", "ByteEncode12(t̂)", differentKeys],
    ["the client's X25519 key", "ClientHello", "X25519 public key", differentKeys],
    ["the server's ML-KEM ciphertext", "ServerHello", "c1", differentKeys],
    ["the server's legacy_version, which clients ignore", "ServerHello", "legacy_version", differentKeys],
    [
      "the server's choice of a session ID",
      "ServerHello",
      "legacy_session_id_echo/contents",
      "client: fits the ClientHello: illegal_parameter",
    ],
    [
      "the server's choice of a cipher suite",
      "ServerHello",
      "cipher_suite",
      "client: fits the ClientHello: illegal_parameter",
    ],
    [
      "the server's compression method",
      "ServerHello",
      "legacy_compression_method",
      "client: fits the ClientHello: illegal_parameter",
    ],
    [
      "the server's group",
      "ServerHello",
      "server_share/group",
      "client: fits the ClientHello: illegal_parameter",
    ],
    [
      "an extension that the client did not offer",
      "ServerHello",
      "key_share/extension_type",
      "client: fits the ClientHello: unsupported_extension",
    ],
    [
      "the offer of compression methods",
      "ClientHello",
      "legacy_compression_methods/contents",
      "server: acceptable: illegal_parameter",
    ],
    ["a length in a hello", "ClientHello", "legacy_session_id/length", "server: well-formed: decode_error"],
    ["a message type", "ClientHello", "msg_type", "server: message type: unexpected_message"],
    ["a record type", "ClientHello", "TLSPlaintext/type", "server: record header: unexpected_message"],
    [
      "ChangeCipherSpec",
      "ChangeCipherSpec",
      "change_cipher_spec",
      "client: ChangeCipherSpec: unexpected_message",
    ],
    ["a ciphertext", "Certificate", "serialNumber/contents", differentKeys],
    ["a tag", "Certificate", "authentication tag", differentKeys],
    [
      "a protected record's version, which the tag covers",
      "Certificate",
      "legacy_record_version",
      differentKeys,
    ],
    ["a protected record's type", "Certificate", "opaque_type", "client: record header: unexpected_message"],
  ] as const)("fails first where its receiver notices it: %s", async (_, title, path, first) => {
    expect((await flip(hybrid, title, path))[0]).toBe(first);
  });

  it("in a hello makes the transcripts differ, so that signature and both Finished would fail too", async () => {
    expect(await flip(hybrid, "ClientHello", "random")).toEqual(
      expect.arrayContaining([
        "client: CertificateVerify: decrypt_error",
        "client: Finished: decrypt_error",
        "server: Finished: decrypt_error",
      ]),
    );
  });

  it("in an ML-KEM key can make a coefficient too large, which the server refuses", async () => {
    const { record, at } = findByte(hybrid, "ClientHello", "ByteEncode12(t̂)");
    const bytes = hybrid.records[record]?.bytes ?? new Uint8Array();
    // The upper eight bits of the second coefficient in three bytes.
    const skip =
      Array.from({ length: 384 }, (_, index) => 3 * index + 2).find(
        (offset) => ((bytes[at + offset] ?? 0) ^ 0xc0) > 0xd1,
      ) ?? 2;
    const failed = await flip(hybrid, "ClientHello", "ByteEncode12(t̂)", { skip, mask: 0xc0 });
    expect(failed[0]).toBe("server: acceptable: illegal_parameter");
  });

  it("in a resumption's ClientHello breaks the ticket's binder first", async () => {
    expect((await flip(resumed, "ClientHello", "random"))[0]).toBe("server: acceptable: decrypt_error");
  });

  it("in the version of an unprotected record is not noticed by anyone", async () => {
    expect(await flip(hybrid, "ClientHello", "legacy_record_version")).toEqual([]);
  });

  it("in a plaintext record's length leaves the receiver with the wrong bytes", async () => {
    const [first] = await flip(hybrid, "ClientHello", "TLSPlaintext/length", { skip: 1 });
    expect(first).toMatch(/^server: record header: /);
  });
});

describe("a bit flipped before encryption, by someone with the keys,", () => {
  it.each([
    [
      "in EncryptedExtensions",
      "EncryptedExtensions",
      "ProtocolName/contents",
      "client: CertificateVerify: decrypt_error",
    ],
    [
      "in the certificate's name",
      "Certificate",
      "serialNumber/contents",
      "client: the CA's signature: bad_certificate",
    ],
    [
      "in the certificate's key",
      "Certificate",
      "subjectPublicKey/contents",
      "client: the CA's signature: bad_certificate",
    ],
    ["in the signature", "CertificateVerify", "r/contents", "client: CertificateVerify: decrypt_error"],
    [
      "in the type of the signature's DER",
      "CertificateVerify",
      "ECDSA-Sig-Value/identifier and length octets",
      "client: CertificateVerify: decrypt_error",
    ],
    ["in Finished", "Finished", "verify_data", "client: Finished: decrypt_error"],
    [
      "in a record's inner type",
      "Finished",
      "TLSInnerPlaintext/type",
      "client: content type: unexpected_message",
    ],
  ] as const)("passes the record's tag, and fails %s", async (_, title, path, first) => {
    // The last byte of a number is never a sign or a leading zero.
    const failed = await flip(hybrid, title, path, {
      isInside: true,
      skip: path.endsWith("contents") ? 1 : 0,
    });
    expect(failed[0]).toBe(first);
    expect(failed.join()).not.toContain("record authentication");
  });

  it("fails at the server for the client's certificate", async () => {
    const failed = await flip(retried, "CertificateVerify", "signature/contents", {
      isInside: true,
      skip: 2,
    });
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

describe("every byte of a handshake", () => {
  it("but the version of plaintext records breaks something on the wire", async () => {
    const recorded = await new HandshakeRecorder().record({ group: "X25519", certificate: "ECDSA-P256" });
    const reading = await readHandshake({ records: splitRecords(recorded.records), keyLog: recorded.keyLog });
    for (const [record, { bytes, field, protection }] of reading.records.entries()) {
      const ignored =
        protection === undefined
          ? listLeaves(field).find(({ name }) => name === "legacy_record_version")
          : undefined;
      for (let at = 0; at < bytes.length; at += 13) {
        if (ignored && at >= ignored.start && at < ignored.end) continue;
        const changed = await changeRecord(reading.opened, { record, at, mask: 1, isInside: false });
        const checks = await checkRecording(changed, reading.opened);
        expect(
          checks.some(({ holds }) => !holds),
          `byte ${at} of record ${record}`,
        ).toBe(true);
      }
    }
  });
});
