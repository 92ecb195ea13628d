/** The overview: a signature made now, and all pages. */
import { Cards } from "../overview/cards.tsx";
import { OpeningView } from "../overview/opening-view.tsx";
import { shownStories, shownTools, shownViews } from "../pages.ts";

export function Page() {
  return (
    <div class="overview">
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
      <OpeningView />
      {shownStories.length > 0 && (
        <>
          <h2>Stories</h2>
          <p class="text">Each one is a use case with real calls to this server, whose bytes you can read.</p>
          <Cards pages={shownStories} kind="stories" />
        </>
      )}
      <h2>Explore and operate</h2>
      <Cards pages={[...shownViews, ...shownTools]} kind="tools" />
    </div>
  );
}
