/** Health.Check on bare node:http2, which only reads a message and sends one: `node http2-server.ts`. */
import http2 from "node:http2";
import type { AddressInfo } from "node:net";

/** SERVING, with its gRPC prefix. */
const answer = Buffer.from([0, 0, 0, 0, 2, 8, 1]);

const server = http2.createServer();
server.on("stream", (stream: http2.ServerHttp2Stream) => {
  stream.on("data", () => {});
  stream.on("end", () => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on("message", (message) => {
  if (message === "stop") process.exit(0);
});
