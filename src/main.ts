/** The command line. Besides src/cli and src/serve.ts, it is the only file that ends the process. */

import os from "node:os";
import { verbTable } from "./cli/groups.ts";
import { runCommandLine } from "./cli/run.ts";

// Signing runs in libuv's pool. One thread per core gives the most signatures a second; more threads only queue in the
// kernel. Two more threads check passwords (--max-password-checks), because each check would block a core's thread.
// libuv reads this variable when the pool is first used, so it is set before a verb is loaded.
process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism() + 2);

const serve = async () => [(await import("./serve.ts")).serveVerb];
process.exit(await runCommandLine(process.argv.slice(2), { serve, ...verbTable }));
