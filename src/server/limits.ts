/** What bounds the requests and the calls of a server. */
import type { DescMethod } from "@bufbuild/protobuf";
import { defaultStructureLimits, type StructureLimits } from "../protocol/structure-limits.ts";
import { isInfrastructure } from "./interceptors/access.ts";

/** What bounds requests and calls. */
export interface ServerLimits {
  /** Bytes of all names and values of a request's metadata; 16,384 by default. */
  readonly maxMetadataBytes: number;
  /** Bytes of a body, or of one message of a stream; 4 MiB by default. */
  readonly maxMessageBytes: number;
  /** JSON values, or Protobuf fields and elements, of a message; 20,000 by default. */
  readonly maxMessageElements: number;
  /** Protobuf fields of a message that its type does not declare; 1,000 by default. */
  readonly maxUnknownFields: number;
  /** Milliseconds for the headers of a request to arrive; 15,000 by default. */
  readonly maxHeaderMs: number;
  /** Milliseconds for the body of a unary request to arrive; 30,000 by default. */
  readonly maxReceiveMs: number;
  /** Milliseconds that a unary call may take; 30,000 by default. A caller's shorter deadline goes before. */
  readonly maxCallMs: number;
  /** Milliseconds that running calls have to finish when the server stops; 30,000 by default. */
  readonly maxDrainMs: number;
  /** Unary calls at a time; 1000 by default. */
  readonly maxCalls: number;
  /** Streams at a time; 10,000 by default. */
  readonly maxStreams: number;
  /** Unary calls at a time of one user or address; 0, the default, for no limit. */
  readonly maxCallsPerUser: number;
  /** Streams at a time of one user or address; 0, the default, for no limit. */
  readonly maxStreamsPerUser: number;
  /** Calls a second of each client; 0, the default, for no limit. */
  readonly maxCallsPerSecond: number;
  /** Connections at a time; 20,000 by default. */
  readonly maxConnections: number;
  /** Bytes that all unfinished requests may hold; 256 MiB by default. */
  readonly maxBufferedBytes: number;
  /** Bytes that the unfinished requests, or the unread responses, of one client may hold; 64 MiB by default. */
  readonly maxBufferedBytesPerClient: number;
  /** Milliseconds that a response may wait for a client that reads nothing; 20,000 by default. */
  readonly maxWriteMs: number;
}

/** The limits of a server that is given no others. */
export const defaultLimits: ServerLimits = {
  maxMetadataBytes: 16_384,
  maxMessageBytes: 4 * 1024 * 1024,
  maxMessageElements: defaultStructureLimits.maxElements,
  maxUnknownFields: defaultStructureLimits.maxUnknownFields,
  maxHeaderMs: 15_000,
  maxReceiveMs: 30_000,
  maxCallMs: 30_000,
  maxDrainMs: 30_000,
  maxCalls: 1000,
  maxStreams: 10_000,
  maxCallsPerUser: 0,
  maxStreamsPerUser: 0,
  maxCallsPerSecond: 0,
  maxConnections: 20_000,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxBufferedBytesPerClient: 64 * 1024 * 1024,
  maxWriteMs: 20_000,
};

/** Bytes of a message of health or reflection; a question is a name. */
const maxInfrastructureBytes = 16 * 1024;

/** What bounds the structure of a message. */
export function toStructureLimits({ maxMessageElements, maxUnknownFields }: ServerLimits): StructureLimits {
  return { maxElements: maxMessageElements, maxUnknownFields };
}

/** Bytes that a message of a call may have. */
export function findMaxBytes(method: DescMethod, { maxMessageBytes }: ServerLimits): number {
  return isInfrastructure(method) ? Math.min(maxInfrastructureBytes, maxMessageBytes) : maxMessageBytes;
}
