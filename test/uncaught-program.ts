/** `qsp serve`, which raises errors when its parent requests it. The product itself cannot do that. */
import http from "node:http";
import net from "node:net";
import { compiledMain } from "../src/setup/freshness.mjs";

/** Writes a head twice. Node refuses the second one. */
async function misuseResponse(): Promise<void> {
  const response = new http.ServerResponse(new http.IncomingMessage(new net.Socket()));
  response.writeHead(200);
  response.writeHead(200);
}

process.on("message", (kind) => {
  // An unhandled rejection.
  if (kind === "a connection error") return void misuseResponse();
  // An error without a listener, such as a database could raise.
  if (kind === "an error on an outgoing socket") return void net.connect({ port: 1, host: "127.0.0.1" });
  throw new TypeError("a test");
});

await import(compiledMain);
