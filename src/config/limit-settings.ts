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
    "Maximum bytes of metadata of a request.",
  ),
  maxMessageBytes: defineInteger(
    "max-message-bytes",
    "4194304",
    1024,
    1_073_741_824,
    "Maximum bytes of a body or of one message of a stream; less for calls whose fields are short.",
  ),
  maxMessageElements: defineInteger(
    "max-message-elements",
    "20000",
    100,
    10_000_000,
    "Maximum values of a message: JSON values, or Protobuf fields and list elements.",
  ),
  maxUnknownFields: defineInteger(
    "max-unknown-fields",
    "1000",
    0,
    10_000_000,
    "Maximum Protobuf fields of a message that its type does not declare.",
  ),
  maxCallMs: defineInteger(
    "max-call-ms",
    "30000",
    1,
    86_400_000,
    "Maximum milliseconds of a unary call; a caller may set a shorter deadline.",
  ),
  maxDrainMs: defineInteger(
    "max-drain-ms",
    "30000",
    0,
    86_400_000,
    "Milliseconds that running calls have to finish when the server stops.",
  ),
  maxCalls: defineInteger(
    "max-calls",
    "1000",
    1,
    1_000_000,
    "Maximum concurrent unary calls; the server refuses more.",
  ),
  maxStreams: defineInteger(
    "max-streams",
    "10000",
    1,
    1_000_000,
    "Maximum concurrent streams; the server refuses more.",
  ),
  maxCallsPerUser: defineInteger(
    "max-calls-per-user",
    "250",
    0,
    1_000_000,
    "Maximum concurrent unary calls of each user or address; 0 for no limit. Not with --auth open.",
  ),
  maxStreamsPerUser: defineInteger(
    "max-streams-per-user",
    "1000",
    0,
    1_000_000,
    "Maximum concurrent streams of each user or address; 0 for no limit. Not with --auth open.",
  ),
  maxConnections: defineInteger(
    "max-connections",
    "20000",
    1,
    1_000_000,
    "Maximum concurrent connections; the server closes more.",
  ),
  maxBufferedBytes: defineInteger(
    "max-buffered-bytes",
    "268435456",
    1_048_576,
    1_099_511_627_776,
    "Maximum bytes of memory for all unfinished requests.",
  ),
  maxBufferedBytesPerClient: defineInteger(
    "max-buffered-bytes-per-client",
    "67108864",
    1_048_576,
    1_099_511_627_776,
    "Maximum bytes of memory for the unfinished requests, or the unread responses, of one user or address.",
  ),
  maxWriteMs: defineInteger(
    "max-write-ms",
    "20000",
    100,
    86_400_000,
    "Maximum milliseconds that a response waits for a client that does not read; a large piece has one more second for each 32 KB.",
  ),
  maxRecordsPerUser: defineInteger(
    "max-records-per-user",
    "100000",
    0,
    1_000_000_000,
    "Maximum records of each kind per user; 0 for no limit. With --auth open, all callers share ten times as many.",
  ),
  maxTunnelsPerUser: defineInteger(
    "max-tunnels-per-user",
    "1000",
    0,
    65_533,
    "Maximum tunnels, and therefore addresses, per user; 0 for no limit. With --auth open, all callers share ten times as many.",
  ),
  maxIdempotencyKeysPerUser: defineInteger(
    "max-idempotency-keys-per-user",
    "100000",
    0,
    1_000_000_000,
    "Maximum idempotency keys per user in 24 hours; 0 for no limit. With --auth open, all callers share ten times as many.",
  ),
  maxChallengesPerDevice: defineInteger(
    "max-challenges-per-device",
    "20",
    0,
    1_000_000,
    "Maximum open challenges of one device per client network; 0 for no limit.",
  ),
  maxChallengesPerClient: defineInteger(
    "max-challenges-per-client",
    "1000",
    0,
    1_000_000,
    "Maximum open challenges of all devices per client network; 0 for no limit.",
  ),
  maxCallsPerSecond: defineInteger(
    "max-calls-per-second",
    "500",
    0,
    1_000_000,
    "Maximum calls per second of each user or address, with bursts of twice as many; 0 for no limit. Not with --auth open.",
  ),
  maxQueueMs: defineInteger(
    "max-queue-ms",
    "1000",
    1,
    86_400_000,
    "Maximum milliseconds that a call waits for its computation; the server refuses calls that would wait longer.",
  ),
  maxBacklogMs: defineInteger(
    "max-backlog-ms",
    "10000",
    1,
    86_400_000,
    "The same limit for each piece of a batch, a stream or a chain, and for log-ins of one network.",
  ),
  maxPasswordChecks: defineInteger(
    "max-password-checks",
    "2",
    1,
    64,
    "Maximum concurrent password checks; each needs 128 MiB of memory and a thread.",
  ),
  maxFailedLogins: defineInteger(
    "max-failed-logins",
    "10",
    1,
    1_000_000,
    "Maximum failed log-ins in a minute, for each name, each IPv4 address and each IPv6 prefix (/64, /56 and /48).",
  ),
} as const;
