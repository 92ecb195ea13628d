/** Takes a signed token apart: paste one, edit it, and verify it with any key set. Nothing leaves the browser. */

import { useEffect, useRef, useState } from "preact/hooks";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { formatAddress } from "../../address.ts";
import { withoutToken } from "../../caller.ts";
import { readObject, readToken, type TokenParts } from "../../jwt.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { TextArea } from "../../parts/fields.tsx";
import { Lead } from "../../parts/lead.tsx";
import { Verdict } from "../../parts/verdict.tsx";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { useAddress } from "../../use-address.ts";
import { formatBytes, toBase64Url, toUtf8 } from "../../values.ts";
import { type JwsVerdict, readKeySet, verifyJws } from "./verify-jws.ts";

const path = "tokens/inspect";
const { issueToken, getJwks } = TokenService.method;

export function Page() {
  const address = useAddress();
  const [token, setToken] = useState(() => address.query.get("token") ?? "");
  const [keys, setKeys] = useState("");
  const task = useTask();
  useEffect(() => setToken(address.query.get("token") ?? ""), [address.query.get("token")]);
  const readKeys = async (): Promise<void> =>
    task.run(
      ({ call }) => call(getJwks, {}, withoutToken),
      (answer) =>
        setKeys(JSON.stringify({ keys: answer.keys.map(({ $typeName: _, ...key }) => key) }, undefined, 2)),
    );
  const issue = (): void =>
    void task.run(
      ({ call }) => call(issueToken, { username: "ada" }, withoutToken),
      (answer) => {
        setToken(answer.token);
        void readKeys();
      },
    );
  const parsed = parse(() => readToken(token.trim()));
  /** Drops what a copied header has before its token. */
  const take = (text: string): void => setToken(text.replace(/^\s*(authorization:\s*)?bearer\s+/i, ""));
  return (
    <div class="tool">
      <Lead title="Token inspector">
        Paste a signed token (JWT) of any issuer, change it, and verify it with the issuer's keys. The token
        stays in this browser; a link carries it in its fragment, which browsers do not send.
      </Lead>
      <p class="act">
        {!settings.wantsToken && (
          <ActionButton task={task} onClick={issue}>
            Issue a token
          </ActionButton>
        )}
        <ActionButton task={task} onClick={() => void readKeys()}>
          Get this server's keys
        </ActionButton>
        {token !== "" && (
          <CopyButton
            text={`${location.href.replace(/#.*$/, "")}${formatAddress(path, { token: token.trim() })}`}
            what="link"
            isNamed
          />
        )}
      </p>
      {task.failure && <FailureNote failure={task.failure} />}
      <div class="inspector">
        <div>
          <TokenField token={token} onChange={take} />
          <TextArea label="Keys (JWK set)" rows={8} value={keys} onChange={setKeys} />
        </div>
        <div>
          {token !== "" && "error" in parsed && <p class="note bad">This is not a token: {parsed.error}.</p>}
          {"value" in parsed && (
            <Parts parts={parsed.value} token={token.trim()} keys={keys} onChange={setToken} />
          )}
        </div>
      </div>
    </div>
  );
}

/** The token in three colours, behind a field that the visitor types in. */
function TokenField({
  token,
  onChange,
}: {
  readonly token: string;
  readonly onChange: (token: string) => void;
}) {
  const colours = useRef<HTMLDivElement>(null);
  return (
    <div class="field wide">
      <label for="inspected-token">Token</label>
      <div class="coloured">
        <div class="token" aria-hidden="true" ref={colours}>
          {token.split(".").map((part, at) => (
            // The parts keep their order.
            <span key={String(at)} data-part={Math.min(at, 3)}>
              {at > 0 && <i>.</i>}
              {part}
            </span>
          ))}
        </div>
        <textarea
          id="inspected-token"
          class="token"
          rows={12}
          spellcheck={false}
          value={token}
          onInput={(event) => onChange(event.currentTarget.value)}
          onScroll={({ currentTarget }) => {
            if (colours.current) colours.current.scrollTop = currentTarget.scrollTop;
          }}
        />
      </div>
    </div>
  );
}

interface PartsProps {
  readonly parts: TokenParts;
  readonly token: string;
  /** Undefined while the token lacks what is typed. */
  readonly keys: string | undefined;
  readonly onChange: (token: string) => void;
}

