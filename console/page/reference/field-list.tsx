/** A message's fields, with nested messages folded. */
import type { Schema } from "../../../src/openapi/document.ts";
import type { ApiDocument } from "./document.ts";
import { Prose } from "./prose.tsx";

interface FieldListProps {
  readonly api: ApiDocument;
  readonly schema: Schema;
  /** Whether it is an answer, whose fields the reader does not fill in. */
  readonly isAnswer?: boolean;
  /** Nesting depth. Messages may contain themselves. */
  readonly depth?: number;
}

const maxDepth = 5;

export function FieldList({ api, schema, isAnswer = false, depth = 0 }: FieldListProps) {
  const message = findMessage(api, schema);
  const fields = Object.entries(message?.properties ?? {});
  if (fields.length === 0) return <p class="hint">No fields.</p>;
  return (
    <dl class="described">
      {fields.map(([name, field]) => (
        <FieldRow
          key={name}
          {...{ api, name, isAnswer, depth }}
          schema={field}
          isRequired={message?.required?.includes(name) === true && !isAnswer}
        />
      ))}
    </dl>
  );
}

interface FieldRowProps {
  readonly api: ApiDocument;
  readonly name: string;
  readonly schema: Schema;
  /** Where a parameter goes. */
  readonly place?: string;
  readonly isRequired: boolean;
  readonly isAnswer?: boolean;
  readonly depth?: number;
}

/** One field or parameter. */
export function FieldRow({
  api,
  name,
  schema,
  place,
  isRequired,
  isAnswer = false,
  depth = 0,
}: FieldRowProps) {
  const inner = findMessage(api, schema);
  const choices = findChoices(api, schema);
  return (
    <div>
      <dt>
        <code>{name}</code>{" "}
        <span class="hint">{[place, nameType(api, schema)].filter(Boolean).join(" · ")}</span>
        {isRequired && <span class="required"> required</span>}
      </dt>
      <dd>
        {schema.description !== undefined && <Prose text={schema.description} />}
        {choices.length > 0 && (
          <p class="words">
            {choices.map((one) => (
              <code key={one}>{one}</code>
            ))}
          </p>
        )}
        {inner?.properties !== undefined && depth < maxDepth && (
          <details>
            <summary>
              Fields of <code>{name}</code>
            </summary>
            <FieldList {...{ api, schema, isAnswer }} depth={depth + 1} />
          </details>
        )}
      </dd>
    </div>
  );
}

/** The schema itself, without references and without the null that optional fields allow. */
function settle(api: ApiDocument, schema: Schema): Schema {
  const found = api.resolve(schema);
  const [only, ...others] = (found.anyOf ?? []).filter(({ type }) => type !== "null");
  return only !== undefined && others.length === 0 ? settle(api, only) : found;
}

/** The message type of a field or of its list items. */
function findMessage(api: ApiDocument, schema: Schema): Schema | undefined {
  const found = settle(api, schema);
  if (found.properties !== undefined) return found;
  return found.items === undefined ? undefined : findMessage(api, found.items);
}

function nameType(api: ApiDocument, schema: Schema): string {
  const found = settle(api, schema);
  const optional = [found.type ?? []].flat().includes("null") ? "?" : "";
  const [type = found.properties === undefined ? "any" : "object"] = [found.type ?? []]
    .flat()
    .filter((one) => one !== "null");
  if (type === "array" && found.items !== undefined) return `list of ${nameType(api, found.items)}`;
  const form = found.contentEncoding ?? found.format;
  const limits = [
    ...sayRange(found.minLength, found.maxLength, "characters"),
    ...sayRange(found.minimum, found.maximum),
  ];
  return [form === undefined ? type + optional : `${type}${optional} (${form})`, ...limits].join(", ");
}

/** A range in words: "1 to 600 characters". */
function sayRange(least: number | undefined, most: number | undefined, unit = ""): string[] {
  const end = unit === "" ? "" : ` ${unit}`;
  if (least !== undefined && most !== undefined)
    return [least === most ? `${most}${end}` : `${least} to ${most}${end}`];
  if (most !== undefined) return [`up to ${most}${end}`];
  return least === undefined ? [] : [`at least ${least}${end}`];
}

function findChoices(api: ApiDocument, schema: Schema): string[] {
  const found = settle(api, schema);
  const of = found.enum ?? (found.items === undefined ? [] : (settle(api, found.items).enum ?? []));
  return of.filter((one) => one !== "").map(String);
}
