/** `qsp health`: shows the health of all services. */
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ApiClient } from "../connection/api-client.ts";
import { findReason } from "../exit-codes.ts";
import { table } from "../output/output.ts";
import { declareVerb, type Verb } from "../verb.ts";

export const healthVerbs: readonly Verb[] = [
  declareVerb({
    line: "health",
    meaning:
      "Reports the health of each service that has a health call. The exit code is 1 if one is DOWN. Services that are\n" +
      "not served are ignored.",
    async run({ output, server, loadPackages }) {
      const services = (await loadPackages()).flatMap(({ files }) => files.flatMap((file) => file.services));
      const probes = services.flatMap(({ methods }) => methods.filter(isProbe));
      const rows = await Promise.all(
        probes.map(async (probe) => [probe.parent.typeName, await askHealth(server, probe)] as const),
      );
      const isUp = rows.every(([, status]) => status !== "DOWN");
      return output.report({ services: Object.fromEntries(rows) }, table(["SERVICE", "STATUS"], rows), isUp);
    },
  }),
];

/** The health call of a service. */
type Probe = DescMethod & DescMethodUnary;

function isProbe(method: DescMethod): method is Probe {
  return method.name === "GetHealth" && method.methodKind === "unary";
}

/** @returns "UP", "DOWN" or "NOT_SERVED" */
async function askHealth(server: ApiClient, probe: Probe): Promise<string> {
  try {
    const answer = await server.ask(probe, {});
    const field = probe.output.field.serviceStatus;
    return field ? String(reflect(probe.output, answer).get(field)) : "";
  } catch (error) {
    // An error without a reason does not come from a qsp server.
    const isOurs = error instanceof ConnectError && findReason(error) !== undefined;
    if (isOurs && error.code === Code.Unimplemented) return "NOT_SERVED";
    throw error;
  }
}
