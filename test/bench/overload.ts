/**
 * Behaviour under overload: how much of its capacity the server keeps, how long accepted calls take, what a refusal
 * costs, and how fast the server recovers. Requires h2load and Linux.
 */
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { measureWithH2load, runH2load } from "./h2load.ts";
import { median, percentile, report, showProgress } from "./results.ts";
import { readThreadTimes, sumOf } from "./thread-times.ts";
import { type Child, grpc, json, type MadeCall, measureMs, post, providers, rounds, start } from "./tools.ts";

/** Offered load as multiples of the capacity. */
const factors = [2, 5, 10];
/** Like a fleet of clients: many connections with many calls each. */
const connections = 50;
const streamsPerConnection = 100;
/** Below the rate at which the server refuses calls continuously. */
const refusalsPerSecond = 1500;
/** Length of one step of the recovery, in milliseconds. */
const stepMs = 100;

/** A call to offer, in one protocol. */
interface Offer {
  readonly title: string;
  readonly call: MadeCall;
  /** Name of the RPC in the metrics. */
  readonly method: string;
}

/** One answer: its start on the machine's clock and its duration, in milliseconds. */
interface Answer {
  readonly startedMs: number;
  readonly tookMs: number;
  readonly status: number;
}

export async function measureOverload(dataDir: string): Promise<void> {
  await measureRefusals(dataDir);
  for (const engine of providers) {
    const folder = join(dataDir, `overload-${engine}`);
    const server = await start("app-server.ts", folder, "--crypto-provider", engine);
    for (const offer of await listOffers(server))
      await measureOffer(server, { ...offer, title: `${offer.title}, ${engine}` });
    server.send("stop");
  }
}

async function listOffers(server: Child): Promise<Offer[]> {
  const data = Buffer.alloc(32, 1);
  const signing = await post(server, "/api/kms/create-key", { algorithm: "ML-DSA-65", usage: "SIGN" });
  const opening = await post(server, "/api/kms/create-key", { algorithm: "ML-KEM-768", usage: "KEM" });
  const { keyId } = opening.result;
  const { ciphertext } = (await post(server, "/api/kms/encapsulate", { keyId })).result;
  const sealed = { keyId, ciphertext: Buffer.from(ciphertext, "base64") };
  return [
    ...offer(PqcService.method.signData, { data }, "/api/grpc/sign"),
    ...offer(KmsService.method.sign, { keyId: signing.result.keyId, data }, "/api/kms/sign"),
    ...offer(KmsService.method.decapsulate, sealed, "/api/kms/decapsulate"),
  ];
}

function offer<I extends DescMessage>(
  rpc: DescMethod & { readonly input: I },
  request: MessageInitShape<I>,
  path: string,
): Offer[] {
  const method = `${rpc.parent.typeName}/${rpc.name}`;
  return [
    { title: `${method} over REST`, call: json(rpc, request, path), method },
    { title: `${method} over gRPC`, call: grpc(rpc, request), method },
  ];
}

/** Compares a server that refuses every call with bare node:http2 that does the same, under the same load. */
async function measureRefusals(dataDir: string): Promise<void> {
  showProgress("refusals");
  const full = await start("app-server.ts", join(dataDir, "overload-full"), "--max-calls", "1");
  const bare = await start("http2-server.ts", "refuse");
  const call = json(PqcService.method.signData, { data: Buffer.alloc(3, 1) }, "/api/grpc/sign");
  const ratios: number[] = [];
  const costs: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const held = await holdCall(full);
    const [ours, theirs] = [await measureRefusal(full, call), await measureRefusal(bare, call)];
    held.destroy();
    // The first round lets V8 compile.
    if (round === 0) continue;
    ratios.push(ours / theirs);
    costs.push(ours);
  }
  for (const server of [full, bare]) server.send("stop");
  showProgress();
  report("event loop time of a refusal, against bare node:http2", ratios, {
    unit: "times",
    target: "at most 1.5",
    parts: { "our server in µs": median(costs) },
  });
}

