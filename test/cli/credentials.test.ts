import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { createLoginTokens, readPassword } from "../../src/cli/connection/credentials.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const hourMs = 3_600_000;

/** A token source with a fake server and clock. */
function makeSource() {
  const passwordFile = join(makeTemporaryDirectory(), "password");
  writeFileSync(passwordFile, "a long enough password\n");
  const state = {
    nowMs: 1_800_000_000_000,
    logins: 0,
    isRefusing: false,
    serverAheadMs: 0,
    passwords: [] as string[],
    answered: Promise.resolve(),
  };
  const server = {
    withToken: () => server,
    ask: async (_method: unknown, { password }: { password: string }) => {
      state.logins += 1;
      state.passwords.push(password);
      await state.answered;
      if (state.isRefusing) throw new ConnectError("the password is wrong", Code.Unauthenticated);
      const expiresAt = timestampFromMs(state.nowMs + state.serverAheadMs + hourMs);
      return create(PqcService.method.issueToken.output, { token: `token ${state.logins}`, expiresAt });
    },
  } as unknown as ApiClient;
  const tokens = createLoginTokens({ server, username: "k8s", passwordFile, now: () => state.nowMs });
  return { state, tokens, passwordFile };
}

describe("a plugin that logs in", () => {
  it("uses one token for many calls, and gets a new one before it expires", async () => {
    const { state, tokens } = makeSource();
    expect(await Promise.all([tokens.find({}), tokens.find({})])).toEqual(["token 1", "token 1"]);
    state.nowMs += 0.7 * hourMs;
    expect(await tokens.find({})).toBe("token 1");
    state.nowMs += 0.1 * hourMs;
    expect(await tokens.find({})).toBe("token 2");
    expect(state.logins).toBe(2);
  });

  it("logs in again if the server refuses its token, but not because of a call with an older token", async () => {
    const { tokens } = makeSource();
    const first = await tokens.find({});
    expect(tokens.drop(first)).toBe(true);
    expect(await tokens.find({})).toBe("token 2");
    tokens.drop(first);
    expect(await tokens.find({})).toBe("token 2");
  });

  it("retries a refused password at most every ten seconds, however many calls arrive", async () => {
    const { state, tokens, passwordFile } = makeSource();
    state.isRefusing = true;
    for (let i = 0; i < 5; i += 1) await expect(tokens.find({})).rejects.toThrow("the password is wrong");
    expect(state.logins).toBe(1);
    state.isRefusing = false;
    writeFileSync(passwordFile, "another password\n");
    state.nowMs += 10_001;
    expect(await tokens.find({})).toBe("token 2");
    expect(state.passwords).toEqual(["a long enough password", "another password"]);
  });

  it("retries even if the clock was set back, as at boot", async () => {
    const { state, tokens } = makeSource();
    state.isRefusing = true;
    await expect(tokens.find({})).rejects.toThrow("the password is wrong");
    state.isRefusing = false;
    state.nowMs -= 24 * hourMs;
    expect(await tokens.find({})).toBe("token 2");
  });

  it("completes a log-in that outlasts its call, and uses the token later", async () => {
    const { state, tokens } = makeSource();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.answered = promise;
    await expect(tokens.find({ timeoutMs: 1 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(tokens.find({ timeoutMs: 1 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    resolve();
    expect(await tokens.find({ timeoutMs: 30_000 })).toBe("token 1");
    expect(state.logins).toBe(1);
  });

  it("uses a token for a minute even if the server's clock is far behind", async () => {
    const { state, tokens } = makeSource();
    state.serverAheadMs = -2 * hourMs;
    await tokens.find({});
    state.nowMs += 59_000;
    expect(await tokens.find({})).toBe("token 1");
  });
});

describe("the password file", () => {
  it("is rejected if its first line is empty, and may have spaces in the password, and further lines", () => {
    const read = (content: string) => {
      const path = join(makeTemporaryDirectory(), "password");
      writeFileSync(path, content);
      return readPassword(path);
    };
    for (const content of ["", "\n", "\r\nlater"])
      expect(() => read(content)).toThrow("has an empty first line");
    expect(read(" a b \r\nc\n")).toBe(" a b ");
  });
});
