/** Cost of the verifiable logs: server CPU for each signature with a stored key, with and without them. */
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { SignRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { report, showProgress } from "./results.ts";
import { perCall, readThreadTimes } from "./thread-times.ts";
import { type Child, grpc, load, post, rounds, start } from "./tools.ts";

/** Loads servers with and without the package in turn, so that both see the same machine load. */
export async function measureLogs(dataDir: string): Promise<void> {
  const services = ["kms", "kms,tlog"];
  const servers = await Promise.all(
    services.map((names, i) => start("app-server.ts", join(dataDir, `logs-${i}`), "--services", names)),
  );
  const keys = await Promise.all(
    servers.map(async (app) => (await post(app, "/api/kms/create-key", {})).result.keyId as string),
  );
  const times: number[][] = [[], []];
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1)
    for (const [i, app] of servers.entries()) {
      showProgress(`Sign with services ${services[i]}: round ${round} of ${rounds}`);
      const microseconds = await measureSign(app, keys[i] ?? "");
      if (round > 0) times[i]?.push(microseconds);
    }
  showProgress();
  for (const app of servers) app.send("stop");
  const [without = [], withLogs = []] = times;
  report("CPU of the server for a Sign, without verifiable logs", without, { unit: "µs" });
  report("CPU of the server for a Sign, with verifiable logs", withLogs, { unit: "µs" });
  const ratios = withLogs.map((time, i) => time / (without[i] ?? Number.NaN));
  report("With verifiable logs against without", ratios, { unit: "times", target: "at most 1.05" });
}

/** Returns the CPU time for each call, in microseconds. */
async function measureSign(app: Child, keyId: string): Promise<number> {
  const message = create(SignRequestSchema, { keyId, data: Buffer.alloc(32, 1) });
  const before = readThreadTimes(app.pid);
  const request = grpc("/kms.KmsService/Sign", toBinary(SignRequestSchema, message));
  const { calls } = await load(app.url, { ...request, warmUpMs: 0 });
  const { loop, pool, sqlite, other } = perCall(before, readThreadTimes(app.pid), calls);
  return loop + pool + sqlite + other;
}
