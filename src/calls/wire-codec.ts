/** Precomputed response bytes for individual RPCs over gRPC. */
import type { DescMethod, Message } from "@bufbuild/protobuf";

export interface WireCodec {
  /** Returns the bytes of an answer if known; undefined to encode it with its descriptor. */
  write(message: Message): Uint8Array | undefined;
}

export type WireCodecs = ReadonlyMap<DescMethod, WireCodec>;
