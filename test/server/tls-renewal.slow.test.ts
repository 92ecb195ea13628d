/** The program continues with a new certificate while it serves. */
import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { expect, it, onTestFinished, vi } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import {
  createKey,
  fingerprintOf,
  issue,
  openGrpc,
  requestHttp1,
  shakeHands,
  shownBy,
  startTlsServer,
  type TlsPlace,
  watchAudit,
} from "./tls-clients.ts";

/** Timeout in milliseconds for tests that start programs on busy machines. */
const timeout = 180_000;
const soon = { timeout: 100_000, interval: 50 };

it("the program, when its certificates are renewed, uses the new ones soon, and drops no connection, call or stream", {
  timeout,
}, async () => {
  const server = await startTlsServer();
  const { transport } = openGrpc(server);
  const kms = createClient(KmsService, transport);
  const audit = watchAudit(kms);
  await audit.sees(await createKey(kms));
  const old = await shakeHands(server);
  const load = startCalling(server);
  const before = await shownBy(server);

  await issue(server.dataDir);
  const renewed = fingerprintOf(server.dataDir, "gateway");
  expect(renewed).not.toBe(before);
  // tls.test.ts tests with a fake clock that it polls once a second.
  await vi.waitUntil(async () => (await shownBy(server)) === renewed, soon);

  expect(await shownBy(server, { sigalgs: "mldsa65" })).toBe(fingerprintOf(server.dataDir, "gateway-mldsa"));
  const keyId = await createKey(kms);
  await audit.sees(keyId);
  await audit.stop();
  old.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
  expect(String((await once(old, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
  await expect.poll(load.countAnswered).toBeGreaterThan(10);
  load.stop();
  expect(await load.failures).toEqual([]);
});

/** Makes calls one after the other, over a lasting connection and new ones, until stopped. */
function startCalling(place: TlsPlace) {
  const tokens = createClient(TokenService, openGrpc(place).transport);
  const failures: unknown[] = [];
  let answered = 0;
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
  };
  const call = async (): Promise<readonly unknown[]> => {
    while (!isStopped) {
      const calls = [tokens.hello({}), requestHttp1(place, "/api/hello")];
      for (const result of await Promise.allSettled(calls)) {
        if (result.status === "rejected") failures.push(result.reason);
        else answered += 1;
      }
    }
    return failures;
  };
  onTestFinished(stop);
  return { stop, failures: call(), countAnswered: () => answered };
}
