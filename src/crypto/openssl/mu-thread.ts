import { parentPort } from "node:worker_threads";
import { wipe, wipeDeep } from "../bytes.ts";
import { expandSeed, mlDsa } from "../noble.ts";
import type { MuRequest } from "./mu-workers.ts";

/**
 * Entry point of a worker thread: signs one request at a time and ends on an error. The request is this
 * thread's own copy, so it is wiped after the answer.
 */
parentPort?.on("message", (request: MuRequest) => {
  try {
    parentPort?.postMessage(sign(request));
  } finally {
    wipeDeep(request);
  }
});

/**
 * Signs with the hedged form of FIPS 204, section 3.4: without `extraEntropy`, the library draws its own 32
 * bytes.
 */
function sign({ algorithm, secretKey, mu }: MuRequest): Uint8Array {
  const expanded = secretKey.kind === "seed" ? expandSeed(algorithm, secretKey.seed) : secretKey.raw;
  try {
    return mlDsa[algorithm].internal.sign(mu, expanded, { externalMu: true });
  } finally {
    wipe(expanded);
  }
}
