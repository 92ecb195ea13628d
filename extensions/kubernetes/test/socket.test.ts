import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { launch } from "../../../test/cli/qsp.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { findGroupId } from "../plugin-options.ts";
import { listenOnSocket, prepareSocket } from "../socket.ts";
import { makeSocketPath } from "./start-plugin.ts";

/** The error message that rejects a path. */
function complaintOf(path: string): Promise<string> {
  return prepareSocket(path).then(
    () => "nothing",
    ({ message, exitCode }) => `${exitCode}: ${message}`,
  );
}

/** Leaves a killed program's socket behind. */
async function leaveStaleSocket(path: string): Promise<void> {
  const code = `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  await launch(process.execPath, ["-e", code], { cwd: makeTemporaryDirectory() }).end;
  expect(lstatSync(path).isSocket()).toBe(true);
}

describe("the socket path", () => {
  it("can be unused, in a directory that other users cannot write to", async () => {
    const path = makeSocketPath();
    expect(await complaintOf(path)).toBe("nothing");
    chmodSync(join(path, ".."), 0o755);
    expect(await complaintOf(path)).toBe("nothing");
  });

  it.each(["kms.sock", "./run/kms.sock", "/run/../kms.sock", "/run//kms.sock", "/run/kms.sock/", "", "/"])(
    'is rejected if it is "%s", which is not absolute and normalized',
    async (path) => {
      expect(await complaintOf(path)).toContain("is not an absolute path such as /run/qsp/kms.sock");
    },
  );

  it("is rejected if it is longer than the system allows", async () => {
    expect(await complaintOf(`/${"a".repeat(107)}`)).toMatch(/^2: .*the limit for socket paths is 107 bytes/);
  });

  it.each([0o777, 0o1777, 0o770, 0o702])("is rejected in a directory with mode %o", async (mode) => {
    const path = makeSocketPath();
    chmodSync(join(path, ".."), mode);
    expect(await complaintOf(path)).toMatch(/^2: .*writable by other users.*chmod go-w/);
  });

  it("is rejected below a directory that other users can replace", async () => {
    const path = makeSocketPath();
    chmodSync(join(path, "../.."), 0o777);
    expect(await complaintOf(path)).toContain("writable by other users");
    chmodSync(join(path, "../.."), 0o1777);
    expect(await complaintOf(path)).toBe("nothing");
  });

  it.skipIf(process.getuid?.() !== 0)("is rejected in another user's directory", async () => {
    const path = makeSocketPath();
    chownSync(join(path, ".."), 4242, 4242);
    expect(await complaintOf(path)).toMatch(/^2: .*belongs to another user \(uid 4242\)/);
  });

  it("is rejected in a symbolically linked directory, whose target the message names", async () => {
    const path = makeSocketPath();
    const link = join(makeTemporaryDirectory(), "link");
    symlinkSync(join(path, ".."), link);
    expect(await complaintOf(join(link, "kms.sock"))).toContain(
      `symbolic link; use the directory itself, ${join(path, "..")}`,
    );
  });

  it("is rejected in a missing directory", async () => {
    await expect(prepareSocket(join(makeTemporaryDirectory(), "none/kms.sock"))).rejects.toMatchObject({
      code: "ENOENT",
    });
  });

  it("is rejected if it is a file, which stays, or a directory", async () => {
    const [path, directory] = [makeSocketPath(), makeSocketPath()];
    writeFileSync(path, "precious");
    mkdirSync(directory);
    for (const taken of [path, directory])
      expect(await complaintOf(taken)).toMatch(/^2: .*exists and is not a socket/);
    expect(readFileSync(path, "utf8")).toBe("precious");
  });

  it("is rejected if it is a symbolic link, even to a stale socket, and both stay", async () => {
    const [path, other] = [makeSocketPath(), makeSocketPath()];
    await leaveStaleSocket(other);
    symlinkSync(other, path);
    expect(await complaintOf(path)).toContain("exists and is not a socket");
    expect([lstatSync(path).isSymbolicLink(), existsSync(other)]).toEqual([true, true]);
  });

  it("is freed if a terminated program left its socket there", async () => {
    const path = makeSocketPath();
    await leaveStaleSocket(path);
    expect(await complaintOf(path)).toBe("nothing");
    expect(existsSync(path)).toBe(false);
  });

  it.skipIf(process.getuid?.() !== 0)("is rejected if the stale socket belongs to another user", async () => {
    const path = makeSocketPath();
    await leaveStaleSocket(path);
    chownSync(path, 4242, 4242);
    expect(await complaintOf(path)).toContain("is another user's socket (uid 4242)");
    expect(existsSync(path)).toBe(true);
  });

  it("is rejected if a program listens on it, and the program keeps running", async () => {
    const path = makeSocketPath();
    const server = net
      // The liveness check closes its connection immediately.
      .createServer((connection) => connection.on("error", () => {}).end("alive"))
      .listen(path);
    onTestFinished(() => void server.close());
    await once(server, "listening");
    expect(await complaintOf(path)).toMatch(/^2: .*in use by a running program/);
    const [answer] = await once(net.connect(path), "data");
    expect(String(answer)).toBe("alive");
  });
});

describe("the socket", () => {
  it.each([
    [undefined, 0o600],
    [process.getegid?.(), 0o660],
  ])(
    "of group %s has the mode %o regardless of the umask, and is removed with the server",
    async (groupId, mode) => {
      const path = makeSocketPath();
      const mask = process.umask(0);
      const server = net.createServer();
      try {
        await listenOnSocket(server, { path, groupId });
      } finally {
        expect(process.umask(mask)).toBe(0);
      }
      expect(statSync(path).mode & 0o777).toBe(mode);
      server.close();
      await once(server, "close");
      expect(existsSync(path)).toBe(false);
    },
  );

  it("that cannot be created is reported with one sentence", async () => {
    const path = makeSocketPath();
    writeFileSync(path, "precious");
    const mask = process.umask();
    await expect(listenOnSocket(net.createServer(), { path, groupId: undefined })).rejects.toMatchObject({
      exitCode: 2,
      message: `--socket: this user cannot listen on ${path} (EADDRINUSE)`,
    });
    expect([readFileSync(path, "utf8"), process.umask()]).toEqual(["precious", mask]);
  });
});

describe("the group", () => {
  it.each(["0", "4242", "4294967294"])("%s has the ID that it states", (name) => {
    expect(findGroupId(name)).toBe(Number(name));
  });

  it("root has the ID 0", () => {
    expect(findGroupId("root")).toBe(0);
  });

  it.each(["no-such-group", "", "-1", "root:x", "4294967295"])('"%s" is rejected', (name) => {
    expect(() => findGroupId(name)).toThrow("is not a group in /etc/group");
  });
});
