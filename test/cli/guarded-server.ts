/** Runs `qsp` against a server that requires tokens. Its users are ada, who is an admin, and bob. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createUserStore } from "../../src/identity/users.ts";
import { serveApp } from "../services/app-under-test.ts";
import { openTestStore } from "../support/open-store.ts";
import { hashCheaply, password } from "../support/passwords.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { qspDone, type RunOptions, timeout } from "./qsp.ts";

/** The server of one test file, and its users. */
export interface GuardedServer {
  readonly url: string;
  /** A new directory for one test, with the server's address. */
  place(): RunOptions;
  /** A directory whose user has logged in. */
  loggedIn(name?: string): Promise<RunOptions>;
  /** A login token. */
  tokenOf(options: RunOptions): string;
}

/** The path of the login file for a directory. */
export const loginsFile = ({ cwd }: RunOptions): string => join(cwd, "state", "qsp", "logins.json");

/** Starts a server for the tests of a file. */
export function useGuardedServer(): GuardedServer {
  const dataDir = makeTemporaryDirectory(afterAll);
  let urlOf = (): string => "";
  beforeAll(async () => {
    const provider = await createCryptoProvider("openssl");
    const store = await openTestStore(dataDir, provider);
    const users = createUserStore(store);
    const passwordHash = hashCheaply(password);
    await users.add({ name: "ada", role: "admin", passwordHash }, new Date());
    await users.add({ name: "bob", role: "user", passwordHash }, new Date());
    await store.close();
    await provider.close();
    const config = readConfig(["--port", "0", "--data-dir", dataDir, "--auth", "token"], {});
    const { url, server, close } = await serveApp(config);
    urlOf = () => url;
    return async () => {
      server.destroy();
      await close();
    };
  }, timeout);
  const place = (): RunOptions => ({ cwd: makeTemporaryDirectory(), url: urlOf() });
  return {
    get url() {
      return urlOf();
    },
    place,
    async loggedIn(name = "ada") {
      const here = place();
      await qspDone(["login", name], { ...here, stdin: `${password}\n` });
      return here;
    },
    tokenOf: (options) => JSON.parse(readFileSync(loginsFile(options), "utf8"))[urlOf()].token,
  };
}
