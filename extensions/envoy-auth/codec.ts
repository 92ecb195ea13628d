/** Writes answers that were given before. */
import { toBinary } from "@bufbuild/protobuf";
import {
  Authorization,
  type CheckResponse,
  CheckResponseSchema,
} from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { WireCodec, WireCodecs } from "../../src/calls/wire-codec.ts";

/** The bytes of an answer that is given again and again. */
const written = new WeakMap<CheckResponse, Uint8Array>();

/** Notes that an answer never changes, so that its bytes can be sent again. */
export function keepBytes(answer: CheckResponse): CheckResponse {
  written.set(answer, toBinary(CheckResponseSchema, answer));
  return answer;
}

const codec: WireCodec = { write: (answer) => written.get(answer as CheckResponse) };

/** The codecs of the package. */
export const codecs: WireCodecs = new Map([[Authorization.method.check, codec]]);
