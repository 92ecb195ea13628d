/** qsp identity log and verify-log. */
import { describe, expect, it } from "vitest";
import { qsp, qspDone, qspJson, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

describe("qsp identity", { timeout }, () => {
  it("lists who could call the server, and what was done about it", async () => {
    const place = server.place();
    const table = await qspDone(["identity", "log"], place);
    expect(table.split("\n")[0]).toMatch(/^ENTRY +TIME +OPERATION +OUTCOME +SUBJECT +BY +ADDRESS +DETAILS$/);
    expect(table).toMatch(/^ *1 .* CREATE_ISSUER_KEY +OK +\S+ +system +- +algorithm=ML-DSA-65$/m);
    const found = await qspJson(
      ["identity", "log", "--operation", "CREATE_ISSUER_KEY", "--user", "system"],
      place,
    );
    expect(found).toMatchObject({
      entries: [{ sequence: 1, operation: "CREATE_ISSUER_KEY", outcome: "OK" }],
    });
    expect(await qspDone(["identity", "log", "nobody"], place)).toBe("There are no entries.\n");
    expect(await qspDone(["identity", "log", "--outcome", "REFUSED"], place)).toBe("There are no entries.\n");
  });

  it("watches, from the entry after the one that is given", async () => {
    const { child, end } = startQsp(["identity", "log", "--watch", "--after", "0", "--json"], server.place());
    const first = await new Promise<string>((resolve) =>
      child.stdout?.once("data", (data) => resolve(String(data))),
    );
    expect(JSON.parse(first.split("\n")[0] ?? "")).toMatchObject({
      entry: { sequence: 1, operation: "CREATE_ISSUER_KEY" },
    });
    child.kill("SIGTERM");
    await end;
  });

  it("has the server verify the log", async () => {
    expect(await qspDone(["identity", "verify-log"], server.place())).toMatch(
      /^The log of identities is valid\.\nentries +\d+\nhead +[0-9a-f]{64}\n$/,
    );
  });

  it.each([
    [["--after", "1"], 2, "--after needs --watch"],
    [["--watch", "--from", "1h"], 2, "--from cannot be combined with --watch"],
    [["--operation", "SIGN"], 3, "--operation: must be in list [LOG_IN, "],
  ])("refuses %j, and says why", async (args, expected, reason) => {
    const { code, stderr } = await qsp(["identity", "log", ...args], server.place());
    expect({ code, stderr }).toEqual({ code: expected, stderr: expect.stringContaining(reason) });
  });
});
