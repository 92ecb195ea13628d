/** The limits of the requests and the calls of a server. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { findMessageLimit } from "../message-limits/message-limit.ts";
import type { StructureLimits } from "../message-limits/structure-limits.ts";
import type { BodyLimits } from "../transcoding/body.ts";
import { isInfrastructure } from "./interceptors/access.ts";

/** The limits of requests and calls. */
export interface ServerLimits {
  /** Bytes of all names and values of a request's metadata. */
  readonly maxMetadataBytes: number;
  /** Bytes of a body, or of one message of a stream, of a call whose rules set no smaller limit. */
  readonly maxMessageBytes: number;
  /** JSON values, or Protobuf fields and elements, of a message. */
  readonly maxMessageElements: number;
  /** Protobuf fields of a message that its type does not declare. */
  readonly maxUnknownFields: number;
  /** Milliseconds for the headers of a request to arrive. */
  readonly maxHeaderMs: number;
  /** Milliseconds for the body of a unary request to arrive. */
  readonly maxReceiveMs: number;
  /** Milliseconds that a unary call may take. A shorter deadline of the caller takes precedence. */
  readonly maxCallMs: number;
  /** Milliseconds that running calls have to finish when the server stops. */
  readonly maxDrainMs: number;
  /** Unary calls at a time. */
  readonly maxCalls: number;
  /** Streams at a time. */
  readonly maxStreams: number;
  /** Unary calls at a time of one user or address; 0 for no limit. */
  readonly maxCallsPerUser: number;
  /** Streams at a time of one user or address; 0 for no limit. */
  readonly maxStreamsPerUser: number;
  /** Calls a second of each client; 0 for no limit. */
  readonly maxCallsPerSecond: number;
  /** Connections at a time. */
  readonly maxConnections: number;
  /** Connections at a time of one client network; 0 for no limit. */
  readonly maxConnectionsPerClient: number;
  /** New connections a second of one client network; 0 for no limit. */
  readonly maxConnectionsPerSecond: number;
  /** Bytes that all unfinished requests may hold. */
  readonly maxBufferedBytes: number;
  /** Bytes that the unfinished requests, or the unread responses, of one client may hold. */
  readonly maxBufferedBytesPerClient: number;
  /** Milliseconds that a response may wait for a client that reads nothing. */
  readonly maxWriteMs: number;
}

/** Bytes of a message of health or reflection, where a request is little more than a name. */
const maxInfrastructureBytes = 16 * 1024;

/** The limits of the structure of a message. */
export function toStructureLimits({ maxMessageElements, maxUnknownFields }: ServerLimits): StructureLimits {
  return { maxElements: maxMessageElements, maxUnknownFields };
}

/** The limits of a body. */
export function toBodyLimits(limits: ServerLimits): BodyLimits {
  const { maxMessageBytes: maxBytes, maxReceiveMs } = limits;
  return { maxBytes, maxReceiveMs, structure: toStructureLimits(limits) };
}

/** The largest number of bytes that a message of a call may have. */
export function findMaxBytes(
  method: DescMethod,
  { maxMessageBytes }: ServerLimits,
  profiles?: ServiceProfiles,
): number {
  return isInfrastructure(method)
    ? Math.min(maxInfrastructureBytes, maxMessageBytes)
    : findMessageLimit(method, maxMessageBytes, profiles);
}
