/** The visitor's own connection: what the browser offered, and what was agreed. */
import { useEffect, useState } from "preact/hooks";
import { type GetConnectionResponse, PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { withoutToken } from "../../caller.ts";
import { CodeBlock } from "../../parts/code-block.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { facts } from "../../parts/show.tsx";
import { Verdict } from "../../parts/verdict.tsx";
import { useTask } from "../../task.ts";
import { isGrease } from "./code-points.ts";

/** As in docs/operate.md, "TLS". */
const commands = `./qsp ca init --data-dir ./try/own
./qsp ca issue localhost 127.0.0.1 --data-dir ./try/own
npm start -- --tls-cert try/own/tls/gateway.crt --tls-key try/own/tls/gateway.key`;

export function Connection() {
  const [connection, setConnection] = useState<GetConnectionResponse>();
  const loading = useTask();
  useEffect(() => {
    void loading.run(({ call }) => call(PqcService.method.getConnection, {}, withoutToken), setConnection);
  }, []);
  return (
    <section aria-labelledby="connection">
      <h2 id="connection">Your connection</h2>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {loading.isRunning && <p class="hint">Asking the server …</p>}
      {connection && (connection.tls ? <Agreed connection={connection} /> : <Plain />)}
    </section>
  );
}

function Plain() {
  return (
    <>
      <p class="text">
        This page came over plain HTTP, so your browser and this server made no handshake, and anyone in
        between can read along. The server allows that on its own machine. The recording below uses its real
        TLS.
      </p>
      <details class="evidence">
        <summary>Switch on TLS</summary>
        <CodeBlock title="Commands" text={commands} />
        <p class="hint text">
          Then open https://localhost:8080. Your browser asks for permission once, unless you make it trust{" "}
          <code>try/own/tls/ca.crt</code>.
        </p>
      </details>
    </>
  );
}

function Agreed({ connection }: { readonly connection: GetConnectionResponse }) {
  const { version, group, cipherSuite, alpn, hybrid, terminatedBy } = connection;
  const end = terminatedBy === "proxy" ? "the proxy in front of this server" : "this server";
  return (
    <>
      <p>
        {hybrid === undefined ? (
          <strong>Encrypted up to {end}, which does not report the key exchange.</strong>
        ) : (
          <Verdict holds={hybrid}>
            {hybrid
              ? `Your browser and ${end} agreed on keys that are built to resist quantum computers, even if the connection is recorded.`
              : "A quantum computer could recover this connection's keys from a recording."}
          </Verdict>
        )}
      </p>
      <p>{[version, group, cipherSuite, alpn].filter(Boolean).join(", ")}</p>
      {connection.offeredGroups.length > 0 && (
        <details class="evidence">
          <summary>What your browser offered</summary>
          {facts({
            Groups: listNames(connection.offeredGroups, group),
            "Signature algorithms": listNames(connection.offeredSignatureAlgorithms),
          })}
        </details>
      )}
    </>
  );
}

function listNames(names: readonly string[], agreed?: string) {
  return names.map((name, at) => (
    <span key={name}>
      {at > 0 && ", "}
      {name === agreed ? <strong>{name}</strong> : name}
      {isGrease(Number(name)) && " (GREASE)"}
    </span>
  ));
}
