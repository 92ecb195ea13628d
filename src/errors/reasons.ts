/** Every core reason for refusing a call. docs/errors.md explains the cause and remedy of each. */
import { Code } from "@connectrpc/connect";
import type { Reason } from "./reason.ts";

/** Every core reason that a caller can receive, by topic. A reason keeps its meaning after it ships. */
export const reasons = {
  // Finding the call
  ROUTE_NOT_FOUND: { code: Code.NotFound },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, httpStatus: 405 },
  METHOD_UNKNOWN: { code: Code.Unimplemented },
  RPC_NOT_FOUND: { code: Code.Unimplemented, httpStatus: 404 },
  SERVICE_UNKNOWN: { code: Code.NotFound },
  TARGET_INVALID: { code: Code.InvalidArgument },
  HTTP_INVALID: { code: Code.InvalidArgument },
  HOST_NOT_ALLOWED: { code: Code.PermissionDenied },
  CROSS_SITE_REFUSED: { code: Code.PermissionDenied },
  METADATA_TOO_LARGE: { code: Code.ResourceExhausted, httpStatus: 431 },
  REQUEST_TOO_SLOW: { code: Code.DeadlineExceeded, httpStatus: 408 },

  // Headers and body
  NOT_ACCEPTABLE: { code: Code.InvalidArgument, httpStatus: 406 },
  MEDIA_TYPE_MISSING: { code: Code.InvalidArgument },
  MEDIA_TYPE_UNSUPPORTED: { code: Code.InvalidArgument, httpStatus: 415 },
  ENCODING_UNSUPPORTED: { code: Code.Unimplemented, httpStatus: 415 },
  ENCODING_INVALID: { code: Code.InvalidArgument },
  ENCODING_MISSING: { code: Code.Internal },
  BODY_TOO_LARGE: { code: Code.ResourceExhausted, httpStatus: 413 },
  BODY_UNEXPECTED: { code: Code.InvalidArgument },
  BODY_INCOMPLETE: { code: Code.InvalidArgument },
  TIMEOUT_INVALID: { code: Code.InvalidArgument },
  RANGE_NOT_SATISFIABLE: { code: Code.OutOfRange, httpStatus: 416 },

  // The message
  MESSAGE_MALFORMED: { code: Code.InvalidArgument },
  MESSAGE_TOO_COMPLEX: { code: Code.InvalidArgument },
  JSON_INVALID: { code: Code.InvalidArgument },
  PARAMETER_UNKNOWN: { code: Code.InvalidArgument },
  PARAMETER_DUPLICATE: { code: Code.InvalidArgument },
  FIELD_CONTRADICTION: { code: Code.InvalidArgument },
  FIELD_INVALID: { code: Code.InvalidArgument },
  KEY_INVALID: { code: Code.InvalidArgument },
  LENGTH_INVALID: { code: Code.InvalidArgument },
  IDEMPOTENCY_KEY_INVALID: { code: Code.InvalidArgument },
  IDEMPOTENCY_KEY_REUSED: { code: Code.AlreadyExists },

  // Keys
  KEY_NOT_FOUND: { code: Code.NotFound },
  KEY_STATE_INVALID: { code: Code.FailedPrecondition },
  KEY_USAGE_MISMATCH: { code: Code.FailedPrecondition },
  DECRYPTION_FAILED: { code: Code.InvalidArgument },
  NAME_TAKEN: { code: Code.AlreadyExists },
  GRANT_MISSING: { code: Code.PermissionDenied },
  GRANT_NOT_FOUND: { code: Code.NotFound },
  IMPORT_TOKEN_INVALID: { code: Code.NotFound },
  BATCH_TOO_LARGE: { code: Code.InvalidArgument },
  KEY_DAMAGED: { code: Code.DataLoss, isServerFault: true },

  // Records of other services
  RECORD_DAMAGED: { code: Code.DataLoss, isServerFault: true },
  WALLET_NOT_FOUND: { code: Code.NotFound },
  TOKEN_NOT_FOUND: { code: Code.NotFound },
  OWNER_MISMATCH: { code: Code.FailedPrecondition },
  PROPOSAL_NOT_FOUND: { code: Code.NotFound },
  PROPOSAL_EXECUTED: { code: Code.FailedPrecondition },
  PROPOSAL_EXPIRED: { code: Code.FailedPrecondition },
  THRESHOLD_NOT_REACHED: { code: Code.FailedPrecondition },
  SIGNER_UNKNOWN: { code: Code.PermissionDenied },
  ALREADY_SIGNED: { code: Code.AlreadyExists },
  SIGNATURE_MISSING: { code: Code.FailedPrecondition },
  SIGNATURE_INVALID: { code: Code.InvalidArgument },
  VALIDATOR_MISSING: { code: Code.FailedPrecondition },
  VALIDATOR_NOT_FOUND: { code: Code.NotFound },
  DEVICE_NOT_FOUND: { code: Code.NotFound },
  DEVICE_NOT_SIMULATED: { code: Code.FailedPrecondition },
  VENDOR_MISSING: { code: Code.FailedPrecondition },
  TUNNEL_NOT_FOUND: { code: Code.NotFound },
  ADDRESS_POOL_EMPTY: { code: Code.ResourceExhausted },
  SESSION_MISSING: { code: Code.FailedPrecondition },
  REKEY_NEEDED: { code: Code.FailedPrecondition },
  HANDSHAKE_REPLAYED: { code: Code.AlreadyExists },
  HANDSHAKE_LIMIT_REACHED: { code: Code.ResourceExhausted },
  PACKET_INVALID: { code: Code.InvalidArgument },
  PACKET_REFLECTED: { code: Code.InvalidArgument },
  PACKET_REPLAYED: { code: Code.AlreadyExists },

  // Verifiable logs
  LOG_NOT_FOUND: { code: Code.NotFound },
  CHECKPOINT_NOT_FOUND: { code: Code.NotFound },
  TILE_NOT_FOUND: { code: Code.NotFound },
  LEAF_OUT_OF_RANGE: { code: Code.OutOfRange },
  TREE_SIZE_OUT_OF_RANGE: { code: Code.OutOfRange },
  LOG_ENTRIES_PRIVATE: { code: Code.PermissionDenied },
  NOTE_INVALID: { code: Code.InvalidArgument },
  WITNESS_UNKNOWN: { code: Code.PermissionDenied },
  COSIGNATURE_INVALID: { code: Code.InvalidArgument },

  // The store
  STORE_UNAVAILABLE: { code: Code.Unavailable, isServerFault: true },
  // Not a server fault: every write is refused until there is room, and a line for each would fill the log's
  // disk. src/watch-store.ts logs when this starts and ends.
  STORE_FULL: { code: Code.ResourceExhausted },
  STORE_DAMAGED: { code: Code.DataLoss, isServerFault: true },
  MASTER_KEY_MISSING: { code: Code.Unavailable, isServerFault: true },

  // The caller
  TOKEN_MISSING: { code: Code.Unauthenticated },
  TOKEN_MALFORMED: { code: Code.Unauthenticated },
  TOKEN_KEY_UNKNOWN: { code: Code.Unauthenticated },
  TOKEN_SIGNATURE_INVALID: { code: Code.Unauthenticated },
  TOKEN_EXPIRED: { code: Code.Unauthenticated },
  TOKEN_AUDIENCE_MISMATCH: { code: Code.Unauthenticated },
  TOKEN_REVOKED: { code: Code.Unauthenticated },
  LOGIN_FAILED: { code: Code.Unauthenticated },
  ROLE_MISSING: { code: Code.PermissionDenied },
  SCOPE_MISSING: { code: Code.PermissionDenied },

  // Limits
  LOGIN_LIMITED: { code: Code.ResourceExhausted },
  RATE_LIMITED: { code: Code.ResourceExhausted },
  CONCURRENCY_LIMITED: { code: Code.ResourceExhausted },
  BUFFER_LIMITED: { code: Code.ResourceExhausted },
  QUOTA_EXCEEDED: { code: Code.ResourceExhausted },
  SERVER_BUSY: { code: Code.ResourceExhausted },

  // How the call ended
  DEADLINE_EXCEEDED: { code: Code.DeadlineExceeded },
  CALL_CANCELED: { code: Code.Canceled },
  SHUTTING_DOWN: { code: Code.Unavailable },
  NOT_IMPLEMENTED: { code: Code.Unimplemented },
  CALL_UNSUPPORTED: { code: Code.Unimplemented },
  INTERNAL: { code: Code.Internal, isServerFault: true },
} as const satisfies Record<string, Reason>;

export type ReasonName = keyof typeof reasons;
