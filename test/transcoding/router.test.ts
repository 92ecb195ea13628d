import { describe, expect, it } from "vitest";
import { send } from "./client.ts";
import {
  invalid,
  notAllowed,
  notFound,
  outcome,
  readRule,
  received,
  serveRules,
  type WrittenRule,
} from "./rules.ts";

describe("matching a template against a path", () => {
  /** By template and path: the value of the variable `name`; undefined if the path does not match. */
  const table: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
    "/v1/{name}": {
      "/v1/a": "a",
      // Dot segments are ordinary segments: nothing resolves them without the caller's knowledge.
      "/v1/%2e%2e": "..",
      // Everything in a single segment is decoded.
      "/v1/a%20b": "a b",
      "/v1/a%2Fb%2fc": "a/b/c",
      "/v1/a%252Fb": "a%2Fb",
      "/v1/a%3Fb%23c": "a?b#c",
      "/v1/%C3%A9%F0%9F%94%91%c3%a9": "é🔑é",
      "/v1/a%00b": "a\u0000b",
      "/v1/-_.~!$&'()*@a;b=c,d": "-_.~!$&'()*@a;b=c,d",
      // Colons without verbs.
      "/v1/a:b": "a:b",
      "/v1/a%3Ab": "a:b",
      "/v1/:": ":",
      "/v1/a:": "a:",
      "/v1/:a": ":a",
      // Forms of the target (RFC 9112, section 3.2).
      "http://host/v1/a": "a",
      "https://user@host:8443/v1/a?": "a",
      "HTTP://host/v1/a": "a",
    },
    "/v1/{name}/x": { "/v1/a:b/x": "a:b" },
    "/{name}": { "/a": "a" },
    // In several segments, everything but slashes is decoded, even if the path happens to have only one.
    "/v1/{name=**}": {
      "/v1": "",
      "/v1/": "",
      "/v1/a": "a",
      "/v1/a/b/c": "a/b/c",
      "/v1/../../etc": "../../etc",
      "/v1/a%2Fb/c%2fd": "a%2Fb/c%2fd",
      "/v1/a%20b%2Fc%3Ad": "a b%2Fc:d",
      "/v1/%C3%A9/%2F/%25": "é/%2F/%",
      "/v1/a%252Fb": "a%2Fb",
      "/v1/urn:a/urn:b": "urn:a/urn:b",
    },
    "/{name=**}": { "/": "", "/a/b": "a/b", "http://host": "", "//host/v1/a": "/host/v1/a" },
    "/v1/{name=x/*}": { "/v1/x/a%2Fb": "x/a%2Fb", "/v1/x/a%20b": "x/a b" },
    "/v1/{name=x/**}": { "/v1/x": "x", "/v1/x/a/b": "x/a/b" },
    "/v1/{name}/**": { "/v1/a": "a", "/v1/a/b/c": "a" },
    // Literals are compared after decoding.
    "/v1/caf%C3%A9/{name}": { "/v1/caf%c3%a9/a": "a", "/v1/café/a": "a" },
    "/v1/a/{name}": { "/v1/%61/a": "a" },
    "/v1/a%2Fb/{name}": { "/v1/a%2Fb/c": "c" },
    "/v1/constructor/{name}": { "/v1/constructor/a": "a" },
    // Verbs.
    "/v1/{name}:go": {
      "/v1/a:go": "a",
      "/v1/a:g%6F": "a",
      "/v1/a:b:go": "a:b",
      "/v1/a%3Ab:go": "a:b",
      "/v1/a:go:go": "a:go",
      "/v1/a:go?": "a",
    },
    "/v1/{name=**}:go": { "/v1/a/b:go": "a/b", "/v1/a:b/c:go": "a:b/c", "/v1:go": "" },
    "/v1/{name}/x:go": { "/v1/a/x:go": "a" },
  };
  for (const [template, paths] of Object.entries(table)) {
    it.each(Object.entries(paths))(`${template} finds in %s: %j`, async (path, name) => {
      const expected = name === "" ? {} : { name };
      expect(await received({ get: template }, `GET ${path}`)).toEqual(expected);
    });
  }

  const unmatched: Readonly<Record<string, readonly string[]>> = {
    "/v1/{name}": ["/v1", "/v1/", "/v1//", "/v1//a", "//v1/a", "/v1/a/", "/v1/a/b", "/V1/a", "/v1/x/../a"],
    "/v1/{name}/x": ["/v1//x", "/v1/a/x/", "/v1/a/X", "/v1/a%2Fx"],
    "/{name}": ["/"],
    "/v1/{name=*/*}": ["/v1/a%2Fb"],
    "/v1/a%2Fb/{name}": ["/v1/a/b/c"],
    "/v1/{name}:go": ["/v1/a%3Ago", "/v1/a", "/v1/a:stop", "/v1/a:Go", "/v1/a:go/", "/v1/:go"],
    "/v1/{name=**}:go": ["/v1/a/b%3Ago"],
    "/v1/{name}/x:go": ["/v1/a:go/x"],
  };
  for (const [template, paths] of Object.entries(unmatched)) {
    it.each(paths)(`${template} does not match %s`, async (path) => {
      expect(await received({ get: template }, `GET ${path}`)).toEqual(notFound);
    });
  }
});

