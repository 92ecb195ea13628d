import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { describe, expect, it } from "vitest";
import { containErrors, isConnectionError } from "../../src/server/connection-errors.ts";

async function thrownBy(run: () => unknown): Promise<unknown> {
  try {
    await run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

async function failToConnect(): Promise<unknown> {
  const [error] = await once(net.connect({ port: 1, host: "127.0.0.1" }), "error").catch((reason) => [
    reason,
  ]);
  return error;
}

describe("a contained object", () => {
  it("may emit errors after all its other listeners are removed", () => {
    const emitter = new EventEmitter();
    containErrors(emitter);
    const listener = (): void => {};
    emitter.on("error", listener);
    emitter.off("error", listener);
    expect(emitter.emit("error", new Error("a test"))).toBe(true);
  });

  it("marks its errors as connection errors, even if a library removes the listeners", () => {
    const emitter = new EventEmitter();
    containErrors(emitter);
    emitter.removeAllListeners("error");
    const error = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    expect(() => emitter.emit("error", error)).toThrow(error);
    expect(isConnectionError(error)).toBe(true);
  });
});

describe("a connection error", () => {
  it.each([
    ["Node's HTTP/1.1 throws", () => new http.ServerResponse({} as http.IncomingMessage).setHeader("", "x")],
    ["Node's HTTP/2 throws", () => http2.getUnpackedSettings(Buffer.alloc(5))],
  ])("is whatever %s", async (_name, run) => {
    expect(isConnectionError(await thrownBy(run))).toBe(true);
  });

  it.each([
    ["an uncontained socket raises, such as a database socket", failToConnect],
    ["a file raises", () => thrownBy(() => readFileSync("/no/such/file"))],
    [
      "merely has the code of a reset",
      () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }),
    ],
    ["has a stack in its message", () => new Error("x\n    at respond (node:internal/http2/core:1:1)")],
    [
      "our code throws when Node's HTTP calls it",
      () =>
        thrownBy(() => {
          throw new TypeError("a test");
        }),
    ],
    ["is not an error", () => "node:_http_server"],
  ])("is nothing that %s", async (_name, make) => {
    expect(isConnectionError(await make())).toBe(false);
  });
});
