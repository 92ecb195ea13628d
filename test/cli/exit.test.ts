import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { qspDone, runQsp, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

/** A port that closes every connection, or sends the given answer, for one test. */
async function listen(other: Server): Promise<number> {
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  return (other.address() as AddressInfo).port;
}

it("qsp --version and qsp version print the package version", async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
  for (const word of ["--version", "version"])
    expect(await qspDone([word], { cwd: makeTemporaryDirectory() })).toBe(`${version}\n`);
});

describe("qsp exits with", { timeout }, () => {
  it("2 when run as a program, too", async () => {
    expect(await runQsp(["backpu"], server.place())).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: [^\n]*backup[^\n]*\n$/),
    });
  });

  it("the same code when run as npm installs it", async () => {
    expect((await runQsp(["kms", "get", "key-none"], { ...server.place(), isInstalled: true })).code).toBe(3);
  });

  it("3 if the server refuses, and prints code and reason", async () => {
    const { code, stdout, stderr } = await runQsp(["kms", "get", "key-none"], server.place());
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/^qsp: [^\n]+ \(NOT_FOUND, KEY_NOT_FOUND\); qsp kms list [^\n]+\n$/);
  });

  it("4 if nothing listens", async () => {
    const tcp = createTcpServer();
    const port = await listen(tcp);
    tcp.close();
    const place = { ...server.place(), url: `http://127.0.0.1:${port}` };
    const { code, stderr } = await runQsp(["kms", "list"], place);
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringMatching(/^qsp: [^\n]*ECONNREFUSED[^\n]*\n$/),
    });
  });

  it("4 if the connection breaks", async () => {
    const port = await listen(createTcpServer((socket) => socket.destroy()));
    expect(
      await runQsp(["kms", "list"], { ...server.place(), url: `http://127.0.0.1:${port}` }),
    ).toMatchObject({
      code: 4,
    });
  });

  it("4 if a different kind of web server answers", async () => {
    const port = await listen(createHttpServer((_, response) => response.writeHead(404).end()));
    const place = { ...server.place(), url: `http://127.0.0.1:${port}` };
    expect(await runQsp(["health"], place)).toMatchObject({ code: 4, stdout: "" });
  });

  it("4 after the timeout if nobody answers", async () => {
    const port = await listen(createTcpServer((socket) => onTestFinished(() => void socket.destroy())));
    const place = { ...server.place(), url: `http://127.0.0.1:${port}` };
    expect(await runQsp(["kms", "list", "--timeout", "1"], place)).toMatchObject({ code: 4 });
  });

  it("130 when it is interrupted", async () => {
    const { child, end } = startQsp(["chain", "watch"], {
      ...server.place(),
      isInstalled: true,
      hasOwnGroup: true,
    });
    await once(child.stdout ?? child, "data");
    // Like a terminal: interrupts every process of the group.
    process.kill(-(child.pid ?? 0), "SIGINT");
    expect(await end).toMatchObject({ code: 130, stderr: "" });
  });
});
