/** Describes how calls fail: the reasons of each refusal, by HTTP status. */

import { STATUS_CODES } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { nameCode } from "../calls/code-name.ts";
import type { Json } from "../calls/example.ts";
import { findReasons, type RestStyle, type ServiceProfiles } from "../calls/service-profile.ts";
import type { NamedReason } from "../errors/reason.ts";
import { errorDomain, type ReasonName, reasons, refuse, toHttpStatus } from "../errors.ts";
import { nameOAuthError } from "../transcoding/oauth-error.ts";
import type { Reference, Response, Schema } from "./document.ts";

/** The properties of a call that determine how it can fail. */
export interface CallShape {
  readonly method: DescMethod;
  /** Form of its errors. */
  readonly style: RestStyle;
  readonly profiles: ServiceProfiles;
  readonly hasBody: boolean;
  readonly hasPathFields: boolean;
  /** Whether the HTTP method is QUERY. */
  readonly isQuery: boolean;
  readonly streams: boolean;
  readonly wantsToken: boolean;
  readonly isRepeatable: boolean;
}

/** A core reason, or one specific to a service. */
type AnyReason = ReasonName | NamedReason;

/** Reasons that every call has, or every call of a kind. These calls share one description per status. */
const shared = {
  NotAcceptable: ["NOT_ACCEPTABLE"],
  TooSlow: ["REQUEST_TOO_SLOW"],
  TooLarge: ["BODY_TOO_LARGE"],
  MediaTypeUnsupported: ["MEDIA_TYPE_UNSUPPORTED", "ENCODING_UNSUPPORTED"],
  Busy: ["RATE_LIMITED", "CONCURRENCY_LIMITED", "BUFFER_LIMITED", "SERVER_BUSY", "STORE_FULL"],
  MetadataTooLarge: ["METADATA_TOO_LARGE"],
  Internal: ["INTERNAL", "STORE_DAMAGED", "RECORD_DAMAGED"],
  Unavailable: ["STORE_UNAVAILABLE", "MASTER_KEY_MISSING", "SHUTTING_DOWN"],
  Late: ["DEADLINE_EXCEEDED"],
} as const satisfies Readonly<Record<string, readonly ReasonName[]>>;

const tokenReasons: readonly ReasonName[] = [
  "TOKEN_MISSING",
  "TOKEN_MALFORMED",
  "TOKEN_KEY_UNKNOWN",
  "TOKEN_SIGNATURE_INVALID",
  "TOKEN_EXPIRED",
  "TOKEN_AUDIENCE_MISMATCH",
  "TOKEN_REVOKED",
  "ROLE_MISSING",
  "SCOPE_MISSING",
];

/** Describes every failure of a call, by HTTP status. */
export function describeFailures(shape: CallShape): Record<string, Response | Reference> {
  const byStatus = new Map<number, Set<AnyReason>>();
  for (const reason of [...reasonsOfShape(shape), ...declaredReasons(shape)]) {
    const status = findStatus(reason);
    byStatus.getOrInsert(status, new Set()).add(reason);
  }
  const sorted = [...byStatus].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    sorted.map(([status, names]) => [String(status), referOrDescribe(status, names, shape.style)]),
  );
}

function reasonsOfShape(shape: CallShape): ReasonName[] {
  const { hasBody } = shape;
  const table: readonly (readonly [applies: boolean, names: readonly ReasonName[]])[] = [
    [shape.method.input.fields.length > 0, ["FIELD_INVALID"]],
    [true, ["PARAMETER_UNKNOWN"]],
    [!hasBody, ["PARAMETER_DUPLICATE", "BODY_UNEXPECTED"]],
    [hasBody, ["JSON_INVALID", "ENCODING_INVALID", "MESSAGE_TOO_COMPLEX"]],
    [shape.isQuery, ["MEDIA_TYPE_MISSING"]],
    [shape.hasPathFields, ["FIELD_CONTRADICTION"]],
    [true, ["TARGET_INVALID", "HTTP_INVALID", "TIMEOUT_INVALID"]],
    [shape.isRepeatable, ["IDEMPOTENCY_KEY_INVALID", "IDEMPOTENCY_KEY_REUSED", "QUOTA_EXCEEDED"]],
    [shape.wantsToken, tokenReasons],
    [true, shared.NotAcceptable],
    [hasBody, [...shared.TooSlow, ...shared.TooLarge, ...shared.MediaTypeUnsupported]],
    [true, [...shared.Busy, ...shared.MetadataTooLarge, ...shared.Internal, ...shared.Unavailable]],
    [!shape.streams, shared.Late],
  ];
  return table.flatMap(([applies, names]) => (applies ? names : []));
}

/** Returns the reasons that an RPC declares, with declarations for service-specific ones. */
function declaredReasons({ method, profiles }: Pick<CallShape, "method" | "profiles">): AnyReason[] {
  const ofService = profiles[method.parent.typeName]?.reasons ?? [];
  return findReasons(method, profiles).map((name) => {
    const declared = isOfCore(name) ? name : ofService.find((reason) => reason.name === name);
    if (declared === undefined)
      throw new Error(`${method.parent.typeName}.${method.name} declares ${name}, which is not a reason`);
    return declared;
  });
}

function isOfCore(name: string): name is ReasonName {
  return Object.hasOwn(reasons, name);
}

function findStatus(reason: AnyReason): number {
  return toHttpStatus(refuse(reason, ""));
}