describe.each(["/v1/{name}", "/v1/{name=**}", "/v1/*", "/v1/{name}:go"])(
  "a path that is not percent-encoded UTF-8 is refused for %s",
  (template) => {
    it.each(["%", "a%2", "%zz", "%u0041", "%FF", "%C0%AF", "%ED%A0%80", "%C3"])("/v1/%j", async (segment) => {
      expect(await received({ get: template }, `GET /v1/${segment}`)).toEqual(invalid("TARGET_INVALID"));
    });
  },
);

/** Names rules without a name by their position, and returns the call that a request reaches. */
function reach(rules: readonly WrittenRule[], line: string) {
  return outcome(
    rules.map((rule, index) => ({ rpc: `Other${index}`, ...readRule(rule) })),
    line,
  );
}

describe("several templates for one path", () => {
  const literal = "Literal: GET /v1/x";
  const one = "One: GET /v1/{name}";
  const rest = "Rest: GET /v1/{name=**}";
  const verb = "Verb: GET /v1/{name}:go";
  const restVerb = "RestVerb: GET /v1/{name=**}:go";
  const rows: [what: string, rules: WrittenRule[], path: string, rpc: string, name?: string][] = [
    ["a literal wins over *", [one, literal], "/v1/x", "Literal"],
    ["* goes before **", [rest, one], "/v1/y", "One", "y"],
    ["** serves no segment", [one, rest], "/v1", "Rest"],
    ["** serves an empty segment", [one, rest], "/v1/", "Rest"],
    ["an empty path wins over an empty **", [rest, "Bare: GET /v1"], "/v1", "Bare"],
    ["a verb wins over no verb", [one, verb], "/v1/a:go", "Verb", "a"],
    ["an encoded colon does not begin a verb", [one, verb], "/v1/a%3Ago", "One", "a:go"],
    ["a verb wins over a literal with a colon", ["Colon: GET /v1/a%3Ago", verb], "/v1/a:go", "Verb", "a"],
    ["a verb after ** wins over *", [one, restVerb], "/v1/a:go", "RestVerb", "a"],
    ["a verb after * wins over a verb after **", [restVerb, verb], "/v1/a:go", "Verb", "a"],
    ["an encoded literal is a literal", [one, literal], "/v1/%78", "Literal"],
    ["a name from Object.prototype is no literal", [one, literal], "/v1/constructor", "One", "constructor"],
    ["backtracks from a literal to *", ["GET /v1/x/y", "Star: GET /v1/{name}/z"], "/v1/x/z", "Star", "x"],
    [
      "backtracks two steps",
      ["GET /v1/a/b/c", "GET /v1/a/*/d", "Far: GET /v1/{name}/b/e"],
      "/v1/a/b/e",
      "Far",
      "a",
    ],
    ["backtracks from * to **", ["GET /v1/*/y", rest], "/v1/x/z", "Rest", "x/z"],
    [
      "backtracks to ** after less",
      ["GET /v1/a/*/y", "Rest: GET /{name=**}"],
      "/v1/a/b/z",
      "Rest",
      "v1/a/b/z",
    ],
    ["** after more wins", ["GET /v1/**", "Long: GET /v1/a/{name=**}"], "/v1/a/b/c", "Long", "b/c"],
    ["the first literal decides", ["GET /v1/*/y", "First: GET /v1/x/{name}"], "/v1/x/y", "First", "y"],
  ];
  it.each(rows)("%s, in any order", async (_what, rules, path, rpc, name) => {
    const expected = { rpc, request: name === undefined ? {} : { name } };
    expect(await reach(rules, `GET ${path}`)).toEqual(expected);
    expect(await reach(rules.toReversed(), `GET ${path}`)).toEqual(expected);
  });
});

