import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { isMissing } from "../interop/tools.ts";
import { launch, program, qsp, qspDone, qspJson, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

async function makeKey(usage: "SIGN" | "KEM" = "SIGN", alias = ""): Promise<string> {
  return (await server.client(KmsService).createKey({ usage, alias })).result?.keyId ?? "";
}

describe("qsp kms", { timeout }, () => {
  it("makes, shows, rotates and destroys a key", async () => {
    const place = server.place();
    const made = await qspJson(["kms", "create", "invoices", "--algorithm", "ML-DSA-87"], place);
    const { keyId } = made.result as { keyId: string };
    expect(made).toMatchObject({ result: { alias: "invoices", algorithm: "ML-DSA-87" } });
    expect(await qspDone(["kms", "get", keyId], place)).toMatch(/^status +ACTIVE$/m);
    expect(await qspJson(["kms", "rotate", keyId], place)).toMatchObject({
      newKey: { alias: "invoices-rotated", status: "ACTIVE" },
    });
    expect(await qspDone(["kms", "get", keyId], place)).toMatch(/^replaced by +key-/m);
    expect(await qspDone(["kms", "destroy", keyId, "--yes"], place)).toBe(`${keyId} is DESTROYED.\n`);
    expect(await qspDone(["kms", "get", keyId], place)).toMatch(/^status +DESTROYED$/m);
  });

  it("destroys nothing without --yes", async () => {
    const keyId = await makeKey();
    const { code, stderr } = await qsp(["kms", "destroy", keyId], server.place());
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("--yes") });
    expect((await server.client(KmsService).getKey({ keyId })).result?.status).toBe("ACTIVE");
  });

  it("lists keys as a table whose columns are aligned", async () => {
    await makeKey("SIGN", "a");
    await makeKey("KEM", "another, longer one");
    const [header = "", ...rows] = (await qspDone(["kms", "list"], server.place())).trimEnd().split("\n");
    expect(header).toMatch(/^KEY +ALGORITHM +STATUS +CREATED +NAME +ALIAS$/);
    const column = header.indexOf("ALGORITHM");
    expect(rows.length).toBeGreaterThan(1);
    for (const row of rows) expect(row.slice(column)).toMatch(/^ML-/);
  });

  it("lists all pages of keys as one answer", async () => {
    const kms = server.client(KmsService);
    // The server takes 320 calls of a client at a time.
    for (const count of [250, 250, 250, 251])
      await Promise.all(Array.from({ length: count }, () => kms.createKey({ algorithm: "ML-KEM-512" })));
    const { keys, nextPageToken } = await qspJson(
      ["kms", "list", "--algorithm", "ML-KEM-512"],
      server.place(),
    );
    expect(nextPageToken).toBe("");
    expect(new Set((keys as { keyId: string }[]).map(({ keyId }) => keyId)).size).toBe(1001);
  });

  it("lists the audit log of a key, refused attempts included", async () => {
    const keyId = await makeKey();
    await server.client(KmsService).destroyKey({ keyId });
    await server
      .client(KmsService)
      .sign({ keyId, data: Buffer.from("x") })
      .catch(() => {});
    const { auditLog } = await qspJson(["kms", "audit", keyId], server.place());
    expect(auditLog).toMatchObject([
      { operation: "CREATE", outcome: "OK" },
      { operation: "DESTROY", outcome: "OK" },
      { operation: "SIGN", outcome: "REFUSED" },
    ]);
  });

  it.each(["--watch", "--follow"])(
    "follows the audit log with %s, a line an entry, until it is interrupted",
    async (flag) => {
      const keyId = await makeKey();
      const { child, end } = startQsp(
        ["kms", "audit", keyId, flag, "--after", "0", "--json"],
        server.place(),
      );
      // The first entry is from before; then the watch is there.
      const first = await new Promise<string>((resolve) =>
        child.stdout?.once("data", (data) => resolve(String(data))),
      );
      expect(JSON.parse(first)).toMatchObject({ entry: { operation: "CREATE", keyId } });
      const second = new Promise<string>((resolve) =>
        child.stdout?.once("data", (data) => resolve(String(data))),
      );
      await server.client(KmsService).rotateKey({ keyId });
      expect(JSON.parse(await second)).toMatchObject({ entry: { operation: "ROTATE", keyId } });
      child.kill("SIGTERM");
      await end;
    },
  );

  it("verifies the audit log", async () => {
    await makeKey();
    expect(await qspDone(["kms", "verify-audit"], server.place())).toMatch(/^The audit log is valid\.\n/);
  });

  it("brings a shared secret to two sides, in files for their owners alone, and prints none of it", async () => {
    const keyId = await makeKey("KEM");
    const place = server.place();
    const there = await qspDone(["kms", "encapsulate", keyId, "--ciphertext", "ct", "--secret", "a"], place);
    const here = await qspJson(["kms", "decapsulate", keyId, "ct", "--secret", "b"], place);
    const [a, b] = ["a", "b"].map((name) => readFileSync(join(place.cwd, name)));
    expect(a).toHaveLength(32);
    expect(b).toEqual(a);
    expect(statSync(join(place.cwd, "a")).mode & 0o777).toBe(0o600);
    for (const printed of [there, JSON.stringify(here)]) expect(printed).not.toContain(a?.toString("base64"));
  });

  it("prints a shared secret only with --json, and only if it goes to no file", async () => {
    const keyId = await makeKey("KEM");
    const place = server.place();
    const { code, stdout, stderr } = await qsp(["kms", "encapsulate", keyId, "--ciphertext", "ct"], place);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("--secret"),
    });
    const { result } = await qspJson(["kms", "encapsulate", keyId], place);
    expect(result).toMatchObject({ sharedSecret: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) });
  });

  it("overwrites no secret that is there", async () => {
    const keyId = await makeKey("KEM");
    const place = server.place();
    writeFileSync(join(place.cwd, "a"), "kept");
    const line = ["kms", "encapsulate", keyId, "--ciphertext", "ct", "--secret", "a"];
    expect(await qsp(line, place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("a already exists"),
    });
    expect(readFileSync(join(place.cwd, "a"), "utf8")).toBe("kept");
  });

  it.skipIf(isMissing("sh"))("ends without a word when the reader of a pipe has enough", async () => {
    await Promise.all(Array.from({ length: 20 }, () => makeKey()));
    const line = `"${process.execPath}" "${program}" kms audit --watch --after 0 | head -n 1`;
    const { code, stderr } = await launch("sh", ["-c", line], server.place()).end;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});
