/** What a server does that is asked for more than it can do. */
import { create, toBinary } from "@bufbuild/protobuf";
import { SignDataRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { type Child, flood, grpc, load } from "./tools.ts";

/** So many times what it can bear, and as much as it can, to compare. */
const factors = [1, 2, 5];

export async function measureOverload(app: Child): Promise<void> {
  const message = toBinary(
    SignDataRequestSchema,
    create(SignDataRequestSchema, { data: Buffer.from("hello") }),
  );
  const call = grpc("/pqc.PqcService/SignData", message);
  const { callsPerSecond: capacity } = await load(app.url, call);
  console.log(`SignData over gRPC, as fast as it answers: ${capacity.toFixed(0)} a second`);
  for (const factor of factors) {
    const { byStatus, answered, refused } = await flood(app.url, call, factor * capacity);
    const { "0": ok = 0, "8": exhausted = 0, ...others } = byStatus;
    const lost = Object.values(others).reduce((sum, count) => sum + count, 0);
    console.log(
      `  asked for ${factor} times that: ${(ok / capacity).toFixed(2)} of it answered, ` +
        `p50 ${answered.p50Ms.toFixed(0)} ms, p99 ${answered.p99Ms.toFixed(0)} ms; ` +
        `${exhausted.toFixed(0)} a second refused, p50 ${refused.p50Ms.toFixed(0)} ms, p99 ${refused.p99Ms.toFixed(0)} ms; ` +
        `${lost.toFixed(0)} a second ended otherwise`,
    );
  }
}
