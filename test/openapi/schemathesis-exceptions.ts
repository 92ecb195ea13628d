/**
 * What Schemathesis reports and the project accepts. In most cases, the server refuses a request that the schema allows,
 * because JSON Schema cannot say the rule, or because the rule depends on what the server holds.
 */

/** One kind of finding that is accepted. */
export interface AcceptedFinding {
  /** The check that reports it. */
  readonly check: string;
  /** The operation, such as "POST /api/kms/sign"; any if left out. */
  /** The HTTP status; any if left out. */
  readonly status?: number;
  readonly operation?: RegExp;
  /** The request line and the body; any if left out. */
  readonly request?: RegExp;
  /** The reason of the ErrorInfo in the response; any if left out. */
  readonly reason?: string;
  /** The gRPC code of the response; any if left out. */
  readonly code?: string;
  /** The fields that the response names, if only these are accepted. */
  readonly fields?: RegExp;
  /** Why it is accepted. */
  readonly why: string;
}

const check = "positive_data_acceptance";

export const acceptedFindings: readonly AcceptedFinding[] = [
  {
    check,
    reason: "KEY_INVALID",
    why: "The length of a public key depends on the algorithm in another field, and most bytes of that length are no key.",
  },
  {
    check,
    reason: "LENGTH_INVALID",
    why: "The length of a signature or a ciphertext depends on the algorithm of a stored key or of another field.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /^pageToken$/,
    why: "A page token holds a checksum of the list and its filters; a random text is the token of no list.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /^expiresAt$/,
    why: "A time in the past is refused, and a schema knows no clock.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /^purpose$/,
    why: "Whether a signature needs a purpose depends on the device: those with signing contexts do.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /^usage$/,
    why: "The usage must be that of the algorithm in another field.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /,/,
    why: "The rule spans several fields, such as exactly one of data and mu. The description says it in words: keywords for it make code generators write unions in place of one class.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /^(afterSequence|fromIndex)$/,
    why: "A watcher cannot begin beyond the end of the log or of the chain.",
  },
  {
    check,
    operation: /^\w+ \/v1\//,
    reason: "FIELD_INVALID",
    why: "Google's protos have their rules in comments, which no schema can repeat.",
  },
  {
    check,
    reason: "FIELD_INVALID",
    fields: /^name$/,
    why: "A name of a key has neither a last segment that is a number, nor an empty or dotted one. The description says it.",
  },
  {
    check,
    operation: /^POST \/api\/kms\/csr$/,
    reason: "FIELD_INVALID",
    fields: /^(subject|(dnsNames|ipAddresses|emails|uris)\[\d+\])$/,
    why: "Names of certificates have rules that a pattern cannot say: RFC 4514, RFC 3986, lengths of single parts.",
  },
  {
    check,
    reason: "SIGNATURE_INVALID",
    why: "Random bytes are no signature of the proposal.",
  },
  {
    check,
    reason: "PACKET_INVALID",
    why: "Random bytes are no packet of the tunnel.",
  },
  {
    check,
    reason: "NOTE_INVALID",
    why: "Random bytes are no cosigned note of the log.",
  },
  {
    check,
    code: "OUT_OF_RANGE",
    why: "How many leaves a log has is for the server to know.",
  },
  {
    check,
    code: "FAILED_PRECONDITION",
    why: "What the server holds does not allow the call yet, or no longer: no validator, a rotated key, no session.",
  },
  {
    check: "negative_data_rejection",
    operation: /^\w+ \/v1\//,
    why: "ProtoJSON takes an enum by its number, and Google's clients send it so; its schema has the names. Google's client for Node sends an empty text for a body without fields.",
  },
  {
    check: "response_schema_conformance",
    operation: /^\w+ \/v1\//,
    why: "With enum-encoding=int, enums are numbers. Their schema has the names.",
  },
  {
    check,
    operation: /^PATCH \/v1\//,
    reason: "FIELD_CONTRADICTION",
    why: "The name in the body must be that of the path, and a schema knows no other part of the request.",
  },
  ...["unsupported_method", "not_a_server_error", "allow_header_conformance"].map((check) => ({
    check,
    operation: /^\w+ \/v1\/.*\/cryptoKey(s|Versions)\/\{\w+\}$/,
    why: "DELETE is a call of Google that is always refused, with UNIMPLEMENTED (501), and the description leaves it out.",
  })),
  ...["unsupported_method", "allow_header_conformance"].map((check) => ({
    check,
    operation: /^POST \/api\/(grpc|kms)\/verify$/,
    request: /^(QUERY|OPTIONS) /,
    why: "These paths also take QUERY, which OpenAPI 3.1 cannot say. The description has it in the extension x-query.",
  })),
  {
    check: "negative_data_rejection",
    status: 413,
    why: "A body above the limit of its call is refused for its size, before anything reads what is in it.",
  },
  {
    check: "max_response_time",
    why: "A signature of SLH-DSA takes long on a busy machine. Other tests measure time.",
  },
];
