/**
 * What both ends check, in order, and which check a changed byte breaks first (RFC 8446). Signatures, Finished
 * and record authentication are computed. Both ends derive their keys from the hellos and a secret that no
 * recording has: if they saw different hellos, that follows without computation.
 */
import { areEqual, toHex, toUtf8 } from "../../values.ts";
import * as codes from "./code-points.ts";
import { dissect, type Message, type Opened, type OpenRecord, open } from "./dissect.ts";
import { findProblem, toNumber } from "./field.ts";
import { computeFinished, computeHash } from "./protection.ts";
import { findField, verifySignature } from "./verify.ts";

export interface Check {
  /** The end that checks. */
  readonly by: "client" | "server";
  /** Index of the record. */
  readonly record: number;
  readonly claim: string;
  readonly holds: boolean;
  /** The reason why it does not hold, or the code that computed it. */
  readonly found: string;
  /** The alert that the end sends (RFC 8446, section 6.2). */
  readonly alert?: string | undefined;
}

/** A change of one byte: on the wire, or inside the protection by someone with the keys. */
export interface ByteFlip {
  readonly record: number;
  /** Offset in the record. */
  readonly at: number;
  readonly mask: number;
  readonly isInside: boolean;
}

const flip = (bytes: Uint8Array<ArrayBuffer>, { at, mask }: ByteFlip) =>
  bytes.map((byte, index) => (index === at ? byte ^ mask : byte));

/** Changes a byte; the changed record is opened again with its keys. */
export async function changeRecord(opened: Opened, change: ByteFlip): Promise<Opened> {
  const records = await Promise.all(
    opened.records.map(async (record, index) => {
      if (index !== change.record) return record;
      if (!change.isInside || record.plain === undefined)
        return open({ ...record, bytes: flip(record.bytes, change) });
      return { ...record, plain: flip(record.plain, change) };
    }),
  );
  return { ...opened, records };
}

/** Why a check does not hold, and the alert that follows. */
type Refusal = readonly [found: string, alert?: string];

/**
 * @param opened the records as the receivers see them
 * @param original the records as the senders wrote them
 */
