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
  /** The value of the variable `name`; undefined if the path does not match. */
  const rows: [template: string, path: string, name: string | undefined][] = [
    // Single segments.
    ["/v1/{name}", "/v1/a", "a"],
    ["/v1/{name=*}", "/v1/a", "a"],
    ["/v1/{name}", "/v1", undefined],
    ["/v1/{name}", "/v1/", undefined],
    ["/v1/{name}", "/v1//", undefined],
    ["/v1/{name}", "/v1//a", undefined],
    ["/v1/{name}", "//v1/a", undefined],
    ["/v1/{name}", "/v1/a/", undefined],
    ["/v1/{name}", "/v1/a/b", undefined],
    ["/v1/{name}", "/V1/a", undefined],
    ["/v1/{name}", "/v2/a", undefined],
    ["/v1/{name}/x", "/v1//x", undefined],
    ["/v1/{name}/x", "/v1/a/x/", undefined],
    ["/v1/{name}/x", "/v1/a/X", undefined],
    ["/{name}", "/a", "a"],
    ["/{name}", "/", undefined],
    // Dot segments are ordinary segments: nothing resolves them without the caller's knowledge.
    ["/v1/{name}", "/v1/..", ".."],
    ["/v1/{name}", "/v1/.", "."],
    ["/v1/{name}", "/v1/%2e%2e", ".."],
    ["/v1/{name}", "/v1/x/../a", undefined],
    ["/v1/{name=**}", "/v1/x/../a", "x/../a"],
    ["/v1/{name=**}", "/v1/../../etc", "../../etc"],
    // Decoding in a single segment: everything.
    ["/v1/{name}", "/v1/a%20b", "a b"],
    ["/v1/{name}", "/v1/a+b", "a+b"],
    ["/v1/{name}", "/v1/a%2Bb", "a+b"],
    ["/v1/{name}", "/v1/a%2Fb", "a/b"],
    ["/v1/{name}", "/v1/a%2fb", "a/b"],
    ["/v1/{name}", "/v1/%2F", "/"],
    ["/v1/{name}", "/v1/a%252Fb", "a%2Fb"],
    ["/v1/{name}", "/v1/100%25", "100%"],
    ["/v1/{name}", "/v1/a%3Fb%23c", "a?b#c"],
    ["/v1/{name}", "/v1/%C3%A9", "é"],
    ["/v1/{name}", "/v1/%F0%9F%94%91", "🔑"],
    ["/v1/{name}", "/v1/%c3%a9", "é"],
    ["/v1/{name}", "/v1/a%00b", "a\u0000b"],
    ["/v1/{name}", "/v1/a;b=c,d", "a;b=c,d"],
    ["/v1/{name}", "/v1/-_.~!$&'()*@", "-_.~!$&'()*@"],
    ["/v1/{name}", "/v1/*", "*"],
    ["/v1/{name}", "/v1/**", "**"],
    ["/v1/{name}", "/v1/{name}", "{name}"],
    ["/v1/{name}", "/v1/__proto__", "__proto__"],
    // Decoding in several segments: everything but slashes, even if the path happens to have only one.
    ["/v1/{name=**}", "/v1/a%2Fb", "a%2Fb"],
    ["/v1/{name=**}", "/v1/a%2fb", "a%2fb"],
    ["/v1/{name=**}", "/v1/a%2Fb/c%2Fd", "a%2Fb/c%2Fd"],
    ["/v1/{name=**}", "/v1/a%20b%2Fc%3Ad", "a b%2Fc:d"],
    ["/v1/{name=**}", "/v1/%C3%A9/%2F/%25", "é/%2F/%"],
    ["/v1/{name=**}", "/v1/a%252Fb", "a%2Fb"],
    ["/v1/{name=**}", "/v1/a%3Fb", "a?b"],
    ["/v1/{name=x/*}", "/v1/x/a%2Fb", "x/a%2Fb"],
    ["/v1/{name=x/*}", "/v1/x/a%20b", "x/a b"],
    ["/v1/{name=*/*}", "/v1/a%2Fb/c", "a%2Fb/c"],
    ["/v1/{name=x/y}", "/v1/x/y", "x/y"],
    ["/v1/{name=x}", "/v1/x", "x"],
    ["/v1/{name=x}", "/v1/y", undefined],
    // An encoded slash does not split segments.
    ["/v1/{name=*/*}", "/v1/a%2Fb", undefined],
    ["/v1/x/{name}", "/v1/x%2Fa", undefined],
    ["/v1/{name}/x", "/v1/a%2Fx", undefined],
    // Zero or more segments.
    ["/v1/{name=**}", "/v1", ""],
    ["/v1/{name=**}", "/v1/", ""],
    ["/v1/{name=**}", "/v1/a", "a"],
    ["/v1/{name=**}", "/v1/a/b/c", "a/b/c"],
    ["/v1/{name=**}", "/v2/a", undefined],
    ["/{name=**}", "/", ""],
    ["/{name=**}", "/a/b", "a/b"],
    ["/v1/{name=x/**}", "/v1/x", "x"],
    ["/v1/{name=x/**}", "/v1/x/a/b", "x/a/b"],
    ["/v1/{name=x/**}", "/v1", undefined],
    ["/v1/{name=x/*/**}", "/v1/x", undefined],
    ["/v1/{name=x/*/**}", "/v1/x/a", "x/a"],
    ["/v1/{name=x/*/**}", "/v1/x/a/b/c", "x/a/b/c"],
    ["/v1/{name}/**", "/v1/a", "a"],
    ["/v1/{name}/**", "/v1/a/b/c", "a"],
    // Literals are compared after decoding.
    ["/v1/caf%C3%A9/{name}", "/v1/caf%C3%A9/a", "a"],
    ["/v1/caf%C3%A9/{name}", "/v1/caf%c3%a9/a", "a"],
    ["/v1/caf%C3%A9/{name}", "/v1/café/a", "a"],
    ["/v1/a/{name}", "/v1/%61/a", "a"],
    ["/%76%31/{name}", "/v1/a", "a"],
    ["/v1/a%2Fb/{name}", "/v1/a%2Fb/c", "c"],
    ["/v1/a%2Fb/{name}", "/v1/a/b/c", undefined],
    ["/v1/a%3Ab/{name}", "/v1/a:b/c", "c"],
    ["/v1/constructor/{name}", "/v1/constructor/a", "a"],
    ["/v1/{name=messages/*}", "/v1/m%65ssages/a", "messages/a"],
    // Verbs.
    ["/v1/{name}:go", "/v1/a:go", "a"],
    ["/v1/{name}:go", "/v1/a%3Ago", undefined],
    ["/v1/{name}:go", "/v1/a", undefined],
    ["/v1/{name}:go", "/v1/a:stop", undefined],
    ["/v1/{name}:go", "/v1/a:Go", undefined],
    ["/v1/{name}:go", "/v1/a:g%6F", "a"],
    ["/v1/{name}:go", "/v1/a:b:go", "a:b"],
    ["/v1/{name}:go", "/v1/a%3Ab:go", "a:b"],
    ["/v1/{name}:go", "/v1/a:go:go", "a:go"],
    ["/v1/{name}:go", "/v1/a:go/", undefined],
    ["/v1/{name}:go", "/v1/:go", undefined],
    ["/v1/{name}:go", "/v1/a:go?", "a"],
    ["/v1/{name=**}:go", "/v1/a/b:go", "a/b"],
    ["/v1/{name=**}:go", "/v1/a:b/c:go", "a:b/c"],
    ["/v1/{name=**}:go", "/v1/a/b%3Ago", undefined],
    ["/v1/{name=**}:go", "/v1:go", ""],
    ["/v1/{name=x/*}:go", "/v1/x/a:go", "x/a"],
    ["/v1/{name}/x:go", "/v1/a/x:go", "a"],
    ["/v1/{name}/x:go", "/v1/a:go/x", undefined],
    // Colons without verbs.
    ["/v1/{name}", "/v1/a:b", "a:b"],
    ["/v1/{name}", "/v1/a%3Ab", "a:b"],
    ["/v1/{name}", "/v1/:", ":"],
    ["/v1/{name}", "/v1/a:", "a:"],
    ["/v1/{name}", "/v1/:a", ":a"],
    ["/v1/{name}", "/v1/2026-11-21T08:00:00Z", "2026-11-21T08:00:00Z"],
    ["/v1/{name}/x", "/v1/a:b/x", "a:b"],
    ["/v1/{name=**}", "/v1/urn:a/urn:b", "urn:a/urn:b"],
    // Forms of the target (RFC 9112, section 3.2).
    ["/v1/{name}", "http://host/v1/a", "a"],
    ["/v1/{name}", "https://user@host:8443/v1/a?", "a"],
    ["/v1/{name}", "HTTP://host/v1/a", "a"],
    ["/v1/{name}", "//host/v1/a", undefined],
    ["/{name=**}", "http://host", ""],
    ["/{name=**}", "//host/v1/a", "/host/v1/a"],
  ];
  for (const [template, path, name] of rows) {
    const what = name === undefined ? "does not match" : `finds ${JSON.stringify(name)} in`;
    it(`${template} ${what} ${path}`, async () => {
      const expected = name === undefined ? notFound : name === "" ? {} : { name };
      expect(await received({ get: template }, `GET ${path}`)).toEqual(expected);
    });
  }
});

