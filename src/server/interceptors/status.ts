/** Writes `status: "success"` into every answer that has the field. */
import { type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { mapStream } from "./streams.ts";

/** Sets the field `status` of successful answers, so that handlers do not have to. */
export function statusInterceptor(): Interceptor {
  return (next) => async (req) => {
    const res = await next(req);
    if (!hasStatus(req.method.output)) return res;
    if (res.stream) return { ...res, message: mapStream(res.message, { message: setStatus }) };
    setStatus(res.message);
    return res;
  };
}

function hasStatus({ field }: DescMessage): boolean {
  const { status } = field;
  return status?.fieldKind === "scalar" && status.scalar === ScalarType.STRING && status.name === "status";
}

/** Does not use reflection, which takes longer than all other work on a message of a stream. */
function setStatus(answer: Message): Message {
  return Object.assign(answer, { status: "success" });
}
