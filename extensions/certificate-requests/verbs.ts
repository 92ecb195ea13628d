/** Adds CSRs to `qsp ca`. */
import { usageError } from "../../src/cli/exit-codes.ts";
import { readDays } from "../../src/cli/operator/ca.ts";
import type { StoreVerb } from "../../src/cli/operator/store-verb.ts";
import { issueForRequest, readRequestChoice, requestOptions } from "./issue-for-request.ts";

/** Makes `qsp ca issue` accept a CSR instead of names. */
export function addRequests(verbs: readonly StoreVerb[]): readonly StoreVerb[] {
  return verbs.map((verb) => (verb.line.startsWith("ca issue") ? withRequests(verb) : verb));
}

function withRequests(verb: StoreVerb): StoreVerb {
  return {
    ...verb,
    line: "ca issue [NAME…]",
    options: { ...verb.options, ...requestOptions },
    meaning:
      "Issues or renews a server certificate for these host names and IP addresses. With --csr, issues a\n" +
      "certificate for the requester's key, with only the names that --copy, --subject and --name select.",
    async run(input) {
      const { operands, options, files, config } = input;
      const days = readDays(options.text("days") ?? "90");
      const choice = readRequestChoice(operands, options);
      if (choice !== undefined)
        return { exitCode: await issueForRequest(config.dataDir, { ...choice, days, files }, new Date()) };
      if (operands.length === 0) throw usageError("NAME… is missing; name the server, or use --csr FILE");
      return verb.run(input);
    },
  };
}
