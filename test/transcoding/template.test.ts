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

function failure(text: string): Error {
  try {
    parseTemplate(text);
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error(`${text} was parsed`);
}

describe("parseTemplate", () => {
  const good: [template: string, parsed: string][] = [
    ["/v1", "v1"],
    ["/v1/messages", "v1 messages"],
    ["/v1/*", "v1 *"],
    ["/v1/*/x/*", "v1 * x *"],
    ["/v1/**", "v1 **"],
    ["/**", "**"],
    ["/*", "*"],
    ["/v1/*/**", "v1 * **"],
    ["/v1/{name}", "v1 * | name=1..2"],
    ["/v1/{name=*}", "v1 * | name=1..2"],
    ["/v1/{name=**}", "v1 ** | name=1..2 multi"],
    ["/{name=**}", "** | name=0..1 multi"],
    ["/v1/{name=messages}", "v1 messages | name=1..2"],
    ["/v1/{name=messages/*}", "v1 messages * | name=1..3 multi"],
    ["/v1/{name=a/b/c}", "v1 a b c | name=1..4 multi"],
    ["/v1/{name=*/*}", "v1 * * | name=1..3 multi"],
    ["/v1/{name=shelves/*/**}", "v1 shelves * ** | name=1..4 multi"],
    ["/v1/{a}/{b}", "v1 * * | a=1..2 | b=2..3"],
    ["/v1/{a=x/*}/y/{b=z/**}", "v1 x * y z ** | a=1..3 multi | b=4..6 multi"],
    ["/v1/{a.b.c=x/*}", "v1 x * | a.b.c=1..3 multi"],
    ["/v1/{_private}", "v1 * | _private=1..2"],
    ["/v1/{a1}", "v1 * | a1=1..2"],
    ["/v1/messages:archive", "v1 messages | :archive"],
    ["/v1/{name}:archive", "v1 * | name=1..2 | :archive"],
    ["/v1/{name=**}:archive", "v1 ** | name=1..2 multi | :archive"],
    ["/v1/**:archive", "v1 ** | :archive"],
    ["/v1/*:archive", "v1 * | :archive"],
    ["/**:archive", "** | :archive"],
    ["/v1/a:batch-get.v2_x~", "v1 a | :batch-get.v2_x~"],
    ["/v1/a-b._~!$&'()+,;=@", "v1 a-b._~!$&'()+,;=@"],
    ["/v1/a%20b", "v1 a b"],
    ["/v1/a%2Fb", "v1 a/b"],
    ["/v1/a%3Ab", "v1 a:b"],
    ["/v1/%2A", "v1 *"],
    ["/v1/%7Bname%7D", "v1 {name}"],
    ["/v1/caf%C3%A9", "v1 café"],
    ["/v1/a:caf%c3%a9", "v1 a | :café"],
    ["/v1/..", "v1 .."],
  ];
  for (const [template, parsed] of good) {
    it(`reads ${template}`, () => {
      expect(outline(template)).toBe(parsed);
    });
  }

  const bad: [template: string, column: number, why: string][] = [
    ["", 1, "a template begins with a slash"],
    ["v1", 1, "a template begins with a slash"],
    ["{name}", 1, "a template begins with a slash"],
    ["*", 1, "a template begins with a slash"],
    [" /v1", 1, "a template begins with a slash"],
    ["https://host/v1", 1, "a template is not a URL"],
    ["//", 2, "a segment must not be empty"],
    ["//v1", 2, "a segment must not be empty"],
    ["/v1/", 5, "a segment must not be empty"],
    ["/v1//x", 5, "a segment must not be empty"],
    ["/v1/:verb", 5, "a segment must not be empty"],
    ["/:verb", 2, "a verb follows a segment"],
    ["/v1:", 5, "a verb must not be empty"],
    ["/v1/{name}:", 12, "a verb must not be empty"],
    ["/v1:a:b", 6, "only one verb is allowed"],
    ["/v1:a/b", 6, "a verb comes last"],
    ["/v1:a/{name}", 6, "a verb comes last"],
    ["/v1:*", 5, "a verb is a literal"],
    ["/v1:{name}", 5, "a verb is a literal"],
    ["/v1/***", 7, "the only wildcards are * and **"],
    ["/v1/*a", 6, "a wildcard is a whole segment"],
    ["/v1/a*", 6, "a wildcard is a whole segment"],
    ["/v1/**a", 7, "a wildcard is a whole segment"],
    ["/v1/a**", 6, "a wildcard is a whole segment"],
    ["/v1/**/x", 8, "nothing follows **"],
    ["/v1/**/*", 8, "nothing follows **"],
    ["/v1/**/**", 8, "nothing follows **"],
    ["/v1/{name=**}/x", 15, "nothing follows **"],
    ["/v1/{name=**}/{id}", 15, "nothing follows **"],
    ["/v1/{name=**/x}", 14, "nothing follows **"],
    ["/v1/{name=x/**}/**", 17, "nothing follows **"],
    ["/v1/{", 6, "a variable has a name"],
    ["/v1/{}", 6, "a variable has a name"],
    ["/v1/{=*}", 6, "a variable has a name"],
    ["/v1/{.a}", 6, "a variable has a name"],
    ["/v1/{a.}", 8, "a name follows a dot"],
    ["/v1/{a..b}", 8, "a name follows a dot"],
    ["/v1/{1a}", 6, "a name must begin with a letter"],
    ["/v1/{a.1}", 8, "a name must begin with a letter"],
    ["/v1/{a-b}", 7, "a name is an identifier"],
    ["/v1/{a b}", 7, "a name is an identifier"],
    ["/v1/{ a}", 6, "a name is an identifier"],
    ["/v1/{naïve}", 8, "a name is an identifier"],
    ["/v1/{*}", 6, "a variable has a name"],
    ["/v1/{a", 7, "a variable ends"],
    ["/v1/{a=*", 9, "a variable ends"],
    ["/v1/{a=", 8, "a pattern must not be empty"],
    ["/v1/{a=}", 8, "a pattern must not be empty"],
    ["/v1/{a=/x}", 8, "a variable does not begin with a slash"],
    ["/v1/{a=x/}", 10, "a segment must not be empty"],
    ["/v1/{a=x//y}", 10, "a segment must not be empty"],
    ["/v1/{a=x:verb}", 9, "a variable cannot contain a verb"],
    ["/v1/{a={b}}", 8, "variables do not nest"],
    ["/v1/{a=x/{b}}", 10, "variables do not nest"],
    ["/v1/{a=*}}", 10, "nothing follows a variable in its segment"],
    ["/v1/{a}{b}", 8, "nothing follows a variable in its segment"],
    ["/v1/{a}b", 8, "nothing follows a variable in its segment"],
    ["/v1/{a}-{b}", 8, "nothing follows a variable in its segment"],
    ["/v1/{a}*", 8, "nothing follows a variable in its segment"],
    ["/v1/x{a}", 6, "a variable begins its segment"],
    ["/v1/*{a}", 6, "a variable begins its segment"],
    ["/v1/{a}/{a}", 9, "a variable occurs only once"],
    ["/v1/{a.b}/{a.b=x/*}", 11, "a variable occurs only once"],
    ["/v1/}", 5, "a closing brace needs an opening one"],
    ["/v1/a}", 6, "a closing brace needs an opening one"],
    ["/v1/a b", 6, "a space is percent-encoded"],
    ["/v1/a?b", 6, "a question mark is percent-encoded"],
    ["/v1/a#b", 6, "a number sign is percent-encoded"],
    ["/v1/[a]", 5, "a bracket is percent-encoded"],
    ["/v1/a\\b", 6, "a backslash is percent-encoded"],
    ['/v1/"', 5, "a quotation mark is percent-encoded"],
    ["/v1/\u0000", 5, "a control character is percent-encoded"],
    ["/v1/a\n", 6, "a control character is percent-encoded"],
    ["/v1/%", 5, "an escape has two digits"],
    ["/v1/a%2", 5, "an escape has two digits"],
    ["/v1/%zz", 5, "an escape has two digits"],
    ["/v1/%FF", 5, "escapes must be UTF-8"],
    ["/v1/%C0%AF", 5, "escapes must be the shortest UTF-8"],
    ["/v1/a:%ED%A0%80", 7, "escapes must not be surrogates"],
  ];
  for (const [template, column, why] of bad) {
    it(`rejects ${JSON.stringify(template)} at column ${column}: ${why}`, () => {
      const error = failure(template);
      expect(error).toBeInstanceOf(TemplateError);
      expect(error.message).toContain(`column ${column}:`);
    });
  }
});
