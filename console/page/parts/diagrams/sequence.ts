/** The content of a sequence diagram: parties, the messages between them, and their findings. */
import { formatBytes } from "../../values.ts";

/** A party of a protocol, drawn as a vertical line. */
export interface Party {
  readonly name: string;
  readonly isAttacker?: boolean;
}

/** The receiver's verdict on a message, or the finding of a party. */
export interface Verdict {
  readonly holds: boolean;
  /** In words: "refused: PACKET_REPLAYED". */
  readonly says: string;
}

/** A message on its way. Parties are indexes, counted from the left. */
export interface Message {
  readonly kind: "message";
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** Whether the attacker sends it. */
  readonly isAttack: boolean;
  readonly verdict: Verdict | undefined;
}

/** A finding of parties, without a message. */
export interface Finding {
  readonly kind: "finding";
  /** The parties to whom it applies. */
  readonly at: readonly number[];
  readonly text: string;
  readonly verdict: Verdict | undefined;
  /** Values that the parties have, drawn as patterns: one of all parties, or one of each in their order. */
  readonly marks: readonly Uint8Array[];
}

export type Row = Message | Finding;

/** Where a step stands: "waiting" for steps before it, or "ready". */
export type StepStatus = "waiting" | "ready" | "running" | "done" | "failed";

/** A step of a story, as its diagram shows it. */
export interface Act {
  /** The title of the step. */
  readonly title: string;
  readonly status: StepStatus;
  /** The reason why the step failed. */
  readonly failure: string | undefined;
  readonly start: () => Promise<void>;
  readonly rows: readonly Row[];
}

/** A message of an honest party. */
export function send(from: number, to: number, text: string, verdict?: Verdict): Message {
  return { kind: "message", from, to, text, isAttack: false, verdict };
}

/** A message of the attacker, or one that the attacker changed. */
export function attack(from: number, to: number, text: string, verdict?: Verdict): Message {
  return { kind: "message", from, to, text, isAttack: true, verdict };
}

/** Creates a finding of one party or several. */
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

/** The verdict on a claim. Undefined as long as there is none. */
export function judge(holds: boolean | undefined, yes: string, no: string): Verdict | undefined {
  return holds === undefined ? undefined : { holds, says: holds ? yes : no };
}

/** The verdict of a party that refuses. @param reason undefined as long as it has not */
export function refuse(reason: string | undefined): Verdict | undefined {
  return reason === undefined ? undefined : { holds: false, says: `refused: ${reason}` };
}

/** "public key, 1,568 bytes"; without the size as long as it is not known. */
export function withSize(text: string, bytes: Uint8Array | undefined): string {
  return bytes === undefined ? text : `${text}, ${formatBytes(bytes.length)}`;
}

/** The first step that the reader can do next; undefined after the last. */
export function findNext(acts: readonly Pick<Act, "status">[]): number | undefined {
  const at = acts.findIndex(({ status }) => status !== "done");
  return at < 0 ? undefined : at;
}

/** A place in a grid with two columns for each party: lines from `start` to `end`, counted from 1. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The columns of an arrow: from the middle of one party to the middle of another. */
export function placeArrow({ from, to }: Pick<Message, "from" | "to">): Span {
  return { start: 2 * Math.min(from, to) + 2, end: 2 * Math.max(from, to) + 2 };
}

/** The columns of the text of an arrow, which may be wider than the arrow. */
export function placeText(message: Pick<Message, "from" | "to">, parties: number): Span {
  const { start, end } = placeArrow(message);
  return { start: Math.max(1, start - 1), end: Math.min(2 * parties + 1, end + 1) };
}

/** The columns of a box at a party: those of the party, and one more at each side if no other box is beside it. */
export function placeBox(at: number, isAlone: boolean, parties: number): Span {
  const extra = isAlone ? 1 : 0;
  return { start: Math.max(1, 2 * at + 1 - extra), end: Math.min(2 * parties + 1, 2 * at + 3 + extra) };
}

/** Says who does something, for readers who do not see the lines: "Mallory (attacker) to Gateway". */
export function nameParties(row: Row, parties: readonly Party[]): string {
  const name = (at: number): string => {
    const party = parties[at];
    return party?.isAttacker ? `${party.name} (attacker)` : (party?.name ?? "");
  };
  return row.kind === "message"
    ? `${name(row.from)} to ${name(row.to)}`
    : new Intl.ListFormat("en").format(row.at.map(name));
}
