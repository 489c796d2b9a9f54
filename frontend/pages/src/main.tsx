// Fills the page that the service has sent with what its script shows.
import { render } from "preact";
import { Announced } from "./announcements";
import { PageGuard } from "./page_guard";
import { PAGES } from "./pages";
import { Troubles } from "./troubles";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const Page = PAGES[document.body.dataset["page"] ?? ""];
const place = document.getElementById("app");
if (Page && place) {
  const shown = (
    <>
      <Troubles />
      <Announced />
      <PageGuard><Page /></PageGuard>
    </>
  );
  render(shown, place);
}
