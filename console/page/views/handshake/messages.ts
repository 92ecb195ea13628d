/** Reads handshake messages as fields (RFC 8446, section 4), with names as in the standard. */
import { nameGroup, nameSignatureAlgorithm } from "../../../../src/crypto/tls-names.ts";
import { toHex } from "../../values.ts";
import { readCertificate } from "./certificate.ts";
import * as codes from "./code-points.ts";
import { type Field, FieldReader, toNumber } from "./field.ts";
import { readKeyShare, readSignature } from "./key-parts.ts";

/** RFC 8446, section 4.1.3: a ServerHello with this random is a HelloRetryRequest. */
const retryRandom = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c";

/** Facts that later messages and checks need. */
interface HelloFacts {
  random: Uint8Array;
  sessionId: Uint8Array;
  versions: number[];
  cipherSuites: number[];
  compression: Uint8Array;
  groups: number[];
  signatureSchemes: number[];
  /** Key shares by group. */
  shares: Map<number, Uint8Array>;
  /** Types of its extensions. */
  extensions: number[];
  alpn: string[];
  serverName?: string;
}

export interface ReadMessage {
  readonly field: Field;
  readonly name: string;
  readonly facts: HelloFacts;
}

const showText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** @param bytes a whole message, with its header */
export function readMessage(bytes: Uint8Array): ReadMessage {
  const reader = new FieldReader(bytes);
  const facts: HelloFacts = {
    random: new Uint8Array(),
    sessionId: new Uint8Array(),
    versions: [],
    cipherSuites: [],
    compression: new Uint8Array(),
    groups: [],
    signatureSchemes: [],
    shares: new Map(),
    extensions: [],
    alpn: [],
  };
  const isRetry = bytes[0] === 2 && toHex(bytes.subarray(6, 38)) === retryRandom;
  const name = isRetry ? "HelloRetryRequest" : (codes.messageTypes.get(bytes[0] ?? -1) ?? "unknown message");
  reader.group(name, bytes.length, (inner) => {
    const type = inner.number("msg_type", 1, { show: codes.showMessageType });
    inner.number("length", 3);
    const read = bodies[type];
    if (read !== undefined) return read(inner, facts, isRetry);
    inner.rest("body");
    inner.blame("the message type is unknown");
    return undefined;
  });
  const [field = { name, start: 0, end: 0, parts: [] }] = reader.parts;
  return { field, name, facts };
}

type ReadBody = (reader: FieldReader, facts: HelloFacts, isRetry: boolean) => unknown;

const bodies: Readonly<Record<number, ReadBody>> = {
  1: (reader, facts) => {
    reader.number("legacy_version", 2, { show: codes.showVersion });
    facts.random = reader.take("random", 32, { show: toHex });
    facts.sessionId = reader.opaque("legacy_session_id", 1, { show: toHex });
    reader.list("cipher_suites", 2, (inner) => {
      facts.cipherSuites.push(inner.number("CipherSuite", 2, { show: codes.showCipherSuite }));
    });
    facts.compression = reader.opaque("legacy_compression_methods", 1, { show: toHex });
    readExtensions(reader, "ClientHello", facts);
  },
  2: (reader, facts, isRetry) => {
    facts.versions.push(reader.number("legacy_version", 2, { show: codes.showVersion }));
    facts.random = reader.take("random", 32, { show: toHex });
    facts.sessionId = reader.opaque("legacy_session_id_echo", 1, { show: toHex });
    facts.cipherSuites.push(reader.number("cipher_suite", 2, { show: codes.showCipherSuite }));
    facts.compression = reader.take("legacy_compression_method", 1, { show: toHex, kind: "framing" });
    readExtensions(reader, isRetry ? "HelloRetryRequest" : "ServerHello", facts);
  },
  4: (reader, facts) => {
    reader.number("ticket_lifetime", 4, { show: (seconds) => `${seconds} seconds` });
    reader.take("ticket_age_add", 4, { show: toHex });
    reader.opaque("ticket_nonce", 1, { show: toHex });
    reader.opaque("ticket", 2);
    readExtensions(reader, "NewSessionTicket", facts);
  },
  5: () => {},
  8: (reader, facts) => readExtensions(reader, "EncryptedExtensions", facts),
  11: (reader, facts) => {
    reader.opaque("certificate_request_context", 1, { show: toHex });
    reader.list("certificate_list", 3, (list) =>
      list.group("CertificateEntry", measureEntry(list), (entry) => {
        entry.vector("cert_data", 3, readCertificate);
        readExtensions(entry, "Certificate", facts);
      }),
    );
  },
  13: (reader, facts) => {
    reader.opaque("certificate_request_context", 1, { show: toHex });
    readExtensions(reader, "CertificateRequest", facts);
  },
  15: (reader) => {
    const scheme = reader.number("algorithm", 2, { show: codes.showSignatureScheme });
    reader.vector("signature", 2, (inner) => readSignature(inner, scheme));
    return nameSignatureAlgorithm(scheme);
  },
  20: (reader) => void reader.rest("verify_data", { kind: "proof", show: toHex }),
  24: (reader) => void reader.number("request_update", 1, { show: codes.showKeyUpdate }),
  25: (reader) => {
    reader.number("algorithm", 2, { show: codes.showCompression });
    reader.number("uncompressed_length", 3);
    reader.opaque("compressed_certificate_message", 3, { kind: "data" });
  },
};

/** Bytes of the next certificate and its extensions, each with a length before it. */
function measureEntry({ bytes, at, left }: FieldReader): number {
  const certificate = 3 + toNumber(bytes.subarray(at, at + 3));
  const extensions = 2 + toNumber(bytes.subarray(at + certificate, at + certificate + 2));
  return Math.min(certificate + extensions, left);
}

