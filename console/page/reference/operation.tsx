/** One call: description, fields, snippets, an answer, errors, and a form that makes the call. */

import { useState } from "preact/hooks";
import type { MediaType } from "../../../src/openapi/document.ts";
import { CodeBlock } from "../parts/code-block.tsx";
import { Choice } from "../parts/fields.tsx";
import { Snippets } from "../parts/snippets.tsx";
import { useSession } from "../session.ts";
import { Verb } from "./call-list.tsx";
import {
  type ApiDocument,
  isStream,
  isUpload,
  listExamples,
  listSources,
  nameOperation,
  needsToken,
  type Operation,
  takesToken,
} from "./document.ts";
import { type FailureRow, listFailures, pickReasons } from "./failures.ts";
import { FieldList, FieldRow } from "./field-list.tsx";
import { Prose } from "./prose.tsx";
import { buildHttp, buildMessage, draftRequest } from "./request.ts";
import { TryCall } from "./try-call.tsx";

interface OperationViewProps {
  readonly api: ApiDocument;
  readonly operation: Operation;
  readonly common: ReadonlySet<string>;
}

export function OperationView({ api, operation, common }: OperationViewProps) {
  const session = useSession();
  const examples = listExamples(operation.requestBody?.content);
  const [example, setExample] = useState(examples[0]?.name ?? "");
  const [draft, setDraft] = useState(() => draftRequest(operation, example));
  const content = operation.responses["200"]?.content ?? {};
  const choose = (summary: string): void => {
    const name = examples.find((one) => one.summary === summary)?.name ?? "";
    setExample(name);
    setDraft(draftRequest(operation, name));
  };
  return (
    <article class="operation">
      <header>
        <p class="hint">{operation.tags[0]}</p>
        <h1>{nameOperation(operation)}</h1>
        <p>
          <Verb verb={operation.verb} /> <code>{operation.path}</code>
        </p>
        <p class="hint">
          {sayToken(operation)}
          {isStream(operation) && " The answer is a stream."}
        </p>
      </header>
      <div class="text">
        <Prose text={operation.description ?? operation.summary ?? ""} />
        <RequestFields api={api} operation={operation} />
        <AnswerFields
          api={api}
          content={content}
          description={operation.responses["200"]?.description ?? ""}
        />
        <Failures operation={operation} common={common} />
      </div>
      <div>
        {examples.length > 1 && (
          <Choice
            label="Example"
            value={examples.find(({ name }) => name === example)?.summary ?? ""}
            onChange={choose}
            options={examples.map(({ summary }) => summary)}
          />
        )}
        <Snippets
          input={{
            http: buildHttp(operation, draft, location.origin),
            message: buildMessage(operation, draft),
            rpc: operation["x-grpc"].method,
            hasToken: needsToken(operation) || (session !== undefined && takesToken(operation)),
            isStream: isStream(operation),
            isJson: content["application/json"] !== undefined,
          }}
        />
        <TryCall operation={operation} draft={draft} onDraft={setDraft}>
          {listSources(api, operation, example).map(({ field, path, operationId, name }) => (
            <p key={field} class="hint">
              <code>{field}</code> is only a sample. The answer of <a href={`#/${operationId}`}>{name}</a> has
              one, in <code>{path}</code>.
            </p>
          ))}
        </TryCall>
        <ExampleAnswer content={content} name={example} />
      </div>
    </article>
  );
}

function sayToken(operation: Operation): string {
  if (needsToken(operation)) return "Requires a token.";
  return takesToken(operation) ? "Works with and without a token." : "Requires no token.";
}

function RequestFields({ api, operation }: { readonly api: ApiDocument; readonly operation: Operation }) {
  const body = findSchema(operation.requestBody?.content);
  const { parameters } = operation;
  return (
    <>
      {parameters.length > 0 && (
        <section>
          <h2>Parameters</h2>
          <dl class="described">
            {parameters.map(({ name, in: place, description, required, schema }) => (
              <FieldRow
                key={name}
                api={api}
                name={name}
                place={place}
                schema={{ ...schema, ...(description !== undefined && { description }) }}
                isRequired={required === true}
              />
            ))}
          </dl>
        </section>
      )}
      {body !== undefined && (
        <section>
          <h2>Body</h2>
          {isUpload(operation) ? <p>The bytes of a file.</p> : <FieldList api={api} schema={body} />}
        </section>
      )}
    </>
  );
}

type Content = Readonly<Record<string, MediaType>>;

function AnswerFields({
  api,
  content,
  description,
}: {
  readonly api: ApiDocument;
  readonly content: Content;
  readonly description: string;
}) {
  const schema = findSchema(content);
  return (
    <section>
      <h2>Answer</h2>
      <Prose text={description} />
      {schema !== undefined && Object.keys(schema).length > 0 && (
        <details>
          <summary>Fields of the answer</summary>
          <FieldList api={api} schema={schema} isAnswer />
        </details>
      )}
    </section>
  );
}

function findSchema(content: Content | undefined): MediaType["schema"] | undefined {
  return (content?.["application/json"] ?? Object.values(content ?? {})[0])?.schema;
}

function Failures({
  operation,
  common,
}: {
  readonly operation: Operation;
  readonly common: ReadonlySet<string>;
}) {
  const rows = listFailures(operation);
  const own = pickReasons(rows, (reason) => !common.has(reason));
  const others = pickReasons(rows, (reason) => common.has(reason));
  const count = others.reduce((sum, { reasons }) => sum + reasons.length, 0);
  return (
    <section>
      <h2>Errors</h2>
      {own.length > 0 && <FailureTable rows={own} />}
      <details>
        <summary>{count} errors that most calls share</summary>
        <FailureTable rows={others} />
      </details>
    </section>
  );
}

function ExampleAnswer({ content, name }: { readonly content: Content; readonly name: string }) {
  const examples = listExamples(content);
  const value = (examples.find((one) => one.name === name) ?? examples[0])?.value;
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <>
      <CodeBlock title="Example answer" text={text} />
      {/SHORTENED|SECRET/.test(text) && (
        <p class="hint">A real answer. Long values are shortened and secrets are omitted where marked.</p>
      )}
    </>
  );
}

/** Failures by HTTP status, with their reasons. */
export function FailureTable({ rows }: { readonly rows: readonly FailureRow[] }) {
  return (
    <dl class="described">
      {rows.map(({ status, title, reasons }) => (
        <div key={status}>
          <dt>
            {status} <span class="hint">{title}</span>
          </dt>
          <dd class="words">
            {reasons.map((reason) => (
              <code key={reason}>{reason}</code>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );
}
