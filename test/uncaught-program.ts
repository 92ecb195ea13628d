/** `qsp serve`, which raises errors when its parent says so. The product has no way to do that. */
import http from "node:http";
import net from "node:net";

/** Writes a head twice. Node refuses the second one. */
async function misuseResponse(): Promise<void> {
  const response = new http.ServerResponse(new http.IncomingMessage(new net.Socket()));
  response.writeHead(200);
  response.writeHead(200);
}

process.on("message", (kind) => {
  // A rejection that nothing handles.
  if (kind === "of a connection") return void misuseResponse();
  // An error without a listener, as a database could raise it.
  if (kind === "of a socket to another server") return void net.connect({ port: 1, host: "127.0.0.1" });
  throw new TypeError("a test");
});

await import("../src/main.ts");
