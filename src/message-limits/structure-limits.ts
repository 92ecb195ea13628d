/**
 * Limits on the structure of one message. The server checks them on the raw bytes, before it builds the
 * message.
 */
import type { Registry } from "@bufbuild/protobuf";

export interface StructureLimits {
  /** Maximum values per message: JSON values, or Protobuf fields, list elements and map entries. */
  readonly maxElements: number;
  /** Maximum Protobuf fields per message that its type does not declare. */
  readonly maxUnknownFields: number;
}

/** Maximum depth of nested messages. protobuf-es has the same limit. */
export const maxMessageDepth = 100;

/** Maximum depth of nested JSON values: each nested message may be in a list. */
export const maxJsonDepth = 2 * maxMessageDepth;

/** The types and limits for reading messages. */
export interface MessageLimits {
  readonly registry: Registry;
  readonly structure: StructureLimits;
  /** Maximum bytes of the message, compressed or not. */
  readonly maxBytes: number;
}
