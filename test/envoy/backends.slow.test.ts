import { expect, it } from "vitest";
import { request } from "../server/raw.ts";
import {
  connectHttp2,
  describeEdge,
  eventually,
  flagsOf,
  startBackend,
  startTestEdge,
  type TestEdge,
} from "./edge-tools.ts";
import { type MakeCall, makeSafeCalls, startLoad, startUpload } from "./load.ts";
import { answerUnavailable, startPlainBackend, tellHeaders } from "./plain-backend.ts";

const post = { ":method": "POST", ":path": "/api/kms/sign", "content-type": "application/json" };

describeEdge("Envoy in front of two servers", () => {
  it("sends no call to an unhealthy server until it recovers", async () => {
    const [sick, well] = await Promise.all([startPlainBackend(tellHeaders), startPlainBackend(tellHeaders)]);
    sick.setServing(false);
    const edge = await startTestEdge({ backends: [sick.authority, well.authority], areWell: false });
    await eventually(async () => {
      expect(await flagsOf(edge, "servers", sick.authority)).toContain("failed_active_hc");
      // The server's first check may have come too late for Envoy.
      expect(await flagsOf(edge, "servers", well.authority)).toBe("healthy");
    });
    const session = connectHttp2(edge);
    for (let count = 0; count < 40; count++) expect((await request(session, post, "{}")).status).toBe(200);
    expect([sick.calls.length, well.calls.length]).toEqual([0, 40]);
    sick.setServing(true);
    await eventually(async () => {
      expect((await request(session, post, "{}")).status).toBe(200);
      expect(sick.calls.length).toBeGreaterThan(0);
    });
  });

  it("ejects a server temporarily after five consecutive UNAVAILABLE answers", async () => {
    const [broken, well] = await Promise.all([
      startPlainBackend(answerUnavailable),
      startPlainBackend(tellHeaders),
    ]);
    const edge = await startTestEdge({ backends: [broken.authority, well.authority] });
    const session = connectHttp2(edge);
    // It returns after five seconds, and is ejected again.
    await eventually(async () => {
      for (let count = 0; count < 20; count++) expect((await request(session, post, "{}")).status).toBe(200);
      expect(await flagsOf(edge, "servers", broken.authority)).toContain("failed_outlier_check");
    });
    expect(broken.calls.length).toBeGreaterThanOrEqual(5);
  });

  it("loses no retryable call when a server is killed under load", async () => {
    const { edge, load, victim, survivor } = await callTwoServers();
    victim.process.kill("SIGKILL");
    const before = load.answered;
    await eventually(() => expect(load.answered).toBeGreaterThan(before + 200));
    await expectNoneLost(edge, await load.end());
    await eventually(() => expect(answeredAfterRetry(edge)).toEqual([survivor.authority]));
  });

  it("loses no retryable call when a server hangs", async () => {
    const { edge, load, victim, survivor } = await callTwoServers();
    victim.process.kill("SIGSTOP");
    const before = load.answered;
    // By then, at least one call reached the hanging server and was retried.
    await eventually(() => expect(load.answered).toBeGreaterThan(before + 200));
    await expectNoneLost(edge, await load.end());
    await eventually(() => expect(answeredAfterRetry(edge)).toEqual([survivor.authority]));
  });
});

/**
 * Expects that only calls failed whose answer had begun to arrive, which no proxy can undo. Node writes the end of a
 * stream separately from its data; a server killed between the two has begun its answer but not ended it.
 */
async function expectNoneLost({ log }: TestEdge, failures: readonly unknown[]): Promise<void> {
  await eventually(() => {
    const begun = log.filter(({ details }) => /^upstream_reset_after_response_started/.test(String(details)));
    expect(failures.length, String(failures)).toBeLessThanOrEqual(begun.length);
  });
  const exhausted = log.filter(({ flags }) => /URX|UF|UH/.test(String(flags)));
  expect(exhausted).toEqual([]);
}

/** Two servers under load. */
async function callTwoServers() {
  const [victim, survivor] = await Promise.all([startBackend(), startBackend()]);
  const edge = await startTestEdge({ backends: [victim.authority, survivor.authority] });
  const load = startLoad([...makeSafeCalls(edge), ...makeSafeCalls(edge), ...makeSafeCalls(edge)]);
  await eventually(() => expect(load.answered).toBeGreaterThan(100));
  return { edge, load, victim, survivor };
}

/** Servers that answered retried calls. */
function answeredAfterRetry({ log }: TestEdge): (string | null)[] {
  const repeated = log.filter(({ attempts }) => attempts > 1);
  return [...new Set(repeated.map(({ upstream }) => upstream))];
}

describeEdge("Envoy, when it drains", () => {
  it("loses no call: its balancer moves on, and running calls finish", async () => {
    const server = await startBackend();
    const options = { backends: [server.authority] };
    const [leaving, staying] = await Promise.all([startTestEdge(options), startTestEdge(options)]);
    expect([await statusOf(leaving), await statusOf(staying)]).toEqual([200, 200]);

    const [there, elsewhere] = [makeSafeCalls(leaving), makeSafeCalls(staying)];
    let isLeaving = false;
    // Like a balancer: polls the health, and notices the drain some calls late.
    const balance =
      (index: number): MakeCall =>
      async () =>
        (isLeaving ? elsewhere : there)[index]?.();
    const load = startLoad(there.map((_, index) => balance(index)));
    const upload = startUpload(leaving);
    await upload.begun;
    await eventually(() => expect(load.answered).toBeGreaterThan(50));

    const drained = leaving.drain();
    await eventually(async () => expect(await statusOf(leaving)).toBe(503));
    const late = load.answered;
    await eventually(() => expect(load.answered).toBeGreaterThan(late + 20));
    isLeaving = true;
    expect(await upload.finish()).toHaveLength(3309);
    await drained;
    expect(await leaving.stop()).toBe(0);
    const after = load.answered;
    await eventually(() => expect(load.answered).toBeGreaterThan(after + 20));
    expect(await load.end()).toEqual([]);
  });
});

/** What a balancer sees. */
async function statusOf(edge: TestEdge): Promise<number> {
  return (await request(connectHttp2(edge), { ":path": "/edge/healthz" })).status;
}
