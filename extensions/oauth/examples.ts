/** Example requests for each call, shown in the API description. */
import { example, withAnswers } from "../../src/calls/example.ts";
import answers from "./answers.json" with { type: "json" };

const service = "oauth.AuthorizationService";
const client = { client_id: "orders", client_secret: "Jk3lq0w2Yd7Xb1mZr8tUv5nCs9aEo4gH6iPfRxWyTzQ" };
const token = "eyJhbGciOiJNTC1EU0EtNjUiLCJ0eXAiOiJhdCtqd3QifQ.e30.c2ln";

export const examples = withAnswers(
  [
    example(`${service}.GetMetadata`, "get-oauth-metadata", "Returns the server metadata."),
    example(`${service}.GetJwks`, "get-oauth-jwks", "Returns the public keys that verify tokens."),
    example(`${service}.IssueToken`, "issue-access-token", "Requests a token for the client itself.", {
      grant_type: "client_credentials",
      scope: "kms.sign",
      ...client,
    }),
    example(`${service}.IntrospectToken`, "introspect-token", "Returns a token's state.", {
      token,
      ...client,
    }),
    example(`${service}.RevokeToken`, "revoke-token", "Revokes a token.", { token, ...client }),
  ],
  answers,
);
