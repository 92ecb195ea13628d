/** The home page: a live signature, and links to all pages. */

import { stories, tools, views } from "../pages.ts";
import { Cards } from "./cards.tsx";
import { SignatureView } from "./signature-view.tsx";

export function Page() {
  return (
    <div class="home">
      <header class="lead">
        <h1 tabIndex={-1}>
          Today’s signatures will not survive quantum computers. <em>This one is built to.</em>
        </h1>
        <p>
          A large quantum computer will forge the RSA and elliptic-curve signatures that protect software
          updates, payments and log-ins. ML-DSA, the NIST standard below, is built to resist it; the price is
          size.
        </p>
      </header>
      <SignatureView />
      {stories.length > 0 && (
        <>
          <h2>Stories</h2>
          <p class="text">
            Each story is a use case with real calls to this server, and you can inspect every byte.
          </p>
          <Cards pages={stories} />
        </>
      )}
      <h2>Explore and operate</h2>
      <Cards pages={[...views, ...tools]} />
    </div>
  );
}
