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
import { findGroupId } from "../group.ts";
import { listenOnSocket, prepareSocket } from "../socket.ts";
import { makeSocketPath } from "./start-plugin.ts";

/** The sentence with which a path is refused. */
function complaintOf(path: string): Promise<string> {
  return prepareSocket(path).then(
    () => "nothing",
    ({ message, exitCode }) => `${exitCode}: ${message}`,
  );
}

/** Leaves the socket of a program that was killed. */
async function leaveStaleSocket(path: string): Promise<void> {
  const code = `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  await launch(process.execPath, ["-e", code], { cwd: makeTemporaryDirectory() }).end;
  expect(lstatSync(path).isSocket()).toBe(true);
}

describe("the path of the socket", () => {
  it("may be free, in a directory that others cannot write to", async () => {
    const path = makeSocketPath();
    expect(await complaintOf(path)).toBe("nothing");
    chmodSync(join(path, ".."), 0o755);
    expect(await complaintOf(path)).toBe("nothing");
  });

  it.each(["kms.sock", "./run/kms.sock", "/run/../kms.sock", "/run//kms.sock", "/run/kms.sock/", "", "/"])(
    'is refused if it is "%s", which is not absolute and plain',
    async (path) => {
      expect(await complaintOf(path)).toContain("is not an absolute path such as /run/qsp/kms.sock");
    },
  );

  it("is refused if it is longer than the system allows", async () => {
    expect(await complaintOf(`/${"a".repeat(107)}`)).toMatch(/^2: .*longer than the 107 bytes/);
  });

  it.each([0o777, 0o1777, 0o770, 0o702])("is refused in a directory of mode %o", async (mode) => {
    const path = makeSocketPath();
    chmodSync(join(path, ".."), mode);
    expect(await complaintOf(path)).toMatch(/^2: .*writable by others.*chmod go-w/);
  });

  it("is refused below a directory that others can replace", async () => {
    const path = makeSocketPath();
    chmodSync(join(path, "../.."), 0o777);
    expect(await complaintOf(path)).toContain("writable by others");
    chmodSync(join(path, "../.."), 0o1777);
    expect(await complaintOf(path)).toBe("nothing");
  });

  it.skipIf(process.getuid?.() !== 0)("is refused in a directory of another user", async () => {
    const path = makeSocketPath();
    chownSync(join(path, ".."), 4242, 4242);
    expect(await complaintOf(path)).toMatch(/^2: .*belongs to another user \(uid 4242\)/);
  });

  it("is refused in a directory that is a symbolic link, and names the directory", async () => {
    const path = makeSocketPath();
    const link = join(makeTemporaryDirectory(), "link");
    symlinkSync(join(path, ".."), link);
    expect(await complaintOf(join(link, "kms.sock"))).toContain(
      `symbolic link; name the directory itself, ${join(path, "..")}`,
    );
  });

  it("is refused in a directory that does not exist", async () => {
    await expect(prepareSocket(join(makeTemporaryDirectory(), "none/kms.sock"))).rejects.toMatchObject({
      code: "ENOENT",
    });
  });

  it("is refused if a file is there, which stays", async () => {
    const path = makeSocketPath();
    writeFileSync(path, "precious");
    expect(await complaintOf(path)).toMatch(/^2: .*exists and is not a socket/);
    expect(readFileSync(path, "utf8")).toBe("precious");
  });

  it("is refused if a directory is there", async () => {
    const path = makeSocketPath();
    mkdirSync(path);
    expect(await complaintOf(path)).toContain("exists and is not a socket");
  });

  it("is refused if a symbolic link is there, even one to a stale socket, and both stay", async () => {
    const [path, other] = [makeSocketPath(), makeSocketPath()];
    await leaveStaleSocket(other);
    symlinkSync(other, path);
    expect(await complaintOf(path)).toContain("exists and is not a socket");
    expect([lstatSync(path).isSymbolicLink(), existsSync(other)]).toEqual([true, true]);
  });

  it("is made free if a program that ended left its socket there", async () => {
    const path = makeSocketPath();
    await leaveStaleSocket(path);
    expect(await complaintOf(path)).toBe("nothing");
    expect(existsSync(path)).toBe(false);
  });

  it.skipIf(process.getuid?.() !== 0)("is refused if the stale socket is that of another user", async () => {
    const path = makeSocketPath();
    await leaveStaleSocket(path);
    chownSync(path, 4242, 4242);
    expect(await complaintOf(path)).toContain("is the socket of another user (uid 4242)");
    expect(existsSync(path)).toBe(true);
  });

  it("is refused if a program listens there, and the program goes on", async () => {
    const path = makeSocketPath();
    const server = net
      // The look at whether it is alive ends its connection at once.
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
    "of group %s has the mode %o, whatever the mask is, and is gone after the server",
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
});

describe("a socket that cannot be made", () => {
  it("is refused with a sentence", async () => {
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
  it.each([
    ["root", 0],
    ["0", 0],
    ["4242", 4242],
  ])("%s is %i", (name, id) => {
    expect(findGroupId(name)).toBe(id);
  });

  it.each(["no-such-group", "", "-1", "root:x", "99999999999"])('"%s" is refused', (name) => {
    expect(() => findGroupId(name)).toThrow("is not a group in /etc/group");
  });
});