describe("several methods for one path", () => {
  const get = "Get: GET /v1/{name}";
  const any = "Any: * /v1/{name}";
  const rows: [what: string, rules: WrittenRule[], line: string, rpc: string, name?: string][] = [
    ["backtracks from a literal without the method to *", ["POST /v1/x", get], "GET /v1/x", "Get", "x"],
    ["backtracks from a verb to no verb", ["POST /v1/*:go", get], "GET /v1/a:go", "Get", "a:go"],
    ["a method wins over any method", ["* /v1/*", get], "GET /v1/a", "Get", "a"],
    ["any method serves the others", ["GET /v1/*", any], "DELETE /v1/a", "Any", "a"],
    ["any method on a literal wins over a method on *", ["GET /v1/*", "Any: * /v1/x"], "GET /v1/x", "Any"],
    ["any method includes unknown methods", [any], "BREW /v1/a", "Any", "a"],
    ["OPTIONS can have its own rule", ["Options: OPTIONS /v1/{name}"], "OPTIONS /v1/a", "Options", "a"],
    ["HEAD is GET", [get, "POST /v1/x"], "HEAD /v1/x", "Get", "x"],
    ["HEAD can have its own rule", ["GET /v1/*", "Head: HEAD /v1/{name}"], "HEAD /v1/a", "Head", "a"],
    ["HEAD uses GET rather than any method on everything", [get, "* /**"], "HEAD /v1/a", "Get", "a"],
  ];
  it.each(rows)("%s", async (_what, rules, line, rpc, name) => {
    expect(await reach(rules, line)).toMatchObject({ rpc, request: name === undefined ? {} : { name } });
  });

  it("methods are case-sensitive", async () => {
    expect(await received({ get: "/v1/{name}" }, "get /v1/a")).toEqual(notAllowed);
  });

  const allows: [what: string, rules: WrittenRule[], line: string, allow: string][] = [
    ["one method", ["POST /v1/x"], "GET /v1/x", "OPTIONS, POST"],
    ["GET and so HEAD", ["GET /v1/x"], "POST /v1/x", "GET, HEAD, OPTIONS"],
    ["a custom method", ["PURGE /v1/x"], "GET /v1/x", "OPTIONS, PURGE"],
    [
      "all templates",
      ["POST /v1/x", "GET /v1/{name}", "PUT /v1/**"],
      "DELETE /v1/x",
      "GET, HEAD, OPTIONS, POST, PUT",
    ],
    [
      "matching templates only",
      ["POST /v1/x", "GET /v1/y", "PUT /v1/x/y", "PUT /v1/x:go"],
      "GET /v1/x",
      "OPTIONS, POST",
    ],
    ["verb or no verb", ["POST /v1/*:go", "GET /v1/*"], "PUT /v1/a:go", "GET, HEAD, OPTIONS, POST"],
  ];
  it.each(allows)("a refusal and OPTIONS list the allowed methods, without a call: %s", async (...row) => {
    await expectAllowed(...row);
  });

  it.each(["OPTIONS /v2", "POST /testing.Ruled/Rpc1"])(
    "a path without a rule is unknown: %s",
    async (line) => {
      expect(await received({ get: "/v1" }, line)).toEqual(notFound);
    },
  );

  it("OPTIONS * describes the server (RFC 9110, section 9.3.7)", async () => {
    const { transcoder, calls } = serveRules(["GET /{name=**}"]);
    expect(await send(transcoder, "OPTIONS *")).toMatchObject({ status: 204, text: "" });
    // RFC 9112, section 3.2.4: the target * is for no other method.
    expect((await send(transcoder, "GET *")).status).toBeGreaterThanOrEqual(400);
    expect(calls).toEqual([]);
  });
});

