/**
 * Schemathesis findings that the project accepts. In most cases, the server refuses a request that the schema
 * allows, because JSON Schema cannot express the rule, or because the rule depends on what the server stores.
 */

/** One kind of accepted finding. A property that is omitted may be anything. */
export interface AcceptedFinding {
  /** The check that reports it. */
  readonly check: string;
  /** HTTP status. */
  readonly status?: number;
  /** Operation, such as "POST /api/kms/sign". */
  readonly operation?: RegExp;
  /** Request line and body. */
  readonly request?: RegExp;
  /** Reason in the response's ErrorInfo. */
  readonly reason?: string;
  /** gRPC code of the response. */
  readonly code?: string;
  /** Fields that the response may name. */
  readonly fields?: RegExp;
}

type Kind = Omit<AcceptedFinding, "check">;

const ofGoogle = /^\w+ \/v1\//;

const refusedWithoutSchema: readonly Kind[] = [
  // The length of a public key, a signature or a ciphertext depends on the algorithm in another field or of a stored key,
  // and most byte strings of that length are not keys.
  { reason: "KEY_INVALID" },
  { reason: "LENGTH_INVALID" },
  // Random bytes are not a signature over the proposal, a packet of the tunnel, or a cosigned note of the log.
  ...["SIGNATURE_INVALID", "PACKET_INVALID", "NOTE_INVALID"].map((reason) => ({ reason })),
  // A page token holds a checksum of the list and its filters; a random text is not a valid token for any list.
  { reason: "FIELD_INVALID", fields: /^pageToken$/ },
  // A time in the past is refused, which a schema cannot express.
  { reason: "FIELD_INVALID", fields: /^expiresAt$/ },
  // Whether a signature needs a purpose depends on the device, and the usage must match the algorithm.
  { reason: "FIELD_INVALID", fields: /^(purpose|usage)$/ },
  // The rule spans several fields, such as exactly one of data and mu. The description states it in prose: keywords for
  // it make code generators emit unions instead of one class.
  { reason: "FIELD_INVALID", fields: /,/ },
  // A watcher cannot begin beyond the end of the log or chain.
  { reason: "FIELD_INVALID", fields: /^(afterSequence|fromIndex)$/ },
  // The last segment of a key name must not be a number, and no segment may be empty or dots. The description says so.
  { reason: "FIELD_INVALID", fields: /^name$/ },
  // Google's protos state their rules in comments, which a schema cannot contain.
  { reason: "FIELD_INVALID", operation: ofGoogle },
  // Certificate names have rules that a pattern cannot express: RFC 4514, RFC 3986, lengths of single parts.
  {
    reason: "FIELD_INVALID",
    operation: /^POST \/api\/kms\/csr$/,
    fields: /^(subject|(dnsNames|ipAddresses|emails|uris)\[\d+\])$/,
  },
  // Only the server knows how many leaves a log has.
  { code: "OUT_OF_RANGE" },
  // The server's state does not allow the call yet, or no longer: no validator, a rotated key, no session.
  { code: "FAILED_PRECONDITION" },
  // The name in the body must match the path, and a schema cannot refer to other parts of the request.
  { reason: "FIELD_CONTRADICTION", operation: /^PATCH \/v1\// },
];

/** Google's DELETE calls are always refused with UNIMPLEMENTED (501), and the description omits them. */
const omitted = { operation: /^\w+ \/v1\/.*\/cryptoKey(s|Versions)\/\{\w+\}$/ };
/** These paths also take QUERY, which OpenAPI 3.1 cannot express. The description has it in the extension x-query. */
const withQuery = { operation: /^POST \/api\/(grpc|kms)\/verify$/, request: /^(QUERY|OPTIONS) / };

export const acceptedFindings: readonly AcceptedFinding[] = [
  ...refusedWithoutSchema.map((kind) => ({ check: "positive_data_acceptance", ...kind })),
  // ProtoJSON accepts enum numbers, and Google's clients send them; the schema has names. Google's Node client sends an
  // empty text for a body without fields.
  { check: "negative_data_rejection", operation: ofGoogle },
  // A body above its call's size limit is refused before anything reads its content.
  { check: "negative_data_rejection", status: 413 },
  // With enum-encoding=int, enums are numbers. The schema has names.
  { check: "response_schema_conformance", operation: ofGoogle },
  // An SLH-DSA signature takes long on a busy machine. Other tests measure time.
  { check: "max_response_time" },
  { check: "not_a_server_error", ...omitted },
  ...[omitted, withQuery].flatMap((kind) => [
    { check: "unsupported_method", ...kind },
    { check: "allow_header_conformance", ...kind },
  ]),
];
