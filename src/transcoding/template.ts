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
 * `*` matches exactly one non-empty segment. `**` matches zero or more segments, and is only allowed at the
 * end, before the verb. A variable without a pattern means `{name=*}`. Variables do not nest.
 */

/** One segment of a template: a literal (percent-decoded), any one segment, or all remaining segments. */
export type Segment = { readonly kind: "literal"; readonly text: string } | { readonly kind: "one" | "rest" };

/**
 * A variable: the segments from `start` up to (not including) `end` are the value of the field at
 * `fieldPath`.
 */
export interface Variable {
  readonly fieldPath: readonly string[];
  readonly start: number;
  readonly end: number;
  /** True if the pattern can match several segments. */
  readonly multiSegment: boolean;
}

export interface Template {
  readonly text: string;
  readonly segments: readonly Segment[];
  readonly variables: readonly Variable[];
  /** The verb without its colon; empty if there is none. */
  readonly verb: string;
}

/** Writes the segments of a template, with an asterisk for each wildcard. */
export function writeSegments({ segments }: Pick<Template, "segments">): string {
  return `/${segments.map((segment) => (segment.kind === "literal" ? segment.text : "*")).join("/")}`;
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
 * @throws TemplateError if it violates the grammar or could never match
 */
export function parseTemplate(text: string): Template {
  const cursor = new Cursor(text);
  const parts: Parts = { segments: [], variables: [] };
  cursor.expect("/", "at the beginning");
  // "/" alone is the template of the root.
  if (cursor.next !== undefined) readSegments(cursor, parts, false);
  const verb = cursor.take(":") ? readLiteral(cursor, "a verb") : "";
  if (cursor.next !== undefined) cursor.fail(`unexpected "${cursor.next}"`);
  return { text, ...parts, verb };
}

/** What has been read of a template so far. */
interface Parts {
  readonly segments: Segment[];
  readonly variables: Variable[];
}

/** A text and the position up to which it was read. */
class Cursor {
  readonly text: string;
  index = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The next character, without consuming it; undefined at the end. */
  get next(): string | undefined {
    return this.text[this.index];
  }

  /** Consumes a text if it comes next. */
  take(text: string): boolean {
    const isNext = this.text.startsWith(text, this.index);
    if (isNext) this.index += text.length;
    return isNext;
  }

  expect(character: string, where: string): void {
    if (!this.take(character)) this.fail(`expected "${character}" ${where}`);
  }

  readWhile(pattern: RegExp): string {
    const start = this.index;
    while (this.next !== undefined && pattern.test(this.next)) this.index += 1;
    return this.text.slice(start, this.index);
  }

  fail(what: string, at = this.index): never {
    throw new TemplateError(this.text, at, what);
  }
}

function readSegments(cursor: Cursor, parts: Parts, insideVariable: boolean): void {
  do readSegment(cursor, parts, insideVariable);
  while (cursor.take("/"));
}

function readSegment(cursor: Cursor, parts: Parts, insideVariable: boolean): void {
  const { segments } = parts;
  if (segments.at(-1)?.kind === "rest") cursor.fail('nothing may follow "**" but a verb');
  if (cursor.next === "{") {
    if (insideVariable) cursor.fail("a variable may not contain another variable");
    return readVariable(cursor, parts);
  }
  if (cursor.take("**")) segments.push({ kind: "rest" });
  else if (cursor.take("*")) segments.push({ kind: "one" });
  else segments.push({ kind: "literal", text: readLiteral(cursor, "a segment") });
  requireEnd(cursor, "/:}", "a segment");
}

function readVariable(cursor: Cursor, parts: Parts): void {
  const { segments, variables } = parts;
  const opened = cursor.index;
  cursor.take("{");
  const fieldPath = [readIdentifier(cursor)];
  while (cursor.take(".")) fieldPath.push(readIdentifier(cursor));
  const name = fieldPath.join(".");
  if (variables.some((other) => other.fieldPath.join(".") === name))
    cursor.fail(`variable "${name}" occurs twice`, opened);
  const start = segments.length;
  if (cursor.take("=")) readSegments(cursor, parts, true);
  else segments.push({ kind: "one" });
  cursor.expect("}", "to end the variable");
  const pattern = segments.slice(start);
  const multiSegment = pattern.length > 1 || pattern[0]?.kind === "rest";
  variables.push({ fieldPath, start, end: segments.length, multiSegment });
  requireEnd(cursor, "/:", "a variable");
}

/** Refuses a character that cannot follow the construct just read. */
function requireEnd(cursor: Cursor, ends: string, what: string): void {
  if (cursor.next !== undefined && !ends.includes(cursor.next))
    cursor.fail(`unexpected "${cursor.next}" after ${what}`);
}

function readLiteral(cursor: Cursor, what: string): string {
  const start = cursor.index;
  // RFC 3986, section 3.3: pchar without ":", which begins a verb, and "*", which is a wildcard here.
  const raw = cursor.readWhile(/[A-Za-z0-9\-._~!$&'()+,;=@%]/);
  if (raw === "")
    cursor.fail(cursor.next === undefined ? `${what} is empty` : `unexpected "${cursor.next}" in ${what}`);
  try {
    return decodeURIComponent(raw);
  } catch {
    return cursor.fail(`"${raw}" is not valid percent-encoding`, start);
  }
}

function readIdentifier(cursor: Cursor): string {
  const start = cursor.index;
  const name = cursor.readWhile(/[A-Za-z0-9_]/);
  if (!/^[A-Za-z_]/.test(name)) cursor.fail("expected a field name", start);
  return name;
}
