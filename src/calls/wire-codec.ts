/** Known bytes of answers, for single RPCs over gRPC. */
import type { DescMethod, Message } from "@bufbuild/protobuf";

/** The codec of one RPC. */
export interface WireCodec {
  /** Returns the bytes of an answer, if they are known; undefined for an answer to write by the descriptor. */
  write(message: Message): Uint8Array | undefined;
}

/** The codecs of RPCs that have one. */
export type WireCodecs = ReadonlyMap<DescMethod, WireCodec>;
