/** Decides on one request that Envoy forwards. */
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { HeaderValueOption_HeaderAppendAction as AppendAction } from "#gen/envoy/config/core/v3/base_pb.ts";
import type { AttributeContext } from "#gen/envoy/service/auth/v3/attribute_context_pb.ts";
import { type CheckResponse, CheckResponseSchema } from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import { StatusCode } from "#gen/envoy/type/v3/http_status_pb.ts";
import { keepBytes } from "../../src/calls/kept-bytes.ts";
import { readBearerToken, type TokenHolder } from "../../src/identity/authenticate.ts";
import { type FindTokenHolder, refusesToken } from "./holders.ts";
import { findRequirements, type Requirements } from "./requirements.ts";

export interface CheckDeps {
  readonly findTokenHolder: FindTokenHolder;
  /** This server's URL: the audience of routes that specify none. */
  readonly issuerUrl: string | undefined;
}

/**
 * Decides on a request. If this server fails, it throws, which Envoy treats as a denial.
 *
 * @throws STORE_UNAVAILABLE, SERVER_BUSY, RECORD_DAMAGED
 */
export type Check = (attributes: AttributeContext | undefined) => CheckResponse | Promise<CheckResponse>;

/** A request's token and properties, and its route's requirements. */
interface Question {
  readonly token: string;
  readonly requirements: Requirements;
}

export function createCheck({ findTokenHolder, issuerUrl }: CheckDeps): Check {
  const refuseToken = (error: unknown): CheckResponse => {
    if (!refusesToken(error)) throw error;
    return deny(Code.Unauthenticated, error.rawMessage, 'Bearer error="invalid_token"');
  };
  return (attributes) => {
    if (attributes === undefined) return denyOther();
    const question = readQuestion(attributes, issuerUrl);
    if (!("token" in question)) return question;
    const { token, requirements } = question;
    try {
      const found = findTokenHolder(token);
      if (!(found instanceof Promise)) return decide(found, requirements, issuerUrl);
      return found.then((holder) => decide(holder, requirements, issuerUrl)).catch(refuseToken);
    } catch (error) {
      return refuseToken(error);
    }
  };
}

/**
 * @returns the question, or a denial if the token is missing or the route requires nothing that can be
 *   decided
 */
function readQuestion(attributes: AttributeContext, issuerUrl: string | undefined): Question | CheckResponse {
  const http = attributes.request?.http;
  if (http === undefined) return denyOther();
  const requirements = findRequirements(attributes.contextExtensions, issuerUrl);
  if (typeof requirements === "string") return deny(Code.PermissionDenied, requirements);
  const token = readToken(http.headers, http.headerMap?.headers ?? []);
  if (token === undefined) return deny(Code.Unauthenticated, "send authorization: Bearer <token>", "Bearer");
  return { token, requirements };
}

function denyOther(): CheckResponse {
  return deny(Code.PermissionDenied, "the request is not HTTP");
}

/** Maximum cached decisions of all holders. Callers choose the requirements, so one may take 25 kB. */
const maxDecisions = 4096;
/** Maximum cached decisions per holder: a client calls few routes. */
const maxDecisionsOfHolder = 32;

/** Cached decisions by holder. Each store lookup creates a new holder, which needs new decisions. */
const decisions = new LRUCache<TokenHolder, Map<Requirements, CheckResponse>>({ maxSize: maxDecisions });

function decide(
  holder: TokenHolder,
  requirements: Requirements,
  issuerUrl: string | undefined,
): CheckResponse {
  const known = decisions.get(holder);
  const before = known?.get(requirements);
  if (before !== undefined) return before;
  const decision = findFault(holder, requirements, issuerUrl) ?? allow(holder, requirements);
  if ((known?.size ?? 0) < maxDecisionsOfHolder) {
    // A new map, because the cache updates the size only with a new value.
    const more = new Map(known).set(requirements, keepBytes(CheckResponseSchema, decision));
    decisions.set(holder, more, { size: more.size });
  }
  return decision;
}

