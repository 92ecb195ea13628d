/** Names, labels, states, grants and filters of the key service on the command line. */
import { createPublicKey, verify } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "./qsp.ts";

const server = useServer();

describe("qsp kms with names", { timeout }, () => {
  it("makes a key with a name, labels and a schedule, and shows them", async () => {
    const place = server.place();
    const line = ["kms", "create", "--name", "team/one", "--label", "team=a=b", "--label", "stage="];
    await qspDone([...line, "--rotate-every", "12w"], place);
    const shown = await qspDone(["kms", "get", "name/team/one"], place);
    for (const fact of [
      /^name +team\/one\/1 \(primary\)$/m,
      /^labels +stage=, team=a=b$/m,
      /^rotated every +84d$/m,
      /^origin +GENERATED$/m,
    ])
      expect(shown).toMatch(fact);
  });

  it("lists the versions of a name, and marks the primary one", async () => {
    const place = server.place();
    await qspDone(["kms", "create", "--name", "team/two", "--label", "of=two"], place);
    await qspDone(["kms", "rotate", "name/team/two"], place);
    const shown = await qspDone(["kms", "get", "name/team/two"], place);
    expect(shown).toMatch(
      /^VERSION +KEY +STATUS +CREATED\nteam\/two\/1 +key-\S+ +ROTATED .*\nteam\/two\/2 \* /m,
    );
    for (const filter of [
      ["--name", "team/two"],
      ["--label", "of=two"],
    ]) {
      const rows = (await qspDone(["kms", "list", "--usage", "SIGN", ...filter], place))
        .trimEnd()
        .split("\n");
      expect(rows.slice(1)).toEqual([
        expect.stringMatching(/ team\/two\/1$/),
        expect.stringMatching(/ team\/two\/2 \* /),
      ]);
    }
  });

  it("disables, enables, schedules, restores and destroys a key", async () => {
    const place = server.place();
    await qspDone(["kms", "create", "--name", "team/three"], place);
    const key = "name/team/three";
    expect(await qspDone(["kms", "disable", key], place)).toMatch(/^status +DISABLED$/m);
    expect(await qspDone(["kms", "enable", key], place)).toMatch(/^status +ACTIVE$/m);
    expect(await qspDone(["kms", "destroy", key, "--after", "30d"], place)).toMatch(
      /^key-\S+ is DESTROY_SCHEDULED and will be destroyed at \S+Z\.$/m,
    );
    expect(await qspDone(["kms", "get", key], place)).toMatch(/^destroyed at +\S+Z$/m);
    expect(await qspDone(["kms", "list", "--status", "DESTROY_SCHEDULED"], place)).toContain("team/three/1");
    expect(await qspDone(["kms", "restore", key], place)).toMatch(/^status +DISABLED$/m);
    expect(await qspDone(["kms", "destroy", key, "--yes"], place)).toMatch(/ is DESTROYED\.$/m);
  });

  it("signs and verifies by name, and tells which version signed", async () => {
    const place = server.place();
    const made = await qspJson(["kms", "create", "--name", "team/four"], place);
    writeFileSync(join(place.cwd, "f"), "hello");
    const signed = await qspJson(["sign", "f", "--key", "name/team/four"], place);
    expect(signed.keyId).toBe((made.result as { keyId: string }).keyId);
    expect(
      await qspDone(["verify", "f", "--signature", "f.sig", "--key", "name/team/four/1"], place),
    ).toContain("valid");
    await qspDone(["kms", "disable", "name/team/four"], place);
    const refused = await qsp(["verify", "f", "--signature", "f.sig", "--key", "name/team/four"], place);
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining("is DISABLED") });
  });

  it.each([
    [["kms", "create", "--label", "x"], '--label "x"'],
    [["kms", "create", "--label", "a=1", "--label", "a=2"], "--label a occurs twice"],
    [["kms", "create", "--rotate-every", "30d"], "--name"],
    [["kms", "create", "--name", "n", "--rotate-every", "5m"], "s, h, d and w"],
    [["kms", "destroy", "k", "--after", "0d"], "--yes"],
    [["kms", "grant", "k", "bob"], "--operations"],
    [["kms", "grant", "k", "bob", "--operations", "SIGN", "--expires", "soon"], "--expires"],
    [["kms", "audit", "--after", "0"], "--watch"],
  ])("refuses %j before it calls the server", async (args, named) => {
    const { code, stderr } = await qsp(args, { ...server.place(), url: "http://127.0.0.1:1" });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(named) });
  });
});

