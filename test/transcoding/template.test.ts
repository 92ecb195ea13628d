import { describe, expect, it } from "vitest";
import { parseTemplate, TemplateError } from "../../src/transcoding/template.ts";

/** A template in a form that tests can compare: segments, variables, verb. */
function outline(text: string): string {
  const { segments, variables, verb } = parseTemplate(text);
  const path = segments.map((segment) => {
    if (segment.kind === "literal") return segment.text;
    return segment.kind === "one" ? "*" : "**";
  });
  const bound = variables.map(({ fieldPath, start, end, multiSegment }) => {
    return `${fieldPath.join(".")}=${start}..${end}${multiSegment ? " multi" : ""}`;
  });
  return [path.join(" "), ...bound, ...(verb === "" ? [] : [`:${verb}`])].join(" | ");
}

describe("parseTemplate", () => {
  it.each([
    ["/v1/*/x/*", "v1 * x *"],
    ["/**", "**"],
    ["/*", "*"],
    ["/v1/{name}", "v1 * | name=1..2"],
    ["/{name=**}", "** | name=0..1 multi"],
    ["/v1/{name=a/b/c}", "v1 a b c | name=1..4 multi"],
    ["/v1/{name=shelves/*/**}", "v1 shelves * ** | name=1..4 multi"],
    ["/v1/{a=x/*}/y/{b=z/**}", "v1 x * y z ** | a=1..3 multi | b=4..6 multi"],
    ["/v1/{a.b.c=x/*}", "v1 x * | a.b.c=1..3 multi"],
    ["/v1/messages:archive", "v1 messages | :archive"],
    ["/v1/{name=**}:archive", "v1 ** | name=1..2 multi | :archive"],
    ["/v1/a:batch-get.v2_x~", "v1 a | :batch-get.v2_x~"],
    ["/v1/a-b._~!$&'()+,;=@", "v1 a-b._~!$&'()+,;=@"],
    ["/v1/a%20b%2Fc%3Ad", "v1 a b/c:d"],
    ["/v1/%2A", "v1 *"],
    ["/v1/%7Bname%7D", "v1 {name}"],
    ["/v1/caf%C3%A9:caf%c3%a9", "v1 café | :café"],
    ["/v1/..", "v1 .."],
  ])("reads %s", (template, parsed) => {
    expect(outline(template)).toBe(parsed);
  });

  /** A caret marks the place that the error names. */
  const refused: Readonly<Record<string, readonly string[]>> = {
    "a template begins with a slash": ["^", "^v1", "^{name}", "^*", "^ /v1", "^https://host/v1"],
    "a segment must not be empty": ["/^/", "/^/v1", "/v1/^", "/v1/^/x", "/v1/^:verb", "/v1/{a=x/^}"],
    "a verb follows a segment": ["/^:verb"],
    "a verb must not be empty": ["/v1:^", "/v1/{name}:^"],
    "a verb is a literal": ["/v1:^*", "/v1:^{name}"],
    "a verb comes last, and only once": ["/v1:a^:b", "/v1:a^/b", "/v1:a^/{name}"],
    "a wildcard is * or **, and a whole segment": ["/v1/**^*", "/v1/*^a", "/v1/a^*", "/v1/**^a", "/v1/a^**"],
    "nothing follows **": ["/v1/**/^x", "/v1/**/^**", "/v1/{name=**}/^{id}", "/v1/{name=**/^x}"],
    "a variable has a name": ["/v1/{^", "/v1/{^}", "/v1/{^=*}", "/v1/{^.a}", "/v1/{^*}"],
    "a name follows a dot": ["/v1/{a.^}", "/v1/{a.^.b}"],
    "a name is an identifier": ["/v1/{^1a}", "/v1/{a.^1}", "/v1/{a^-b}", "/v1/{a^ b}", "/v1/{na^ïve}"],
    "a variable ends": ["/v1/{a^", "/v1/{a=*^"],
    "a pattern must not be empty": ["/v1/{a=^", "/v1/{a=^}", "/v1/{a=^/x}"],
    "a variable cannot contain a verb": ["/v1/{a=x^:verb}"],
    "variables do not nest": ["/v1/{a=^{b}}", "/v1/{a=x/^{b}}"],
    "a variable is its whole segment": ["/v1/{a=*}^}", "/v1/{a}^{b}", "/v1/{a}^b", "/v1/x^{a}", "/v1/*^{a}"],
    "a variable occurs only once": ["/v1/{a}/^{a}", "/v1/{a.b}/^{a.b=x/*}"],
    "a closing brace needs an opening one": ["/v1/^}", "/v1/a^}"],
    "other characters are percent-encoded": ["/v1/a^ b", "/v1/a^?b", "/v1/^[a]", "/v1/a^\\b", "/v1/a^\n"],
    "an escape has two digits": ["/v1/^%", "/v1/^a%2", "/v1/^%zz"],
    "escapes are the shortest UTF-8, without surrogates": ["/v1/^%FF", "/v1/^%C0%AF", "/v1/a:^%ED%A0%80"],
  };
  for (const [why, marked] of Object.entries(refused)) {
    it.each(marked)(`rejects %j: ${why}`, (text) => {
      const column = text.indexOf("^") + 1;
      const parse = () => parseTemplate(text.replace("^", ""));
      expect(parse).toThrow(TemplateError);
      expect(parse).toThrow(`column ${column}:`);
    });
  }
});
