/** Limits of the structure of one message. The server checks them on the raw bytes, before it builds the message. */
import type { Registry } from "@bufbuild/protobuf";

/** The limits of the structure of a message. */
export interface StructureLimits {
  /** Values of a message: JSON values, or Protobuf fields, list elements and map entries. */
  readonly maxElements: number;
  /** Protobuf fields of a message that its type does not declare. */
  readonly maxUnknownFields: number;
}

/** Maximum depth of nested messages. protobuf-es has the same limit. */
export const maxMessageDepth = 100;

/** Maximum depth of nested JSON values: each nested message may be in a list. */
export const maxJsonDepth = 2 * maxMessageDepth;

/** The types and the limits that messages are read with. */
export interface MessageLimits {
  readonly registry: Registry;
  readonly structure: StructureLimits;
  /** Bytes of the message, compressed or not. */
  readonly maxBytes: number;
}
