/** A thread that is the home of Probe: it echoes, tells its thread, and waits until it dies. */
import { type MessagePort, threadId, workerData } from "node:worker_threads";
import { createServiceImplSpec } from "@connectrpc/connect";
import { explainFailure } from "../../../src/services/explain-failure.ts";
import { offerServices } from "../../../src/workers/bridge/service-bridge.ts";
import { Probe } from "../../gen/probing/probe_pb.ts";

const service = createServiceImplSpec<typeof Probe>(Probe, {
  ask: (item) => ({ ...item, number: BigInt(threadId) }),
  look: () => new Promise(() => {}),
  async *watch(item) {
    for (let number = 0n; number < item.number; number += 1n) yield { number };
  },
  async collect(items) {
    let text = "";
    for await (const item of items) text += item.text;
    return { text };
  },
  async *chat(items) {
    yield* items;
  },
});

// The test gives the thread nothing but this port.
const { port } = workerData as { readonly port: MessagePort };
offerServices([service], port, { runAs: (_values, run) => run(), explainFailure });
