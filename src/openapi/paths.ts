/** Converts path templates of google/api/http.proto to OpenAPI paths, which have no wildcards. */
import type { FieldPath } from "../transcoding/fields.ts";
import { describeFieldPath } from "../transcoding/fields.ts";
import type { Route } from "../transcoding/routes.ts";
import type { Segment } from "../transcoding/template.ts";

/** One `{name}` in a path. */
export interface PathParameter {
  readonly name: string;
  /**
   * The field that the parameter sets, fully or in part; undefined for a wildcard outside of any variable.
   */
  readonly field: FieldPath | undefined;
  /** The field's pattern, with the parameter's name, if the parameter is only a part of it. */
  readonly partOf: string | undefined;
  /** Whether the parameter may span several segments, or none. */
  readonly isRest: boolean;
}

export interface ApiPath {
  readonly text: string;
  readonly parameters: readonly PathParameter[];
}

/**
 * Omits routes that repeat another route of their RPC with a multi-segment parameter. An OpenAPI parameter is
 * a single segment, whose slashes are encoded.
 */
export function listDescribed(routes: readonly Route[]): Route[] {
  const hasRest = ({ template }: Route): boolean => template.segments.some(({ kind }) => kind === "rest");
  const isRepeated = (route: Route): boolean =>
    routes.some(
      (other) =>
        other.spec.method === route.spec.method && other.httpMethod === route.httpMethod && !hasRest(other),
    );
  return routes.filter((route) => !hasRest(route) || !isRepeated(route));
}

/**
 * Creates the path converter. In OpenAPI, two paths that differ only in parameter names are one path, so the
 * first path names the parameters for all.
 */
export function createPathWriter(): (route: Route) => ApiPath {
  const known = new Map<string, readonly string[]>();
  return (route) => {
    const shape = writePath(route, () => "");
    const names = known.get(shape.text) ?? writePath(route).parameters.map(({ name }) => name);
    known.set(shape.text, names);
    return writePath(route, (index) => names[index] as string);
  };
}

/**
 * Converts one path.
 *
 * @param rename returns the name of a parameter by its index; if omitted, parameters have the names of
 *   their fields
 */
function writePath({ template, variables }: Route, rename?: (index: number) => string): ApiPath {
  const parameters: PathParameter[] = [];
  const texts: string[] = [];
  template.segments.forEach((segment, index) => {
    if (segment.kind === "literal") {
      texts.push(encodeURIComponent(segment.text));
      return;
    }
    const bound = variables.find(({ variable }) => variable.start <= index && index < variable.end);
    const pattern = bound ? template.segments.slice(bound.variable.start, bound.variable.end) : [];
    const number = bound
      ? countWildcards(template.segments.slice(bound.variable.start, index))
      : parameters.length;
    const base = bound ? describeFieldPath(bound.path) : "segment";
    const isOnly = bound !== undefined && countWildcards(pattern) === 1;
    const first = bound ? parameters.length - number : 0;
    const nameAt = (at: number): string => rename?.(first + at) ?? (isOnly ? base : `${base}${at + 1}`);
    const name = nameAt(number);
    texts.push(`{${name}}`);
    parameters.push({
      name,
      field: bound?.path,
      partOf: pattern.length > 1 ? writePattern(pattern, nameAt) : undefined,
      isRest: segment.kind === "rest",
    });
  });
  const verb = template.verb === "" ? "" : `:${encodeURIComponent(template.verb)}`;
  return { text: `/${texts.join("/")}${verb}`, parameters };
}

function countWildcards(segments: readonly Segment[]): number {
  return segments.filter(({ kind }) => kind !== "literal").length;
}

/**
 * Writes a pattern with its parts as parameters. It contains no asterisk: before a slash, one would end a
 * comment in a generated client.
 */
function writePattern(pattern: readonly Segment[], nameAt: (at: number) => string): string {
  let at = 0;
  return pattern
    .map((segment) => (segment.kind === "literal" ? segment.text : `{${nameAt(at++)}}`))
    .join("/");
}
