/** What story steps show. The parts of a result are functions, so that a result reads as a list. */
import type { ComponentChildren } from "preact";
import { nameCode } from "../algorithms.ts";
import { type Check, reportBoth, sayInvalid, type Verdicts } from "../checks.ts";
import { classicalSignatures, classicalSigningKeys, type SizeRow } from "../classical.ts";
import type { Failure } from "../failure.ts";
import type { Change } from "../values.ts";
import { ByteChange, Bytes } from "./bytes-view.tsx";
import { FailureNote } from "./failure-note.tsx";
import { SizeChart } from "./size-chart.tsx";
import { Verdict } from "./verdict.tsx";

/** Names the code that verified here. */
export function verifiedBy(algorithm: string) {
  return hint(`Your browser verifies ${algorithm} with ${nameCode(algorithm)}.`);
}

/** @param publicKeyOf a public key's algorithm, for its PEM form */
export function bytes(label: string, value: Uint8Array, publicKeyOf?: string) {
  return <Bytes label={label} value={value} publicKeyOf={publicKeyOf} />;
}

export function change(changed: Change) {
  return <ByteChange {...changed} />;
}

/** What was checked, and each side's finding. */
export function checks(...all: readonly (Check | readonly Check[])[]) {
  const claims = Map.groupBy(all.flat(), ({ claim }) => claim);
  return (
    <ul class="checks">
      {[...claims].map(([claim, findings]) => (
        <li key={claim}>
          <span class="claim">{claim}</span>
          <span class="found">
            {findings.map(({ by, holds, found }) => (
              <span key={by}>
                <span class="side">{by === "server" ? "Server" : "Your browser"}</span>{" "}
                <Verdict holds={holds}>{found}</Verdict>
              </span>
            ))}
          </span>
        </li>
      ))}
    </ul>
  );
}

export function code(text: string | undefined) {
  return <code>{text}</code>;
}

/** Supporting bytes, folded to keep the page short. */
export function evidence(label: string, ...children: readonly ComponentChildren[]) {
  return (
    <details class="evidence">
      <summary>{label}</summary>
      {children}
    </details>
  );
}

/** Names and values, one pair per line. */
export function facts(values: Readonly<Record<string, ComponentChildren>>) {
  return (
    <dl class="facts-list">
      {Object.entries(values).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function heading(text: string) {
  return <h3>{text}</h3>;
}

export function hint(...children: readonly ComponentChildren[]) {
  return <p class="hint">{children}</p>;
}

/** An expected failure. */
export function refused(failure: Failure) {
  return <FailureNote failure={failure} isExpected />;
}

/** @param maxBytes bytes of a full bar, for adjacent charts; by default the longest row */
export function sizes(title: string, rows: readonly SizeRow[], maxBytes?: number) {
  return <SizeChart title={title} rows={rows} {...(maxBytes !== undefined && { maxBytes })} />;
}

/** A signature's size next to classical ones. */
export function signatureSizes(label: string, { length }: Uint8Array) {
  return sizes("Signature, bytes", [...classicalSignatures, { label, bytes: length }]);
}

/** A public key's size next to classical ones. */
export function publicKeySizes(label: string, { length }: Uint8Array) {
  return sizes("Public key, bytes", [...classicalSigningKeys, { label, bytes: length }]);
}

/** Two elements side by side. */
export function pair(...children: readonly ComponentChildren[]) {
  return <div class="pair">{children}</div>;
}

/**
 * For a step with one call that the server should refuse.
 *
 * @param who the start of the sentence; the reason follows
 */
export function showRefusal(who = "The server refuses the call") {
  return {
    says: ({ reason }: Failure): string => `${who}: ${reason}.`,
    shows: refused,
  };
}

/** A changed byte, and both sides' findings after the change. */
interface Tampering {
  readonly change: Change;
  readonly verdicts: Verdicts;
}

/**
 * For a step that changes a byte and lets both sides verify the result.
 *
 * @param claim the claim that both sides checked
 * @param sayFound the sentence if neither side finds it valid
 */
export function showTampering<T extends Tampering>(claim: string, sayFound: (value: T) => string) {
  return {
    says: (value: T): string => sayInvalid(value.verdicts, sayFound(value)),
    shows: ({ change: changed, verdicts }: T) => [change(changed), checks(reportBoth(claim, verdicts))],
  };
}
