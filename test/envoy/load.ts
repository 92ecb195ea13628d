/** Concurrent callers, and the results of their calls. */
import https from "node:https";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { connectGrpc, type TestEdge } from "./edge-tools.ts";

/** Makes one call; rejects if it failed. */
export type MakeCall = () => Promise<unknown>;

/** Lets each caller make one call after another. */
export function startLoad(callers: readonly MakeCall[]) {
  let isEnding = false;
  let answered = 0;
  const failures: unknown[] = [];
  const callOn = async (call: MakeCall): Promise<void> => {
    while (!isEnding) {
      await call().then(
        () => answered++,
        (error: unknown) => failures.push(error),
      );
    }
  };
  const ends = callers.map(callOn);
  return {
    /** The number of answered calls so far. */
    get answered() {
      return answered;
    },
    /** Stops the load, and returns the errors of failed calls. */
    end: async (): Promise<readonly unknown[]> => {
      isEnding = true;
      await Promise.all(ends);
      return failures;
    },
  };
}

/** A client stream that lasts until the test finishes it, and then returns the signature of what it sent. */
export function startUpload(edge: Pick<TestEdge, "url" | "ca">) {
  const kms = connectGrpc(KmsService, edge);
  const [begun, finished] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const sign = async () => {
    const { result: key } = await kms.createKey({ alias: "long" });
    const parts = async function* () {
      yield { part: { case: "header" as const, value: { keyId: key?.keyId ?? "" } } };
      begun.resolve();
      await finished.promise;
      yield { part: { case: "chunk" as const, value: new Uint8Array(100) } };
    };
    const { result } = await kms.signStream(parts());
    return result?.signature;
  };
  const signature = sign();
  const finish = () => {
    finished.resolve();
    return signature;
  };
  return { begun: begun.promise, finish };
}

/** Retryable calls over several protocols, each on its own connection. */
export function makeSafeCalls(edge: TestEdge): MakeCall[] {
  const pqc = connectGrpc(PqcService, edge);
  const tokens = connectGrpc(TokenService, edge);
  const get = makeRest(edge);
  const mint = makeRest(edge);
  return [
    () => pqc.getAlgorithmInfo({}),
    () => tokens.hello({}),
    () => get("GET", "/api/grpc/algorithms"),
    () => mint("POST", "/api/nft/mint", { "idempotency-key": "1" }, '{"name":"First"}'),
  ];
}

/** REST calls over HTTP/1.1 on one connection. */
function makeRest({ url, ca }: TestEdge) {
  const agent = new https.Agent({ ca, keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return (method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<string> =>
    new Promise((resolve, reject) => {
      const all = { "content-type": "application/json", "content-length": body.length, ...headers };
      const req = https.request(url + path, { method, agent, headers: method === "GET" ? headers : all });
      req.on("error", reject);
      req.on("response", (res) => {
        if (res.statusCode === 200) text(res).then(resolve, reject);
        else reject(new Error(`answered ${res.statusCode}`));
      });
      req.end(body);
    });
}
