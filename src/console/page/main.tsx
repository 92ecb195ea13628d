/** The entry point of the page. */
import "./style.css";
import "./ledger.css";
import "./tools.css";
import "./step.css";
import "./bytes.css";
import "./snippets.css";
import "./inventory.css";
import "./wide.css";
import "./accents.css";
import "./overview/overview.css";
import "./views/activity/activity.css";
import "./views/algorithms/algorithms.css";
import "./parts/diagrams/diagrams.css";
import { render } from "preact";
import { App } from "./app.tsx";

const place = document.getElementById("app");
if (place === null) throw new Error("the page has no place for the console");
place.replaceChildren();
render(<App />, place);
