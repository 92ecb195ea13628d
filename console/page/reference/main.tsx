/** The API reference's entry point. */
import "../style.css";
import "./reference.css";
import { render } from "preact";
import { Reference } from "./app.tsx";
import { loadDocument } from "./document.ts";

const place = document.getElementById("app");
if (place === null) throw new Error("the page has no place for the reference");
loadDocument().then(
  (api) => {
    // The server sends a skeleton, so that the page is not empty until now.
    place.replaceChildren();
    render(<Reference api={api} />, place);
  },
  () => {
    const note = document.createElement("p");
    note.role = "alert";
    note.textContent =
      "The API description could not be loaded. Check that the server is running, then reload.";
    place.querySelector("main")?.append(note);
  },
);
