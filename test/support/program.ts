/**
 * The command line of src/main.ts, with a server that builds its pages for their first reader. Tests start hundreds of
 * servers, and building the pages early takes more time than most of them run.
 */
import os from "node:os";
import { verbTable } from "../../src/cli/groups.ts";
import { runCommandLine } from "../../src/cli/run.ts";

process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism() + 2);

const serve = async () => [(await import("../../src/serve.ts")).createServeVerb({ buildsPagesEarly: false })];
process.exit(await runCommandLine(process.argv.slice(2), { serve, ...verbTable }));
