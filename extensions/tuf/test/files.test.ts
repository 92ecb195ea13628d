/** Uploads and downloads of files over REST and gRPC: limits, ranges, and who may read. */
import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { refusal } from "../../../test/support/refusal.ts";
import { streamOf } from "../../../test/support/streams.ts";
import { openRepository, repository, startTufServer, type TufServer } from "./tuf-server.ts";

const bytes = randomBytes(700_000);
const sha256 = hash("sha256", bytes);
const sha512 = hash("sha512", bytes);
const content = { contentType: "", data: bytes };

/** A server with a repository. */
async function openServer(...flags: readonly string[]): Promise<TufServer> {
  const server = await startTufServer(...flags);
  await openRepository(server);
  return server;
}

/** Uploads as curl --upload-file does. */
function put({ url }: TufServer, path: string, body: string | Buffer, more = {}): Promise<Response> {
  const headers = { "content-type": "application/octet-stream", ...more };
  return fetch(`${url}/api/tuf/repositories/${path}`, { method: "PUT", headers, body });
}

/** The status of a response, with the reason of a refusal. */
async function outcomeOf(answer: Response | Promise<Response>): Promise<string> {
  const response = await answer;
  if (response.ok) return String(response.status);
  const { details } = (await response.json()) as { details: { reason: string }[] };
  return `${response.status} ${details[0]?.reason}`;
}

const appPath = `${repository}/targets/esp32/app.bin?version=1.2&deviceTypes=esp32`;

/** A server with a published target. */
async function publishTarget(...flags: readonly string[]): Promise<TufServer> {
  const server = await openServer(...flags);
  expect((await put(server, appPath, bytes)).status).toBe(200);
  await server.tuf.publish({ repository });
  return server;
}

/** Reads a file as clients do, by default the target. */
const get = ({ url }: TufServer, path = `targets/esp32/${sha256}.app.bin`, options: RequestInit = {}) =>
  fetch(`${url}/tuf/${repository}/${path}`, options);
const countTargets = async ({ tuf }: TufServer) => (await tuf.listTargets({ repository })).totalSize;

describe("UploadTarget", () => {
  it("stores a body sent over REST, with length and hashes", async () => {
    const server = await openServer();
    const { target } = (await (await put(server, appPath, bytes)).json()) as { target: object };
    expect(target).toMatchObject({
      path: "esp32/app.bin",
      length: bytes.length,
      sha256: Buffer.from(sha256, "hex").toString("base64"),
      sha512: Buffer.from(sha512, "hex").toString("base64"),
      version: "1.2",
      deviceTypes: ["esp32"],
      targetStatus: "DRAFT",
    });
    expect((await get(server)).status).toBe(404);
    await server.tuf.publish({ repository });
    expect((await get(server)).status).toBe(200);
  });

  it("accepts messages over gRPC, and refuses one about a different target", async () => {
    const { tuf } = await openServer();
    const send = (...parts: object[]) => tuf.uploadTarget(streamOf(...parts));
    const first = { repository, path: "a.bin", version: "1", deviceTypes: ["x"], content };
    const { target } = await send(first, { content }, { repository, path: "a.bin", content });
    expect(target).toMatchObject({ path: "a.bin", length: 3 * bytes.length });
    const refused: [field: string, ...parts: object[]][] = [
      ["repository", first, { repository: "other", content }],
      ["path", first, { path: "b.bin", content }],
      ["version", first, { version: "2", content }],
      ["deviceTypes", first, { deviceTypes: ["y"], content }],
      ["content", { ...first, content: undefined }],
      ["content"],
      ["repository", { path: "a", content }],
      ["path", { repository, content }],
    ];
    for (const [field, ...parts] of refused)
      expect(await refusal(send(...parts))).toMatchObject({ fields: [field] });
  });

  it("refuses paths that a file system could misread", async () => {
    const server = await openServer();
    const paths = "..%2Fa a%2F..%2Fb a//b a/ .a a%5Cb a%00b a%20b %C3%A9 a%252Fb".split(" ");
    for (const path of [...paths, "a".repeat(256)])
      expect(await outcomeOf(put(server, `${repository}/targets/${path}`, "x"))).toBe("400 FIELD_INVALID");
    expect(await countTargets(server)).toBe(0);
  });

  it("refuses more than the limit, an unknown repository, and a part of a file", async () => {
    const server = await openServer("--tuf-max-target-bytes", "100000");
    const path = `${repository}/targets/a`;
    expect(await outcomeOf(put(server, path, bytes))).toBe("413 TARGET_TOO_LARGE");
    expect(await outcomeOf(put(server, "other/targets/a", bytes))).toBe("404 REPOSITORY_NOT_FOUND");
    const range = { "content-range": "bytes 1-1/2" };
    expect(await outcomeOf(put(server, path, "x", range))).toBe("400 BODY_INCOMPLETE");
    expect(await countTargets(server)).toBe(0);
  });
});

