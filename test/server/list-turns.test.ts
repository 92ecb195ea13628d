/** Lists take turns by client. */
import { createContextValues, type Interceptor } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { clientKey } from "../../src/calls/call-values.ts";
import { listTurnInterceptor } from "../../src/server/interceptors/list-turns.ts";

type Next = Parameters<Interceptor>[0];

const { getKey, listKeys } = KmsService.method;

/** A server whose calls end when the test says so. Returns the calls that have begun. */
function serve() {
  const begun: string[] = [];
  const held = new Map<string, () => void>();
  const next = (async ({ header }: Parameters<Next>[0]) => {
    const name = header.get("name") ?? "";
    begun.push(name);
    await new Promise<void>((resolve) => held.set(name, resolve));
  }) as unknown as Next;
  const run = listTurnInterceptor()(next);
  const call = (name: string, client: string, method: typeof listKeys | typeof getKey = listKeys) =>
    run({
      stream: false,
      method,
      header: new Headers({ name }),
      signal: new AbortController().signal,
      contextValues: createContextValues().set(clientKey, client),
    } as unknown as Parameters<typeof run>[0]);
  return { begun, call, end: (name: string) => held.get(name)?.() };
}

it("run one at a time for a client, beside its other calls and other clients' lists", async () => {
  const { begun, call, end } = serve();
  const first = call("first", "10.0.0.1");
  const second = call("second", "10.0.0.1");
  void call("key", "10.0.0.1", getKey);
  void call("other", "10.0.0.2");
  await expect.poll(() => begun.toSorted()).toEqual(["first", "key", "other"]);
  end("first");
  await first;
  await expect.poll(() => begun).toContain("second");
  end("second");
  await second;
});
