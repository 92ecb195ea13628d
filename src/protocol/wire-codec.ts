/** Faster ways between bytes and messages than by descriptors, for single RPCs over gRPC. */
import type { DescMethod, Message } from "@bufbuild/protobuf";

/** The codec of one RPC. */
export interface WireCodec {
  /**
   * Reads a request. It needs to read only the fields that the implementation uses.
   *
   * @returns undefined for bytes to read by the descriptor, such as malformed ones
   */
  read(bytes: Uint8Array): Message | undefined;
  /** Returns the bytes of an answer, if they are known; undefined for an answer to write by the descriptor. */
  write(message: Message): Uint8Array | undefined;
}

/** The codecs of RPCs that have one. */
export type WireCodecs = ReadonlyMap<DescMethod, WireCodec>;
