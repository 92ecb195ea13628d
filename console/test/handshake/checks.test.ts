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
    [
      "an extension that the client did not offer",
      ...[answer, "key_share/extension_type", "client: fits the ClientHello: unsupported_extension"],
    ],
    [
      "the offer of compression methods",
      ...[hello, "legacy_compression_methods/contents", "server: acceptable: illegal_parameter"],
    ],
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
    expect(await flip(hybrid, hello, "random")).toEqual(
      expect.arrayContaining(claims.map((claim) => `${claim}: decrypt_error`)),
    );
  });

  it("in an ML-KEM key can make a coefficient too large, which the server refuses", async () => {
    const { record, at } = findByte(hybrid, hello, "ByteEncode12(t̂)");
    const bytes = hybrid.records[record]?.bytes.subarray(at) ?? new Uint8Array();
    // The upper eight bits of the second coefficient in three bytes.
    const skip = bytes.findIndex((byte, offset) => offset % 3 === 2 && (byte ^ 0xc0) > 0xd1);
    const [first] = await flip(hybrid, hello, "ByteEncode12(t̂)", { skip, mask: 0xc0 });
    expect(first).toBe("server: acceptable: illegal_parameter");
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
  const [badCertificate, badSignature, badFinished] = [
    "client: the CA's signature: bad_certificate",
    "client: CertificateVerify: decrypt_error",
    "client: Finished: decrypt_error",
  ];
  const der = "ECDSA-Sig-Value/identifier and length octets";
  it.each([
    ["in EncryptedExtensions", "EncryptedExtensions", "ProtocolName/contents", badSignature],
    ["in the certificate's name", "Certificate", "serialNumber/contents", badCertificate],
    ["in the certificate's key", "Certificate", "subjectPublicKey/contents", badCertificate],
    ["in the signature", "CertificateVerify", "r/contents", badSignature],
    ["in the type of the signature's DER", "CertificateVerify", der, badSignature],
    ["in Finished", "Finished", "verify_data", badFinished],
    [
      "in a record's inner type",
      ...["Finished", "TLSInnerPlaintext/type", "client: content type: unexpected_message"],
    ],
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
