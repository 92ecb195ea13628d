/** Reasons that concern the store, the caller, limits, and how a call ended. */
import { Code } from "@connectrpc/connect";
import type { Reason } from "./reason.ts";

/** Reasons that concern the store. */
export const storeReasons = {
  STORE_UNAVAILABLE: {
    code: Code.Unavailable,
    isServerFault: true,
    cause: "The database cannot be reached, or is busy.",
    remedy:
      "Try again after `Retry-After`, with the same `Idempotency-Key`: the write may have happened. Operator: check the database and `/readyz`.",
  },
  // No server fault: until there is room, every write is refused, and a line for each would fill the disk of the log.
  // src/watch-store.ts logs the beginning and the end.
  STORE_FULL: {
    code: Code.ResourceExhausted,
    cause:
      "The disk is full. Nothing was changed. On SQLite, log-ins and the destruction of keys still work, in the room of a reserve.",
    remedy: "Operator: free disk space, on SQLite at least twice the reserve (8 MiB).",
  },
  STORE_DAMAGED: {
    code: Code.DataLoss,
    isServerFault: true,
    cause:
      "The database reports that it is damaged, or its audit log differs from the one that this server saw.",
    remedy:
      "Operator: run `qsp audit verify` to find the place. Restore the last backup, check the disk, and find out who writes to the database.",
  },
  MASTER_KEY_MISSING: {
    code: Code.Unavailable,
    isServerFault: true,
    cause: "The master key was rotated, and this server does not have the new one.",
    remedy: "Operator: give this server the new key, or `QSP_MASTER_KEY_NEXT`, and restart it.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons that concern the identity of the caller. */
export const callerReasons = {
  TOKEN_MISSING: {
    code: Code.Unauthenticated,
    cause: "The call needs a token.",
    remedy: "Call `POST /api/auth/token`, then send `authorization: Bearer <token>`.",
  },
  TOKEN_MALFORMED: {
    code: Code.Unauthenticated,
    cause:
      "The header is not a bearer token, or the token is truncated, quoted, of another algorithm, or of another issuer URL.",
    remedy:
      "Send the token unchanged, after `Bearer` and a space. Servers that share a store need the same `--issuer-url`.",
  },
  TOKEN_KEY_UNKNOWN: {
    code: Code.Unauthenticated,
    cause: "No key of this server signed the token.",
    remedy:
      "Get a token from this server. Yours is from another server, or older than `qsp issuer rotate revoke`.",
  },
  TOKEN_SIGNATURE_INVALID: {
    code: Code.Unauthenticated,
    cause: "The signature of the token does not verify.",
    remedy: "Get a new token, and send it unchanged.",
  },
  TOKEN_EXPIRED: {
    code: Code.Unauthenticated,
    cause: "The token is older than an hour, or is not valid yet because the clocks differ.",
    remedy: "Get a new token. Synchronise the clocks.",
  },
  TOKEN_AUDIENCE_MISMATCH: {
    code: Code.Unauthenticated,
    cause: "The access token is for other servers: none of its audiences is the issuer URL of this server.",
    remedy: "Request a token without `resource` and `audience`, or with the URL of `--issuer-url`.",
  },
  TOKEN_REVOKED: {
    code: Code.Unauthenticated,
    cause:
      "The user or the client was removed or has a new password or secret, or the token itself was revoked.",
    remedy: "Log in again, or request a new token.",
  },
  LOGIN_FAILED: {
    code: Code.Unauthenticated,
    cause: "The username or the password is wrong; the server does not say which.",
    remedy:
      "Operator: `qsp user list`, `qsp user passwd NAME`. A server with `--auth token` starts without users.",
  },
  ROLE_MISSING: {
    code: Code.PermissionDenied,
    cause: "The call needs another role, which the message names.",
    remedy:
      "Ask the operator for the role, as in `qsp user add NAME auditor`. The token of a device sends only its own telemetry.",
  },
  SCOPE_MISSING: {
    code: Code.PermissionDenied,
    cause: "The token is limited to scopes, and the call needs another one, which the message names.",
    remedy:
      "Request a token with that scope from `POST /oauth/token`. Operator: the scopes of a client are those of `qsp client add`.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons that concern the load from one caller or from all callers. */
export const limitReasons = {
  LOGIN_LIMITED: {
    code: Code.ResourceExhausted,
    cause:
      "`--max-failed-logins` log-ins failed within a minute for this name or network. In a network where the user has logged in before, only failures of this name in this network count.",
    remedy: "Wait for `Retry-After`, then use the right password.",
  },
  RATE_LIMITED: {
    code: Code.ResourceExhausted,
    cause: "This user or address exceeds `--max-calls-per-second`.",
    remedy:
      "Wait for `Retry-After`. Use `BatchSign` or streams. Operator: behind a proxy set `--trusted-proxies`, or all callers count as one.",
  },
  CONCURRENCY_LIMITED: {
    code: Code.ResourceExhausted,
    cause:
      "This user or address has `--max-calls-per-user` calls or `--max-streams-per-user` streams in progress.",
    remedy: "Wait until one ends. Share streams between consumers.",
  },
  BUFFER_LIMITED: {
    code: Code.ResourceExhausted,
    cause:
      "Unfinished requests or unread responses use `--max-buffered-bytes` of memory in total, or `--max-buffered-bytes-per-client` for this user or address.",
    remedy: "Finish uploads and read responses before you send more.",
  },
  QUOTA_EXCEEDED: {
    code: Code.ResourceExhausted,
    cause: "The caller has the maximum number of tunnels, records, idempotency keys or open challenges.",
    remedy:
      "Free some of the quota, as the message describes. `metadata` names the quota, its limit and its setting. A retry alone does not help.",
  },
  SERVER_BUSY: {
    code: Code.ResourceExhausted,
    cause:
      "The server reached `--max-calls` or `--max-streams`, or this user or address has its share of the calls: at most four times as many as are free. Or the caller's own work would wait longer than `--max-queue-ms`. For a batch, a stream or log-ins, the limit is `--max-backlog-ms`.",
    remedy: "Wait for `Retry-After`. Operator: use more cores or more servers.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons why a call ends early. */
export const endReasons = {
  DEADLINE_EXCEEDED: {
    code: Code.DeadlineExceeded,
    cause: "The call took longer than its own deadline or `--max-call-ms`.",
    remedy:
      "Allow more time. The call may have taken effect. Read before you repeat it, or repeat it with the same `Idempotency-Key`.",
  },
  CALL_CANCELED: {
    code: Code.Canceled,
    cause: "The caller disconnected or canceled the call.",
    remedy: "Nothing to do on the server. Check the timeout of the client.",
  },
  SHUTTING_DOWN: {
    code: Code.Unavailable,
    cause:
      "The server is stopping. It ends watches, tunnels and streams of readings immediately, and other calls after `--max-drain-ms`.",
    remedy: "Try again. Another server answers, or this one after its restart.",
  },
  NOT_IMPLEMENTED: {
    code: Code.Unimplemented,
    cause:
      "A unary gRPC call has no message, or several; or a request has another `Transfer-Encoding` than `chunked`.",
    remedy: "Fix the client: send exactly one message. Compress a body with `Content-Encoding`.",
  },
  CALL_UNSUPPORTED: {
    code: Code.Unimplemented,
    cause: "The server has this service of another vendor, but not this call of it.",
    remedy: "Use one of the calls that the message lists.",
  },
  INTERNAL: {
    code: Code.Internal,
    isServerFault: true,
    cause: "The server has a bug. The caller learns nothing more.",
    remedy: "Operator: find the cause in the log under the ID of the request, and report it.",
  },
} as const satisfies Record<string, Reason>;
