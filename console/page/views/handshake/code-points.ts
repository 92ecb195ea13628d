/** Names of TLS code points in IANA's spelling (RFC 8446, appendix B, and later RFCs), and their display. */
import { nameGroup, nameSignatureAlgorithm } from "../../../../src/crypto/tls-names.ts";

type Names = ReadonlyMap<number, string>;

/** @param text numbers, each with a name, separated by commas */
function parseNames(text: string): Names {
  return new Map(
    text.split(",").map((entry) => {
      const [, number, name = ""] = /(\d+) (.+)/.exec(entry) ?? [];
      return [Number(number), name];
    }),
  );
}

const contentTypes = parseNames("20 change_cipher_spec, 21 alert, 22 handshake, 23 application_data");

export const messageTypes = parseNames(`1 ClientHello, 2 ServerHello, 4 NewSessionTicket, 5 EndOfEarlyData,
  8 EncryptedExtensions, 11 Certificate, 13 CertificateRequest, 15 CertificateVerify, 20 Finished, 24 KeyUpdate,
  25 CompressedCertificate`);

const extensionTypes = parseNames(`0 server_name, 1 max_fragment_length, 5 status_request,
  10 supported_groups, 11 ec_point_formats, 13 signature_algorithms, 16 application_layer_protocol_negotiation,
  18 signed_certificate_timestamp, 21 padding, 22 encrypt_then_mac, 23 extended_master_secret,
  27 compress_certificate, 28 record_size_limit, 34 delegated_credential, 35 session_ticket, 41 pre_shared_key,
  42 early_data, 43 supported_versions, 44 cookie, 45 psk_key_exchange_modes, 47 certificate_authorities,
  48 oid_filters, 49 post_handshake_auth, 50 signature_algorithms_cert, 51 key_share, 17613 application_settings,
  51764 trust_anchors, 65037 encrypted_client_hello, 65281 renegotiation_info`);

const cipherSuites = parseNames(`4865 TLS_AES_128_GCM_SHA256, 4866 TLS_AES_256_GCM_SHA384,
  4867 TLS_CHACHA20_POLY1305_SHA256, 4868 TLS_AES_128_CCM_SHA256, 4869 TLS_AES_128_CCM_8_SHA256,
  47 TLS_RSA_WITH_AES_128_CBC_SHA, 51 TLS_DHE_RSA_WITH_AES_128_CBC_SHA, 53 TLS_RSA_WITH_AES_256_CBC_SHA,
  57 TLS_DHE_RSA_WITH_AES_256_CBC_SHA, 60 TLS_RSA_WITH_AES_128_CBC_SHA256, 61 TLS_RSA_WITH_AES_256_CBC_SHA256,
  103 TLS_DHE_RSA_WITH_AES_128_CBC_SHA256, 107 TLS_DHE_RSA_WITH_AES_256_CBC_SHA256,
  158 TLS_DHE_RSA_WITH_AES_128_GCM_SHA256, 159 TLS_DHE_RSA_WITH_AES_256_GCM_SHA384,
  49187 TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, 49188 TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384,
  49191 TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, 49192 TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384,
  52394 TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256, 156 TLS_RSA_WITH_AES_128_GCM_SHA256,
  157 TLS_RSA_WITH_AES_256_GCM_SHA384, 255 TLS_EMPTY_RENEGOTIATION_INFO_SCSV,
  49161 TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, 49162 TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
  49171 TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, 49172 TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
  49195 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, 49196 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
  49199 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, 49200 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
  52392 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, 52393 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256`);

export const alerts =
  parseNames(`0 close_notify, 10 unexpected_message, 20 bad_record_mac, 22 record_overflow,
  40 handshake_failure, 42 bad_certificate, 45 certificate_expired, 46 certificate_unknown, 47 illegal_parameter,
  48 unknown_ca, 50 decode_error, 51 decrypt_error, 70 protocol_version, 80 internal_error,
  86 inappropriate_fallback, 90 user_canceled, 109 missing_extension, 110 unsupported_extension,
  112 unrecognized_name, 116 certificate_required, 120 no_application_protocol`);

/** Shows a number of one byte: "22, handshake". */
const show8 = (names: Names) => (value: number) => `${value}, ${names.get(value) ?? "unknown"}`;

/** A number that clients send so that servers keep ignoring unknown ones (RFC 8701, section 2). */
export const isGrease = (value: number): boolean =>
  (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);

/** Shows a number of two bytes: "0x11ec, X25519MLKEM768"; "0x4a4a, GREASE". */
const show16 = (name: (value: number) => string | undefined) => (value: number) => {
  const hex = `0x${value.toString(16).padStart(4, "0")}`;
  const known = name(value) ?? hex;
  return `${hex}, ${known === hex ? (isGrease(value) ? "GREASE" : "unknown") : known}`;
};
const show16From = (names: Names) => show16((value) => names.get(value));

export const showContentType = show8(contentTypes);
export const showMessageType = show8(messageTypes);
export const showExtensionType = show16From(extensionTypes);
export const showVersion = show16From(parseNames("769 TLS 1.0, 770 TLS 1.1, 771 TLS 1.2, 772 TLS 1.3"));
export const showCipherSuite = show16From(cipherSuites);
export const showGroup = show16(nameGroup);
export const showSignatureScheme = show16(nameSignatureAlgorithm);
export const showAlertLevel = show8(parseNames("1 warning, 2 fatal"));
export const showAlert = show8(alerts);
export const showPskMode = show8(parseNames("0 psk_ke, 1 psk_dhe_ke"));
export const showKeyUpdate = show8(parseNames("0 update_not_requested, 1 update_requested"));
export const showPointFormat = show8(
  parseNames("0 uncompressed, 1 ansiX962_compressed_prime, 2 ansiX962_compressed_char2"),
);
export const showStatusType = show8(parseNames("1 ocsp"));
export const showNameType = show8(parseNames("0 host_name"));
export const showCompression = show16From(parseNames("1 zlib, 2 brotli, 3 zstd"));
export const nameExtension = (type: number): string =>
  extensionTypes.get(type) ?? (isGrease(type) ? "GREASE" : "Extension");
export const nameCipherSuite = (value: number): string => cipherSuites.get(value) ?? showCipherSuite(value);
