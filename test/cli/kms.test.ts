import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { isMissing } from "../interop/tools.ts";
import { launch, program, qspDone, qspJson, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

async function makeKey(usage: "SIGN" | "KEM" = "SIGN", alias = ""): Promise<string> {
  return (await server.client(KmsService).createKey({ usage, alias })).result?.keyId ?? "";
}

describe("qsp kms", { timeout }, () => {
  it.each(["--watch", "--follow"])(
    "follows the audit log with %s, one line per entry, until it is interrupted",
    async (flag) => {
      const keyId = await makeKey();
      const { child, end } = startQsp(
        ["kms", "audit", keyId, flag, "--after", "0", "--json"],
        server.place(),
      );
      // The first entry is old; once it arrives, the watch is active.
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

  it.skipIf(isMissing("sh"))("exits silently when the reader closes the pipe", async () => {
    await Promise.all(Array.from({ length: 20 }, () => makeKey()));
    const line = `"${process.execPath}" "${program}" kms audit --watch --after 0 | head -n 1`;
    const { code, stderr } = await launch("sh", ["-c", line], server.place()).end;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});

describe("qsp kms public-keys", { timeout }, () => {
  it("accepts a key, a version or a name, like its sibling verbs", async () => {
    const place = server.place();
    const kms = server.client(KmsService);
    await kms.createKey({ name: "operand" });
    const { newKey } = await kms.rotateKey({ keyId: "name/operand" });
    const pemOf = (reference: string) => qspDone(["kms", "public-keys", reference, "--pem", "-"], place);
    const [all, newest] = [await pemOf("name/operand"), await pemOf(newKey?.keyId ?? "")];
    expect(all.match(/BEGIN PUBLIC KEY/g)).toHaveLength(2);
    expect(newest).toBe(newKey?.publicKeyPem);
    expect(await pemOf("name/operand/2")).toBe(newest);
    const named = ["kms", "public-keys", "--name", "operand"];
    const { exported, keys } = await qspJson(["kms", "public-keys", "name/operand"], place);
    expect({ exported, keys }).toEqual(
      await qspJson(named, place).then((answer) => ({ exported: answer.exported, keys: answer.keys })),
    );
  });

  it("and kms list treat all pages as one answer", async () => {
    const kms = server.client(KmsService);
    const count = 1001;
    // The server accepts 320 concurrent calls per client.
    for (const calls of [250, 250, 250, 251])
      await Promise.all(Array.from({ length: calls }, () => kms.createKey({ algorithm: "ML-DSA-44" })));
    const listed = await qspJson(["kms", "list", "--algorithm", "ML-DSA-44"], server.place());
    expect(listed.nextPageToken).toBe("");
    expect(new Set((listed.keys as { keyId: string }[]).map(({ keyId }) => keyId)).size).toBe(count);
    const { exported, keys, pem, nextPageToken } = await qspJson(
      ["kms", "public-keys", "--algorithm", "ML-DSA-44"],
      server.place(),
    );
    expect([(exported as unknown[]).length, (keys as unknown[]).length, nextPageToken]).toEqual([
      count,
      count,
      "",
    ]);
    expect((pem as string).match(/BEGIN/g)).toHaveLength(count);
  });
});

describe("qsp identity", { timeout }, () => {
  it("watches from the entry after a given one", async () => {
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
});
