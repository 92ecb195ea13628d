/** Uploads and downloads of files over REST and gRPC: limits, ranges, and who may read. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { refusal } from "../../../test/support/refusal.ts";
import { streamOf } from "../../../test/support/streams.ts";
import { openRepository, startTufServer, type TufServer } from "./tuf-server.ts";

const repository = "firmware";
const bytes = randomBytes(700_000);
const hash = (name: "sha256" | "sha512", content: Uint8Array = bytes) =>
  createHash(name).update(content).digest("hex");

const uploadPath = `${repository}/targets/esp32/app.bin?version=1.2&deviceTypes=esp32`;

/** Uploads as curl --upload-file does. */
function put(server: TufServer, path: string, body: string | Buffer, more = {}): Promise<Response> {
  const headers = { "content-type": "application/octet-stream", ...more };
  return fetch(`${server.url}/api/tuf/repositories/${path}`, { method: "PUT", headers, body });
}

async function reasonOf(response: Response): Promise<string> {
  const { details } = (await response.json()) as { details: { reason: string }[] };
  return `${response.status} ${details[0]?.reason}`;
}

/** A server with a published target. */
async function publishTarget(...flags: readonly string[]): Promise<TufServer> {
  const server = await startTufServer(...flags);
  await openRepository(server);
  const uploaded = await put(server, uploadPath, bytes);
  expect(uploaded.status).toBe(200);
  await server.tuf.publish({ repository });
  return server;
}

/** Where clients read the target. */
const fileOf = (server: TufServer, name: "sha256" | "sha512" = "sha256") =>
  `${server.url}/tuf/${repository}/targets/esp32/${hash(name)}.app.bin`;

describe("UploadTarget", () => {
  it("stores a body sent over REST, with length and hashes", async () => {
    const server = await startTufServer();
    await openRepository(server);
    const response = await put(server, uploadPath, bytes);
    const { target } = (await response.json()) as { target: object };
    expect(target).toMatchObject({
      path: "esp32/app.bin",
      length: bytes.length,
      sha256: Buffer.from(hash("sha256"), "hex").toString("base64"),
      sha512: Buffer.from(hash("sha512"), "hex").toString("base64"),
      version: "1.2",
      deviceTypes: ["esp32"],
      targetStatus: "DRAFT",
    });
    expect((await fetch(fileOf(server))).status).toBe(404);
    await server.tuf.publish({ repository });
    expect((await fetch(fileOf(server))).status).toBe(200);
  });

  it("accepts messages over gRPC, and refuses one about a different target", async () => {
    const server = await startTufServer();
    await openRepository(server);
    const content = { contentType: "", data: bytes };
    const send = (...parts: object[]) => server.tuf.uploadTarget(streamOf(...parts));
    const first = { repository, path: "a.bin", version: "1", deviceTypes: ["x"], content };
    const { target } = await send(first, { content }, { repository, path: "a.bin", content });
    expect(target).toMatchObject({ path: "a.bin", length: 3 * bytes.length });
    const changes: [string, object][] = [
      ["repository", { repository: "other" }],
      ["path", { path: "b.bin" }],
      ["version", { version: "2" }],
      ["deviceTypes", { deviceTypes: ["y"] }],
    ];
    for (const [field, change] of changes)
      expect(await refusal(send(first, { ...change, content }))).toMatchObject({ fields: [field] });

    expect(await refusal(send({ ...first, content: undefined }))).toMatchObject({ fields: ["content"] });
    expect(await refusal(send())).toMatchObject({ fields: ["content"] });
    expect(await refusal(send({ path: "a", content }))).toMatchObject({ fields: ["repository"] });
    expect(await refusal(send({ repository, content }))).toMatchObject({ fields: ["path"] });
  });

  it("refuses paths that a file system could misread", async () => {
    const server = await startTufServer();
    await openRepository(server);
    const paths = "..%2Fa a%2F..%2Fb a//b a/ .a a%5Cb a%00b a%20b %C3%A9 a%252Fb".split(" ");
    for (const path of [...paths, "a".repeat(256)])
      expect(await reasonOf(await put(server, `${repository}/targets/${path}`, "x"))).toBe(
        "400 FIELD_INVALID",
      );
    expect((await server.tuf.listTargets({ repository })).totalSize).toBe(0);
  });

  it("refuses more than the limit, an unknown repository, and a part of a file", async () => {
    const server = await startTufServer("--tuf-max-target-bytes", "100000");
    await openRepository(server);
    expect(await reasonOf(await put(server, `${repository}/targets/a`, bytes))).toBe("413 TARGET_TOO_LARGE");
    expect(await reasonOf(await put(server, "other/targets/a", bytes))).toBe("404 REPOSITORY_NOT_FOUND");
    const part = await put(server, `${repository}/targets/a`, "x", { "content-range": "bytes 1-1/2" });
    expect(await reasonOf(part)).toBe("400 BODY_INCOMPLETE");
    expect((await server.tuf.listTargets({ repository })).totalSize).toBe(0);
  });

  it("leaves no target if its caller disconnects", async () => {
    const server = await startTufServer();
    await openRepository(server);
    const caller = new AbortController();
    async function* parts() {
      yield { repository, path: "a", content: { contentType: "", data: bytes } };
      yield { content: { contentType: "", data: bytes } };
      caller.abort();
      await new Promise(() => {});
    }
    await expect(server.tuf.uploadTarget(parts(), { signal: caller.signal })).rejects.toThrow();
    expect((await server.tuf.listTargets({ repository })).totalSize).toBe(0);
  });
});

