/** Reasons specific to these calls, named as in RFC 6749 and its extensions. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const reasons = {
  clientInvalid: {
    name: "CLIENT_INVALID",
    code: Code.Unauthenticated,
    oauthError: "invalid_client",
  },
  clientUnauthorized: {
    name: "CLIENT_UNAUTHORIZED",
    code: Code.FailedPrecondition,
    oauthError: "unauthorized_client",
  },
  grantTypeUnsupported: {
    name: "GRANT_TYPE_UNSUPPORTED",
    code: Code.InvalidArgument,
    oauthError: "unsupported_grant_type",
  },
  subjectTokenInvalid: {
    name: "SUBJECT_TOKEN_INVALID",
    // RFC 8693, section 2.2.2, requires invalid_request where RFC 6749 has invalid_grant.
    code: Code.FailedPrecondition,
    oauthError: "invalid_request",
  },
  scopeInvalid: {
    name: "SCOPE_INVALID",
    code: Code.InvalidArgument,
    oauthError: "invalid_scope",
  },
  audienceInvalid: {
    name: "AUDIENCE_INVALID",
    code: Code.InvalidArgument,
    oauthError: "invalid_target",
  },
  issuerUrlMissing: {
    name: "ISSUER_URL_MISSING",
    code: Code.FailedPrecondition,
  },
} as const satisfies Record<string, NamedReason>;

/** All of them. README.md lists each one's cause and remedy. */
export const declaredReasons: readonly NamedReason[] = Object.values(reasons);
