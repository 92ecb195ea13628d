/** Cost of the verifiable logs: server CPU for each signature with a stored key, with and without them. */
import { join } from "node:path";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { measureWithH2load } from "./h2load.ts";
import { ratiosOf, report } from "./results.ts";
import { sumOf } from "./thread-times.ts";
import { type Child, grpc, measureInTurn, measureMs, post, start } from "./tools.ts";

/** Loads servers with and without the package in turn, so that both see the same machine load. */
export async function measureLogs(dataDir: string): Promise<void> {
  const services = ["kms", "kms,tlog"];
  const servers = await Promise.all(
    services.map((names, i) => start("app-server.ts", join(dataDir, `logs-${i}`), "--services", names)),
  );
  const sides = servers.map(async (app, i) => {
    const { result } = await post(app, "/api/kms/create-key", {});
    const measure = (): Promise<number> => measureSign(app, result.keyId);
    // To warm up.
    await measure();
    return [`Sign with services ${services[i]}`, measure] as const;
  });
  const [without = [], withLogs = []] = await measureInTurn(await Promise.all(sides));
  for (const app of servers) app.send("stop");
  report("CPU of the server for a Sign, without verifiable logs", without, { unit: "µs" });
  report("CPU of the server for a Sign, with verifiable logs", withLogs, { unit: "µs" });
  report("With verifiable logs against without", ratiosOf(withLogs, without), {
    unit: "times",
    target: "at most 1.05",
  });
}

/** Returns the CPU time for each call, in microseconds. */
async function measureSign(app: Child, keyId: string): Promise<number> {
  const call = grpc(KmsService.method.sign, { keyId, data: Buffer.alloc(32, 1) });
  return sumOf((await measureWithH2load(app, { call }, measureMs)).cpu);
}