/** Occupies the only place of a server: a call whose body never arrives. */
async function holdCall({ url }: Child): Promise<net.Socket> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const head =
    "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\nexpect: 100-continue";
  socket.write(`POST /api/grpc/sign HTTP/1.1\r\n${head}\r\n\r\n`);
  // Once the server asks for the body, it has accepted the call.
  await once(socket, "data");
  return socket;
}

/** Measures event loop time for each refusal, in microseconds. */
async function measureRefusal(server: Child, call: MadeCall): Promise<number> {
  const before = readThreadTimes(server.pid);
  const answers = await offerRate(server, call, refusalsPerSecond, Math.ceil(measureMs / 1000));
  const { loop } = readThreadTimes(server.pid);
  if (answers.some(({ status }) => status !== 429)) throw new Error("a call was not refused");
  return (loop - before.loop) / answers.length;
}

async function measureOffer(server: Child, { title, call, method }: Offer): Promise<void> {
  showProgress(`${title}: capacity`);
  const { callsPerSecond } = await measureWithH2load(
    server,
    { call, connections, inFlight: 4 * connections },
    measureMs,
  );
  for (const factor of factors) {
    const overloads: Overload[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      showProgress(`${title}: ${factor} times its capacity, round ${round}`);
      overloads.push(await overloadOnce(server, { title, call, method }, callsPerSecond, factor));
    }
    showProgress();
    const medianOf = (pick: (overload: Overload) => number): number => median(overloads.map(pick));
    report(
      `${title}, ${factor} times its capacity`,
      overloads.map(({ acceptedPerSecond, capacity }) => acceptedPerSecond / capacity),
      {
        unit: "of its throughput",
        target: "at least 0.8",
        parts: {
          "accepted a second": medianOf(({ acceptedPerSecond }) => acceptedPerSecond),
          capacity: medianOf(({ capacity }) => capacity),
          "with 200 calls at a time": callsPerSecond,
          "p99 of accepted calls in ms": medianOf(({ p99Ms }) => p99Ms),
          "refused a second": medianOf(({ refusedPerSecond }) => refusedPerSecond),
          "CPU of the server in %": medianOf(({ cpuPercent }) => cpuPercent),
          "ms until full speed": medianOf(({ untilFullMs }) => untilFullMs),
        },
      },
    );
  }
}

/** Offers a multiple of the capacity once, and compares the result with the same server at capacity. */
async function overloadOnce(
  server: Child,
  { call, method }: Offer,
  callsPerSecond: number,
  factor: number,
): Promise<Overload> {
  // The baseline uses the same arrival pattern, because calls that arrive one by one cost more than calls in groups. It is
  // measured again each time, because the speed of a machine changes within seconds.
  const { acceptedPerSecond: capacity } = await measureOffered(server, call, method, callsPerSecond);
  // During the first second, V8 compiles the refusal path and the heap grows.
  await offerRate(server, call, factor * capacity, 1);
  const offered = await measureOffered(server, call, method, factor * capacity);
  return { ...offered, capacity, untilFullMs: await measureRecovery(server, call, capacity) };
}

/** How the server handled the offered calls. */
interface Offered {
  readonly acceptedPerSecond: number;
  readonly refusedPerSecond: number;
  /** 99th percentile of the duration of accepted calls, in milliseconds. */
  readonly p99Ms: number;
  readonly cpuPercent: number;
}

/** An overload and its baseline. */
interface Overload extends Offered {
  readonly capacity: number;
  readonly untilFullMs: number;
}

async function measureOffered(
  server: Child,
  call: MadeCall,
  method: string,
  callsPerSecond: number,
): Promise<Offered> {
  const [before, cpuBefore] = [await readCounts(server, method), readThreadTimes(server.pid)];
  const beganMs = Date.now();
  const answers = await offerRate(server, call, callsPerSecond, Math.ceil(measureMs / 1000));
  const seconds = (Date.now() - beganMs) / 1000;
  const cpuUs = sumOf(readThreadTimes(server.pid)) - sumOf(cpuBefore);
  const after = await readCounts(server, method);
  const ok = after.ok - before.ok;
  return {
    acceptedPerSecond: ok / seconds,
    refusedPerSecond: (answers.length - ok) / seconds,
    p99Ms: findP99(answers, before, after),
    cpuPercent: (100 * cpuUs) / (seconds * 1e6),
  };
}

