/** A visitor's first view: a signature made just now, to scale with the ones that it replaces. */
import { type ComponentChildren, toChildArray } from "preact";
import { browserLibrary } from "../algorithms.ts";
import { classicalAlgorithms } from "../classical.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Verdict } from "../parts/verdict.tsx";
import { narrow, useMedia } from "../use-media.ts";
import { formatMs, formatNumber, fromUtf8 } from "../values.ts";
import { BytePicture, CountPicture, PartsLegend } from "./byte-picture.tsx";
import { writeCaption } from "./caption.ts";
import { countBytes, type Part, publicKeyParts, signatureParts } from "./cells.ts";
import { algorithm, type Finding, isRejected } from "./signature.ts";
import { SignaturePicture } from "./signature-picture.tsx";
import { type SignatureState, useSignature } from "./use-signature.ts";

const signatureBytes = countBytes(signatureParts);
const publicKeyBytes = countBytes(publicKeyParts);
const signers = classicalAlgorithms.filter(({ signatureBytes }) => signatureBytes !== undefined);
/**
 * Squares per row in the pictures: for our own values, and for the large and small ones that they replace.
 */
const rows = { wide: { own: 110, large: 16, small: 8 }, narrow: { own: 60, large: 12, small: 8 } };

export function SignatureView() {
  const state = useSignature();
  const isNarrow = useMedia(narrow);
  const { signed, signature, flipped, findings } = state;
  const failure = state.failure ?? signed?.failure;
  // While a check is pending the picture stays unchanged, so that it does not flash.
  const showsBreak = flipped.size > 0 && findings !== undefined && isRejected(findings);
  const row = isNarrow ? rows.narrow : rows.wide;

  return (
    <section class="stage" aria-label="A signature, made now" data-broken={showsBreak}>
      <div class="stage-head">
        <Provenance state={state} />
        <ul class="verdicts">
          <Found side="Server" finding={findings?.server} />
          <Found side="Browser" finding={findings?.browser} />
        </ul>
        <div class="act">
          {flipped.size === 0 ? (
            <button
              type="button"
              class="primary"
              aria-disabled={signed === undefined}
              onClick={() => signed && state.flip(Math.floor(Math.random() * signatureBytes))}
            >
              Flip one bit
            </button>
          ) : (
            <button type="button" class="primary" onClick={state.restore}>
              Restore it
            </button>
          )}
        </div>
      </div>
      <p class="telling" role="status">
        {writeCaption(state)}
      </p>
      {failure && <FailureNote failure={failure} />}
      <div class="scale">
        <Comparison title="Signature" parts={signatureParts}>
          <SignaturePicture
            bytes={signature}
            columns={row.own}
            flipped={flipped}
            // The red starts from the first flipped bit, however many follow.
            brokenAt={showsBreak ? [...flipped][0] : undefined}
            onFlip={state.flip}
          />
          <Replaced row={row} />
        </Comparison>
        <Comparison title="Public key" parts={publicKeyParts}>
          <BytePicture
            bytes={signed?.publicKey}
            count={publicKeyBytes}
            parts={publicKeyParts}
            columns={row.own}
          />
        </Comparison>
      </div>
      <p class="hint">One square is one byte, in all pictures.</p>
    </section>
  );
}

/** Describes the signed message, the signer and the time. */
function Provenance({ state }: { readonly state: SignatureState }) {
  const { message, say, signed, answerMs } = state;
  return (
    <p class="signed">
      <input
        type="text"
        aria-label="Message to sign"
        autocomplete="off"
        maxLength={200}
        value={message}
        onInput={(event) => say(event.currentTarget.value)}
      />{" "}
      <span class="hint">
        {signed === undefined || fromUtf8(signed.data) !== message
          ? message && "is being signed …"
          : signed.by === "server"
            ? "signed by this server"
            : `signed in your browser, by ${browserLibrary}, in ${formatMs(signed.ms ?? 0)}`}
        {/* Its space is reserved before it is known, so that nothing moves. */}
        {signed?.by === "server" && (
          <span data-known={answerMs !== undefined}>; round trip {formatMs(answerMs ?? 10)}</span>
        )}
      </span>
    </p>
  );
}

function Found({ side, finding }: { readonly side: string; readonly finding: Finding | undefined }) {
  const isKnown = typeof finding === "boolean";
  const found = isKnown ? (finding ? "valid" : "invalid") : sayOpen(finding);
  return (
    <li data-found={isKnown || finding === undefined ? found : "none"}>
      <span class="side">{side}</span>{" "}
      {isKnown ? <Verdict holds={finding}>{found}</Verdict> : <strong>{found}</strong>}
    </li>
  );
}

function sayOpen(finding: Exclude<Finding, boolean> | undefined): string {
  return typeof finding === "object" ? finding.reason : (finding ?? "pending");
}

interface ComparisonProps {
  readonly title: string;
  readonly parts: readonly Part[];
  /** The picture of the bytes, and the ones that they replace. */
  readonly children: ComponentChildren;
}

/** A value as a picture, with a legend of its parts. */
function Comparison({ title, parts, children }: ComparisonProps) {
  const [picture, replaced] = toChildArray(children);
  return (
    <div class="comparison">
      <figure class="new">
        <figcaption>
          <h2>{title}</h2> {algorithm}, {formatNumber(countBytes(parts))} bytes
          <PartsLegend parts={parts} />
        </figcaption>
        {picture}
      </figure>
      {replaced}
    </div>
  );
}

/** The signatures that it replaces, to the same scale. */
function Replaced({ row }: { readonly row: (typeof rows)["wide"] }) {
  return (
    <section class="replaced" aria-label="Signatures that it replaces">
      <p class="kind">Breakable by a quantum computer</p>
      {signers.map(({ name, signatureBytes: bytes = 0 }) => (
        <figure key={name}>
          <figcaption>
            <strong class="name">{name}</strong> {formatNumber(bytes)} bytes
          </figcaption>
          <CountPicture count={bytes} columns={bytes > 128 ? row.large : row.small} />
        </figure>
      ))}
    </section>
  );
}
