/** Writes `status: "success"` into every answer that has the field. */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { Interceptor } from "@connectrpc/connect";
import { mapStream } from "./streams.ts";

/** Fills the field `status` of successful answers, so that no handler has to. */
export function statusInterceptor(): Interceptor {
  return (next) => async (req) => {
    const res = await next(req);
    const { output } = req.method;
    if (!res.stream) {
      setStatus(output, res.message);
      return res;
    }
    const message = (answer: Message): Message => {
      setStatus(output, answer);
      return answer;
    };
    return { ...res, message: mapStream(res.message, { message }) };
  };
}

function setStatus(output: DescMessage, message: Message): void {
  const field = output.field.status;
  if (field?.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING || field.name !== "status") return;
  reflect(output, message).set(field, "success");
}