/** Offers calls at a fixed rate, independent of the answers (open loop). */
async function offerRate(
  server: Child,
  call: MadeCall,
  callsPerSecond: number,
  seconds: number,
): Promise<Answer[]> {
  const rate = Math.max(1, Math.round(callsPerSecond / connections));
  const amount = ["--duration", String(seconds), "--rps", String(rate)];
  return logH2load(server, call, [
    ...amount,
    ...["--clients", String(connections), "--max-concurrent-streams", String(streamsPerConnection)],
  ]);
}

/** Measures the time from the end of an overload until throughput is back to normal. */
async function measureRecovery(server: Child, call: MadeCall, capacity: number): Promise<number> {
  const endedMs = Date.now();
  const amount = ["--requests", String(Math.ceil(2 * capacity))];
  const load = ["--clients", "4", "--max-concurrent-streams", "16"];
  const answers = await logH2load(server, call, [...amount, ...load]);
  const steps: number[] = [];
  for (const { startedMs, tookMs, status } of answers) {
    const step = Math.floor((startedMs + tookMs - endedMs) / stepMs);
    if (status === 200) steps[step] = (steps[step] ?? 0) + 1;
  }
  const full = Array.from(steps, (count = 0) => (count * 1000) / stepMs).findIndex(
    (rate) => rate >= 0.9 * capacity,
  );
  return full < 0 ? Number.POSITIVE_INFINITY : full * stepMs;
}

async function logH2load(server: Child, call: MadeCall, args: readonly string[]): Promise<Answer[]> {
  const { log } = await runH2load(server.url, call, [...args, "--log-file", "log"]);
  return log
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [startedUs = 0, status = 0, tookUs = 0] = line.split("\t").map(Number);
      return { startedMs: startedUs / 1000, tookMs: tookUs / 1000, status };
    });
}

/**
 * Finds the 99th percentile of the duration of accepted calls. Over REST, the status shows which calls were accepted.
 * For gRPC, the server's histogram does, which excludes calls refused by their headers; it is coarse.
 */
function findP99(answers: readonly Answer[], before: Counts, after: Counts): number {
  const isRest = answers.some(({ status }) => status !== 200);
  if (!isRest) return percentileOf(before, after, 0.99);
  const accepted = answers.filter(({ status }) => status === 200);
  return percentile(
    accepted.map(({ tookMs }) => tookMs),
    0.99,
  );
}

/** Interpolates within the bucket, like Prometheus. */
function percentileOf(before: Counts, after: Counts, share: number): number {
  const counts = after.buckets.map(({ boundMs, count }, i) => ({
    boundMs,
    count: count - (before.buckets[i]?.count ?? 0),
  }));
  const wanted = (counts.at(-1)?.count ?? 0) * share;
  const at = counts.findIndex(({ count }) => count >= wanted);
  const { boundMs = 0, count = 0 } = counts[at] ?? {};
  const lower = counts[at - 1] ?? { boundMs: 0, count: 0 };
  return lower.boundMs + ((boundMs - lower.boundMs) * (wanted - lower.count)) / (count - lower.count);
}

/** Counts of an RPC since the server started. */
interface Counts {
  readonly ok: number;
  /** Calls that took at most this long. */
  readonly buckets: readonly { readonly boundMs: number; readonly count: number }[];
}

async function readCounts(server: Child, method: string): Promise<Counts> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.includes(`method="${method}"`));
  const ok = lines.find((line) => line.startsWith("qsp_calls_total") && line.includes('code="OK"'));
  const buckets = lines.flatMap((line) => {
    const [, bound, count] = /^qsp_call_duration_seconds_bucket\{.*le="([^"]+)".*\} (\d+)/.exec(line) ?? [];
    return bound === undefined ? [] : [{ boundMs: Number(bound) * 1000, count: Number(count) }];
  });
  const finite = buckets.filter(({ boundMs }) => Number.isFinite(boundMs));
  return { ok: Number(ok?.split(" ").at(-1) ?? 0), buckets: finite };
}
