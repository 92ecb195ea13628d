/** `qsp health`: shows the health of all services. */
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ApiClient } from "../connection/api-client.ts";
import { exitCodes, findReason } from "../exit-codes.ts";
import { table } from "../output/output.ts";
import { declareVerb, type Verb } from "../verb.ts";
import type { Packages } from "./call-registry.ts";

export const healthVerbs: readonly Verb[] = [
  declareVerb({
    line: "health",
    meaning:
      "Reports the health of each service that has a health call. The exit code is 1 if one is DOWN. Services that are\n" +
      "not served are ignored.",
    async run({ output, server, loadPackages }) {
      const probes = listProbes(await loadPackages());
      const found = await Promise.all(probes.map((probe) => askHealth(server, probe)));
      output.report(
        { services: Object.fromEntries(found.map(({ service, serviceStatus }) => [service, serviceStatus])) },
        table(
          ["SERVICE", "STATUS"],
          found.map(({ service, serviceStatus }) => [service, serviceStatus]),
        ),
      );
      return found.some(({ serviceStatus }) => serviceStatus === "DOWN") ? exitCodes.no : exitCodes.done;
    },
  }),
];

interface Health {
  readonly service: string;
  /** "UP", "DOWN" or "NOT_SERVED". */
  readonly serviceStatus: string;
}

/** Lists the health calls of all services that have one. */
function listProbes(packages: Packages): (DescMethod & DescMethodUnary)[] {
  const services = packages.flatMap(({ files }) => files.flatMap((file) => file.services));
  return services.flatMap(({ methods }) => methods.filter(isProbe));
}

function isProbe(method: DescMethod): method is DescMethod & DescMethodUnary {
  return method.name === "GetHealth" && method.methodKind === "unary";
}

async function askHealth(server: ApiClient, probe: DescMethod & DescMethodUnary): Promise<Health> {
  const service = probe.parent.typeName;
  try {
    const answer = await server.ask(probe, {});
    const field = probe.output.field.serviceStatus;
    return { service, serviceStatus: field ? String(reflect(probe.output, answer).get(field)) : "" };
  } catch (error) {
    // An error without a reason does not come from a qsp server.
    const isOurs = error instanceof ConnectError && findReason(error) !== undefined;
    if (isOurs && error.code === Code.Unimplemented) return { service, serviceStatus: "NOT_SERVED" };
    throw error;
  }
}