async function expectAllowed(
  _what: string,
  rules: readonly WrittenRule[],
  line: string,
  allow: string,
  options: Parameters<typeof serveRules>[2] = {},
): Promise<void> {
  const { transcoder, calls } = serveRules(rules, {}, options);
  for (const [request, status] of [
    [line, 405],
    [`OPTIONS ${line.split(" ")[1]}`, 204],
  ] as const) {
    const answer = await send(transcoder, request);
    expect([answer.status, answer.headers.get("allow")]).toEqual([status, allow]);
  }
  expect(calls).toEqual([]);
}

describe("many routes", () => {
  it("are searched without exponential time in the number of wildcards", async () => {
    const depth = 14;
    const rules = Array.from({ length: 2 ** 8 }, (_, bits): WrittenRule => {
      const segments = Array.from({ length: depth }, (_, at) => ((bits >> (at % 8)) & 1 ? "*" : "a"));
      return { get: `/${segments.join("/")}/end${bits}` };
    });
    const { transcoder } = serveRules(rules);
    const answer = await send(transcoder, `GET /${"a/".repeat(depth)}nowhere`);
    expect(answer.status).toBe(404);
  });

  it("can match a path of a thousand segments", async () => {
    const path = Array.from({ length: 1000 }, (_, index) => `s${index}`).join("/");
    expect(await received({ get: "/v1/{name=**}" }, `GET /v1/${path}`)).toEqual({ name: path });
  });
});

describe('the path convention "openapi"', () => {
  const shadowed: WrittenRule[] = ["Mint: POST /v1/mint", "Get: GET /v1/{name}"];
  const openApi = { pathConvention: "openapi" } as const;
  const rows: [what: string, rules: WrittenRule[], line: string][] = [
    ["a literal hides *", shadowed, "GET /v1/mint"],
    ["a literal hides * from HEAD", shadowed, "HEAD /v1/mint"],
    ["a verb hides a path without a verb", ["POST /v1/*:go", "GET /v1/{name}"], "GET /v1/a:go"],
    ["the rest of a literal hides *", ["POST /v1/x/**", "GET /v1/*/{name}"], "GET /v1/x/y"],
  ];
  it.each(rows)("allows only the methods of the most specific template: %s", async (...row) => {
    await expectAllowed(...row, "OPTIONS, POST", openApi);
  });

  it("decodes encoded slashes, once, in the value of a multi-segment variable too", async () => {
    const { transcoder, calls } = serveRules(["Get: GET /v1/{name=**}"], {}, openApi);
    expect((await send(transcoder, "GET /v1/a%2Fb/c%2fd%252Fe")).status).toBe(200);
    expect(calls).toEqual([{ rpc: "Get", request: { name: "a/b/c/d%2Fe" } }]);
  });

  it("still backtracks if the more specific template does not match to the end", async () => {
    const { transcoder, calls } = serveRules(["POST /v1/x/y", "Get: GET /v1/{name}/z"], {}, openApi);
    expect((await send(transcoder, "GET /v1/x/z")).status).toBe(200);
    expect(calls).toEqual([{ rpc: "Get", request: { name: "x" } }]);
  });

  it("is not the default", async () => {
    expect(await reach(shadowed, "GET /v1/mint")).toEqual({ rpc: "Get", request: { name: "mint" } });
  });
});
