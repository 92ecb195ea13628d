/** Starting an open server, which gives anyone all users' keys, on a store that has users. */
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { createApp } from "../../src/app.ts";
import { ConfigError, readConfig } from "../../src/config.ts";
import { describeClient } from "../support/clients.ts";
import { loadPackages } from "../support/whole-program.ts";
import { makeDatabase, startAccessServer, timeout } from "./access-server.ts";

const logger = pino({ level: "silent" });
const refusal = new ConfigError(
  "the store has users or clients, and without --auth anyone who reaches the port could use their keys; " +
    "start with --auth token, or with --auth open to allow that",
);

/** Starts and stops an app. */
async function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const app = await createApp(readConfig(["--port", "0", ...args], env), logger, {
    packages: await loadPackages(),
  });
  app.server.destroy();
  await app.close();
}

describe("an open server", { timeout }, () => {
  it("needs no --auth for a new store", async () => {
    const database = await makeDatabase(onTestFinished);
    await start(database);
    await start(database);
  });

  it.each(["a user", "a client"])("fails without --auth if the store has %s", async (account) => {
    const database = await makeDatabase(onTestFinished);
    const server = await startAccessServer({ atEnd: onTestFinished, database });
    const { users, clients } = server.office;
    if (account === "a user") await users.add({ name: "ada", role: "user", passwordHash: "" }, new Date());
    else await clients.add(describeClient("orders"), new Date());
    await server.close();
    await expect(start(database)).rejects.toThrow(refusal);
    await start([...database, "--auth", "open"]);
    await start(database, { QSP_AUTH: "open" });
    await start([...database, "--auth", "token"]);
    await expect(start(database)).rejects.toThrow(refusal);
  });

  it.each(["user ada", "client orders"])(
    "fails without --auth if the %s was deleted in the database",
    async (account) => {
      const database = await makeDatabase(onTestFinished);
      const server = await startAccessServer({ atEnd: onTestFinished, database });
      const { users, clients } = server.office;
      const isUser = account.startsWith("user");
      if (isUser) await users.add({ name: "ada", role: "user", passwordHash: "" }, new Date());
      else await clients.add(describeClient("orders"), new Date());
      await server.tamper((db) => db.deleteFrom(isUser ? "users" : "oauth_clients").execute());
      await server.close();
      const missing = `the ${account} is missing, but the identity log records no removal`;
      await expect(start(database)).rejects.toThrow(missing);
      await start([...database, "--auth", "open"]);
      await expect(start(database)).rejects.toThrow(missing);
    },
  );

  it("needs no --auth once all users and clients were removed", async () => {
    const database = await makeDatabase(onTestFinished);
    const server = await startAccessServer({ atEnd: onTestFinished, database });
    const { users, clients } = server.office;
    await users.add({ name: "ada", role: "user", passwordHash: "" }, new Date());
    await clients.add(describeClient("orders"), new Date());
    await users.remove("ada");
    await clients.remove("orders");
    await server.close();
    await start(database);
  });
});
