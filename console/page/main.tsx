/** The entry point of the page. */
import "./style.css";
import "./tools/tools.css";
import "./accents.css";
import "./home/home.css";
import "./views/algorithms/algorithms.css";
import "./views/handshake/handshake.css";
import "./views/token-inspector/token-inspector.css";
import "./parts/diagrams/scene.css";
import "./parts/diagrams/sequence-diagram.css";
import "./stories/keys/lifecycle-graph.css";
import "./stories/chain/block-chain.css";
import "./stories/keys/audit-chain.css";
import "./stories/log/tree-view.css";
import { render } from "preact";
import { App } from "./app.tsx";

const place = document.getElementById("app");
if (place === null) throw new Error("the page has no place for the console");
place.replaceChildren();
render(<App />, place);
