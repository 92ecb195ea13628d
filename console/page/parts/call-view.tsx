/** Shows calls: request, answer, sizes, time, and code to make them elsewhere. */
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import type { CallRecord } from "../calls.ts";
import { describeCall, readableJson, requestJson } from "../snippets/call.ts";
import { formatBytes, formatMs } from "../values.ts";
import { CodeBlock } from "./code-block.tsx";
import { Snippets } from "./snippets.tsx";

/** More calls than this are folded, to keep the page short. */
const maxShown = 4;

export function Calls({ calls }: { readonly calls: readonly CallRecord[] }) {
  const views = calls.map((call, at) => (
    // The calls of one run keep their order.
    <CallView key={`${call.method.name} ${at}`} call={call} />
  ));
  if (calls.length <= maxShown) return <>{views}</>;
  return (
    <details class="evidence">
      <summary>{calls.length} calls</summary>
      {views}
    </details>
  );
}

function CallView({ call }: { readonly call: CallRecord }) {
  const { method, failure, answer } = call;
  return (
    <details class="call">
      <summary>
        <code>
          {method.parent.typeName}/<wbr />
          {method.name}
        </code>{" "}
        <span class="facts">{describe(call)}</span>
      </summary>
      <Snippets
        input={describeCall(call, location.origin)}
        shown={describeCall(call, location.origin, true)}
        token={call.token}
      />
      <JsonBlock title="Request" value={requestJson(call)} />
      {failure && (
        <>
          <h3>Answer</h3>
          <p>
            Refused with <code>{failure.reason}</code>: {failure.message}
          </p>
        </>
      )}
      {answer && <JsonBlock title="Answer" value={toJson(method.output, answer) as JsonObject} />}
    </details>
  );
}

function describe({ method, requestBytes, answerBytes, durationMs, failure }: CallRecord): string {
  if (durationMs === undefined)
    return method.methodKind === "unary" ? "Show code" : "Show code of the stream";
  const sizes = failure
    ? `${formatBytes(requestBytes)} out, refused with ${failure.reason}`
    : `${formatBytes(requestBytes)} out, ${formatBytes(answerBytes ?? 0)} back`;
  return `${sizes}, ${formatMs(durationMs)}`;
}

function JsonBlock({ value, title }: { readonly value: JsonObject; readonly title: string }) {
  return <CodeBlock title={title} text={readableJson(value)} whole={JSON.stringify(value, undefined, 2)} />;
}