describe("a path that is not percent-encoded UTF-8 is refused", () => {
  const paths = [
    "/v1/%",
    "/v1/a%2",
    "/v1/%zz",
    "/v1/%u0041",
    "/v1/%FF",
    "/v1/%C0%AF",
    "/v1/%ED%A0%80",
    "/v1/%C3",
  ];
  for (const path of paths) {
    for (const template of ["/v1/{name}", "/v1/{name=**}", "/v1/*", "/v1/{name}:go"]) {
      it(`${path} for ${template}`, async () => {
        expect(await received({ get: template }, `GET ${path}`)).toEqual(invalid("TARGET_INVALID"));
      });
    }
  }
});

describe("several templates for one path", () => {
  const literal = "Literal: GET /v1/x";
  const one = "One: GET /v1/{name}";
  const rest = "Rest: GET /v1/{name=**}";
  const verb = "Verb: GET /v1/{name}:go";
  const rows: [what: string, rules: WrittenRule[], path: string, rpc: string, name?: string][] = [
    ["a literal wins over *", [one, literal], "/v1/x", "Literal"],
    ["* serves what no literal does", [literal, one], "/v1/y", "One", "y"],
    ["a literal wins over **", [rest, literal], "/v1/x", "Literal"],
    ["* goes before **", [rest, one], "/v1/y", "One", "y"],
    ["** serves several segments", [one, rest], "/v1/y/z", "Rest", "y/z"],
    ["** serves no segment", [one, rest], "/v1", "Rest"],
    ["** serves an empty segment", [one, rest], "/v1/", "Rest"],
    ["an empty path wins over an empty **", [rest, "Bare: GET /v1"], "/v1", "Bare"],
    ["a verb wins over no verb", [one, verb], "/v1/a:go", "Verb", "a"],
    ["an unknown verb is not a verb", [one, verb], "/v1/a:stop", "One", "a:stop"],
    ["an encoded colon does not begin a verb", [one, verb], "/v1/a%3Ago", "One", "a:go"],
    ["an empty segment has no verb", [one, verb], "/v1/:go", "One", ":go"],
    ["a verb wins over a literal with a colon", ["Colon: GET /v1/a%3Ago", verb], "/v1/a:go", "Verb", "a"],
    ["a verb after ** wins over *", [one, "RestVerb: GET /v1/{name=**}:go"], "/v1/a:go", "RestVerb", "a"],
    [
      "a verb after * wins over a verb after **",
      ["RestVerb: GET /v1/{name=**}:go", verb],
      "/v1/a:go",
      "Verb",
      "a",
    ],
    ["an encoded literal is a literal", [one, literal], "/v1/%78", "Literal"],
    [
      "a name from Object.prototype is not a literal",
      [one, literal],
      "/v1/constructor",
      "One",
      "constructor",
    ],
    [
      "backtracks from a literal that leads nowhere to *",
      ["GET /v1/x/y", "Star: GET /v1/{name}/z"],
      "/v1/x/z",
      "Star",
      "x",
    ],
    [
      "backtracks two steps",
      ["GET /v1/a/b/c", "GET /v1/a/*/d", "Far: GET /v1/{name}/b/e"],
      "/v1/a/b/e",
      "Far",
      "a",
    ],
    [
      "backtracks from * that leads nowhere to **",
      ["GET /v1/*/y", "Rest: GET /v1/{name=**}"],
      "/v1/x/z",
      "Rest",
      "x/z",
    ],
    [
      "backtracks from a longer prefix to ** after a shorter one",
      ["GET /v1/a/*/y", "Rest: GET /{name=**}"],
      "/v1/a/b/z",
      "Rest",
      "v1/a/b/z",
    ],
    [
      "** after a longer prefix wins over ** after a shorter one",
      ["GET /v1/**", "Long: GET /v1/a/{name=**}"],
      "/v1/a/b/c",
      "Long",
      "b/c",
    ],
    [
      "the first literal decides, not the number of literals",
      ["GET /v1/*/y", "First: GET /v1/x/{name}"],
      "/v1/x/y",
      "First",
      "y",
    ],
  ];
  for (const [what, rules, path, rpc, name] of rows) {
    for (const [order, ordered] of [
      ["declared so", rules],
      ["declared in reverse", rules.toReversed()],
    ] as const) {
      it(`${what} (${order})`, async () => {
        const named = ordered.map((rule, index) => ({ rpc: `Other${index}`, ...readRule(rule) }));
        const request = name === undefined ? {} : { name };
        expect(await outcome(named, `GET ${path}`)).toEqual({ rpc, request });
      });
    }
  }
});

