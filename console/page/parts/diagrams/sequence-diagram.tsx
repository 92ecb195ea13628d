/**
 * A sequence diagram that fills in as the reader does a story's steps. It is a list of messages whose arrows
 * are drawn by the style sheet, so a screen reader reads the same rows, each with its sender and receiver.
 */
import { useEffect, useRef } from "preact/hooks";
import { showStep } from "../../step.tsx";
import { Verdict } from "../verdict.tsx";
import { HashMark } from "./hash-mark.tsx";
import { Scene } from "./scene.tsx";
import {
  type Act,
  type Finding,
  type Message,
  nameParties,
  type Party,
  placeArrow,
  placeBox,
  placeText,
  type Row,
  type Span,
} from "./sequence.ts";

/** Pixels between the newest act and the diagram's end, where the next one appears. */
const spaceBelow = 80;

interface SequenceDiagramProps {
  readonly title: string;
  readonly parties: readonly Party[];
  /** The story's steps in order. */
  readonly acts: readonly Act[];
}

export function SequenceDiagram({ title, parties, acts }: SequenceDiagramProps) {
  const newest = useRef<HTMLLIElement>(null);
  const done = acts.filter(({ status }) => status === "done").length;
  const last = acts.findLastIndex(({ status }) => status === "done" || status === "failed");

  useEffect(() => {
    if (newest.current) follow(newest.current);
  }, [done, last]);

  return (
    <Scene title={title} legend={parties.some(({ isAttacker }) => isAttacker) ? "attacks" : undefined}>
      <div class="sequence">
        <Lifelines parties={parties} />
        <ol class="acts">
          {acts.map((act, at) => (
            <li key={act.title} class="act-row" data-status={act.status} ref={at === last ? newest : null}>
              <p class="act-title">
                <button type="button" onClick={() => showStep(act.title)}>
                  <span class="count">{at + 1}</span> {act.title}
                  <span class="unseen">
                    {act.status === "done" ? ", done" : ", not done yet"}; show the step
                  </span>
                </button>
              </p>
              <ol>
                {act.rows.map((row, place) => (
                  // An act's rows keep their order.
                  <RowView key={`${place} ${act.status}`} row={row} parties={parties} at={place} />
                ))}
              </ol>
              {act.failure !== undefined && <Verdict holds={false}>{act.failure}</Verdict>}
            </li>
          ))}
        </ol>
      </div>
    </Scene>
  );
}

/** Scrolls an act into view, if the diagram scrolls on its own. The page stays where it is. */
function follow(act: HTMLElement): void {
  const scene = act.closest(".scene");
  if (scene === null || scene.scrollHeight <= scene.clientHeight + 1) return;
  const below = act.getBoundingClientRect().bottom - scene.getBoundingClientRect().bottom;
  scene.scrollTop += Math.max(0, below + spaceBelow);
}

function Lifelines({ parties }: { readonly parties: readonly Party[] }) {
  return (
    <>
      <ul class="parties" aria-label="Parties" style={columns(parties.length)}>
        {parties.map(({ name, isAttacker = false }) => (
          <li key={name} data-attacker={isAttacker}>
            {name}
            {isAttacker && <small>attacker</small>}
          </li>
        ))}
      </ul>
      <div class="lifelines" aria-hidden="true" style={columns(parties.length)}>
        {parties.map(({ name }) => (
          <span key={name} />
        ))}
      </div>
    </>
  );
}

interface RowViewProps<T extends Row = Row> {
  readonly row: T;
  readonly parties: readonly Party[];
  /** Its index in the act: later rows appear later. */
  readonly at: number;
}

function RowView({ row, parties, at }: RowViewProps) {
  return (
    <li
      class="row"
      data-attack={row.kind === "message" && row.isAttack}
      data-verdict={row.verdict === undefined ? "none" : row.verdict.holds ? "good" : "bad"}
      style={{ ...columns(2 * parties.length), animationDelay: `${at * 0.25}s` }}
    >
      {row.kind === "message" ? (
        <MessageView row={row} parties={parties} at={at} />
      ) : (
        <FindingView row={row} parties={parties} at={at} />
      )}
    </li>
  );
}

function MessageView({ row, parties }: RowViewProps<Message>) {
  return (
    <>
      <span class="says" style={put(placeText(row, parties.length, row.text))}>
        <span class="unseen">{nameParties(row, parties)}: </span>
        {row.text}
      </span>
      <span
        class="arrow"
        data-direction={row.to > row.from ? "right" : "left"}
        aria-hidden="true"
        style={put(placeArrow(row))}
      />
      {row.verdict && (
        <span class="says" style={put(placeText(row, parties.length, row.verdict.says))}>
          <Verdict holds={row.verdict.holds && !row.isAttack}>{breakReason(row.verdict.says)}</Verdict>
        </span>
      )}
    </>
  );
}

/** Lets a long reason break after "_", and not inside a word. */
function breakReason(text: string) {
  return text.split(/(?<=_)/).map((part, at) => [at > 0 && <wbr />, part]);
}

function FindingView({ row, parties }: RowViewProps<Finding>) {
  return (
    <>
      {row.at.map((party, place) => (
        <span
          key={party}
          class="box"
          style={put(placeBox(party, row.at.length === 1, parties.length))}
          data-side={nameSide(row, party, parties.length)}
        >
          <span>
            <span class="unseen">{nameParties({ ...row, at: [party] }, parties)}: </span>
            <Mark bytes={row.marks[place] ?? row.marks[0]} /> {row.text}
            {row.verdict && <Verdict holds={row.verdict.holds}>{row.verdict.says}</Verdict>}
          </span>
        </span>
      ))}
    </>
  );
}

function Mark({ bytes }: { readonly bytes: Uint8Array | undefined }) {
  return bytes === undefined ? null : <HashMark bytes={bytes} />;
}

/** A box wider than its party's columns aligns with the edge. */
function nameSide({ at }: Finding, party: number, parties: number): "left" | "middle" | "right" {
  if (at.length > 1 || (party > 0 && party < parties - 1)) return "middle";
  return party === 0 ? "left" : "right";
}

function columns(count: number) {
  return { gridTemplateColumns: `repeat(${count}, minmax(0, 1fr))` };
}

function put({ start, end }: Span) {
  return { gridColumn: `${start} / ${end}` };
}
