/** Decides on one request that Envoy received. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { HeaderValueOption_HeaderAppendAction as AppendAction } from "#gen/envoy/config/core/v3/base_pb.ts";
import type { AttributeContext } from "#gen/envoy/service/auth/v3/attribute_context_pb.ts";
import type { CheckResponseSchema } from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import { StatusCode } from "#gen/envoy/type/v3/http_status_pb.ts";
import type { TokenHolder } from "../../identity/authenticate.ts";
import { type FindTokenHolder, refusesToken } from "./holders.ts";
import { type Requirements, readRequirements } from "./requirements.ts";

/** An answer to Envoy. */
export type Decision = MessageInitShape<typeof CheckResponseSchema>;

/** What a decision needs. */
export interface CheckDeps {
  readonly findTokenHolder: FindTokenHolder;
  /** The URL of this server, the audience of routes that name none. */
  readonly issuerUrl: string | undefined;
}

/**
 * Decides on a request. A failure of the server is thrown, which Envoy takes for a denial.
 *
 * @throws STORE_UNAVAILABLE, CRYPTO_BUSY, RECORD_DAMAGED
 */
export async function check(deps: CheckDeps, attributes: AttributeContext | undefined): Promise<Decision> {
  const http = attributes?.request?.http;
  if (attributes === undefined || http === undefined)
    return deny(Code.PermissionDenied, "the request is not HTTP");
  const requirements = readRequirements(attributes.contextExtensions, deps.issuerUrl);
  if (typeof requirements === "string") return deny(Code.PermissionDenied, requirements);
  const token = readToken(http.headers, http.headerMap?.headers ?? []);
  if (token === undefined) return deny(Code.Unauthenticated, "send authorization: Bearer <token>", "Bearer");
  try {
    const found = deps.findTokenHolder(token);
    const holder = found instanceof Promise ? await found : found;
    return findFault(holder, requirements, deps.issuerUrl) ?? allow(holder, requirements);
  } catch (error) {
    if (!refusesToken(error)) throw error;
    return deny(Code.Unauthenticated, error.rawMessage, 'Bearer error="invalid_token"');
  }
}

/** Reads the token. Envoy sends headers as a map, or with `encode_raw_headers` as a list. */
function readToken(
  headers: Readonly<Record<string, string>>,
  list: readonly { readonly key: string; readonly value: string; readonly rawValue: Uint8Array }[],
): string | undefined {
  const listed = list
    .filter(({ key }) => key.toLowerCase() === "authorization")
    .map(({ value, rawValue }) => (rawValue.length > 0 ? Buffer.from(rawValue).toString("latin1") : value));
  const given = [...(headers.authorization === undefined ? [] : [headers.authorization]), ...listed];
  // Two headers could mean one thing here and another to the upstream.
  if (given.length !== 1) return undefined;
  return /^Bearer +([A-Za-z0-9._-]+) *$/i.exec(given[0] ?? "")?.[1];
}

function findFault(
  { subject, role, access, scopes }: TokenHolder,
  requirements: Requirements,
  issuerUrl: string | undefined,
): Decision | undefined {
  // A token from a log-in names no audience. It is for this server, and so for routes that stand for this server.
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
      `Bearer error="insufficient_scope", scope="${requirements.scopes.join(" ")}"`,
    );
  if (requirements.roles.length > 0 && !requirements.roles.includes(role))
    return deny(Code.PermissionDenied, `${subject} needs the role ${requirements.roles.join(" or ")}`);
  return undefined;
}

/** Tells the upstream who calls. The headers replace those that a client sent to pass for somebody else. */
function allow({ subject, role, scopes, access }: TokenHolder, { forwardsToken }: Requirements): Decision {
  const headers = {
    "x-auth-subject": subject,
    "x-auth-role": role,
    ...(scopes && scopes.length > 0 && { "x-auth-scopes": scopes.join(" ") }),
    ...(access && { "x-auth-client": access.clientId }),
  };
  const removed = ["x-auth-scopes", "x-auth-client"].filter((name) => !(name in headers));
  return {
    status: {},
    httpResponse: {
      case: "okResponse",
      value: {
        headers: Object.entries(headers).map(([key, value]) => setHeader(key, value)),
        // The upstream could use the token as its own elsewhere.
        headersToRemove: forwardsToken ? removed : [...removed, "authorization"],
      },
    },
  };
}

function deny(
  code: Code.Unauthenticated | Code.PermissionDenied,
  message: string,
  challenge?: string,
): Decision {
  const isUnknown = code === Code.Unauthenticated;
  const body = { status: "error", code: isUnknown ? "UNAUTHENTICATED" : "PERMISSION_DENIED", message };
  return {
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
  };
}

function setHeader(key: string, value: string) {
  return { header: { key, value }, appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD };
}
