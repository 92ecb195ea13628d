/**
 * Parses the path templates of google/api/http.proto.
 *
 *     Template = "/" Segments [ Verb ] ;
 *     Segments = Segment { "/" Segment } ;
 *     Segment  = "*" | "**" | LITERAL | Variable ;
 *     Variable = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *     Verb     = ":" LITERAL ;
 *
 * `*` matches exactly one non-empty segment. `**` matches zero or more segments, and is only allowed at the end,
 * before the verb. A variable without a pattern means `{name=*}`. Variables do not nest.
 */

/** One segment of a template: a literal (percent-decoded), any one segment, or all remaining segments. */
export type Segment = { readonly kind: "literal"; readonly text: string } | { readonly kind: "one" | "rest" };

/** A variable: the segments from `start` to before `end` are the value of the field at `fieldPath`. */
export interface Variable {
  readonly fieldPath: readonly string[];
  readonly start: number;
  readonly end: number;
  /** True if the pattern can match several segments: then %2F stays encoded in the value. */
  readonly multiSegment: boolean;
}

/** A parsed template. */
export interface Template {
  readonly text: string;
  readonly segments: readonly Segment[];
  readonly variables: readonly Variable[];
  /** The verb without its colon; empty if there is none. */
  readonly verb: string;
}

/** Reports an invalid template and the column of the error (counted from 1). */
export class TemplateError extends Error {
  constructor(text: string, index: number, what: string) {
    super(`path template "${text}", column ${index + 1}: ${what}`);
    this.name = "TemplateError";
  }
}

/**
 * Parses a template.
 *
 * @throws TemplateError if it does not follow the grammar, or could never match.
 */
export function parseTemplate(text: string): Template {
  const segments: Segment[] = [];
  const variables: Variable[] = [];
  let index = 0;

  const fail = (what: string, at = index): never => {
    throw new TemplateError(text, at, what);
  };
  const expect = (character: string, where: string): void => {
    if (text[index] !== character) fail(`expected "${character}" ${where}`);
    index += 1;
  };
  const readWhile = (pattern: RegExp): string => {
    const start = index;
    while (index < text.length && pattern.test(text[index] ?? "")) index += 1;
    return text.slice(start, index);
  };

  const readSegment = (insideVariable: boolean): void => {
    if (segments.at(-1)?.kind === "rest") fail('nothing may follow "**" but a verb');
    if (text[index] === "{") {
      if (insideVariable) fail("a variable may not contain another variable");
      return readVariable();
    }
    if (text.startsWith("**", index)) {
      index += 2;
      segments.push({ kind: "rest" });
    } else if (text[index] === "*") {
      index += 1;
      segments.push({ kind: "one" });
    } else {
      segments.push({ kind: "literal", text: readLiteral("a segment") });
    }
    const next = text[index];
    if (next !== undefined && !"/:}".includes(next)) fail(`unexpected "${next}" after a segment`);
  };

  const readSegments = (insideVariable: boolean): void => {
    readSegment(insideVariable);
    while (text[index] === "/") {
      index += 1;
      readSegment(insideVariable);
    }
  };

  const readLiteral = (what: string): string => {
    const start = index;
    // RFC 3986, section 3.3: pchar without ":", which begins a verb, and "*", which is a wildcard here.
    const raw = readWhile(/[A-Za-z0-9\-._~!$&'()+,;=@%]/);
    if (raw === "") fail(index < text.length ? `unexpected "${text[index]}" in ${what}` : `${what} is empty`);
    try {
      return decodeURIComponent(raw);
    } catch {
      return fail(`"${raw}" is no valid percent-encoding`, start);
    }
  };

  const readVariable = (): void => {
    const opened = index;
    expect("{", "to begin a variable");
    const fieldPath = [readIdentifier()];
    while (text[index] === ".") {
      index += 1;
      fieldPath.push(readIdentifier());
    }
    const name = fieldPath.join(".");
    if (variables.some((other) => other.fieldPath.join(".") === name))
      fail(`variable "${name}" occurs twice`, opened);
    const start = segments.length;
    if (text[index] === "=") {
      index += 1;
      readSegments(true);
    } else {
      segments.push({ kind: "one" });
    }
    expect("}", "to end the variable");
    const pattern = segments.slice(start);
    const multiSegment = pattern.length > 1 || pattern[0]?.kind === "rest";
    variables.push({ fieldPath, start, end: segments.length, multiSegment });
    const next = text[index];
    if (next !== undefined && !"/:".includes(next)) fail(`unexpected "${next}" after a variable`);
  };

  const readIdentifier = (): string => {
    const start = index;
    const name = readWhile(/[A-Za-z0-9_]/);
    if (!/^[A-Za-z_]/.test(name)) fail("expected the name of a field", start);
    return name;
  };

  expect("/", "at the beginning");
  // "/" alone is the template of the root.
  if (index < text.length) readSegments(false);
  let verb = "";
  if (text[index] === ":") {
    if (segments.length === 0) fail("a verb needs a segment before it");
    index += 1;
    verb = readLiteral("a verb");
  }
  if (index < text.length) fail(`unexpected "${text[index]}"`);
  return { text, segments, variables, verb };
}
