/** `qsp wireguard up` with a renewal every few seconds, each of which restarts the session. */
import { runCommandLine } from "../../../src/cli/run.ts";
import { keyTiming } from "../key-state.ts";
import { createUpVerbs } from "../up-verb.ts";

const quick = {
  ...keyTiming,
  agreeAfterMs: 3000,
  renewAfterMs: 200,
  keepSessionMs: 0,
  retryMs: 1000,
  tickMs: 200,
};

process.exitCode = await runCommandLine(
  process.argv.slice(2),
  { wireguard: async () => createUpVerbs(quick) },
  async () => [],
);
