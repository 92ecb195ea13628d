/** age's plugin protocol, as age and hostile programs speak it. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { describe, expect, it } from "vitest";
import { usageError } from "../../../src/cli/exit-codes.ts";
import { withProvider } from "../../../src/cli/keys/read-keys.ts";
import { useGuardedServer } from "../../../test/cli/guarded-server.ts";
import { listen, qspDone, runQsp, startQsp, timeout, useServer } from "../../../test/cli/qsp.ts";
import { decodeRecipient, encodePluginIdentity } from "../bech32.ts";
import { sealFileKey } from "../file-key.ts";
import { type FindFileKey, runIdentityMachine } from "../plugin.ts";
import { decodeBase64, encodeBase64, type Stanza, writeStanza } from "../stanza.ts";
import { createAgeKey, createIdentity } from "./keys.ts";

const server = useServer();
const guarded = useGuardedServer();
const machine = ["age-plugin", "--age-plugin=identity-v1"];
const none = new Uint8Array();

function stanza(type: string, args: readonly string[] = [], body: Uint8Array = none): string {
  return writeStanza({ type, args, body });
}

function recipientStanza(fileIndex: string, { type, args, body }: Stanza): string {
  return stanza("recipient-stanza", [fileIndex, type, ...args], body);
}

/** Seals a file key to a recipient, as age does. */
function seal(recipient: string, fileKey: Uint8Array): Promise<Stanza> {
  return withProvider((provider) => {
    const raw = decodeRecipient(recipient) ?? none;
    return sealFileKey(provider, provider.importPublicKey("X-Wing", { raw }), fileKey);
  });
}

/** Runs the state machine with the given input and "ok" to each answer. Returns the answers. */
async function converse(input: string, find: FindFileKey = async () => undefined): Promise<string> {
  let printed = "";
  async function* chunks() {
    yield Buffer.from(input + stanza("ok").repeat(20));
  }
  const print = (text: string) => {
    printed += `${text}\n`;
  };
  await runIdentityMachine({ input: chunks(), print }, find);
  return printed;
}

const text = (body: string) => Buffer.from(body);

describe("the plugin", { timeout }, () => {
  it("returns the file key, and ignores commands and stanzas that it does not know", async () => {
    const { recipient } = await createIdentity();
    const sealed = await seal(recipient, randomBytes(16));
    const fileKey = randomBytes(16);
    const request = [
      stanza("add-identity", [encodePluginIdentity("name/archive")]),
      stanza("grease-1f", ["1", "2"], randomBytes(100)),
      recipientStanza("0", { type: "X25519", args: ["a"], body: randomBytes(48) }),
      recipientStanza("0", sealed),
      stanza("done"),
    ];
    const asked: unknown[] = [];
    const answer = await converse(request.join(""), async (handle, [one, ...others]) => {
      asked.push([handle, one?.ciphertext, others.length]);
      return Buffer.from(fileKey);
    });
    expect(asked).toEqual([["name/archive", Uint8Array.from(sealed.body), 0]]);
    expect(answer).toBe(stanza("file-key", ["0"], fileKey) + stanza("done"));
  });

  it("reports an identity's error and goes on with the next one", async () => {
    const { recipient } = await createIdentity();
    const fileKey = randomBytes(16);
    const request = [
      stanza("add-identity", ["AGE-PLUGIN-QSP-1DAMAGED"]),
      stanza("add-identity", [encodePluginIdentity("name/refused")]),
      stanza("add-identity", [encodePluginIdentity("name/other")]),
      stanza("add-identity", [encodePluginIdentity("name/right")]),
      recipientStanza("7", await seal(recipient, fileKey)),
      stanza("done"),
    ];
    const answer = await converse(request.join(""), async (handle) => {
      if (handle === "name/refused") throw usageError("the key is disabled");
      return handle === "name/right" ? Buffer.from(fileKey) : undefined;
    });
    const damaged = "the identity is damaged; write it again with qsp kms age-identity";
    expect(answer).toBe(
      stanza("error", ["identity", "0"], text(damaged)) +
        stanza("error", ["identity", "1"], text("the key is disabled")) +
        stanza("file-key", ["7"], fileKey) +
        stanza("done"),
    );
  });

  it("reports malformed stanzas, and opens other files", async () => {
    const { recipient } = await createIdentity();
    const sealed = await seal(recipient, randomBytes(16));
    const lowOrder = (decodeBase64(sealed.args[0] ?? "") ?? none).fill(0, -32);
    const malformed = [
      { ...sealed, args: [] },
      { ...sealed, args: [...sealed.args, "more"] },
      { ...sealed, args: [`${sealed.args[0]}AAAA`] },
      { ...sealed, args: [encodeBase64(lowOrder)] },
      { ...sealed, body: randomBytes(48) },
    ];
    const fileKey = randomBytes(16);
    const request = [
      stanza("add-identity", [encodePluginIdentity("")]),
      ...malformed.map((one) => recipientStanza("0", one)),
      recipientStanza("0", sealed),
      recipientStanza("1", sealed),
      stanza("done"),
    ];
    const answer = await converse(request.join(""), async () => Buffer.from(fileKey));
    expect(answer.match(/^-> .*/gm)).toEqual([
      ...malformed.map((_, i) => `-> error stanza 0 ${i}`),
      "-> file-key 1",
      "-> done",
    ]);
  });

  it.each([
    ["a closed pipe", stanza("add-identity", ["AGE-PLUGIN-QSP-1"]), /closed the connection/],
    ["an endless line", `-> ${"a".repeat(70_000)}`, /a line is longer than 65536 bytes/],
    ["an endless body", `-> a\n${`${"A".repeat(64)}\n`.repeat(150_000)}`, /more than 8388608 bytes/],
    ["endless stanzas", `-> a ${"b".repeat(2000)}\n\n`.repeat(5000), /more than 8388608 bytes/],
    ["endless arguments", `-> a${" b".repeat(200)}\n\n`, /more than 128 arguments/],
    ["a recipient-stanza without a type", stanza("recipient-stanza", ["0"]), /file index and a type/],
    ["a file index that is no number", stanza("recipient-stanza", ["-1", "a"]), /file index and a type/],
    ["other data", "hello\n", /malformed message/],
    ["a body that is not base64", "-> a\n!!\n", /not canonical base64/],
  ])("ends at %s", async (_name, input, message) => {
    await expect(converse(input)).rejects.toThrow(message);
  });
});

