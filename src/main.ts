/** The command line. The only file that ends the process, beside src/cli and src/serve.ts. */

import os from "node:os";
import { verbTable } from "./cli/groups.ts";
import { runCommandLine } from "./cli/run.ts";

// Signing runs in libuv's pool. As many threads as cores give the most signatures a second; more only queue
// in the kernel. Two more check passwords (--max-password-checks), which would each hold a core's thread up. libuv reads
// this when the pool is first used, so it stands before a verb is loaded.
process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism() + 2);

const serve = async () => [(await import("./serve.ts")).serveVerb];
process.exit(await runCommandLine(process.argv.slice(2), { serve, ...verbTable }));