export async function checkRecording(opened: Opened, original = opened): Promise<Check[]> {
  const checks: Check[] = [];
  const { records, messages } = dissect(opened.records);
  const sent = dissect(original.records);
  const transcript = createTranscript(opened);
  const certificates = new Map<boolean, Message>();
  let hello: Message | undefined;
  /** Whether the ends have seen different hellos, and so have different keys. */
  let isSplit = false;

  for (const [index, record] of records.entries()) {
    const by = record.fromClient ? "server" : "client";
    const add = (claim: string, refusal?: Refusal, found = ""): void => {
      const [problem = found, alert] = refusal ?? [];
      checks.push({ by, record: index, claim, holds: refusal === undefined, found: problem, alert });
    };
    const header = checkHeader(record.bytes, original.records[index]?.bytes ?? record.bytes);
    if (header !== undefined) add("record header", header);
    if (record.protection !== undefined) add("record authentication", findForgery(record, isSplit, by));
    const ended = messages.filter(({ pieces }) => pieces.at(-1)?.record === index);
    if (
      record.title !== sent.records[index]?.title &&
      record.protection !== undefined &&
      ended.length === 0
    ) {
      if (record.plain !== undefined)
        add("content type", ["This content is not allowed here.", "unexpected_message"]);
    } else if (record.bytes[0] === 20 && toHex(record.bytes.subarray(5)) !== "01")
      add("ChangeCipherSpec", ["The only allowed content is one byte 1 (section 5).", "unexpected_message"]);

    for (const message of ended) {
      const { name, fromClient, bytes } = message;
      const before = sent.messages.find(
        ({ pieces: [first] }) =>
          first?.record === message.pieces[0]?.record && first?.at === message.pieces[0]?.at,
      );
      const isChanged = before === undefined || !areEqual(before.bytes, bytes);
      const problem = findProblem(message.field);
      if (before !== undefined && before.bytes[0] !== bytes[0])
        add("message type", [`${before.name} is expected here.`, "unexpected_message"]);
      else if (message.isCut)
        add("well-formed", [
          `${name} claims more bytes than there are, and its receiver waits for the rest.`,
        ]);
      else if (problem !== undefined) add("well-formed", [`${name}: ${problem}.`, "decode_error"]);
      else if (name === "ClientHello")
        add("acceptable", isChanged ? findRefusal(message, hello ? [] : sent.messages) : undefined);
      else if (hello !== undefined && bytes[0] === 2)
        add("fits the ClientHello", findMismatch(hello, message));
      else if (name === "Certificate" && isChanged)
        add("the CA's signature", ["The certificate is not what its CA has signed.", "bad_certificate"]);
      else if (name === "CertificateVerify") {
        const verdict = await verifyTranscript(
          message,
          certificates.get(fromClient),
          await transcript.hash(),
        );
        if (verdict?.holds) add(name, undefined, verdict.by);
        else if (verdict)
          add(name, [`The signature over the transcript is not valid, says ${verdict.by}.`, "decrypt_error"]);
      } else if (name === "Finished") {
        const computed = await computeFinished(opened, fromClient, await transcript.hash());
        if (computed !== undefined)
          add(
            name,
            areEqual(computed, bytes.subarray(4))
              ? undefined
              : ["The HMAC does not match this end's transcript.", "decrypt_error"],
          );
      }
      if (name === "ClientHello") hello = message;
      if (name === "Certificate") certificates.set(fromClient, message);
      await transcript.add(message);
      isSplit ||=
        isChanged &&
        (toNumber(bytes.subarray(0, 1)) <= 2 || toNumber(before?.bytes.subarray(0, 1) ?? bytes) <= 2);
    }
  }
  return checks;
}

/** The messages that both ends hash (RFC 8446, section 4.4.1). */
function createTranscript({ suite }: Opened) {
  let bytes: number[] = [];
  const hash = async () => suite && computeHash(suite, Uint8Array.from(bytes));
  return {
    hash,
    async add({ name, bytes: added }: Message): Promise<void> {
      if (name === "NewSessionTicket" || name === "KeyUpdate") return;
      // A hash replaces the first ClientHello.
      const first = name === "HelloRetryRequest" ? await hash() : undefined;
      if (first !== undefined) bytes = [254, 0, 0, first.length, ...first];
      for (const byte of added) bytes.push(byte);
    },
  };
}

/** Why a receiver rejects a record by its header. */
function checkHeader(bytes: Uint8Array, wire: Uint8Array): Refusal | undefined {
  if (bytes[0] !== wire[0])
    return [`Type ${codes.showContentType(bytes[0] ?? 0)} is not allowed here.`, "unexpected_message"];
  const [claimed, length] = [toNumber(bytes.subarray(3, 5)), bytes.length - 5];
  if (claimed === length) return undefined;
  if (claimed > 2 ** 14 + 256)
    return [`${claimed} bytes are more than a record may have (section 5.2).`, "record_overflow"];
  if (claimed > length)
    return [`The receiver waits for ${claimed - length} bytes more, and takes them from the next record.`];
  return [
    `The receiver takes ${claimed} bytes as the record, and the other ${length - claimed} as the next header.`,
    "unexpected_message",
  ];
}

function findForgery({ plain }: OpenRecord, isSplit: boolean, by: Check["by"]): Refusal | undefined {
  if (isSplit)
    return [
      `The ${by} has different keys: both ends derive them from the hellos, and saw different ones.`,
      "bad_record_mac",
    ];
  return plain === undefined
    ? ["The authentication tag does not match header and ciphertext.", "bad_record_mac"]
    : undefined;
}

