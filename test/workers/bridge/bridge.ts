/** Both sides of a bridge in one thread, over a real channel, for the service probing.Probe. */
import { AsyncLocalStorage } from "node:async_hooks";
import { MessageChannel } from "node:worker_threads";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ContextValues,
  createContextValues,
  createHandlerContext,
  createServiceImplSpec,
  type ServiceImpl,
} from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { explainFailure } from "../../../src/services/explain-failure.ts";
import type { OfferOptions } from "../../../src/workers/bridge/offered-call.ts";
import {
  type Forwarder,
  forwardServices,
  offerServices,
} from "../../../src/workers/bridge/service-bridge.ts";
import { ItemSchema, Probe } from "../../gen/probing/probe_pb.ts";
import type { ProbeBehaviour } from "../../server/probe.ts";

/** The values that the work of a call is charged to, as the interceptor of the server keeps them. */
export const charged = new AsyncLocalStorage<ContextValues>();

const homeOptions: OfferOptions = {
  runAs: (values, run) => charged.run(values, run),
  explainFailure,
};

/** Forwards the calls of Probe to the behaviour, until the test has finished. */
export function createBridge(behaviour: ProbeBehaviour) {
  const forwarder = forwardServices([Probe]);
  const offer = offerProbe(forwarder, behaviour);
  const probe = implementationOf(forwarder);
  return { ...offer, forwarder, probe, callsInProgress: () => countCalls(forwarder, offer.home) };
}

/** Connects a home with a behaviour. */
export function offerProbe(forwarder: Forwarder, behaviour: ProbeBehaviour) {
  const { port1, port2 } = new MessageChannel();
  const service = createServiceImplSpec<typeof Probe>(Probe, behaviour);
  const home = offerServices([service], port1, homeOptions);
  forwarder.connect(port2);
  onTestFinished(() => home.stop());
  return { home, homePort: port1, port: port2 };
}

/** The forwarding implementation of Probe. */
export function implementationOf({ services }: Forwarder): ServiceImpl<typeof Probe> {
  const methods = Object.entries(services[0]?.methods ?? {});
  const implementation = Object.fromEntries(methods.map(([name, { impl }]) => [name, impl]));
  return implementation as unknown as ServiceImpl<typeof Probe>;
}

/** Makes the context of a call that was accepted. It ends with the test. */
export function contextOf(
  method: keyof typeof Probe.method,
  init: Partial<Parameters<typeof createHandlerContext>[0]> = {},
) {
  const context = createHandlerContext({
    service: Probe,
    method: Probe.method[method],
    protocolName: "grpc",
    requestMethod: "POST",
    url: "http://localhost/",
    contextValues: createContextValues(),
    ...init,
  });
  onTestFinished(() => context.abort());
  return context;
}

export function item(init: MessageInitShape<typeof ItemSchema> = {}) {
  return create(ItemSchema, init);
}

function countCalls(forwarder: Forwarder, home: { readonly callsInProgress: number }) {
  return { forwarded: forwarder.callsInProgress, atHome: home.callsInProgress };
}
