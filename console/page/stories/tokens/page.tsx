/** A token: issued, decoded, verified with the published keys, used, and forged in vain. */
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { formatAddress } from "../../address.ts";
import { withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import {
  areBothInvalid,
  reportBrowser,
  reportEqual,
  reportServer,
  sayExpected,
  sayValid,
} from "../../checks.ts";
import { expectRefusal, Failure } from "../../failure.ts";
import { computeThumbprint, type PublishedKey, readToken, verifyToken, withPayload } from "../../jwt.ts";
import { ofPassword, TextField } from "../../parts/fields.tsx";
import { checks, code, facts, hint, refused, sizes } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { TokenView } from "../../parts/token-view.tsx";
import { ValuePictures } from "../../parts/value-pictures.tsx";
import { getSession } from "../../session.ts";
import { settings } from "../../settings.ts";
import { defineStory } from "../../story.tsx";
import { type Field, step } from "../../story-step.ts";
import { formatBytes, formatNumber, toUtf8 } from "../../values.ts";

const { issueToken, verifyToken: verifyOnServer, getJwks, getSecureData } = TokenService.method;
const claim = "the token's signature";

const password: Field = {
  initial: "",
  view: (bound) => settings.wantsToken && <TextField label="Password" attributes={ofPassword} {...bound} />,
};

export const issuing = step({
  title: "Log in and decode the token",
  action: "Get a token",
  why: `A token consists of three base64url parts, joined by dots: the header, the payload, and the signature
    over both. Anyone who has the token can read it.`,
  fields: {
    username: textField("User", () => getSession()?.username ?? "ada", "username"),
    password,
  },
  plan: (given) => planCall(issueToken, given, withoutToken),
  run: async ({ call }, given) => {
    if (settings.wantsToken && given.password === "")
      throw new Failure("PASSWORD_MISSING", "BROWSER", "Enter your password.");
    const { token } = await call(issueToken, given, withoutToken);
    return { token, parts: readToken(token) };
  },
  says: ({ token, parts }) =>
    `The token has ${formatNumber(token.length)} characters; its signature has ${formatBytes(parts.signature.length)}, before base64url encoding.`,
  shows: ({ token, parts }) => [
    <TokenView key="token" token={token} parts={parts} label="Signature" />,
    <p key="inspect">
      <a href={formatAddress("tokens/inspect", { token })}>Take it apart in the token inspector</a>
    </p>,
    sizes("A token with this payload, characters", [
      // ES256 (RFC 7518, section 3.4): 64 bytes are 86 base64url characters.
      { label: "ES256", bytes: parts.signedText.length + 1 + 86, isClassical: true },
      { label: "ML-DSA-65", bytes: token.length },
    ]),
  ],
});

export const verifying = step({
  title: "Verify it with the published keys",
  action: "Fetch the keys and verify",
  why: `The issuer publishes its public keys as a key set. The token's header names one of them, with which
    your browser verifies the signature. A service needs nothing else to identify its callers.`,
  after: { issuing },
  plan: () => planCall(getJwks, {}, withoutToken),
  run: async ({ call }, { issuing: { token, parts } }) => {
    const { keys } = await call(getJwks, {}, withoutToken);
    const key: PublishedKey | undefined = keys.find(({ kid }) => kid === parts.header.kid);
    if (key === undefined) throw new Error("the key set does not have the token's key");
    const thumbprint = await computeThumbprint(key);
    const browser = await verifyToken(parts, key);
    const { valid: server } = await call(verifyOnServer, { token }, withoutToken);
    return { key, count: keys.length, thumbprint, verdicts: { server, browser } };
  },
  says: ({ verdicts }) => sayValid(verdicts, "Both sides find the token valid."),
  shows: ({ key, count, thumbprint, verdicts }) => [
    facts({
      "Keys in the set": formatNumber(count),
      "Token's key": code(key.kid),
      "Its thumbprint, computed in your browser": code(thumbprint),
    }),
    checks(
      reportEqual("the key ID, compared with the thumbprint (RFC 7638)", thumbprint === key.kid),
      reportBrowser(claim, verdicts.browser),
      reportServer(claim, verdicts.server),
    ),
  ],
});

export const using = step({
  title: "Use it",
  action: "Call with and without it",
  why: (
    <p>
      The token goes in the header <code>authorization: Bearer …</code>, over REST as well as gRPC. The first
      call here leaves it out.
    </p>
  ),
  after: { issuing },
  run: async ({ call }, { issuing: { token } }) => {
    const refusal = await expectRefusal(call(getSecureData, {}, withoutToken), "TOKEN_MISSING");
    const { message, subject } = await call(getSecureData, {}, { token });
    return { refusal, message, subject };
  },
  says: ({ refusal, subject }) =>
    `Without it: ${refusal.reason}. With it, the server identifies you as ${subject}.`,
  shows: ({ refusal, message }) => [
    refused(refusal),
    <p key="message" class="note">
      With the token: <q>{message}</q>
    </p>,
  ],
});

export const forging = step({
  title: "Forge it",
  action: "Change the subject",
  why: "An attacker tries to take over someone else's identity by changing the subject and keeping the old signature.",
  after: { issuing, verifying },
  run: async ({ call }, { issuing: { token, parts }, verifying: { key } }) => {
    const forged = withPayload(token, { ...parts.payload, sub: "mallory" });
    const forgedParts = readToken(forged);
    const browser = await verifyToken(forgedParts, key);
    const { valid: server, reason } = await call(verifyOnServer, { token: forged }, withoutToken);
    const refusal = await expectRefusal(
      call(getSecureData, {}, { token: forged }),
      "TOKEN_SIGNATURE_INVALID",
    );
    const [before, after] = [parts.payloadText, forgedParts.payloadText];
    return { before, after, verdicts: { server, browser }, reason, refusal };
  },
  says: ({ verdicts, refusal }) =>
    sayExpected(
      areBothInvalid(verdicts),
      `Neither side accepts it. A call with it is refused: ${refusal.reason}.`,
      "One side accepts the forged token",
    ),
  shows: ({ before, after, verdicts, reason, refusal }) => [
    facts({
      "Payload, as issued": code(before),
      "Payload, forged": code(after),
      "The server says": reason ?? "nothing",
    }),
    checks(reportBrowser(claim, verdicts.browser), reportServer(claim, verdicts.server)),
    refused(refusal),
  ],
});

export const Page = defineStory({
  title: "Tokens",
  lead: `A log-in returns a JSON Web Token signed with ML-DSA-65. A service that has the issuer's public key can
    verify it without a call to the issuer.`,
  scene: {
    title: "The token, character by character",
    shows: ({ read }) => {
      const token = read(issuing)?.token;
      if (token === undefined) return hint("Get a token to see it here.");
      // A dot counts to the part before it.
      const sizes = token.split(/(?<=\.)/).map(({ length }) => length);
      const parts = ["header", "payload", "signature"].map((name, at) => ({ name, bytes: sizes[at] ?? 0 }));
      return <ValuePictures values={[{ label: "Token", parts, value: toUtf8(token) }]} />;
    },
  },
  steps: [issuing, verifying, using, forging],
});
