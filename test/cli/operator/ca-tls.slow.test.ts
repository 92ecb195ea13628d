/**
 * A command that `ca issue` prints for clients. test/server/tls.test.ts has the handshakes of other clients.
 */
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { isMissing, run } from "../../interop/tools.ts";
import { makeAuthority, qsp, textOf } from "./authority.ts";

const timeout = 180_000;

/** Starts a TLS 1.3 server that answers "hello", and returns its port. */
async function serve(dataDir: string): Promise<number> {
  const [cert, key] = [textOf(dataDir, "gateway.crt"), textOf(dataDir, "gateway.key")];
  const server = createServer({ cert, key, minVersion: "TLSv1.3" }, (_, response) => response.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("the commands that ca issue prints for clients", { timeout }, () => {
  it.skipIf(isMissing("curl"))(
    "let curl trust the server, even if the directory has a space and an apostrophe",
    async () => {
      const dataDir = await makeAuthority("the operator's data");
      const text = await qsp(dataDir, "ca", "issue", "localhost", "127.0.0.1");
      const line = text.split("\n").find((each) => each.trim().startsWith("curl"));
      const port = await serve(dataDir);
      const pasted = line?.trim().replace("localhost:8443", `localhost:${port}`) ?? "";
      expect(await run("sh", ["-c", pasted])).toMatchObject({ code: 0, stdout: "hello" });
    },
  );
});