/** Reads the token. Envoy sends headers as a map, or as a list with `encode_raw_headers`. */
function readToken(
  headers: Readonly<Record<string, string>>,
  list: readonly { readonly key: string; readonly value: string; readonly rawValue: Uint8Array }[],
): string | undefined {
  const listed = list
    .filter(({ key }) => key.toLowerCase() === "authorization")
    .map(({ value, rawValue }) => (rawValue.length > 0 ? Buffer.from(rawValue).toString("latin1") : value));
  const given = [...(headers.authorization === undefined ? [] : [headers.authorization]), ...listed];
  // We and the upstream could read two headers differently.
  if (given.length !== 1) return undefined;
  const [value = ""] = given;
  // A cheap check instead of scanning 5,000 characters: only verified tokens get further.
  if (value.startsWith("Bearer ") && value.charCodeAt(7) > 0x20 && value.charCodeAt(value.length - 1) > 0x20)
    return value.slice(7);
  return readBearerToken(value);
}

/** RFC 6750, section 3.1: the request needs more privileges than the token has. */
const privilegeMissing = 'Bearer error="insufficient_scope"';

function findFault(
  { subject, role, access, scopes }: TokenHolder,
  requirements: Requirements,
  issuerUrl: string | undefined,
): CheckResponse | undefined {
  // A device may make only a few calls here, so it may make none elsewhere unless a route names its role.
  if (role === "device" && !requirements.roles.includes(role))
    return deny(
      Code.PermissionDenied,
      `${subject} is a device; the route does not name the role device`,
      privilegeMissing,
    );
  // A log-in token names no audience. It is for this server, and therefore for routes that stand for this
  // server.
  const audiences = access?.audiences ?? (issuerUrl === undefined ? [] : [issuerUrl]);
  if (!audiences.includes(requirements.audience))
    return deny(
      Code.Unauthenticated,
      `the token is not for ${requirements.audience}`,
      'Bearer error="invalid_token", error_description="wrong audience"',
    );
  const missing = requirements.scopes.filter((scope) => scopes !== undefined && !scopes.includes(scope));
  if (missing.length > 0)
    return deny(
      Code.PermissionDenied,
      `the token needs the scope ${missing.join(" ")}`,
      `${privilegeMissing}, scope="${requirements.scopes.join(" ")}"`,
    );
  if (requirements.roles.length > 0 && !requirements.roles.includes(role))
    return deny(
      Code.PermissionDenied,
      `${subject} needs the role ${requirements.roles.join(" or ")}`,
      privilegeMissing,
    );
  return undefined;
}

/** Passes the caller's identity upstream, replacing headers that a client may have forged. */
function allow(
  { subject, role, scopes, access }: TokenHolder,
  { forwardsToken }: Requirements,
): CheckResponse {
  const headers = {
    "x-auth-subject": subject,
    "x-auth-role": role,
    // Empty for an access token without scopes: without the header, the service would see a log-in, which no
    // scope limits.
    ...(scopes && { "x-auth-scopes": scopes.join(" ") }),
    ...(access && { "x-auth-client": access.clientId }),
  };
  const removed = ["x-auth-scopes", "x-auth-client"].filter((name) => !(name in headers));
  return create(CheckResponseSchema, {
    status: {},
    httpResponse: {
      case: "okResponse",
      value: {
        headers: Object.entries(headers).map(([key, value]) => setHeader(key, value)),
        // The upstream could reuse the token elsewhere.
        headersToRemove: forwardsToken ? removed : [...removed, "authorization"],
      },
    },
  });
}

function deny(
  code: Code.Unauthenticated | Code.PermissionDenied,
  message: string,
  challenge?: string,
): CheckResponse {
  const isUnknown = code === Code.Unauthenticated;
  const body = { status: "error", code: isUnknown ? "UNAUTHENTICATED" : "PERMISSION_DENIED", message };
  return create(CheckResponseSchema, {
    status: { code, message },
    httpResponse: {
      case: "deniedResponse",
      value: {
        status: { code: isUnknown ? StatusCode.Unauthorized : StatusCode.Forbidden },
        headers: [
          setHeader("content-type", "application/json"),
          ...(challenge === undefined ? [] : [setHeader("www-authenticate", challenge)]),
        ],
        body: `${JSON.stringify(body)}\n`,
      },
    },
  });
}

function setHeader(key: string, value: string) {
  return {
    header: { key, value },
    keepEmptyValue: value === "",
    appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
  };
}