/** The message around an extension, which decides its structure. */
type Place =
  | "ClientHello"
  | "ServerHello"
  | "HelloRetryRequest"
  | "EncryptedExtensions"
  | "Certificate"
  | "CertificateRequest"
  | "NewSessionTicket";

function readExtensions(reader: FieldReader, place: Place, facts: HelloFacts): void {
  reader.list("extensions", 2, (list) => {
    const [type, size] = [
      toNumber(list.bytes.subarray(list.at, list.at + 2)),
      toNumber(list.bytes.subarray(list.at + 2, list.at + 4)),
    ];
    list.group(codes.nameExtension(type), Math.min(4 + size, Math.max(list.left, 1)), (inner) => {
      facts.extensions.push(inner.number("extension_type", 2, { show: codes.showExtensionType }));
      inner.vector("extension_data", 2, (data) => {
        if (data.left > 0) (extensions[type] ?? readOpaque)(data, place, facts);
      });
    });
  });
}

type ReadExtension = (data: FieldReader, place: Place, facts: HelloFacts) => unknown;

const readOpaque: ReadExtension = (data) => data.rest("opaque data");

function readNumbers(
  name: string,
  lengthSize: number,
  item: string,
  show: (value: number) => string,
  list?: (facts: HelloFacts) => number[],
): ReadExtension {
  return (data, _, facts) =>
    data.list(name, lengthSize, (inner) => {
      const value = inner.number(item, 2, { show });
      list?.(facts).push(value);
    });
}

const readSchemes = readNumbers(
  "supported_signature_algorithms",
  2,
  "SignatureScheme",
  codes.showSignatureScheme,
  (facts) => facts.signatureSchemes,
);

/** RFC 8446, section 4.2, and the RFCs of the other extensions. */
const extensions: Readonly<Record<number, ReadExtension>> = {
  0: (data, _, facts) =>
    data.list("server_name_list", 2, (inner) => {
      inner.number("name_type", 1, { show: codes.showNameType });
      facts.serverName = showText(inner.opaque("HostName", 2, { show: showText, kind: "data" }));
    }),
  1: (data) => data.number("max_fragment_length", 1),
  5: (data, place) => {
    data.number("status_type", 1, { show: codes.showStatusType });
    if (place === "Certificate") return data.opaque("OCSPResponse", 3);
    data.opaque("responder_id_list", 2);
    data.opaque("request_extensions", 2);
  },
  10: readNumbers("named_group_list", 2, "NamedGroup", codes.showGroup, (facts) => facts.groups),
  11: (data) =>
    data.list(
      "ec_point_format_list",
      1,
      (inner) => void inner.number("ECPointFormat", 1, { show: codes.showPointFormat }),
    ),
  13: readSchemes,
  16: (data, _, facts) =>
    data.list("protocol_name_list", 2, (inner) => {
      facts.alpn.push(showText(inner.opaque("ProtocolName", 1, { show: showText, kind: "data" })));
    }),
  27: readNumbers("algorithms", 1, "CertificateCompressionAlgorithm", codes.showCompression),
  28: (data) => data.number("RecordSizeLimit", 2),
  41: (data, place) => {
    if (place !== "ClientHello") return data.number("selected_identity", 2);
    data.list("identities", 2, (list) =>
      list.group("PskIdentity", 6 + toNumber(list.bytes.subarray(list.at, list.at + 2)), (inner) => {
        inner.opaque("identity", 2);
        inner.take("obfuscated_ticket_age", 4, { show: toHex });
      }),
    );
    data.list("binders", 2, (list) => list.opaque("PskBinderEntry", 1, { kind: "proof", show: toHex }));
  },
  42: (data) => data.number("max_early_data_size", 4),
  43: (data, place, facts) => {
    const read = (reader: FieldReader, name: string): void =>
      void facts.versions.push(reader.number(name, 2, { show: codes.showVersion }));
    if (place === "ClientHello") return data.list("versions", 1, (inner) => read(inner, "ProtocolVersion"));
    // Replaces legacy_version, which these messages read first.
    facts.versions.length = 0;
    read(data, "selected_version");
  },
  44: (data) => data.opaque("cookie", 2),
  45: (data) =>
    data.list(
      "ke_modes",
      1,
      (inner) => void inner.number("PskKeyExchangeMode", 1, { show: codes.showPskMode }),
    ),
  47: (data) => data.list("authorities", 2, (inner) => inner.opaque("DistinguishedName", 2)),
  50: readNumbers("supported_signature_algorithms", 2, "SignatureScheme", codes.showSignatureScheme),
  51: (data, place, facts) => {
    if (place === "HelloRetryRequest")
      return void facts.groups.push(data.number("selected_group", 2, { show: codes.showGroup }));
    if (place === "ServerHello") return readKeyShareEntry(data, "server_share", facts);
    data.list("client_shares", 2, (inner) => readKeyShareEntry(inner, "KeyShareEntry", facts));
  },
  65281: (data) => data.opaque("renegotiated_connection", 1),
};

function readKeyShareEntry(reader: FieldReader, name: string, facts: HelloFacts): void {
  const size = 4 + toNumber(reader.bytes.subarray(reader.at + 2, reader.at + 4));
  reader.group(name, size, (entry) => {
    const group = entry.number("group", 2, { show: codes.showGroup });
    entry.vector("key_exchange", 2, (share) => {
      facts.shares.set(group, share.bytes.subarray(share.at, share.end));
      readKeyShare(share, group, name === "server_share");
    });
    return nameGroup(group);
  });
}