/** Reads the message of the only error. */
function readError(stdout: string): string {
  return Buffer.from(stdout.split("\n").slice(1, -3).join(""), "base64").toString();
}

/** A request for a file with one recipient, and "ok" to the answer. */
async function requestFor(handle: string, recipient: string, fileKey: Uint8Array): Promise<string> {
  const identity = stanza("add-identity", [encodePluginIdentity(handle)]);
  return identity + recipientStanza("0", await seal(recipient, fileKey)) + stanza("done") + stanza("ok");
}

describe("age-plugin-qsp", { timeout }, () => {
  it("opens a file key through the server with the token of qsp login, and asks for it", async () => {
    const ada = await guarded.loggedIn();
    await qspDone(["kms", "create", "--algorithm", "X-Wing", "--usage", "KEM", "--name", "hers"], ada);
    const fileKey = randomBytes(16);
    const recipient = (await qspDone(["kms", "age-recipient", "name/hers"], ada)).trim();
    const request = await requestFor("name/hers", recipient, fileKey);
    expect(await runQsp(machine, { ...ada, stdin: request })).toEqual({
      code: 0,
      stdout: stanza("file-key", ["0"], fileKey) + stanza("done"),
      stderr: "",
    });
    const { stdout } = await runQsp(machine, { ...guarded.place(), stdin: request });
    expect(readError(stdout)).toBe("log in first: qsp login USERNAME (UNAUTHENTICATED, TOKEN_MISSING)");
  });

  it("names the variable of a server that does not run", async () => {
    const { recipient } = await createIdentity();
    const stdin = await requestFor("key-1", recipient, randomBytes(16));
    const { stdout } = await runQsp(machine, { ...server.place(), url: "http://127.0.0.1:1", stdin });
    expect(readError(stdout)).toMatch(/^http:\/\/127\.0\.0\.1:1 cannot be reached: .* with QSP_URL$/);
  });

  it("passes no control characters of a server on to age, which prints them", async () => {
    const refusal = { "grpc-status": "5", "grpc-message": "no key%1B]0;owned%07" };
    const head = { ":status": 200, "content-type": "application/grpc+proto", ...refusal };
    const hostile = createServer().on("stream", (stream: ServerHttp2Stream) => {
      stream.respond(head, { endStream: true });
    });
    const url = `http://127.0.0.1:${await listen(hostile)}`;
    const { recipient } = await createIdentity();
    const stdin = await requestFor("key-1", recipient, randomBytes(16));
    const { stdout } = await runQsp(machine, { ...server.place(), url, stdin });
    expect(readError(stdout)).toBe("no key\ufffd]0;owned\ufffd (NOT_FOUND)");
  });

  it("refuses to encrypt to an identity, and explains itself to a person who starts it", async () => {
    const stdin = stanza("add-identity", ["AGE-PLUGIN-QSP-1"]) + stanza("done") + stanza("ok");
    const recipient = ["age-plugin", "--age-plugin=recipient-v1"];
    const { stdout } = await runQsp(recipient, { ...server.place(), stdin });
    expect(stdout).toMatch(/^-> error internal\n/);
    const { code, stderr } = await runQsp(["age-plugin"], server.place());
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("age starts this program") });
  });

  it("ends when age closes its pipes", async () => {
    const keyId = await createAgeKey(server);
    const { child, end } = startQsp(machine, { ...server.place(), stdin: null });
    child.stdin?.write(stanza("add-identity", [encodePluginIdentity(keyId)]));
    child.stdin?.end();
    child.stdout?.destroy();
    await once(child, "exit");
    expect((await end).code).toBe(2);
  });
});
