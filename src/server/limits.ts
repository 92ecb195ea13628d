import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { type ReasonName, refuseForNow } from "../errors.ts";
import { findMessageLimit } from "../message-limits/message-limit.ts";
import type { StructureLimits } from "../message-limits/structure-limits.ts";
import type { BodyLimits } from "../transcoding/body.ts";
import { isInfrastructure } from "./interceptors/access.ts";

/** Limits on requests and calls. Each has a setting (docs/settings.md). */
export interface ServerLimits {
  /** Maximum bytes of all metadata names and values of a request. */
  readonly maxMetadataBytes: number;
  /** Maximum bytes of a body or stream message, unless the rules of its call set a smaller limit. */
  readonly maxMessageBytes: number;
  /** Maximum JSON values, or Protobuf fields and elements, per message. */
  readonly maxMessageElements: number;
  /** Maximum Protobuf fields per message that its type does not declare. */
  readonly maxUnknownFields: number;
  /** Milliseconds for the headers of a request to arrive. */
  readonly maxHeaderMs: number;
  /** Milliseconds for the body of a unary request to arrive. */
  readonly maxReceiveMs: number;
  /** Milliseconds that a unary call may take. A shorter caller deadline takes precedence. */
  readonly maxCallMs: number;
  /** Milliseconds that running calls have to finish when the server stops. */
  readonly maxDrainMs: number;
  /** Maximum concurrent unary calls. */
  readonly maxCalls: number;
  /** Maximum concurrent streams. */
  readonly maxStreams: number;
  /** Maximum concurrent unary calls per user or address; 0 for no limit. */
  readonly maxCallsPerUser: number;
  /** Maximum concurrent streams per user or address; 0 for no limit. */
  readonly maxStreamsPerUser: number;
  /** Maximum calls per second and client; 0 for no limit. */
  readonly maxCallsPerSecond: number;
  /** Maximum open connections. */
  readonly maxConnections: number;
  /** Maximum open connections per client network; 0 for no limit. */
  readonly maxConnectionsPerClient: number;
  /** Maximum new connections per second and client network; 0 for no limit. */
  readonly maxConnectionsPerSecond: number;
  /** Maximum bytes held by all unfinished requests. */
  readonly maxBufferedBytes: number;
  /** Maximum bytes held by the unfinished requests of one client, or by its unread responses. */
  readonly maxBufferedBytesPerClient: number;
  /** Milliseconds that a response may wait for a client that reads nothing. */
  readonly maxWriteMs: number;
}

/** Maximum bytes of a health or reflection message; such a request is little more than a name. */
const maxInfrastructureBytes = 16 * 1024;

export function toStructureLimits({ maxMessageElements, maxUnknownFields }: ServerLimits): StructureLimits {
  return { maxElements: maxMessageElements, maxUnknownFields };
}

export function toBodyLimits(limits: ServerLimits): BodyLimits {
  const { maxMessageBytes: maxBytes, maxReceiveMs } = limits;
  return { maxBytes, maxReceiveMs, structure: toStructureLimits(limits) };
}

/** Returns the maximum message size of a call, in bytes. */
export function findMaxBytes(
  method: DescMethod,
  { maxMessageBytes }: ServerLimits,
  profiles?: ServiceProfiles,
): number {
  return isInfrastructure(method)
    ? Math.min(maxInfrastructureBytes, maxMessageBytes)
    : findMessageLimit(method, maxMessageBytes, profiles);
}

/** Refuses what exceeds a limit at present; a caller may retry after `retryMs`. */
export function limitReached(
  reason: ReasonName,
  limit: number,
  message: string,
  retryMs = 1000,
): ConnectError {
  return refuseForNow(reason, message, retryMs, { limit: String(limit) });
}
