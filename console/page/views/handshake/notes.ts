/** One sentence for each kind of field. Sections without a document are in RFC 8446. */

const notes: Readonly<Record<string, string>> = {
  // Records, section 5.
  TLSPlaintext:
    "A record without protection: a header of five bytes, and a fragment of a message (section 5.1).",
  TLSCiphertext: "A protected record, which looks like application data from outside (section 5.2).",
  type: "What the record carries (section 5.1); in a protected record, its real type, behind the content (section 5.2).",
  opaque_type: "Always 23, application_data, so that the real type stays hidden (section 5.2).",
  legacy_record_version:
    "Fixed for old middleboxes, and ignored (section 5.1); in a protected record, the tag covers it.",
  length: "How many bytes follow.",
  fragment: "What the record carries (section 5.1).",
  encrypted_record:
    "The ciphertext and its tag (section 5.2). Shown decrypted: the cipher keeps every byte's position.",
  ciphertext: "Encrypted bytes that the key log cannot open.",
  TLSInnerPlaintext: "Content, real type and padding, as the sender encrypted them (section 5.2).",
  content: "The decrypted content.",
  zeros: "Padding that hides the length of the content (section 5.4).",
  "authentication tag":
    "Computed over header and ciphertext: one changed bit, and the receiver ends the connection (section 5.2).",
  change_cipher_spec: "Sent only so that old middleboxes take the connection for TLS 1.2 (appendix D.4).",
  level: "A leftover: the description alone says how severe an alert is (section 6).",
  description: "Why the alert is sent; close_notify ends a connection in order (section 6.1).",
  "application data": "What the handshake is for: bytes of the application (section 5).",
  "unknown content": "Content of a type that RFC 8446 does not define.",
  "unexpected bytes": "Bytes that the format does not allow here.",
  body: "The content of an unknown message.",
  "unknown message": "A message of a type that RFC 8446 does not define.",
  "opaque data": "The content of an extension that this page does not take apart.",
  // Messages, section 4.
  ClientHello:
    "The client's offer: versions, cipher suites, groups, and key shares in advance (section 4.1.2).",
  ServerHello:
    "The server's choice, and its key share. From here on, every message is encrypted; ChangeCipherSpec is none (section 4.1.3).",
  HelloRetryRequest:
    "The server asks for a key share of another group; it is a ServerHello with a special random (section 4.1.4).",
  EncryptedExtensions: "Answers to extensions that the keys do not depend on (section 4.3.1).",
  CertificateRequest: "The server asks the client for a certificate (section 4.3.2).",
  Certificate:
    "A certificate chain (section 4.4.2), or one certificate in it: a signed public key (RFC 5280, section 4.1).",
  CertificateVerify:
    "A signature over all messages so far proves that the sender has the certificate's key (section 4.4.3).",
  Finished: "An HMAC over all messages so far: both ends saw the same handshake (section 4.4.4).",
  NewSessionTicket: "A ticket with which the client can resume this session later (section 4.6.1).",
  KeyUpdate: "The sender moves to new keys (section 4.6.3).",
  EndOfEarlyData: "The client's early data ends (section 4.5).",
  CompressedCertificate: "A compressed Certificate message (RFC 8879).",
  msg_type: "Which handshake message this is (section 4).",
  legacy_version:
    "Says TLS 1.2, because old servers fail at higher numbers; the real version is in supported_versions (section 4.1.2).",
  random:
    "32 random bytes, or a fixed value that marks a HelloRetryRequest (section 4.1.3). The key log finds its lines by the client's.",
  legacy_session_id:
    "Random bytes that make the connection look like a resumed TLS 1.2 session (appendix D.4).",
  legacy_session_id_echo: "The client's legacy_session_id again (section 4.1.3).",
  cipher_suites: "Ciphers with their hash, best first (section 4.1.2).",
  CipherSuite: "A cipher for the records, and a hash for the key schedule (appendix B.4).",
  cipher_suite: "The cipher and the hash of this connection (section 4.1.3).",
  legacy_compression_methods: "One byte 0: TLS 1.3 does not compress (section 4.1.2).",
  legacy_compression_method: "Always 0 (section 4.1.3).",
  extensions: "What the fixed fields have no room for, each with type and length (section 4.2).",
  Extension:
    "An extension: in a handshake, a type with data (section 4.2); in a certificate, an identifier with a value (RFC 5280).",
  GREASE: "An extension without meaning, so that servers keep ignoring what they do not know (RFC 8701).",
  extension_type: "The extension's number in IANA's registry (section 4.2).",
  extension_data: "The extension's content (section 4.2).",
  server_name:
    "The host that the client asks for, in the clear (RFC 6066, section 3); the server confirms it with an empty one.",
  HostName: "The host name, in ASCII (RFC 6066, section 3).",
  max_fragment_length: "A limit for the size of records (RFC 6066, section 4).",
  status_request: "The client asks for a fresh proof that the certificate is not revoked (section 4.4.2.1).",
  OCSPResponse: "The responder's signed answer (RFC 6960).",
  supported_groups: "Groups for the key exchange, best first (section 4.2.7).",
  NamedGroup: "A group; those with MLKEM in their names withstand quantum computers (RFC 10024, section 7).",
  ec_point_formats: "For TLS 1.2: how points of elliptic curves are written (RFC 8422, section 5.1.2).",
  signature_algorithms:
    "Algorithms whose signatures the sender verifies, in CertificateVerify and, without a separate list, in certificates (section 4.2.3).",
  signature_algorithms_cert:
    "Algorithms whose signatures the sender verifies in certificates (section 4.2.3).",
  SignatureScheme: "An algorithm with its hash; mldsa65 withstands quantum computers (section 4.2.3).",
  application_layer_protocol_negotiation:
    "Protocols above TLS: the client offers some, and the server chooses one (RFC 7301).",
  ProtocolName: "A protocol above TLS: h2 is HTTP/2 (RFC 7301, section 6).",
  signed_certificate_timestamp:
    "The client asks for proof that the certificate is publicly logged (RFC 6962, section 3.3.1).",
  padding: "Zeros that make the ClientHello longer, around bugs of old middleboxes (RFC 7685).",
  encrypt_then_mac: "For TLS 1.2: a safer order of encryption and MAC (RFC 7366).",
  extended_master_secret: "For TLS 1.2: binds its keys to the handshake, as TLS 1.3 always does (RFC 7627).",
  compress_certificate: "How the sender can decompress certificates (RFC 8879).",
  record_size_limit: "The largest record that the sender accepts (RFC 8449).",
  delegated_credential: "Algorithms for short-lived keys that a certificate signs (RFC 9345).",
  session_ticket: "For TLS 1.2: tickets for resumption (RFC 5077).",
  pre_shared_key: "Resumption: the client names a ticket, and the server accepts it (section 4.2.11).",
  PskIdentity: "A ticket and its age (section 4.2.11).",
  identity: "The ticket, as the server made it (section 4.2.11).",
  obfuscated_ticket_age:
    "The ticket's age in milliseconds, plus ticket_age_add, so that it links no connections (section 4.2.11.1).",
  binders: "Proofs that the client knows the tickets' keys (section 4.2.11.2).",
  PskBinderEntry: "An HMAC over the ClientHello up to here, under the ticket's key (section 4.2.11.2).",
  selected_identity: "Which ticket the server accepts, counted from 0 (section 4.2.11).",
  early_data: "Application data along with the ClientHello (section 4.2.10).",
  max_early_data_size: "How many bytes of early data a resumption may send (section 4.6.1).",
  supported_versions: "The real version: the client offers some, and the server selects one (section 4.2.1).",
  ProtocolVersion: "A version of TLS; 0x0304 is TLS 1.3 (section 4.2.1).",
  selected_version: "The version of this connection (section 4.2.1).",
  cookie: "Bytes that the client must send back, so that the server need not remember it (section 4.2.2).",
  psk_key_exchange_modes: "Whether a resumption exchanges new keys (section 4.2.9).",
  PskKeyExchangeMode: "psk_dhe_ke exchanges new keys in every resumption (section 4.2.9).",
  certificate_authorities: "CAs whose certificates the sender accepts (section 4.2.4).",
  oid_filters: "Certificate extensions that the server asks for (section 4.2.5).",
  post_handshake_auth: "The client may be asked for a certificate later (section 4.2.6).",
  key_share:
    "Public values for the key exchange, sent before they are asked for, to save a round trip (section 4.2.8).",
  KeyShareEntry: "A share, and its group (section 4.2.8).",
  server_share: "The server's share, of one of the client's groups (section 4.2.8).",
  group: "The group of the share (section 4.2.8).",
  selected_group: "The group that the client should send a share of (section 4.2.8).",
  key_exchange:
    "The share. A hybrid group's is a concatenation (RFC 10024, section 4): an attacker must break both parts.",
  "ML-KEM encapsulation key":
    "The key that the server encapsulates a secret for (RFC 10024, section 4.1; FIPS 203, section 7.2).",
  "ML-KEM ciphertext":
    "The encapsulated secret. Changed, it opens to a different secret, without an error (RFC 10024, section 4.2; FIPS 203, section 6.3).",
  "ByteEncode12(t̂)": "The vector t̂, twelve bits for each coefficient (FIPS 203, algorithm 13).",
  ρ: "The seed from which both ends expand the matrix (FIPS 203, algorithm 13; FIPS 204, algorithm 22).",
  c1: "The compressed vector u (FIPS 203, algorithm 14).",
  c2: "The compressed polynomial v, which hides the secret (FIPS 203, algorithm 14).",
  "X25519 public key":
    "A point on Curve25519: what protects most connections today, and what a quantum computer breaks (RFC 7748).",
  UncompressedPointRepresentation: "A point on a NIST curve (section 4.2.8.2).",
  encrypted_client_hello:
    "A second ClientHello, encrypted, that hides the host name; or random bytes that look like one (RFC 9849).",
  application_settings: "Settings of the application protocol, sent during the handshake (Internet-Draft).",
  trust_anchors:
    "CAs that the client trusts, by short identifiers (Internet-Draft draft-ietf-tls-trust-anchor-ids).",
  renegotiation_info: "For TLS 1.2: prevents an attack on renegotiation (RFC 5746).",
  certificate_request_context: "Empty during the handshake (section 4.4.2).",
  certificate_list: "The sender's certificate, and those that lead to a CA (section 4.4.2).",
  CertificateEntry: "A certificate with its extensions (section 4.4.2).",
  cert_data: "The certificate in DER (section 4.4.2).",
  algorithm:
    "The algorithm: of the signature (section 4.4.3), or of the key (RFC 5280; RFC 9881 for ML-DSA).",
  signature: "The signature (section 4.4.3); in a certificate, its algorithm (RFC 5280, section 4.1.2.3).",
  "ECDSA-Sig-Value": "An ECDSA signature is two numbers (RFC 3279, section 2.2.3).",
  r: "The first number of the signature (FIPS 186-5, section 6.4.1).",
  s: "The second number of the signature (FIPS 186-5, section 6.4.1).",
  c̃: "The challenge: a hash of key, message and commitment (FIPS 204, algorithm 26).",
  z: "The response, the largest part (FIPS 204, algorithm 26).",
  h: "The hint, with which the verifier recomputes the commitment (FIPS 204, algorithm 26).",
  verify_data:
    "HMAC of the transcript's hash, under a key derived from the handshake traffic secret (section 4.4.4).",
  ticket_lifetime: "How long the ticket may be used; at most seven days (section 4.6.1).",
  ticket_age_add: "A random number that the client adds to the ticket's age (section 4.6.1).",
  ticket_nonce: "Makes each ticket's key different (section 4.6.1).",
  ticket: "The ticket; only the server can read it (section 4.6.1).",
  request_update: "Whether the other end should change its keys too (section 4.6.3).",
  // X.509, RFC 5280.
  tbsCertificate: "What the CA signs (RFC 5280, section 4.1.2).",
  version: "2 stands for version 3 (RFC 5280, section 4.1.2.1).",
  serialNumber: "The certificate's number at its CA (RFC 5280, section 4.1.2.2).",
  issuer: "Who signed the certificate (RFC 5280, section 4.1.2.4).",
  validity: "From when until when the certificate is valid (RFC 5280, section 4.1.2.5).",
  subject: "Whose key it is (RFC 5280, section 4.1.2.6).",
  subjectPublicKeyInfo: "The public key and its algorithm (RFC 5280, section 4.1.2.7; RFC 9881, section 4).",
  subjectPublicKey: "The public key that verifies CertificateVerify (RFC 5280, section 4.1.2.7).",
  t1: "The upper bits of the vector t (FIPS 204, algorithm 22).",
  extnID: "Which extension this is (RFC 5280, section 4.2).",
  critical:
    "Whether a reader that does not know the extension must reject the certificate (RFC 5280, section 4.2).",
  extnValue: "The extension's content, DER in DER (RFC 5280, section 4.2).",
  signatureAlgorithm: "The algorithm of the CA's signature (RFC 5280, section 4.1.1.2).",
  signatureValue: "The CA's signature over tbsCertificate (RFC 5280, section 4.1.1.3).",
  "identifier and length octets":
    "DER's own header: the element's type, and how many bytes follow (X.690, section 8.1).",
  "unused bits": "How many bits of the last byte do not count; none (X.690, section 8.6.2).",
};

/**
 * A field's sentence, or the sentence of the closest field around it: the parts of a list or a name need none of their own.
 *
 * @param path the fields around it, outermost first, and the field
 */
export function describeField(path: readonly { readonly name: string }[]): string | undefined {
  const found = path.findLast(({ name }) => toKey(name) in notes);
  return found && notes[toKey(found.name)];
}

/** "ML-KEM ciphertext", whatever the parameter set. */
function toKey(name: string): string {
  return name.replace(/^ML-KEM-\d+/, "ML-KEM");
}
