import type * as crypto from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { hashPassword } from "../../src/identity/passwords.ts";
import { password } from "../support/passwords.ts";
import { refusal } from "../support/refusal.ts";
import { startAccessServer, timeout } from "./access-server.ts";

/** Parameters of each scrypt computation in this process. */
const computed = vi.hoisted((): unknown[] => []);

vi.mock("node:crypto", async (load) => {
  const module: typeof crypto = await load();
  const { cheapen } = await import("../support/cheap-scrypt.ts");
  const cheap = cheapen(module);
  const scrypt = (password: string, salt: Uint8Array, bytes: number, ...rest: [object, () => void]) => {
    const [{ ...parameters }] = rest;
    computed.push({ ...parameters, bytes, saltBytes: salt.length });
    return cheap.scrypt(password, salt, bytes, ...rest);
  };
  return { ...cheap, scrypt };
});

describe("a failed log-in", { timeout }, () => {
  it("costs the same for a wrong password and an unknown user", async () => {
    const server = await startAccessServer({ atEnd: onTestFinished });
    await server.office.users.add(
      { name: "ada", role: "user", passwordHash: await hashPassword(password) },
      new Date(),
    );
    const { tokens } = server.connect();
    const costOf = async (username: string): Promise<unknown[]> => {
      computed.length = 0;
      await refusal(tokens.issueToken({ username, password: "incorrect horse battery staple" }));
      return [...computed];
    };
    const known = await costOf("ada");
    expect(known).toHaveLength(1);
    expect(await costOf("nobody")).toEqual(known);
  });
});