describe("qsp kms public-keys", { timeout }, () => {
  it("writes the keys of all pages that can verify as PEM and as a key set", async () => {
    const place = server.place();
    const kms = server.client(KmsService);
    await kms.createKey({ name: "exported", labels: { for: "export" } });
    await kms.rotateKey({ keyId: "name/exported" });
    await kms.createKey({ algorithm: "SLH-DSA-SHA2-128f", labels: { for: "export" } });
    const label = ["--label", "for=export"];
    expect(await qspDone(["kms", "public-keys", ...label], place)).toMatch(/ exported\/2$/m);
    const line = ["kms", "public-keys", ...label, "--pem", "keys.pem", "--jwks", "keys.json"];
    expect(await qspDone(line, place)).toBe("keys.pem: 3 keys\nkeys.json: 2 keys\n");
    const { keys } = JSON.parse(readFileSync(join(place.cwd, "keys.json"), "utf8"));
    const { result } = await kms.sign({ keyId: "name/exported", data: Buffer.from("x") });
    const publicKey = createPublicKey({ key: keys[1], format: "jwk" });
    expect(verify(null, Buffer.from("x"), publicKey, result?.signature ?? Buffer.alloc(0))).toBe(true);
    expect(readFileSync(join(place.cwd, "keys.pem"), "utf8").match(/BEGIN PUBLIC KEY/g)).toHaveLength(3);
  });

  it("takes a key, a version or a name, as its siblings do", async () => {
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

  it("refuses a key that verifies nothing", async () => {
    const keyId =
      (await server.client(KmsService).createKey({ algorithm: "ML-KEM-768" })).result?.keyId ?? "";
    expect(await qsp(["kms", "public-keys", keyId], server.place())).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no public key that verifies signatures: it is ACTIVE, and for KEM"),
    });
  });

  it("refuses a name that no key has, and writes no empty set", async () => {
    const place = server.place();
    const line = ["kms", "public-keys", "--name", "misspelt", "--jwks", "keys.json", "--pem", "keys.pem"];
    expect(await qsp(line, place)).toMatchObject({
      code: 3,
      stdout: "",
      stderr: expect.stringContaining("NOT_FOUND"),
    });
    expect(readdirSync(place.cwd)).toEqual([]);
  });

  it("exports more keys than one page has", async () => {
    const kms = server.client(KmsService);
    const count = 1001;
    for (const calls of [250, 250, 250, 251])
      await Promise.all(Array.from({ length: calls }, () => kms.createKey({ algorithm: "ML-DSA-44" })));
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

describe("qsp kms grants", { timeout }, () => {
  it("grants, lists and revokes", async () => {
    const place = server.place();
    await qspDone(["kms", "create", "--name", "granted"], place);
    const line = ["kms", "grant", "name/granted", "bob", "--operations", "SIGN,VERIFY", "--expires"];
    const { grant } = await qspJson([...line, "2100-01-01T00:00:00Z"], place);
    const { grantId } = grant as { grantId: string };
    expect(await qspDone([...line, "30d"], place)).toMatch(/^operations +SIGN, VERIFY$/m);
    expect(await qspDone(["kms", "grants", "name/granted"], place)).toMatch(
      /^grant-\S+ +name\/granted +system +bob +2100-01-01T00:00:00Z +SIGN,VERIFY$/m,
    );
    expect(await qspDone(["kms", "grants", "--received"], place)).toBe("There are no grants.\n");
    expect(await qspDone(["kms", "revoke", grantId], place)).toBe(`${grantId} is revoked.\n`);
    expect(await qsp(["kms", "revoke", grantId], place)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("qsp kms grants"),
    });
    expect(await qspDone(["kms", "grants", "name/granted"], place)).not.toContain(grantId);
  });
});

describe("qsp kms audit", { timeout }, () => {
  it("filters by key, operation, outcome, user and time, and shows where calls came from", async () => {
    const place = server.place();
    await qspDone(["kms", "create", "--name", "audited"], place);
    await qspDone(["kms", "rotate", "name/audited"], place);
    await qsp(["kms", "enable", "name/audited"], place);
    const operations = async (...filter: string[]) => {
      const { auditLog } = await qspJson(["kms", "audit", "name/audited", ...filter], place);
      return (auditLog as { operation: string }[]).map(({ operation }) => operation);
    };
    expect(await operations()).toEqual(["CREATE", "ROTATE", "CREATE", "ENABLE"]);
    expect(await operations("--operation", "CREATE")).toEqual(["CREATE", "CREATE"]);
    expect(await operations("--outcome", "REFUSED", "--user", "system")).toEqual(["ENABLE"]);
    expect(await operations("--user", "bob")).toEqual([]);
    expect(await operations("--from", "1h")).toHaveLength(4);
    expect(await operations("--to", "1h")).toEqual([]);
    const { auditLog } = await qspJson(["kms", "audit", "name/audited"], place);
    expect(auditLog).toMatchObject([
      { clientAddress: "127.0.0.1", requestId: expect.stringMatching(/./) },
      {},
      {},
      {},
    ]);
    expect(await qspDone(["kms", "audit", "name/audited"], place)).toMatch(
      / ENABLE +REFUSED +system +127\.0\.0\.1 /,
    );
  });
});
