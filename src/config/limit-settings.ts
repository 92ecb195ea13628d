/** The limits on requests, calls and records, with every default. */
import { defineInteger } from "./setting.ts";

/** Milliseconds for the headers of a request to arrive; not configurable. */
export const maxHeaderMs = 15_000;
/** Milliseconds for the body of a unary request to arrive; not configurable. */
export const maxReceiveMs = 30_000;

/** The limits, in the order in which the help shows them. */
export const limitSettings = {
  maxMetadataBytes: defineInteger(
    "max-metadata-bytes",
    "16384",
    1024,
    1_048_576,
    "Bytes of metadata a request may have.",
  ),
  maxMessageBytes: defineInteger(
    "max-message-bytes",
    "4194304",
    1024,
    1_073_741_824,
    "Bytes a body, or a message of a stream, may have.",
  ),
  maxMessageElements: defineInteger(
    "max-message-elements",
    "20000",
    100,
    10_000_000,
    "Values a message may have: JSON values, or Protobuf fields and list elements.",
  ),
  maxUnknownFields: defineInteger(
    "max-unknown-fields",
    "1000",
    0,
    10_000_000,
    "Protobuf fields a message may have that its type does not declare.",
  ),
  maxCallMs: defineInteger(
    "max-call-ms",
    "30000",
    1,
    86_400_000,
    "Milliseconds a unary call may take; a caller may set less.",
  ),
  maxDrainMs: defineInteger(
    "max-drain-ms",
    "30000",
    0,
    86_400_000,
    "Milliseconds that running calls get when the server stops.",
  ),
  maxCalls: defineInteger("max-calls", "1000", 1, 1_000_000, "Unary calls at a time; more are refused."),
  maxStreams: defineInteger("max-streams", "10000", 1, 1_000_000, "Streams at a time; more are refused."),
  maxCallsPerUser: defineInteger(
    "max-calls-per-user",
    "250",
    0,
    1_000_000,
    "Unary calls at a time of each user or address; 0 for no limit. Not with --auth open.",
  ),
  maxStreamsPerUser: defineInteger(
    "max-streams-per-user",
    "1000",
    0,
    1_000_000,
    "Streams at a time of each user or address; 0 for no limit. Not with --auth open.",
  ),
  maxConnections: defineInteger(
    "max-connections",
    "20000",
    1,
    1_000_000,
    "Connections at a time; more are closed.",
  ),
  maxBufferedBytes: defineInteger(
    "max-buffered-bytes",
    "268435456",
    1_048_576,
    1_099_511_627_776,
    "Bytes that all unfinished requests may hold in memory.",
  ),
  maxBufferedBytesPerClient: defineInteger(
    "max-buffered-bytes-per-client",
    "67108864",
    1_048_576,
    1_099_511_627_776,
    "Bytes that the unfinished requests, or the unread responses, of one user or address may hold.",
  ),
  maxWriteMs: defineInteger(
    "max-write-ms",
    "20000",
    100,
    86_400_000,
    "Milliseconds that a response may wait for a client that reads nothing; a large piece gets a second more for each 32 KB.",
  ),
  maxRecordsPerUser: defineInteger(
    "max-records-per-user",
    "100000",
    0,
    1_000_000_000,
    "Records of each kind that a user may have; 0 for any. Ten times as many for all callers of --auth open.",
  ),
  maxTunnelsPerUser: defineInteger(
    "max-tunnels-per-user",
    "1000",
    0,
    65_533,
    "Tunnels, and so addresses, that a user may have; 0 for any. Ten times as many with --auth open.",
  ),
  maxIdempotencyKeysPerUser: defineInteger(
    "max-idempotency-keys-per-user",
    "100000",
    0,
    1_000_000_000,
    "Idempotency keys that a user may use in 24 hours; 0 for any. Ten times as many with --auth open.",
  ),
  maxChallengesPerDevice: defineInteger(
    "max-challenges-per-device",
    "20",
    0,
    1_000_000,
    "Open challenges of a device that one client network may have; 0 for any.",
  ),
  maxChallengesPerClient: defineInteger(
    "max-challenges-per-client",
    "1000",
    0,
    1_000_000,
    "Open challenges of all devices that one client network may have; 0 for any.",
  ),
  maxCallsPerSecond: defineInteger(
    "max-calls-per-second",
    "500",
    0,
    1_000_000,
    "Calls a second of each user or address, twice as many at once; 0 for any. Not with --auth open.",
  ),
  maxQueueMs: defineInteger(
    "max-queue-ms",
    "1000",
    1,
    86_400_000,
    "Milliseconds that a call may have to wait before it is computed; beyond that it is refused.",
  ),
  maxBacklogMs: defineInteger(
    "max-backlog-ms",
    "10000",
    1,
    86_400_000,
    "The same for each piece of a batch, a stream or a chain, and for log-ins of one network.",
  ),
  maxPasswordChecks: defineInteger(
    "max-password-checks",
    "2",
    1,
    64,
    "Passwords that are checked at a time; each takes 128 MiB of memory and a thread.",
  ),
  maxFailedLogins: defineInteger(
    "max-failed-logins",
    "10",
    1,
    1_000_000,
    "Log-ins that may fail in a minute, for each name, and for each address with its /64, /56 and /48 of IPv6.",
  ),
} as const;