function Parts({ parts, token, keys, onChange }: PartsProps) {
  const [header = "", payload = "", signature = ""] = token.split(".");
  const [typedHeader, typedPayload] = [useTyped(parts.headerText), useTyped(parts.payloadText)];
  const isRead = typedHeader.error === undefined && typedPayload.error === undefined;
  return (
    <>
      <SignatureVerdict parts={parts} token={token} keys={isRead ? keys : undefined} />
      <JsonField
        label="Header"
        part={0}
        typed={typedHeader}
        onChange={(text) => onChange([toBase64Url(toUtf8(text)), payload, signature].join("."))}
      />
      <JsonField
        label="Payload"
        part={1}
        typed={typedPayload}
        onChange={(text) => onChange([header, toBase64Url(toUtf8(text)), signature].join("."))}
      />
      <Times payload={parts.payload} />
      <p class="hint">
        The signature has {formatBytes(parts.signature.length)}. It covers the encoded header and payload, so
        any change breaks it.
      </p>
    </>
  );
}

/** Shows the verdict for the current token and keys. */
function SignatureVerdict({ parts, token, keys }: Omit<PartsProps, "onChange">) {
  const [verdict, setVerdict] = useState<JwsVerdict>();
  useEffect(() => {
    let isCurrent = true;
    const set = parse(() => readKeySet(keys ?? ""));
    const finding: Promise<JwsVerdict> =
      keys === undefined
        ? Promise.resolve({ says: "Not verified: what you typed is not JSON yet." })
        : keys.trim() === ""
          ? Promise.resolve({ says: "Paste the issuer's keys to verify the signature." })
          : "error" in set
            ? Promise.resolve({ says: `The keys are not a JWK set: ${set.error}.` })
            : verifyJws(parts, set.value).catch((error) => ({ says: `The check failed: ${error}.` }));
    void finding.then((found) => isCurrent && setVerdict(found));
    return () => {
      isCurrent = false;
    };
  }, [token, keys]);
  return (
    <p role="status" class="outcome">
      {verdict?.holds === undefined ? verdict?.says : <Verdict holds={verdict.holds}>{verdict.says}</Verdict>}
    </p>
  );
}

/** A part as readable JSON. What is typed counts once it is a JSON object. */
function useTyped(text: string) {
  const [typed, setTyped] = useState<string>();
  const shown = typed ?? JSON.stringify(JSON.parse(text), undefined, 2);
  const read = typed === undefined ? undefined : parse(() => readObject(typed));
  // A new token replaces what was typed.
  useEffect(() => {
    const isOwn = read && "value" in read && JSON.stringify(read.value) === JSON.stringify(JSON.parse(text));
    if (!isOwn) setTyped(undefined);
  }, [text]);
  return { shown, setTyped, error: read && "error" in read ? read.error : undefined };
}

interface JsonFieldProps {
  readonly label: string;
  readonly part: number;
  readonly typed: ReturnType<typeof useTyped>;
  readonly onChange: (text: string) => void;
}

function JsonField({ label, part, typed: { shown, setTyped, error }, onChange }: JsonFieldProps) {
  return (
    <div class="part" data-part={part}>
      <TextArea
        label={label}
        rows={Math.min(12, shown.split("\n").length)}
        value={shown}
        onChange={(next) => {
          setTyped(next);
          const json = parse(() => readObject(next));
          if ("value" in json) onChange(JSON.stringify(json.value));
        }}
      />
      {error !== undefined && <p class="hint">Not JSON yet: {error}.</p>}
    </div>
  );
}

/** The times in a payload (RFC 7519, section 4.1), as dates. */
function Times({ payload }: { readonly payload: Readonly<Record<string, unknown>> }) {
  const names = { iat: "issued", nbf: "valid from", exp: "valid until" } as const;
  const times = Object.entries(names).flatMap(([claim, name]) => {
    const seconds = payload[claim];
    if (typeof seconds !== "number" || Math.abs(seconds) > 8.64e12) return [];
    const isOver = claim === "exp" && seconds * 1000 < Date.now();
    return [`${name} ${new Date(seconds * 1000).toISOString()}${isOver ? " (expired)" : ""}`];
  });
  return times.length === 0 ? null : <p class="hint">In UTC: {times.join(", ")}.</p>;
}

function parse<T>(read: () => T): { readonly value: T } | { readonly error: string } {
  try {
    return { value: read() };
  } catch (error) {
    return { error: error instanceof Error ? error.message.replace(/\.$/, "") : String(error) };
  }
}