describe("the quota of an owner", () => {
  const quota = ["--tuf-max-target-bytes", "1400000", "--tuf-max-bytes-per-user", "1500000"];
  const startWithQuota = async () => {
    const server = await startTufServer(...quota);
    await openRepository(server);
    return server;
  };
  const upload = async (server: TufServer, content: Buffer, path = "a"): Promise<string> => {
    const response = await put(server, `${repository}/targets/${path}`, content);
    return response.ok ? "200" : reasonOf(response);
  };
  /** Counts pieces in the database, behind the server's back. */
  const countPieces = ({ dataDir }: TufServer): number => {
    using database = new DatabaseSync(join(dataDir, "qsp.db"), { readOnly: true });
    return Number(database.prepare("select count(*) as n from tuf_pieces").get()?.n);
  };

  it("does not count uploads that were refused, or drafts that were removed or replaced", async () => {
    const server = await startWithQuota();
    expect(await upload(server, Buffer.alloc(2_000_000))).toBe("413 TARGET_TOO_LARGE");
    expect(countPieces(server)).toBe(0);
    for (let i = 0; i < 3; i += 1) expect(await upload(server, bytes)).toBe("200");
    expect(countPieces(server)).toBe(3);
    expect(await upload(server, Buffer.alloc(1_000_000), "b")).toBe("429 QUOTA_EXCEEDED");
    expect(countPieces(server)).toBe(3);
    await server.tuf.removeTarget({ repository, path: "a" });
    expect(countPieces(server)).toBe(0);
    expect(await upload(server, Buffer.alloc(1_000_000), "b")).toBe("200");
  });

  /** Begins an upload, and sends only the first part. */
  const begin = ({ url }: TufServer, length: number, part: Buffer): Socket => {
    const { port } = new URL(url);
    const socket = connect(Number(port), "127.0.0.1");
    const head = [
      `PUT /api/tuf/repositories/${repository}/targets/a HTTP/1.1`,
      `host: 127.0.0.1:${port}`,
      "content-type: application/octet-stream",
      `content-length: ${length}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(part);
    return socket;
  };

  it("is not used by an upload that announces too much", async () => {
    const server = await startWithQuota();
    const [answer] = await once(begin(server, 1_400_001, Buffer.alloc(1)), "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /);
  });

  it("does not count uploads that were cut", async () => {
    const server = await startWithQuota();
    const socket = begin(server, 1_300_000, Buffer.alloc(1_000_000));
    await expect.poll(() => countPieces(server)).toBe(3);
    socket.destroy();
    await expect.poll(() => countPieces(server)).toBe(0);
  });
});

describe("GetFile", () => {
  it("returns targets by either hash, whole and in part, and not to those who have them", async () => {
    const server = await publishTarget();
    for (const name of ["sha256", "sha512"] as const) {
      const whole = await fetch(fileOf(server, name));
      expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
      expect(Object.fromEntries(whole.headers)).toMatchObject({
        "content-type": "application/octet-stream",
        "content-length": String(bytes.length),
        "cache-control": "public, max-age=31536000, immutable",
        "accept-ranges": "bytes",
        etag: `"${hash("sha256")}"`,
      });
    }
    const rest = await fetch(fileOf(server), { headers: { range: "bytes=500000-" } });
    expect(rest.status).toBe(206);
    expect(Buffer.from(await rest.arrayBuffer()).equals(bytes.subarray(500_000))).toBe(true);
    expect((await fetch(fileOf(server), { headers: { range: "bytes=700000-" } })).status).toBe(416);
    expect(
      (await fetch(fileOf(server), { headers: { "if-none-match": `"${hash("sha256")}"` } })).status,
    ).toBe(304);
    const head = await fetch(fileOf(server), { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "700000"]);
  });

  it("caches versioned metadata forever, and the timestamp not at all", async () => {
    const server = await publishTarget();
    const policies = [];
    for (const name of ["1.root", "2.snapshot", "2.targets", "timestamp"]) {
      const response = await fetch(`${server.url}/tuf/${repository}/metadata/${name}.json`);
      expect(response.headers.get("content-type")).toBe("application/octet-stream");
      policies.push(response.headers.get("cache-control"));
      const tag = response.headers.get("etag") ?? "";
      expect(tag).toBe(`"${hash("sha256", Buffer.from(await response.arrayBuffer()))}"`);
    }
    expect(policies).toEqual([...Array(3).fill("public, max-age=31536000, immutable"), "public, no-cache"]);
  });

  it("streams the same bytes over gRPC, whatever the metadata say about ranges", async () => {
    const server = await publishTarget();
    const path = `targets/esp32/${hash("sha256")}.app.bin`;
    const parts: Uint8Array[] = [];
    for await (const { content } of server.tuf.getFile(
      { repository, path },
      { headers: { range: "bytes=1-2" } },
    ))
      parts.push(content?.data ?? new Uint8Array());
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  });

  it("has the same path if its slashes are encoded, as generated clients send them", async () => {
    const server = await publishTarget();
    for (const path of ["metadata%2F1.root.json", "metadata%2f1.root.json"])
      expect((await fetch(`${server.url}/tuf/${repository}/${path}`)).status).toBe(200);
  });

  it("has nothing at other paths", async () => {
    const server = await publishTarget();
    const paths = [
      ...["", "targets/esp32/app.bin", "targets/app.bin", "metadata/root.json", "metadata/99.root.json"],
      ...[`targets/${"0".repeat(64)}.app.bin`, `targets/esp32/${"0".repeat(64)}.app.bin`],
      ...["metadata/01.root.json", "metadata/1.timestamp.json", "metadata//1.root.json"],
      ...["metadata/..%2F1.root.json", "metadata%252F1.root.json"],
    ];
    for (const path of paths)
      expect(await reasonOf(await fetch(`${server.url}/tuf/${repository}/${path}`))).toBe(
        "404 FILE_NOT_FOUND",
      );
  });

  it("admits only callers with a token if files are private", async () => {
    const server = await publishTarget("--tuf-private");
    const response = await fetch(fileOf(server));
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer/);
    expect(await reasonOf(response)).toBe("401 TOKEN_MISSING");
    const issued = await fetch(`${server.url}/api/auth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "ada" }),
    });
    const { token } = (await issued.json()) as { token: string };
    const headers = { authorization: `Bearer ${token}` };
    const read = await fetch(fileOf(server), { headers });
    expect([read.status, read.headers.get("cache-control")]).toEqual([
      200,
      "private, max-age=31536000, immutable",
    ]);
  });
});