describe("the quota of an owner", () => {
  const quota = ["--tuf-max-target-bytes", "1400000", "--tuf-max-bytes-per-user", "1500000"];
  const countPieces = async ({ tamper }: TufServer) =>
    (await tamper((db) => db.selectFrom("tuf_pieces").select("piece_index").execute())).length;

  it("does not count uploads that were refused, or drafts that were removed or replaced", async () => {
    const server = await openServer(...quota);
    const upload = (length: number, path = "a") =>
      outcomeOf(put(server, `${repository}/targets/${path}`, Buffer.alloc(length)));
    expect(await upload(2_000_000)).toBe("413 TARGET_TOO_LARGE");
    expect(await countPieces(server)).toBe(0);
    for (let i = 0; i < 3; i += 1) expect(await upload(700_000)).toBe("200");
    expect(await upload(1_000_000, "b")).toBe("429 QUOTA_EXCEEDED");
    expect(await countPieces(server)).toBe(3);
    await server.tuf.removeTarget({ repository, path: "a" });
    expect(await countPieces(server)).toBe(0);
    expect(await upload(1_000_000, "b")).toBe("200");
  });

  /** Begins an upload, and sends only the first part. */
  const begin = ({ url }: TufServer, length: number, part: Buffer): Socket => {
    const { host, port } = new URL(url);
    const socket = connect(Number(port), "127.0.0.1");
    const line = `PUT /api/tuf/repositories/${repository}/targets/a HTTP/1.1`;
    const headers = `host: ${host}\r\ncontent-type: application/octet-stream\r\ncontent-length: ${length}`;
    socket.write(`${line}\r\n${headers}\r\n\r\n`);
    socket.write(part);
    return socket;
  };

  it("is not used by an upload that announces too much, or that was cut", async () => {
    const server = await openServer(...quota);
    const [answer] = await once(begin(server, 1_400_001, Buffer.alloc(1)), "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /);
    const socket = begin(server, 1_300_000, Buffer.alloc(1_000_000));
    await expect.poll(() => countPieces(server)).toBe(3);
    socket.destroy();
    await expect.poll(() => countPieces(server)).toBe(0);
    expect(await countTargets(server)).toBe(0);
  });
});

describe("GetFile", () => {
  it("returns targets by either hash, whole and in part, and not to those who have them", async () => {
    const server = await publishTarget();
    for (const name of [sha256, sha512]) {
      const whole = await get(server, `targets/esp32/${name}.app.bin`);
      expect(bytes.equals(await whole.bytes())).toBe(true);
      expect(Object.fromEntries(whole.headers)).toMatchObject({
        "content-type": "application/octet-stream",
        "content-length": String(bytes.length),
        "cache-control": "public, max-age=31536000, immutable",
        "accept-ranges": "bytes",
        etag: `"${sha256}"`,
      });
    }
    const ask = (headers: Record<string, string>) => get(server, undefined, { headers });
    const rest = await ask({ range: "bytes=500000-" });
    expect(rest.status).toBe(206);
    expect(bytes.subarray(500_000).equals(await rest.bytes())).toBe(true);
    expect((await ask({ range: "bytes=700000-" })).status).toBe(416);
    expect((await ask({ "if-none-match": `"${sha256}"` })).status).toBe(304);
    const head = await get(server, undefined, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "700000"]);
    // As generated clients send slashes.
    for (const path of ["metadata%2F1.root.json", "metadata%2f1.root.json"])
      expect((await get(server, path)).status).toBe(200);
  });

  it("caches versioned metadata forever, and the timestamp not at all", async () => {
    const server = await publishTarget();
    const policies = [];
    for (const name of ["1.root", "2.snapshot", "2.targets", "timestamp"]) {
      const response = await get(server, `metadata/${name}.json`);
      const { "content-type": type, "cache-control": policy, etag } = Object.fromEntries(response.headers);
      policies.push(policy);
      const found = hash("sha256", await response.bytes());
      expect([type, etag]).toEqual(["application/octet-stream", `"${found}"`]);
    }
    expect(policies).toEqual([...Array(3).fill("public, max-age=31536000, immutable"), "public, no-cache"]);
  });

  it("streams the same bytes over gRPC, whatever the metadata say about ranges", async () => {
    const { tuf } = await publishTarget();
    const request = { repository, path: `targets/esp32/${sha256}.app.bin` };
    const parts = await Array.fromAsync(tuf.getFile(request, { headers: { range: "bytes=1-2" } }));
    const found = parts.map((part) => part.content?.data ?? new Uint8Array());
    expect(Buffer.concat(found).equals(bytes)).toBe(true);
  });

  it("has nothing at other paths", async () => {
    const server = await publishTarget();
    const paths = [
      ...["", "targets/esp32/app.bin", "targets/app.bin", "metadata/root.json", "metadata/99.root.json"],
      ...[`targets/${"0".repeat(64)}.app.bin`, `targets/esp32/${"0".repeat(64)}.app.bin`],
      ...["metadata/01.root.json", "metadata/1.timestamp.json", "metadata//1.root.json"],
      ...["metadata/..%2F1.root.json", "metadata%252F1.root.json"],
    ];
    for (const path of paths) expect(await outcomeOf(get(server, path))).toBe("404 FILE_NOT_FOUND");
  });

  it("admits only callers with a token if files are private", async () => {
    const server = await publishTarget("--tuf-private");
    const response = await get(server);
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer/);
    expect(await outcomeOf(response)).toBe("401 TOKEN_MISSING");
    const { json } = await server.rest("POST /api/auth/token", { username: "ada" });
    const headers = { authorization: `Bearer ${json.token}` };
    const read = await get(server, undefined, { headers });
    const policy = "private, max-age=31536000, immutable";
    expect([read.status, read.headers.get("cache-control")]).toEqual([200, policy]);
  });
});
