/** A sequence diagram's content: parties, the messages between them, and their findings. */
import { formatBytes } from "../../values.ts";

/** A protocol party, drawn as a vertical line. */
export interface Party {
  readonly name: string;
  readonly isAttacker?: boolean;
}

/** The receiver's verdict on a message, or a party's finding. */
export interface Verdict {
  readonly holds: boolean;
  /** In words: "refused: PACKET_REPLAYED". */
  readonly says: string;
}

/** A message in transit. Parties are indexes, counted from the left. */
export interface Message {
  readonly kind: "message";
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** Whether the attacker sends it. */
  readonly isAttack: boolean;
  readonly verdict: Verdict | undefined;
}

/** A finding by parties, without a message. */
export interface Finding {
  readonly kind: "finding";
  /** The parties that it applies to. */
  readonly at: readonly number[];
  readonly text: string;
  readonly verdict: Verdict | undefined;
  /** Values that the parties have, drawn as patterns: one for all parties, or one each, in order. */
  readonly marks: readonly Uint8Array[];
}

export type Row = Message | Finding;

/** A step's status: "waiting" for earlier steps, or "ready". */
export type StepStatus = "waiting" | "ready" | "running" | "done" | "failed";

/** A story step as its diagram shows it. */
export interface Act {
  /** The step's title. */
  readonly title: string;
  readonly status: StepStatus;
  /** Why the step failed. */
  readonly failure: string | undefined;
  readonly rows: readonly Row[];
}

/** A message from an honest party. */
export function send(from: number, to: number, text: string, verdict?: Verdict): Message {
  return { kind: "message", from, to, text, isAttack: false, verdict };
}

/** A message sent or altered by the attacker. */
export function attack(from: number, to: number, text: string, verdict?: Verdict): Message {
  return { kind: "message", from, to, text, isAttack: true, verdict };
}

/** Creates a finding by one or several parties. */
export function find(
  at: number | readonly number[],
  text: string,
  verdict?: Verdict,
  ...marks: readonly (Uint8Array | undefined)[]
): Finding {
  return {
    kind: "finding",
    at: typeof at === "number" ? [at] : at,
    text,
    verdict,
    marks: marks.filter((mark) => mark !== undefined),
  };
}

/** The verdict on a claim; undefined until it is known. */
export function judge(holds: boolean | undefined, yes: string, no: string): Verdict | undefined {
  return holds === undefined ? undefined : { holds, says: holds ? yes : no };
}

/**
 * The verdict of a party that refuses.
 *
 * @param reason undefined until it has refused
 */
export function refuse(reason: string | undefined): Verdict | undefined {
  return reason === undefined ? undefined : { holds: false, says: `refused: ${reason}` };
}

/** "public key, 1,568 bytes"; without the size while it is unknown. */
export function withSize(text: string, bytes: Uint8Array | undefined): string {
  return bytes === undefined ? text : `${text}, ${formatBytes(bytes.length)}`;
}

/** A place in a grid with two columns per party: lines from `start` to `end`, counted from 1. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** An arrow's columns: from the middle of one party to the middle of the other. */
export function placeArrow({ from, to }: Pick<Message, "from" | "to">): Span {
  return { start: 2 * Math.min(from, to) + 2, end: 2 * Math.max(from, to) + 2 };
}

/** Characters in a row of the diagram on a phone. */
const rowCharacters = 48;

/** The columns of an arrow's text, which may be wider than the arrow, above all a long one. */
export function placeText(message: Pick<Message, "from" | "to">, parties: number, text: string): Span {
  const { start, end } = placeArrow(message);
  const extra = text.length * parties > 2 * rowCharacters ? 3 : 1;
  return { start: Math.max(1, start - extra), end: Math.min(2 * parties + 1, end + extra) };
}

/** The columns of a party's box: the party's own, and one more on each side if no other box is adjacent. */
export function placeBox(at: number, isAlone: boolean, parties: number): Span {
  const extra = isAlone ? 1 : 0;
  return { start: Math.max(1, 2 * at + 1 - extra), end: Math.min(2 * parties + 1, 2 * at + 3 + extra) };
}

/** Names sender and receiver, for readers who do not see the lines: "Mallory (attacker) to Gateway". */
export function nameParties(row: Row, parties: readonly Party[]): string {
  const name = (at: number): string => {
    const party = parties[at];
    return party?.isAttacker ? `${party.name} (attacker)` : (party?.name ?? "");
  };
  return row.kind === "message"
    ? `${name(row.from)} to ${name(row.to)}`
    : new Intl.ListFormat("en").format(row.at.map(name));
}
