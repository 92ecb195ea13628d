/** Floods a server from a separate process until killed. The variable ORDER is a HostileInput as JSON. */
import http2 from "node:http2";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { grpc } from "../bench/tools.ts";

/** The flood. */
export type HostileInput = { readonly url: string } & (
  | { readonly kind: "health"; readonly perSecond: number }
  | {
      readonly kind: "passwords";
      readonly perSecond: number;
      readonly from: "one address" | "many addresses";
    }
  | {
      readonly kind: "batches";
      readonly token: string;
      readonly keyId: string;
      readonly items: number;
      readonly inFlight: number;
    }
);

const order = JSON.parse(process.env.ORDER ?? "") as HostileInput;
const sessions = Array.from({ length: 4 }, () => http2.connect(order.url));
let calls = 0;

/** Makes a call and discards its answer. */
function call(headers: http2.OutgoingHttpHeaders, body: string | Uint8Array = ""): Promise<void> {
  calls += 1;
  const session = sessions[calls % sessions.length];
  return new Promise((resolve) => {
    const stream = session?.request({ ":method": body.length > 0 ? "POST" : "GET", ...headers });
    stream?.on("error", () => {});
    stream?.on("close", resolve);
    stream?.resume();
    stream?.end(body);
  });
}

function every(perSecond: number, run: () => void): void {
  const startedMs = performance.now();
  let done = 0;
  setInterval(() => {
    for (const due = ((performance.now() - startedMs) / 1000) * perSecond; done < due; done += 1) run();
  }, 5);
}

if (order.kind === "health") every(order.perSecond, () => void call({ ":path": "/api/iot/health" }));
if (order.kind === "passwords") {
  const { from } = order;
  every(order.perSecond, () => {
    const address = from === "one address" ? "198.51.100.1" : `198.51.${calls >> 8}.${calls & 255}`;
    const headers = {
      ":path": "/api/auth/token",
      "content-type": "application/json",
      "x-forwarded-for": address,
    };
    void call(
      headers,
      JSON.stringify({ username: `user ${calls}`, password: "a wrong password, and a long one" }),
    );
  });
}
if (order.kind === "batches") {
  const { keyId, items, token } = order;
  const data = Array<Uint8Array>(items).fill(Buffer.alloc(32, 1));
  const batch = grpc(KmsService.method.batchSign, { keyId, data });
  const body = Buffer.from(batch.body, "base64");
  const headers = { ":path": batch.path, ...batch.headers, authorization: `Bearer ${token}` };
  for (let i = 0; i < order.inFlight; i += 1)
    void (async () => {
      // Each finished call starts the next one; a refused call waits a little first.
      for (;;) {
        const startedMs = performance.now();
        await call(headers, body);
        if (performance.now() - startedMs < 100) await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
}
