/** Bounds on the structure of one message. The server checks them on the raw bytes, before it builds anything. */

/** What bounds the structure of a message. */
export interface StructureLimits {
  /** Values of a message: JSON values, or Protobuf fields, list elements and map entries. */
  readonly maxElements: number;
  /** Protobuf fields of a message that its type does not declare. */
  readonly maxUnknownFields: number;
}

/** Nested messages at most. protobuf-es has the same limit. */
export const maxMessageDepth = 100;

/** Nested JSON values at most: each nested message may stand in a list. */
export const maxJsonDepth = 2 * maxMessageDepth;
