/** Caches the encoded bytes of repeated answers. */
import { toBinary } from "@bufbuild/protobuf";
import {
  Authorization,
  type CheckResponse,
  CheckResponseSchema,
} from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { WireCodec, WireCodecs } from "../../src/calls/wire-codec.ts";

/** Encoded bytes by answer. */
const written = new WeakMap<CheckResponse, Uint8Array>();

/** Marks an answer as immutable, so that its bytes can be reused. */
export function keepBytes(answer: CheckResponse): CheckResponse {
  written.set(answer, toBinary(CheckResponseSchema, answer));
  return answer;
}

const codec: WireCodec = { write: (answer) => written.get(answer as CheckResponse) };

export const codecs: WireCodecs = new Map([[Authorization.method.check, codec]]);