function referOrDescribe(
  status: number,
  names: ReadonlySet<AnyReason>,
  style: RestStyle,
): Response | Reference {
  const same = Object.entries(shared).find(
    ([, others]) => names.symmetricDifference(new Set<AnyReason>(others)).size === 0,
  );
  if (same !== undefined) return { $ref: `#/components/responses/${prefixes[style]}${same[0]}` };
  return describeFailure(status, [...names], style);
}

/** Distinguishes the components of each style. */
const prefixes: Readonly<Record<RestStyle, string>> = { own: "", oauth: "OAuth", google: "Google" };

/** The failures that calls share, for `components`. */
export function sharedFailures(styles: readonly RestStyle[]): Record<string, Response> {
  return Object.fromEntries(
    styles.flatMap((style) =>
      Object.entries(shared).map(([name, names]) => [
        prefixes[style] + name,
        describeFailure(findStatus(names[0]), names, style),
      ]),
    ),
  );
}

function describeFailure(status: number, given: readonly AnyReason[], style: RestStyle): Response {
  const codes = given.map((reason) => `\`${nameReason(reason)}\``).join(", ");
  const why = given.length === 1 ? "for the reason" : "for one of these reasons:";
  const header = headers[status];
  const schema: Schema = { $ref: `#/components/schemas/${errorNames[style]}` };
  return {
    description: `${STATUS_CODES[status]}, ${why} ${codes}.`,
    ...(header === undefined ? {} : { headers: header }),
    content: { "application/json": { schema, example: given[0] && showFailure(given[0], style) } },
  };
}

function nameReason(reason: AnyReason): string {
  return typeof reason === "string" ? reason : reason.name;
}

/** An example failure. The message and metadata differ from call to call. */
function showFailure(reason: AnyReason, style: RestStyle): Json {
  const code = nameCode(refuse(reason, "").code);
  const message = "what is wrong, and the valid form";
  const details = [
    {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: nameReason(reason),
      domain: errorDomain,
      metadata: {},
    },
  ];
  if (style === "own") return { status: "error", code, message, details };
  if (style === "oauth") return { error: nameOAuthError(refuse(reason, "")), error_description: message };
  return { error: { code: findStatus(reason), message, status: code, details } };
}

const retryAfter = {
  "Retry-After": {
    description: "Seconds to wait before retrying, if known.",
    schema: { type: "integer" },
  },
} as const;

const headers: Readonly<Record<number, NonNullable<Response["headers"]>>> = {
  401: {
    "WWW-Authenticate": {
      description: "How to authenticate: `Bearer`, or `Basic` for an OAuth 2 client.",
      schema: { type: "string" },
    },
  },
  429: retryAfter,
  503: retryAfter,
};

/** Names of the error schemas. */
export const errorNames: Readonly<Record<RestStyle, string>> = {
  own: "ErrorResponse",
  oauth: "OAuthErrorResponse",
  google: "GoogleErrorResponse",
};

/** Parts that both error forms share. */
const errorParts = {
  code: { type: "string", enum: listCodes(), description: "gRPC code." },
  message: { type: "string", description: "What is wrong, and the valid form, for people." },
  details: { type: "array", items: { $ref: "#/components/schemas/ErrorDetail" } },
} as const satisfies Record<string, Schema>;

/** The error forms (src/transcoding/rendering.ts). */
const errorForms: Readonly<Record<RestStyle, Schema>> = {
  own: {
    type: "object",
    description: "The reason why a call failed.",
    properties: { status: { const: "error", type: "string" }, ...errorParts },
    required: ["status", "code", "message", "details"],
  },
  oauth: {
    type: "object",
    description: "The reason why a call failed, in OAuth 2 form (RFC 6749, section 5.2).",
    properties: {
      error: { type: "string", description: "Error name, such as invalid_client." },
      error_description: { type: "string", description: errorParts.message.description },
    },
    required: ["error", "error_description"],
  },
  google: {
    type: "object",
    description: "The reason why a call failed, in the form that Google's APIs use.",
    properties: {
      error: {
        type: "object",
        properties: {
          ...errorParts,
          code: { type: "integer", format: "int32", description: "The HTTP status." },
          status: errorParts.code,
        },
        required: ["code", "message", "status", "details"],
      },
    },
    required: ["error"],
  },
};

/** The error schemas, for `components`. */
export function errorSchemas(styles: readonly RestStyle[]): Record<string, Schema> {
  const forms = styles.map((style) => [errorNames[style], errorForms[style]]);
  return { ...Object.fromEntries(forms), ErrorDetail: errorDetail };
}

const errorDetail: Schema = {
  type: "object",
  description:
    "Details for programs. The first detail is a google.rpc.ErrorInfo with the reason. A google.rpc.BadRequest " +
    "names the invalid fields, and a google.rpc.RetryInfo says when to retry.",
  properties: {
    "@type": { type: "string", description: 'Type: "type.googleapis.com/google.rpc.ErrorInfo".' },
    reason: { type: "string", description: "Reason (ErrorInfo)." },
    domain: { type: "string", description: "Domain of the reason (ErrorInfo)." },
    metadata: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Variable parts of the message (ErrorInfo).",
    },
    fieldViolations: {
      type: "array",
      items: {
        type: "object",
        properties: { field: { type: "string" }, description: { type: "string" } },
        additionalProperties: true,
      },
      description: "Invalid fields by JSON name (BadRequest).",
    },
    retryDelay: { type: "string", description: 'How long to wait before retrying: "1.5s" (RetryInfo).' },
  },
  required: ["@type"],
  additionalProperties: true,
};

function listCodes(): string[] {
  return Object.values(Code).flatMap((code) => (typeof code === "number" ? nameCode(code) : []));
}
