/** The first page: conventions of all calls, services, and errors that calls share. */

import { CodeBlock } from "../parts/code-block.tsx";
import { Verb } from "./call-list.tsx";
import { type ApiDocument, nameOperation, needsToken } from "./document.ts";
import { mergeCommon } from "./failures.ts";
import { FailureTable } from "./operation.tsx";
import { Prose } from "./prose.tsx";

interface ConventionsProps {
  readonly api: ApiDocument;
  readonly common: ReadonlySet<string>;
  /** Whether the address names a call that this server does not have. */
  readonly isMissing: boolean;
}

export function Conventions({ api, common, isMissing }: ConventionsProps) {
  return (
    <div class="reference">
      <h1>API reference</h1>
      {isMissing && <p role="alert">This server has no call at this address. Search for its name.</p>}
      <p class="hint">
        {api.title} {api.version} · {api.operations.length} REST calls ·{" "}
        <a href="/openapi.yaml" download>
          openapi.yaml
        </a>{" "}
        ·{" "}
        <a href="/openapi.json" download>
          openapi.json
        </a>{" "}
        · <a href="/protos.tar.gz">protos</a>
      </p>
      <FirstCall api={api} />
      <div class="text">
        <Prose text={api.description} />
      </div>
      <h2>Errors that most calls share</h2>
      <p class="text">A call's own page lists its other errors. Programs should check the reason.</p>
      <FailureTable rows={mergeCommon(api, common)} />
      <h2>Services</h2>
      {api.groups.map((group) => (
        <section key={group.name} class="service">
          <h3>{group.name}</h3>
          <div class="text">
            <Prose text={group.description} />
          </div>
          <ul class="index">
            {group.operations.map((one) => (
              <li key={one.operationId}>
                <a href={`#/${one.operationId}`}>
                  <Verb verb={one.verb} />
                  <span>{nameOperation(one)}</span>
                </a>
                <span class="hint">{one.summary}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

/** Calls to begin with, the most telling first, and what curl needs for them. */
const firstCalls = {
  "/api/grpc/sign": ` -H 'content-type: application/json' -d '{"data":"aGVsbG8="}'`,
  "/api/grpc/algorithms": "",
} as const;

/** A call that works on this server, for visitors without a token too. */
function FirstCall({ api }: Pick<ConventionsProps, "api">) {
  for (const [path, args] of Object.entries(firstCalls)) {
    const operation = api.operations.find((one) => one.path === path && !needsToken(one));
    if (operation === undefined) continue;
    return (
      <>
        <CodeBlock title="A first call" text={`curl -s ${location.origin}${path}${args}`} />
        <p class="text">
          {operation.summary}. <a href={`#/${operation.operationId}`}>Send it from here.</a>
        </p>
      </>
    );
  }
  return null;
}