describe("several methods for one path", () => {
  const rows: [what: string, rules: WrittenRule[], line: string, rpc: string, name?: string][] = [
    [
      "backtracks from a literal without the method to *",
      ["POST /v1/x", "Star: GET /v1/{name}"],
      "GET /v1/x",
      "Star",
      "x",
    ],
    [
      "backtracks from * without the method to **",
      ["POST /v1/*", "Rest: GET /v1/{name=**}"],
      "GET /v1/x",
      "Rest",
      "x",
    ],
    [
      "backtracks from a verb without the method to no verb",
      ["POST /v1/*:go", "Plain: GET /v1/{name}"],
      "GET /v1/a:go",
      "Plain",
      "a:go",
    ],
    ["a method wins over any method", ["* /v1/*", "Get: GET /v1/{name}"], "GET /v1/a", "Get", "a"],
    ["any method serves the others", ["GET /v1/*", "Any: * /v1/{name}"], "DELETE /v1/a", "Any", "a"],
    ["any method on a literal wins over a method on *", ["GET /v1/*", "Any: * /v1/x"], "GET /v1/x", "Any"],
    ["any method includes unknown methods", ["Any: * /v1/{name}"], "BREW /v1/a", "Any", "a"],
    ["any method includes OPTIONS", ["Any: * /v1/{name}"], "OPTIONS /v1/a", "Any", "a"],
    ["OPTIONS can have its own rule", ["Options: OPTIONS /v1/{name}"], "OPTIONS /v1/a", "Options", "a"],
    ["HEAD is GET", ["Get: GET /v1/{name}", "POST /v1/x"], "HEAD /v1/x", "Get", "x"],
    ["HEAD can have its own rule", ["GET /v1/*", "Head: HEAD /v1/{name}"], "HEAD /v1/a", "Head", "a"],
    [
      "HEAD uses GET on the path rather than any method on it",
      ["Get: GET /v1/{name}", "* /v1/*"],
      "HEAD /v1/a",
      "Get",
      "a",
    ],
    [
      "HEAD uses GET on the path rather than any method on everything",
      ["Get: GET /v1/{name}", "* /**"],
      "HEAD /v1/a",
      "Get",
      "a",
    ],
  ];
  for (const [what, rules, line, rpc, name] of rows) {
    it(what, async () => {
      const named = rules.map((rule, index) => ({ rpc: `Other${index}`, ...readRule(rule) }));
      const { transcoder, calls } = serveRules(named);
      expect((await send(transcoder, line)).status).toBe(200);
      expect(calls).toEqual([{ rpc, request: name === undefined ? {} : { name } }]);
    });
  }

  it("methods are case-sensitive", async () => {
    expect(await received({ get: "/v1/{name}" }, "get /v1/a")).toEqual(notAllowed);
  });

  const allows: [what: string, rules: WrittenRule[], line: string, allow: string][] = [
    ["one method", ["POST /v1/x"], "GET /v1/x", "OPTIONS, POST"],
    ["GET and so HEAD", ["GET /v1/x"], "POST /v1/x", "GET, HEAD, OPTIONS"],
    ["a custom method", ["PURGE /v1/x"], "GET /v1/x", "OPTIONS, PURGE"],
    [
      "the methods of every matching template",
      ["POST /v1/x", "GET /v1/{name}", "DELETE /v1/**"],
      "PUT /v1/x",
      "DELETE, GET, HEAD, OPTIONS, POST",
    ],
    [
      "no methods of templates that do not match",
      ["POST /v1/x", "GET /v1/y", "PUT /v1/x/y", "DELETE /v1/x:go"],
      "GET /v1/x",
      "OPTIONS, POST",
    ],
    [
      "the methods with the verb and without, because it may not be a verb",
      ["POST /v1/*:go", "GET /v1/*"],
      "PUT /v1/a:go",
      "GET, HEAD, OPTIONS, POST",
    ],
  ];
  for (const [what, rules, line, allow] of allows) {
    it(`${line} is refused with the allowed methods: ${what}`, async () => {
      const answer = await send(serveRules(rules).transcoder, line);
      expect(answer.status).toBe(405);
      expect(answer.headers.get("allow")).toBe(allow);
    });
    it(`OPTIONS is answered without a call: ${what}`, async () => {
      const { transcoder, calls } = serveRules(rules);
      const answer = await send(transcoder, `OPTIONS ${line.split(" ")[1]}`);
      expect(answer.status).toBe(204);
      expect(answer.headers.get("allow")).toBe(allow);
      expect(calls).toEqual([]);
    });
  }

  it("OPTIONS on an unknown path is refused", async () => {
    expect(await received({ get: "/v1" }, "OPTIONS /v2")).toEqual(notFound);
  });

  it("OPTIONS * describes the server (RFC 9110, section 9.3.7)", async () => {
    const { transcoder, calls } = serveRules(["GET /{name=**}"]);
    const answer = await send(transcoder, "OPTIONS *");
    expect(answer).toMatchObject({ status: 204, text: "" });
    expect(calls).toEqual([]);
  });

  it("the target * is for no other method (RFC 9112, section 3.2.4)", async () => {
    const { transcoder, calls } = serveRules(["GET /{name=**}"]);
    expect((await send(transcoder, "GET *")).status).toBeGreaterThanOrEqual(400);
    expect(calls).toEqual([]);
  });

  it("an RPC without a rule has no path", async () => {
    expect(await received({ get: "/v1" }, "POST /testing.Ruled/Rpc1")).toEqual(notFound);
  });
});

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

