/**
 * Schemathesis findings that the project accepts. In most cases, the server refuses a request that the schema
 * allows, because JSON Schema cannot express the rule, or because the rule depends on what the server stores.
 */

/** One kind of accepted finding. */
export interface AcceptedFinding {
  /** The check that reports it. */
  readonly check: string;
  /** HTTP status; any if omitted. */
  readonly status?: number;
  /** Operation, such as "POST /api/kms/sign"; any if omitted. */
  readonly operation?: RegExp;
  /** Request line and body; any if omitted. */
  readonly request?: RegExp;
  /** Reason in the response's ErrorInfo; any if omitted. */
  readonly reason?: string;
  /** gRPC code of the response; any if omitted. */
  readonly code?: string;
  /** Fields that the response may name; any if omitted. */
  readonly fields?: RegExp;
  /** Why the finding is accepted. */
  readonly why: string;
}

/** Accepts several kinds of findings of one check. */
function accept(check: string, findings: readonly Omit<AcceptedFinding, "check">[]): AcceptedFinding[] {
  return findings.map((finding) => ({ check, ...finding }));
}

export const acceptedFindings: readonly AcceptedFinding[] = [
  ...accept("positive_data_acceptance", [
    {
      reason: "KEY_INVALID",
      why: "The length of a public key depends on the algorithm in another field, and most byte strings of that length are not keys.",
    },
    {
      reason: "LENGTH_INVALID",
      why: "The length of a signature or a ciphertext depends on the algorithm of a stored key or of another field.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /^pageToken$/,
      why: "A page token holds a checksum of the list and its filters; a random text is not a valid token for any list.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /^expiresAt$/,
      why: "A time in the past is refused, which a schema cannot express.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /^purpose$/,
      why: "Whether a signature needs a purpose depends on the device: those with signing contexts do.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /^usage$/,
      why: "The usage must match the algorithm in another field.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /,/,
      why: "The rule spans several fields, such as exactly one of data and mu. The description states it in prose: keywords for it make code generators emit unions instead of one class.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /^(afterSequence|fromIndex)$/,
      why: "A watcher cannot begin beyond the end of the log or chain.",
    },
    {
      operation: /^\w+ \/v1\//,
      reason: "FIELD_INVALID",
      why: "Google's protos state their rules in comments, which a schema cannot contain.",
    },
    {
      reason: "FIELD_INVALID",
      fields: /^name$/,
      why: "The last segment of a key name must not be a number, and no segment may be empty or dots. The description states this.",
    },
    {
      operation: /^POST \/api\/kms\/csr$/,
      reason: "FIELD_INVALID",
      fields: /^(subject|(dnsNames|ipAddresses|emails|uris)\[\d+\])$/,
      why: "Certificate names have rules that a pattern cannot express: RFC 4514, RFC 3986, lengths of single parts.",
    },
    {
      reason: "SIGNATURE_INVALID",
      why: "Random bytes are not a signature over the proposal.",
    },
    {
      reason: "PACKET_INVALID",
      why: "Random bytes are not a packet of the tunnel.",
    },
    {
      reason: "NOTE_INVALID",
      why: "Random bytes are not a cosigned note of the log.",
    },
    {
      code: "OUT_OF_RANGE",
      why: "Only the server knows how many leaves a log has.",
    },
    {
      code: "FAILED_PRECONDITION",
      why: "The server's state does not allow the call yet, or no longer allows it: no validator, a rotated key, no session.",
    },
    {
      operation: /^PATCH \/v1\//,
      reason: "FIELD_CONTRADICTION",
      why: "The name in the body must match the path, and a schema cannot refer to other parts of the request.",
    },
  ]),
  ...accept("negative_data_rejection", [
    {
      operation: /^\w+ \/v1\//,
      why: "ProtoJSON accepts enum numbers, and Google's clients send it so; the schema has names. Google's Node client sends an empty text for a body without fields.",
    },
    {
      status: 413,
      why: "A body above its call's size limit is refused before anything reads its content.",
    },
  ]),
  {
    check: "response_schema_conformance",
    operation: /^\w+ \/v1\//,
    why: "With enum-encoding=int, enums are numbers. The schema has names.",
  },
  {
    check: "max_response_time",
    why: "An SLH-DSA signature takes long on a busy machine. Other tests measure time.",
  },
  ...["unsupported_method", "not_a_server_error", "allow_header_conformance"].map((check) => ({
    check,
    operation: /^\w+ \/v1\/.*\/cryptoKey(s|Versions)\/\{\w+\}$/,
    why: "This Google DELETE call is always refused with UNIMPLEMENTED (501), and the description omits it.",
  })),
  ...["unsupported_method", "allow_header_conformance"].map((check) => ({
    check,
    operation: /^POST \/api\/(grpc|kms)\/verify$/,
    request: /^(QUERY|OPTIONS) /,
    why: "These paths also take QUERY, which OpenAPI 3.1 cannot express. The description has it in the extension x-query.",
  })),
];