/** Why a server refuses a changed ClientHello. */
function findRefusal({ facts }: Message, sent: readonly Message[]): Refusal | undefined {
  if (!facts.versions.includes(0x0304)) return ["It no longer offers TLS 1.3.", "protocol_version"];
  if (toHex(facts.compression) !== "00")
    return ["legacy_compression_methods must be one byte 0 (section 4.1.2).", "illegal_parameter"];
  const answer = sent.find(({ name }) => name === "ServerHello");
  if (answer?.facts.extensions.includes(41))
    return [
      "The binder in pre_shared_key is an HMAC over this ClientHello, and no longer matches.",
      "decrypt_error",
    ];
  const [group = 0] = answer?.facts.shares.keys() ?? [];
  const offset = { 4587: 65, 4588: 0 }[group];
  const share = facts.shares.get(group);
  if (offset === undefined || share === undefined || isReduced(share.subarray(offset, offset + 1152)))
    return undefined;
  return [
    "The ML-KEM encapsulation key fails the modulus check (FIPS 203, section 7.2).",
    "illegal_parameter",
  ];
}

/** FIPS 203, section 7.2: every 12-bit coefficient is below the modulus. */
function isReduced(key: Uint8Array): boolean {
  for (let at = 0; at + 2 < key.length; at += 3) {
    const [low = 0, middle = 0, high = 0] = key.subarray(at, at + 3);
    if (low + 256 * (middle & 15) >= 3329 || (middle >> 4) + 16 * high >= 3329) return false;
  }
  return true;
}

/** Why a client refuses a ServerHello or HelloRetryRequest (RFC 8446, sections 4.1.3, 4.1.4 and 4.2). */
function findMismatch({ facts: offer }: Message, { facts, name }: Message): Refusal | undefined {
  const illegal = (found: string): Refusal => [found, "illegal_parameter"];
  const foreign = facts.extensions.find((type) => !offer.extensions.includes(type) && type !== 44);
  if (foreign !== undefined)
    return [
      `The client did not offer the extension ${codes.showExtensionType(foreign)}.`,
      "unsupported_extension",
    ];
  const misplaced = facts.extensions.find((type) => ![41, 43, 44, 51].includes(type));
  if (misplaced !== undefined)
    return illegal(`The extension ${codes.showExtensionType(misplaced)} is not allowed here.`);
  if (!offer.versions.includes(facts.versions[0] ?? 0))
    return illegal("The client did not offer this version.");
  if (!areEqual(facts.sessionId, offer.sessionId))
    return illegal("legacy_session_id_echo is not what the client sent.");
  if (!offer.cipherSuites.includes(facts.cipherSuites[0] ?? 0))
    return illegal("The client did not offer this cipher suite.");
  if (facts.compression[0] !== 0) return illegal("legacy_compression_method must be 0.");
  const [group] = name === "ServerHello" ? facts.shares.keys() : facts.groups;
  const isOffered =
    group === undefined || (name === "ServerHello" ? offer.shares.has(group) : offer.groups.includes(group));
  return isOffered ? undefined : illegal(`The client did not offer the group ${codes.showGroup(group)}.`);
}

/** RFC 8446, section 4.4.3; undefined if something is missing. */
async function verifyTranscript(
  { fromClient, field, bytes }: Message,
  certificate: Message | undefined,
  hash: Uint8Array | undefined,
) {
  const key = findField(certificate?.field, "subjectPublicKeyInfo");
  const signature = findField(field, "signature");
  if (certificate === undefined || key === undefined || signature === undefined || hash === undefined)
    return undefined;
  const context = `${" ".repeat(64)}TLS 1.3, ${fromClient ? "client" : "server"} CertificateVerify\0`;
  return verifySignature({
    scheme: toNumber(bytes.subarray(4, 6)),
    publicKeyInfo: certificate.bytes.slice(key.start, key.end),
    signature: bytes.slice(signature.start + 2, signature.end),
    content: Uint8Array.of(...toUtf8(context), ...hash),
  });
}
