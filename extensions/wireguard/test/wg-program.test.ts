/** The program wg, where no UAPI socket exists: what it is given, and what it prints. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openInterface } from "../interface.ts";
import { formatArguments, parseDump } from "../wg-program.ts";

const publicKey = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const presharedKey = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const presharedText = Buffer.from(presharedKey).toString("base64");
const own = `${publicKey}\t${publicKey}\t51820\toff\n`;
const line = [
  ...[publicKey, presharedText, "192.0.2.1:51820", "10.8.0.1/32,fd00::/8"],
  ...["1795812784", "92", "296", "5"],
];

/** An interface without a socket, and a program wg that is this script. */
function withWg(script: string | undefined) {
  const directory = makeTemporaryDirectory();
  if (script !== undefined) {
    const path = join(directory, "wg");
    writeFileSync(path, `#!/bin/sh\ncd ${directory}\n${script}\n`);
    chmodSync(path, 0o755);
  }
  const before = process.env.PATH;
  onTestFinished(() => {
    process.env.PATH = before;
  });
  process.env.PATH = script === undefined ? directory : `${directory}:${before}`;
  return {
    directory,
    wireguard: openInterface("wg0", directory),
    read: (name: string) => readFileSync(join(directory, name), "utf8"),
  };
}

describe("wg", () => {
  it("prints peers with all that the agent needs and wg knows", () => {
    const parse = (fields: string[]) => parseDump(Buffer.from(`${own}${fields.join("\t")}\n`));
    const place = { endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32", "fd00::/8"] };
    expect(parse(line)).toEqual([{ publicKey, presharedKey, handshakeMs: 1_795_812_784_000, ...place }]);
    const unknown = { presharedKey: new Uint8Array(32), endpoint: undefined, handshakeMs: 0, allowedIps: [] };
    const fields = [publicKey, "(none)", "(none)", "(none)", "0", "0", "0", "off"];
    expect(parse(fields)).toEqual([{ publicKey, ...unknown }]);
    expect(parseDump(Buffer.from(own))).toEqual([]);
  });

  it.each([line.slice(1), line.with(0, "key"), line.with(1, "key"), line.with(4, "soon")])(
    "prints something else: %s",
    (...fields) => {
      expect(() => parseDump(Buffer.from(`${own}${fields.join("\t")}\n`))).toThrow(
        "a line of an unknown form",
      );
    },
  );

  it("gets the key from a pipe, never as an argument", async () => {
    const script = `echo "$@" >> arguments; [ "$1" = set ] && cat /dev/stdin > input; [ "$1" = set ] || printf '${own}${line.join("\\t")}\\n'`;
    const { wireguard, read } = withWg(`${script.replaceAll("\n", "\\n").replaceAll("\t", "\\t")}; true`);
    const place = { endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32"], keepaliveSeconds: 5 };
    await wireguard.change([{ publicKey, kind: "renew", presharedKey, ...place }]);
    expect(read("input")).toBe(`${presharedText}\n`);
    expect(read("arguments").split("\n")).toEqual([
      `set wg0 peer ${publicKey} remove peer ${publicKey} preshared-key /dev/stdin endpoint 192.0.2.1:51820 persistent-keepalive 5 allowed-ips 10.8.0.1/32`,
      "show wg0 dump",
      "",
    ]);
  });

  it("removes a peer", () => {
    expect(formatArguments({ publicKey, kind: "remove" })).toEqual(["peer", publicKey, "remove"]);
  });

  it("is reported if it fails, or is missing", async () => {
    const script = "echo 'Unable to access interface:\n No such device' >&2; exit 1";
    const { wireguard, directory } = withWg(script);
    await expect(wireguard.readPeers()).rejects.toThrow(
      `wg0 has no socket ${directory}/wg0.sock, and wg failed: Unable to access interface: No such device`,
    );
    await expect(withWg(undefined).wireguard.readPeers()).rejects.toThrow("the program wg is not installed");
  });
});
