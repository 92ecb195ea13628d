/** Reasons that only these calls give, with the names of RFC 6749 and its extensions. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const reasons = {
  clientInvalid: {
    name: "CLIENT_INVALID",
    code: Code.Unauthenticated,
    oauthError: "invalid_client",
    cause: "The client is unknown, or its secret is wrong or missing; the server does not say which.",
    remedy:
      "Send `client_id` and `client_secret` by HTTP Basic or in the form, not both. Operator: `qsp client list`, `qsp client secret NAME`.",
  },
  clientUnauthorized: {
    name: "CLIENT_UNAUTHORIZED",
    code: Code.FailedPrecondition,
    oauthError: "unauthorized_client",
    cause: "The client may not exchange tokens, or not revoke the token of another client.",
    remedy: "Operator: `qsp client add NAME --exchange` creates clients that may exchange tokens.",
  },
  grantTypeUnsupported: {
    name: "GRANT_TYPE_UNSUPPORTED",
    code: Code.InvalidArgument,
    oauthError: "unsupported_grant_type",
    cause: "The server has no such grant.",
    remedy: "Use a grant type of `GET /.well-known/oauth-authorization-server`.",
  },
  subjectTokenInvalid: {
    name: "SUBJECT_TOKEN_INVALID",
    // RFC 8693, section 2.2.2, wants invalid_request, where RFC 6749 has invalid_grant.
    code: Code.FailedPrecondition,
    oauthError: "invalid_request",
    cause:
      "The token to exchange is not valid, has expired, was revoked, or is for others than this server and the client.",
    remedy: "Get a new token, and exchange it before it expires.",
  },
  scopeInvalid: {
    name: "SCOPE_INVALID",
    code: Code.InvalidArgument,
    oauthError: "invalid_scope",
    cause: "The client may not request one of the scopes, or the exchanged token does not have it.",
    remedy: "Request fewer scopes. Operator: the scopes of a client are those of `qsp client add`.",
  },
  audienceInvalid: {
    name: "AUDIENCE_INVALID",
    code: Code.InvalidArgument,
    oauthError: "invalid_target",
    cause: "The client may not request tokens for this resource or audience, or a resource is not a URL.",
    remedy:
      "Request a token for fewer audiences. Operator: the audiences of a client are those of `qsp client add`.",
  },
  issuerUrlMissing: {
    name: "ISSUER_URL_MISSING",
    code: Code.FailedPrecondition,
    cause: "The server has no issuer URL, because it listens on a port that it chose itself.",
    remedy: "Operator: start the server with `--issuer-url`.",
  },
} as const satisfies Record<string, NamedReason>;

/** As docs/errors.md shows them. */
export const oauthReasons = { heading: "Clients of OAuth 2", reasons: Object.values(reasons) };
