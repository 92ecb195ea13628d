import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { createClients, type TransportInput } from "../../src/client/create-clients.ts";
import { parseMetrics } from "../../src/client/prometheus-text.ts";
import { services } from "../../src/client/services.ts";

/** Answers Hello with the authorization header that it received. */
function createTransport({ interceptors }: TransportInput) {
  return createRouterTransport(
    ({ rpc }) => {
      rpc(services.token.method.hello, (_request, { requestHeader }) => ({
        message: requestHeader.get("authorization") ?? "none",
      }));
    },
    { transport: { interceptors } },
  );
}

const ask = async (url: string, options: Parameters<typeof createClients>[1]) =>
  (await createClients(url, { createTransport, ...options }).token.hello({})).message;

describe("createClients", () => {
  it("sends no token if none is given, and sends one over https or to this machine", async () => {
    expect(await ask("http://qsp.example", {})).toBe("none");
    expect(await ask("https://qsp.example", { token: "abc" })).toBe("Bearer abc");
    for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
      expect(await ask(`http://${host}:8080`, { token: "abc" })).toBe("Bearer abc");
  });

  it("calls a function for the token of each call", async () => {
    const tokens = ["", "first", "second"];
    const { token } = createClients("https://qsp.example", {
      createTransport,
      token: async () => tokens.shift() ?? "",
    });
    const messages = [await token.hello({}), await token.hello({}), await token.hello({})];
    expect(messages.map(({ message }) => message)).toEqual(["none", "Bearer first", "Bearer second"]);
  });

  it.each(["http://qsp.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example"])(
    "does not send a token unencrypted to %s unless allowed",
    async (url) => {
      await expect(ask(url, { token: "abc" })).rejects.toThrow("unencrypted");
      expect(await ask(url, { token: "abc", allowCleartext: true })).toBe("Bearer abc");
    },
  );

  it("rejects a token that is not a valid header value, and does not quote it", async () => {
    for (const token of ["a b", "abc\r\nx-evil: 1", "abc\n", "ä"]) {
      const call = ask("https://qsp.example", { token });
      await expect(call).rejects.toThrow("token must be a bearer token on one line");
      await expect(call).rejects.not.toThrow("abc");
    }
  });

  it.each([
    "",
    "qsp.example",
    "ftp://qsp.example",
    "https://user:secret@qsp.example",
    "https://qsp.example/?a=1",
  ])('rejects the URL "%s"', (url) => {
    expect(() => createClients(url)).toThrow("url must be a scheme, a host and a port");
  });

  it("does not follow a redirect with a token over fetch", async () => {
    const received: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      received.push(request.headers.authorization);
      response.writeHead(307, { location: "/else" }).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(createClients(url, { token: "abc" }).kms.sign({})).rejects.toThrow();
    expect(received).toEqual(["Bearer abc"]);
  });
});

describe("metrics text", () => {
  it("is parsed with labels in any order, escapes, signs and special values", () => {
    const text =
      'a{x="1,2}",y="a\\"b\\\\c\\nd"} +Inf\nb -1.5e3 1700000000\n# comment\nc{} NaN\nnonsense here\n{} 1\n';
    const samples = parseMetrics(text).map(({ name, labels, value }) => ({
      name,
      value,
      ...Object.fromEntries(labels),
    }));
    expect(samples).toEqual([
      { name: "a", x: "1,2}", y: 'a"b\\c\nd', value: Infinity },
      { name: "b", value: -1500 },
      { name: "c", value: Number.NaN },
    ]);
  });

  it("from an untrusted server yields no samples if it opens a hundred thousand labels and closes none", () => {
    expect(parseMetrics(`a{${'x="'.repeat(100_000)} 1\n${`a{x="\\`.repeat(50_000)}`)).toEqual([]);
  });
});
