/** The limits on requests, calls and records, with their defaults. */
import { defineInteger, defineOptionalInteger } from "./setting.ts";

/** Milliseconds for the headers of a request to arrive; not configurable. */
export const maxHeaderMs = 15_000;
/** Milliseconds for the body of a unary request to arrive; not configurable. */
export const maxReceiveMs = 30_000;

/** The limits, in the order of the help text. */
export const limitSettings = {
  maxMetadataBytes: defineInteger(
    "max-metadata-bytes",
    { fallback: 16_384, min: 1024, max: 1_048_576 },
    "Maximum bytes of request metadata.",
  ),
  maxMessageBytes: defineInteger(
    "max-message-bytes",
    { fallback: 4_194_304, min: 1024, max: 1_073_741_824 },
    "Maximum bytes of a body or stream message; less for calls whose fields are short.",
  ),
  maxMessageElements: defineInteger(
    "max-message-elements",
    { fallback: 20_000, min: 100, max: 10_000_000 },
    "Maximum values per message: JSON values, or Protobuf fields and list elements.",
  ),
  maxUnknownFields: defineInteger(
    "max-unknown-fields",
    { fallback: 1000, min: 0, max: 10_000_000 },
    "Maximum Protobuf fields per message that its type does not declare.",
  ),
  maxCallMs: defineInteger(
    "max-call-ms",
    { fallback: 30_000, min: 1, max: 86_400_000 },
    "Maximum duration of a unary call in milliseconds; a caller may set a shorter deadline.",
  ),
  maxDrainMs: defineInteger(
    "max-drain-ms",
    { fallback: 30_000, min: 0, max: 86_400_000 },
    "Milliseconds that running calls have to finish when the server stops.",
  ),
  maxCalls: defineInteger(
    "max-calls",
    { fallback: 400, min: 1, max: 1_000_000 },
    "Maximum concurrent unary calls; the server refuses more.",
  ),
  maxStreams: defineInteger(
    "max-streams",
    { fallback: 10_000, min: 1, max: 1_000_000 },
    "Maximum concurrent streams; the server refuses more.",
  ),
  maxCallsPerUser: defineInteger(
    "max-calls-per-user",
    { fallback: 250, min: 0, max: 1_000_000 },
    "Maximum concurrent unary calls per user or address; 0 for no limit. Not applied with --auth open.",
  ),
  maxStreamsPerUser: defineInteger(
    "max-streams-per-user",
    { fallback: 1000, min: 0, max: 1_000_000 },
    "Maximum concurrent streams per user or address; 0 for no limit. Not applied with --auth open.",
  ),
  maxConnections: defineInteger(
    "max-connections",
    { fallback: 20_000, min: 1, max: 1_000_000 },
    "Maximum concurrent connections; the server closes more.",
  ),
  maxConnectionsPerClient: defineOptionalInteger(
    "max-connections-per-client",
    { min: 0, max: 1_000_000 },
    "Maximum concurrent connections per address, or per /64 IPv6 network; the server closes more; 0 for no limit; by default a quarter of --max-connections. Does not count 127.0.0.1, ::1 and --trusted-proxies, which many clients share.",
  ),
  maxConnectionsPerSecond: defineInteger(
    "max-connections-per-second",
    { fallback: 100, min: 0, max: 1_000_000 },
    "Maximum new connections per second and address, or /64 IPv6 network, with bursts of twice as many; the server closes more; 0 for no limit. Ten requests that end without an answer count as one. Does not count 127.0.0.1, ::1 and --trusted-proxies.",
  ),
  maxBufferedBytes: defineInteger(
    "max-buffered-bytes",
    { fallback: 268_435_456, min: 1_048_576, max: 1_099_511_627_776 },
    "Maximum bytes of memory for all unfinished requests.",
  ),
  maxBufferedBytesPerClient: defineInteger(
    "max-buffered-bytes-per-client",
    { fallback: 67_108_864, min: 1_048_576, max: 1_099_511_627_776 },
    "Maximum bytes of memory for the unfinished requests of one user or address, or for its unread responses.",
  ),
  maxWriteMs: defineInteger(
    "max-write-ms",
    { fallback: 20_000, min: 100, max: 86_400_000 },
    "Maximum milliseconds that a response waits for a client that does not read; a large piece gets one more second per 32 KB.",
  ),
  maxRecordsPerUser: defineInteger(
    "max-records-per-user",
    { fallback: 100_000, min: 0, max: 1_000_000_000 },
    "Maximum records of each kind per user; 0 for no limit. With --auth open, all callers share ten times as many.",
  ),
  maxTunnelsPerUser: defineInteger(
    "max-tunnels-per-user",
    { fallback: 1000, min: 0, max: 65_533 },
    "Maximum tunnels, and therefore addresses, per user; 0 for no limit. With --auth open, all callers share ten times as many.",
  ),
  maxIdempotencyKeysPerUser: defineInteger(
    "max-idempotency-keys-per-user",
    { fallback: 100_000, min: 0, max: 1_000_000_000 },
    "Maximum idempotency keys per user in 24 hours; 0 for no limit. With --auth open, all callers share ten times as many.",
  ),
  maxChallengesPerDevice: defineInteger(
    "max-challenges-per-device",
    { fallback: 20, min: 0, max: 1_000_000 },
    "Maximum open challenges of one device per client network; 0 for no limit.",
  ),
  maxChallengesPerClient: defineInteger(
    "max-challenges-per-client",
    { fallback: 1000, min: 0, max: 1_000_000 },
    "Maximum open challenges of all devices per client network; 0 for no limit.",
  ),
  maxCallsPerSecond: defineInteger(
    "max-calls-per-second",
    { fallback: 500, min: 0, max: 1_000_000 },
    "Maximum calls per second and user or address, with bursts of twice as many; 0 for no limit. Not applied with --auth open.",
  ),
  maxQueueMs: defineInteger(
    "max-queue-ms",
    { fallback: 1000, min: 1, max: 86_400_000 },
    "Maximum milliseconds that a call waits for its computation; the server refuses calls that would wait longer.",
  ),
  maxBacklogMs: defineInteger(
    "max-backlog-ms",
    { fallback: 10_000, min: 1, max: 86_400_000 },
    "The same limit for each piece of a batch, stream or chain, and for log-ins from one network.",
  ),
  maxPasswordChecks: defineInteger(
    "max-password-checks",
    { fallback: 2, min: 1, max: 64 },
    "Maximum concurrent password checks; each needs 128 MiB of memory and a thread.",
  ),
  maxFailedLogins: defineInteger(
    "max-failed-logins",
    { fallback: 10, min: 1, max: 1_000_000 },
    "Maximum failed log-ins per minute, for each name, each IPv4 address and each IPv6 prefix (/64, /56 and /48).",
  ),
} as const;