describe("the routing order", () => {
  const shadowed: WrittenRule[] = ["Mint: POST /v1/mint", "Get: GET /v1/{name}"];
  const rows: [what: string, rules: WrittenRule[], line: string, allow: string][] = [
    ["a literal hides *", shadowed, "GET /v1/mint", "OPTIONS, POST"],
    ["a literal hides * from HEAD", shadowed, "HEAD /v1/mint", "OPTIONS, POST"],
    ["* hides **", ["POST /v1/*", "GET /v1/{name=**}"], "GET /v1/x", "OPTIONS, POST"],
    [
      "a verb hides a path without a verb",
      ["POST /v1/*:go", "GET /v1/{name}"],
      "GET /v1/a:go",
      "OPTIONS, POST",
    ],
    ["the rest of a literal hides *", ["POST /v1/x/**", "GET /v1/*/{name}"], "GET /v1/x/y", "OPTIONS, POST"],
  ];
  for (const [what, rules, line, allow] of rows) {
    it(`"path" answers ${line} with 405: ${what}`, async () => {
      const { transcoder, calls } = serveRules(rules, {}, { routingOrder: "path" });
      const answer = await send(transcoder, line);
      expect([answer.status, answer.headers.get("allow")]).toEqual([405, allow]);
      expect(calls).toEqual([]);
    });
    it(`"path" lists only the methods of the most specific template: ${what}`, async () => {
      const { transcoder } = serveRules(rules, {}, { routingOrder: "path" });
      const answer = await send(transcoder, `OPTIONS ${line.split(" ")[1]}`);
      expect([answer.status, answer.headers.get("allow")]).toEqual([204, allow]);
    });
  }

  it('"path" still backtracks if the more specific template does not match to the end', async () => {
    const rules: WrittenRule[] = ["POST /v1/x/y", "Get: GET /v1/{name}/z"];
    const { transcoder, calls } = serveRules(rules, {}, { routingOrder: "path" });
    expect((await send(transcoder, "GET /v1/x/z")).status).toBe(200);
    expect(calls).toEqual([{ rpc: "Get", request: { name: "x" } }]);
  });

  it('"method" is the default', async () => {
    const { transcoder, calls } = serveRules(shadowed);
    expect((await send(transcoder, "GET /v1/mint")).status).toBe(200);
    expect(calls).toEqual([{ rpc: "Get", request: { name: "mint" } }]);
  });
});
